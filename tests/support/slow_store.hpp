// A store whose answers are late, or whose writes wait for another process, over simulated time. What is asked of it
// takes effect, as with every store: a caller that stops waiting changes nothing.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

class SlowStore final : public Store {
 public:
  explicit SlowStore(Store& inner) : inner_(inner) {}

  Duration delay{};              // of every answer
  TimePoint busy_until{};        // writes wait until then
  std::uint64_t times_busy = 0;  // how many have
  std::uint64_t times_counted = 0;
  std::uint64_t times_got = 0;
  std::uint64_t looks_that_throw = 0;  // for what others have changed
  // Those that the server does not answer in time.
  std::uint64_t looks_unanswered = 0, queues_unanswered = 0, finds_unanswered = 0, counts_unanswered = 0;
  ChangedElsewhere changed;           // by others: what the next look tells, once
  std::optional<Error> why_no_looks;  // for what others have changed
  std::uint64_t times_schedules_put = 0;
  std::uint64_t leased_at_put = 0;  // how many leases were asked for with their puts

  Coro<Result<StoredQueue>> open_queue(std::string name, QueueConfig config) override {
    return write(&Store::open_queue, std::move(name), std::move(config));
  }
  Coro<Result<void>> configure(QueueId queue, QueueConfig config) override {
    return write(&Store::configure, queue, std::move(config));
  }
  Coro<Result<void>> erase_queue(QueueId queue) override { return write(&Store::erase_queue, queue); }
  Coro<Result<std::vector<StoredQueue>>> queues() override {
    return is_unanswered(queues_unanswered) ? unanswered<std::vector<StoredQueue>>() : read(&Store::queues);
  }
  Coro<Result<std::vector<Result<PutReply>>>> put(std::vector<PutRequest> jobs, WallTime now,
                                                  Refusal refusal) override {
    return write(&Store::put, std::move(jobs), now, refusal);
  }
  Coro<Result<std::vector<std::optional<JobRecord>>>> lease(std::vector<LeaseRequest> leases) override {
    return write(&Store::lease, std::move(leases));
  }
  Coro<Result<PutAndLeaseReply>> put_and_lease(std::vector<PutRequest> jobs, WallTime now,
                                               std::vector<PutLease> leases) override {
    leased_at_put += leases.size();
    return write(&Store::put_and_lease, std::move(jobs), now, std::move(leases));
  }
  Coro<Result<void>> renew(std::vector<LeaseRequest> leases) override {
    return write(&Store::renew, std::move(leases));
  }
  Coro<Result<void>> write_output(JobId id, std::uint64_t token, std::string output) override {
    return write(&Store::write_output, id, token, std::move(output));
  }
  Coro<Result<std::vector<SettleReply>>> settle(std::vector<Settlement> settlements) override {
    return write(&Store::settle, std::move(settlements));
  }
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes) override {
    return write(&Store::change, std::move(changes));
  }
  Coro<Result<OnceReply>> once(OnceRequest request) override { return write(&Store::once, std::move(request)); }
  Coro<Result<std::size_t>> prune_requests(WallTime before, std::size_t most, std::size_t limit) override {
    return write(&Store::prune_requests, before, most, limit);
  }
  Coro<Result<void>> shelve(std::vector<JobId> jobs, Shelf shelf) override {
    return write(&Store::shelve, std::move(jobs), shelf);
  }
  Coro<Result<std::size_t>> prune(QueueId queue, JobState state, WallTime before, std::size_t limit) override {
    return write(&Store::prune, queue, state, before, limit);
  }
  Coro<Result<std::vector<PutScheduleReply>>> put_schedules(std::vector<PutSchedule> schedules) override {
    ++times_schedules_put;
    return write(&Store::put_schedules, std::move(schedules));
  }
  Coro<Result<std::size_t>> erase_schedules(std::vector<ScheduleId> ids) override {
    return write(&Store::erase_schedules, std::move(ids));
  }
  Coro<Result<std::vector<StoredSchedule>>> schedules(ScheduleFilter filter) override {
    return read(&Store::schedules, std::move(filter));
  }
  Coro<Result<std::vector<std::optional<StoredSchedule>>>> load_schedules(std::vector<ScheduleId> ids) override {
    return read(&Store::load_schedules, std::move(ids));
  }
  Coro<Result<std::optional<StoredSchedule>>> find_schedule(std::string name) override {
    return read(&Store::find_schedule, std::move(name));
  }
  Coro<Result<std::vector<std::optional<ScheduleView>>>> look_at_schedules(std::vector<ScheduleLook> looks) override {
    return read(&Store::look_at_schedules, std::move(looks));
  }
  Coro<Result<std::optional<ScheduleRun>>> schedule_run(ScheduleId id, std::uint64_t number) override {
    return read(&Store::schedule_run, id, number);
  }
  Coro<Result<std::vector<ScheduleRun>>> schedule_runs(ScheduleId id, std::size_t limit) override {
    return read(&Store::schedule_runs, id, limit);
  }
  Coro<Result<std::optional<ScheduleOutput>>> schedule_output(ScheduleId id) override {
    return read(&Store::schedule_output, id);
  }
  Coro<Result<std::vector<Result<FireReply>>>> fire(std::vector<FireRequest> requests, WallTime now) override {
    return write(&Store::fire, std::move(requests), now);
  }
  Coro<Result<std::vector<WaitingJob>>> read_shelf(QueueId queue, ShelfRead wanted, std::string key) override {
    return read(&Store::read_shelf, queue, wanted, std::move(key));
  }
  Coro<Result<std::vector<std::string>>> keys_set_aside(QueueId queue, std::optional<std::string> after,
                                                        std::size_t limit) override {
    return read(&Store::keys_set_aside, queue, std::move(after), limit);
  }
  Coro<Result<std::vector<std::optional<WaitingJob>>>> find_waiting(std::vector<JobId> jobs) override {
    if (is_unanswered(finds_unanswered)) return unanswered<std::vector<std::optional<WaitingJob>>>();
    return read(&Store::find_waiting, std::move(jobs));
  }
  Coro<Result<std::optional<JobRecord>>> get(JobId id) override {
    ++times_got;
    return read(&Store::get, id);
  }
  Coro<Result<std::optional<JobId>>> find_name(std::string name) override {
    return read(&Store::find_name, std::move(name));
  }
  Coro<Result<std::vector<Attempt>>> history(JobId id) override { return read(&Store::history, id); }
  Coro<Result<std::vector<JobRecord>>> list(JobFilter filter) override { return read(&Store::list, std::move(filter)); }
  Coro<Result<JobSlice>> look(JobFilter filter) override { return read(&Store::look, std::move(filter)); }
  Coro<Result<std::vector<QueueCounts>>> counts() override {
    ++times_counted;
    return is_unanswered(counts_unanswered) ? unanswered<std::vector<QueueCounts>>() : read(&Store::counts);
  }
  Coro<Result<std::uint64_t>> count_before(QueueId queue, Rank rank, std::uint64_t most,
                                           std::optional<std::string> key) override {
    return read(&Store::count_before, queue, rank, most, std::move(key));
  }
  Coro<Result<std::vector<JobId>>> waits_for(JobId id, std::size_t limit) override {
    return read(&Store::waits_for, id, limit);
  }
  std::uint64_t last_token() const override { return inner_.last_token(); }
  Coro<Result<std::vector<OldLease>>> old_leases() override { return read(&Store::old_leases); }
  Coro<Result<ChangedElsewhere>> changed_elsewhere() override {
    if (looks_that_throw > 0) {
      --looks_that_throw;
      throw std::runtime_error("there is no memory");
    }
    if (is_unanswered(looks_unanswered)) return unanswered<ChangedElsewhere>();
    if (why_no_looks) return refused(*why_no_looks);
    if (changed != ChangedElsewhere{}) return told(std::exchange(changed, {}));
    return write(&Store::changed_elsewhere);
  }
  Coro<Result<void>> remember(std::string name, std::int64_t value) override {
    return write(&Store::remember, std::move(name), value);
  }
  Coro<Result<std::optional<std::int64_t>>> recall(std::string name) override {
    return read(&Store::recall, std::move(name));
  }
  std::optional<Error> failure() const override { return inner_.failure(); }
  Result<void> close() override { return inner_.close(); }

 private:
  static bool is_unanswered(std::uint64_t& times) noexcept { return times > 0 && times-- > 0; }
  // Static, and told all they need: a call under way outlives the store.
  template <class T>
  static Coro<Result<T>> unanswered() {
    co_return fail(Errc::network, "the server did not answer in time");
  }
  static Coro<Result<ChangedElsewhere>> told(ChangedElsewhere changed) { co_return changed; }
  static Coro<Result<ChangedElsewhere>> refused(Error why) { co_return std::unexpected(std::move(why)); }
  template <class T>
  static Coro<Result<T>> late(Coro<Result<T>> answer, Duration by) {
    Result<T> reply = co_await std::move(answer);
    if (by > Duration::zero()) co_await sleep(by);
    co_return reply;
  }
  template <class T>
  static Coro<Result<T>> after(Duration wait, Coro<Result<T>> call) {
    co_await sleep(wait);
    co_return co_await std::move(call);
  }
  template <class T>
  static Coro<Result<T>> whoever_waits(Coro<Result<T>> call) {
    co_return co_await shield(EventLoop::current().create_task(std::move(call)));
  }
  template <class T, class... Parameters, class... Arguments>
  Coro<Result<T>> read(Coro<Result<T>> (Store::*call)(Parameters...), Arguments... arguments) {
    return late((inner_.*call)(std::move(arguments)...), delay);
  }
  template <class T, class... Parameters, class... Arguments>
  Coro<Result<T>> write(Coro<Result<T>> (Store::*call)(Parameters...), Arguments... arguments) {
    auto answer = late((inner_.*call)(std::move(arguments)...), delay);
    const TimePoint now = EventLoop::current().time();
    if (now >= busy_until) return answer;
    ++times_busy;
    return whoever_waits(after(busy_until - now, std::move(answer)));
  }

  Store& inner_;
};

}  // namespace argiope
