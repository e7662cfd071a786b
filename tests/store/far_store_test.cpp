// How often a store that is far away would be asked: what is brought before a call is known, each other look is a round
// trip.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jobs/internal/job_transitions.hpp"
#include "store/jobs/memory_jobs.hpp"
#include "store/jobs/memory_keys.hpp"
#include "store/jobs/memory_queues.hpp"
#include "store/jobs/memory_schedules.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow{1'800'000'000s};
constexpr std::size_t kBatch = 256;

// What has been brought, and how often something was asked for that had not been.
class Trips {
 public:
  std::size_t count = 0;

  void begin() {
    count = 0;
    rows_.clear();
    names_.clear();
  }
  void know(JobId id) { rows_.insert(id); }
  void know_name(const std::string& name) { names_.insert(name); }
  void ask(JobId id) {
    if (rows_.insert(id).second) ++count;
  }
  void ask_name(const std::string& name) {
    if (names_.insert(name).second) ++count;
  }

 private:
  std::set<JobId> rows_;
  std::set<std::string> names_;
};

class FarJobs final : public MemoryJobs {
 public:
  FarJobs(MemoryQueues& queues, JobCounters& counters, Trips& trips)
      : MemoryJobs(queues, counters), queues_(queues), trips_(trips) {}

  std::optional<JobRow> load(JobId id) override {
    trips_.ask(id);
    return MemoryJobs::load(id);
  }
  void insert(const JobRow& row, const NewJob& job, WallTime now) override {
    trips_.know(row.id);
    MemoryJobs::insert(row, job, now);
  }
  JobId find_name(const std::string& name) override {
    trips_.ask_name(name);
    return MemoryJobs::find_name(name);
  }
  JobId find_unique(QueueId queue, const std::string& unique) override {
    trips_.ask_name(queues_.name_of(queue) + '/' + unique);
    return MemoryJobs::find_unique(queue, unique);
  }
  // The rows of those that wait come with them.
  std::vector<JobId> take_dependants(JobId waited_for) override {
    auto dependants = MemoryJobs::take_dependants(waited_for);
    if (!dependants.empty()) ++trips_.count;
    for (const JobId id : dependants) trips_.know(id);
    return dependants;
  }
  void bring(const NeededRows& needed) {
    if (needed.empty()) return;
    ++trips_.count;
    for (const JobId id : needed.ids) trips_.know(id);
    for (const auto& name : needed.names) {
      trips_.know_name(name);
      trips_.know(MemoryJobs::find_name(name));
    }
    for (const auto& [queue, unique] : needed.uniques) {
      trips_.know_name(queue + '/' + unique);
      trips_.know(MemoryJobs::find_unique(queues_.find(queue), unique));
    }
  }

 private:
  MemoryQueues& queues_;
  Trips& trips_;
};

class FarDriver final : public Transaction {
 public:
  Trips trips;

  const StoreRows& rows() const { return rows_; }
  std::vector<QueueCounts> counts() const { return queues_.counts(); }

  JobCounters& counters() override { return counters_; }
  void mark() override { jobs_.mark(); }
  void keep() override { jobs_.keep(); }
  void take_back() override { jobs_.take_back(); }
  bool is_far() const noexcept override { return true; }
  void bring(const NeededRows& needed) override { jobs_.bring(needed); }

 private:
  JobCounters counters_;
  MemoryQueues queues_;
  FarJobs jobs_{queues_, counters_, trips};
  MemorySchedules schedules_;
  MemoryKeys keys_;
  StoreRows rows_{*this, queues_, jobs_, jobs_, jobs_, schedules_, keys_};
};

class FarStore : public testing::Test {
 protected:
  // The trips that `act` takes, besides that of its writes.
  template <class Act>
  std::size_t trips_of(Act act) {
    driver_.trips.begin();
    act();
    return driver_.trips.count;
  }
  std::vector<PutRequest> jobs(std::size_t count) const {
    std::vector<PutRequest> all(count);
    for (PutRequest& put : all) put.job.queue = "mail";
    return all;
  }
  void lease_all(std::size_t count) {
    std::vector<LeaseRequest> leases;
    for (JobId id = 1; id <= count; ++id) leases.push_back({id, id, kNow + 1min, "worker"});
    for (const auto& record : rules_.lease(leases)) ASSERT_TRUE(record);
  }
  std::vector<Settlement> ends(std::size_t count, Outcome outcome) const {
    std::vector<Settlement> all;
    for (JobId id = 1; id <= count; ++id) all.push_back({.id = id, .token = id, .outcome = outcome, .at = kNow});
    return all;
  }

  FarDriver driver_;
  JobTransitions rules_{driver_.rows()};
};

TEST_F(FarStore, IsAskedForNothingByPlainPutsLeasesAndEnds) {
  EXPECT_EQ(trips_of([&] { rules_.put(jobs(kBatch), kNow, Refusal::alone); }), 0u);
  EXPECT_EQ(trips_of([&] { lease_all(kBatch); }), 0u);
  EXPECT_EQ(trips_of([&] {
              for (const SettleReply& reply : rules_.settle(ends(kBatch, Outcome::done))) EXPECT_TRUE(reply.settled);
            }),
            0u);
  EXPECT_EQ(driver_.counts().front().ended, kBatch);
}

TEST_F(FarStore, BringsAllThatABatchOfOtherRequestsNamesAtOnce) {
  auto named = jobs(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) {
    named[i].job.name = "order " + std::to_string(i);
    named[i].job.unique = "customer " + std::to_string(i % 100);
  }
  EXPECT_EQ(trips_of([&] { rules_.put(named, kNow, Refusal::alone); }), 1u);
  EXPECT_EQ(trips_of([&] { rules_.put(named, kNow, Refusal::alone); }), 1u);
  lease_all(100);
  EXPECT_EQ(trips_of([&] {
              for (const SettleReply& reply : rules_.settle(ends(100, Outcome::retry))) EXPECT_TRUE(reply.settled);
            }),
            1u);
  EXPECT_EQ(trips_of([&] {
              std::vector<Change> changes;
              for (JobId id = 1; id <= 100; ++id) changes.push_back({.id = id, .kind = ChangeKind::cancel, .at = kNow});
              for (const ChangeReply& reply : rules_.change(changes)) EXPECT_EQ(reply.outcome, ChangeOutcome::changed);
            }),
            1u);
}

TEST_F(FarStore, BringsTheJobsThatNamesBelongToAsWell) {
  auto named = jobs(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) named[i].job.name = "order " + std::to_string(i);
  named.push_back({.job = {.queue = "mail"}, .waits_for_those_before = true});
  rules_.put(named, kNow, Refusal::alone);
  EXPECT_EQ(trips_of([&] { rules_.put(named, kNow, Refusal::alone); }), 1u);
}

TEST_F(FarStore, IsToldOfNothingThatCannotBe) {
  auto puts = jobs(2);
  puts[0].job.name = std::string(kMostNameBytes + 1, 'n');
  puts[1].job.id = kMostJobId + 1;
  const NeededRows needed = needed_by(puts);
  EXPECT_TRUE(needed.empty());
  EXPECT_TRUE(needed_by(std::vector<Change>{{.id = ~JobId{0}}}).empty());
}

TEST_F(FarStore, IsAskedOnceForEachJobThatOthersWaitedFor) {
  auto parts = jobs(3);
  parts.push_back({.job = {.queue = "mail"}, .waits_for_those_before = true});
  EXPECT_EQ(trips_of([&] { rules_.put(parts, kNow, Refusal::whole); }), 0u);
  lease_all(3);
  EXPECT_EQ(trips_of([&] {
              const auto replies = rules_.settle(ends(3, Outcome::done));
              ASSERT_EQ(replies.back().released.size(), 1u);
              EXPECT_EQ(replies.back().released.front().id, 4u);
            }),
            3u);
}

}  // namespace
}  // namespace argiope
