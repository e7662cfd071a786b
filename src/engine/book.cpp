#include "argiope/engine/book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "argiope/async/group.hpp"
#include "argiope/async/or_return.hpp"
#include "argiope/async/sleep.hpp"
#include "base/internal/printable.hpp"
#include "engine/book_rules.hpp"
#include "engine/book_state.hpp"
#include "engine/broker.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {
namespace {

constexpr int kLooksAfterJump = 20;
constexpr std::size_t kJobsAPage = 10'000;
constexpr std::size_t kFirstPage = 16;
// Of a queue's delayed jobs that are due. Beyond that they are counted as what they were, until they leave their shelf.
constexpr std::size_t kMostDueCounted = 2'000;
constexpr std::size_t kChangesTogether = 256;
constexpr Duration kLookForOutput = std::chrono::milliseconds{250};

JobOutput output_of(JobRecord record, const OutputLook& look) {
  JobOutput output{.run = record.tally.runs, .state = record.state, .error = std::move(record.error)};
  if (look.run == output.run) output.after = std::min(look.after, record.result.size());
  output.bytes = std::move(record.result);
  output.bytes.erase(0, output.after);
  return output;
}

template <class List>
std::size_t size_of(const List& list) {
  return list.size();
}

}  // namespace

// --- opening ---------------------------------------------------------------------------------------------------------

Coro<Result<Book>> Book::open(std::string where, BookOptions options) {
  options.owned = has_owner(where);
  auto store = co_await or_return(open_store(where, {.access = options.access}));
  Book book = co_await or_return(open(*store, std::move(options)));
  book.state_->opened = std::move(store);
  co_return book;
}

Coro<Result<Book>> Book::open(Store& store, BookOptions options) {
  auto state = std::make_shared<State>(store, std::move(options), nullptr);
  const auto schedules = std::make_shared<ScheduleBook::State>(
      store, EventLoop::current().clock(), state->options.new_queue, state->options.owned, nullptr, nullptr);
  state->schedules_state = schedules;
  State::connect_schedules(state);
  co_await or_return(state->set_clock());
  co_return Book(std::move(state));
}

Book Book::of_owner(Store& store, std::shared_ptr<Broker> owner, std::shared_ptr<SchedulerImpl> scheduler,
                    QueueConfig new_queue) {
  const bool fires = scheduler != nullptr;
  auto state = std::make_shared<State>(store, BookOptions{.new_queue = new_queue}, owner);
  state->schedules_state = std::make_shared<ScheduleBook::State>(
      store, EventLoop::current().clock(), std::move(new_queue), fires, std::move(owner), std::move(scheduler));
  State::connect_schedules(state);
  return Book(std::move(state));
}

Book Book::of_remote(std::shared_ptr<RemoteBook> remote) {
  auto state = std::make_shared<State>(remote);
  state->schedules_state = std::make_shared<ScheduleBook::State>(std::move(remote), EventLoop::current().clock());
  State::connect_schedules(state);
  return Book(std::move(state));
}

Book::State::State(Store& its_store, BookOptions its_options, std::shared_ptr<Broker> its_owner)
    : store(its_store), options(std::move(its_options)), owner(std::move(its_owner)) {}
// Whoever asks a daemon is told the calendar's times.
Book::State::State(std::shared_ptr<RemoteBook> its_remote)
    : options{}, remote(std::move(its_remote)), own_clock(std::in_place, EventLoop::current().clock(), Duration{}) {}

void Book::State::connect_schedules(const std::shared_ptr<State>& state) {
  state->schedules_state->explain_job = [weak = std::weak_ptr(state)](JobId id) -> Coro<Result<JobExplanation>> {
    const auto book = weak.lock();
    if (book == nullptr) co_return fail(Errc::cancelled, "the book has gone");
    co_return co_await book->explain(id);
  };
  state->schedules.emplace(state->schedules_state);
}

void Book::State::let_go() noexcept {
  store.let_go();
  schedules_state->store.let_go();
  news.wake_all();
}

Book::Book(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Book::Book(Book&&) noexcept = default;
Book& Book::operator=(Book&& other) noexcept {
  if (this != &other) let_go();
  state_ = std::move(other.state_);
  return *this;
}
Book::~Book() { let_go(); }
void Book::let_go() noexcept {
  if (state_ == nullptr) return;
  state_->let_go();
  state_->opened.reset();
}
Result<void> Book::close() { return state_->opened == nullptr ? Result<void>{} : state_->opened->close(); }

// --- what it offers: by the owner where there is one, or by itself, with the book kept until it has ended ----------------

Coro<Result<PutReply>> Book::put(NewJob job) {
  if (state_->owner) return state_->owner->puts.put(std::move(job));
  return keep_alive(state_, state_->put(std::move(job)));
}
Coro<Result<std::vector<Result<PutReply>>>> Book::put_each(std::vector<NewJob> jobs) {
  if (state_->owner) return state_->owner->puts.put_each(std::move(jobs));
  return keep_alive(state_, state_->put_each(std::move(jobs)));
}
Coro<Result<std::vector<PutReply>>> Book::put_all(std::vector<NewJob> jobs) {
  if (state_->owner) return state_->owner->puts.put_all(std::move(jobs), false);
  return keep_alive(state_, state_->put_all(std::move(jobs), false));
}
Coro<Result<std::vector<PutReply>>> Book::put_batch(std::vector<NewJob> jobs, NewJob completion) {
  jobs.push_back(std::move(completion));
  if (state_->owner) return state_->owner->puts.put_all(std::move(jobs), true);
  return keep_alive(state_, state_->put_all(std::move(jobs), true));
}

Coro<Result<OnceReply>> Book::once(OnceCall call) { return keep_alive(state_, state_->once(std::move(call))); }

Coro<Result<void>> Book::cancel(JobId id, std::string why) {
  return keep_alive(state_, state_->apply({.id = id, .kind = ChangeKind::cancel, .error = std::move(why)}));
}
Coro<Result<void>> Book::kick(JobId id) {
  return keep_alive(state_, state_->apply({.id = id, .kind = ChangeKind::kick}));
}
Coro<Result<void>> Book::set_priority(JobId id, std::int32_t priority) {
  return keep_alive(state_, state_->apply({.id = id, .kind = ChangeKind::set_priority, .priority = priority}));
}
Coro<Result<void>> Book::set_due(JobId id, WallTime due_at) {
  return keep_alive(state_, state_->apply({.id = id, .kind = ChangeKind::set_due, .due_at = due_at}));
}
Coro<Result<void>> Book::erase(JobId id) {
  return keep_alive(state_, state_->apply({.id = id, .kind = ChangeKind::erase}));
}
Coro<Result<std::vector<ChangeReply>>> Book::change(std::vector<Change> changes) {
  return keep_alive(state_, state_->change(std::move(changes)));
}

Coro<Result<JobId>> Book::find(std::string id_or_name) {
  return keep_alive(state_, state_->find(std::move(id_or_name)));
}
Coro<Result<JobRecord>> Book::get(JobId id) { return keep_alive(state_, state_->get(id)); }
Coro<Result<JobOutput>> Book::output(JobId id, OutputLook look) { return keep_alive(state_, state_->output(id, look)); }
Coro<Result<std::vector<Attempt>>> Book::history(JobId id) { return keep_alive(state_, state_->history(id)); }
Coro<Result<std::vector<JobRecord>>> Book::list(JobFilter filter) {
  return keep_alive(state_, state_->list(std::move(filter)));
}
Coro<Result<JobSlice>> Book::look(JobFilter filter) { return keep_alive(state_, state_->look(std::move(filter))); }
Coro<Result<std::vector<NamedCounts>>> Book::counts(std::string only) {
  return keep_alive(state_, state_->counts(std::move(only)));
}
Coro<Result<std::vector<NamedCounts>>> Book::counts_of(std::vector<std::string> names) {
  return keep_alive(state_, state_->counts_of(std::move(names)));
}
Coro<Result<JobExplanation>> Book::explain(JobId id) { return keep_alive(state_, state_->explain(id)); }

Coro<Result<StoredQueue>> Book::queue(std::string name) { return keep_alive(state_, state_->queue(std::move(name))); }
Coro<Result<std::vector<StoredQueue>>> Book::queues() { return keep_alive(state_, state_->queues()); }
Coro<Result<void>> Book::configure(std::string queue, QueueConfig config, JobReachRef asker) {
  return keep_alive(state_, state_->configure(std::move(queue), std::move(config), std::move(asker)));
}
Coro<Result<void>> Book::pause(std::string queue) {
  return keep_alive(state_, state_->set_paused(std::move(queue), true));
}
Coro<Result<void>> Book::pause(std::string queue, WallTime until) {
  return keep_alive(state_, state_->set_paused(std::move(queue), true, until));
}
Coro<Result<void>> Book::erase_queue(std::string queue) {
  return keep_alive(state_, state_->erase_queue(std::move(queue)));
}
Coro<Result<void>> Book::resume(std::string queue) {
  return keep_alive(state_, state_->set_paused(std::move(queue), false));
}

ScheduleBook& Book::schedules() noexcept { return *state_->schedules; }
WallTime Book::job_now() const { return state_->clock().now(); }

// --- time ------------------------------------------------------------------------------------------------------------

const JobClock& Book::State::clock() const { return owner ? owner->clock() : *own_clock; }

// The owner notes a jump of the calendar in the store: who stays open for long has to look there now and then, and at once
// where he sees one himself.
Coro<Result<void>> Book::State::set_clock() {
  if (owner) co_return Result<void>{};
  EventLoop& loop = EventLoop::current();
  const bool jumped = own_clock && own_clock->look();
  if (own_clock && !jumped && loop.time() < clock_until) co_return Result<void>{};
  auto calendar = jumped ? co_await or_return(recall_after_jump()) : co_await or_return(recall_calendar(store));
  if (!own_clock || jumped || own_clock->offset() != calendar.offset) {
    own_clock.emplace(loop.clock(), calendar.offset, std::move(calendar.jumps));
  }
  clock_until = saturating_add(loop.time(), options.believe);
  co_return Result<void>{};
}

// Waits a moment for an owner to note the jump. Without one there is nobody for whom time has not jumped as well.
Coro<Result<CalendarMemory>> Book::State::recall_after_jump() {
  const Duration before = own_clock->jumps().back().before;
  for (int looks = 0;; ++looks) {
    auto calendar = co_await recall_calendar(store);
    if (!calendar || calendar->offset != before || looks == kLooksAfterJump) co_return calendar;
    co_await sleep(options.poll_interval);
  }
}

void Book::State::as_of_now(JobRecord& record) const {
  if (record.state == JobState::delayed && record.pending == 0 && record.due_at <= clock().now()) {
    record.state = JobState::ready;
  }
  to_calendar(record, clock());
}

// --- changes ---------------------------------------------------------------------------------------------------------

Coro<Result<void>> Book::State::apply(Change wanted) {
  const JobId id = wanted.id;
  const auto replies = co_await or_return(change({std::move(wanted)}));
  const ChangeOutcome outcome = replies.front().outcome;
  JobState state{};
  if (outcome == ChangeOutcome::wrong_state) {
    const auto record = co_await or_return(get(id));
    state = record.state;
  }
  co_return meaning_of(outcome, id, state);
}

Coro<Result<std::vector<ChangeReply>>> Book::State::change(std::vector<Change> changes) {
  if (remote) co_return co_await remote->change(std::move(changes));
  co_await or_return(set_clock());
  if (!owner) {
    for (Change& change : changes) set_times(change);
    co_return co_await store(&Store::change, std::move(changes));
  }
  co_return co_await change_as_owner(std::move(changes));
}

// Those of different jobs go to the store together.
Coro<Result<std::vector<ChangeReply>>> Book::State::change_as_owner(std::vector<Change> changes) {
  std::vector<ChangeReply> replies;
  replies.reserve(changes.size());
  std::vector<Task<Result<ChangeReply>>> under_way;
  std::unordered_set<JobId> changing;
  for (auto change = changes.begin(); change != changes.end();) {
    for (; change != changes.end() && changing.size() < kChangesTogether && changing.insert(change->id).second;
         ++change) {
      under_way.push_back(EventLoop::current().create_task(owner->ends.change(std::move(*change))));
    }
    for (auto& one : under_way) replies.push_back(co_await or_return(co_await one));
    under_way.clear();
    changing.clear();
  }
  co_return replies;
}

void Book::State::set_times(Change& change) const {
  change.at = clock().now();
  change.calendar_at = clock().to_calendar(change.at);
  change.due_at = whole_ms(clock().from_calendar(change.due_at));
  change.keep = std::nullopt;
}

Coro<Result<void>> Book::State::configure(std::string name, QueueConfig config, JobReachRef asker) {
  if (remote) co_return co_await remote->configure(std::move(name), std::move(config));
  const auto in_turn = co_await configuring.scoped();
  co_return co_await write_config(std::move(name), std::move(config), std::move(asker));
}

Coro<Result<void>> Book::State::set_paused(std::string name, bool paused, WallTime until) {
  if (remote) co_return co_await remote->set_paused(std::move(name), paused, until);
  const auto in_turn = co_await configuring.scoped();
  StoredQueue found = co_await or_return(queue(name));
  found.config.limits.paused = paused;
  found.config.paused_until = until;
  co_return co_await write_config(std::move(name), std::move(found.config), nullptr);
}

Coro<Result<void>> Book::State::erase_queue(std::string name) {
  if (remote) co_return co_await remote->erase_queue(std::move(name));
  const auto in_turn = co_await configuring.scoped();
  if (owner) co_return co_await owner->queues.erase(std::move(name));
  const StoredQueue found = co_await or_return(queue(name));
  known.erase(name);
  co_return co_await store(&Store::erase_queue, found.id);
}

Coro<Result<void>> Book::State::write_config(std::string name, QueueConfig config, JobReachRef asker) {
  co_await or_return(set_clock());
  config.paused_until = whole_ms(clock().from_calendar(config.paused_until));
  if (owner) co_return co_await owner->queues.configure(std::move(name), std::move(config), std::move(asker));
  co_await or_return(check_queue_name(name));
  const auto opened_queue = co_await or_return(store(&Store::open_queue, name, config));
  const auto written = co_await store(&Store::configure, opened_queue.id, std::move(config));
  known.erase(name);
  co_return written;
}

// --- looks -----------------------------------------------------------------------------------------------------------

Coro<Result<JobId>> Book::State::find(std::string id_or_name) {
  if (remote) co_return co_await remote->find(std::move(id_or_name));
  const auto number = co_await or_return(parse_job_id(id_or_name));
  if (number && !co_await or_return(store(&Store::get, *number))) co_return no_such_job(*number);
  if (number) co_return *number;
  const auto named = co_await or_return(store(&Store::find_name, id_or_name));
  if (!named) co_return no_job_named(id_or_name);
  co_return *named;
}

Coro<Result<JobRecord>> Book::State::get(JobId id) {
  if (remote) co_return co_await remote->get(id);
  co_await or_return(set_clock());
  auto found = co_await or_return(store(&Store::get, id));
  if (!found) co_return no_such_job(id);
  as_of_now(*found);
  co_return std::move(*found);
}

Coro<Result<JobOutput>> Book::State::output(JobId id, OutputLook look) {
  if (remote) co_return co_await remote->output(id, look);
  EventLoop& loop = EventLoop::current();
  const TimePoint limit = saturating_add(loop.time(), look.wait);
  std::optional<JobNews::Follower> follower;
  if (owner && look.wait > Duration{}) follower.emplace(news, id);
  for (;;) {
    // What lies there is of the run before, until this one has left something. Asked before the row is read: what it leaves
    // meanwhile may come too late for the row.
    const std::uint64_t run_with_output = owner ? owner->runs.with_output(id) : 0;
    JobRecord record = co_await or_return(get(id));
    if (owner && record.state == JobState::running && record.token != run_with_output) record.result.clear();
    JobOutput output = output_of(std::move(record), look);
    if (output.is_news(look) || loop.time() >= limit) co_return output;
    if (follower) {
      co_await follower->wait(limit);
    } else {
      co_await sleep(std::min(kLookForOutput, limit - loop.time()));
    }
  }
}

Coro<Result<std::vector<Attempt>>> Book::State::history(JobId id) {
  if (remote) co_return co_await remote->history(id);
  co_await or_return(set_clock());
  auto attempts = co_await or_return(store(&Store::history, id));
  for (Attempt& attempt : attempts) attempt.ended_at = clock().to_calendar(attempt.ended_at);
  co_return attempts;
}

Coro<Result<JobSlice>> Book::State::look(JobFilter filter) {
  if (remote) {
    JobSlice page{.jobs = co_await or_return(remote->list(filter))};
    page.after = page.jobs.empty() ? filter.after : page.jobs.back().id;
    page.is_last = page.jobs.size() < filter.limit;
    page.newest = kMostJobId;
    co_return page;
  }
  co_await or_return(set_clock());
  filter.due_by = clock().now();
  filter.limit = std::min(filter.limit, kJobsAPage);
  if (owner) filter.most_looked = std::min(filter.most_looked, kRowsALook);
  auto slice = co_await or_return(
      in_turn(store(&Store::look, std::move(filter)), [](const JobSlice& its) { return its.looked; }));
  for (JobRecord& record : slice.jobs) as_of_now(record);
  co_return slice;
}

Coro<Result<std::vector<JobRecord>>> Book::State::list(JobFilter filter) {
  if (remote) co_return co_await remote->list(std::move(filter));
  const std::size_t limit = filter.limit;
  std::vector<JobRecord> all;
  for (bool more = true; more && all.size() < limit;) {
    filter.limit = limit - all.size();
    auto slice = co_await or_return(look(filter));
    std::ranges::move(slice.jobs, std::back_inserter(all));
    filter.after = slice.after;
    filter.up_to = std::min(filter.up_to, slice.newest);
    more = !slice.is_last;
  }
  co_return all;
}

Coro<Result<StoredQueue>> Book::State::queue(std::string name) {
  if (remote) co_return co_await remote->queue(std::move(name));
  if (owner) {
    if (const StoredQueue* found = owner->queues.find(name)) co_return as_of_now(*found);
  }
  auto all = co_await or_return(queues());
  const auto found = std::ranges::find(all, name, &StoredQueue::name);
  if (found == all.end()) co_return no_such_queue(name);
  co_return std::move(*found);
}

Coro<Result<std::vector<StoredQueue>>> Book::State::queues() {
  if (remote) co_return co_await remote->queues();
  co_await or_return(set_clock());
  auto all = co_await or_return(in_turn(store(&Store::queues), size_of<std::vector<StoredQueue>>));
  for (StoredQueue& queue : all) queue = as_of_now(std::move(queue));
  co_return all;
}

StoredQueue Book::State::as_of_now(StoredQueue queue) const {
  end_pause_if_over(queue.config, clock().now());
  queue.config.paused_until = clock().to_calendar(queue.config.paused_until);
  return queue;
}

Coro<Result<std::vector<NamedCounts>>> Book::State::counts(std::string only) {
  if (remote) co_return co_await remote->counts(std::move(only));
  const auto wants = [only](const std::string& name) { return only.empty() || name == only; };
  auto named = co_await or_return(counts_where(wants));
  if (!only.empty() && named.empty()) co_return no_such_queue(only);
  co_return named;
}

Coro<Result<std::vector<NamedCounts>>> Book::State::counts_of(std::vector<std::string> names) {
  const std::unordered_set<std::string> wanted(names.begin(), names.end());
  const auto wants = [&](const std::string& name) { return wanted.contains(name); };
  if (!remote) co_return co_await counts_where(wants);
  auto all = co_await or_return(remote->counts({}));
  std::erase_if(all, [&](const NamedCounts& counts) { return !wants(counts.first); });
  co_return all;
}

Coro<Result<std::vector<NamedCounts>>> Book::State::counts_where(std::function<bool(const std::string& name)> wants) {
  co_await or_return(set_clock());
  const auto queues = co_await or_return(this->queues());
  auto counted = co_await or_return(in_turn(store(&Store::counts), size_of<std::vector<QueueCounts>>));
  std::unordered_map<QueueId, const StoredQueue*> by_id;
  for (const StoredQueue& queue : queues) by_id.emplace(queue.id, &queue);
  std::vector<NamedCounts> named;
  std::vector<std::size_t> with_delayed;
  std::vector<Coro<Result<std::uint64_t>>> counting;
  for (const QueueCounts& of_queue : counted) {
    const auto found = by_id.find(of_queue.queue);
    if (found == by_id.end() || !wants(found->second->name)) continue;
    named.emplace_back(found->second->name, of_queue.counts);
    if (of_queue.counts.delayed == 0) continue;
    with_delayed.push_back(named.size() - 1);
    counting.push_back(count_due(of_queue.queue));
  }
  // All queues at once: the store reads what few most have one after the other without being asked again in between.
  const auto dues = co_await gather(std::move(counting));
  for (std::size_t i = 0; i < dues.size(); ++i) {
    if (!dues[i]) co_return std::unexpected(dues[i].error());
    StateCounts& counts = named[with_delayed[i]].second;
    const std::uint64_t due = std::min(*dues[i], counts.delayed);
    counts.ready += due;
    counts.delayed -= due;
  }
  std::ranges::sort(named, {}, &NamedCounts::first);
  co_return named;
}

// Of a queue's delayed jobs; of very many the first.
Coro<Result<std::uint64_t>> Book::State::count_due(QueueId queue) {
  const WallTime now = clock().now();
  const auto is_due = [now](const WaitingJob& job) { return job.due_at <= now; };
  ShelfRead read{.shelf = Shelf::delayed, .limit = kFirstPage};
  const auto first = co_await or_return(store(&Store::read_shelf, queue, read, std::string{}));
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(first, is_due));
  if (count < kFirstPage) co_return count;
  read.due_after = {first.back().due_at, first.back().id};
  read.limit = kMostDueCounted - kFirstPage;
  const auto more = co_await or_return(
      in_turn(store(&Store::read_shelf, queue, read, std::string{}), size_of<std::vector<WaitingJob>>));
  co_return count + static_cast<std::uint64_t>(std::ranges::count_if(more, is_due));
}

}  // namespace argiope
