// The first program of README.md.
#include <argiope/argiope.hpp>
using namespace argiope;
using namespace std::chrono_literals;

Coro<int> answer() {
  co_await sleep(1s);
  co_return 42;
}

int main() {
  VirtualBackend backend;  // simulated time; AsioBackend for the real one
  EventLoop loop(backend);
  return loop.run_until_complete(wait_for(answer(), 2s)) == 42 ? 0 : 1;
}
