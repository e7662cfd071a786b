// An echo server and its clients with a time limit, as one writes them on coming from Asio: no io_context, no strand,
// no completion token. docs/from-asio.md prints this program.
#include <argiope/async.hpp>
#include <cstdio>
#include <string>

using namespace argiope;
using namespace std::chrono_literals;

namespace {

Coro<void> echo(Stream& client) {
  while (true) {
    const std::string line = co_await client.read_line();
    if (line.empty()) co_return;        // the end of the stream
    if (line == "silence\n") continue;  // no answer
    client.write(line);
    co_await client.drain();
  }
}

Coro<std::string> ask(std::uint16_t port, std::string line) {
  Stream server = co_await open_connection("127.0.0.1", port);
  server.write(line);
  co_await server.drain();
  co_return co_await server.read_line();
}

Coro<void> amain() {
  Server server = start_server(&echo, "127.0.0.1", 0);
  // Both at once: awaitable_operators' &&.
  const auto [first, second] = co_await gather(ask(server.port(), "one\n"), ask(server.port(), "two\n"));
  std::printf("%s%s", first.c_str(), second.c_str());
  try {
    co_await wait_for(ask(server.port(), "silence\n"), 50ms);  // || with a timer, or cancel_after
  } catch (const TimeoutError&) {
    std::puts("no answer in time");
  }
  server.close();
  co_await server.wait_closed();
}

}  // namespace

int main() { run(amain()); }
