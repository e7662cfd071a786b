#include "crawl/extract/extraction_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/internal/file_writing.hpp"
#include "base/internal/fingerprint.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/output_place.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "crawl/extract/internal/extraction_json.hpp"

namespace argiope {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20;
constexpr std::size_t kCsvFrontBytes = 4096;
constexpr std::string_view kJsonFront = "{\"url\":\"";
constexpr std::string_view kJsonTime = "\",\"fetched_at\":\"";
constexpr std::string_view kNoRecord = "a line of it is no record of a crawl";

// RFC 4180, 2.5 to 2.7.
void append_csv_cell(std::string& out, std::string_view value) {
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += value;
    return;
  }
  out += '"';
  for (const char c : value) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

std::string csv_cell_of(const FieldValue& value) {
  if (value.kind != FieldValue::Kind::list) return value.text;
  std::string json;
  JsonWriter writer(json);
  write_field_value(writer, value);
  return json;
}

// The first cell of a CSV record, taken off its front with the comma.
std::string take_csv_cell(std::string_view& record) {
  std::string cell;
  if (!record.starts_with('"')) {
    const std::size_t end = std::min(record.find(','), record.size());
    cell = record.substr(0, end);
    record.remove_prefix(std::min(end + 1, record.size()));
    return cell;
  }
  std::size_t at = 1;
  for (; at < record.size(); ++at) {
    if (record[at] != '"') {
      cell += record[at];
    } else if (at + 1 < record.size() && record[at + 1] == '"') {
      cell += record[++at];
    } else {
      break;
    }
  }
  record.remove_prefix(std::min(at + 2, record.size()));
  return cell;
}

// A folder that is gone has no path: the name alone tells such files apart.
std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

// Whether a record that begins so, and has no end, was torn while it was written: the URL comes first, then the time.
bool may_be_torn_csv(std::string_view front) {
  constexpr std::string_view kScheme = "http";
  if (front.contains('\0')) return true;
  const std::string_view url = front.substr(front.starts_with('"') ? 1 : 0);
  if (!url.starts_with(kScheme) && !kScheme.starts_with(url)) return false;
  (void)take_csv_cell(front);
  const std::size_t end = front.find(',');
  return end == std::string_view::npos || parse_rfc3339(front.substr(0, end));
}

}  // namespace

// --- records --------------------------------------------------------------------------------------------------------

RecordWriter::RecordWriter(const Extractor& extractor, bool as_csv)
    : extractor_(extractor), as_csv_(as_csv), names_rule_(extractor.rules() > 1) {
  if (!as_csv) return;
  header_ = names_rule_ ? "url,fetched_at,rule" : "url,fetched_at";
  for (const std::string& column : extractor.columns()) {
    header_ += ',';
    append_csv_cell(header_, column);
  }
  header_ += "\r\n";
}

void RecordWriter::append(std::string& out, const ExtractedPage& page, const ExtractedRecords& records) const {
  for (const ExtractedRecord& record : records.records) {
    if (as_csv_) {
      append_csv(out, page, *records.rule, record);
    } else {
      append_json(out, page, *records.rule, record);
    }
  }
}

void RecordWriter::append_json(std::string& out, const ExtractedPage& page, std::size_t rule,
                               const ExtractedRecord& record) const {
  JsonWriter json(out);
  json.object([&] {
    json.member("url", page.url.href());
    json.member("fetched_at", to_rfc3339_ms(page.fetched_at));
    if (names_rule_) json.member("rule", extractor_.rule_name(rule));
    write_record(json, extractor_, rule, record);
  });
  out += '\n';
}

void RecordWriter::append_csv(std::string& out, const ExtractedPage& page, std::size_t rule,
                              const ExtractedRecord& record) const {
  append_csv_cell(out, page.url.href());
  out.append(",").append(to_rfc3339_ms(page.fetched_at));
  if (names_rule_) append_csv_cell(out += ',', extractor_.rule_name(rule));
  for (const FieldValue& value : record.values) append_csv_cell(out += ',', csv_cell_of(value));
  out += "\r\n";
}

// --- the file -------------------------------------------------------------------------------------------------------

ExtractionOutput::ExtractionOutput(std::string path) : path_(std::move(path)) {}

ExtractionOutput::~ExtractionOutput() {
  if (file_ >= 0) ::close(file_);
  if (deadline_ >= 0) ::close(deadline_);
}

void ExtractionOutput::give_up(Duration after) noexcept {
  if (deadline_ < 0) return;
  const auto left = std::max<std::int64_t>(after.count(), 1);  // nanoseconds; 0 would stop it
  constexpr std::int64_t kSecond = 1'000'000'000;
  const itimerspec at{.it_interval = {}, .it_value = {.tv_sec = left / kSecond, .tv_nsec = left % kSecond}};
  (void)timerfd_settime(deadline_, 0, &at, nullptr);
}

// Until some of it may be written without waiting; false: that takes too long.
bool ExtractionOutput::wait_for_reader() const {
  pollfd ends[] = {{.fd = file_, .events = POLLOUT, .revents = 0}, {.fd = deadline_, .events = POLLIN, .revents = 0}};
  while (poll(ends, std::size(ends), -1) < 0 && errno == EINTR) {
  }
  return ends[0].revents != 0 || ends[1].revents == 0;
}

std::unexpected<Error> ExtractionOutput::trouble(std::string_view what) const {
  const Errc code = errno == ENOSPC || errno == EDQUOT ? Errc::disk_full : Errc::io;
  const std::string name = path_ == "-" ? "standard output" : printable(path_);
  return fail(code, fmt::format("{} to {}: {}", what, name, std::strerror(errno)));
}

std::unexpected<Error> ExtractionOutput::not_ours(std::string_view why) const {
  return fail(Errc::wrong_format,
              fmt::format("{} is there, and {}; name another file, or move it away", printable(path_), why));
}

Result<std::unique_ptr<ExtractionOutput>> ExtractionOutput::open(const std::string& path, const RecordWriter& writer) {
  std::unique_ptr<ExtractionOutput> output(new ExtractionOutput(path));
  if (auto opened = output->open_file(); !opened) return std::unexpected(std::move(opened.error()));
  if (auto checked = output->check(writer); !checked) return std::unexpected(std::move(checked.error()));
  return output;
}

// A pipe or a device has no end to be looked at.
Result<void> ExtractionOutput::open_file() {
  const auto place = find_output_place(path_);
  is_file_ = place && place->descriptor < 0 && (place->is_file || place->kind == OutputPlace::Kind::fresh);
  if (!place) {
    errno = place.error();
    return trouble("writing");
  }
  file_ = place->descriptor >= 0 ? ::fcntl(place->descriptor, F_DUPFD_CLOEXEC, 0)
          : is_file_             ? ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
                                 : ::open(path_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  struct stat about {};
  if (file_ < 0 || fstat(file_, &about) != 0) return trouble("writing");
  if (!is_file_) {
    deadline_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return deadline_ < 0 ? Result<void>(trouble("writing")) : Result<void>{};
  }
  is_new_ = place->kind == OutputPlace::Kind::fresh;
  place_ = place->path;
  note_name_ = std::string(kOutputNotes) + absolute_path(place_);
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    return fail(Errc::busy, fmt::format("{}: another crawl is writing it", printable(path_)));
  }
  size_ = static_cast<std::uint64_t>(about.st_size);
  identity_ = file_identity_of(file_);
  was_empty_ = size_ == 0;
  return {};
}

Result<void> ExtractionOutput::check(const RecordWriter& writer) {
  front_ = writer.header();
  header_end_ = front_.size();
  end_ = size_;
  if (!is_file_ || size_ == 0) return {};
  return writer.is_csv() ? check_csv(writer) : check_jsonl();
}

// A mark that no record is before is known by the file alone; any other by what is before it, too, as files are copied
// and moved with their databases.
std::optional<OutputMark> ExtractionOutput::find_mark(std::span<const OutputMark> marks) const {
  std::optional<OutputMark> found;
  bool failed = false;
  for (const OutputMark& mark : marks) {
    if (!is_file_ || mark.size > size_ || (found && mark.size <= found->size)) continue;
    if (mark.size <= header_end_ && mark.identity != identity_) continue;
    const std::uint64_t tail = std::min<std::uint64_t>(mark.size, OutputMark::kTailBytes);
    if (content_digest(read_at(mark.size - tail, tail, failed)) == mark.tail && !failed) found = mark;
  }
  return found;
}

namespace {

bool is_done(const WrittenPage& page, const DonePages& done) {
  const auto found = done.find(page.url);
  return found != done.end() && found->second >= page.fetched_at;
}

}  // namespace

// Behind the mark no page is done, unless something has written there that set no mark.
std::uint64_t ExtractionOutput::find_end(const std::optional<OutputMark>& mark, const DonePages& done) const {
  const std::uint64_t known = mark ? mark->size : 0;
  const auto is_done_behind = [&](const WrittenPage& page) { return page.begin >= known && is_done(page, done); };
  if (mark && !mark->is_ended && std::ranges::none_of(last_pages_, is_done_behind)) return known;
  if (last_pages_.empty() || damage_ < end_) return end_;
  const WrittenPage& last = last_pages_.front();
  const bool may_be_torn = last.begin >= known && (is_torn_ || done.contains(last.url)) && !is_done(last, done);
  return may_be_torn ? last.begin : end_;
}

Result<std::unordered_set<std::string>> ExtractionOutput::go_on(const std::optional<OutputMark>& mark,
                                                                const DonePages& done) {
  const std::uint64_t end = find_end(mark, done);
  const std::uint64_t first = mark ? mark->done_before : 0;
  std::unordered_set<std::string> written;
  std::uint64_t done_before = end;
  for (const WrittenPage& page : last_pages_) {
    if (page.begin < first || page.begin >= end || is_done(page, done)) continue;
    written.insert(page.url);
    done_before = page.begin;
  }
  const std::lock_guard lock(mutex_);
  done_before_ = done_before;
  if (auto begun = begin_at(end); !begun) return std::unexpected(std::move(begun.error()));
  return written;
}

Result<void> ExtractionOutput::begin_at(std::uint64_t end) {
  if (has_begun_) return {};
  if (damage_ < end) return not_ours(kNoRecord);
  has_begun_ = true;
  if (end < end_) front_.clear();
  if (end != size_ && ftruncate(file_, static_cast<off_t>(end)) != 0) return trouble("writing");
  size_ = end;
  bool failed = false;
  const std::uint64_t tail = is_file_ ? std::min<std::uint64_t>(end, OutputMark::kTailBytes) : 0;
  tail_ = read_at(end - tail, tail, failed);
  return failed ? Result<void>(trouble("reading")) : write_locked(front_);
}

std::string ExtractionOutput::read_at(std::uint64_t from, std::size_t size, bool& failed) const {
  std::string bytes(size, '\0');
  std::size_t got = 0;
  while (got < size) {
    const ssize_t count = pread(file_, bytes.data() + got, size - got, static_cast<off_t>(from + got));
    if (count < 0 && errno == EINTR) continue;
    failed = failed || count < 0;
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  bytes.resize(got);
  return bytes;
}

// Whether more should be read: the record is not much older than the last.
bool ExtractionOutput::note_page(std::string_view url, WallTime fetched_at, std::uint64_t begin) {
  const std::int64_t at = std::chrono::floor<std::chrono::milliseconds>(fetched_at.time_since_epoch()).count();
  last_fetch_ = std::max(last_fetch_, at);
  if (!last_pages_.empty() && last_pages_.back().url == url && last_pages_.back().fetched_at == at) {
    last_pages_.back().begin = begin;
  } else {
    last_pages_.push_back({std::string(url), at, begin});
  }
  return at >= last_fetch_ - kLongestBefore && last_pages_.size() < kMostLastPages;
}

// So a power cut leaves a file of which nothing was synced. Only a mark can say that it is one of ours.
bool ExtractionOutput::note_hole_in_front(std::string_view front, std::string_view of_ours) {
  const std::size_t hole = front.find('\0');
  if (hole == std::string_view::npos || !of_ours.starts_with(front.substr(0, hole))) return false;
  damage_ = 0;
  return true;
}

// From the end to the front, line by line. Behind the last line break is a torn line, or one that has lost its end
// alone.
Result<void> ExtractionOutput::check_jsonl() {
  bool failed = false;
  const std::string front = read_at(0, std::min<std::uint64_t>(size_, kJsonFront.size()), failed);
  if (!failed && note_hole_in_front(front, kJsonFront)) return {};
  if (!failed && !kJsonFront.starts_with(front)) return not_ours("no crawl has written it");
  std::string text;  // from `begin` on, as far as it is not read yet
  std::uint64_t begin = size_;
  bool is_end_known = false;
  for (bool more = true; more && begin > 0 && !failed;) {
    const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(begin, kBlockBytes));
    begin -= size;
    text.insert(0, read_at(begin, size, failed));
    if (!is_end_known) {
      const std::size_t end = text.rfind('\n');
      if (end == std::string::npos && begin > 0) continue;
      const std::size_t kept = end == std::string::npos ? 0 : end + 1;
      if (auto checked = check_torn_json(std::string_view(text).substr(kept), begin + kept); !checked) return checked;
      text.resize(kept);
      is_end_known = true;
    }
    // Text before the first line break may be the rest of a longer line.
    while (more && !text.empty()) {
      const std::size_t before = text.rfind('\n', text.size() - 2);
      if (text.size() < 2 || (before == std::string::npos && begin > 0)) break;
      const std::size_t start = before == std::string::npos ? 0 : before + 1;
      if (auto noted = note_json(std::string_view(text).substr(start), begin + start, more); !noted) return noted;
      text.resize(start);
    }
  }
  return failed ? Result<void>(trouble("reading")) : Result<void>{};
}

// A line that is whole but for its end stays, if it is a record. Of a torn one nothing may speak against its being one.
Result<void> ExtractionOutput::check_torn_json(std::string_view line, std::uint64_t begin) {
  if (line.empty()) return {};
  is_torn_ = true;
  if (JsonText::parse(line)) {
    front_ = "\n";
    bool ignored = true;
    return note_json(line, begin, ignored);
  }
  line = line.substr(0, line.find('\0'));  // there a power cut has left a hole
  const std::size_t quote = line.starts_with(kJsonFront) ? line.find('"', kJsonFront.size()) : line.size();
  const std::string_view rest = line.substr(std::min(quote, line.size()));
  const bool may_be_ours = kJsonFront.starts_with(line) || line.starts_with(kJsonFront);
  if (!may_be_ours || !(rest.starts_with(kJsonTime) || kJsonTime.starts_with(rest)))
    return not_ours("its last line is no record of a crawl");
  end_ = begin;
  return {};
}

// Only the front is parsed, however long the record is.
Result<void> ExtractionOutput::note_json(std::string_view line, std::uint64_t begin, bool& more) {
  if (line.contains('\0')) {
    damage_ = begin;
    return {};
  }
  const std::size_t time = line.find(kJsonTime);
  const std::size_t quote = time == std::string_view::npos ? time : line.find('"', time + kJsonTime.size());
  if (quote == std::string_view::npos || !line.starts_with(kJsonFront)) return not_ours(kNoRecord);
  const auto json = JsonText::parse(std::string(line.substr(0, quote + 1)) + "}");
  if (!json) return not_ours(kNoRecord);
  JsonErrors errors;
  const JsonValue record = json->root(errors);
  JsonMembers members(record);
  const auto fetched_at = parse_rfc3339(members.text("fetched_at"));
  if (!fetched_at) return not_ours(kNoRecord);
  more = note_page(members.text("url"), *fetched_at, begin);
  return {};
}

// From the front to the end: nobody can tell from the end whether a line break is within quotes. Where the last records
// begin is kept in a ring.
Result<void> ExtractionOutput::check_csv(const RecordWriter& writer) {
  bool failed = false;
  const std::string& header = writer.header();
  const std::string front = read_at(0, std::min<std::uint64_t>(size_, header.size()), failed);
  if (failed) return trouble("reading");
  if (note_hole_in_front(front, header)) return {};
  if (front != header) {
    end_ = 0;
    return header.starts_with(front) ? Result<void>{} : not_ours("has other columns");
  }
  front_.clear();
  std::vector<std::uint64_t> starts(kMostLastPages);
  std::uint64_t records = 0;
  std::uint64_t end = header.size();  // of the last whole record
  bool quoted = false;
  std::uint64_t holed = damage_;  // where the record begins in which a power cut has left a hole
  constexpr std::string_view kTold("\"\n\0", 3);
  starts[0] = end;
  for (std::uint64_t at = end; at < size_ && !failed;) {
    const std::string block =
        read_at(at, static_cast<std::size_t>(std::min<std::uint64_t>(size_ - at, kBlockBytes)), failed);
    for (std::size_t i = block.find_first_of(kTold); i != std::string::npos; i = block.find_first_of(kTold, i + 1)) {
      if (block[i] == '"') {
        quoted = !quoted;
      } else if (block[i] == '\0') {
        holed = std::min(holed, end);
      } else if (!quoted) {
        end = at + i + 1;
        starts[++records % kMostLastPages] = end;
      }
    }
    at += block.size();
    if (block.empty()) break;
  }
  if (failed) return trouble("reading");
  // Where quotes are missing, what is behind may begin anywhere.
  if (holed < end) {
    damage_ = holed;
    end = size_;
  }
  if (end < size_ && !may_be_torn_csv(read_at(end, std::min<std::size_t>(kCsvFrontBytes, size_ - end), failed))) {
    return not_ours("its last line is no record of a crawl");
  }
  end_ = end;
  is_torn_ = end < size_;
  const std::uint64_t last = std::min<std::uint64_t>(records, kMostLastPages - 1);
  for (std::uint64_t i = 0; i < last; ++i) {
    const std::uint64_t begin = starts[(records - 1 - i) % kMostLastPages];
    if (begin >= damage_) continue;
    // The first two cells are at the front, and an URL has at most 64 KiB.
    const std::uint64_t size =
        std::min<std::uint64_t>(starts[(records - i) % kMostLastPages] - begin, 2 * 64 * 1024 + 100);
    const std::string bytes = read_at(begin, static_cast<std::size_t>(size), failed);
    std::string_view record = bytes;
    const std::string url = take_csv_cell(record);
    const auto fetched_at = parse_rfc3339(take_csv_cell(record));
    if (!failed && !fetched_at) return not_ours(kNoRecord);
    if (failed || !note_page(url, *fetched_at, begin)) break;
  }
  return failed ? Result<void>(trouble("reading")) : Result<void>{};
}

Result<void> ExtractionOutput::write(std::string_view records) {
  const std::lock_guard lock(mutex_);
  if (auto begun = begin_at(end_); !begun) return begun;
  return write_locked(records);
}

Result<void> ExtractionOutput::write_locked(std::string_view bytes) {
  if (failed_) return std::unexpected(*failed_);
  // Where another program has cut the file, records behind the cut would be damage that no run can read.
  struct stat now {};
  if (is_file_ && fstat(file_, &now) == 0 && static_cast<std::uint64_t>(now.st_size) < size_) {
    auto there = expect_in_place(file_, path_, printable(path_), size_);
    if (!there) failed_ = there.error();
    if (!there) return there;
  }
  std::string_view rest = bytes;
  while (!rest.empty()) {
    if (!is_file_ && !wait_for_reader()) {
      failed_ = Error{Errc::cancelled,
                      fmt::format("writing to {}: nobody reads it; the pages of the records that are left are not done",
                                  path_ == "-" ? "standard output" : printable(path_))};
      return std::unexpected(*failed_);
    }
    // A pipe that takes some takes so much at least.
    const std::size_t size = is_file_ ? rest.size() : std::min<std::size_t>(rest.size(), PIPE_BUF);
    const ssize_t count = ::write(file_, rest.data(), size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      auto failure = trouble("writing");
      failed_ = failure.error();
      // The part of the record that is there is no record.
      if (is_file_) (void)!ftruncate(file_, static_cast<off_t>(size_));
      return failure;
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  size_ += bytes.size();
  tail_ += bytes.substr(bytes.size() - std::min(bytes.size(), OutputMark::kTailBytes));
  if (tail_.size() > 2 * OutputMark::kTailBytes) tail_.erase(0, tail_.size() - OutputMark::kTailBytes);
  return {};
}

OutputMark ExtractionOutput::mark_locked() const {
  const std::string_view tail =
      std::string_view(tail_).substr(tail_.size() - std::min(tail_.size(), OutputMark::kTailBytes));
  return {.identity = identity_, .size = size_, .tail = content_digest(tail), .done_before = done_before_};
}

Result<void> ExtractionOutput::keep(bool sync) {
  OutputMark mark;
  bool syncs_name = false, begun = false;
  std::uint64_t written = 0;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return std::unexpected(*failed_);
    if (!is_file_) return {};
    mark = mark_locked();
    written = size_;
    syncs_name = sync && is_new_;
    sync = sync && (synced_ != size_ || !kept_);
    begun = has_begun_;
  }
  auto kept = expect_in_place(file_, path_, printable(path_), written);
  if (kept && sync && fdatasync(file_) != 0) kept = trouble("writing");
  if (kept && syncs_name) kept = sync_folder_of(place_);
  const std::lock_guard lock(mutex_);
  if (!kept) failed_ = kept.error();
  if (!kept || !begun) return kept;
  if (syncs_name) is_new_ = false;
  if (sync) synced_ = std::max(synced_, mark.size);
  if (!kept_ || kept_->size < mark.size) kept_ = std::move(mark);
  return {};
}

std::optional<UrlNote> ExtractionOutput::note() const {
  const std::lock_guard lock(mutex_);
  if (!kept_) return std::nullopt;
  return UrlNote{note_name_, kept_->text()};
}

void ExtractionOutput::end() {
  const std::lock_guard lock(mutex_);
  if (kept_ && kept_->size == size_) kept_->is_ended = true;
}

}  // namespace argiope
