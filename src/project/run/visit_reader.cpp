#include "project/run/visit_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>

namespace argiope {
namespace {

constexpr std::size_t kMostReadingThreads = 8;
constexpr Duration kOtherProcessorPause = std::chrono::seconds{1};

// One page more while it lives.
class PageCount {
 public:
  explicit PageCount(std::size_t& pages) noexcept : pages_(pages) { ++pages_; }
  ~PageCount() { --pages_; }
  PageCount(const PageCount&) = delete;

 private:
  std::size_t& pages_;
};

}  // namespace

Error error_of(const FetchedAnswer& fetched) {
  const PageResponse& response = fetched.response;
  if (!response.error_text.empty()) return {Errc::network, response.error_text};
  return {Errc::network, fmt::format("answered HTTP {}", response.status)};
}

VisitReader::VisitReader(PageEngineCore& core, HostTable& hosts)
    : PageEnginePart(core),
      hosts_(hosts),
      rendering_{.renderer = options_.hosts.renderer,
                 .why_not = options_.why_not_rendered,
                 .limits = options_.hosts.render_limits,
                 .part_timeout = options_.hosts.timeout,
                 .book = {}} {
  if (!options_.reads_on_threads) return;
  readers_.resize(std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostReadingThreads));
  for (std::size_t i = 0; i < readers_.size(); ++i) core.reading.there.push_back(RuleReader::links(core.reading.agent));
}

void VisitReader::open_threads() {
  for (ReadingThread& reader : readers_) reader.executor = std::make_unique<ThreadPoolExecutor>(1);
}

void VisitReader::close_threads() {
  for (ReadingThread& reader : readers_) reader.executor.reset();
}

Coro<void> VisitReader::close() {
  if (rendering_.renderer != nullptr) co_await rendering_.renderer->close();
}

Coro<FetchedAnswer> VisitReader::fetch(PageVisit& visit) {
  LiveProject& project = *visit.project;
  FetchOrder order{.url = visit.record.address(),
                   .settings = visit.settings,
                   .etag = visit.record.etag,
                   .last_modified = visit.record.last_modified,
                   .body_limit = options_.body_limit,
                   .timeout = options_.page_timeout};
  // In a round what a page leads to is asked for anew, for which its links are needed whether or not it has changed.
  if (const auto rule = project.rules[visit.rule].place;
      visit.round != 0 && rule && project.definition.rules[*rule].follow) {
    order.etag.clear();
    order.last_modified.clear();
  }
  FetchedAnswer fetched = co_await fetch_page(
      order, *core_.transport, hosts_.desk(), [this](const Url& url) { return hosts_.host_of(url); }, &rendering_);
  visit.fetched = visit.read = core_.loop->time();
  for (PageLog& line : fetched.notes) log(project, line.level, std::move(line.text));
  co_return fetched;
}

Coro<VisitReader::ReadPage> VisitReader::read_page(PageVisit& visit, FetchedAnswer& fetched) {
  LiveProject& project = *visit.project;
  // Rules may change while the page is read.
  const std::optional<std::size_t> place = project.rules[visit.rule].place;
  const bool wants_errors = project.rules[visit.rule].errors;
  const bool calls = !place || project.definition.rules[*place].call;
  const ProjectProcessor processor = project.definition.processor;
  ReadPage read;
  VisitAnswer& answer = read.answer;
  if (fetched.is_success && place) {
    visit.readers = project.readers;
    visit.place = *place;
    read.reading = co_await read_by_rule(visit, *place, fetched);
  }
  const bool is_for_script = calls && (!processor.empty() || !project.definition.processor.empty());
  if (is_for_script && (fetched.is_success || wants_errors)) {
    // Another version of the project may have another processor, which has not said yet what it is, or none.
    if (project.processor && project.description && project.definition.processor == processor) {
      answer = co_await call_script(visit, fetched, read.reading ? &*read.reading : nullptr);
    } else {
      answer.failure =
          ProcessorFailure{.text = "its processor is another now", .delay = kOtherProcessorPause, .not_now = true};
    }
  } else if (!fetched.is_success && !fetched.is_unchanged) {
    ProcessorFailure failure{.text = error_of(fetched).message, .kind = fetched.response.error_kind};
    if (fetched.retry_after) failure.delay = fetched.retry_after;
    failure.is_final = is_not_there(fetched.response.status) || fetched.is_refused;
    answer.failure = std::move(failure);
  }
  co_return read;
}

// Fields take their time: on threads of their own. Links alone are read at once.
Coro<RuleReading> VisitReader::read_by_rule(PageVisit& visit, std::size_t place, FetchedAnswer& fetched) {
  const std::shared_ptr<RuleReaders> readers = visit.readers;
  const WallTime now = wall();
  const std::string url = visit.record.address();
  RuleReading reading;
  if (readers_.empty() || !readers->has_fields(place)) {
    readers->here().read(place, url, fetched.response, now, reading);
    co_return reading;
  }
  // The thread may still have it when the visit is cancelled.
  const auto response = std::make_shared<PageResponse>(std::move(fetched.response));
  const auto least = std::ranges::min_element(readers_, {}, &ReadingThread::pages);
  const auto thread = static_cast<std::size_t>(least - readers_.begin());
  const PageCount waits(least->pages);
  reading = co_await run_in_executor(*least->executor, [readers, thread, place, url, response, now] {
    RuleReading read;
    readers->there(thread).read(place, url, *response, now, read);
    return read;
  });
  fetched.response = std::move(*response);
  co_return reading;
}

Coro<VisitAnswer> VisitReader::call_script(PageVisit& visit, FetchedAnswer& fetched, const RuleReading* reading) {
  const SharedProject project = visit.project;
  PageCall call;
  call.event = event_of(&*project->description, visit.record.address(), visit.record.rule);
  call.rule = visit.record.rule;
  call.project = project->record.name;
  call.name = visit.record.name;
  call.url = visit.record.address();
  call.context_json = visit.record.context;
  call.settings = visit.settings;
  call.attempt = visit.before.retried + 1;
  if (visit.before.succeeded_at != WallTime{}) call.last_at = visit.before.succeeded_at;
  if (visit.settings.time_limit.value) call.time_limit = *visit.settings.time_limit.value;
  call.response = std::move(fetched.response);
  call.save_json = visit.record.save;
  if (const auto fields = project->rules[visit.rule].fields; fields && fetched.is_success) {
    std::vector<std::string> troubles;
    call.fields_json = fields->read(call.url, call.response, wall(), troubles);
    for (std::string& trouble : troubles) log(*project, "warning", std::move(trouble));
  } else if (reading != nullptr && reading->results && !reading->results->empty()) {
    call.fields_json = reading->results->front().value_json;
  }
  ++project->reading;
  VisitAnswer answer;
  std::exception_ptr thrown;
  try {
    const std::shared_ptr<Processor> processor = project->processor;
    answer = co_await processor->process(call);
  } catch (...) {
    thrown = std::current_exception();
  }
  --project->reading;
  fetched.response = std::move(call.response);
  if (thrown) std::rethrow_exception(thrown);
  co_return answer;
}

}  // namespace argiope
