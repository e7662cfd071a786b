#include "serve/bounds/read_turns.hpp"

#include <algorithm>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {

struct ReadTurns::Caller {
  Semaphore at_once{kOfOneCaller};
  Lock line;  // those that wait to be let in
  TimePoint free_at = TimePoint::min();
  TimePoint counted_until = TimePoint::min();  // of the time in which it reads

  // It has used `time` of its share, with what it waits for then.
  void use(Duration time, TimePoint now) {
    free_at = std::min(saturating_add(std::max(free_at, now), time), saturating_add(now, kLongestRest));
  }
};

class ReadTurns::Reading {
 public:
  Reading(ReadTurns& turns, std::shared_ptr<Caller> caller, Semaphore::Permit its, Semaphore::Permit all)
      : turns_(turns),
        caller_(std::move(caller)),
        its_(std::move(its)),
        all_(std::move(all)),
        loop_(EventLoop::current()),
        began_(loop_.time()) {}
  Reading(const Reading&) = delete;
  ~Reading() { turns_.count(*caller_, began_, loop_.time()); }

 private:
  ReadTurns& turns_;
  const std::shared_ptr<Caller> caller_;
  const Semaphore::Permit its_;
  const Semaphore::Permit all_;
  EventLoop& loop_;
  const TimePoint began_;
};

bool ReadTurns::others_write() { return others_write(EventLoop::current().time()); }

bool ReadTurns::others_write(TimePoint now) {
  if (!changes_) return false;
  const std::uint64_t changes = changes_();
  if (changes != std::exchange(changes_seen_, changes)) changed_at_ = now;
  return now < saturating_add(changed_at_, kRecent);
}

std::shared_ptr<ReadTurns::Caller> ReadTurns::caller_of(const std::string& who) {
  const TimePoint now = EventLoop::current().time();
  std::erase_if(callers_, [&](const auto& one) { return one.second.use_count() == 1 && one.second->free_at <= now; });
  auto& caller = callers_[who];
  if (caller == nullptr) caller = std::make_shared<Caller>();
  return caller;
}

Coro<void> ReadTurns::let_in(std::string who) { return let_in(caller_of(who)); }

Coro<void> ReadTurns::let_in(std::shared_ptr<Caller> caller) {
  EventLoop& loop = EventLoop::current();
  bool waits = caller->line.locked();
  const auto first = co_await caller->line.scoped();
  while (others_write() && loop.time() < caller->free_at) {
    waits = true;
    const TimePoint free_or_quiet_at = std::min(caller->free_at, saturating_add(changed_at_, kRecent));
    co_await sleep_until(free_or_quiet_at);
  }
  if (waits) ++waits_;
  if (others_write()) caller->use(kShare * kLeast, loop.time());
}

Coro<ReadTurns::Turn> ReadTurns::next(std::string who) {
  const std::shared_ptr<Caller> caller = caller_of(who);
  auto its = co_await caller->at_once.scoped();
  co_await let_in(caller);
  auto all = co_await all_.scoped();
  co_return std::make_shared<const Reading>(*this, caller, std::move(its), std::move(all));
}

void ReadTurns::count(Caller& caller, TimePoint began, TimePoint now) {
  const Duration read = now - std::max(began, std::exchange(caller.counted_until, now));
  if (others_write(now)) caller.use((kShare - 1) * read, now);
}

namespace {

// Parameters outlive the call, as the router's do.
Coro<ServerResponse> answer_behind(std::shared_ptr<ReadTurns> turns, std::string who, const HttpHandler& handler,
                                   ServerRequest& request) {
  co_await turns->let_in(std::move(who));
  co_return co_await handler(request);
}

}  // namespace

HttpHandler behind_writes(std::shared_ptr<ReadTurns> turns,
                          std::function<std::optional<std::string>(const ServerRequest&)> reader, HttpHandler handler) {
  return [turns = std::move(turns), reader = std::move(reader),
          handler = std::make_shared<const HttpHandler>(std::move(handler))](ServerRequest& request) {
    if (!turns->others_write()) return (*handler)(request);
    auto who = reader(request);
    return who ? answer_behind(turns, *std::move(who), *handler, request) : (*handler)(request);
  };
}

}  // namespace argiope
