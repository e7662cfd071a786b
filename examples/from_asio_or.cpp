// The first of two, and its value: first_of cancels the other, as Asio's || does; wait lets it go on.
// docs/from-asio.md prints this program.
#include <argiope/async.hpp>
#include <cstdio>
#include <string>
#include <variant>

using namespace argiope;
using namespace std::chrono_literals;

namespace {

void say(const std::string& what) {
  std::printf("%2.0f s  %s\n", to_seconds(EventLoop::current().time().time_since_epoch()), what.c_str());
}

Coro<std::string> answer(std::string who, Duration takes) {
  try {
    co_await sleep(takes);
  } catch (const CancelledError&) {
    say(who + " is cancelled");
    throw;
  }
  co_return "the answer of " + who;
}

Coro<void> amain() {
  Queue<int> orders;
  Event stop;
  EventLoop::current().call_later(3s, [&] { orders.put_nowait(7); });
  EventLoop::current().call_later(5s, [&] { stop.set(); });

  // Of different types: a variant. What gives nothing is std::monostate there.
  while (true) {
    const std::variant<int, std::monostate> first = co_await first_of(orders.get(), stop.wait());
    if (first.index() == 1) break;
    say("order " + std::to_string(std::get<0>(first)));
  }
  say("stopped");

  // Of one type: whichever it is. The other has ended, too, when this returns.
  const auto quicker = co_await first_of(answer("Anna", 2s), answer("Bert", 1s));
  say(std::visit([](const std::string& text) { return text; }, quicker));

  // With a time limit, which is thrown.
  try {
    co_await wait_for(answer("Cleo", 1h), 1s);
  } catch (const TimeoutError&) {
    say("no answer in time");
  }

  // The loser goes on: both are tasks, and wait() only says which have ended.
  Task<std::string> dora = EventLoop::current().create_task(answer("Dora", 1s));
  Task<std::string> emil = EventLoop::current().create_task(answer("Emil", 2s));
  co_await wait(When::first_completed, dora, emil);
  say(dora.done() ? dora.result() : emil.result());
  say(co_await emil);
}

}  // namespace

int main() {
  VirtualBackend backend;  // seconds pass at once
  run(backend, amain);
}
