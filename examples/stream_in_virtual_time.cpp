// A stream in virtual time: hours of a connection, its pauses and its time limit, in a millisecond and without a port.
// docs/from-asio.md prints this program.
#include <sys/socket.h>

#include <argiope/async.hpp>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "sockets_in_virtual_time.hpp"

using namespace argiope;
using namespace std::chrono_literals;

namespace {

// What is tested: asks each minute, and gives up a peer that has not answered within ten seconds; how often it did.
// It takes a Stream: in earnest that of open_connection().
Coro<int> keep_alive(Stream peer) {
  for (int answers = 0;; ++answers) {
    peer.write("ping\n");
    co_await peer.drain();
    try {
      if ((co_await wait_for(peer.read_line(), 10s)).empty()) co_return answers;  // it hung up
    } catch (const TimeoutError&) {
      co_return answers;
    }
    co_await sleep(1min);
  }
}

// The peer of the test: falls silent after three hours, with the connection open.
Coro<void> answer_for_three_hours(Stream asker) {
  const TimePoint silent_from = EventLoop::current().time() + 3h;
  while (!(co_await asker.read_line()).empty()) {
    if (EventLoop::current().time() < silent_from) asker.write("pong\n");
    co_await asker.drain();
  }
}

Coro<void> amain() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::system_category(), "socketpair");
  }
  Task<void> peer = EventLoop::current().create_task(answer_for_three_hours(Stream(ends[1])));
  const int answers = co_await keep_alive(Stream(ends[0]));
  co_await peer;  // its end of the stream has ended with keep_alive()
  std::printf("%d answers; given up after %.0f s\n", answers,
              to_seconds(EventLoop::current().time().time_since_epoch()));
}

}  // namespace

int main() {
  SocketsInVirtualTime backend(WallTime{});
  run(backend, amain);
}
