// The archive's side of a crawl: shards put exchanges into a queue, one thread digests, packs and writes them.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "argiope/crawl/sinks.hpp"
#include "base/internal/counted.hpp"
#include "crawl/page/internal/page_view.hpp"
#include "crawl/page/seen_answers.hpp"
#include "warc/internal/warc_archive.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostSeedsTold = 1000;

WarcArchiveOptions archive_options(const WarcOptions& options) {
  WarcArchiveOptions archive{.path = options.path, .most_bytes = options.most_bytes, .info = options.info};
  for (std::size_t i = 0; i < std::min(options.seeds.size(), kMostSeedsTold); ++i) {
    archive.info.emplace_back(kWarcSeedField, options.seeds[i].href());
  }
  return archive;
}

// An exchange on its way to the thread.
struct TakenExchange {
  HttpRequest request;  // its URL
  std::shared_ptr<const HttpResponse> response;
  WallTime began{};

  std::size_t size() const noexcept {
    const HttpWire& wire = response->wire;
    return sizeof *this + wire.request.size() + wire.head.size() + wire.coded_body.size() + response->body.size();
  }
};

// To be kept: a copy where it is not a visit's.
std::shared_ptr<const HttpResponse> response_of(const Exchange& exchange) {
  if (exchange.fetched == nullptr) return std::make_shared<const HttpResponse>(exchange.response);
  auto page = exchange.fetched->share();
  return {page, &page->response};
}

}  // namespace

class WarcSink::Impl {
 public:
  Impl(std::unique_ptr<WarcArchive> archive, std::string demand, bool sync)
      : archive_(std::move(archive)), demand_(std::move(demand)), sync_(sync), file_(archive_->written_file()) {
    thread_ = std::thread([this] { work(); });
  }
  ~Impl() { end(); }

  Result<void> take(const Exchange& exchange) {
    // An exchange that checks a link, or asks whether a host lives, captures no page; nor is one there whose body is
    // not wanted, or was not asked for: it would stand before the page that an earlier run has captured.
    if (exchange.kind == ExchangeKind::check || exchange.kind == ExchangeKind::probe) return {};
    if (exchange.response.unwanted || exchange.request.method == HttpMethod::head) return {};
    TakenExchange taken{.response = response_of(exchange), .began = exchange.began};
    taken.request.url = exchange.request.url;
    std::lock_guard lock(mutex_);
    if (failure_) return std::unexpected(*failure_);
    backlog_ += taken.size();
    queue_.push_back(std::move(taken));
    ++taken_;
    wake_.notify_one();
    return {};
  }

  std::size_t backlog() const noexcept {
    std::lock_guard lock(mutex_);
    return backlog_;
  }

  // The caller brings it to the disk: the thread goes on packing meanwhile.
  Result<void> keep() {
    std::shared_ptr<WarcArchive::File> file;
    std::uint64_t written = 0;
    {
      std::unique_lock lock(mutex_);
      const std::uint64_t wanted = taken_;
      if (kept_ >= wanted && !failure_) return {};
      wanted_ = std::max(wanted_, wanted);
      wake_.notify_one();
      written_changed_.wait(lock, [&] { return written_ >= wanted || failure_ || !is_working_; });
      if (failure_) return std::unexpected(*failure_);
      file = file_;
      written = written_;
    }
    if (sync_) {
      if (auto synced = WarcArchive::sync(*file); !synced) return fail_with(std::move(synced.error()));
    }
    std::lock_guard lock(mutex_);
    kept_ = std::max(kept_, written);
    return {};
  }

  Result<void> finish() {
    auto kept = keep();
    end();
    if (!kept || is_closed_) return kept;
    is_closed_ = true;
    return archive_->close();
  }

  Totals totals() const {
    std::lock_guard lock(mutex_);
    return {totals_.responses, totals_.revisits, totals_.bytes};
  }
  const std::string& file() const noexcept { return archive_->file(); }
  const std::string& demand() const noexcept { return demand_; }
  bool begins_anew() const noexcept { return archive_->is_new(); }

 private:
  using Exchanges = std::deque<TakenExchange>;

  std::unexpected<Error> fail_with(Error error) {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(error);
    written_changed_.notify_all();
    return std::unexpected(*failure_);
  }

  void end() {
    {
      std::lock_guard lock(mutex_);
      is_ending_ = true;
      wake_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

  // --- the thread

  void work() {
    for (std::uint64_t done = 0;;) {
      Exchanges exchanges;
      bool is_write_wanted = false;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return !queue_.empty() || wanted_ > written_ || is_ending_; });
        exchanges.swap(queue_);
        is_write_wanted = wanted_ > written_;
        if (exchanges.empty() && !is_write_wanted) break;
      }
      done += exchanges.size();
      const Result<void> added = add(exchanges, is_write_wanted);
      if (!added) {
        fail_with(added.error());
        break;
      }
      if (!is_write_wanted) continue;
      std::lock_guard lock(mutex_);
      written_ = done;
      file_ = archive_->written_file();
      written_changed_.notify_all();
    }
    std::lock_guard lock(mutex_);
    is_working_ = false;
    written_changed_.notify_all();
  }

  Result<void> add(Exchanges& exchanges, bool then_write) {
    try {
      for (TakenExchange& taken : exchanges) {
        exchange_.assign(taken.request, *taken.response, taken.began);
        if (auto added = archive_->add(exchange_); !added) return added;
        note_added(taken.size());
        taken.response.reset();
      }
      return then_write ? archive_->write_out() : Result<void>{};
    } catch (const std::exception& error) {
      return fail(Errc::internal, fmt::format("{}: {}", archive_->file(), error.what()));
    }
  }

  void note_added(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    backlog_ -= bytes;
    totals_ = archive_->totals();
  }

  const std::unique_ptr<WarcArchive> archive_;
  const std::string demand_;
  const bool sync_;

  mutable std::mutex mutex_;
  std::condition_variable wake_, written_changed_;
  Exchanges queue_;
  std::size_t backlog_ = 0;
  std::uint64_t taken_ = 0;    // exchanges, ever
  std::uint64_t wanted_ = 0;   // are to be written
  std::uint64_t written_ = 0;  // have been given to the system
  std::uint64_t kept_ = 0;     // and brought to the disk, where that is asked for
  std::shared_ptr<WarcArchive::File> file_;
  WarcTotals totals_;
  std::optional<Error> failure_;
  bool is_ending_ = false;
  bool is_working_ = true;
  bool is_closed_ = false;
  WarcExchange exchange_;  // of the thread: the one that is being added
  std::thread thread_;
};

WarcSink::WarcSink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WarcSink::~WarcSink() = default;

Result<std::shared_ptr<WarcSink>> WarcSink::open(const WarcOptions& options, const Clock& clock, Random random) {
  auto archive = WarcArchive::open(archive_options(options), clock, random);
  if (!archive) return std::unexpected(std::move(archive.error()));
  for (const WarcRepair& repair : (*archive)->repairs()) {
    if (repair.forgotten > 0) {
      spdlog::warn("{}: it is gone, and begun anew: {} of it left out of the index", repair.file,
                   counted(repair.forgotten, "line"));
      continue;
    }
    if (repair.odd_lines > 0) {
      spdlog::warn("{}: {} of it torn, as by a power cut, and left out; the files were read for what it lacks",
                   repair.file, counted(repair.odd_lines, "line"));
      continue;
    }
    spdlog::warn("{}: its last record was not written whole, as when a crawl is killed: {} cut off", repair.file,
                 counted(repair.cut_bytes, "byte"));
  }
  // The folder and the beginning of all its files' names.
  std::string place = options.path;
  for (const std::string_view ending : {".gz", ".warc"}) {
    if (place.ends_with(ending)) place.resize(place.size() - ending.size());
  }
  return std::shared_ptr<WarcSink>(
      new WarcSink(std::make_unique<Impl>(std::move(*archive), demand_of_sink(kArchiveDemand, place), options.sync)));
}

Result<void> WarcSink::take(const Exchange& exchange) { return impl_->take(exchange); }
std::size_t WarcSink::backlog() const noexcept { return impl_->backlog(); }
Result<void> WarcSink::keep() { return impl_->keep(); }
Result<void> WarcSink::finish() { return impl_->finish(); }
std::string WarcSink::demand() const { return impl_->demand(); }
bool WarcSink::begins_anew() const noexcept { return impl_->begins_anew(); }
WarcSink::Totals WarcSink::totals() const { return impl_->totals(); }
const std::string& WarcSink::file() const noexcept { return impl_->file(); }

}  // namespace argiope
