// The one PageStore: SQLite, on a file or in memory. Batches are committed in groups by a thread of its own
// (BatchCommit); a file is read by a second connection, which sees what is committed while the next transaction is
// being written.
#include "project/store/internal/page_store.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/internal/fingerprint.hpp"
#include "project/rules/internal/data_scheme.hpp"
#include "project/store/page_store_reads.hpp"
#include "project/store/page_store_rows.hpp"
#include "project/store/page_store_writer.hpp"
#include "store/sqlite/internal/batch_commit.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"

namespace argiope {
namespace {

// Before what the sender calls it.
constexpr std::string_view kMessagePage = "data:,on_message#";

// Records in a transaction, so that its log stays within some tens of megabytes.
constexpr std::size_t kMostInPageTransaction = 50'000;

// Of a look at a file of an older version that others own: half a second.
constexpr int kTriesToBringUp = 25;
constexpr int kBringUpPauseMs = 20;

// A batch on its way to the disk.
class PageBatchCall final : public GroupCommit::Call {
 public:
  PageBatchCall(PageStoreWriter& writer, PageBatch batch)
      : Call(Kind::write, batch.size()), writer_(writer), batch_(std::move(batch)) {}
  void run() override { fed_ = writer_.write(batch_); }
  void fail(const Error&) override { failed_ = true; }  // GroupCommit::failure() says it
  bool fed() const noexcept { return fed_ && !failed_; }
  bool forgets() const noexcept { return !failed_ && !batch_.forgotten.empty(); }

 private:
  PageStoreWriter& writer_;
  const PageBatch batch_;
  bool fed_ = false, failed_ = false;
};

// A step on the way of forgetting projects. It counts for no record: who waits for what he has submitted does not wait
// for all steps.
class ForgetCall final : public GroupCommit::Call {
 public:
  explicit ForgetCall(PageStoreWriter& writer) : Call(Kind::write, 0), writer_(writer) {}
  void run() override { more_ = writer_.forget_some(); }
  void fail(const Error&) override { more_ = false; }
  bool more() const noexcept { return more_; }

 private:
  PageStoreWriter& writer_;
  bool more_ = false;
};

class SqlitePageStore final : public PageStoreReads {
 public:
  SqlitePageStore(std::unique_ptr<PageStoreWriter> writer, std::unique_ptr<PageReader> reader, ProjectId last_project,
                  Duration linger)
      : PageStoreReads(std::move(reader)),
        writer_(*writer),
        last_project_(last_project),
        commit_(std::move(writer), {.linger = linger, .most_in_transaction = kMostInPageTransaction},
                [this](const GroupCommit::Calls& calls) { note_answered(calls); }) {
    if (writer_.has_to_forget()) commit_.submit(std::make_unique<ForgetCall>(writer_));
  }
  ~SqlitePageStore() override { (void)close(); }

  void submit(PageBatch batch) override {
    if (batch.size() == 0 || failure()) return;
    std::lock_guard lock(mutex_);
    for (const ProjectRecord& project : batch.projects) last_project_ = std::max(last_project_, project.id);
    commit_.submit(std::make_unique<PageBatchCall>(writer_, std::move(batch)));
  }
  Result<void> flush() override { return commit_.flush(); }
  std::uint64_t begin_flush() override { return commit_.begin_flush(); }
  bool flushed(std::uint64_t flush) const override { return commit_.flushed(flush); }
  std::size_t backlog() const override { return commit_.backlog(); }
  std::optional<Error> failure() const override { return commit_.failure(); }

  void on_feed(std::function<void()> told) override {
    std::lock_guard lock(telling_);
    told_ = std::move(told);
  }

  ProjectId next_project_id() override {
    std::lock_guard lock(mutex_);
    return last_project_ + 1;
  }

  Result<void> close() override {
    if (!is_open()) return {};
    return commit_.close([this] { close_reader(); });
  }

 private:
  void note_answered(const GroupCommit::Calls& calls) {
    bool fed = false, forget = false;
    for (const auto& call : calls) {
      if (const auto* const batch = dynamic_cast<const PageBatchCall*>(call.get())) {
        fed |= batch->fed();
        forget |= batch->forgets();
      } else if (const auto* const step = dynamic_cast<const ForgetCall*>(call.get())) {
        forget |= step->more();
      }
    }
    if (forget) commit_.submit(std::make_unique<ForgetCall>(writer_));
    if (!fed) return;
    std::lock_guard lock(telling_);
    if (told_) told_();
  }

  PageStoreWriter& writer_;  // until commit_ is closed
  std::mutex mutex_;
  ProjectId last_project_;
  std::mutex telling_;
  std::function<void()> told_;
  BatchCommit commit_;
};

// SQLite keeps files beside a database that it reads.
Error with_way_to_look(Error error, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (error.code == Errc::io && ::access(path.c_str(), R_OK) == 0 && ::access(folder.c_str(), W_OK) != 0) {
    error.message +=
        "; its folder may not be written, and reading it makes files beside it: look as a user who may write there, or "
        "look at a copy";
  }
  return error;
}

// A file that another process may be writing: nothing is changed here.
class SqlitePageLook final : public PageStoreReads {
 public:
  SqlitePageLook(std::unique_ptr<PageReader> reader, std::string path)
      : PageStoreReads(std::move(reader)), path_(std::move(path)) {}

  void submit(PageBatch) override { refused_ = true; }
  Result<void> flush() override {
    if (auto refused = failure()) return std::unexpected(std::move(*refused));
    return {};
  }
  std::uint64_t begin_flush() override { return 0; }
  bool flushed(std::uint64_t) const override { return !refused_; }
  std::size_t backlog() const override { return 0; }
  std::optional<Error> failure() const override {
    if (!refused_) return std::nullopt;
    return Error{Errc::refused, "database " + path_ + ": it was opened to be looked at, and cannot be written"};
  }
  void on_feed(std::function<void()>) override {}
  ProjectId next_project_id() override { return last_project().value_or(0) + 1; }
  Result<void> close() override {
    close_reader();
    return {};
  }

 private:
  const std::string path_;
  std::atomic<bool> refused_{false};
};

}  // namespace

std::uint64_t page_fingerprint(std::string_view name) noexcept { return fingerprint(name); }

std::string page_of_message(std::string_view url) {
  return is_data_url(url) ? std::string(url) : std::string(kMessagePage).append(url);
}

std::string_view shown_url(std::string_view name, std::string_view url) noexcept {
  if (!url.empty()) return url;
  return name.starts_with(kMessagePage) ? name.substr(kMessagePage.size()) : name;
}

std::string_view to_string(ResultNews news) noexcept {
  constexpr std::string_view kNames[] = {"added", "changed", "gone"};
  return kNames[static_cast<std::size_t>(news)];
}

std::size_t PageBatch::size() const noexcept {
  return projects.size() + versions.size() + hosts.size() + added.size() + changes.size() + replaced.size() +
         results.size() + rounds.size() + sinks.size() + kept_sinks.size() + pruned.size() + forgotten.size();
}

Result<std::unique_ptr<PageStore>> open_page_store(const std::string& path, const PageStoreOptions& options) {
  auto writer = PageStoreWriter::open(path, options);
  if (!writer) return std::unexpected(std::move(writer.error()));
  auto reader = (*writer)->shared() != nullptr ? PageReader::beside_writer((*writer)->database(), *(*writer)->shared())
                                               : PageReader::open(path, SQLITE_OPEN_READWRITE);
  if (!reader) return std::unexpected(std::move(reader.error()));
  const ProjectId last = (*writer)->last_project();
  return std::make_unique<SqlitePageStore>(std::move(*writer), std::move(*reader), last, options.linger);
}

Result<std::unique_ptr<PageStore>> open_page_store_to_look(const std::string& path) {
  auto reader = PageReader::open(path, SQLITE_OPEN_READONLY);
  // Another look, or an owner that has just begun, may be at it already.
  for (int tries = kTriesToBringUp; !reader && reader.error().code == Errc::older_version; --tries) {
    const auto done = bring_up_to_date(path, page_rows::kPageFormat);
    if (!done && (done.error().code != Errc::busy || tries == 0)) return std::unexpected(done.error());
    if (!done) (void)::poll(nullptr, 0, kBringUpPauseMs);
    reader = PageReader::open(path, SQLITE_OPEN_READONLY);
  }
  if (!reader) return std::unexpected(with_way_to_look(std::move(reader.error()), path));
  return std::make_unique<SqlitePageLook>(std::move(*reader), path);
}

}  // namespace argiope
