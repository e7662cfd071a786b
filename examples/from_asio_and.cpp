// Two at once, one of which fails. gather lets the other go on; a TaskGroup cancels it, as Asio's && does.
// docs/from-asio.md prints this program.
#include <argiope/async.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

using namespace argiope;
using namespace std::chrono_literals;

namespace {

void say(const std::string& what) {
  std::printf("%2.0f s  %s\n", to_seconds(EventLoop::current().time().time_since_epoch()), what.c_str());
}

// Asks a shop, which takes its time. The third one is closed.
Coro<int> price(std::string shop, Duration takes) {
  try {
    co_await sleep(takes);
  } catch (const CancelledError&) {
    say(shop + " is cancelled");
    throw;
  }
  if (shop == "third") throw std::runtime_error(shop + " is closed");
  say(shop + " has answered");
  co_return static_cast<int>(shop.size());
}

// co_await (price(…) && price(…)), the failure of one included: the other is cancelled, and has ended when this throws.
Coro<std::pair<int, int>> both(std::string one, Duration one_takes, std::string other, Duration other_takes) {
  Task<int> first, second;
  co_await TaskGroup::run([&](TaskGroup& group) {
    first = group.create_task(price(one, one_takes));
    second = group.create_task(price(other, other_takes));
  });
  co_return std::pair{first.result(), second.result()};
}

Coro<void> amain() {
  const auto [first, second] = co_await gather(price("first", 1s), price("second", 2s));
  say("gather: " + std::to_string(first + second));

  try {
    co_await gather(price("third", 1s), price("fourth", 2s));
  } catch (const std::runtime_error& error) {
    say(std::string("gather throws at once: ") + error.what());
  }
  co_await sleep(2s);  // and the fourth answers meanwhile

  try {
    co_await both("third", 1s, "fifth", 2s);
  } catch (const ExceptionGroup& group) {
    say(std::string("TaskGroup throws at the end: ") + group.what());
  }

  // Neither throws nor cancels: what became of each.
  const auto [sixth, third] = co_await gather(return_exceptions, price("sixth", 2s), price("third", 1s));
  say(std::string("the sixth ") + (sixth ? "has a price" : "has none"));
  say(std::string("the third ") + (third ? "has a price" : "has none"));
}

}  // namespace

int main() {
  VirtualBackend backend;  // seconds pass at once
  run(backend, amain);
}
