// Random sequences of calls on a file, in memory and on the reference: every reply must be the same, and all that is
// stored at the end. A sequence that fails is shrunk and printed with its seed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/store/store.hpp"
#include "store/reference_store.hpp"
#include "support/environment.hpp"
#include "support/loop_fixture.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int kCallsInSequence = 30;
constexpr WallTime kFirstTime{1'800'000'000s};

// --- replies in words ------------------------------------------------------------------------------------------------

std::int64_t ms(WallTime time) {
  if (time == WallTime::max()) return -1;
  return time == WallTime{} ? 0 : std::chrono::floor<std::chrono::milliseconds>(time - kFirstTime).count();
}
std::string say(const WaitingJob& job) {
  return fmt::format("[{} q{} \"{}\" rank {} due {} {}/{} shelf {}]", job.id, job.queue, job.key, job.priority,
                     ms(job.due_at), job.attempts, job.expiries, static_cast<int>(job.shelf));
}
std::string say(const JobRecord& r) {
  return fmt::format(
      "<{} {} {} k\"{}\" u\"{}\" {} p{} due {} f\"{}\" \"{}\" {}/{}/{} pending {} if {} made {} ended {} \"{}\" \"{}\" "
      "t{} \"{}\" until {} of {}/{} asked {} "
      "lease {} runs {} timeouts {} releases {} buries {} kicks {}>",
      r.id, r.name, r.queue, r.key, r.unique, to_string(r.state), r.priority, ms(r.due_at), r.function, r.payload,
      r.attempts, r.max_attempts, r.expiries, r.pending, static_cast<int>(r.if_failed), ms(r.created_at),
      ms(r.ended_at), r.result, r.error, r.token, r.worker, ms(r.lease_until), r.schedule, r.run, r.cancel_asked,
      r.lease_time.count(), r.tally.runs, r.tally.timeouts, r.tally.releases, r.tally.buries, r.tally.kicks);
}
std::string say(JobId id) { return fmt::format("{}", id); }
std::string say(std::int64_t number) { return fmt::format("{}", number); }
std::string say(const std::string& text) { return '"' + text + '"'; }
std::string say(const Attempt& a) {
  return fmt::format("({} {} {} {} {})", a.number, ms(a.ended_at), a.outcome, a.error, a.worker);
}
std::string say(const StoredQueue& queue) {
  return fmt::format("{} {} {}", queue.id, queue.name, to_json(queue.config));
}
std::string say(const QueueCounts& c) {
  return fmt::format("q{}: ready {} delayed {} running {} done {} buried {} cancelled {} ended {}", c.queue,
                     c.counts.ready, c.counts.delayed, c.counts.running, c.counts.done, c.counts.buried,
                     c.counts.cancelled, c.ended);
}
std::string say(const EndedRun& e) {
  return fmt::format("({}/{} job {} {})", e.schedule, e.number, e.job, to_string(e.outcome));
}
std::string say(const StoredSchedule& s) {
  return fmt::format("<{} v{} {} \"{}\" \"{}\" next {} last {} {}/{}/{} paused {} active {}>", s.id, s.version, s.name,
                     s.trigger, s.definition, ms(s.place.next), ms(s.place.last), s.place.fired, s.place.missed,
                     s.place.entries, s.place.paused, s.active);
}
std::string say(const ScheduleRun& r) {
  return fmt::format("({} {}..{} x{} {}..{} {} job {} \"{}\")", r.number, ms(r.planned), ms(r.last_planned), r.count,
                     ms(r.fired_at), ms(r.ended_at), to_string(r.outcome), r.job, r.error);
}
std::string say(const PutScheduleReply& r) {
  return fmt::format("{} {} v{}", static_cast<int>(r.outcome), r.id, r.version);
}
template <class T>
std::string say(const Result<T>& result);
template <class T>
std::string say(const std::optional<T>& value);
std::string say(const FireReply& reply);
std::string say(const ScheduleOutput& o) {
  return fmt::format("<{} {} {} {} \"{}\" \"{}\">", o.run, o.job, ms(o.ended_at), to_string(o.outcome), o.error,
                     o.output);
}
std::string say(const ScheduleView& view) {
  return fmt::format("{} last {} active {}", say(view.schedule), say(view.last_entry), view.active_jobs);
}
std::string say(const CancelledJob& job) { return fmt::format("{} of {}", job.id, job.queue); }
std::string say(const PutReply& reply);
std::string say(const PutAndLeaseReply& reply);
std::string say(const SettleReply& reply);
std::string say(const ChangeReply& reply);
std::string say(const OnceReply& reply);
template <class T>
std::string say(const std::optional<T>& value);
template <class T>
std::string say(const std::vector<T>& values) {
  std::string all = "{";
  for (const T& value : values) all += say(value) + ' ';
  return all + '}';
}
template <class T>
std::string say(const std::optional<T>& value) {
  return value ? say(*value) : "none";
}
std::string say(const PutReply& r) {
  const std::string said = fmt::format("put {} {} {}", static_cast<int>(r.outcome), r.id, say(r.job));
  if (r.cancelled == nullptr) return said;
  return fmt::format("{} because {}: released {} cancelled {} runs {}", said, r.cancelled->why,
                     say(r.cancelled->released), say(r.cancelled->cancelled), say(r.cancelled->ended_runs));
}
std::string say(const PutAndLeaseReply& r) { return fmt::format("{} leased {}", say(r.puts), say(r.leased)); }
std::string say(const SettleReply& r) {
  return fmt::format("settled {} as {} refused \"{}\" again {} follow {} released {} cancelled {} runs {}", r.settled,
                     static_cast<int>(r.outcome), r.refused ? r.refused->message : "", say(r.again), say(r.follow_ups),
                     say(r.released), say(r.cancelled), say(r.ended_runs));
}
std::string say(const ChangeReply& r) {
  return fmt::format("outcome {} {} released {} cancelled {} runs {}", static_cast<int>(r.outcome), say(r.job),
                     say(r.released), say(r.cancelled), say(r.ended_runs));
}
std::string say(const OnceReply& r) {
  return fmt::format("once {}: {} {} {}", static_cast<int>(r.how), say(r.puts), say(r.settlements), say(r.changes));
}
std::string say(const FireReply& r) { return fmt::format("fired {} v{} {}", r.fired, r.version, say(r.jobs)); }
template <class T>
std::string say(const Result<T>& result) {
  if (!result) return fmt::format("{}: {}", to_string(result.error().code), result.error().message);
  if constexpr (std::is_void_v<T>) {
    return "ok";
  } else {
    return say(*result);
  }
}

// --- calls -----------------------------------------------------------------------------------------------------------

enum class Kind {
  put,
  lease,
  settle,
  renew,
  change,
  shelve,
  prune,
  configure,
  erase_queue,
  once,
  prune_requests,
  look,
  reopen,
  crash,
  schedule,
  unschedule,
  fire,
  write_output
};
constexpr std::pair<Kind, int> kWeights[] = {
    {Kind::put, 20},        {Kind::lease, 20}, {Kind::settle, 20},        {Kind::renew, 3}, {Kind::change, 10},
    {Kind::shelve, 4},      {Kind::prune, 3},  {Kind::configure, 2},      {Kind::look, 6},  {Kind::reopen, 1},
    {Kind::erase_queue, 2}, {Kind::once, 10},  {Kind::prune_requests, 2}, {Kind::crash, 2}, {Kind::schedule, 10},
    {Kind::unschedule, 2},  {Kind::fire, 20},  {Kind::write_output, 3}};
constexpr std::string_view kNames[] = {
    "put",  "lease",          "settle", "renew",  "change", "shelve",   "prune",      "configure", "erase queue",
    "once", "prune requests", "look",   "reopen", "crash",  "schedule", "unschedule", "fire",      "write output"};

// What it asks for is drawn from its own seed, so that others can be left out.
struct SequenceCall {
  Kind kind;
  std::uint64_t seed;
};

std::vector<SequenceCall> draw(std::uint64_t seed) {
  Random random(seed);
  int total = 0;
  for (const auto& [kind, weight] : kWeights) total += weight;
  std::vector<SequenceCall> calls;
  for (int i = 0; i < kCallsInSequence; ++i) {
    auto at = static_cast<int>(random.below(static_cast<std::uint64_t>(total)));
    std::size_t chosen = 0;
    while (at >= kWeights[chosen].second) at -= kWeights[chosen++].second;
    calls.push_back({kWeights[chosen].first, random.next()});
  }
  return calls;
}

// Where stores are made and removed.
struct StoreServer {
  std::function<std::string()> new_store;  // its URL
  std::function<void(const std::string&)> drop_store;
};

class Pair {
 public:
  // Of a file that is as `empty` at first, or of a server.
  Pair(EventLoop& loop, const TemporaryFolder& folder, const std::string& empty)
      : loop_(loop), folder_(folder), file_(next_file()) {
    fs::copy_file(empty, file_, fs::copy_options::overwrite_existing);
    open();
  }
  Pair(EventLoop& loop, const TemporaryFolder& folder, const StoreServer& server)
      : loop_(loop), folder_(folder), server_(&server), url_(server.new_store()) {
    open();
  }
  ~Pair() {
    if (store_ != nullptr) (void)store_->close();
    if (!file_.empty()) fs::remove(file_);
    store_.reset();
    if (server_ != nullptr) server_->drop_store(url_);
  }

  // What differed; empty when nothing did.
  std::string run(const std::vector<SequenceCall>& calls, std::vector<std::string>* log = nullptr) {
    for (const SequenceCall& call : calls) {
      asked_ = std::string(kNames[static_cast<std::size_t>(call.kind)]);
      Random random(call.seed);
      now_ += std::chrono::milliseconds(random.below(3'000));
      differs_.clear();
      act(call.kind, random);
      if (log != nullptr) log->push_back(asked_ + "\n      -> " + said_);
      if (!differs_.empty()) return differs_;
    }
    asked_ = "at the end";
    differs_.clear();
    compare_all();
    return differs_;
  }

 private:
  std::string next_file() {
    static int number = 0;
    return folder_.file("s" + std::to_string(number++ % 4) + ".db");
  }
  void open() {
    auto opened = open_store(url_.empty() ? "sqlite:" + file_ : url_, {.sync = SyncMode::off});
    if (!opened) throw std::runtime_error(opened.error().message);
    store_ = std::move(*opened);
  }
  template <class Ask>
  void both(Ask ask) {
    const std::string expected = say(loop_.run_until_complete(ask(reference_)));
    said_ = say(loop_.run_until_complete(ask(*store_)));
    if (said_ != expected) differs_ += fmt::format("{}\n  reference: {}\n  file:      {}\n", asked_, expected, said_);
    const std::string in_memory = say(loop_.run_until_complete(ask(*memory_)));
    if (in_memory != expected)
      differs_ += fmt::format("{}\n  reference: {}\n  memory:    {}\n", asked_, expected, in_memory);
  }

  // Many at once: one turn of the loop, one transaction.
  using Ask = std::function<Coro<std::string>(Store&)>;
  template <class T>
  static Coro<std::string> told(Coro<Result<T>> call) {
    const auto result = co_await std::move(call);
    co_return say(result);
  }
  Coro<std::vector<std::string>> told_all(Store& store, const std::vector<Ask>& asks) {
    std::vector<Task<std::string>> calls;
    for (const Ask& ask : asks) calls.push_back(loop_.create_task(ask(store)));
    std::vector<std::string> said;
    for (auto& call : calls) said.push_back(co_await call);
    co_return said;
  }
  void both(const std::vector<Ask>& asks) {
    const auto expected = loop_.run_until_complete(told_all(reference_, asks));
    const auto said = loop_.run_until_complete(told_all(*store_, asks));
    const auto in_memory = loop_.run_until_complete(told_all(*memory_, asks));
    said_ = fmt::format("{}", fmt::join(said, "\n         "));
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (in_memory[i] != expected[i]) {
        differs_ +=
            fmt::format("{}, number {}\n  reference: {}\n  memory:    {}\n", asked_, i, expected[i], in_memory[i]);
      }
      if (said[i] == expected[i]) continue;
      differs_ += fmt::format("{}, number {}\n  reference: {}\n  file:      {}\n", asked_, i, expected[i], said[i]);
    }
  }

  static JobId id(Random& random) { return random.below(14); }
  // Chosen by callers only, or where their last choice leaves the store's own ids.
  static JobId far_id(Random& random) {
    return random.chance(0.3) ? kMostJobId - random.below(2) : kMostCountedId + random.below(4);
  }
  static std::string word(Random& random, std::uint64_t kinds) {
    const auto drawn = random.below(kinds + 1);
    return drawn == 0 ? "" : std::string(1, static_cast<char>('a' + drawn - 1));
  }
  WallTime time(Random& random) {
    if (random.chance(0.03)) {
      constexpr WallTime kOdd[] = {WallTime{-5s}, WallTime{std::chrono::microseconds{300}}, WallTime::max()};
      return kOdd[random.below(std::size(kOdd))];
    }
    if (random.chance(0.5)) return {};
    return now_ + std::chrono::milliseconds(random.between(-2'000, 6'000)) +
           std::chrono::microseconds(random.below(1'000));
  }
  PutRequest request(Random& random) {
    PutRequest request{.set_aside = random.chance(0.3), .waits_for_those_before = random.chance(0.1)};
    NewJob& job = request.job;
    if (random.chance(0.15)) job.id = id(random);
    if (random.chance(0.02)) job.id = far_id(random);
    if (random.chance(0.15)) job.name = word(random, 3);
    job.queue = random.chance(0.7) ? "q" : "r";
    job.key = word(random, 2);
    if (random.chance(0.4)) job.unique = word(random, 2);
    job.unique_policy = static_cast<UniquePolicy>(random.below(3));
    job.run_again = random.chance(0.5);
    job.priority = static_cast<std::int32_t>(random.between(-2, 2));
    job.due_at = time(random);
    job.function = word(random, 2);
    job.payload = word(random, 5);
    job.max_attempts = static_cast<std::uint32_t>(random.below(3));
    if (random.chance(0.3)) job.lease_time = std::chrono::microseconds(random.between(-1, 3'000));
    if (random.chance(0.35)) {
      for (auto n = random.below(3); n > 0; --n) job.waits_for.push_back(1 + id(random) % 9);
    }
    if (random.chance(0.02)) job.waits_for.push_back(far_id(random));
    job.if_failed = random.chance(0.5) ? DependencyPolicy::run : DependencyPolicy::cancel;
    if (random.chance(0.12)) job.batch = 1 + id(random) % 9;
    // What no store takes.
    if (random.chance(0.01)) request.run = 1;
    if (random.chance(0.005)) job.name = std::string(600, 'n');
    if (random.chance(0.005)) job.id = ~JobId{0} - random.below(3);
    if (random.chance(0.005)) job.batch = job.id;
    return request;
  }
  std::vector<PutRequest> requests(Random& random, std::uint64_t most) {
    std::vector<PutRequest> all;
    for (auto n = random.below(most + 1); n > 0; --n) {
      all.push_back(request(random));
      const NewJob& job = all.back().job;
      asked_ += fmt::format(
          " [id {} \"{}\" {} k\"{}\" u\"{}\" {} again {} p{} due {} waits {} if {} batch {} aside {}]", job.id,
          job.name, job.queue, job.key, job.unique, static_cast<int>(job.unique_policy), job.run_again, job.priority,
          ms(job.due_at), job.waits_for, static_cast<int>(job.if_failed), job.batch, all.back().set_aside);
    }
    return all;
  }
  std::uint64_t token_of(JobId id, Random& random) {
    const auto record = *loop_.run_until_complete(reference_.get(id));
    const std::uint64_t right = record ? record->token : 0;
    return random.chance(0.85) ? right : random.below(token_ + 2);
  }
  std::vector<JobId> running() {
    std::vector<JobId> ids;
    for (const auto& record : *loop_.run_until_complete(reference_.list({.state = JobState::running}))) {
      ids.push_back(record.id);
    }
    return ids;
  }
  JobId likely_running(Random& random) {
    const auto ids = running();
    return ids.empty() || random.chance(0.1) ? id(random) : ids[random.below(ids.size())];
  }

  Change change(Random& random) {
    Change change{.id = random.chance(0.3) ? likely_running(random) : id(random),
                  .kind = static_cast<ChangeKind>(random.below(5)),
                  .at = now_,
                  .calendar_at = random.chance(0.5) ? time(random) : WallTime{},
                  .priority = static_cast<std::int32_t>(random.between(-3, 3)),
                  .due_at = time(random),
                  .keep = random.chance(0.5),
                  .error = word(random, 1)};
    if (random.chance(0.3)) change.keep = std::nullopt;
    asked_ += fmt::format(" {} kind {} due {} keep {}", change.id, static_cast<int>(change.kind), ms(change.due_at),
                          change.keep ? *change.keep ? "yes" : "no" : "by queue");
    return change;
  }

  std::vector<Settlement> settlements(Random& random) {
    std::vector<Settlement> settlements;
    for (auto n = 1 + random.below(2); n > 0; --n) {
      Settlement s{.id = likely_running(random), .outcome = static_cast<Outcome>(random.below(6)), .at = now_};
      s.token = token_of(s.id, random);
      if (random.chance(0.5)) s.calendar_at = time(random);
      s.due_at = time(random);
      if (random.chance(0.3)) s.priority = static_cast<std::int32_t>(random.between(-3, 3));
      s.keep = random.chance(0.4);
      s.result = word(random, 2);
      s.error = word(random, 2);
      s.worker = word(random, 1);
      asked_ += fmt::format(" {} t{} outcome {} due {} keep {}", s.id, s.token, static_cast<int>(s.outcome),
                            ms(s.due_at), s.keep);
      if (random.chance(0.3)) s.follow_ups = requests(random, 2);
      settlements.push_back(std::move(s));
    }
    return settlements;
  }
  OnceRequest once(Random& random) {
    OnceRequest request{.key = {word(random, 4), word(random, 1)}, .now = now_, .only_look = random.chance(0.1)};
    asked_ +=
        fmt::format(" \"{}\" \"{}\"{}", request.key.key, request.key.digest, request.only_look ? " only looks" : "");
    if (random.chance(0.6)) {
      for (PutRequest& put : requests(random, 3)) request.puts.emplace_back(std::move(put));
      if (random.chance(0.2)) request.puts.emplace_back(std::unexpected(Error{Errc::refused, word(random, 1)}));
      if (random.chance(0.3)) request.refusal = Refusal::whole;
    }
    if (random.chance(0.4)) request.settlements = settlements(random);
    if (random.chance(0.2)) request.refused.emplace_back(Error{Errc::too_large, "refused before"});
    if (random.chance(0.3)) request.changes.push_back(change(random));
    return request;
  }

  // Of some of so many puts; now and then of one that is not there, twice of one, or with a token that has been used.
  std::vector<PutLease> put_leases(Random& random, std::size_t puts) {
    std::vector<PutLease> leases;
    for (auto n = puts == 0 ? 0 : random.below(4); n > 0; --n) {
      PutLease& added = leases.emplace_back();
      added.place = random.below(puts + (random.chance(0.02) ? 1 : 0));
      added.lease = {id(random), ++token_, now_ + 10s, word(random, 2)};
      if (random.chance(0.7)) added.lease.at = now_;
      added.lease.by_id = random.chance(0.2);
      added.lease.remote = random.chance(0.3);
      asked_ += fmt::format(" put {} t{}", added.place, token_);
    }
    if (random.chance(0.02) && !leases.empty()) leases.back().lease.token = random.below(token_ + 1);
    return leases;
  }

  void act(Kind kind, Random& random) {
    switch (kind) {
      case Kind::put: {
        const auto jobs = requests(random, 3);
        if (random.chance(0.3)) {
          const auto leases = put_leases(random, jobs.size());
          return both([&](Store& store) { return store.put_and_lease(jobs, now_, leases); });
        }
        const Refusal refusal = random.chance(0.3) ? Refusal::whole : Refusal::alone;
        return both([&](Store& store) { return store.put(jobs, now_, refusal); });
      }
      case Kind::lease: {
        std::vector<LeaseRequest> leases;
        for (auto n = random.below(4); n > 0; --n) {
          leases.push_back({id(random), ++token_, now_ + 10s, word(random, 2)});
          LeaseRequest& lease = leases.back();
          if (random.chance(0.7)) lease.at = now_;
          lease.by_id = random.chance(0.2);
          lease.remote = random.chance(0.3);
          asked_ += fmt::format(" {} t{} {} at {}", lease.id, token_, lease.by_id ? "by id" : "", ms(lease.at));
        }
        if (random.chance(0.02) && !leases.empty()) leases.back().token = random.below(token_ + 1);
        return both([&](Store& store) { return store.lease(leases); });
      }
      case Kind::settle: {
        const auto settlements = this->settlements(random);
        return both([&](Store& store) { return store.settle(settlements); });
      }
      case Kind::renew: {
        std::vector<LeaseRequest> leases;
        for (auto n = random.below(3); n > 0; --n) {
          const JobId job = likely_running(random);
          leases.push_back({job, token_of(job, random), now_ + 20s, word(random, 2), {}, false, random.chance(0.3)});
          asked_ += fmt::format(" {} t{}", leases.back().id, leases.back().token);
        }
        return both([&](Store& store) { return store.renew(leases); });
      }
      case Kind::write_output: {
        const JobId job = likely_running(random);
        const std::uint64_t token = token_of(job, random);
        const std::string output = word(random, 2);
        asked_ += fmt::format(" {} t{}", job, token);
        return both([&](Store& store) { return store.write_output(job, token, output); });
      }
      case Kind::change: {
        std::vector<Change> changes;
        for (auto n = 1 + random.below(3); n > 0; --n) changes.push_back(change(random));
        return both([&](Store& store) { return store.change(changes); });
      }
      case Kind::shelve: {
        const std::vector<JobId> ids{id(random), id(random), random.chance(0.02) ? ~JobId{0} : id(random)};
        const auto shelf = static_cast<Shelf>(random.below(10) == 0 ? 2 : random.below(2));
        asked_ += fmt::format(" {} {}", ids, static_cast<int>(shelf));
        return both([&](Store& store) { return store.shelve(ids, shelf); });
      }
      case Kind::prune: {
        const auto queue = static_cast<QueueId>(random.below(3));
        const auto state = static_cast<JobState>(random.between(2, 5));
        const auto limit = random.below(4);
        return both([&](Store& store) -> Coro<Result<std::int64_t>> {
          const auto pruned = co_await store.prune(queue, state, now_ - 1s, limit);
          if (!pruned) co_return std::unexpected(pruned.error());
          co_return static_cast<std::int64_t>(*pruned);
        });
      }
      case Kind::configure: {
        QueueConfig config;
        config.ageing = std::chrono::seconds(random.below(3));
        if (random.chance(0.5)) config.keep_cancelled = 1h;
        const auto queue = static_cast<QueueId>(random.below(3));
        asked_ += fmt::format(" {} {}", queue, to_json(config));
        return both([&](Store& store) { return store.configure(queue, config); });
      }
      case Kind::erase_queue: {
        const auto queue = static_cast<QueueId>(random.below(3));
        asked_ += fmt::format(" {}", queue);
        return both([&](Store& store) { return store.erase_queue(queue); });
      }
      case Kind::once: {
        const OnceRequest request = once(random);
        return both([&](Store& store) { return store.once(request); });
      }
      case Kind::prune_requests: {
        const auto most = random.below(4), limit = random.below(4);
        return both([&](Store& store) -> Coro<Result<std::int64_t>> {
          const auto pruned = co_await store.prune_requests(now_ - 5s, most, limit);
          if (!pruned) co_return std::unexpected(pruned.error());
          co_return static_cast<std::int64_t>(*pruned);
        });
      }
      case Kind::schedule:
      case Kind::unschedule:
      case Kind::fire: return act_on_schedules(kind, random);
      case Kind::look: return look(random);
      case Kind::reopen:
        (void)store_->close();
        store_.reset();
        open();
        return compare_old_leases();
      case Kind::crash: {
        if (file_.empty()) return act(Kind::reopen, random);  // what a death leaves is its own suite's
        // The files as they are while the store has them open.
        const std::string image = next_file();
        fs::copy_file(file_, image, fs::copy_options::overwrite_existing);
        fs::remove(image + "-wal");
        if (fs::exists(file_ + "-wal")) fs::copy_file(file_ + "-wal", image + "-wal");
        (void)store_->close();
        store_.reset();
        fs::remove(file_);
        file_ = image;
        open();
        return compare_old_leases();
      }
    }
  }

  // --- schedules
  WallTime planned(Random& random) { return random.chance(0.1) ? WallTime::max() : time(random); }
  SchedulePlace place(Random& random) {
    return {planned(random), time(random), random.below(3), random.below(3), random.below(3), random.chance(0.2)};
  }
  std::vector<PutSchedule> schedules(Random& random) {
    std::vector<PutSchedule> all;
    for (auto n = random.below(4); n > 0; --n) {
      PutSchedule& wanted = all.emplace_back();
      wanted.name = random.chance(0.02) ? "" : std::string(1, static_cast<char>('a' + random.below(4)));
      wanted.trigger = word(random, 2);
      wanted.definition = word(random, 2);
      wanted.place = place(random);
      wanted.policy = static_cast<ConflictPolicy>(random.below(3));
      if (random.chance(0.3)) {
        const auto there = *loop_.run_until_complete(reference_.find_schedule(wanted.name));
        wanted.made_from = there && random.chance(0.8) ? there->version : random.below(5);
      }
      asked_ += fmt::format(" [{} policy {} from {}]", wanted.name, static_cast<int>(wanted.policy), wanted.made_from);
    }
    return all;
  }
  // Mostly from where the schedule stands.
  FireRequest step(Random& random) {
    const auto there = *loop_.run_until_complete(reference_.schedules({.texts = false}));
    FireRequest request{.id = random.below(5), .version = random.below(4), .place = place(random)};
    if (!there.empty() && random.chance(0.9)) {
      const StoredSchedule& now = there[random.below(there.size())];
      request.id = now.id;
      request.version = now.version - (random.chance(0.05) ? 1 : 0);
      request.place.entries = now.place.entries + (random.chance(0.03) ? 1 : 0);
    }
    const auto runs = random.chance(0.05) ? 25 : random.below(4);
    for (auto n = runs; n > 0; --n) {
      ScheduleRun& run = request.runs.emplace_back();
      run.number = ++request.place.entries;
      run.planned = planned(random);
      run.last_planned = time(random);
      run.count = random.below(3);
      run.fired_at = time(random);
      run.ended_at = time(random);
      run.error = word(random, 2);
      if (random.chance(0.7)) {
        PutRequest put = this->request(random);
        put.run = run.number;
        request.jobs.push_back(std::move(put));
      } else {
        run.outcome = static_cast<RunOutcome>(1 + random.below(5));
      }
    }
    if (random.chance(0.1)) {
      request.jobs.insert(request.jobs.begin() + static_cast<std::ptrdiff_t>(random.below(request.jobs.size() + 1)),
                          this->request(random));
    }
    const std::uint64_t last = request.place.entries - request.runs.size();
    if (random.chance(0.2) && last > 0) {
      const auto was = *loop_.run_until_complete(reference_.schedule_run(request.id, last));
      if (was && was->outcome != RunOutcome::running && was->job == 0) {
        request.amended = ScheduleRun{.number = last,
                                      .planned = planned(random),
                                      .count = 7,
                                      .outcome = random.chance(0.5) ? RunOutcome::missed : RunOutcome::skipped,
                                      .error = "again"};
      }
    }
    for (PutRequest& put : request.jobs) {
      const std::uint64_t before = put.run == 0 ? request.place.entries : put.run - 1;
      if (random.chance(0.3)) put.after_run = random.chance(0.03) ? before + 1 : random.below(before + 1);
    }
    asked_ += fmt::format(" [{} v{} entries {} of {} jobs {}]", request.id, request.version, request.place.entries,
                          request.runs.size(), request.jobs.size());
    return request;
  }
  void act_on_schedules(Kind kind, Random& random) {
    if (kind == Kind::schedule) {
      const auto wanted = schedules(random);
      return both([&](Store& store) { return store.put_schedules(wanted); });
    }
    if (kind == Kind::fire) {
      std::vector<FireRequest> requests;
      for (auto n = 1 + random.below(3); n > 0; --n) requests.push_back(step(random));
      return both([&](Store& store) { return store.fire(requests, now_); });
    }
    const std::vector<ScheduleId> ids{random.below(8), random.below(8)};
    asked_ += fmt::format(" {}", ids);
    both([&](Store& store) -> Coro<Result<std::int64_t>> {
      const auto erased = co_await store.erase_schedules(ids);
      if (!erased) co_return std::unexpected(erased.error());
      co_return static_cast<std::int64_t>(*erased);
    });
  }

  void look(Random& random) {
    std::vector<Ask> asks;
    const auto queue = static_cast<QueueId>(random.below(3));
    const auto limit = random.below(5);
    const Rank rank{static_cast<std::int32_t>(random.between(-3, 3)), id(random)};
    const std::string key = word(random, 2);
    const WallTime after = time(random);
    for (const Shelf shelf : {Shelf::ready, Shelf::set_aside, Shelf::delayed}) {
      const ShelfRead read{.shelf = shelf, .after = rank, .due_after = {after, rank.id}, .limit = limit};
      asks.push_back([=](Store& store) { return told(store.read_shelf(queue, read, key)); });
    }
    asks.push_back([=](Store& store) { return told(store.keys_set_aside(queue, key, limit)); });
    asks.push_back([=](Store& store) { return told(store.count_before(queue, rank, limit)); });
    asks.push_back([=](Store& store) { return told(store.find_name(key)); });
    const std::vector<JobId> some{id(random), id(random)};
    asks.push_back([=](Store& store) { return told(store.find_waiting(some)); });
    JobFilter filter{.after = rank.id, .limit = limit, .payloads = false};
    if (random.chance(0.5)) filter.queue = "q";
    if (random.chance(0.7)) filter.state = static_cast<JobState>(random.below(6));
    if (random.chance(0.3)) filter.key = key;
    asks.push_back([=](Store& store) { return told(store.list(filter)); });
    const ScheduleFilter some_schedules{
        .after = random.below(6), .limit = random.below(4), .texts = random.chance(0.5)};
    asks.push_back([=](Store& store) { return told(store.schedules(some_schedules)); });
    asks.push_back([=](Store& store) { return told(store.find_schedule(key)); });
    asks.push_back([=](Store& store) { return told(store.load_schedules({rank.id, 1, 2})); });
    asks.push_back([=](Store& store) { return told(store.schedule_runs(rank.id, limit)); });
    asks.push_back([=](Store& store) { return told(store.schedule_output(rank.id)); });
    const ScheduleLook closer{.id = rank.id, .newest_left_out = static_cast<std::uint32_t>(limit), .most = 1 + limit};
    asks.push_back([=](Store& store) { return told(store.look_at_schedules({closer, {.id = 1}})); });
    both(asks);
  }

  void compare_old_leases() {
    std::string expected;
    for (const auto& record : *loop_.run_until_complete(reference_.list({.state = JobState::running}))) {
      expected += fmt::format("{} t{} {} {} {}; ", record.id, record.token, ms(record.lease_until), record.worker,
                              reference_.is_remote(record.id));
    }
    std::string found;
    for (const OldLease& lease : *loop_.run_until_complete(store_->old_leases())) {
      found += fmt::format("{} t{} {} {} {}; ", lease.id, lease.token, ms(lease.until), lease.worker, lease.remote);
    }
    said_ = found;
    if (found != expected) differs_ = fmt::format("old leases\n  reference: {}\n  file:      {}\n", expected, found);
  }

  void compare_all() {
    std::vector<Ask> asks;
    asks.push_back([=](Store& store) { return told(store.queues()); });
    asks.push_back([=](Store& store) { return told(store.list({.limit = 1'000})); });
    asks.push_back([=](Store& store) { return told(store.counts()); });
    for (QueueId queue = 1; queue <= 2; ++queue) {
      asks.push_back([=](Store& store) { return told(store.keys_set_aside(queue, std::nullopt, 99)); });
      for (const Shelf shelf : {Shelf::ready, Shelf::set_aside, Shelf::delayed}) {
        for (const std::string key : {"", "a", "b"}) {
          asks.push_back(
              [=](Store& store) { return told(store.read_shelf(queue, {.shelf = shelf, .limit = 99}, key)); });
        }
      }
    }
    asks.push_back([=](Store& store) { return told(store.schedules({})); });
    for (JobId id = 1; id < 20; ++id) {
      asks.push_back([=](Store& store) { return told(store.schedule_runs(id)); });
      asks.push_back([=](Store& store) { return told(store.schedule_output(id)); });
      asks.push_back([=](Store& store) { return told(store.history(id)); });
      asks.push_back([=](Store& store) { return told(store.waits_for(id, 99)); });
    }
    both(asks);
  }

  EventLoop& loop_;
  const TemporaryFolder& folder_;
  std::string file_;
  const StoreServer* const server_ = nullptr;
  const std::string url_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Store> memory_ = std::move(*open_store("memory:"));
  ReferenceStore reference_;
  WallTime now_ = kFirstTime;
  std::uint64_t token_ = 0;
  std::string asked_;
  std::string said_;
  std::string differs_;
};

class StoreSequences : public OnVirtualLoop, public testing::WithParamInterface<std::uint64_t> {
 protected:
  StoreSequences() { EXPECT_TRUE((*open_store("sqlite:" + empty_))->close()); }

  std::string differs(const std::vector<SequenceCall>& calls, std::vector<std::string>* log = nullptr) {
    try {
      if (server_) return Pair(loop_, folder_, *server_).run(calls, log);
      return Pair(loop_, folder_, empty_).run(calls, log);
    } catch (const std::exception& error) {
      return error.what();
    }
  }
  // Leaves out calls for as long as it still fails.
  std::vector<SequenceCall> shrunk(std::vector<SequenceCall> calls) {
    for (std::size_t size = calls.size() / 2; size > 0; size /= 2) {
      for (std::size_t from = 0; from + size <= calls.size();) {
        std::vector<SequenceCall> fewer = calls;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(from),
                    fewer.begin() + static_cast<std::ptrdiff_t>(from + size));
        if (differs(fewer).empty()) {
          from += size;
        } else {
          calls = std::move(fewer);
        }
      }
    }
    return calls;
  }

  void compare(std::uint64_t sequences) {
    const std::uint64_t from = from_environment("ARGIOPE_FIRST_SEED", 0);
    for (std::uint64_t seed = from + GetParam(); seed < from + sequences; seed += kShares) {
      const auto calls = draw(seed);
      if (const std::string what = differs(calls); what.empty()) {
        continue;
      } else {
        fmt::print("seed {} differs, and is being shrunk: {}\n", seed, what);
        std::fflush(stdout);
      }
      const auto fewest = shrunk(calls);
      std::vector<std::string> log;
      const std::string what = differs(fewest, &log);
      FAIL() << "seed " << seed << "\n  " << fmt::format("{}", fmt::join(log, "\n  ")) << "\n" << what;
    }
  }

  // Shares of the seeds, so that they can run beside each other.
  static constexpr std::uint64_t kShares = 4;
  TemporaryFolder folder_;
  const std::string empty_ = folder_.file("empty.db");
  std::optional<StoreServer> server_;  // none: files are compared
};

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ARGIOPE_SANITIZED
#endif
#endif
#ifdef ARGIOPE_SANITIZED
constexpr std::uint64_t kSequences = 400;
#else
constexpr std::uint64_t kSequences = 4'000;
#endif
// A round trip takes as long as ten calls of a file.
constexpr std::uint64_t kPostgresSequences = 100, kRedisSequences = 200;
INSTANTIATE_TEST_SUITE_P(Shares, StoreSequences, testing::Range(std::uint64_t{0}, std::uint64_t{4}));

TEST_P(StoreSequences, TheFileAgreesWithTheReference) { compare(from_environment("ARGIOPE_SEQUENCES", kSequences)); }

TEST_P(StoreSequences, PostgresAgreesWithTheReference) {
  PostgresServer* const server = PostgresServer::shared();
  if (server == nullptr) GTEST_SKIP() << PostgresServer::kNotThere;
  server_ = {[server] { return server->new_store(); },
             [server](const std::string& where) { server->drop_store(where); }};
  compare(from_environment("ARGIOPE_POSTGRES_SEQUENCES", kPostgresSequences));
}

TEST_P(StoreSequences, RedisAgreesWithTheReference) {
  RedisServer* const server = RedisServer::shared();
  if (server == nullptr) GTEST_SKIP() << RedisServer::kNotThere;
  server_ = {[server] { return server->new_store(); }, [server](const std::string&) { server->ask("FLUSHALL"); }};
  compare(from_environment("ARGIOPE_REDIS_SEQUENCES", kRedisSequences));
}

}  // namespace
}  // namespace argiope
