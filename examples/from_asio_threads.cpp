// Several threads: not one io_context that all of them run, with strands, but a loop for each, and channels between
// them. docs/from-asio.md prints this program.
#include <argiope/async.hpp>
#include <cstdio>
#include <thread>
#include <vector>

using namespace argiope;

namespace {

constexpr int kNumbers = 1000;

// On a thread of its own, until nothing more comes. Between two awaits it has its loop for itself; with other threads
// it shares the channels alone.
Coro<void> square(Channel<int>& numbers, Channel<long>& squares) {
  try {
    while (true) {
      const long number = co_await numbers.get();
      co_await squares.put(number * number);  // waits while the channel is full
    }
  } catch (const QueueShutDown&) {
  }
}

Coro<void> put_all(Channel<int>& numbers) {
  for (int number = 1; number <= kNumbers; ++number) co_await numbers.put(number);
  numbers.shutdown();  // what is in it is still given out
}

Coro<long> add_up(Channel<long>& squares) {
  long sum = 0;
  for (int i = 0; i < kNumbers; ++i) sum += co_await squares.get();
  co_return sum;
}

Coro<long> amain(Channel<int>& numbers, Channel<long>& squares) {
  const auto [nothing, sum] = co_await gather(put_all(numbers), add_up(squares));
  co_return sum;
}

}  // namespace

int main() {
  // Ten at a time, so that no thread runs ahead of the others. Made first, because they outlive all loops.
  Channel<int> numbers(10);
  Channel<long> squares(10);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { run(square(numbers, squares)); });
  std::printf("%ld\n", run(amain(numbers, squares)));
}
