// The extraction's side of a crawl: shards put pages into a queue, threads read them and append what they
// find to one file.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "argiope/crawl/sinks.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "crawl/extract/extraction_output.hpp"
#include "crawl/page/internal/page_view.hpp"
#include "crawl/page/seen_answers.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostExtractionThreads = 8;
constexpr std::size_t kMostExampleBytes = 300;
constexpr std::size_t kMostPagesAtOnce = 4;  // that a thread takes
constexpr std::size_t kWrittenAtOnce = 64 * 1024;
constexpr std::uint64_t kNothing = std::numeric_limits<std::uint64_t>::max();

std::size_t threads_for(const ExtractionOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostExtractionThreads);
}

bool as_csv(const ExtractionOptions& options) {
  if (options.format == ExtractionOptions::Format::by_name) return options.output.ends_with(".csv");
  return options.format == ExtractionOptions::Format::csv;
}

std::int64_t in_milliseconds(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// The parts of rules that make other records of a page when they change, in one text.
std::string text_of(const ExtractionRules& rules) {
  std::string text;
  const auto add = [&](std::string_view part) { (text += part) += '\0'; };
  for (const ExtractionRule& rule : rules.rules) {
    add(rule.name);
    for (const std::string& pattern : rule.match) add(pattern);
    add(rule.each);
    add(rule.keeps_empty ? "keeps" : "");
    for (const FieldRule& field : rule.fields) {
      add(field.name);
      for (const std::string& source : field.sources) add(source);
      add(to_string(field.type));
      add(field.attribute);
      add(field.re);
      add(fmt::format("{}{}{}", field.all ? 'a' : '-', field.required ? 'r' : '-',
                      field.decimal == '\0' ? '-' : field.decimal));
      add(field.fallback ? "=" + *field.fallback : "");
      add(!field.day_first ? "" : *field.day_first ? "day" : "month");
    }
  }
  return text;
}

// A page on its way to a thread.
struct QueuedPage {
  std::shared_ptr<FetchedPage> page;
  std::uint32_t depth = 0;
  WallTime fetched_at{};

  std::size_t size() const noexcept { return sizeof *this + page->url.href().size() + page->response.body.size(); }
};

// The page that is read of an exchange, to be kept: a copy where the exchange is not of a visit.
std::shared_ptr<FetchedPage> page_of(const Exchange& exchange) {
  FetchedPage* const there = exchange.rendered != nullptr ? exchange.rendered_page : exchange.fetched;
  if (there != nullptr) return there->share();
  auto copy = std::make_shared<FetchedPage>();
  copy->response = exchange.page();
  copy->begin(exchange.request.url);
  return copy;
}

}  // namespace

class ExtractionSink::Impl {
 public:
  Impl(Extractor extractor, const ExtractionOptions& options)
      : extractor_(std::move(extractor)),
        writer_(extractor_, as_csv(options)),
        demand_(demand_of_sink("records", options.output, text_of(options.rules))),
        sync_(options.sync) {
    for (const std::string& column : extractor_.columns()) told_.fields.push_back({.name = column});
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Result<void> open(const ExtractionOptions& options) {
    auto output = ExtractionOutput::open(options.output, writer_);
    if (!output) return std::unexpected(std::move(output.error()));
    output_ = std::move(*output);
    reading_.assign(threads_for(options), kNothing);
    for (std::size_t i = 0; i < reading_.size(); ++i) threads_.emplace_back([this, i] { work(i); });
    return {};
  }
  Result<void> go_on_from(UrlStore& store);
  const std::string& demand() const noexcept { return demand_; }
  bool begins_anew() const noexcept { return output_->is_new(); }

  Result<void> take(const Exchange& exchange);
  std::size_t backlog() const noexcept { return backlog_.load(std::memory_order_relaxed); }
  Result<void> keep();
  std::optional<UrlNote> note() const { return output_->note(); }
  Result<void> finish() {
    auto kept = keep();
    if (kept) output_->end();
    return kept;
  }
  void give_up(Duration after) noexcept { output_->give_up(after); }
  ExtractionReport report() const {
    const std::lock_guard lock(told_mutex_);
    return told_;
  }

 private:
  bool concerns_us(const Exchange& exchange) const;
  bool is_written_already(const std::string& url);
  Result<std::optional<OutputMark>> find_mark(UrlStore& store) const;
  Result<void> expect_file_of_crawl(UrlStore& store) const;
  Result<DonePages> read_states(UrlStore& store) const;
  void work(std::size_t thread);
  Result<void> extract(const std::vector<QueuedPage>& pages);
  void note(const ExtractedPage& page, const ExtractedRecords& records);
  void note_refused(const ExtractedPage& page, const Error& why);
  // The oldest page that is not written yet, or the next one to come. With the mutex held.
  std::uint64_t first_unwritten() const {
    return std::min(queue_.empty() ? taken_ : taken_ - queue_.size(), std::ranges::min(reading_));
  }

  const Extractor extractor_;
  const RecordWriter writer_;
  const std::string demand_;
  const bool sync_;
  std::unique_ptr<ExtractionOutput> output_;

  // Pages that an interrupted run has written and the database does not know as done; see go_on_from().
  std::unordered_set<std::string> written_;
  std::atomic<bool> has_written_{false};
  std::mutex written_mutex_;

  std::mutex mutex_;
  std::condition_variable wake_, progressed_;
  std::deque<QueuedPage> queue_;
  std::uint64_t taken_ = 0;                // pages that have come; each has the number of those before it
  std::vector<std::uint64_t> reading_;     // by thread, the number of the page it reads
  std::uint64_t least_wanted_ = kNothing;  // of those who wait in keep()
  std::atomic<std::size_t> backlog_{0};
  std::optional<Error> failure_;
  bool ends_ = false;

  mutable std::mutex told_mutex_;
  ExtractionReport told_;

  std::vector<std::thread> threads_;
};

// --- what comes
// ----------------------------------------------------------------------------------------------------------

bool ExtractionSink::Impl::concerns_us(const Exchange& exchange) const {
  const HttpResponse& response = exchange.page();
  return exchange.kind == ExchangeKind::page && exchange.request.method == HttpMethod::get && response.status == 200 &&
         !response.unwanted && !exchange.asked_again &&
         extractor_.reads(exchange.request.url.href(), response.headers.content_type, response.body);
}

Result<void> ExtractionSink::Impl::take(const Exchange& exchange) {
  if (!concerns_us(exchange) || is_written_already(exchange.request.url.href())) return {};
  QueuedPage page{page_of(exchange), exchange.depth, exchange.began};
  // The visit reads it meanwhile: what both need is there before.
  page.page->view.text();
  backlog_ += page.size();
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return std::unexpected(*failure_);
    queue_.push_back(std::move(page));
    ++taken_;
  }
  wake_.notify_one();
  return {};
}

bool ExtractionSink::Impl::is_written_already(const std::string& url) {
  if (!has_written_.load(std::memory_order_relaxed)) return false;
  {
    const std::lock_guard lock(written_mutex_);
    if (written_.erase(url) == 0) return false;
    has_written_ = !written_.empty();
  }
  const std::lock_guard lock(told_mutex_);
  ++told_.known;
  return true;
}

Result<void> ExtractionSink::Impl::keep() {
  {
    std::unique_lock lock(mutex_);
    const std::uint64_t wanted = taken_;
    while (!failure_ && first_unwritten() < wanted) {
      least_wanted_ = std::min(least_wanted_, wanted);
      progressed_.wait(lock);
    }
    if (failure_) return std::unexpected(*failure_);
  }
  return output_->keep(sync_);
}

Result<void> ExtractionSink::Impl::go_on_from(UrlStore& store) {
  // A database has to be older than the first record of its crawl, also after a kill.
  if (auto flushed = store.flush(); !flushed) return flushed;
  const auto mark = find_mark(store);
  if (!mark) return std::unexpected(mark.error());
  if (!*mark) {
    if (auto ours = expect_file_of_crawl(store); !ours) return ours;
  }
  const auto done = read_states(store);
  if (!done) return std::unexpected(done.error());
  auto written = output_->go_on(*mark, *done);
  if (!written) return std::unexpected(std::move(written.error()));
  written_ = std::move(*written);
  has_written_ = !written_.empty();
  // Before the first record there is a mark for the run that goes on.
  if (auto kept = output_->keep(sync_); !kept) return kept;
  if (auto note = output_->note()) store.submit({.notes = {std::move(*note)}});
  return store.flush();
}

Result<std::optional<OutputMark>> ExtractionSink::Impl::find_mark(UrlStore& store) const {
  std::vector<OutputMark> marks;
  std::optional<OutputMark> last;
  auto scanned = store.scan_notes(kOutputNotes, [&](const UrlNote& note) {
    auto mark = OutputMark::parse(note.text);
    if (mark && note.name == output_->note_name()) last = *mark;
    if (mark) marks.push_back(std::move(*mark));
    return true;
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  auto found = output_->find_mark(marks);
  if (!found && last && output_->size() > 0) {
    spdlog::warn(
        "{}: it is not as the last run left it, when it had {}, and has {} now: of pages that are done, what is "
        "missing in it "
        "is not written again",
        printable(output_->path()), counted(last->size, "byte"), counted(output_->size(), "byte"));
  }
  return found;
}

Result<void> ExtractionSink::Impl::expect_file_of_crawl(UrlStore& store) const {
  if (output_->last_pages().empty()) return {};
  auto first = store.get(1);
  if (!first) return std::unexpected(std::move(first.error()));
  if (!*first || in_milliseconds((*first)->ctime) > output_->last_fetch()) {
    return fail(
        Errc::wrong_format,
        fmt::format("{} is there, and of an earlier crawl than the database; name another file, or move it away",
                    printable(output_->path())));
  }
  return {};
}

// A page whose outcome is stored was settled after it was asked for, so its time there is not before that of its
// records. One that waits again has a time, too: that of an answer after which it is asked again.
Result<DonePages> ExtractionSink::Impl::read_states(UrlStore& store) const {
  DonePages done;
  std::unordered_set<std::string_view> unseen;
  for (const WrittenPage& page : output_->last_pages()) unseen.insert(page.url);
  if (unseen.empty()) return done;
  const auto note = [&](const UrlRecord& record) {
    if (unseen.erase(record.url) == 0) return true;
    done.emplace(record.url, record.state == UrlState::done ? in_milliseconds(record.mtime) : kNotDone);
    return !unseen.empty();
  };
  if (auto scanned = store.scan(1, note, UrlStore::Fields::to_go_on); !scanned)
    return std::unexpected(std::move(scanned.error()));
  return done;
}

// --- threads
// -------------------------------------------------------------------------------------------------------------

void ExtractionSink::Impl::work(std::size_t thread) {
  std::vector<QueuedPage> pages;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return ends_ || !queue_.empty(); });
    if (ends_) return;
    reading_[thread] = taken_ - queue_.size();
    for (std::size_t left = std::clamp<std::size_t>(queue_.size() / reading_.size(), 1, kMostPagesAtOnce); left > 0;
         --left) {
      pages.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    lock.unlock();
    Result<void> done;
    try {
      done = extract(pages);
    } catch (const std::exception& error) {
      done = fail(Errc::internal, fmt::format("extraction: {}", error.what()));
    }
    for (const QueuedPage& page : pages) backlog_ -= page.size();
    pages.clear();
    lock.lock();
    reading_[thread] = kNothing;
    if (!done && !failure_) failure_ = std::move(done.error());
    if (failure_ || first_unwritten() >= least_wanted_) {
      least_wanted_ = kNothing;
      progressed_.notify_all();
    }
  }
}

// Records of several pages are written at once, those of one in one piece.
Result<void> ExtractionSink::Impl::extract(const std::vector<QueuedPage>& pages) {
  std::string lines;
  const auto write = [&] {
    auto written = output_->write(lines);
    lines.clear();
    return written;
  };
  for (const QueuedPage& queued : pages) {
    PageView& view = queued.page->view;
    const ExtractedPage page{view.url(), view.body(), view.content_type(), 200, queued.depth, queued.fetched_at, &view};
    const auto records = extractor_.extract(page);
    if (!records) {
      note_refused(page, records.error());
      continue;
    }
    writer_.append(lines, page, *records);
    note(page, *records);
    if (lines.size() < kWrittenAtOnce) continue;
    if (auto written = write(); !written) return written;
  }
  return lines.empty() ? Result<void>{} : write();
}

void ExtractionSink::Impl::note(const ExtractedPage& page, const ExtractedRecords& records) {
  const std::lock_guard lock(told_mutex_);
  ++told_.pages;
  told_.records += records.records.size();
  told_.dropped += records.dropped;
  if (records.records.empty()) ++told_.empty;
  for (const ExtractedRecord& record : records.records) {
    for (std::size_t i = 0; i < record.values.size(); ++i) {
      if (record.values[i].kind != FieldValue::Kind::none) ++told_.fields[i].values;
    }
  }
  for (const FieldTrouble& trouble : records.troubles) {
    FieldReport& field = told_.fields[trouble.field];
    if (++field.troubles > 1) continue;
    field.example = fmt::format("{} ({})", trouble.why.substr(0, kMostExampleBytes), page.url.href());
  }
}

void ExtractionSink::Impl::note_refused(const ExtractedPage& page, const Error& why) {
  const std::lock_guard lock(told_mutex_);
  ++told_.pages;
  if (++told_.refused > 1) return;
  told_.refused_example = fmt::format("{} ({})", why.message.substr(0, kMostExampleBytes), page.url.href());
}

// --- the sink
// ------------------------------------------------------------------------------------------------------------

ExtractionSink::ExtractionSink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExtractionSink::~ExtractionSink() = default;

Result<std::shared_ptr<ExtractionSink>> ExtractionSink::open(const ExtractionOptions& options) {
  auto extractor = Extractor::compile(options.rules);
  if (!extractor) return std::unexpected(std::move(extractor.error()));
  auto impl = std::make_unique<Impl>(std::move(*extractor), options);
  if (auto opened = impl->open(options); !opened) return std::unexpected(std::move(opened.error()));
  return std::shared_ptr<ExtractionSink>(new ExtractionSink(std::move(impl)));
}

Result<void> ExtractionSink::go_on_from(UrlStore& store) { return impl_->go_on_from(store); }
Result<void> ExtractionSink::take(const Exchange& exchange) { return impl_->take(exchange); }
std::size_t ExtractionSink::backlog() const noexcept { return impl_->backlog(); }
Result<void> ExtractionSink::keep() { return impl_->keep(); }
std::optional<UrlNote> ExtractionSink::note() const { return impl_->note(); }
Result<void> ExtractionSink::finish() { return impl_->finish(); }
std::string ExtractionSink::demand() const { return impl_->demand(); }
bool ExtractionSink::begins_anew() const noexcept { return impl_->begins_anew(); }
void ExtractionSink::give_up(Duration after) noexcept { impl_->give_up(after); }
ExtractionReport ExtractionSink::report() const { return impl_->report(); }

}  // namespace argiope
