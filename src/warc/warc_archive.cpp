#include "warc/internal/warc_archive.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/internal/file_writing.hpp"
#include "warc/internal/cdxj.hpp"
#include "warc/internal/gzip_packer.hpp"
#include "warc/internal/sha1.hpp"
#include "warc/internal/warc_names.hpp"
#include "warc/internal/warc_reader.hpp"
#include "warc/internal/warc_record.hpp"
#include "warc/payload_table.hpp"
#include "warc/warc_opening.hpp"

namespace argiope {
namespace {

// Records are given to the system in groups of so many bytes, and when write_out() is called.
constexpr std::size_t kWarcGroupBytes = 1024 * 1024;
// A smaller payload is stored again: a revisit would take as much room.
constexpr std::size_t kLeastRevisited = 256;
constexpr std::string_view kWarcHttpResponse = "application/http; msgtype=response";
constexpr std::string_view kWarcHttpRequest = "application/http; msgtype=request";

// The record that a revisit refers to.
struct RevisitedRecord {
  std::string id, url, date;
};

// As an index has it: empty for GET, and where nothing is known of the request.
std::string method_of(std::string_view request) {
  const std::string_view method = request.substr(0, request.find(' '));
  return method == "GET" ? std::string{} : std::string(method);
}

}  // namespace

class WarcArchive::File {
 public:
  File(int descriptor, std::string path, bool is_new)
      : descriptor_(descriptor), path_(std::move(path)), is_new_(is_new) {}
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  int descriptor() const noexcept { return descriptor_; }
  const std::string& path() const noexcept { return path_; }
  // Made by this opening. A file that was there already, though empty, is another's.
  bool is_new() const noexcept { return is_new_; }
  // The name of a new file is on the disk when its folder is. Any thread.
  Result<void> sync_name() {
    if (!has_unsynced_name_) return {};
    auto synced = sync_folder_of(path_);
    if (synced) has_unsynced_name_ = false;
    return synced;
  }

 private:
  const int descriptor_;
  const std::string path_;
  const bool is_new_;
  std::atomic<bool> has_unsynced_name_{is_new_};
};

class WarcArchive::Impl {
 public:
  Impl(WarcArchiveOptions options, const Clock& clock, Random random)
      : options_(std::move(options)), names_(options_.path), clock_(clock), random_(random) {}

  Result<void> open() {
    if (auto locked = open_index(); !locked) return locked;
    auto opened = open_files();
    // An index of nothing would lie beside what is no archive.
    if (!opened && index_ && index_->is_new() && state_.index_size == 0) ::unlink(index_->path().c_str());
    return opened;
  }

  Result<void> open_files() {
    const auto forgotten = options_.most_bytes == 0 ? forget_gone() : Result<std::size_t>(0);
    if (!forgotten) return std::unexpected(forgotten.error());
    auto opened = open_archive(names_, index_->descriptor());
    if (!opened) return std::unexpected(std::move(opened.error()));
    state_ = std::move(*opened);
    if (*forgotten > 0) state_.repairs.push_back({.file = names_.folder() + names_.single(), .forgotten = *forgotten});
    if (options_.most_bytes == 0) return open_file(names_.single());
    for (const std::string& name : state_.files) number_ = std::max(number_, names_.number_of(name));
    // The index may go on to have the records of a file that was taken elsewhere.
    if (number_ == 0 || !is_there(names_.numbered(number_))) ++number_;
    if (auto last = open_file(names_.numbered(number_)); !last) return last;
    return is_full() ? open_next_file() : Result<void>{};
  }

  Result<void> add(const WarcExchange& exchange) {
    if (failed_) return std::unexpected(*failed_);
    if (is_full()) {
      if (auto next = open_next_file(); !next) return stop(std::move(next.error()));
    }
    if (!has_info_) add_info();
    const std::string response_id = new_record_id(random_);
    add_answer(exchange, response_id);
    if (!exchange.request().empty()) add_request(exchange, response_id);
    return pending_.size() < kWarcGroupBytes ? Result<void>{} : write_out();
  }

  Result<void> write_out() {
    if (failed_) return std::unexpected(*failed_);
    // A write behind the end of a file that another program has cut leaves zeros, and its size as it was.
    if (auto in_place = expect_both_in_place(); !in_place) return in_place;
    if (auto written = write_at(file_->descriptor(), pending_, written_, file_->path()); !written) {
      return stop(std::move(written.error()));
    }
    written_ += pending_.size();
    pending_.clear();
    // After the records: what the index names is there.
    auto indexed = write_at(index_->descriptor(), lines_, state_.index_size, index_->path());
    if (indexed && lines_.empty()) indexed = touch_index(index_->descriptor(), index_->path());
    if (!indexed) return stop(std::move(indexed.error()));
    state_.index_size += lines_.size();
    lines_.clear();
    return expect_both_in_place();
  }

  Result<void> close() {
    auto done = write_out();
    if (done) done = sync(*file_);
    if (done && written_ == 0 && file_->is_new()) ::unlink(file_->path().c_str());
    if (done && state_.index_size == 0 && index_->is_new()) ::unlink(index_->path().c_str());
    if (done && state_.odd_lines > 0) {
      if (auto forgotten = forget_odd_lines(index_->path()); !forgotten)
        done = std::unexpected(std::move(forgotten.error()));
    }
    // Also where nothing came: a process that was killed has not sorted it.
    if (done && state_.index_size > 0) done = sort_lines(index_->path());
    index_.reset();  // another may write now
    return done;
  }

  const std::vector<WarcRepair>& repairs() const noexcept { return state_.repairs; }
  bool is_new() const noexcept { return state_.is_new; }
  WarcTotals totals() const noexcept { return totals_; }
  const std::shared_ptr<File>& file() const noexcept { return file_; }

 private:
  // --- files

  static Result<std::shared_ptr<File>> open_to_write(const std::string& path) {
    int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const bool is_new = descriptor >= 0;
    if (!is_new && errno == EEXIST) descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0644);
    if (descriptor < 0) return file_trouble(path, "opened for writing");
    auto file = std::make_shared<File>(descriptor, path, is_new);
    struct stat found {};
    if (::fstat(descriptor, &found) != 0) return file_trouble(path, "looked at");
    if (!S_ISREG(found.st_mode))
      return fail(Errc::wrong_format, fmt::format("{}: not a file that can be written on", path));
    return file;
  }

  // The index is the lock of the archive.
  Result<void> open_index() {
    auto index = open_to_write(names_.index());
    if (!index) return std::unexpected(std::move(index.error()));
    index_ = std::move(*index);
    if (::flock(index_->descriptor(), LOCK_EX | LOCK_NB) != 0) {
      return fail(Errc::busy, fmt::format("{}: another argiope writes this archive", names_.index()));
    }
    return expect_in_place(index_->descriptor(), index_->path(), index_->path());
  }

  bool is_there(const std::string& name) const { return ::access((names_.folder() + name).c_str(), F_OK) == 0; }

  // Lines that the index has of a file that was deleted would be believed of the one that is written in its place.
  Result<std::size_t> forget_gone() {
    if (is_there(names_.single())) return 0;
    auto forgotten = forget_lines(index_->path(), names_.single());
    if (!forgotten || *forgotten == 0) return forgotten;
    index_.reset();
    auto locked = open_index();
    return locked ? forgotten : std::unexpected(std::move(locked.error()));
  }

  Result<void> open_file(const std::string& name) {
    auto file = open_to_write(names_.folder() + name);
    if (!file) return std::unexpected(std::move(file.error()));
    struct stat found {};
    if (::fstat((*file)->descriptor(), &found) != 0) return file_trouble((*file)->path(), "looked at");
    file_ = std::move(*file);
    written_ = static_cast<std::uint64_t>(found.st_size);
    has_info_ = false;
    const auto known = std::ranges::find(state_.files, name);
    file_number_ = static_cast<std::uint32_t>(known - state_.files.begin());
    if (known == state_.files.end()) state_.files.push_back(name);
    return {};
  }

  // A file that was finished may go wherever it likes.
  Result<void> expect_both_in_place() {
    for (const auto& [file, size] : {std::pair(file_, written_), std::pair(index_, state_.index_size)}) {
      auto in_place = expect_in_place(file->descriptor(), file->path(), file->path(), size);
      if (in_place) continue;
      failed_ = std::move(in_place.error());
      return std::unexpected(*failed_);
    }
    return {};
  }

  bool is_full() const noexcept { return options_.most_bytes > 0 && written_ + pending_.size() >= options_.most_bytes; }

  // A finished file goes to the disk, the index too: a later run reads on in the last file alone.
  Result<void> open_next_file() {
    auto done = write_out();
    if (done) done = sync(*file_);
    if (done) done = sync(*index_);
    return done ? open_file(names_.numbered(++number_)) : done;
  }

  std::unexpected<Error> stop(Error error) {
    if (!failed_) {
      error.message += "; what was archived before is whole";
      failed_ = std::move(error);
    }
    return std::unexpected(*failed_);
  }

  // --- records

  // Adds it to the bytes to write; how many bytes it takes there.
  std::uint64_t add_record(std::string_view head, std::string_view first, std::string_view second = {}) {
    const std::size_t before = pending_.size();
    if (names_.is_packed()) {
      packer_.append_member(pending_, {head, first, second, kRecordEnd});
    } else {
      pending_.append(head).append(first).append(second).append(kRecordEnd);
    }
    totals_.bytes += pending_.size() - before;
    return pending_.size() - before;
  }

  void add_info() {
    std::string block;
    for (const auto& [name, value] : options_.info) {
      std::string line = value;
      std::ranges::replace_if(
          line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
      block += fmt::format("{}: {}\r\n", name, line);
    }
    block +=
        "format: WARC File Format 1.1\r\n"
        "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n";
    head_.begin(WarcType::warcinfo, new_record_id(random_), clock_.wall_now());
    head_.add("WARC-Filename", state_.files[file_number_]);
    head_.add("Content-Type", "application/warc-fields");
    head_.add("WARC-Block-Digest", digest_name(sha1_.of({block})));
    add_record(head_.end(block.size()), block);
    has_info_ = true;
  }

  void begin_head(WarcType type, std::string_view id, const WarcExchange& exchange) {
    head_.begin(type, id, exchange.began());
    head_.add("WARC-Target-URI", exchange.url());
    head_.add("WARC-IP-Address", exchange.address());
  }

  // The payload of a packed response is digested once: behind its head it would be digested again for the block, and
  // the packed record tells by its own check whether it is as it was.
  void add_answer(const WarcExchange& exchange, std::string_view id) {
    if (exchange.status() == 304) return add_not_modified(exchange, id);
    const std::string_view payload = exchange.payload();
    const Sha1Digest digest = sha1_.of({payload});
    const std::string base32 = to_base32(digest);
    const bool is_comparable = exchange.truncated().empty() && payload.size() >= kLeastRevisited;
    const std::uint64_t key = PayloadTable::key_of(digest);
    const auto original = is_comparable ? find_original(key, base32) : std::nullopt;
    begin_head(original ? WarcType::revisit : WarcType::response, id, exchange);
    if (original) {
      head_.add("WARC-Profile", kSamePayload);
      head_.add("WARC-Refers-To", original->id);
      head_.add("WARC-Refers-To-Target-URI", original->url);
      head_.add("WARC-Refers-To-Date", original->date);
    }
    head_.add("Content-Type", kWarcHttpResponse);
    head_.add("WARC-Truncated", exchange.truncated());
    head_.add("WARC-Payload-Digest", "sha1:" + base32);
    const std::string_view kept = original ? std::string_view{} : payload;
    if (original || !names_.is_packed()) {
      head_.add("WARC-Block-Digest", digest_name(sha1_.of({exchange.head(), kept})));
    }
    const std::uint64_t offset = written_ + pending_.size();
    const std::uint64_t length = add_record(head_.end(exchange.head().size() + kept.size()), exchange.head(), kept);
    if (is_comparable && !original) state_.payloads.add(key, {file_number_, offset});
    ++(original ? totals_.revisits : totals_.responses);
    append_cdxj(lines_, {.timestamp = cdx_timestamp(exchange.began()),
                         .url = exchange.url(),
                         .mime = original ? std::string(kRevisitMime) : exchange.mime(),
                         .status = exchange.status(),
                         .digest = base32,
                         .length = length,
                         .offset = offset,
                         .filename = state_.files[file_number_],
                         .method = method_of(exchange.request())});
  }

  void add_not_modified(const WarcExchange& exchange, std::string_view id) {
    begin_head(WarcType::revisit, id, exchange);
    head_.add("WARC-Profile", kNotModified);
    head_.add("WARC-Refers-To-Target-URI", exchange.url());
    head_.add("Content-Type", kWarcHttpResponse);
    head_.add("WARC-Block-Digest", digest_name(sha1_.of({exchange.head()})));
    add_record(head_.end(exchange.head().size()), exchange.head());
    ++totals_.revisits;
  }

  void add_request(const WarcExchange& exchange, std::string_view response_id) {
    begin_head(WarcType::request, new_record_id(random_), exchange);
    head_.add("WARC-Concurrent-To", response_id);
    head_.add("Content-Type", kWarcHttpRequest);
    head_.add("WARC-Block-Digest", digest_name(sha1_.of({exchange.request()})));
    add_record(head_.end(exchange.request().size()), exchange.request());
  }

  // The record that has the payload already. It is looked at: its digest is known by a part alone, and what is gone or
  // has been changed by others is nothing to refer to.
  std::optional<RevisitedRecord> find_original(std::uint64_t key, std::string_view base32) {
    const auto place = state_.payloads.find(key);
    if (!place) return std::nullopt;
    if (place->file == file_number_ && place->offset >= written_ && !write_out()) return std::nullopt;
    WarcReader* const reader = reader_of(place->file);
    if (reader == nullptr) return std::nullopt;
    const auto head = reader->head_at(place->offset);
    if (!head || head->type() != WarcType::response) return std::nullopt;
    if (head->field("WARC-Payload-Digest") != fmt::format("sha1:{}", base32)) return std::nullopt;
    return RevisitedRecord{fmt::format("<{}>", head->field("WARC-Record-ID")),
                           std::string(head->field("WARC-Target-URI")), std::string(head->field("WARC-Date"))};
  }

  // One at a time is open. Null: the file cannot be read.
  WarcReader* reader_of(std::uint32_t file) {
    if (reader_ && reader_file_ == file) return &*reader_;
    reader_.reset();
    const std::string path = names_.folder() + state_.files[file];
    auto bytes = open_warc_bytes(path);
    if (!bytes) return nullptr;
    reader_.emplace(std::move(*bytes), path);
    reader_file_ = file;
    return &*reader_;
  }

  const WarcArchiveOptions options_;
  const WarcNames names_;
  const Clock& clock_;
  Random random_;

  std::shared_ptr<File> index_;
  std::shared_ptr<File> file_;
  OpenedArchive state_;
  std::uint32_t file_number_ = 0;  // of `file_`, in state_.files
  std::uint32_t number_ = 0;       // in its name
  std::uint64_t written_ = 0;      // the size of `file_`, without what is pending
  bool has_info_ = false;

  std::string pending_;  // records
  std::string lines_;    // of the index
  WarcHeadWriter head_;
  GzipPacker packer_;
  Sha1 sha1_;
  std::optional<WarcReader> reader_;
  std::uint32_t reader_file_ = 0;
  WarcTotals totals_;
  std::optional<Error> failed_;
};

WarcArchive::WarcArchive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WarcArchive::~WarcArchive() = default;

Result<std::unique_ptr<WarcArchive>> WarcArchive::open(WarcArchiveOptions options, const Clock& clock, Random random) {
  auto impl = std::make_unique<Impl>(std::move(options), clock, random);
  if (auto opened = impl->open(); !opened) return std::unexpected(std::move(opened.error()));
  return std::unique_ptr<WarcArchive>(new WarcArchive(std::move(impl)));
}

const std::vector<WarcRepair>& WarcArchive::repairs() const noexcept { return impl_->repairs(); }
bool WarcArchive::is_new() const noexcept { return impl_->is_new(); }
WarcTotals WarcArchive::totals() const noexcept { return impl_->totals(); }
const std::string& WarcArchive::file() const noexcept { return impl_->file()->path(); }
Result<void> WarcArchive::add(const WarcExchange& exchange) { return impl_->add(exchange); }
Result<void> WarcArchive::write_out() { return impl_->write_out(); }
std::shared_ptr<WarcArchive::File> WarcArchive::written_file() const noexcept { return impl_->file(); }
Result<void> WarcArchive::close() { return impl_->close(); }

Result<void> WarcArchive::sync(File& file) {
  if (::fdatasync(file.descriptor()) != 0) return file_trouble(file.path(), "brought to the disk");
  return file.sync_name();
}

}  // namespace argiope
