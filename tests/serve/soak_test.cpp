// The whole daemon in virtual time, at Unix sockets: hours of clients of both protocols that come, go, vanish and ask
// twice, schedules, targets, notifications, pauses, reloads and restarts. Nothing that was acknowledged is lost,
// nothing is done twice but by a lost lease, what the daemon counts is what its clients have counted, memory stays flat
// and no descriptor is left.
//
// ARGIOPE_SOAK_HOURS says how many hours (default: some minutes), ARGIOPE_SOAK_SEED which. All of it is a function of
// the seed.
#include <gtest/gtest.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <boost/json.hpp>
#include <charconv>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/random.hpp"
#include "base/internal/rfc3339.hpp"
#include "serve/gate/gate.hpp"
#include "serve/internal/daemon.hpp"
#include "serve/soak_clients.hpp"
#include "sockets_in_virtual_time.hpp"
#include "store/jobs/memory_store.hpp"
#include "support/environment.hpp"
#include "support/open_engine.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using boost::json::value;

constexpr std::string_view kQueues[] = {"mail", "films", "beans", "ticks"};
constexpr int kBeansTtr = 30;
constexpr WallTime kStart{std::chrono::seconds{1'800'000'000}};
// What a request with an Idempotency-Key leaves in the store for a day, at most.
constexpr std::size_t kKeptOfKey = 1'000;
// And a change in the audit.
constexpr std::size_t kKeptOfChange = 700;
// What else is kept of hours, such as histories.
constexpr std::size_t kSlackBytes = 512 * 1024;

// What the clients know of each job. Made beforehand, so that it does not grow while memory is measured.
class Ledger {
 public:
  explicit Ledger(std::size_t most) : jobs_(most) {}

  std::uint64_t next() {
    if (made_ + 1 >= jobs_.size()) throw std::length_error("the ledger is full");
    return ++made_;
  }
  // That was acknowledged; or it may be there, because the answer was lost.
  void put(std::uint64_t job) { jobs_[job].put = kYes, ++puts; }
  void perhaps_put(std::uint64_t job) { jobs_[job].put = kPerhaps, ++unknown; }
  // A worker was given it.
  void given(std::uint64_t job) {
    Job& its = jobs_.at(job);
    ++its.runs;
    if (its.put == kNo) complain(job, "was given to a worker and never put");
    if (its.done == kYes) complain(job, "was given to a worker after it was done");
    if (its.runs > 1 + its.excuses) complain(job, "was given twice without a lost lease");
  }
  // It may be given once more.
  void excuse(std::uint64_t job) { ++jobs_[job].excuses; }
  void done(std::uint64_t job) {
    if (jobs_[job].done == kYes) complain(job, "was done twice");
    jobs_[job].done = kYes;
    ++ends;
  }
  void perhaps_done(std::uint64_t job) {
    jobs_[job].done = kPerhaps;
    excuse(job);
    ++unknown;
  }

  std::vector<std::uint64_t> not_done() const {
    std::vector<std::uint64_t> found;
    for (std::uint64_t job = 1; job <= made_; ++job) {
      if (jobs_[job].put == kYes && jobs_[job].done == kNo) found.push_back(job);
    }
    return found;
  }
  const std::vector<std::string>& complaints() const { return complaints_; }
  void complain(std::uint64_t job, std::string_view what) {
    if (complaints_.size() < 20) complaints_.push_back("job " + std::to_string(job) + " " + std::string(what));
  }

  std::uint64_t puts = 0, ends = 0, unknown = 0;

 private:
  enum Known : std::uint8_t { kNo, kPerhaps, kYes };
  struct Job {
    Known put = kNo, done = kNo;
    std::uint16_t runs = 0, excuses = 0;
  };
  std::vector<Job> jobs_;
  std::uint64_t made_ = 0;
  std::vector<std::string> complaints_;
};

// What the daemon's totals of one queue should be, since the daemon began.
struct Counted {
  std::uint64_t added = 0, done = 0, retried = 0, buried = 0;
};

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

std::uint64_t number_in(std::string_view payload) {
  std::uint64_t number = 0;
  std::from_chars(payload.data(), payload.data() + payload.size(), number);
  return number;
}

std::string json_list(const std::vector<std::string>& entries) {
  std::string all = "[";
  for (const std::string& entry : entries) all += (all.size() > 1 ? "," : "") + entry;
  return all + "]";
}

class Soak {
 public:
  Soak(std::uint64_t seed, Duration length)
      : length_(length), random_(seed), ledger_(static_cast<std::size_t>(to_seconds(length) * 60) + 20'000) {
    ticks_.resize(static_cast<std::size_t>(2 * to_seconds(length)) + 20'000);
  }
  ~Soak() {
    loop_.cancel_all_tasks();
    for (int i = 0; i < 100; ++i) loop_.run_once(TimePoint::min());
  }

  void run() { loop_.run_until_complete(live()); }
  const Trace& trace() const { return trace_; }

 private:
  // --- the daemon

  std::string http_path() const { return folder_.file("http"); }
  std::string beanstalkd_path() const { return folder_.file("beanstalkd"); }

  Coro<void> start() {
    engine_ = co_await open_engine(
        store_, {.new_queue = {.keep_done = 1min}, .blame_old_leases = false, .seed = random_.next()});
    ServeOptions options;
    options.store = "memory:";
    options.http = {{.host = {}, .port = 0, .unix_path = http_path()}};
    options.beanstalkd = {{.host = {}, .port = 0, .unix_path = beanstalkd_path()}};
    DaemonContext context{.run_id = ++run_id_, .version = "soak", .worker_name = "soak"};
    daemon_ = std::make_unique<Daemon>(*engine_, std::move(options), std::move(context));
    EXPECT_TRUE(co_await daemon_->set_notify({rule()}));
    EXPECT_TRUE(daemon_->listen());
    daemon_->targets().set(targets());
    engine_->scheduler().start();
    counted_ = {};
  }
  Coro<void> stop() {
    auto stopping = loop_.create_task(daemon_->stop(), "stop");
    EXPECT_TRUE(co_await engine_->scheduler().shutdown(true));
    co_await stopping;
    daemon_.reset();
    EXPECT_TRUE(co_await engine_->close());
    engine_.reset();
    store_.reopen();
  }
  Coro<void> restart() {
    is_counted_ = false;
    co_await stop();
    co_await sleep(from_seconds(random_.unit() * 2));
    co_await start();
    ++restarts_;
  }

  NotifyRule rule() const {
    NotifyRule rule;
    rule.name = "ops";
    rule.on = 1u << static_cast<int>(Trouble::buried) | 1u << static_cast<int>(Trouble::expired) |
              1u << static_cast<int>(Trouble::depth);
    rule.depth = 1'000'000;
    rule.wait = 5s;
    rule.interval = reloads_ % 2 == 0 ? 30s : 40s;
    return rule;
  }
  std::vector<QueueTarget> targets() {
    std::vector<QueueTarget> targets;
    targets.push_back({.queue = "films",
                       .workers = 3,
                       .run = [this](JobContext& context) { return run_film(context); },
                       .made_from = reloads_ % 3 == 0 ? "one" : "two"});
    targets.push_back({.queue = rule().queue(),
                       .workers = 1,
                       .run = [this](JobContext& context) { return take_notice(context); },
                       .made_from = "notices"});
    return targets;
  }
  Coro<void> run_film(JobContext& context) {
    const std::uint64_t job = number_in(context.payload());
    ledger_.given(job);
    ledger_.excuse(job);  // the daemon may stop meanwhile, and a function may fail
    co_await sleep(from_seconds(film_chance_.unit() * 4));
    if (film_chance_.chance(0.05)) throw RetryJob("no luck", 1s);
    context.set_result("output of " + std::string(context.payload()));
  }
  Coro<void> take_notice(JobContext& context) {
    EXPECT_TRUE(value(boost::json::parse(context.payload())).is_object());
    ++notices_;
    co_return;
  }

  // --- a life

  Coro<void> live() {
    co_await start();
    co_await configure();
    begin_clients();
    for (std::size_t segment = 0; segment < segments(); ++segment) {
      const Duration half = length_ / static_cast<std::int64_t>(2 * segments());
      co_await sleep(half);
      if (restarts_in(segment) && segment % 2 == 1) co_await restart();
      co_await sleep(half);
      co_await rest();
      co_await check(segment);
      if (restarts_in(segment)) {
        co_await restart();  // nothing is under way: what is counted from here on is exact
        is_counted_ = true;
      }
      wake();
    }
    co_await rest();
    ended_ = true;
    std::exchange(go_on_event_, std::make_shared<Event>())->set();
    while (clients_ > 0) co_await sleep(1s);
    check_ticks();
    co_await stop();
    EXPECT_GT(notices_, 0u);
    tell();
  }

  // In the first third, and then one daemon lives for all the rest.
  bool restarts_in(std::size_t segment) const { return segment < std::max<std::size_t>(2, segments() / 3); }
  // Between them all rest, and are compared.
  std::size_t segments() const { return length_ >= 1h ? static_cast<std::size_t>(to_seconds(length_) / 1200) : 3; }

  Coro<void> configure() {
    SoakHttp http = client();
    const auto set = [&](std::string target, std::string body) -> Coro<void> {
      const SoakReply reply = co_await http.ask("PUT", target, body);
      EXPECT_TRUE(reply) << reply.body;
    };
    co_await set("/v1/queues/mail",
                 R"({"lease_time_ms":60000,"max_lease_expiries":1000,"max_attempts":1000,"retry_first_ms":500,)"
                 R"("retry_longest_ms":5000,"keep_done_ms":60000,"key_concurrency":3})");
    co_await set("/v1/queues/films", R"({"keep_done_ms":60000,"max_attempts":1000})");
    co_await set("/v1/queues/beans", R"({"keep_done_ms":60000})");
    co_await set("/v1/queues/ticks", R"({"keep_done_ms":60000,"max_lease_expiries":1000})");
    co_await set("/v1/schedules/tick",
                 R"({"name":"tick","trigger":"@every 1s","coalesce":"all","most_catch_up":1000,"max_instances":1000,)"
                 R"("job":{"queue":"ticks","payload":"{planned_at}","fill_in":true}})");
  }

  // Clients end what they are about, and wait for wake(); first those that put, then, when nothing is left, the
  // workers.
  Coro<void> rest() {
    resting_ = true;
    while (idle_ < putters_) co_await sleep(1s);
    SoakHttp http = client();
    EXPECT_TRUE(co_await http.post("/v1/schedules/tick/pause", "{}"));
    for (int tries = 0;; ++tries) {
      if (co_await live_jobs(http) == 0) break;
      if (tries > 1000) throw std::runtime_error("jobs are left that nobody does");
      co_await sleep(2s);
    }
    workers_rest_ = true;
    while (idle_ < clients_) co_await sleep(1s);
    co_await sleep(5min);  // what is kept for a while is forgotten
  }
  void wake() {
    resting_ = workers_rest_ = false;
    std::exchange(go_on_event_, std::make_shared<Event>())->set();
    resume_ticks_ = true;
  }
  Coro<std::uint64_t> live_jobs(SoakHttp& http) {
    std::uint64_t left = 0;
    for (const std::string_view queue : kQueues) {
      const SoakReply reply = co_await http.get("/v1/queues/" + std::string(queue));
      if (!reply) continue;
      const value json = boost::json::parse(reply.body);
      for (const char* state : {"ready", "delayed", "running", "buried"}) {
        left += json.at("counts").at(state).to_number<std::uint64_t>();
      }
    }
    co_return left;
  }

  // --- what is true while all rest

  Coro<void> check(std::size_t segment) {
    SCOPED_TRACE("segment " + std::to_string(segment));
    EXPECT_EQ(ledger_.complaints(), std::vector<std::string>{});
    EXPECT_EQ(ledger_.not_done(), std::vector<std::uint64_t>{}) << "acknowledged and lost";
    {
      SoakHttp http = client();
      for (const std::string_view queue : {"mail", "films", "beans"}) co_await check_totals(http, std::string(queue));
    }
    co_await sleep(1s);  // its connection ends
    const std::size_t descriptors = open_descriptors();
    const std::size_t tasks = loop_.task_count();
    const auto memory = ::mallinfo2();
    const std::size_t bytes = memory.uordblks + memory.hblkhd;
    samples_.push_back(
        {.bytes = bytes, .keys = keys_, .changes = trace_.changes, .descriptors = descriptors, .tasks = tasks});
    if (segment == 0) first_ = samples_.back();
    EXPECT_EQ(descriptors, first_.descriptors);
    EXPECT_EQ(tasks, first_.tasks);
    // What fills up once has filled up when that daemon has lived for two of some hours' segments.
    const std::size_t base = segments() / 3 + 1;
    if (length_ < 1h || segment <= base) co_return;
    const Sample& then = samples_[base];
    const std::size_t kept = (keys_ - then.keys) * kKeptOfKey + (trace_.changes - then.changes) * kKeptOfChange;
    EXPECT_LT(bytes, then.bytes + kSlackBytes + kept) << "memory grows";
  }

  Coro<void> check_totals(SoakHttp& http, std::string queue) {
    const SoakReply reply = co_await http.get("/v1/queues/" + queue + "/stats");
    EXPECT_TRUE(reply) << reply.body;
    if (!reply || !is_counted_ || ledger_.unknown != unknown_before_) {
      unknown_before_ = ledger_.unknown;
      co_return;
    }
    ++totals_checked_;
    const value totals = boost::json::parse(reply.body).at("totals");
    const Counted& ours = counted_[queue];
    const auto says = [&](const char* name) { return totals.at(name).to_number<std::uint64_t>(); };
    EXPECT_EQ(says("added"), ours.added) << queue;
    if (queue == "mail") {
      EXPECT_EQ(says("done"), ours.done);
      EXPECT_EQ(says("retried"), ours.retried);
      EXPECT_EQ(says("buried"), ours.buried);
    }
    if (queue == "films") {
      EXPECT_EQ(says("done"), ours.done);
    }
  }

  // Each second from the first to the last was run once: what it missed while it was paused, and while no daemon was
  // there, is made up for.
  void check_ticks() {
    std::size_t runs = 0, last = 0;
    for (std::size_t second = 0; second < ticks_.size(); ++second) {
      EXPECT_LE(ticks_[second], 1) << "second " << second << " was run twice";
      if (ticks_[second] == 0) continue;
      if (runs++ > 0) EXPECT_EQ(second, last + 1) << "left out";
      last = second;
    }
    EXPECT_GT(static_cast<double>(runs), to_seconds(length_));
  }

  void tell() const {
    std::printf(
        "%.1f h: %llu jobs put, %llu done, %llu answers lost, %llu keys, %llu notices, %d restarts, %d reloads, "
        "%llu answers, totals compared %d times; memory",
        to_seconds(length_) / 3600, static_cast<unsigned long long>(ledger_.puts),
        static_cast<unsigned long long>(ledger_.ends), static_cast<unsigned long long>(ledger_.unknown),
        static_cast<unsigned long long>(keys_), static_cast<unsigned long long>(notices_), restarts_, reloads_,
        static_cast<unsigned long long>(trace_.notes()), totals_checked_);
    for (const Sample& sample : samples_) std::printf(" %.2f", static_cast<double>(sample.bytes) / (1 << 20));
    std::printf(" MB\n");
  }

  // --- clients

  SoakHttp client() { return {http_path(), trace_}; }

  using Round = Coro<void> (Soak::*)(Random& random, std::size_t who);
  void begin_clients() {
    for (std::size_t who = 0; who < 3; ++who) {
      begin(&Soak::put_jobs, who, false);
      begin(&Soak::put_beans, who, false);
      begin(&Soak::work, who, true);
      begin(&Soak::work_beans, who, true);
    }
    begin(&Soak::put_films, 0, false);
    begin(&Soak::give_up_polls, 0, false);
    begin(&Soak::listen, 0, false);
    begin(&Soak::listen, 1, false);
    begin(&Soak::look_around, 0, false);
    begin(&Soak::change_things, 0, false);
    begin(&Soak::take_ticks, 0, true);
    begin(&Soak::kick, 0, true);
  }
  void begin(Round round, std::size_t who, bool is_worker) {
    ++clients_;
    if (!is_worker) ++putters_;
    loop_.create_task(repeat(round, who, is_worker, random_.fork()), "client");
  }
  Coro<void> repeat(Round round, std::size_t who, bool is_worker, Random random) {
    while (!ended_) {
      co_await (this->*round)(random, who);
      if (!(is_worker ? workers_rest_ : resting_)) continue;
      ++idle_;
      const auto event = go_on_event_;
      if (ended_) break;
      co_await event->wait();
      --idle_;
    }
    --clients_;
  }
  static Coro<void> pause(Random& random, double longest_s) { co_await sleep(from_seconds(random.unit() * longest_s)); }

  std::string key_field(std::uint64_t job) {
    ++keys_;
    return "Idempotency-Key: key " + std::to_string(job) + "\r\n";
  }
  std::string new_job(std::string_view queue, std::uint64_t job, Random& random) {
    return R"({"queue":")" + std::string(queue) + R"(","payload":")" + std::to_string(job) + " " +
           std::string(random.below(300), 'x') + R"(","key":"k)" + std::to_string(random.below(20)) +
           R"(","priority":)" + std::to_string(random.below(3)) +
           (random.chance(0.1) ? R"(,"delay_ms":)" + std::to_string(random.below(20'000)) : "") + "}";
  }

  Coro<void> put_jobs(Random& random, std::size_t) {
    SoakHttp http = client();
    for (std::uint64_t requests = 1 + random.below(5); requests > 0; --requests) {
      if (random.chance(0.05)) {
        co_await put_with_key(http, random);
      } else {
        co_await put_some(http, random);
      }
      co_await pause(random, 2);
    }
    http.leave();
    co_await pause(random, 3);
  }
  Coro<void> put_some(SoakHttp& http, Random& random) {
    std::vector<std::uint64_t> jobs(1 + random.below(6));
    std::vector<std::string> texts;
    for (std::uint64_t& job : jobs) texts.push_back(new_job("mail", job = ledger_.next(), random));
    for (const std::uint64_t job : jobs) ledger_.perhaps_put(job);
    ledger_.unknown -= jobs.size();  // until it is known
    const SoakReply reply = co_await http.post("/v1/jobs", R"({"jobs":)" + json_list(texts) + "}");
    if (reply.status == 0) ledger_.unknown += jobs.size();
    if (reply) note_puts("mail", jobs);
  }
  // Twice, or three times where an answer is lost: it has one effect.
  Coro<void> put_with_key(SoakHttp& http, Random& random) {
    const std::uint64_t job = ledger_.next();
    const std::string body = new_job("mail", job, random), key = key_field(job);
    ledger_.perhaps_put(job);
    --ledger_.unknown;
    if (random.chance(0.4)) {
      co_await http.post_and_leave("/v1/jobs", body, key);
      if (random.chance(0.5)) co_await pause(random, 1);
      http.leave();
    }
    std::string first;
    for (int tries = 0; tries < 2;) {
      const SoakReply reply = co_await http.post("/v1/jobs", body, key);
      if (!reply) {
        co_await sleep(1s);
        continue;
      }
      if (tries++ == 0) {
        first = reply.body;
        note_puts("mail", {job});
      } else {
        EXPECT_EQ(reply.body, first) << "another answer to the same request";
      }
    }
  }
  void note_puts(const std::string& queue, const std::vector<std::uint64_t>& jobs) {
    for (const std::uint64_t job : jobs) ledger_.put(job);
    counted_[queue].added += jobs.size();
  }

  Coro<void> put_films(Random& random, std::size_t) {
    SoakHttp http = client();
    const std::uint64_t job = ledger_.next();
    const std::string body = new_job("films", job, random);
    ledger_.perhaps_put(job);
    --ledger_.unknown;
    const SoakReply reply = co_await http.post("/v1/jobs", body);
    if (reply.status == 0) ++ledger_.unknown;
    if (reply) {
      note_puts("films", {job});
      co_await follow_film(http, job, boost::json::parse(reply.body).at("id").to_number<std::uint64_t>());
    }
    http.leave();
    co_await pause(random, 6);
  }
  // Until it is done, and has left its output.
  Coro<void> follow_film(SoakHttp& http, std::uint64_t job, std::uint64_t id) {
    const std::string target = "/v1/jobs/" + std::to_string(id);
    for (;;) {
      co_await sleep(1s);
      const SoakReply reply = co_await http.get(target);
      if (!reply) continue;
      if (boost::json::parse(reply.body).at("state") == "done") break;
    }
    ledger_.done(job);
    ++counted_["films"].done;
    const SoakReply output = co_await http.get(target + "/output");
    if (output.status != 0) EXPECT_TRUE(output.body.starts_with("output of " + std::to_string(job))) << output.body;
  }

  Coro<void> work(Random& random, std::size_t who) {
    SoakHttp http = client();
    const std::string name = "worker " + std::to_string(who);
    for (std::uint64_t rounds = 10; rounds > 0 && !workers_rest_; --rounds) {
      const SoakReply reply = co_await http.post(
          "/v1/leases", R"({"queues":["mail"],"most":)" + std::to_string(1 + random.below(12)) + R"(,"wait_ms":)" +
                            std::to_string(random.below(30'000)) + R"(,"worker":")" + name + R"("})");
      if (!reply) {
        co_await sleep(1s);
        continue;
      }
      co_await run_jobs(http, random, name, boost::json::parse(reply.body).at("leases").as_array());
    }
    http.leave();
    co_await pause(random, 1);
  }
  struct Ending {
    std::uint64_t job = 0, id = 0;
    std::string_view outcome;
    std::vector<std::uint64_t> follow_ups;
  };
  Coro<void> run_jobs(SoakHttp& http, Random& random, std::string name, boost::json::array leases) {
    std::vector<Ending> endings;
    std::vector<std::string> texts, tokens;
    const bool vanishes = random.chance(0.02);
    for (const value& lease : leases) {
      const std::uint64_t job = number_in(lease.at("job").at("payload").as_string());
      ledger_.given(job);
      const std::string token = boost::json::serialize(lease.at("token"));
      tokens.push_back(R"({"token":)" + token + "}");
      if (vanishes) ledger_.excuse(job);
      if (vanishes || random.chance(0.005)) {
        if (!vanishes) ledger_.excuse(job);
        continue;  // its lease runs out
      }
      endings.push_back(
          {.job = job, .id = lease.at("job").at("id").to_number<std::uint64_t>(), .outcome = {}, .follow_ups = {}});
      texts.push_back(settlement(token, endings.back(), random));
    }
    co_await pause(random, random.chance(0.05) ? 20 : 1);
    if (!tokens.empty() && random.chance(0.2)) {
      (void)co_await http.ask("PATCH", "/v1/leases",
                              R"({"leases":)" + json_list(tokens) + R"(,"worker":")" + name + R"("})");
    }
    if (endings.empty()) co_return;
    co_await settle(http, endings, R"({"settlements":)" + json_list(texts) + "}");
  }
  std::string settlement(const std::string& token, Ending& ending, Random& random) {
    const double fate = random.unit();
    std::string text = R"({"token":)" + token;
    if (fate < 0.06) {
      ending.outcome = "retry";
      text += R"(,"error":"no luck")";
    } else if (fate < 0.08) {
      ending.outcome = "release";
      text += R"(,"delay_ms":2000)";
    } else if (fate < 0.09) {
      ending.outcome = "bury";
      text += R"(,"error":"hopeless")";
    } else {
      ending.outcome = "done";
      text += R"(,"result":")" + std::string(random.below(500), 'r') + '"';
      if (!resting_ && random.chance(0.03)) {
        ending.follow_ups.push_back(ledger_.next());
        ledger_.perhaps_put(ending.follow_ups[0]);
        --ledger_.unknown;
        text += R"(,"follow_ups":[)" + new_job("mail", ending.follow_ups[0], random) + "]";
      }
    }
    if (ending.outcome != "done") ledger_.excuse(ending.job);
    return text + R"(,"outcome":")" + std::string(ending.outcome) + "\"}";
  }
  // What is not answered is sent again; the daemon may have done it the first time.
  Coro<void> settle(SoakHttp& http, const std::vector<Ending>& endings, std::string body) {
    bool was_lost = false;
    for (;;) {
      const SoakReply reply = co_await http.post("/v1/leases/settle", body);
      if (reply) {
        const value json = boost::json::parse(reply.body);
        for (std::size_t i = 0; i < endings.size(); ++i) note_end(endings[i], json.at("replies").at(i), was_lost);
        co_return;
      }
      was_lost = was_lost || reply.status == 0;
      co_await sleep(1s);
    }
  }
  void note_end(const Ending& ending, const value& reply, bool was_lost) {
    Counted& counted = counted_["mail"];
    if (reply.at("outcome") != "ok") {
      ledger_.excuse(ending.job);
      if (was_lost && ending.outcome == "done") ledger_.perhaps_done(ending.job);
      if (was_lost && ending.outcome == "bury") buried_.push_back(ending.id);
      if (was_lost) ledger_.unknown += ending.follow_ups.size();
      return;
    }
    if (ending.outcome == "done") {
      ledger_.done(ending.job);
      ++counted.done;
      note_puts("mail", ending.follow_ups);
    } else if (ending.outcome == "retry") {
      ++counted.retried;
    } else if (ending.outcome == "bury") {
      ++counted.buried;
      buried_.push_back(ending.id);
    }
  }

  Coro<void> kick(Random&, std::size_t) {
    SoakHttp http = client();
    std::vector<std::uint64_t> ids = std::exchange(buried_, {});
    for (const std::uint64_t id : ids) {
      const SoakReply reply = co_await http.post("/v1/jobs/" + std::to_string(id) + "/kick", "");
      if (reply.status == 0 || reply.status == 503) buried_.push_back(id);  // again; another time it is no more buried
    }
    http.leave();
    co_await sleep(5s);
  }

  Coro<void> put_beans(Random& random, std::size_t) {
    SoakBeanstalkd client(beanstalkd_path(), trace_);
    (void)co_await client.ask("use beans");
    for (std::uint64_t puts = 1 + random.below(8); puts > 0; --puts) {
      const std::uint64_t job = ledger_.next();
      ledger_.perhaps_put(job);
      --ledger_.unknown;
      const auto words =
          co_await client.put(std::to_string(job) + " " + std::string(random.below(100), 'b'), kBeansTtr);
      if (words.empty()) {
        ++ledger_.unknown;
        break;
      }
      if (words[0] == "INSERTED") note_puts("beans", {job});
      co_await pause(random, 2);
    }
    client.leave();
    co_await pause(random, 3);
  }
  Coro<void> work_beans(Random& random, std::size_t) {
    SoakBeanstalkd client(beanstalkd_path(), trace_);
    (void)co_await client.ask("watch beans");
    for (std::uint64_t jobs = 1 + random.below(30); jobs > 0 && !workers_rest_; --jobs) {
      const auto words = co_await client.ask("reserve-with-timeout " + std::to_string(random.below(5)));
      if (words.empty()) break;
      if (words[0] != "RESERVED") continue;
      const bool goes_on = co_await run_bean(client, random, words[1], number_in(words[3]));
      if (!goes_on) break;
    }
    client.leave();
    co_await pause(random, 1);
  }
  // False: the client is gone, and leaves its job to others.
  Coro<bool> run_bean(SoakBeanstalkd& client, Random& random, std::string id, std::uint64_t job) {
    ledger_.given(job);
    co_await pause(random, 0.5);
    const double fate = random.unit();
    if (fate < 0.12) ledger_.excuse(job);
    if (fate < 0.02) co_return false;
    if (fate < 0.08) co_return !(co_await client.ask("release " + id + " 5 0")).empty();
    if (fate < 0.12) {
      if ((co_await client.ask("bury " + id + " 5")).empty()) co_return false;
      for (;;) {
        const auto words = co_await client.ask("kick-job " + id);
        if (!words.empty()) co_return true;
        co_await sleep(1s);
      }
    }
    if (fate < 0.2) (void)co_await client.ask("touch " + id);
    const auto words = co_await client.ask("delete " + id);
    if (words.empty()) {
      ledger_.perhaps_done(job);
      co_return false;
    }
    words[0] == "DELETED" ? ledger_.done(job) : ledger_.excuse(job);
    co_return true;
  }

  Coro<void> take_ticks(Random&, std::size_t) {
    SoakHttp http = client();
    if (std::exchange(resume_ticks_, false))
      EXPECT_TRUE(co_await http.post("/v1/schedules/tick/resume", R"({"from":"where_it_was"})"));
    const SoakReply reply =
        co_await http.post("/v1/leases", R"({"queues":["ticks"],"most":50,"wait_ms":5000,"worker":"clock"})");
    if (!reply) co_return co_await sleep(1s);
    std::vector<std::string> texts;
    const value json = boost::json::parse(reply.body);
    for (const value& lease : json.at("leases").as_array()) {
      texts.push_back(R"({"token":)" + boost::json::serialize(lease.at("token")) + R"(,"outcome":"done"})");
      const auto planned = lease.at("job").at("payload").as_string();
      note_tick(std::string_view(planned));
    }
    while (!texts.empty()) {
      if (co_await http.post("/v1/leases/settle", R"({"settlements":)" + json_list(texts) + "}")) break;
      co_await sleep(1s);
    }
  }
  void note_tick(std::string_view planned) {
    const auto at = parse_rfc3339(planned);
    ASSERT_TRUE(at) << planned;
    ++ticks_.at(static_cast<std::size_t>((*at - kStart) / 1s));
  }

  Coro<void> give_up_polls(Random& random, std::size_t) {
    SoakHttp http = client();
    co_await http.post_and_leave("/v1/leases", R"({"queues":["idle"],"wait_ms":60000,"worker":"impatient"})", "");
    co_await pause(random, 10);
    http.leave();
    SoakBeanstalkd other(beanstalkd_path(), trace_);
    (void)co_await other.ask("watch idle");
    (void)co_await other.ask("reserve-with-timeout " + std::to_string(random.below(8)));
    co_await pause(random, 2);
  }

  // Reads events for a while, and goes on where it was.
  Coro<void> listen(Random& random, std::size_t) {
    std::string last;
    for (int visits = 0; visits < 2; ++visits) {
      SoakHttp http = client();
      const TimePoint until = loop_.time() + from_seconds(5 + random.unit() * 20);
      (void)co_await unless_lost([&]() -> Coro<void> {
        co_await http.connect();
        http.stream().write("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n" +
                            (last.empty() ? std::string() : "Last-Event-ID: " + last + "\r\n") + "\r\n");
        const std::string head = co_await http.stream().read_until("\r\n\r\n");
        if (head.find(" 200 ") == std::string::npos) co_return;
        std::string rest;
        while (loop_.time() < until) co_await hear(http, rest, last);
      });
      http.leave();
      co_await pause(random, 5);
    }
  }
  // One chunk of the stream, which may end in the middle of a line.
  Coro<void> hear(SoakHttp& http, std::string& rest, std::string& last) {
    const std::string line = co_await http.stream().read_until("\r\n");
    const std::size_t size = std::stoul(line, nullptr, 16);
    const std::string text = co_await http.stream().read_exactly(size + 2);
    if (size == 0) throw std::system_error(std::make_error_code(std::errc::connection_reset));
    trace_.note(text);
    rest.append(text, 0, size);
    std::size_t from = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', from)) {
      if (rest.compare(from, 4, "id: ") == 0) note_event(rest.substr(from + 4, end - from - 4), last);
      from = end + 1;
    }
    rest.erase(0, from);
  }
  // Numbers of one run only grow.
  void note_event(std::string id, std::string& last) {
    const std::string run = id.substr(0, id.find('-') + 1);
    if (last.starts_with(run) && number_in(id.substr(run.size())) < number_in(last.substr(run.size()))) {
      ledger_.complain(0, "event " + id + " came after " + last);
    }
    last = std::move(id);
  }

  Coro<void> look_around(Random& random, std::size_t) {
    SoakHttp http = client();
    for (const char* target :
         {"/v1/counters", "/v1/workers", "/v1/queues", "/v1/jobs?queue=mail&limit=50&payloads", "/v1/schedules",
          "/v1/schedules/tick/history", "/v1/schedules/tick/next", "/v1/schedules/tick/explain",
          "/v1/history?queue=mail", "/v1/audit", "/v1/notify", "/v1/config", "/healthz", "/v1/openapi.json"}) {
      const SoakReply reply = co_await http.get(target);
      EXPECT_TRUE(reply || reply.status == 0 || reply.status == 503)
          << target << ' ' << reply.status << ' ' << reply.body;
      co_await pause(random, 1);
    }
    // It tells of the process, and so is no part of what is the same each time.
    Trace other;
    SoakHttp apart(http_path(), other);
    (void)co_await apart.get("/metrics");
    co_await pause(random, 10);
  }

  Coro<void> change_things(Random& random, std::size_t) {
    SoakHttp http = client();
    (void)co_await http.post("/v1/queues/mail/pause", "{}");
    co_await pause(random, 10);
    while (!co_await http.post("/v1/queues/mail/resume", "{}")) co_await sleep(1s);
    (void)co_await http.ask("PUT", "/v1/queues/brief", R"({"rate":5})");
    (void)co_await http.ask("DELETE", "/v1/queues/brief");
    (void)co_await http.ask("PUT", "/v1/schedules/brief",
                            R"({"name":"brief","trigger":"@every 5s","job":{"queue":"brief"}})");
    co_await pause(random, 20);
    while (!co_await erase_brief(http)) co_await sleep(1s);
    if (daemon_) {
      ++reloads_;
      daemon_->targets().set(targets());
      ServeOptions asked;
      asked.hosts = {"soak.example"};
      daemon_->set_access({}, asked);
      (void)co_await daemon_->set_notify({rule()});
    }
    http.leave();
    co_await pause(random, 60);
  }
  // The schedule, and what it has put.
  Coro<bool> erase_brief(SoakHttp& http) {
    const SoakReply gone = co_await http.ask("DELETE", "/v1/schedules/brief");
    if (!gone && gone.status != 404) co_return false;
    const SoakReply page = co_await http.get("/v1/jobs?queue=brief&limit=1000");
    if (!page) co_return false;
    std::vector<std::string> ids;
    const value json = boost::json::parse(page.body);
    for (const value& job : json.at("jobs").as_array()) ids.push_back(boost::json::serialize(job.at("id")));
    if (ids.empty()) co_return true;
    co_return bool(co_await http.post("/v1/jobs/change", R"({"change":"erase","ids":)" + json_list(ids) + "}"));
  }

  struct Sample {
    std::size_t bytes = 0;
    std::uint64_t keys = 0, changes = 0;
    std::size_t descriptors = 0, tasks = 0;
  };

  const Duration length_;
  SocketsInVirtualTime backend_{kStart};
  Random random_;
  Random film_chance_ = random_.fork();
  TemporaryFolder folder_;
  MemoryStore store_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Daemon> daemon_;
  Trace trace_;
  Ledger ledger_;
  std::unordered_map<std::string, Counted> counted_;  // by queue
  std::vector<std::uint64_t> buried_;
  std::vector<std::uint8_t> ticks_;  // of each second, how often it was run
  std::vector<Sample> samples_;
  Sample first_;
  std::uint64_t run_id_ = 0, keys_ = 0, notices_ = 0, unknown_before_ = 0;
  int restarts_ = 0, reloads_ = 0, totals_checked_ = 0;
  std::size_t clients_ = 0, putters_ = 0, idle_ = 0;
  bool resting_ = false, workers_rest_ = false, ended_ = false, is_counted_ = true, resume_ticks_ = false;
  std::shared_ptr<Event> go_on_event_ = std::make_shared<Event>();
  EventLoop loop_{backend_};
};

class Soaking : public testing::Test {
 protected:
  Soaking() { spdlog::set_level(spdlog::level::warn); }
  ~Soaking() override { spdlog::set_level(spdlog::level::info); }
};

TEST_F(Soaking, ForHoursLosesNothingAndLeavesNothing) {
  const std::uint64_t hours = from_environment("ARGIOPE_SOAK_HOURS", 0);
  const Duration length = hours > 0 ? std::chrono::hours{hours} : Duration{4min};
  Soak soak(from_environment("ARGIOPE_SOAK_SEED", 1), length);
  soak.run();
}

TEST_F(Soaking, IsTheSameForTheSameSeed) {
  const auto trace_of = [](std::uint64_t seed) {
    Soak soak(seed, 1min);
    soak.run();
    return soak.trace().hash();
  };
  const std::uint64_t first = trace_of(7);
  EXPECT_EQ(trace_of(7), first);
  EXPECT_NE(trace_of(8), first);
}

}  // namespace
}  // namespace argiope
