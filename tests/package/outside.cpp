// Prints an answer after a moment; with an argument, waits until Ctrl-C.
#include <argiope/async.hpp>
#include <cstdio>

using namespace argiope;
using namespace std::chrono_literals;

Coro<int> amain(bool waits) {
  co_await sleep(waits ? 1h : 1ms);
  std::puts("42");
  co_return 0;
}

int main(int count, char**) { return run(amain(count > 1)); }
