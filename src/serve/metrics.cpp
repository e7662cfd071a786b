#include "serve/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <locale>
#include <map>
#include <sstream>
#include <unordered_set>
#include <utility>
#include <vector>

#include "serve/process_stats.hpp"
#include "serve/scheduler_of.hpp"

namespace argiope {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr Duration kCountAge = std::chrono::seconds{1};

// Families in the order they were begun.
class Page {
 public:
  MetricFamily& family(std::string name, MetricType type, std::string help) {
    return families_.emplace_back(MetricFamily{std::move(name), std::move(help), type, {}});
  }
  void gauge(std::string name, std::string help, double value) {
    gauge(family(std::move(name), MetricType::Gauge, std::move(help)), {}, value);
  }
  void counter(std::string name, std::string help, double value) {
    counter(family(std::move(name), MetricType::Counter, std::move(help)), {}, value);
  }
  static void gauge(MetricFamily& family, Labels labels, double value) {
    next(family, std::move(labels)).gauge.value = value;
  }
  static void counter(MetricFamily& family, Labels labels, double value) {
    next(family, std::move(labels)).counter.value = value;
  }
  static void histogram(MetricFamily& family, Labels labels, const SpanHistogram& spans);
  std::string text() const;

 private:
  static ClientMetric& next(MetricFamily& family, Labels labels) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }

  std::vector<MetricFamily> families_;
};

void Page::histogram(MetricFamily& family, Labels labels, const SpanHistogram& spans) {
  ClientMetric::Histogram& histogram = next(family, std::move(labels)).histogram;
  std::uint64_t counted = 0;
  for (std::size_t i = 0; i < spans.counts.size(); ++i) {
    counted += spans.counts[i];
    const bool is_last = i == SpanHistogram::kBounds.size();
    histogram.bucket.push_back(
        {counted, is_last ? std::numeric_limits<double>::infinity() : SpanHistogram::kBounds[i]});
  }
  histogram.sample_count = counted;
  histogram.sample_sum = spans.sum;
}

std::string Page::text() const {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  prometheus::TextSerializer().Serialize(out, families_);
  return std::move(out).str();
}

Labels of_queue(const std::string& queue) { return {{"queue", queue}}; }

}  // namespace

struct Metrics::State {
  struct Added {
    Kind kind;
    std::string name, help;
    std::pair<std::string, std::string> label;
    std::function<double()> read;
  };

  // A queue's own name, or Tally::kOthers when too many have one.
  std::string label_of(std::string_view queue);
  void write_states(Page& page);
  void write_tally(Page& page);
  void write_daemon(Page& page, bool is_up);
  void write_schedules(Page& page);
  void write_requests(Page& page) const;
  void write_refusals(Page& page) const;
  void write_loop(Page& page) const;
  void write_added(Page& page) const;

  MetricsSources sources;
  std::unordered_set<std::string> named;
  std::vector<Added> added;
};

std::string Metrics::State::label_of(std::string_view queue) {
  std::string name(queue);
  if (named.contains(name)) return name;
  if (named.size() >= kMostQueues) return std::string(Tally::kOthers);
  named.insert(name);
  return name;
}

void Metrics::State::write_states(Page& page) {
  constexpr std::array kStates{JobState::ready, JobState::delayed, JobState::running,
                               JobState::done,  JobState::buried,  JobState::cancelled};
  std::map<std::string, StateCounts> of_label;
  sources.events.snapshot().for_each_queue([&](std::string_view queue, StateCounts counts) {
    StateCounts& sum = of_label[label_of(queue)];
    for (const JobState state : kStates) sum.of(state) += counts.of(state);
  });
  auto& family = page.family("argiope_jobs", MetricType::Gauge, "Jobs in the store, by state");
  for (auto& [queue, counts] : of_label) {
    for (const JobState state : kStates) {
      Page::gauge(family, {{"queue", queue}, {"state", std::string(to_string(state))}},
                  static_cast<double>(counts.of(state)));
    }
  }
}

void Metrics::State::write_tally(Page& page) {
  std::map<std::string, QueueTally> of_label;
  sources.events.tally().for_each_queue([&](std::string_view queue, const QueueTally& tally) {
    QueueTally& sum = of_label[label_of(queue)];
    for (std::size_t i = 0; i < tally.totals.size(); ++i) sum.totals[i] += tally.totals[i];
    sum.waits.add(tally.waits);
    sum.runs.add(tally.runs);
  });
  for (std::size_t i = 0; i < kTalliedNames.size(); ++i) {
    auto& family = page.family("argiope_jobs_" + std::string(kTalliedNames[i]) + "_total", MetricType::Counter,
                               "Jobs " + std::string(kTalliedNames[i]) + " since the daemon began");
    for (const auto& [queue, sum] : of_label)
      Page::counter(family, of_queue(queue), static_cast<double>(sum.totals[i]));
  }
  auto& waits = page.family("argiope_job_wait_seconds", MetricType::Histogram,
                            "From when a job could have run until its first lease");
  for (const auto& [queue, sum] : of_label) Page::histogram(waits, of_queue(queue), sum.waits);
  auto& runs =
      page.family("argiope_job_run_seconds", MetricType::Histogram, "From the lease of a job to the end of that run");
  for (const auto& [queue, sum] : of_label) Page::histogram(runs, of_queue(queue), sum.runs);
}

void Metrics::State::write_schedules(Page& page) {
  Scheduler* const scheduler = scheduler_of(sources.engine);
  if (scheduler == nullptr) return;
  const Tally& tally = sources.events.tally();
  page.gauge("argiope_schedules", "Schedules that have more times to come", static_cast<double>(scheduler->size()));
  auto& lateness = page.family("argiope_schedule_lateness_seconds", MetricType::Histogram,
                               "From the planned time of a run until its job was put");
  Page::histogram(lateness, {}, tally.lateness());
  page.counter("argiope_schedule_missed_total", "Planned times that were not run", static_cast<double>(tally.missed()));
  page.counter("argiope_schedule_marked_total",
               "How often a schedule could not run, for want of a queue, room or function",
               static_cast<double>(tally.marked()));
}

void Metrics::State::write_requests(Page& page) const {
  if (sources.requests == nullptr) return;
  constexpr std::array kClasses{"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
  auto& counts = page.family("argiope_http_requests_total", MetricType::Counter,
                             "Requests by route and class of the answer; none: the client left first");
  for (const auto& [route, of_route] : sources.requests->routes()) {
    for (std::size_t i = 0; i < kClasses.size(); ++i) {
      if (of_route->by_class[i] == 0) continue;
      Page::counter(counts, {{"route", route}, {"code", kClasses[i]}}, static_cast<double>(of_route->by_class[i]));
    }
  }
  auto& took = page.family("argiope_http_request_seconds", MetricType::Histogram, "From a request to its answer");
  for (const auto& [route, of_route] : sources.requests->routes()) {
    if (of_route->took.counts != SpanHistogram{}.counts) Page::histogram(took, {{"route", route}}, of_route->took);
  }
}

void Metrics::State::write_refusals(Page& page) const {
  if (sources.gate == nullptr) return;
  const GateRefusals& refusals = sources.gate->refusals();
  auto& family =
      page.family("argiope_requests_refused_total", MetricType::Counter, "Requests that the gate has turned away");
  const std::pair<const char*, std::uint64_t> counts[] = {{"host", refusals.host},
                                                          {"origin", refusals.origin},
                                                          {"token", refusals.token},
                                                          {"flood", refusals.flood},
                                                          {"scope", refusals.scope}};
  for (const auto& [why, count] : counts) Page::counter(family, {{"why", why}}, static_cast<double>(count));
}

void Metrics::State::write_loop(Page& page) const {
  if (sources.watchdog == nullptr) return;
  page.gauge("argiope_loop_lag_seconds", "The longest that the loop was late since this was last asked for",
             to_seconds(sources.watchdog->take_longest_lag()));
  page.counter("argiope_loop_stalls_total", "How often the loop has stood still for more than a second",
               static_cast<double>(sources.watchdog->stalls()));
}

void Metrics::State::write_daemon(Page& page, bool is_up) {
  const EventFeed& events = sources.events;
  Page::gauge(page.family("argiope_build_info", MetricType::Gauge, "1, with the version"),
              {{"version", sources.version}}, 1);
  page.gauge("argiope_up", "1 while the store can be read and has not failed", is_up ? 1 : 0);
  page.gauge("argiope_jobs_in_memory", "Jobs that the engine holds in memory",
             static_cast<double>(sources.engine.in_memory()));
  page.gauge("argiope_event_streams", "Streams of events that are open", static_cast<double>(events.streams()));
  page.counter("argiope_event_resets_total", "How often a stream of events had to begin anew",
               static_cast<double>(events.resets()));
}

void Metrics::State::write_added(Page& page) const {
  for (std::size_t i = 0; i < added.size(); ++i) {
    const Added& first = added[i];
    const auto same = [&](const Added& other) { return other.name == first.name; };
    if (std::any_of(added.begin(), added.begin() + static_cast<std::ptrdiff_t>(i), same)) continue;
    const bool is_counter = first.kind == Kind::counter;
    auto& family = page.family(first.name, is_counter ? MetricType::Counter : MetricType::Gauge, first.help);
    for (const Added& one : added) {
      if (!same(one)) continue;
      const Labels labels = one.label.first.empty() ? Labels{} : Labels{{one.label.first, one.label.second}};
      is_counter ? Page::counter(family, labels, one.read()) : Page::gauge(family, labels, one.read());
    }
  }
}

namespace {

void write_process(Page& page, WallTime started_at) {
  const ProcessStats stats = read_process_stats();
  page.counter("process_cpu_seconds_total", "Processor time used", stats.cpu_seconds);
  page.gauge("process_resident_memory_bytes", "Memory in use", static_cast<double>(stats.resident_bytes));
  page.gauge("process_virtual_memory_bytes", "Addresses in use", static_cast<double>(stats.virtual_bytes));
  page.gauge("process_threads", "Threads", static_cast<double>(stats.threads));
  page.gauge("process_open_fds", "Open descriptors", static_cast<double>(stats.open_fds));
  page.gauge("process_max_fds", "How many descriptors may be open", static_cast<double>(stats.most_fds));
  page.gauge("process_start_time_seconds", "When it began, since 1970", to_seconds(started_at.time_since_epoch()));
}

}  // namespace

Metrics::Metrics(MetricsSources sources) : state_(std::make_unique<State>(State{std::move(sources), {}, {}})) {}

Metrics::~Metrics() = default;

void Metrics::add(Kind kind, std::string name, std::string help, std::pair<std::string, std::string> label,
                  std::function<double()> read) {
  state_->added.push_back({kind, std::move(name), std::move(help), std::move(label), std::move(read)});
}

Coro<ServerResponse> Metrics::answer() {
  const auto counted = co_await state_->sources.events.count(kCountAge);
  const bool is_up = counted && !state_->sources.engine.failure();
  Page page;
  state_->write_daemon(page, is_up);
  if (counted) state_->write_states(page);
  state_->write_tally(page);
  state_->write_schedules(page);
  state_->write_requests(page);
  state_->write_refusals(page);
  state_->write_loop(page);
  state_->write_added(page);
  write_process(page, state_->sources.started_at);
  auto response = ServerResponse::text(200, page.text());
  response.headers.clear();
  response.headers.emplace_back("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  response.headers.emplace_back("Cache-Control", "no-store");
  co_return response;
}

}  // namespace argiope
