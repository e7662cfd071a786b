#include "serve/watch/metrics.hpp"

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

#include "argiope/async/threads.hpp"
#include "serve/base/scheduler_of.hpp"
#include "serve/watch/process_stats.hpp"

namespace argiope {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// Families in the order they were begun.
class MetricsPage {
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

void MetricsPage::histogram(MetricFamily& family, Labels labels, const SpanHistogram& spans) {
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

std::string MetricsPage::text() const {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  prometheus::TextSerializer().Serialize(out, families_);
  return std::move(out).str();
}

Labels of_queue(const std::string& queue) { return {{"queue", queue}}; }

using PageCount = ProjectCounters::Count;

constexpr std::array kPageStates{PageCount::pending, PageCount::success, PageCount::failed};
constexpr std::array kVisitOutcomes{PageCount::success, PageCount::retry, PageCount::failed};

// Since the daemon, or the project, began.
struct ProjectCounts {
  std::array<double, kVisitOutcomes.size()> visits{};
  double results = 0;

  void add(const ProjectCounts& more) {
    for (std::size_t i = 0; i < visits.size(); ++i) visits[i] += more.visits[i];
    results += more.results;
  }
  // Whether it has begun anew since `earlier`.
  bool is_behind(const ProjectCounts& earlier) const {
    return results < earlier.results || !std::ranges::equal(earlier.visits, visits, std::ranges::less_equal{});
  }
};

ProjectCounts counts_of(const ProjectCounters& counters) {
  ProjectCounts counts{.results = static_cast<double>(counters.results())};
  for (std::size_t i = 0; i < kVisitOutcomes.size(); ++i)
    counts.visits[i] = static_cast<double>(counters.counted(kVisitOutcomes[i]));
  return counts;
}

struct ProjectSum {
  std::array<double, kPageStates.size()> pages{};
  ProjectCounts counts;
  double under_way = 0, halted = 0;
  std::optional<double> rate, lag;  // of one project alone
};

}  // namespace

struct Metrics::State {
  struct Added {
    Kind kind;
    std::string name, help;
    std::pair<std::string, std::string> label;
    std::function<double()> read;
  };

  // A queue's own name, or Tally::kOthers when too many have one, or this is its name.
  std::string label_of(std::string_view queue) { return label_among(named, kMostQueues, queue); }
  static std::string label_among(std::unordered_set<std::string>& named, std::size_t most, std::string_view name);
  void write_states(MetricsPage& page, const MaySee& may_see);
  void write_tally(MetricsPage& page, const MaySee& may_see);
  void write_up(MetricsPage& page, bool is_up) const;
  void write_daemon(MetricsPage& page) const;
  void write_schedules(MetricsPage& page);
  void write_projects(MetricsPage& page, const MaySee& may_see);
  void write_requests(MetricsPage& page) const;
  void write_refusals(MetricsPage& page) const;
  void write_loop(MetricsPage& page) const;
  void write_added(MetricsPage& page) const;
  void write_of_all(MetricsPage& page);

  MetricsSources sources;
  // Adds what projects without a series have counted, those that are gone included: a counter never falls.
  void add_unnamed(std::map<std::string, ProjectCounts> now, ProjectCounts& sum);

  std::unordered_set<std::string> named, named_projects;
  std::map<std::string, ProjectCounts> unnamed_projects;  // when last asked
  ProjectCounts gone_projects;
  bool has_unnamed = false;  // since the daemon began
  std::vector<Added> added;
};

std::string Metrics::State::label_among(std::unordered_set<std::string>& named, std::size_t most,
                                        std::string_view wanted) {
  std::string name(wanted);
  if (named.contains(name)) return name;
  if (named.size() >= most || name == Tally::kOthers) return std::string(Tally::kOthers);
  named.insert(name);
  return name;
}

void Metrics::State::write_states(MetricsPage& page, const MaySee& may_see) {
  constexpr std::array kOfMetrics{JobState::ready, JobState::delayed, JobState::running,
                                  JobState::done,  JobState::buried,  JobState::cancelled};
  std::map<std::string, StateCounts> of_label;
  sources.events.snapshot().for_each_queue([&](std::string_view queue, StateCounts counts) {
    if (may_see && !may_see(queue)) return;
    StateCounts& sum = of_label[label_of(queue)];
    for (const JobState state : kOfMetrics) sum.of(state) += counts.of(state);
  });
  auto& family = page.family("argiope_jobs", MetricType::Gauge, "Jobs in the store, by state");
  for (auto& [queue, counts] : of_label) {
    for (const JobState state : kOfMetrics) {
      MetricsPage::gauge(family, {{"queue", queue}, {"state", std::string(to_string(state))}},
                         static_cast<double>(counts.of(state)));
    }
  }
}

void Metrics::State::write_tally(MetricsPage& page, const MaySee& may_see) {
  std::map<std::string, QueueTally> of_label;
  sources.events.tally().for_each_queue([&](std::string_view queue, const QueueTally& tally) {
    if (may_see && !may_see(queue)) return;
    QueueTally& sum = of_label[label_of(queue)];
    for (std::size_t i = 0; i < tally.totals.size(); ++i) sum.totals[i] += tally.totals[i];
    sum.waits.add(tally.waits);
    sum.runs.add(tally.runs);
  });
  for (std::size_t i = 0; i < kTalliedNames.size(); ++i) {
    auto& family = page.family("argiope_jobs_" + std::string(kTalliedNames[i]) + "_total", MetricType::Counter,
                               "Jobs " + std::string(kTalliedNames[i]) + " since the daemon began");
    for (const auto& [queue, sum] : of_label)
      MetricsPage::counter(family, of_queue(queue), static_cast<double>(sum.totals[i]));
  }
  auto& waits = page.family("argiope_job_wait_seconds", MetricType::Histogram,
                            "From when a job could have run until its first lease");
  for (const auto& [queue, sum] : of_label) MetricsPage::histogram(waits, of_queue(queue), sum.waits);
  auto& runs =
      page.family("argiope_job_run_seconds", MetricType::Histogram, "From the lease of a job to the end of that run");
  for (const auto& [queue, sum] : of_label) MetricsPage::histogram(runs, of_queue(queue), sum.runs);
}

void Metrics::State::write_schedules(MetricsPage& page) {
  Scheduler* const scheduler = scheduler_of(sources.engine);
  if (scheduler == nullptr) return;
  const Tally& tally = sources.events.tally();
  page.gauge("argiope_schedules", "Schedules that have more times to come", static_cast<double>(scheduler->size()));
  auto& lateness = page.family("argiope_schedule_lateness_seconds", MetricType::Histogram,
                               "From the planned time of a run until its job was put");
  MetricsPage::histogram(lateness, {}, tally.lateness());
  page.counter("argiope_schedule_missed_total", "Planned times that were not run", static_cast<double>(tally.missed()));
  page.counter("argiope_schedule_marked_total",
               "How often a schedule could not run, for want of a queue, room or function",
               static_cast<double>(tally.marked()));
}

namespace {

// How long the oldest result waits that a sink of the project has not taken. nullopt: it has no sinks.
std::optional<double> sinks_lag(const DaemonProjects& projects, const ProjectStatusNow& status, WallTime now) {
  const std::vector<SinkRow> sinks = projects.engine.sinks(status.name);
  if (sinks.empty()) return std::nullopt;
  const auto behind = std::ranges::min_element(sinks, {}, &SinkRow::cursor);
  const auto waiting = projects.store.read_feed(status.id, behind->cursor, 1);
  if (!waiting || waiting->empty()) return 0;
  return std::max(0.0, to_seconds(now - waiting->front().at));
}

}  // namespace

void Metrics::State::add_unnamed(std::map<std::string, ProjectCounts> now, ProjectCounts& sum) {
  for (const auto& [name, earlier] : unnamed_projects) {
    const auto found = now.find(name);
    if (found == now.end() || found->second.is_behind(earlier)) gone_projects.add(earlier);
  }
  unnamed_projects = std::move(now);
  for (const auto& [name, counts] : unnamed_projects) sum.add(counts);
  sum.add(gone_projects);
}

void Metrics::State::write_projects(MetricsPage& page, const MaySee& may_see) {
  if (sources.projects == nullptr) return;
  const DaemonProjects& projects = *sources.projects;
  const WallTime now = sources.engine.calendar_now();
  std::map<std::string, ProjectSum> of_label;
  std::map<std::string_view, double> doing;
  std::map<std::string, ProjectCounts> unnamed;
  for (const ProjectStatusNow& status : projects.engine.projects()) {
    if (may_see && !may_see(status.name)) continue;
    ++doing[to_string(status.doing)];
    const std::string label = label_among(named_projects, kMostProjects, status.name);
    ProjectSum& sum = of_label[label];
    sum.under_way += static_cast<double>(status.under_way);
    sum.halted += is_halted(status) ? 1 : 0;
    const bool has_series = label != Tally::kOthers;
    if (has_series) {
      sum.rate = status.rate;
      sum.lag = sinks_lag(projects, status, now);
    }
    const ProjectCounters* const counters = projects.engine.counters(status.name);
    if (counters == nullptr) continue;
    for (std::size_t i = 0; i < kPageStates.size(); ++i)
      sum.pages[i] += static_cast<double>(counters->all(kPageStates[i]));
    has_series ? void(sum.counts = counts_of(*counters)) : void(unnamed.emplace(status.name, counts_of(*counters)));
  }
  if (may_see) {
    // The counts of projects that are gone are of all, and so not in this sum.
    for (const auto& [name, counts] : unnamed) of_label[std::string(Tally::kOthers)].counts.add(counts);
  } else {
    has_unnamed = has_unnamed || !unnamed.empty();
    if (has_unnamed) add_unnamed(std::move(unnamed), of_label[std::string(Tally::kOthers)].counts);
  }
  auto& what = page.family("argiope_projects", MetricType::Gauge, "Projects, by what they are doing");
  for (const auto& [name, count] : doing) MetricsPage::gauge(what, {{"doing", std::string(name)}}, count);
  auto& pages = page.family("argiope_project_pages", MetricType::Gauge, "Pages that a project knows, by state");
  for (const auto& [project, sum] : of_label) {
    for (std::size_t i = 0; i < kPageStates.size(); ++i) {
      MetricsPage::gauge(pages, {{"project", project}, {"state", std::string(to_string(kPageStates[i]))}},
                         sum.pages[i]);
    }
  }
  auto& visits = page.family("argiope_project_visits_total", MetricType::Counter,
                             "Visits since the daemon began, by how they ended");
  for (const auto& [project, sum] : of_label) {
    for (std::size_t i = 0; i < kVisitOutcomes.size(); ++i) {
      MetricsPage::counter(visits, {{"project", project}, {"outcome", std::string(to_string(kVisitOutcomes[i]))}},
                           sum.counts.visits[i]);
    }
  }
  auto& results = page.family("argiope_project_results_total", MetricType::Counter,
                              "Results that visits have given since the daemon began");
  for (const auto& [project, sum] : of_label) MetricsPage::counter(results, {{"project", project}}, sum.counts.results);
  const auto gauges = [&](const char* name, const char* help, auto value_of) {
    auto& family = page.family(name, MetricType::Gauge, help);
    for (const auto& [project, sum] : of_label) {
      if (const std::optional<double> value = value_of(sum)) MetricsPage::gauge(family, {{"project", project}}, *value);
    }
  };
  gauges("argiope_project_under_way", "Visits under way",
         [](const ProjectSum& sum) { return std::optional(sum.under_way); });
  gauges("argiope_project_paused", "1 while it has paused, or cannot go on",
         [](const ProjectSum& sum) { return std::optional(sum.halted); });
  gauges("argiope_project_rate", "Visits a second that it may make, where it has a rate",
         [](const ProjectSum& sum) { return sum.rate; });
  gauges("argiope_project_sink_lag_seconds", "How long the oldest result waits that one of its sinks has not taken",
         [](const ProjectSum& sum) { return sum.lag; });
}

void Metrics::State::write_requests(MetricsPage& page) const {
  if (sources.requests == nullptr) return;
  constexpr std::array kClasses{"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
  auto& counts = page.family("argiope_http_requests_total", MetricType::Counter,
                             "Requests by route and class of the answer; none: the client left first");
  for (const auto& [route, of_route] : sources.requests->routes()) {
    for (std::size_t i = 0; i < kClasses.size(); ++i) {
      if (of_route->by_class[i] == 0) continue;
      MetricsPage::counter(counts, {{"route", route}, {"code", kClasses[i]}},
                           static_cast<double>(of_route->by_class[i]));
    }
  }
  auto& took = page.family("argiope_http_request_seconds", MetricType::Histogram, "From a request to its answer");
  for (const auto& [route, of_route] : sources.requests->routes()) {
    if (of_route->took.counts != SpanHistogram{}.counts)
      MetricsPage::histogram(took, {{"route", route}}, of_route->took);
  }
}

void Metrics::State::write_refusals(MetricsPage& page) const {
  if (sources.gate == nullptr) return;
  const GateRefusals& refusals = sources.gate->refusals();
  auto& family =
      page.family("argiope_requests_refused_total", MetricType::Counter, "Requests that the gate has turned away");
  const std::pair<const char*, std::uint64_t> counts[] = {{"host", refusals.host},
                                                          {"origin", refusals.origin},
                                                          {"token", refusals.token},
                                                          {"flood", refusals.flood},
                                                          {"scope", refusals.scope}};
  for (const auto& [why, count] : counts) MetricsPage::counter(family, {{"why", why}}, static_cast<double>(count));
}

void Metrics::State::write_loop(MetricsPage& page) const {
  if (sources.watchdog == nullptr) return;
  page.gauge("argiope_loop_lag_seconds", "The longest that the loop was late since this was last asked for",
             to_seconds(sources.watchdog->take_longest_lag()));
  page.counter("argiope_loop_stalls_total", "How often the loop has stood still for more than a second",
               static_cast<double>(sources.watchdog->stalls()));
}

void Metrics::State::write_up(MetricsPage& page, bool is_up) const {
  MetricsPage::gauge(page.family("argiope_build_info", MetricType::Gauge, "1, with the version"),
                     {{"version", sources.version}}, 1);
  page.gauge("argiope_up", "1 while the store can be read and has not failed", is_up ? 1 : 0);
}

void Metrics::State::write_daemon(MetricsPage& page) const {
  const EventFeed& events = sources.events;
  page.gauge("argiope_jobs_in_memory", "Jobs that the engine holds in memory",
             static_cast<double>(sources.engine.in_memory()));
  page.gauge("argiope_event_streams", "Streams of events that are open", static_cast<double>(events.streams()));
  page.counter("argiope_event_resets_total", "How often a stream of events had to begin anew",
               static_cast<double>(events.resets()));
}

void Metrics::State::write_added(MetricsPage& page) const {
  for (std::size_t i = 0; i < added.size(); ++i) {
    const Added& first = added[i];
    const auto same = [&](const Added& other) { return other.name == first.name; };
    if (std::any_of(added.begin(), added.begin() + static_cast<std::ptrdiff_t>(i), same)) continue;
    const bool is_counter = first.kind == Kind::counter;
    auto& family = page.family(first.name, is_counter ? MetricType::Counter : MetricType::Gauge, first.help);
    for (const Added& one : added) {
      if (!same(one)) continue;
      const Labels labels = one.label.first.empty() ? Labels{} : Labels{{one.label.first, one.label.second}};
      is_counter ? MetricsPage::counter(family, labels, one.read()) : MetricsPage::gauge(family, labels, one.read());
    }
  }
}

namespace {

void write_process(MetricsPage& page, WallTime started_at) {
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

// Writes the metrics of no queue and no project.
void Metrics::State::write_of_all(MetricsPage& page) {
  write_daemon(page);
  write_schedules(page);
  write_requests(page);
  write_refusals(page);
  write_loop(page);
  write_added(page);
  write_process(page, sources.started_at);
}

Metrics::Metrics(MetricsSources sources) : state_(std::make_unique<State>(State{.sources = std::move(sources)})) {}

Metrics::~Metrics() = default;

void Metrics::add(Kind kind, std::string name, std::string help, std::pair<std::string, std::string> label,
                  std::function<double()> read) {
  state_->added.push_back({kind, std::move(name), std::move(help), std::move(label), std::move(read)});
}

Coro<ServerResponse> Metrics::answer(MaySee may_see) {
  const auto counted = co_await state_->sources.events.count(EventFeed::kCountAge);
  const bool is_up = counted && !state_->sources.engine.failure();
  MetricsPage page;
  state_->write_up(page, is_up);
  if (counted) state_->write_states(page, may_see);
  state_->write_tally(page, may_see);
  state_->write_projects(page, may_see);
  if (!may_see) state_->write_of_all(page);
  // That of many queues takes milliseconds, in which the loop would do nothing else.
  auto response = ServerResponse::text(200, co_await to_thread([page = std::move(page)] { return page.text(); }));
  response.headers.clear();
  response.headers.emplace_back("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  response.headers.emplace_back("Cache-Control", "no-store");
  co_return response;
}

}  // namespace argiope
