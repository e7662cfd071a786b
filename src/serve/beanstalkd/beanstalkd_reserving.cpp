// How a connection reserves jobs, keeps them and gives them back.
#include <algorithm>
#include <utility>

#include "serve/beanstalkd/beanstalkd_session.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostReserved = 64;  // together
constexpr std::size_t kMostReservedBytes = 4 * 1024 * 1024;
constexpr Duration kSafetyMargin = 1s;

}  // namespace

bool BeanstalkdSession::gather_reserve(const BeanstalkdCommand& command) {
  const bool is_one = command.verb == BeanstalkdVerb::reserve || command.verb == BeanstalkdVerb::reserve_with_timeout;
  if (!is_one || command.refusal != BeanstalkdRefusal::none) return false;
  const std::size_t most = std::max<std::size_t>(kMostReservedBytes / (core_->options.max_job_bytes + 1), 1);
  if (reserves_ >= std::min(most, kMostReserved)) return false;
  if (reserves_ > 0 && reserve_timeout_ != command.timeout) return false;
  reserve_timeout_ = command.timeout;
  ++reserves_;
  return true;
}

// Leases go on beside deletes, which take nothing from them; everything else comes first.
Coro<void> BeanstalkdSession::reserve_gathered() {
  if (reserves_ == 0) co_return;
  send_gathered();
  flush();
  while (unanswered_ > unanswered_deletes_) co_await next_answer();
  while (reserves_ > 0 && !is_ending()) co_await reserve_some();
}

// As many of those gathered as there are jobs for; or the first of them is told that there is none.
Coro<void> BeanstalkdSession::reserve_some() {
  LeaseCall call = co_await lease_call();
  const TimePoint soon = deadline_soon();
  const TimePoint begun = core_->loop.time();
  const TimePoint time_out =
      reserve_timeout_ < 0 ? kNever : saturating_add(begun, std::chrono::seconds{reserve_timeout_});
  auto leased = co_await engine_.lease_now(call);
  const TimePoint deadline = std::min(soon, time_out);
  if (leased && leased->empty() && deadline > begun) leased = co_await wait_for_jobs(std::move(call), deadline);
  if (!leased) {
    --reserves_;
    co_return reply("INTERNAL_ERROR\r\n");
  }
  if (is_ending() && leased->empty()) co_return;
  if (leased->empty()) {
    --reserves_;
    co_return reply(core_->loop.time() >= soon ? "DEADLINE_SOON\r\n" : "TIMED_OUT\r\n");
  }
  for (LeasedJob& job : *leased) {
    --reserves_;
    hold(job);
    std::string text;
    append_job(text, "RESERVED", job.job.id, job.job.payload);
    reply(text);
  }
}

Coro<LeaseCall> BeanstalkdSession::lease_call() {
  LeaseCall call{.most = reserves_, .most_important_first = true, .worker = worker_};
  for (BeanstalkdTube* tube : watched_) {
    if (!core_->has_queue(*tube)) (void)co_await core_->make_queue(tube->name);
    call.queues.push_back(tube->name);
  }
  co_return call;
}

Coro<BeanstalkdSession::Leased> BeanstalkdSession::wait_for_jobs(LeaseCall call, TimePoint deadline) {
  flush();
  struct Waiting {
    BeanstalkdSession& session;
    Handle timer;
    explicit Waiting(BeanstalkdSession& its_session) : session(its_session) { count(1); }
    ~Waiting() {
      timer.cancel();
      session.stream_->when_ended({});
      session.waiting_ = {};
      count(-1);
    }
    void count(int by) noexcept {
      session.core_->waiting += static_cast<std::size_t>(by);
      for (BeanstalkdTube* tube : session.watched_) tube->waiting += static_cast<std::uint32_t>(by);
    }
  } waiting(*this);
  wait_is_over_ = false;
  if (stopping_) co_return std::vector<LeasedJob>{};
  waiting_ = core_->loop.create_task(engine_.lease(std::move(call)), "beanstalkd reserve", Start::eagerly);
  if (deadline != kNever) waiting.timer = core_->loop.call_at(deadline, [this] { end_wait(); });
  stream_->when_ended([this] { end_wait(); });
  try {
    co_return co_await Task<Leased>(waiting_);
  } catch (const CancelledError&) {
    if (!wait_is_over_ && !stopping_) throw;
  }
  co_return std::vector<LeasedJob>{};
}

void BeanstalkdSession::end_wait() noexcept {
  wait_is_over_ = true;
  waiting_.cancel();
}

void BeanstalkdSession::hold(const LeasedJob& leased) {
  held_[leased.job.id] = {leased.token, leased.until, leased.lease_time, leased.job.queue};
  first_until_ = std::min(first_until_, leased.until);
}

// Looks through all of them only where the first may be about to end.
TimePoint BeanstalkdSession::deadline_soon() {
  const TimePoint now = core_->loop.time();
  if (first_until_ != kNever && now >= first_until_ - kSafetyMargin) {
    std::erase_if(held_, [&](const auto& held) { return held.second.until <= now; });
    first_until_ = kNever;
    for (const auto& [id, held] : held_) first_until_ = std::min(first_until_, held.until);
  }
  return first_until_ == kNever ? kNever : first_until_ - kSafetyMargin;
}

Coro<void> BeanstalkdSession::give_back() {
  if (held_.empty()) co_return;
  std::vector<RunEnd> calls;
  for (const auto& [id, held] : held_) calls.push_back({held.token, {.outcome = Outcome::release}});
  held_.clear();
  (void)co_await engine_.settle_each(std::move(calls));
}

}  // namespace argiope
