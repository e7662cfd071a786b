// The mirror's side of a crawl: shards put what came into two buffers, one thread writes them to the log, and at the
// end the mirror is made of that.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

#include "argiope/crawl/detail/scope.hpp"
#include "argiope/crawl/sinks.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/fingerprint.hpp"
#include "base/internal/printable.hpp"
#include "crawl/page/seen_answers.hpp"
#include "crawl/save/mirror_builder.hpp"
#include "crawl/save/mirror_plan.hpp"
#include "web/html/internal/page_references.hpp"

namespace argiope {
namespace {

constexpr const char* kSeedsFile = "seeds";
constexpr std::size_t kMostSeedsKept = 10'000;

constexpr std::size_t kWriteStep = 512 * 1024;  // what comes is written when so much has come, or is waited for
constexpr std::size_t kMostLogged = 64 * 1024;  // of what is not rewritten: more is a file of its own

// The hosts where a mirror's crawls began, and this one's, have one in common.
Result<void> check_seeds(const MirrorFolder& folder, const std::vector<Url>& seeds, bool sync) {
  if (seeds.empty()) return {};
  auto kept = folder.read_own(kSeedsFile);
  if (!kept) return std::unexpected(std::move(kept.error()));
  std::string text = kept->value_or("");
  std::unordered_set<std::string> known;
  bool is_ours = text.empty();
  std::string first;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const auto url = Url::parse(rest.substr(0, end));
    if (url) {
      known.insert(url->href());
      if (first.empty()) first = url->href();
      is_ours = is_ours ||
                std::ranges::any_of(seeds, [&](const Url& seed) { return is_same_site(seed.host(), url->host()); });
    }
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  if (!is_ours) {
    return fail(Errc::wrong_format,
                fmt::format("{}: a mirror of {}, and not of {}; give each crawl a folder of its own", folder.path(),
                            printable(first), printable(seeds.front().href())));
  }
  const std::size_t before = text.size();
  for (const Url& seed : seeds) {
    if (known.size() < kMostSeedsKept && known.insert(seed.href()).second) text.append(seed.href()) += '\n';
  }
  return text.size() == before ? Result<void>{} : folder.write_own(kSeedsFile, text, sync);
}

}  // namespace

class SaveSink::Impl {
 public:
  Impl(std::unique_ptr<MirrorFolder> folder, std::unique_ptr<MirrorLog> log, bool sync)
      : folder_(std::move(folder)), log_(std::move(log)), sync_(sync), is_empty_(log_->index().entries().empty()) {
    thread_ = std::thread([this] { work(); });
  }
  ~Impl() { end(); }

  Result<void> take(const Exchange& exchange) {
    if (exchange.kind != ExchangeKind::page && exchange.kind != ExchangeKind::requisite) return {};
    if (exchange.request.method != HttpMethod::get || exchange.asked_again) return {};
    const HttpResponse& response = exchange.response;
    const Url& url = exchange.request.url;
    MirrorRecord record;
    record.url = url.without_fragment();
    if (response.status == 200) return take_body(exchange, record);
    if (is_redirect(response.status)) {
      const auto target = Url::parse(response.headers.location, &url);
      const bool leads_somewhere = !response.headers.location.empty() && target;
      record.what = leads_somewhere ? MirrorRecord::What::redirect : MirrorRecord::What::none;
      if (leads_somewhere) record.location = target->href();
      return add(record, {});
    }
    // Other errors may pass, and what was saved before is better than nothing.
    if (response.status == 404 || response.status == 410) return add(record, {});
    return {};
  }

  bool lacks(std::string_view url) const {
    const auto record = log_->index().of(url);
    return !record || (record->what == MirrorRecord::What::blob && !has_blob(*record));
  }

  std::string demand() const { return demand_of_sink("mirror", folder_->path()); }

  std::size_t backlog() const noexcept {
    std::lock_guard lock(mutex_);
    return waiting_.size() + working_bytes_;
  }

  Result<void> keep() {
    {
      std::unique_lock lock(mutex_);
      const std::uint64_t wanted = taken_;
      if (kept_ >= wanted && !failure_) return {};
      is_awaited_ = true;
      wake_.notify_one();
      written_changed_.wait(lock, [&] { return written_ >= wanted || failure_ || !is_working_; });
      if (failure_) return std::unexpected(*failure_);
    }
    return keep_on_disk();
  }

  Result<void> build() {
    std::lock_guard one(building_);
    if (is_finished_) return {};
    if (auto kept = keep(); !kept) return kept;
    return build(MirrorMoment::running);
  }

  Result<void> finish() {
    std::lock_guard one(building_);
    auto kept = keep();
    if (kept) kept = log_->expect_in_place();
    end();
    if (!kept || is_finished_) return kept;
    is_finished_ = true;
    return build(MirrorMoment::end);
  }

  Totals totals() const { return totals_; }

  std::optional<std::string> file_of(const Url& url) const {
    constexpr int kMostHops = 20;
    const MirrorPlan plan(log_->index());
    std::string href(url.without_fragment());
    for (int hops = 0; hops <= kMostHops; ++hops) {
      const auto record = log_->index().of(href);
      if (!record) return std::nullopt;
      if (record->is_file()) {
        const MirrorPlan::File* const file = plan.find(log_->index().fingerprint_of(href));
        return file == nullptr ? std::nullopt : std::optional(folder_->name_of(plan.path_of(*file)));
      }
      const auto target = Url::parse(record->location);
      if (record->what != MirrorRecord::What::redirect || !target) return std::nullopt;
      href = target->without_fragment();
    }
    return std::nullopt;
  }

 private:
  struct Blob {
    std::string digest, bytes;
  };
  // The work that the thread has to write.
  struct Work {
    std::string texts, records;
    std::vector<Blob> blobs;
    std::size_t blob_bytes = 0;
    std::size_t size() const noexcept { return texts.size() + records.size() + blob_bytes; }
    void clear() {
      texts.clear();
      records.clear();
      blobs.clear();
      blob_bytes = 0;
    }
  };

  // One at a time.
  Result<void> build(MirrorMoment moment) {
    const auto built = build_mirror(*folder_, *log_, sync_, moment);
    if (!built) return std::unexpected(built.error());
    totals_.files = built->files;
    totals_.pages = built->pages;
    totals_.written += built->written;
    totals_.removed += built->removed;
    std::lock_guard lock(mutex_);
    totals_.cut_short = cut_short_;
    return {};
  }

  Result<void> take_body(const Exchange& exchange, MirrorRecord& record) {
    const HttpResponse& response = exchange.response;
    if (response.truncated || !response.damage.empty() || response.unwanted) {
      std::lock_guard lock(mutex_);
      if (!response.unwanted) ++cut_short_;
      return add_locked(record, {});
    }
    record.content_type = response.headers.content_type;
    record.type = type_of_answer(exchange.request.url, record.content_type, response.body);
    record.size = response.body.size();
    const bool is_logged = record.is_rewritten() || record.size <= kMostLogged;
    record.what = is_logged ? MirrorRecord::What::logged : MirrorRecord::What::blob;
    const std::string digest = content_digest(response.body);
    record.digest = digest;
    std::string references;
    if (is_logged && exchange.references != nullptr) append_references(*exchange.references, references);
    return add(record, response.body, references);
  }

  Result<void> add(MirrorRecord& record, std::string_view body, std::string_view references = {}) {
    std::lock_guard lock(mutex_);
    return add_locked(record, body, references);
  }
  Result<void> add_locked(MirrorRecord& record, std::string_view body, std::string_view references = {}) {
    if (failure_) return std::unexpected(*failure_);
    if (is_known(record)) return {};
    if (record.what == MirrorRecord::What::logged) {
      record.offset = waiting_.texts.size();
      record.references = static_cast<std::uint32_t>(references.size());
      waiting_.texts.append(body).append(references);
    } else if (record.what == MirrorRecord::What::blob) {
      waiting_.blobs.push_back({std::string(record.digest), std::string(body)});
      waiting_.blob_bytes += body.size();
    }
    append_record(record, waiting_.records);
    ++taken_;
    if (is_worth_writing()) wake_.notify_one();
    return {};
  }

  // An answer that an earlier run has taken just so needs no record again, unless this one has taken another meanwhile.
  bool is_known(const MirrorRecord& record) {
    if (is_empty_) return false;
    const std::uint64_t url = log_->index().fingerprint_of(record.url);
    if (!changed_.contains(url)) {
      const auto known = log_->index().of(record.url);
      const bool same = known && known->what == record.what && known->location == record.location &&
                        known->digest == record.digest && known->content_type == record.content_type &&
                        known->type.kind == record.type.kind && known->size == record.size &&
                        (known->what != MirrorRecord::What::blob || has_blob(*known));
      if (same) return true;
    }
    changed_.insert(url);
    return false;
  }

  bool has_blob(const MirrorRecord& record) const {
    struct stat found {};
    const std::string name(record.digest);
    return ::fstatat(folder_->blobs(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode) &&
           static_cast<std::uint64_t>(found.st_size) == record.size;
  }

  // With the lock held.
  bool is_worth_writing() const noexcept { return waiting_.size() >= kWriteStep || is_awaited_; }

  // To the disk where that is asked for.
  Result<void> keep_on_disk() {
    std::uint64_t written = 0;
    {
      std::lock_guard lock(mutex_);
      written = written_;
    }
    auto synced = log_->expect_in_place();
    if (synced && sync_) synced = log_->sync();
    std::lock_guard lock(mutex_);
    if (synced) {
      kept_ = std::max(kept_, written);
    } else if (!failure_) {
      failure_ = synced.error();
    }
    return synced;
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
    for (Work work;;) {
      std::uint64_t taken = 0;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return is_worth_writing() || is_ending_; });
        if (waiting_.size() == 0 && is_ending_) break;
        is_awaited_ = false;
        std::swap(work, waiting_);
        working_bytes_ = work.size();
        taken = taken_;
      }
      const Result<void> done = write(work);
      std::lock_guard lock(mutex_);
      working_bytes_ = 0;
      if (!done) {
        failure_ = done.error();
        break;
      }
      written_ = taken;
      written_changed_.notify_all();
      work.clear();
    }
    std::lock_guard lock(mutex_);
    is_working_ = false;
    written_changed_.notify_all();
  }

  // Blobs go first: what a record names is there.
  Result<void> write(const Work& work) {
    try {
      for (const Blob& blob : work.blobs) {
        if (auto written = write_blob(blob); !written) return written;
      }
      return log_->add(work.texts, work.records);
    } catch (const std::exception& error) {
      return fail(Errc::internal, fmt::format("{}: {}", folder_->path(), error.what()));
    }
  }

  Result<void> write_blob(const Blob& blob) {
    const std::string shown =
        folder_->name_of(fmt::format("{}/{}/{}", MirrorFolder::kOwn, MirrorFolder::kBlobs, blob.digest));
    if (has_blob({.digest = blob.digest, .size = blob.bytes.size()})) return {};
    const std::string temporary = "tmp-" + blob.digest;
    {
      const Descriptor file(
          ::openat(folder_->blobs(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
      if (!file) return file_trouble(shown, "written");
      if (auto written = write_all(file.get(), blob.bytes, 0, shown); !written) return written;
      if (sync_ && ::fdatasync(file.get()) != 0) return file_trouble(shown, "brought to the disk");
    }
    if (::renameat(folder_->blobs(), temporary.c_str(), folder_->blobs(), blob.digest.c_str()) != 0) {
      return file_trouble(shown, "written");
    }
    return {};
  }

  const std::unique_ptr<MirrorFolder> folder_;
  const std::unique_ptr<MirrorLog> log_;
  const bool sync_;
  const bool is_empty_;  // at the opening

  std::mutex building_;  // files are made; before mutex_
  mutable std::mutex mutex_;
  std::condition_variable wake_, written_changed_;
  Work waiting_;
  std::size_t working_bytes_ = 0;
  std::unordered_set<std::uint64_t> changed_;  // URLs that this run has added, where there were some before
  std::uint64_t taken_ = 0;                    // records, ever
  std::uint64_t written_ = 0;                  // have been given to the system
  std::uint64_t kept_ = 0;                     // and brought to the disk, where that is asked for
  std::uint64_t cut_short_ = 0;
  std::optional<Error> failure_;
  bool is_awaited_ = false;  // keep() waits for all that was taken
  bool is_ending_ = false;
  bool is_working_ = true;
  bool is_finished_ = false;
  Totals totals_;
  std::thread thread_;
};

SaveSink::SaveSink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SaveSink::~SaveSink() = default;

Result<std::shared_ptr<SaveSink>> SaveSink::open(const SaveOptions& options, Random random) {
  auto folder = MirrorFolder::open(options.path);
  if (!folder) return std::unexpected(std::move(folder.error()));
  auto log = MirrorLog::open(**folder, random());
  if (!log) return std::unexpected(std::move(log.error()));
  if (auto good = check_seeds(**folder, options.seeds, options.sync); !good)
    return std::unexpected(std::move(good.error()));
  return std::shared_ptr<SaveSink>(
      new SaveSink(std::make_unique<Impl>(std::move(*folder), std::move(*log), options.sync)));
}

Result<void> SaveSink::take(const Exchange& exchange) { return impl_->take(exchange); }
std::size_t SaveSink::backlog() const noexcept { return impl_->backlog(); }
Result<void> SaveSink::keep() { return impl_->keep(); }
Result<void> SaveSink::build() { return impl_->build(); }
Result<void> SaveSink::finish() { return impl_->finish(); }
bool SaveSink::lacks(std::string_view url) const { return impl_->lacks(url); }
std::string SaveSink::demand() const { return impl_->demand(); }
SaveSink::Totals SaveSink::totals() const { return impl_->totals(); }
std::optional<std::string> SaveSink::file_of(const Url& url) const { return impl_->file_of(url); }

}  // namespace argiope
