#include "argiope/engine/book.hpp"

#include <unordered_set>

#include "argiope/async/coro.hpp"
#include "engine/book_rules.hpp"
#include "engine/internal/remote_book.hpp"
#include "engine/schedule_book_state.hpp"
#include "engine/store_book.hpp"

namespace argiope {

// Its jobs and its schedules, which may ask the jobs why one does not run.
struct Book::State {
  State(std::shared_ptr<JobBook> its_jobs, std::shared_ptr<ScheduleBook::State> its_schedules)
      : jobs(std::move(its_jobs)), schedules_state(std::move(its_schedules)), schedules(schedules_state) {
    schedules_state->explain_job = [weak = std::weak_ptr(jobs)](JobId id) -> Coro<Result<JobExplanation>> {
      const auto book = weak.lock();
      if (book == nullptr) co_return fail(Errc::cancelled, "the book has gone");
      co_return co_await book->explain(id);
    };
  }
  void let_go() noexcept {
    jobs->let_go();
    schedules_state->store.let_go();
  }

  std::unique_ptr<Store> opened;  // where the book has opened it
  const std::shared_ptr<JobBook> jobs;
  const std::shared_ptr<ScheduleBook::State> schedules_state;
  ScheduleBook schedules;
};

// --- opening ---------------------------------------------------------------------------------------------------------

Coro<Result<Book>> Book::open(std::string where, BookOptions options) {
  options.owned = has_owner(where);
  auto store = co_await or_return(open_store(where, {.access = options.access}));
  Book book = co_await or_return(open(*store, std::move(options)));
  book.state_->opened = std::move(store);
  co_return book;
}

Coro<Result<Book>> Book::open(Store& store, BookOptions options) {
  auto schedules = std::make_shared<ScheduleBook::State>(store, EventLoop::current().clock(), options.new_queue,
                                                         options.owned, nullptr, nullptr);
  const auto jobs = std::make_shared<BesideJobBook>(store, std::move(options));
  co_await or_return(jobs->set_clock());
  co_return Book(std::make_shared<State>(jobs, std::move(schedules)));
}

Book Book::of_owner(Store& store, std::shared_ptr<Broker> owner, std::shared_ptr<SchedulerImpl> scheduler,
                    QueueConfig new_queue) {
  const bool fires = scheduler != nullptr;
  auto jobs = std::make_shared<OwnerJobBook>(store, owner);
  return Book(std::make_shared<State>(
      std::move(jobs), std::make_shared<ScheduleBook::State>(store, EventLoop::current().clock(), std::move(new_queue),
                                                             fires, std::move(owner), std::move(scheduler))));
}

Book Book::of_remote(std::shared_ptr<RemoteBook> remote) {
  auto schedules = std::make_shared<ScheduleBook::State>(remote, EventLoop::current().clock());
  return Book(std::make_shared<State>(std::move(remote), std::move(schedules)));
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
std::string Book::durability() const {
  return state_->opened == nullptr ? std::string() : state_->opened->durability();
}
Result<void> Book::close() { return state_->opened == nullptr ? Result<void>{} : state_->opened->close(); }

// --- what it offers, kept until it has ended -------------------------------------------------------------------------

Coro<Result<PutReply>> Book::put(NewJob job) { return state_->jobs->put(std::move(job)); }
Coro<Result<std::vector<Result<PutReply>>>> Book::put_each(std::vector<NewJob> jobs) {
  return keep_alive(state_->jobs, state_->jobs->put_each(std::move(jobs)));
}
Coro<Result<std::vector<PutReply>>> Book::put_all(std::vector<NewJob> jobs) {
  return keep_alive(state_->jobs, state_->jobs->put_all(std::move(jobs), false));
}
Coro<Result<std::vector<PutReply>>> Book::put_batch(std::vector<NewJob> jobs, NewJob completion) {
  jobs.push_back(std::move(completion));
  return keep_alive(state_->jobs, state_->jobs->put_all(std::move(jobs), true));
}

Coro<Result<OnceReply>> Book::once(OnceCall call) {
  return keep_alive(state_->jobs, state_->jobs->once(std::move(call)));
}

Coro<Result<void>> Book::cancel(JobId id, std::string why) {
  return keep_alive(state_->jobs, state_->jobs->apply({.id = id, .kind = ChangeKind::cancel, .error = std::move(why)}));
}
Coro<Result<void>> Book::kick(JobId id) {
  return keep_alive(state_->jobs, state_->jobs->apply({.id = id, .kind = ChangeKind::kick}));
}
Coro<Result<void>> Book::set_priority(JobId id, std::int32_t priority) {
  return keep_alive(state_->jobs,
                    state_->jobs->apply({.id = id, .kind = ChangeKind::set_priority, .priority = priority}));
}
Coro<Result<void>> Book::set_due(JobId id, WallTime due_at) {
  return keep_alive(state_->jobs, state_->jobs->apply({.id = id, .kind = ChangeKind::set_due, .due_at = due_at}));
}
Coro<Result<void>> Book::erase(JobId id) {
  return keep_alive(state_->jobs, state_->jobs->apply({.id = id, .kind = ChangeKind::erase}));
}
Coro<Result<std::vector<ChangeReply>>> Book::change(std::vector<Change> changes) {
  return keep_alive(state_->jobs, state_->jobs->change(std::move(changes)));
}

Coro<Result<JobId>> Book::find(std::string id_or_name) {
  return keep_alive(state_->jobs, state_->jobs->find(std::move(id_or_name)));
}
Coro<Result<JobRecord>> Book::get(JobId id) { return keep_alive(state_->jobs, state_->jobs->get(id)); }
Coro<Result<JobOutput>> Book::output(JobId id, OutputLook look) {
  return keep_alive(state_->jobs, state_->jobs->output(id, look));
}
Coro<Result<std::vector<Attempt>>> Book::history(JobId id) {
  return keep_alive(state_->jobs, state_->jobs->history(id));
}
Coro<Result<std::vector<JobRecord>>> Book::list(JobFilter filter) {
  return keep_alive(state_->jobs, state_->jobs->list(std::move(filter)));
}
Coro<Result<JobSlice>> Book::look(JobFilter filter) {
  return keep_alive(state_->jobs, state_->jobs->look(std::move(filter)));
}
Coro<Result<std::vector<NamedCounts>>> Book::counts(std::string only) {
  return keep_alive(state_->jobs, state_->jobs->counts(std::move(only)));
}
Coro<Result<std::vector<NamedCounts>>> Book::counts_of(std::vector<std::string> names) {
  return keep_alive(state_->jobs, state_->jobs->counts_of(std::move(names)));
}
Coro<Result<JobExplanation>> Book::explain(JobId id) { return keep_alive(state_->jobs, state_->jobs->explain(id)); }

Coro<Result<StoredQueue>> Book::queue(std::string name) {
  return keep_alive(state_->jobs, state_->jobs->queue(std::move(name)));
}
Coro<Result<std::vector<StoredQueue>>> Book::queues() { return keep_alive(state_->jobs, state_->jobs->queues()); }
Coro<Result<void>> Book::configure(std::string queue, QueueConfig config, JobReachRef asker) {
  return keep_alive(state_->jobs, state_->jobs->configure(std::move(queue), std::move(config), std::move(asker)));
}
Coro<Result<void>> Book::pause(std::string queue) {
  return keep_alive(state_->jobs, state_->jobs->set_paused(std::move(queue), true));
}
Coro<Result<void>> Book::pause(std::string queue, WallTime until) {
  return keep_alive(state_->jobs, state_->jobs->set_paused(std::move(queue), true, until));
}
Coro<Result<void>> Book::erase_queue(std::string queue) {
  return keep_alive(state_->jobs, state_->jobs->erase_queue(std::move(queue)));
}
Coro<Result<void>> Book::resume(std::string queue) {
  return keep_alive(state_->jobs, state_->jobs->set_paused(std::move(queue), false));
}

ScheduleBook& Book::schedules() noexcept { return state_->schedules; }
WallTime Book::job_now() const { return state_->jobs->clock().now(); }

// --- what is the same for every book ---------------------------------------------------------------------------------

Coro<Result<PutReply>> JobBook::put_one(NewJob job) {
  std::vector<NewJob> one;
  one.push_back(std::move(job));
  auto replies = co_await or_return(put_each(std::move(one)));
  co_return std::move(replies.front());
}

Coro<Result<void>> JobBook::apply(Change wanted) {
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

// --- behind a daemon -------------------------------------------------------------------------------------------------

Coro<Result<OnceReply>> RemoteBook::once(OnceCall) {
  co_return fail(Errc::unsupported, "behind a daemon, requests have keys of their own");
}

Coro<Result<JobSlice>> RemoteBook::look(JobFilter filter) {
  JobSlice page{.jobs = co_await or_return(list(filter))};
  page.after = page.jobs.empty() ? filter.after : page.jobs.back().id;
  page.is_last = page.jobs.size() < filter.limit;
  page.newest = kMostJobId;
  co_return page;
}

Coro<Result<std::vector<NamedCounts>>> RemoteBook::counts_of(std::vector<std::string> names) {
  const std::unordered_set<std::string> wanted(names.begin(), names.end());
  auto all = co_await or_return(counts({}));
  std::erase_if(all, [&](const NamedCounts& counts) { return !wanted.contains(counts.first); });
  co_return all;
}

}  // namespace argiope
