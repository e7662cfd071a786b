#include <argiope/argiope.hpp>
#include <cstdio>

using namespace argiope;
using namespace std::chrono_literals;

Coro<void> say_after(Duration pause, const char* what) {
  co_await sleep(pause);
  std::puts(what);
}

Coro<int> amain() {
  co_await gather(say_after(20ms, "second"), say_after(10ms, "first"));
  co_return 0;
}

int main() { return run(amain()); }
