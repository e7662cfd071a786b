// The SQLite store: durable puts of 64 clients, and leases with their ends in batches, in jobs a second; schedules
// added and fired, in schedules a second, there and in memory. Of a store on a server, which has a URL, its jobs alone.
// Usage: bench_store [jobs queued besides, 10000] [file or URL, store-bench.db] [seconds each, 3]
#include "argiope/store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "bench/must.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;
using bench::stop;
using namespace std::chrono_literals;

constexpr int kClients = 64;
constexpr int kRounds = 3;

void remove_files(const std::string& file) {
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file + suffix);
}

class Bench {
 public:
  Bench(EventLoop& loop, const std::string& where, Duration time) : loop_(loop), time_(time) {
    auto opened = open_store(where);
    if (!opened) stop(opened.error());
    store_ = std::move(*opened);
  }

  Coro<void> fill(std::size_t jobs) {
    for (std::size_t i = 0; i < jobs; i += 10'000) co_await put_many(std::min<std::size_t>(10'000, jobs - i), -1);
  }

  // Each client has so many jobs on their way at a time.
  Coro<double> puts_of_clients(std::size_t size) {
    const TimePoint start = loop_.time();
    put_ = 0;
    std::vector<Task<void>> clients;
    for (int i = 0; i < kClients; ++i) clients.push_back(loop_.create_task(client(start + time_, size)));
    for (auto& client : clients) co_await client;
    co_return static_cast<double>(put_) / to_seconds(loop_.time() - start);
  }

  // One worker with `size` jobs at a time, twice over, so that one batch is worked on while the other syncs.
  Coro<double> leases(std::size_t size) {
    const auto jobs = static_cast<std::size_t>(to_seconds(time_) * 220'000) / size * size;
    for (std::size_t i = 0; i < jobs; i += 10'000) co_await put_many(std::min<std::size_t>(10'000, jobs - i), 1);
    next_ = last_ - jobs + 1;
    const TimePoint start = loop_.time();
    auto first = loop_.create_task(worker(size));
    auto second = loop_.create_task(worker(size));
    co_await first;
    co_await second;
    co_return static_cast<double>(jobs) / to_seconds(loop_.time() - start);
  }

 private:
  static PutRequest request(std::int32_t priority) {
    PutRequest request;
    request.job.queue = "bench";
    request.job.key = "host.example";
    request.job.priority = priority;
    request.job.payload = "{\"url\":\"http://host.example/some/path\",\"depth\":3,\"from\":\"a page of that host\"}";
    return request;
  }
  Coro<void> put_many(std::size_t jobs, std::int32_t priority) {
    std::vector<PutRequest> batch;
    for (std::size_t i = 0; i < jobs; ++i) batch.push_back(request(priority));
    auto put = co_await store_->put(std::move(batch), kNow);
    if (!put) stop(put.error());
    last_ = put->back()->id;
  }
  Coro<void> client(TimePoint until, std::size_t size) {
    while (loop_.time() < until) {
      std::vector<PutRequest> jobs;
      for (std::size_t i = 0; i < size; ++i) jobs.push_back(request(0));
      auto put = co_await store_->put(std::move(jobs), kNow);
      if (!put) stop(put.error());
      put_ += size;
    }
  }
  Coro<void> worker(std::size_t size) {
    while (next_ <= last_) {
      std::vector<LeaseRequest> wanted;
      std::vector<Settlement> done;
      for (std::size_t i = 0; i < size; ++i) {
        wanted.push_back({next_, ++token_, kNow + 60s, "worker"});
        done.push_back({.id = next_++, .token = token_, .outcome = Outcome::done, .at = kNow});
      }
      auto leased = co_await store_->lease(std::move(wanted));
      if (!leased) stop(leased.error());
      auto settled = co_await store_->settle(std::move(done));
      if (!settled) stop(settled.error());
      for (const SettleReply& reply : *settled) {
        if (!reply.settled) stop({Errc::internal, "a job was not settled"});
      }
    }
  }

  static constexpr WallTime kNow{1'800'000'000s};
  EventLoop& loop_;
  const Duration time_;
  std::unique_ptr<Store> store_;
  std::uint64_t put_ = 0;
  std::uint64_t token_ = 0;
  JobId next_ = 0;
  JobId last_ = 0;
};

// Schedules that share their definition, and are all due together.
class ScheduleBench {
 public:
  // `where`: as open_store().
  ScheduleBench(EventLoop& loop, const std::string& where, std::size_t schedules) : loop_(loop), schedules_(schedules) {
    auto opened = open_store(where);
    if (!opened) stop(opened.error());
    store_ = std::move(*opened);
  }

  Coro<double> add(std::size_t size) {
    std::vector<ScheduleId> all;
    for (const Place& place : places_) all.push_back(place.id);
    auto erased = co_await store_->erase_schedules(std::move(all));
    if (!erased) stop(erased.error());
    places_.clear();
    const TimePoint start = loop_.time();
    co_await twice([&] { return adder(size); });
    co_return static_cast<double>(places_.size()) / to_seconds(loop_.time() - start);
  }

  // Each of them once: its job put, its entry written, its place moved on.
  Coro<double> fire(std::size_t size) {
    next_ = 0;
    const TimePoint start = loop_.time();
    co_await twice([&] { return firer(size); });
    co_return static_cast<double>(next_) / to_seconds(loop_.time() - start);
  }

  // What was fired is done, so that each round finds the store as the one before.
  Coro<void> finish() {
    while (!jobs_.empty()) {
      std::vector<Change> changes;
      for (std::size_t i = 0; i < 10'000 && !jobs_.empty(); ++i, jobs_.pop_back()) {
        changes.push_back({.id = jobs_.back(), .kind = ChangeKind::erase, .at = kNow});
      }
      auto changed = co_await store_->change(std::move(changes));
      if (!changed) stop(changed.error());
    }
  }

 private:
  struct Place {
    ScheduleId id;
    std::uint64_t version;
    std::uint64_t entries;
  };
  // One batch is made while the other syncs.
  template <class Work>
  Coro<void> twice(Work work) {
    auto first = loop_.create_task(work());
    auto second = loop_.create_task(work());
    co_await first;
    co_await second;
  }
  Coro<void> adder(std::size_t size) {
    while (places_.size() + coming_ < schedules_) {
      std::vector<PutSchedule> batch;
      for (std::size_t i = 0; i < size; ++i) {
        batch.push_back({.name = fmt::format("job-{:08}", ++named_),
                         .trigger = R"({"every":"60s","from":12345})",
                         .definition = kDefinition,
                         .place = {.next = kNow}});
      }
      coming_ += size;
      auto added = co_await store_->put_schedules(std::move(batch));
      if (!added) stop(added.error());
      coming_ -= size;
      for (const PutScheduleReply& reply : *added) places_.push_back({reply.id, reply.version, 0});
    }
  }
  Coro<void> firer(std::size_t size) {
    while (next_ < places_.size()) {
      const std::size_t from = next_;
      next_ = std::min(places_.size(), from + size);
      std::vector<FireRequest> batch;
      batch.reserve(size);
      for (std::size_t i = from; i < next_; ++i) {
        Place& place = places_[i];
        FireRequest& request = batch.emplace_back();
        request.id = place.id;
        request.version = place.version++;
        request.place = {.next = kNow + 60s, .last = kNow, .fired = place.entries + 1, .entries = place.entries + 1};
        request.runs.push_back({.number = ++place.entries, .planned = kNow, .last_planned = kNow, .fired_at = kNow});
        PutRequest& put = request.jobs.emplace_back();
        put.job.queue = "bench";
        put.job.payload = "{\"url\":\"http://host.example/some/path\",\"depth\":3,\"from\":\"a page of that host\"}";
        put.run = place.entries;
      }
      auto fired = co_await store_->fire(std::move(batch), kNow);
      if (!fired) stop(fired.error());
      for (const Result<FireReply>& reply : *fired) {
        if (!reply || !reply->fired) stop({Errc::internal, "a schedule was not fired"});
        jobs_.push_back(reply->jobs.front().id);
      }
    }
  }

  static constexpr WallTime kNow{1'800'000'000s};
  static constexpr const char* kDefinition =
      R"({"queue":"bench","function":"fetch","payload":"a page","misfire_grace":"30s","coalesce":"latest","overlap":"skip"})";
  EventLoop& loop_;
  const std::size_t schedules_;
  std::unique_ptr<Store> store_;
  std::vector<Place> places_;
  std::vector<JobId> jobs_;
  std::size_t coming_ = 0;
  std::size_t next_ = 0;
  std::uint64_t named_ = 0;
};

void measure_schedules(EventLoop& loop, const std::string& where, std::string_view name, std::size_t schedules) {
  ScheduleBench bench(loop, where, schedules);
  for (const std::size_t size : {1'000u, 10'000u}) {
    std::vector<double> added, fired;
    for (int i = 0; i < kRounds; ++i) {
      added.push_back(loop.run_until_complete(bench.add(size)));
      fired.push_back(loop.run_until_complete(bench.fire(size)));
      loop.run_until_complete(bench.finish());
    }
    bench::report(fmt::format("schedules added by {}, {}", size, name), bench::median(added), "schedules/s");
    bench::report(fmt::format("schedules fired by {}, {}", size, name), bench::median(fired), "schedules/s");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t queued = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000;
  const std::string file = argc > 2 ? argv[2] : "store-bench.db";
  const Duration time = from_seconds(argc > 3 ? std::strtod(argv[3], nullptr) : 3);
  const bool has_server = file.find("://") != std::string::npos;
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  if (!has_server) remove_files(file);
  {
    Bench bench(loop, has_server ? file : "sqlite:" + file, time);
    loop.run_until_complete(bench.fill(queued));
    std::vector<double> puts, puts_by_16, small, large;
    for (int i = 0; i < kRounds; ++i) {
      puts.push_back(loop.run_until_complete(bench.puts_of_clients(1)));
      puts_by_16.push_back(loop.run_until_complete(bench.puts_of_clients(16)));
      small.push_back(loop.run_until_complete(bench.leases(256)));
      large.push_back(loop.run_until_complete(bench.leases(1'000)));
    }
    bench::report(fmt::format("durable put, 64 clients, {} queued", queued), bench::median(puts), "jobs/s");
    bench::report(fmt::format("durable put by 16, 64 clients, {} queued", queued), bench::median(puts_by_16), "jobs/s");
    bench::report(fmt::format("durable lease + done by 256, {} queued", queued), bench::median(small), "jobs/s");
    bench::report(fmt::format("durable lease + done by 1000, {} queued", queued), bench::median(large), "jobs/s");
  }
  if (has_server) return 0;
  remove_files(file);
  measure_schedules(loop, "sqlite:" + file, "in a file, full sync", 100'000);
  remove_files(file);
  measure_schedules(loop, "memory:", "in memory", 200'000);
}
