#include "serve/beanstalkd/beanstalkd_core.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "argiope/async/coro.hpp"
#include "base/internal/counted.hpp"
#include "serve/base/internal/own_queues.hpp"
#include "serve/beanstalkd/beanstalkd_session.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPage = 10'000;        // records at a time
constexpr std::size_t kKickedAtOnce = 1000;  // at a time
constexpr std::size_t kMostBuffered = 16 * 1024 * 1024;
constexpr std::size_t kDueLooked = 100;
constexpr std::uint32_t kUrgentBelow = 1024;
constexpr std::uint64_t kMostUrgentCounted = 2'000;
constexpr Duration kUntilErased = 100ms;  // after a tube was let go: who alternates between two makes and erases none
constexpr Duration kBetweenLooksForUnused = 10min;
constexpr std::uint32_t kMostFailures = kUnlimited - 1;  // that a queue's policy may say

constexpr std::uint32_t kHeard =
    static_cast<std::uint32_t>(JobEventKind::expired) | static_cast<std::uint32_t>(JobEventKind::queue_changed);

std::string answer_of(const Error& error) {
  return std::string(error.code == Errc::not_found || error.code == Errc::invalid_input ? kNotFound : kInternalError);
}

bool has_ended(JobState state) noexcept { return state == JobState::done || state == JobState::cancelled; }

QueueConfig queue_config(const BeanstalkdOptions& options) {
  QueueConfig config;
  config.max_lease_expiries = kMostFailures;
  config.retry.max_attempts = kMostFailures;
  config.max_payload_bytes = std::max(config.max_payload_bytes, options.max_job_bytes);
  return config;
}

std::uint64_t all_jobs(const StateCounts& counts) noexcept {
  return counts.ready + counts.delayed + counts.running + counts.buried;
}

}  // namespace

std::string beanstalkd_text(std::string_view text) { return fmt::format("OK {}\r\n{}\r\n", text.size(), text); }

void append_job(std::string& out, std::string_view word, JobId id, std::string_view body) {
  fmt::format_to(std::back_inserter(out), "{} {} {}\r\n", word, id, body.size());
  out.append(body).append("\r\n");
}

std::string beanstalkd_list(const std::vector<std::string_view>& names) {
  std::string text = "---\n";
  for (const std::string_view name : names) text.append("- ").append(name).append("\n");
  return beanstalkd_text(text);
}

BeanstalkdCore::BeanstalkdCore(Engine& its_engine, BeanstalkdOptions its_options)
    : engine(its_engine),
      loop(EventLoop::current()),
      options(std::move(its_options)),
      started_at(loop.time()),
      servers("a Beanstalkd", {.stream = {.write_limit = kMostBuffered + options.max_job_bytes},
                               .max_connections = options.max_connections}),
      own_policy_(to_json(queue_config(options))),
      listener_(engine.add_listener(kHeard, [this](const JobEvent& event) { hear(event); })) {
  tubes.find_or_make("default").stays = true;
}
BeanstalkdCore::~BeanstalkdCore() { part(); }

void BeanstalkdCore::part() noexcept {
  if (std::exchange(has_parted_, true)) return;
  tidier_.stop();
  engine.remove_listener(listener_);
}

BeanstalkdSession* BeanstalkdCore::slowest() noexcept {
  BeanstalkdSession* found = nullptr;
  sessions.for_each([&](BeanstalkdSession& session) {
    if (session.unsent() > (found == nullptr ? 0 : found->unsent())) found = &session;
  });
  return found;
}

void BeanstalkdCore::make_answer_room(const BeanstalkdSession& asker) noexcept {
  sessions.for_each([](BeanstalkdSession& session) { session.count_unsent(); });
  while (asker.unsent() > 0 && options.room->take(kAnswersOf, asker.unsent()) == nullptr) {
    BeanstalkdSession* const worst = slowest();
    if (worst == nullptr) return;
    spdlog::warn("beanstalkd client {}: {} of answers are unread, and there is room for no more: it is let go",
                 worst->peer(), counted(worst->unsent(), "byte"));
    worst->let_go();
  }
}

void BeanstalkdCore::hear(const JobEvent& event) noexcept {
  if (event.kind == JobEventKind::expired) {
    ++timeouts_;
  } else if (BeanstalkdTube* tube = tubes.find(event.queue)) {
    tube->has_queue = false;  // to be looked at again
  }
}

void BeanstalkdCore::let_go(BeanstalkdTube& tube) noexcept {
  if (has_parted_ || tube.is_referred_to()) return;
  if (!has_queue(tube)) return tubes.drop(tube);
  note_unused(tube.name);
}

bool BeanstalkdCore::is_let_go(std::string_view queue) const {
  const BeanstalkdTube* const tube = tubes.find(queue);
  return tube == nullptr || !tube->is_referred_to();
}

void BeanstalkdCore::note_unused(std::string_view queue) {
  if (is_stopping || has_parted_) return;
  unused_queues_.emplace(queue);
  tidier_.at(saturating_add(loop.time(), kUntilErased));
}

void BeanstalkdCore::tidy() {
  if (!is_stopping && !has_parted_) tidying_.run(shared_from_this(), look_for_unused());
}

// Its errors are told at once, and it goes on.
Coro<void> BeanstalkdCore::look_for_unused() {
  try {
    if (loop.time() >= look_at_) {
      look_at_ = saturating_add(loop.time(), kBetweenLooksForUnused);
      for (const std::string& queue : engine.queue_names()) {
        if (is_let_go(queue) && was_made_by_us(queue)) note_unused(queue);
      }
    }
    tidier_.at(look_at_);
    co_await erase_unused_queues();
  } catch (const CancelledError&) {
    throw;
  } catch (const std::exception& error) {
    spdlog::error("empty queues of tubes could not be erased, and are looked at again: {}", error.what());
  }
}

Coro<void> BeanstalkdCore::erase_unused_queues() {
  while (!unused_queues_.empty() && !is_stopping && !has_parted_) {
    const std::string name = std::move(unused_queues_.extract(unused_queues_.begin()).value());
    BeanstalkdTube* tube = tubes.find(name);
    if ((tube != nullptr && tube->is_referred_to()) || !was_made_by_us(name)) continue;
    // A command that refers to it meanwhile looks anew, and makes it again.
    if (tube != nullptr) tube->has_queue = false;
    const auto erased = co_await book().erase_queue(name);
    tube = tubes.find(name);
    if (erased && tube != nullptr && !tube->is_referred_to()) tubes.drop(*tube);
  }
}

// Not those that were configured, nor those that are paused.
bool BeanstalkdCore::was_made_by_us(std::string_view queue) const {
  const auto config = engine.config(queue);
  return config && to_json(*config) == own_policy_;
}

void BeanstalkdCore::note_delete(std::string_view tube) noexcept {
  if (BeanstalkdTube* found = tubes.find(tube)) ++found->deletes;
}

Coro<void> BeanstalkdCore::note_change(AuditEntry change) {
  if (options.audit == nullptr || has_parted_) co_return;
  change.at = engine.calendar_now();
  change.status = 200;
  options.audit->add(std::move(change));
  co_await options.audit->written();
}

Coro<Result<void>> BeanstalkdCore::make_queue(std::string tube) {
  return book().configure(std::move(tube), queue_config(options));
}

// --- peek ------------------------------------------------------------------------------------------------------------

Coro<std::string> BeanstalkdCore::peek(JobId id) { return found(id); }

Coro<Result<JobRecord>> BeanstalkdCore::job_of(JobId id) {
  auto job = co_await or_return(book().get(id));
  if (is_own_queue(job.queue)) co_return fail(Errc::not_found, "the daemon's own");
  co_return job;
}

Coro<std::string> BeanstalkdCore::found(JobId id) {
  const auto job = co_await job_of(id);
  if (!job) co_return answer_of(job.error());
  if (has_ended(job->state)) co_return std::string(kNotFound);
  std::string answer;
  append_job(answer, "FOUND", id, job->payload);
  co_return answer;
}

// Jobs whose time has just come may still be on the shelf of delayed ones.
Coro<std::string> BeanstalkdCore::peek_ready(std::string tube) {
  const auto queue = co_await book().queue(tube);
  if (!queue) co_return answer_of(queue.error());
  auto ready = co_await engine.store().read_shelf(queue->id, {.shelf = Shelf::ready, .limit = 1});
  const auto due = co_await engine.store().read_shelf(queue->id, {.shelf = Shelf::delayed, .limit = kDueLooked});
  if (!ready || !due) co_return std::string(kInternalError);
  const WallTime now = book().job_now();
  std::ranges::copy_if(*due, std::back_inserter(*ready), [&](const WaitingJob& job) { return job.due_at <= now; });
  const auto first = std::ranges::min_element(*ready, [](const WaitingJob& a, const WaitingJob& b) {
    return more_important(Rank{a.priority, a.id}, Rank{b.priority, b.id});
  });
  if (first == ready->end()) co_return std::string(kNotFound);
  co_return co_await found(first->id);
}

Coro<std::string> BeanstalkdCore::peek_delayed(std::string tube) {
  const auto delayed = co_await first_delayed(std::move(tube), 1);
  if (!delayed) co_return answer_of(delayed.error());
  if (delayed->empty()) co_return std::string(kNotFound);
  co_return co_await found(delayed->front());
}

Coro<std::string> BeanstalkdCore::peek_buried(std::string tube) {
  const auto buried = co_await first_buried(std::move(tube), 1);
  if (!buried) co_return answer_of(buried.error());
  if (buried->empty()) co_return std::string(kNotFound);
  co_return co_await found(buried->front());
}

Coro<Result<std::vector<JobId>>> BeanstalkdCore::first_delayed(std::string tube, std::size_t limit) {
  const auto queue = co_await or_return(book().queue(std::move(tube)));
  const DueRank now{book().job_now(), kMostJobId};
  const auto delayed = co_await or_return(
      engine.store().read_shelf(queue.id, {.shelf = Shelf::delayed, .due_after = now, .limit = limit}));
  std::vector<JobId> ids;
  for (const WaitingJob& job : delayed) ids.push_back(job.id);
  co_return ids;
}

// Looks at all that are buried, a page at a time.
Coro<Result<std::vector<JobId>>> BeanstalkdCore::first_buried(std::string tube, std::size_t limit) {
  using Buried = std::pair<WallTime, JobId>;
  std::priority_queue<Buried> first;
  JobFilter filter{.queue = std::move(tube), .state = JobState::buried, .limit = kPage, .payloads = false};
  for (std::size_t read = kPage; read == kPage;) {
    const auto page = co_await or_return(book().list(filter));
    read = page.size();
    for (const JobRecord& job : page) {
      first.emplace(job.ended_at, job.id);
      if (first.size() > limit) first.pop();
    }
    if (!page.empty()) filter.after = page.back().id;
  }
  std::vector<JobId> ids(first.size());
  for (auto place = ids.rbegin(); place != ids.rend(); ++place, first.pop()) *place = first.top().second;
  co_return ids;
}

// --- what changes jobs that nobody runs ------------------------------------------------------------------------------

Coro<std::string> BeanstalkdCore::delete_job(JobId id) {
  const auto job = co_await job_of(id);
  if (!job) co_return answer_of(job.error());
  if (has_ended(job->state) || job->state == JobState::running) co_return std::string(kNotFound);
  const auto erased = co_await book().change({{.id = id, .kind = ChangeKind::erase}});
  if (!erased) co_return answer_of(erased.error());
  if (erased->front().outcome != ChangeOutcome::changed) co_return std::string(kNotFound);
  note_delete(job->queue);
  if (is_let_go(job->queue)) note_unused(job->queue);
  co_return "DELETED\r\n";
}

Coro<std::string> BeanstalkdCore::kick_all(std::vector<JobId> ids) {
  std::size_t kicked = 0;
  for (std::size_t i = 0; i < ids.size(); i += kKickedAtOnce) {
    std::vector<Change> changes;
    for (std::size_t j = i; j < std::min(ids.size(), i + kKickedAtOnce); ++j) {
      changes.push_back({.id = ids[j], .kind = ChangeKind::kick});
    }
    const auto replies = co_await book().change(std::move(changes));
    if (!replies) co_return answer_of(replies.error());
    kicked += static_cast<std::size_t>(std::ranges::count(*replies, ChangeOutcome::changed, &ChangeReply::outcome));
  }
  co_return fmt::format("KICKED {}\r\n", kicked);
}

// Buried ones, and only where there are none those that are delayed.
Coro<std::string> BeanstalkdCore::kick(std::string tube, std::uint32_t bound) {
  if (bound == 0 || !engine.config(tube)) co_return "KICKED 0\r\n";
  auto ids = co_await first_buried(tube, bound);
  if (ids && ids->empty()) ids = co_await first_delayed(tube, bound);
  if (!ids) co_return answer_of(ids.error());
  co_return co_await kick_all(std::move(*ids));
}

Coro<std::string> BeanstalkdCore::kick_job(JobId id) {
  if (const auto job = co_await job_of(id); !job) co_return answer_of(job.error());
  const auto replies = co_await book().change({{.id = id, .kind = ChangeKind::kick}});
  if (!replies) co_return answer_of(replies.error());
  co_return std::string(replies->front().outcome == ChangeOutcome::changed ? "KICKED\r\n" : kNotFound);
}

// --- tubes -----------------------------------------------------------------------------------------------------------

Coro<Result<std::map<std::string, StateCounts>>> BeanstalkdCore::count_tubes() {
  auto counted = co_await or_return(book().counts());
  std::map<std::string, StateCounts> named;
  for (auto& [queue, counts] : counted) {
    if (!is_tube_name(queue)) continue;
    if (all_jobs(counts) > 0) {
      named.emplace(queue, counts);
    } else if (is_let_go(queue) && was_made_by_us(queue)) {
      note_unused(queue);
    }
  }
  tubes.drop_unless([&](const BeanstalkdTube& tube) { return named.contains(tube.name); });
  for (const auto& [queue, counts] : named) tubes.find_or_make(queue);
  co_return named;
}

Coro<std::uint64_t> BeanstalkdCore::count_urgent(std::string tube) {
  const auto queue = co_await book().queue(std::move(tube));
  if (!queue) co_return 0;
  const Rank first_that_is_not{job_priority(kUrgentBelow), 0};
  const auto before = co_await engine.store().count_before(queue->id, first_that_is_not, kMostUrgentCounted);
  co_return before.value_or(0);
}

Coro<std::string> BeanstalkdCore::pause_tube(std::string tube, std::uint32_t seconds) {
  if (const auto counted = co_await count_tubes(); !counted) co_return answer_of(counted.error());
  BeanstalkdTube* found = tubes.find(tube);
  if (found == nullptr) co_return std::string(kNotFound);
  if (!has_queue(*found)) {
    if (const auto made = co_await make_queue(tube); !made) co_return answer_of(made.error());
  }
  const std::chrono::seconds span{seconds};
  if (const auto paused = co_await book().pause(tube, engine.calendar_now() + span); !paused) {
    co_return answer_of(paused.error());
  }
  found = tubes.find(tube);
  if (found == nullptr) co_return std::string(kNotFound);
  ++found->pauses;
  found->pause = span;
  found->unpause_at = saturating_add(loop.time(), span);
  co_return "PAUSED\r\n";
}

Coro<std::string> BeanstalkdCore::list_tubes() {
  if (const auto counted = co_await count_tubes(); !counted) co_return answer_of(counted.error());
  std::vector<std::string_view> names;
  for (const auto& tube : tubes) names.push_back(tube->name);
  co_return beanstalkd_list(names);
}

}  // namespace argiope
