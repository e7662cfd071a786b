// What was acknowledged is there after the disk has failed, whenever and however it did: a scenario of calls is run
// once for each operation of the disk, with that operation failing. What is found afterwards must be what a store in
// memory has after the calls that were acknowledged, or after those and the whole of the one transaction that was under
// way.
//
// Seeds: 1 and on, ARGIOPE_FAULT_SEEDS of them (1 if it is not set); six times as many for syncs, of which there are
// few.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/store/store.hpp"
#include "support/faulty_vfs.hpp"
#include "support/loop_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr int kRounds = 24;
constexpr WallTime kStart{1'800'000'000s};

// All that a store knows.
struct Contents {
  std::vector<std::string> queues;
  std::vector<JobRecord> jobs;
  std::vector<std::vector<Attempt>> histories;
  std::vector<std::vector<JobId>> waits_for;
  std::vector<QueueCounts> counts;
  std::vector<StoredSchedule> schedules;
  std::vector<std::vector<ScheduleRun>> runs;
  friend bool operator==(const Contents&, const Contents&) = default;
};

std::string say(const Contents& contents) {
  std::string said = fmt::format("  queues {}\n", contents.queues);
  for (const JobRecord& job : contents.jobs) {
    said += fmt::format("  {} {} {} k{} u{} p{} {}/{} {} pending {} t{} bytes {}\n", job.id, job.queue,
                        to_string(job.state), job.key, job.unique, job.priority, job.attempts, job.expiries, job.error,
                        job.pending, job.token, job.payload.size());
  }
  for (const QueueCounts& c : contents.counts) {
    said += fmt::format("  q{}: ready {} delayed {} running {} done {} buried {} cancelled {} ended {}\n", c.queue,
                        c.counts.ready, c.counts.delayed, c.counts.running, c.counts.done, c.counts.buried,
                        c.counts.cancelled, c.ended);
  }
  for (std::size_t i = 0; i < contents.schedules.size(); ++i) {
    const StoredSchedule& s = contents.schedules[i];
    said += fmt::format("  schedule {} v{} {} fired {} entries {} active {}:", s.id, s.version, s.name, s.place.fired,
                        s.place.entries, s.active);
    for (const ScheduleRun& run : contents.runs[i]) {
      said += fmt::format(" {} {} job {}", run.number, to_string(run.outcome), run.job);
    }
    said += '\n';
  }
  return said;
}

// What became of one call.
struct Said {
  std::optional<Error> error;
  std::vector<JobId> put;   // and there now, unless a later call has ended them
  std::vector<JobId> done;  // never to be done again
  std::vector<JobId> gone;  // ended in some other way, or deleted
};
using Ask = std::function<Coro<Said>(Store&)>;

void note_put(Said& said, const PutReply& reply) {
  if (reply.outcome == PutOutcome::added || reply.outcome == PutOutcome::run_again) said.put.push_back(reply.id);
}

class StoreFaultsTest : public OnVirtualLoop {
 protected:
  struct Case {
    Fault fault = Fault::none;
    std::uint64_t at = 0;
    SyncMode sync = SyncMode::full;
    Fault then = Fault::none;  // what comes after the failure, before the store can be closed
    bool cut_again = false;    // the power, after some work of the store that was opened again
  };

  template <class T>
  Result<T> ask(Coro<Result<T>> call) {
    return loop_.run_until_complete(std::move(call));
  }
  Result<std::unique_ptr<Store>> open(SyncMode sync) { return open_store("sqlite:" + file_, {.sync = sync}); }

  Contents contents(Store& store) { return loop_.run_until_complete(read_all(store)); }
  Coro<Contents> read_all(Store& store) {
    Contents all;
    for (const StoredQueue& queue : *co_await store.queues()) {
      all.queues.push_back(fmt::format("{} {} {}", queue.id, queue.name, to_json(queue.config)));
    }
    all.jobs = *co_await store.list({.limit = 10'000});
    std::vector<Task<Result<std::vector<Attempt>>>> histories;
    std::vector<Task<Result<std::vector<JobId>>>> waits_for;
    for (const JobRecord& job : all.jobs) {
      histories.push_back(loop_.create_task(store.history(job.id)));
      waits_for.push_back(loop_.create_task(store.waits_for(job.id, 1'000)));
    }
    for (auto& history : histories) all.histories.push_back(*co_await history);
    for (auto& others : waits_for) all.waits_for.push_back(*co_await others);
    all.counts = *co_await store.counts();
    all.schedules = *co_await store.schedules({});
    for (const StoredSchedule& schedule : all.schedules) all.runs.push_back(*co_await store.schedule_runs(schedule.id));
    co_return all;
  }

  // --- the scenario, drawn from what the reference knows
  template <class T>
  static T one_of(const std::vector<T>& all, Random& random) {
    return all.empty() ? T{} : all[random.below(all.size())];
  }
  JobId any_job(Random& random) { return one_of(known_, random).id; }
  const JobRecord running_job(Random& random) {
    std::vector<JobRecord> running;
    std::ranges::copy_if(known_, std::back_inserter(running), [](auto& job) { return job.state == JobState::running; });
    return one_of(running, random);
  }

  PutRequest put_request(Random& random) {
    PutRequest request{.set_aside = random.chance(0.2)};
    NewJob& job = request.job;
    job.queue = random.chance(0.8) ? "q" : "r";
    job.key = std::string(1, static_cast<char>('a' + random.below(3)));
    if (random.chance(0.2)) job.unique = "u" + std::to_string(random.below(3));
    job.unique_policy = static_cast<UniquePolicy>(random.below(3));
    job.run_again = random.chance(0.5);
    job.priority = static_cast<std::int32_t>(random.between(-2, 2));
    if (random.chance(0.2)) job.due_at = now_ + 1h;
    job.payload = std::string(random.chance(0.1) ? random.below(20'000) : random.below(300), 'p');
    if (random.chance(0.2)) job.waits_for.push_back(any_job(random));
    if (random.chance(0.04)) job.waits_for.push_back(1'000'000);  // refused, and so is its call
    std::erase(job.waits_for, JobId{0});
    return request;
  }
  std::vector<PutRequest> put_requests(Random& random, std::uint64_t most) {
    std::vector<PutRequest> requests;
    for (auto n = random.below(most + 1); n > 0; --n) requests.push_back(put_request(random));
    return requests;
  }

  Ask draw_put(Random& random) {
    return [jobs = put_requests(random, 5), now = now_](Store& store) -> Coro<Said> {
      Said said;
      const auto replies = co_await store.put(jobs, now);
      if (!replies) co_return Said{.error = replies.error()};
      for (const Result<PutReply>& reply : *replies) {
        if (reply) note_put(said, *reply);
      }
      co_return said;
    };
  }
  // Some of the puts with their leases.
  Ask draw_put_and_lease(Random& random) {
    const auto jobs = put_requests(random, 5);
    std::vector<PutLease> leases;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (random.chance(0.6)) leases.push_back({i, {.token = ++token_, .until = now_ + 60s, .worker = "w"}});
    }
    return [jobs, leases, now = now_](Store& store) -> Coro<Said> {
      const auto reply = co_await store.put_and_lease(jobs, now, leases);
      if (!reply) co_return Said{.error = reply.error()};
      Said said;
      for (const Result<PutReply>& put : reply->puts) {
        if (put) note_put(said, *put);
      }
      co_return said;
    };
  }
  Ask draw_lease(Random& random) {
    std::vector<LeaseRequest> leases;
    for (auto n = 1 + random.below(4); n > 0; --n) leases.push_back({any_job(random), ++token_, now_ + 60s, "w"});
    return [leases](Store& store) -> Coro<Said> {
      const auto replies = co_await store.lease(leases);
      co_return replies ? Said{} : Said{.error = replies.error()};
    };
  }
  Ask draw_settle(Random& random) {
    std::vector<Settlement> settlements;
    for (auto n = 1 + random.below(2); n > 0; --n) {
      const JobRecord job = running_job(random);
      constexpr Outcome kOutcomes[] = {Outcome::done, Outcome::done,   Outcome::done,    Outcome::retry,
                                       Outcome::bury, Outcome::cancel, Outcome::release, Outcome::expire};
      settlements.push_back({.id = job.id,
                             .token = job.token,
                             .outcome = kOutcomes[random.below(std::size(kOutcomes))],
                             .at = now_,
                             .due_at = random.chance(0.5) ? now_ + 1h : now_,
                             .keep = random.chance(0.4),
                             .result = "r",
                             .error = "e",
                             .worker = "w"});
      if (random.chance(0.6)) settlements.back().follow_ups = put_requests(random, 3);
    }
    return [settlements](Store& store) -> Coro<Said> {
      const auto replies = co_await store.settle(settlements);
      if (!replies) co_return Said{.error = replies.error()};
      Said said;
      for (std::size_t i = 0; i < replies->size(); ++i) {
        const SettleReply& reply = (*replies)[i];
        if (!reply.settled) continue;
        if (settlements[i].outcome == Outcome::done) said.done.push_back(settlements[i].id);
        if (settlements[i].outcome == Outcome::cancel) said.gone.push_back(settlements[i].id);
        for (const CancelledJob& job : reply.cancelled) said.gone.push_back(job.id);
        for (const PutReply& put : reply.follow_ups) note_put(said, put);
      }
      co_return said;
    };
  }
  Ask draw_change(Random& random) {
    const Change change{.id = any_job(random),
                        .kind = static_cast<ChangeKind>(random.below(5)),
                        .at = now_,
                        .priority = 3,
                        .due_at = now_ + 2h,
                        .keep = random.chance(0.5)};
    return [change](Store& store) -> Coro<Said> {
      const auto replies = co_await store.change({change});
      if (!replies) co_return Said{.error = replies.error()};
      Said said;
      const ChangeReply& reply = replies->front();
      const bool ends = change.kind == ChangeKind::cancel || change.kind == ChangeKind::erase;
      if (ends && reply.outcome == ChangeOutcome::changed) said.gone.push_back(change.id);
      for (const CancelledJob& job : reply.cancelled) said.gone.push_back(job.id);
      co_return said;
    };
  }
  Ask draw_shelve(Random& random) {
    const std::vector<JobId> ids{any_job(random), any_job(random)};
    return [ids, shelf = static_cast<Shelf>(random.below(2))](Store& store) -> Coro<Said> {
      const auto reply = co_await store.shelve(ids, shelf);
      co_return reply ? Said{} : Said{.error = reply.error()};
    };
  }
  Ask draw_renew(Random& random) {
    const JobRecord job = running_job(random);
    return [lease = LeaseRequest{job.id, job.token, now_ + 90s, "w"}](Store& store) -> Coro<Said> {
      const auto reply = co_await store.renew({lease});
      co_return reply ? Said{} : Said{.error = reply.error()};
    };
  }
  Ask draw_put_schedules(Random& random) {
    std::vector<PutSchedule> wanted;
    for (auto n = 1 + random.below(3); n > 0; --n) {
      wanted.push_back({.name = std::string(1, static_cast<char>('a' + random.below(6))),
                        .trigger = std::string(random.below(60), 't'),
                        .definition = std::string(random.chance(0.1) ? random.below(10'000) : random.below(300), 'd'),
                        .place = {.next = now_ + 1h, .paused = random.chance(0.2)},
                        .policy = static_cast<ConflictPolicy>(random.below(3))});
    }
    return [wanted](Store& store) -> Coro<Said> {
      const auto replies = co_await store.put_schedules(wanted);
      co_return replies ? Said{} : Said{.error = replies.error()};
    };
  }
  Ask draw_fire(Random& random) {
    std::vector<FireRequest> steps;
    for (auto n = 1 + random.below(4); n > 0; --n) {
      const StoredSchedule schedule = one_of(known_schedules_, random);
      FireRequest& step = steps.emplace_back();
      step.id = schedule.id;
      step.version = schedule.version;
      step.place = schedule.place;
      step.place.last = schedule.place.next;
      step.place.next = schedule.place.next + 1h;
      for (auto runs = random.chance(0.1) ? 22 : 1 + random.below(2); runs > 0; --runs) {
        ScheduleRun& run = step.runs.emplace_back();
        run.number = ++step.place.entries;
        run.planned = run.last_planned = step.place.last;
        run.fired_at = now_;
        if (random.chance(0.3)) {
          ++step.place.missed;
          run.outcome = RunOutcome::missed;
          continue;
        }
        ++step.place.fired;
        step.jobs.push_back(put_request(random));
        step.jobs.back().run = run.number;
        if (random.chance(0.3)) step.jobs.back().after_run = run.number - 1;
      }
    }
    return [steps, now = now_](Store& store) -> Coro<Said> {
      const auto replies = co_await store.fire(steps, now);
      if (!replies) co_return Said{.error = replies.error()};
      Said said;
      for (const Result<FireReply>& reply : *replies) {
        if (!reply) continue;
        for (const PutReply& put : reply->jobs) note_put(said, put);
      }
      co_return said;
    };
  }
  Ask draw_erase_schedules(Random& random) {
    return [ids = std::vector{one_of(known_schedules_, random).id}](Store& store) -> Coro<Said> {
      const auto erased = co_await store.erase_schedules(ids);
      co_return erased ? Said{} : Said{.error = erased.error()};
    };
  }
  Ask draw_call(Random& random) {
    if (random.chance(0.3)) {
      const auto kind = random.below(20);
      return kind < 6 ? draw_put_schedules(random) : kind < 19 ? draw_fire(random) : draw_erase_schedules(random);
    }
    const auto drawn = random.below(100);
    if (drawn < 25) return draw_put(random);
    if (drawn < 35) return draw_put_and_lease(random);
    if (drawn < 58) return draw_lease(random);
    if (drawn < 83) return draw_settle(random);
    if (drawn < 91) return draw_change(random);
    return drawn < 96 ? draw_shelve(random) : draw_renew(random);
  }

  // In one turn of the loop, with looks in between: one transaction.
  Coro<std::vector<Said>> say_all(Store& store, const std::vector<Ask>& asks, bool looks) {
    std::vector<Task<Said>> calls;
    std::vector<Task<Result<std::vector<JobRecord>>>> looked;
    for (const Ask& ask : asks) {
      calls.push_back(loop_.create_task(ask(store)));
      if (looks) looked.push_back(loop_.create_task(store.list({.limit = 50})));
    }
    std::vector<Said> said;
    for (auto& call : calls) said.push_back(co_await call);
    for (auto& look : looked) (void)co_await look;
    co_return said;
  }

  static bool of_the_disk(const Error& error) {
    return error.code != Errc::invalid_input && error.code != Errc::refused;
  }
  void expect_named(const Error& error, Fault fault) {
    EXPECT_EQ(error.code, fault == Fault::full ? Errc::disk_full : Errc::io) << error.message;
    EXPECT_NE(error.message.find(file_), std::string::npos) << error.message;
  }
  // Somebody else moves the log into the database.
  void checkpoint() {
    sqlite3* database = nullptr;
    if (sqlite3_open(file_.c_str(), &database) == SQLITE_OK) {
      sqlite3_exec(database, "PRAGMA wal_checkpoint(RESTART)", nullptr, nullptr, nullptr);
    }
    sqlite3_close(database);
  }
  std::string integrity() {
    sqlite3* database = nullptr;
    std::string said;
    if (sqlite3_open(file_.c_str(), &database) == SQLITE_OK) {
      const auto row = [](void* to, int, char** values, char**) {
        *static_cast<std::string*>(to) += values[0];
        return 0;
      };
      sqlite3_exec(database, "PRAGMA integrity_check", row, &said, nullptr);
    }
    sqlite3_close(database);
    return said;
  }

  // The calls are the same whatever fails, and so is what the reference makes of them.
  void draw(std::uint64_t seed) {
    Random random(seed);
    const auto reference = std::move(*open_store("memory:"));
    asks_.clear();
    known_.clear();
    known_schedules_.clear();
    states_ = {contents(*reference)};
    token_ = 0;
    now_ = kStart;
    for (int round = 0; round < kRounds; ++round) {
      now_ += 1s;
      asks_.emplace_back();
      for (auto n = 1 + random.below(4); n > 0; --n) asks_.back().push_back(draw_call(random));
      (void)loop_.run_until_complete(say_all(*reference, asks_.back(), false));
      states_.push_back(contents(*reference));
      known_ = states_.back().jobs;
      known_schedules_ = states_.back().schedules;
    }
  }

  // One run: the calls until the fault, and what is found afterwards. Gives the operations that the fault might befall.
  std::uint64_t run(std::uint64_t seed, const Case& now) {
    FaultyDisk disk(mix64(seed) + now.at);
    disk.plan(now.fault, now.at);
    acknowledged_ = attempted_ = 0;
    there_.clear();
    done_.clear();
    std::unique_ptr<Store> store = open_or_expect(now);
    if (store != nullptr) play(store, now);
    if (now.then != Fault::none && disk.has_failed()) disk.die(now.then);
    store.reset();
    const std::uint64_t operations = disk.operations();
    if (disk.has_failed()) ++faults_;
    if (now.fault == Fault::full && disk.has_failed() && now.at % 2 == 0) reopen_while_full(now.sync);
    disk.restart();
    if (now.cut_again) work_until_power_cut(disk, now.sync);
    check(now);
    return operations;
  }

  std::unique_ptr<Store> open_or_expect(const Case& now) {
    auto opened = open(now.sync);
    if (opened) return std::move(*opened);
    expect_named(opened.error(), now.fault);
    return nullptr;
  }

  // Until a call fails; nullptr where the store could not be opened again.
  void play(std::unique_ptr<Store>& store, const Case& now) {
    for (std::size_t round = 0; round < asks_.size(); ++round) {
      if (round % 8 == 5) checkpoint();
      if (round % 11 == 10) {
        const auto closed = store->close();
        if (!closed) expect_named(closed.error(), now.fault);
        store = open_or_expect(now);
        if (store == nullptr) return;
      }
      ++attempted_;
      const auto said = loop_.run_until_complete(say_all(*store, asks_[round], round % 3 == 0));
      const auto failed = std::ranges::find_if(said, [](const Said& s) { return s.error && of_the_disk(*s.error); });
      if (failed != said.end()) return refused(*store, said, now);
      EXPECT_FALSE(store->failure()) << store->failure()->message;
      ++acknowledged_;
      for (const Said& call : said) {
        there_.insert(call.put.begin(), call.put.end());
        for (const JobId id : call.done) there_.erase(id), done_.insert(id);
        for (const JobId id : call.gone) there_.erase(id);
      }
    }
  }

  // A transaction fails as a whole, the store says so, and nothing is written any more.
  void refused(Store& store, const std::vector<Said>& said, const Case& now) {
    for (const Said& call : said) {
      ASSERT_TRUE(call.error) << "a call in the same transaction was acknowledged";
      expect_named(*call.error, now.fault);
    }
    ASSERT_TRUE(store.failure());
    expect_named(*store.failure(), now.fault);
    const auto put = ask(store.put({{{.queue = "late"}}}, now_));
    ASSERT_FALSE(put);
    expect_named(put.error(), now.fault);
    const auto changed = ask(store.change({{.id = 1, .kind = ChangeKind::erase}}));
    ASSERT_FALSE(changed);
    expect_named(changed.error(), now.fault);
    const auto fired = ask(store.fire({{.id = 1, .version = 1}}, now_));
    ASSERT_FALSE(fired);
    expect_named(fired.error(), now.fault);
  }

  void reopen_while_full(SyncMode sync) {
    if (auto opened = open(sync); !opened) expect_named(opened.error(), Fault::full);
  }

  // What the second owner was told is done is there for the third.
  void work_until_power_cut(FaultyDisk& disk, SyncMode sync) {
    auto opened = open(sync);
    ASSERT_TRUE(opened) << opened.error().message;
    const Contents before = contents(**opened);
    std::vector<JobId> put;
    for (int i = 0; i < 3; ++i) {
      const auto replies = ask((*opened)->put({{{.queue = "q", .payload = std::string(500, 'p')}}}, now_));
      ASSERT_TRUE(replies) << replies.error().message;
      put.push_back(replies->front()->id);
    }
    disk.die(Fault::power_cut);
    (void)(*opened)->close();
    disk.restart();
    opened = open(sync);
    ASSERT_TRUE(opened) << opened.error().message;
    for (const JobId id : put) EXPECT_TRUE(ask((*opened)->get(id))->has_value()) << "job " << id << " is lost";
    for (const JobId id : put) (void)ask((*opened)->change({{.id = id, .kind = ChangeKind::erase}}));
    EXPECT_EQ(contents(**opened).jobs, before.jobs);
  }

  void check(const Case& now) {
    auto opened = open(now.sync);
    ASSERT_TRUE(opened) << opened.error().message;
    Store& store = **opened;
    const Contents found = contents(store);
    EXPECT_EQ(integrity(), "ok");
    // Of calls not acknowledged, all or none; and with less than full syncs a power cut may take the last commits.
    const bool may_lose = now.sync != SyncMode::full && now.fault == Fault::power_cut;
    bool as_some = false;
    for (std::size_t i = may_lose ? 0 : acknowledged_; i <= attempted_; ++i) {
      as_some |= now.cut_again ? found.jobs == states_[i].jobs : found == states_[i];
    }
    EXPECT_TRUE(as_some) << "found\n"
                         << say(found) << "acknowledged\n"
                         << say(states_[acknowledged_]) << "under way\n"
                         << say(states_[attempted_]);
    if (!may_lose) check_ledger(store);
    check_counts(found);
    check_runs(found);
    finish(store, found);
    EXPECT_TRUE(store.close());
  }

  // The promise once more, in the words of the callers' replies and without the reference.
  void check_ledger(Store& store) {
    std::set<JobId> left;  // by the round under way
    for (const JobRecord& job : states_[attempted_].jobs) left.insert(job.id);
    for (const JobId id : there_) {
      if (left.contains(id)) EXPECT_TRUE(ask(store.get(id))->has_value()) << "job " << id << " was put and is lost";
    }
    for (const JobId id : done_) {
      const auto job = *ask(store.get(id));
      EXPECT_TRUE(!job || job->state == JobState::done) << "job " << id << " was done and is to be done again";
    }
  }

  static void check_counts(const Contents& found) {
    std::map<std::string, StateCounts> by_queue;
    for (const JobRecord& job : found.jobs) {
      StateCounts& counts = by_queue[job.queue];
      (job.state == JobState::ready       ? counts.ready
       : job.state == JobState::delayed   ? counts.delayed
       : job.state == JobState::running   ? counts.running
       : job.state == JobState::done      ? counts.done
       : job.state == JobState::cancelled ? counts.cancelled
                                          : counts.buried)++;
    }
    for (std::size_t i = 0; i < found.counts.size(); ++i) {
      const std::string name = found.queues[i].substr(2, 1);
      EXPECT_EQ(found.counts[i].counts, by_queue[name]) << name;
    }
  }

  // Every run that has not ended has its job, and every schedule counts its own.
  static void check_runs(const Contents& found) {
    std::map<ScheduleId, std::uint32_t> active;
    std::set<JobId> of_runs;
    for (const JobRecord& job : found.jobs) {
      if (job.schedule == 0) continue;
      ++active[job.schedule];
      of_runs.insert(job.id);
    }
    for (std::size_t i = 0; i < found.schedules.size(); ++i) {
      const StoredSchedule& schedule = found.schedules[i];
      EXPECT_EQ(schedule.active, active[schedule.id]) << schedule.name;
      for (const ScheduleRun& run : found.runs[i]) {
        if (run.outcome == RunOutcome::skipped) continue;  // it names the job that was there already
        EXPECT_EQ(run.outcome == RunOutcome::running, of_runs.contains(run.job)) << schedule.name << ' ' << run.number;
      }
    }
  }

  // Whatever is left can be leased and done.
  void finish(Store& store, const Contents& found) {
    for (const OldLease& lease : *ask(store.old_leases())) {
      EXPECT_TRUE(ask(store.settle({{.id = lease.id, .token = lease.token, .outcome = Outcome::expire, .at = now_}}))
                      ->at(0)
                      .settled);
    }
    std::uint64_t token = token_ + 1'000;
    bool more = true;
    for (std::size_t pass = 0; more && pass <= found.jobs.size(); ++pass) {
      more = false;
      std::vector<LeaseRequest> leases;
      for (const JobRecord& job : *ask(store.list({.limit = 10'000, .payloads = false}))) {
        const bool waits = job.state == JobState::ready || job.state == JobState::delayed;
        more |= waits;
        if (waits && job.pending == 0) leases.push_back({job.id, ++token, now_ + 60s, "w"});
      }
      const auto leased = ask(store.lease(leases));
      ASSERT_TRUE(leased) << leased.error().message;
      std::vector<Settlement> settlements;
      for (std::size_t i = 0; i < leases.size(); ++i) {
        EXPECT_TRUE((*leased)[i]) << "job " << leases[i].id << " cannot be leased";
        settlements.push_back({.id = leases[i].id, .token = leases[i].token, .at = now_});
      }
      const auto settled = ask(store.settle(settlements));
      ASSERT_TRUE(settled) << settled.error().message;
      for (const SettleReply& reply : *settled) EXPECT_TRUE(reply.settled);
    }
    EXPECT_FALSE(more);
    for (const QueueCounts& of : *ask(store.counts())) {
      EXPECT_EQ(of.counts.ready + of.counts.delayed + of.counts.running, 0u);
    }
    for (const StoredSchedule& schedule : *ask(store.schedules({}))) {
      EXPECT_EQ(schedule.active, 0u) << schedule.name;
      for (const ScheduleRun& run : *ask(store.schedule_runs(schedule.id))) {
        EXPECT_NE(run.outcome, RunOutcome::running) << schedule.name << ' ' << run.number;
      }
    }
  }

  // Of every seed; see fault_stride().
  void sweep(Case now) {
    const std::uint64_t last = fault_seeds() * (now.fault == Fault::sync ? 6 : 1);
    for (std::uint64_t seed = 1; seed <= last; ++seed) {
      Case without = now;
      without.at = ~std::uint64_t{0};
      draw(seed);
      const std::uint64_t operations = run(seed, without);
      ASSERT_FALSE(HasFailure()) << "without a fault, seed " << seed;
      for (now.at = 0; now.at < operations; now.at += fault_stride()) {
        run(seed, now);
        ASSERT_FALSE(HasFailure()) << "seed " << seed << ", operation " << now.at << " of " << operations;
      }
    }
    RecordProperty("fault_points", static_cast<int>(faults_));
    fmt::print("{} faults\n", faults_);
  }

  // --- much at once: commits are made while the ones before them are synced
  struct Much {
    std::size_t calls = 6;  // of each of four callers, one after the other
    std::size_t payload_bytes = 100;
    std::uint64_t stride = fault_stride();
  };
  static constexpr std::size_t kJobsInCall = 40;

  Coro<void> put_much(Store& store, Much much, std::vector<JobId>& put, bool& failed) {
    for (std::size_t call = 0; call < much.calls && !failed; ++call) {
      const std::vector<PutRequest> jobs(kJobsInCall,
                                         {{.queue = "q", .payload = std::string(much.payload_bytes, 'p')}});
      const auto replies = co_await store.put(jobs, now_);
      if (!replies) {
        failed = true;
        co_return;
      }
      EXPECT_FALSE(failed) << "acknowledged after a failure";
      for (const Result<PutReply>& reply : *replies) put.push_back(reply->id);
    }
  }
  Coro<void> put_from_four(Store& store, Much much, std::vector<JobId>& put) {
    bool failed = false;
    std::vector<Task<void>> callers;
    for (int i = 0; i < 4; ++i) callers.push_back(loop_.create_task(put_much(store, much, put, failed)));
    for (auto& caller : callers) co_await caller;
    EXPECT_EQ(failed, store.failure().has_value());
  }
  std::uint64_t run_much(const Case& now, Much much) {
    FaultyDisk disk(mix64(now.at));
    disk.plan(now.fault, now.at);
    std::vector<JobId> put;
    if (std::unique_ptr<Store> store = open_or_expect(now)) {
      loop_.run_until_complete(put_from_four(*store, much, put));
      if (now.then != Fault::none && disk.has_failed()) disk.die(now.then);
    }
    const std::uint64_t operations = disk.operations();
    if (disk.has_failed()) ++faults_;
    disk.restart();
    if (now.cut_again) work_until_power_cut(disk, now.sync);
    check_much(put, much);
    return operations;
  }
  void check_much(const std::vector<JobId>& put, Much much) {
    auto opened = open(SyncMode::full);
    ASSERT_TRUE(opened) << opened.error().message;
    std::set<JobId> found;
    for (JobId after = 0;;) {
      const auto page = ask((*opened)->list({.after = after, .limit = 10'000, .payloads = false}));
      for (const JobRecord& job : *page) found.insert(job.id);
      if (page->size() < 10'000) break;
      after = page->back().id;
    }
    for (const JobId id : put) ASSERT_TRUE(found.contains(id)) << "job " << id << " was put and is lost";
    EXPECT_EQ(found.size() % kJobsInCall, 0u) << "part of a call";
    EXPECT_LE(found.size(), 4 * much.calls * kJobsInCall);
    EXPECT_EQ(integrity(), "ok");
  }
  void sweep_much(Case now, Much much) {
    Case without = now;
    without.at = ~std::uint64_t{0};
    const std::uint64_t operations = run_much(without, much);
    ASSERT_FALSE(HasFailure()) << "without a fault";
    for (now.at = 0; now.at < operations; now.at += much.stride) {
      run_much(now, much);
      ASSERT_FALSE(HasFailure()) << "operation " << now.at << " of " << operations;
    }
    fmt::print("{} faults\n", faults_);
  }
  // More than the log holds before it is moved into the database; each run takes a quarter of a second.
  static Much long_log(std::uint64_t stride) {
    return {.calls = 15, .payload_bytes = 20'000, .stride = fault_stride() * stride};
  }

  TemporaryFolder folder_;  // for the lock; the rest is on the disk in memory
  std::string file_ = folder_.file("jobs.db");
  std::vector<std::vector<Ask>> asks_;  // those of a round are made together
  std::vector<Contents> states_;        // after so many rounds
  std::vector<JobRecord> known_;        // while the calls are drawn
  std::vector<StoredSchedule> known_schedules_;
  std::size_t acknowledged_ = 0, attempted_ = 0;  // rounds
  std::set<JobId> there_, done_;                  // as acknowledged
  std::uint64_t token_ = 0, faults_ = 0;
  WallTime now_ = kStart;
};

TEST_F(StoreFaultsTest, SurvivesAWriteThatFails) { sweep({.fault = Fault::write}); }
TEST_F(StoreFaultsTest, SurvivesATornWrite) { sweep({.fault = Fault::torn_write}); }
TEST_F(StoreFaultsTest, SurvivesAFullDisk) { sweep({.fault = Fault::full}); }
TEST_F(StoreFaultsTest, SurvivesASyncThatFails) { sweep({.fault = Fault::sync}); }
TEST_F(StoreFaultsTest, SurvivesAReadThatFails) { sweep({.fault = Fault::read}); }
TEST_F(StoreFaultsTest, SurvivesAPowerCut) { sweep({.fault = Fault::power_cut}); }
TEST_F(StoreFaultsTest, SurvivesASyncThatFailsAndThenADeath) { sweep({.fault = Fault::sync, .then = Fault::kill}); }
TEST_F(StoreFaultsTest, SurvivesASyncThatFailsThenADeathAndLaterAPowerCut) {
  sweep({.fault = Fault::sync, .then = Fault::kill, .cut_again = true});
}
TEST_F(StoreFaultsTest, SurvivesADeathAndLaterAPowerCut) { sweep({.fault = Fault::kill, .cut_again = true}); }
TEST_F(StoreFaultsTest, SurvivesATornWriteAndThenADeath) { sweep({.fault = Fault::torn_write, .then = Fault::kill}); }
TEST_F(StoreFaultsTest, SurvivesASyncThatFailsAndThenAPowerCut) {
  sweep({.fault = Fault::sync, .then = Fault::power_cut});
}
TEST_F(StoreFaultsTest, SurvivesADeath) { sweep({.fault = Fault::kill}); }
TEST_F(StoreFaultsTest, SurvivesADeathWithNormalSyncs) { sweep({.fault = Fault::kill, .sync = SyncMode::normal}); }
TEST_F(StoreFaultsTest, SurvivesADeathWithoutSyncs) { sweep({.fault = Fault::kill, .sync = SyncMode::off}); }
TEST_F(StoreFaultsTest, APowerCutMayTakeTheLastCommitsWithNormalSyncsAndNothingElse) {
  sweep({.fault = Fault::power_cut, .sync = SyncMode::normal});
}

TEST_F(StoreFaultsTest, SurvivesASyncThatFailsAmongMuch) { sweep_much({.fault = Fault::sync}, {}); }
TEST_F(StoreFaultsTest, SurvivesASyncThatFailsAmongMuchAndThenADeathAndLaterAPowerCut) {
  sweep_much({.fault = Fault::sync, .then = Fault::kill, .cut_again = true}, {});
}
TEST_F(StoreFaultsTest, SurvivesASyncThatFailsAmongMuchAndThenAPowerCut) {
  sweep_much({.fault = Fault::sync, .then = Fault::power_cut}, {});
}
TEST_F(StoreFaultsTest, SurvivesAPowerCutAmongMuch) { sweep_much({.fault = Fault::power_cut}, {}); }
TEST_F(StoreFaultsTest, SurvivesATornWriteAmongMuch) { sweep_much({.fault = Fault::torn_write}, {}); }
TEST_F(StoreFaultsTest, SurvivesAPowerCutWhileTheLogIsMoved) {
  sweep_much({.fault = Fault::power_cut}, long_log(1'501));
}
TEST_F(StoreFaultsTest, SurvivesASyncThatFailsWhileTheLogIsMoved) {
  sweep_much({.fault = Fault::sync, .then = Fault::power_cut}, long_log(3));
}

}  // namespace
}  // namespace argiope
