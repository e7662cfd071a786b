// The first program of README.md.
#include <argiope/argiope.hpp>
using namespace argiope;
using namespace std::chrono_literals;

Coro<int> answer() {
  co_await sleep(1s);
  co_return 42;
}

int main() { return run(wait_for(answer(), 2s)) == 42 ? 0 : 1; }
