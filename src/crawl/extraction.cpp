#include "argiope/crawl/extraction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "argiope/async/executor.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/waiting.hpp"
#include "base/internal/printable.hpp"
#include "crawl/extraction_output.hpp"
#include "web/internal/ascii.hpp"
#include "web/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostExtractionThreads = 8;
constexpr std::size_t kMostExampleBytes = 300;

std::size_t threads_for(const ExtractionOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostExtractionThreads);
}

bool as_csv(const ExtractionOptions& options) {
  if (options.format == ExtractionOptions::Format::by_name) return options.output.ends_with(".csv");
  return options.format == ExtractionOptions::Format::csv;
}

// What has a tree.
bool is_readable(std::string_view content_type, std::string_view body) {
  if (is_html_page(content_type, body)) return true;
  std::string type(parse_content_type(content_type).type);
  std::ranges::transform(type, type.begin(), to_lower);
  return type == "text/xml" || type == "application/xml" || type.ends_with("+xml");
}

std::int64_t in_milliseconds(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

}  // namespace

struct Extraction::State {
  State(Extractor the_extractor, const ExtractionOptions& options)
      : extractor(std::move(the_extractor)), writer(extractor, as_csv(options)), threads(threads_for(options)) {
    for (const std::string& column : extractor.columns()) told.fields.push_back({.name = column});
  }

  Coro<void> handle(const Page& page);
  Result<void> extract(const ExtractedPage& page);
  bool is_written_already(const Page& page);
  void note(const ExtractedPage& page, const ExtractedRecords& records);
  void note_refused(const ExtractedPage& page, const Error& why);
  void fail_once();

  const Extractor extractor;
  const RecordWriter writer;
  std::unique_ptr<ExtractionOutput> output;
  // Pages that an interrupted run has written and the database does not know as done; see go_on_from().
  WrittenPages written;
  std::atomic<bool> has_written{false};
  std::mutex written_mutex;

  mutable std::mutex mutex;
  ExtractionReport told;
  std::function<void()> stop;
  bool has_failed = false;

  ThreadPoolExecutor threads;  // the last, because what it runs uses the others
};

Extraction::Extraction(std::unique_ptr<State> state) : state_(std::move(state)) {}
Extraction::~Extraction() = default;

Result<std::unique_ptr<Extraction>> Extraction::open(ExtractionOptions options) {
  auto extractor = Extractor::compile(options.rules);
  if (!extractor) return std::unexpected(std::move(extractor.error()));
  auto state = std::make_unique<State>(std::move(*extractor), options);
  auto output = ExtractionOutput::open(options.output, state->writer);
  if (!output) return std::unexpected(std::move(output.error()));
  state->output = std::move(*output);
  state->written = state->output->take_last_pages();
  state->has_written = !state->written.empty();
  return std::unique_ptr<Extraction>(new Extraction(std::move(state)));
}

PageHandler Extraction::handler() {
  return [&state = *state_](const Page& page) { return state.handle(page); };
}

std::function<Result<void>()> Extraction::before_commit() {
  return [&output = *state_->output] { return output.sync(); };
}

void Extraction::on_failure(std::function<void()> stop) { state_->stop = std::move(stop); }

Result<void> Extraction::close() { return state_->output->sync(); }

ExtractionReport Extraction::report() const {
  const std::lock_guard lock(state_->mutex);
  return state_->told;
}

// A page whose outcome is stored was settled after its records were written, so its time there is not before theirs.
Result<void> Extraction::go_on_from(UrlStore& store) {
  WrittenPages& written = state_->written;
  if (written.empty()) return {};
  // What is new in the database has to be there before the first record of it is in the file.
  if (auto flushed = store.flush(); !flushed) return flushed;
  auto first = store.get(1);
  if (!first) return std::unexpected(std::move(first.error()));
  if (!*first || in_milliseconds((*first)->ctime) > state_->output->last_fetch()) {
    return fail(Errc::wrong_format,
                fmt::format("{} is there, and of an earlier crawl than the database; name another file, or move it away",
                            printable(state_->output->path())));
  }
  std::size_t unseen = written.size();
  auto scanned = store.scan(
      1,
      [&](const UrlRecord& record) {
        const auto found = written.find(record.url);
        if (found == written.end()) return true;
        if (in_milliseconds(record.mtime) >= found->second) written.erase(found);
        return --unseen > 0;
      },
      UrlStore::Fields::to_go_on);
  state_->has_written = !written.empty();
  return scanned;
}

bool Extraction::State::is_written_already(const Page& page) {
  if (!has_written.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(written_mutex);
  if (written.erase(page.url.href()) == 0) return false;
  has_written = !written.empty();
  const std::lock_guard told_lock(mutex);
  ++told.known;
  return true;
}

Coro<void> Extraction::State::handle(const Page& page) {
  const bool concerns_us = page.status() == 200 && is_readable(page.response.headers.content_type, page.body()) &&
                           extractor.matches(page.url.href());
  if (!concerns_us || is_written_already(page)) co_return;
  const ExtractedPage extracted{page.url,    page.body(), page.response.headers.content_type,
                                page.status(), page.depth,  EventLoop::current().clock().wall_now()};
  Future<Result<void>> done = run_in_executor(threads, [this, &extracted] { return extract(extracted); });
  // It reads the page, so that nobody may take that away before it has ended.
  bool cancelled = false;
  while (!done.done()) {
    std::vector<Future<Result<void>>> one(1, done);
    try {
      co_await wait(std::move(one));
    } catch (const CancelledError&) {
      cancelled = true;
    }
  }
  if (cancelled) throw CancelledError();
  const Result<void> written_down = done.result();
  if (written_down) co_return;
  if (!stop) throw Failure(written_down.error());
  // The page is not done: the crawl is being stopped, and cancels us.
  fail_once();
  Event never;
  co_await never.wait();
}

void Extraction::State::fail_once() {
  {
    const std::lock_guard lock(mutex);
    if (std::exchange(has_failed, true)) return;
  }
  stop();
}

Result<void> Extraction::State::extract(const ExtractedPage& page) {
  auto records = extractor.extract(page);
  if (!records) {
    note_refused(page, records.error());
    return {};
  }
  if (!records->records.empty()) {
    std::string lines;
    writer.append(lines, page, *records);
    if (auto done = output->write(lines); !done) return done;
  }
  note(page, *records);
  return {};
}

void Extraction::State::note(const ExtractedPage& page, const ExtractedRecords& records) {
  const std::lock_guard lock(mutex);
  ++told.pages;
  told.records += records.records.size();
  told.dropped += records.dropped;
  if (records.records.empty()) ++told.empty;
  for (const ExtractedRecord& record : records.records) {
    for (std::size_t i = 0; i < record.values.size(); ++i) {
      if (record.values[i].kind != FieldValue::Kind::none) ++told.fields[i].values;
    }
  }
  for (const FieldTrouble& trouble : records.troubles) {
    FieldReport& field = told.fields[trouble.field];
    if (++field.troubles > 1) continue;
    field.example = fmt::format("{} ({})", trouble.why.substr(0, kMostExampleBytes), page.url.href());
  }
}

void Extraction::State::note_refused(const ExtractedPage& page, const Error& why) {
  const std::lock_guard lock(mutex);
  ++told.pages;
  if (++told.refused > 1) return;
  told.refused_example = fmt::format("{} ({})", why.message.substr(0, kMostExampleBytes), page.url.href());
}

}  // namespace argiope
