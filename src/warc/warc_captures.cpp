#include "warc/warc_captures.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <utility>

#include "base/internal/counted.hpp"
#include "base/internal/fingerprint.hpp"
#include "warc/internal/warc_archive.hpp"
#include "warc/internal/warc_capture.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostMessageBytes = 256 * 1024 * 1024;
constexpr std::string_view kIndexEnding = ".cdxj";
constexpr std::size_t kMostOddTold = 10;  // places of a file, one by one
constexpr std::size_t kMostMagicBytes = 16;
constexpr int kMostRevisited = 8;  // revisits of revisits

// As a crawl asks for it.
std::string asked_url(const std::string& url) {
  const auto parsed = Url::parse(url);
  return parsed ? std::string(parsed->without_fragment()) : url;
}

std::uint64_t capture_key(const std::string& url) { return fingerprint(url); }
std::uint64_t dated_key(const std::string& url, std::uint64_t time) {
  return fingerprint(fmt::format("{} {}", url, time));
}

// 0: it has none.
std::uint64_t time_as_number(std::string_view timestamp) {
  std::uint64_t time = 0;
  (void)std::from_chars(timestamp.data(), timestamp.data() + timestamp.size(), time);
  return time;
}

// Whether two digests of one kind are of different bytes.
bool digests_differ(std::string_view one, std::string_view other) {
  const bool same_kind = one.size() == other.size() && one.substr(0, one.find(':')) == other.substr(0, other.find(':'));
  return same_kind && !equals_ignoring_case(one, other);
}

// "site" of "site.warc.gz" and of "site-00001.warc.gz": where an index may be.
std::vector<std::string> possible_indexes(std::string_view path) {
  for (const std::string_view ending : {".gz", ".warc"}) {
    if (path.ends_with(ending)) path.remove_suffix(ending.size());
  }
  std::vector<std::string> found{std::string(path).append(kIndexEnding)};
  const std::size_t dash = path.rfind('-');
  if (dash != std::string_view::npos && std::ranges::all_of(path.substr(dash + 1), is_digit)) {
    found.push_back(std::string(path.substr(0, dash)).append(kIndexEnding));
  }
  return found;
}

std::string file_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// A line that tells of the index itself, as other writers have: " CDXJ 11 …", "!meta {…}", "@context …", "# …".
bool is_about_index(std::string_view line) { return line.empty() || std::string_view(" !@#").contains(line.front()); }

// A revisit's head may leave out how its payload is coded: then it is coded as that of the record that it repeats.
void add_codings_of(std::string_view original, std::string& head) {
  const auto has_field = [&head](std::string_view lower) {
    std::string_view rest = head;
    HttpHeadLine line;
    for (bool first = true; take_http_line(rest, line, first); first = false) {
      if (equals_lower(line.name, lower)) return true;
    }
    return false;
  };
  const bool has_coding = has_field("content-encoding"), has_transfer = has_field("transfer-encoding");
  HttpHeadLine line;
  for (bool first = true; take_http_line(original, line, first); first = false) {
    const bool is_left_out = (equals_lower(line.name, "content-encoding") && !has_coding) ||
                             (equals_lower(line.name, "transfer-encoding") && !has_transfer);
    if (!is_left_out) continue;
    const auto end = http_head_size(head);
    const std::size_t blank = !end ? head.size() : *end - (head.substr(0, *end).ends_with("\r\n") ? 2 : 1);
    head.insert(blank, fmt::format("{}: {}\r\n", line.name, unfolded(line)));
  }
}

// What the bytes are where they are no WARC file, for an error.
std::string what_else(std::string_view begins, std::string_view trouble) {
  struct Known {
    std::string_view begin, what;
  };
  constexpr Known kKnown[] = {
      {"BZh", "it is packed by bzip2: unpack it first"},
      {"\xfd"
       "7zXZ",
       "it is packed by xz: unpack it first"},
      {"7z\xbc\xaf", "it is packed by 7-Zip: unpack it first"},
      {"\x04\x22\x4d\x18", "it is packed by lz4: unpack it first"},
      {"PK\x03\x04",
       "it is a ZIP file: where it is a WACZ file, unpack it and name the WARC files of its folder \"archive\""},
      {"filedesc:", "it is an ARC file, which came before WARC: warcio recompress makes a WARC file of it"},
  };
  const auto* const known =
      std::ranges::find_if(kKnown, [&](const Known& one) { return begins.starts_with(one.begin); });
  return std::string(known == std::end(kKnown) ? trouble : known->what);
}

bool is_robots_url(std::string_view url) { return url.ends_with("/robots.txt"); }

}  // namespace

struct WarcCaptures::FileReading {
  std::string path;
  std::uint64_t size = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> known = {};  // offsets and ends of records, in their order
  std::size_t odd = 0;
  bool has_records = false;
  std::string begins = {};  // its first bytes
  OtherMethods methods = {};
  struct Waiting {
    CdxjLine line;
    WarcHead head;
  };
  std::optional<Waiting> waiting = {};  // the last capture, for the record behind it

  // Behind the record at `offset`, if an index tells of it.
  std::optional<std::uint64_t> end_of_known(std::uint64_t offset) const {
    const auto found = std::ranges::lower_bound(known, offset, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
    return found != known.end() && found->first == offset ? std::optional(found->second) : std::nullopt;
  }
};

Result<WarcCaptures> WarcCaptures::open(const std::vector<std::string>& files) {
  WarcCaptures captures;
  for (const std::string& file : files) {
    if (auto added = captures.add_file(file); !added) return std::unexpected(std::move(added.error()));
  }
  if (captures.seeds_.empty() && captures.first_page_) {
    if (auto url = Url::parse(captures.first_page_->url)) captures.seeds_.push_back(std::move(*url));
  }
  return captures;
}

Result<void> WarcCaptures::add_file(const std::string& path) {
  files_.push_back(path);
  FileReading file{.path = path};
  std::error_code error;
  file.size = std::filesystem::file_size(path, error);
  if (error) {
    const bool is_absent = error == std::errc::no_such_file_or_directory;
    return fail(is_absent ? Errc::not_found : Errc::io, fmt::format("{}: {}", path, error.message()));
  }
  for (const std::string& index : possible_indexes(path)) {
    if (!file.known.empty() || !std::filesystem::exists(index, error)) continue;
    if (auto read = read_index(index, file); !read) return read;
  }
  std::ranges::sort(file.known);
  file.has_records = !file.known.empty();
  if (auto seeds = read_seeds(path); !seeds) return seeds;
  return read_file(file);
}

Result<void> WarcCaptures::read_index(const std::string& index, FileReading& file) {
  const std::string name = file_name_of(file.path);
  std::vector<CdxjLine> samples;
  std::size_t odd = 0, seen = 0;
  const auto each_line = [&](auto visit) -> Result<void> {
    std::ifstream in(index, std::ios::binary);
    for (std::string text; std::getline(in, text);) {
      const auto line = parse_cdxj(text);
      if (!line && !is_about_index(text)) ++odd;
      if (line && line->filename == name && line->length > 0 && line->offset + line->length <= file.size) visit(*line);
    }
    return in.bad() ? fail(Errc::io, fmt::format("{}: cannot be read", index)) : Result<void>{};
  };
  // Every line that is the next power of two, and the last: an index of another file has none that fits.
  CdxjLine last;
  auto sampled = each_line([&](const CdxjLine& line) {
    if (std::has_single_bit(++seen)) samples.push_back(line);
    last = line;
  });
  if (!sampled) return sampled;
  if (seen > 0) samples.push_back(std::move(last));
  const auto fits = are_in_file(samples, file.path);
  if (!fits) return std::unexpected(fits.error());
  if (!*fits) {
    spdlog::warn("{}: it is of another file than {} is now, and counts for nothing", index, file.path);
    return {};
  }
  odd = 0;
  auto read = each_line([&](const CdxjLine& line) {
    if (line.status != kNotModifiedStatus && is_get(line)) add(line);
    file.known.emplace_back(line.offset, line.offset + line.length);
  });
  if (!read) return read;
  if (odd > 0)
    spdlog::warn("{}: {} left out, torn or of another kind; the file is read for what it lacks", index,
                 counted(odd, "line"));
  return {};
}

// Whether a record of the line's URL begins where each of them says.
Result<bool> WarcCaptures::are_in_file(const std::vector<CdxjLine>& lines, const std::string& path) {
  if (lines.empty()) return true;
  auto bytes = open_warc_bytes(path);
  if (!bytes) return std::unexpected(std::move(bytes.error()));
  WarcReader reader(std::move(*bytes), path);
  for (const CdxjLine& line : lines) {
    const auto head = reader.head_at(line.offset);
    if (!head && head.error().code == Errc::io) return std::unexpected(head.error());
    if (!head || asked_url(std::string(head->field("WARC-Target-URI"))) != asked_url(line.url)) return false;
  }
  return true;
}

// The seeds are in the record at its front.
Result<void> WarcCaptures::read_seeds(const std::string& path) {
  auto bytes = open_warc_bytes(path);
  if (!bytes) return std::unexpected(std::move(bytes.error()));
  WarcReader reader(std::move(*bytes), path, {.block_bytes = 1024 * 1024, .is_lenient = true});
  WarcRecord record;
  const auto read = reader.next(record);
  const bool is_there = read ? *read : reader.is_packed_together();
  if (is_there) take_seeds(record);
  return {};
}

void WarcCaptures::take_seeds(const WarcRecord& record) {
  if (record.head.type() != WarcType::warcinfo) return;
  for_each_token(
      record.block, [](char c) { return c == '\r' || c == '\n'; },
      [&](std::string_view line) {
        if (!line.starts_with(kWarcSeedField) || line.substr(kWarcSeedField.size(), 1) != ":") return;
        auto url = Url::parse(trim_space(line.substr(kWarcSeedField.size() + 1)));
        if (url && std::ranges::find(seeds_, *url) == seeds_.end()) seeds_.push_back(std::move(*url));
      });
}

Result<void> WarcCaptures::read_file(FileReading& file) {
  const auto bytes = open_warc_bytes(file.path);
  if (!bytes) return std::unexpected(bytes.error());
  file.begins.resize(kMostMagicBytes);
  const auto begun = (*bytes)(0, file.begins.data(), file.begins.size());
  if (!begun) return std::unexpected(begun.error());
  file.begins.resize(*begun);
  WarcReader reader(*bytes, file.path, {.is_lenient = true});
  for (;;) {
    const auto is_read = read_records(reader, file, 0);
    if (!is_read) return std::unexpected(is_read.error());
    if (*is_read) break;
    const auto next = read_unpacked(*bytes, file, reader.position());
    if (!next) return std::unexpected(next.error());
    reader.seek(*next);
  }
  if (file.odd > kMostOddTold)
    spdlog::warn("{}: {} in all that are no records, or damaged", file.path, counted(file.odd, "place"));
  return {};
}

void WarcCaptures::tell_odd(FileReading& file, std::string_view what) {
  if (++file.odd <= kMostOddTold) spdlog::warn("{}", what);
}

Result<bool> WarcCaptures::read_records(WarcReader& reader, FileReading& file, std::uint64_t behind) {
  const std::string name = file_name_of(file.path);
  WarcRecord record;
  for (;;) {
    const auto known = behind == 0 ? file.end_of_known(reader.position()) : std::nullopt;
    if (known) {
      reader.seek(*known);
      continue;
    }
    const auto read = reader.next(record);
    if (!read && read.error().code == Errc::io) return std::unexpected(read.error());
    if (!read && reader.is_packed_together()) return false;
    if (!read) {
      const auto more = read_past(reader, read.error(), file);
      if (!more) return std::unexpected(more.error());
      if (*more) continue;
      if (!file.has_records)
        return fail(Errc::wrong_format,
                    fmt::format("{}: no WARC file: {}", file.path, what_else(file.begins, read.error().message)));
    }
    if (!read || !*read) {
      add_waiting(file);
      return true;
    }
    if (behind > 0 && !file.has_records) take_seeds(record);
    file.has_records = true;
    if (record.is_measured)
      tell_odd(file, fmt::format("{}: byte {}: it does not say how long it is, and goes to the next one", file.path,
                                 record.offset));
    const auto end = behind == 0 ? file.end_of_known(record.offset) : std::nullopt;
    if (end) {
      reader.seek(*end);
      continue;
    }
    if (record.head.type() == WarcType::request) {
      file.methods.take_request(record);
      if (file.waiting && file.methods.is_answer_to_other(file.waiting->head)) file.waiting.reset();
    }
    if (auto line = capture_of(record, name)) {
      add_waiting(file);
      line->offset += behind;
      if (!file.methods.is_answer_to_other(record.head)) file.waiting = {std::move(*line), std::move(record.head)};
    }
  }
}

void WarcCaptures::add_waiting(FileReading& file) {
  if (!file.waiting) return;
  add(file.waiting->line);
  add_id(file.waiting->head.field("WARC-Record-ID"), file.waiting->line.offset);
  file.waiting.reset();
}

Result<std::uint64_t> WarcCaptures::read_unpacked(const WarcBytes& packed, FileReading& file, std::uint64_t offset) {
  if (!unpacked_) {
    auto opened = WarcUnpacked::open();
    if (!opened) return std::unexpected(std::move(opened.error()));
    unpacked_ = std::move(*opened);
  }
  spdlog::info("{}: byte {}: it is not packed record by record by gzip; it is unpacked into a temporary file first",
               file.path, offset);
  const auto stretch = unpacked_->append(packed, offset);
  if (!stretch) return std::unexpected(stretch.error());
  WarcReader reader(unpacked_->bytes(), fmt::format("{}, unpacked", file.path), {.is_lenient = true});
  reader.seek(stretch->begin);
  if (auto read = read_records(reader, file, kUnpacked); !read) return std::unexpected(std::move(read.error()));
  return std::max(stretch->read_to, offset + 1);
}

// Also behind a record that seems to end with the file: its length may be wrong.
Result<bool> WarcCaptures::read_past(WarcReader& reader, const Error& trouble, FileReading& file) {
  const auto next = reader.next_behind();
  if (!next) return std::unexpected(next.error());
  if (!*next) {
    ++file.odd;
    spdlog::warn("{}; it is read as far as it is whole", trouble.message);
    return false;
  }
  tell_odd(file, fmt::format("{}; left out: {}", trouble.message, counted(**next - reader.position(), "byte")));
  reader.seek(**next);
  return true;
}

void WarcCaptures::add(const CdxjLine& capture) {
  const auto digest = PayloadTable::key_of_named(capture.digest);
  if (digest && !is_revisit(capture)) payloads_.add(*digest, {last_file(), capture.offset});
  Place place{.file = last_file(), .is_revisit = is_revisit(capture), .offset = capture.offset};
  place.time = time_as_number(capture.timestamp);
  const std::string url = asked_url(capture.url);
  const auto order = [](const Place& one) { return std::tuple(one.time, one.file, one.offset); };
  const std::uint64_t key = capture_key(url);
  const auto [known, is_new] = places_.try_emplace(key, place);
  const auto keep_original = [&](const Place& one) {
    Place& original = originals_.try_emplace(key, one).first->second;
    if (order(original) <= order(one)) original = one;
  };
  if (!is_new && order(known->second) <= order(place)) {
    if (place.is_revisit && !known->second.is_revisit) keep_original(known->second);
    add_older(url, known->second);
    known->second = place;
  } else if (!is_new) {
    if (known->second.is_revisit && !place.is_revisit) keep_original(place);
    add_older(url, place);
  }
  const bool is_earlier =
      !first_page_ || std::tuple(place.file, place.offset) < std::tuple(first_page_->file, first_page_->offset);
  if (is_earlier && !is_robots_url(url)) first_page_ = {place.file, place.offset, url};
}

void WarcCaptures::add_id(std::string_view record_id, std::uint64_t offset) {
  if (!record_id.empty()) by_id_.add(fingerprint(record_id), {last_file(), offset});
}

// Of the same second the later one, but a revisit behind what it may repeat.
void WarcCaptures::add_older(const std::string& url, const Place& place) {
  const auto [known, is_new] = older_.try_emplace(dated_key(url, place.time), place);
  if (!is_new && place.is_revisit <= known->second.is_revisit) known->second = place;
}

std::vector<WarcCaptures::Place> WarcCaptures::captures_of(const std::string& url, std::uint64_t time) const {
  std::vector<Place> found;
  if (time == 0) {
    if (const Place* const original = original_of(url)) found.push_back(*original);
    return found;
  }
  const auto newest = places_.find(capture_key(url));
  if (newest != places_.end() && newest->second.time == time) found.push_back(newest->second);
  const auto older = older_.find(dated_key(url, time));
  if (older != older_.end()) found.push_back(older->second);
  return found;
}

const WarcCaptures::Place* WarcCaptures::original_of(const std::string& url) const {
  const std::uint64_t key = capture_key(url);
  const auto newest = places_.find(key);
  if (newest == places_.end()) return nullptr;
  if (!newest->second.is_revisit) return &newest->second;
  const auto original = originals_.find(key);
  return original == originals_.end() ? nullptr : &original->second;
}

// --- reading

Result<bool> WarcCaptures::Reader::read(const Url& url, WarcMessage& message) {
  const std::string asked(url.without_fragment());
  const auto found = captures_.places_.find(capture_key(asked));
  if (found == captures_.places_.end()) return false;
  if (auto read = read_record(found->second.file, found->second.offset); !read)
    return std::unexpected(std::move(read.error()));
  const WarcHead& head = record_.head;
  if (asked_url(std::string(head.field("WARC-Target-URI"))) != asked) {
    return fail(Errc::corrupt, fmt::format("{}: byte {}: another URL than the index says: remove the index",
                                           captures_.files_[found->second.file], record_.offset));
  }
  message.address = head.field("WARC-IP-Address");
  if (head.type() == WarcType::revisit) {
    if (auto read = read_revisited(message); !read) return std::unexpected(std::move(read.error()));
    return true;
  }
  message.head.clear();
  take_message(message);
  return true;
}

// The head, where there is none yet, and the payload.
void WarcCaptures::Reader::take_message(WarcMessage& message) const {
  const WarcHead& head = record_.head;
  const HttpParts parts = answer_in(record_);
  if (message.head.empty()) {
    message.head = parts.head.empty() ? head_for_payload(head) : std::string(parts.head);
  } else {
    add_codings_of(parts.head, message.head);
  }
  message.payload = parts.payload;
  message.truncated = head.field("WARC-Truncated");
  // Its continuations are in other records, which are not read.
  const bool is_cut = record_.block.size() < head.content_length() || !head.field("WARC-Segment-Number").empty();
  if (is_cut && message.truncated.empty()) message.truncated = "length";
}

Result<void> WarcCaptures::Reader::read_revisited(WarcMessage& message) {
  const HttpParts own = http_parts(record_.block);
  message.head = own.head;
  // Of a writer that still keeps it.
  message.payload = own.payload;
  message.truncated = record_.head.field("WARC-Truncated");
  for (int left = kMostRevisited; left > 0 && record_.head.type() == WarcType::revisit; --left) {
    const WarcHead revisit = std::move(record_.head);
    const auto read = read_original(revisit);
    if (!read && read.error().code == Errc::not_found && !message.payload.empty()) return {};
    if (!read) return read;
  }
  if (record_.head.type() == WarcType::revisit)
    return fail(Errc::not_found, "a revisit of revisits, too many or in a circle");
  take_message(message);
  return {};
}

Result<void> WarcCaptures::Reader::read_original(const WarcHead& revisit) {
  const std::string_view digest = revisit.field("WARC-Payload-Digest");
  const auto key = PayloadTable::key_of_named(digest);
  if (const auto place = key ? captures_.payloads_.find(*key) : std::nullopt)
    return read_record(place->file, place->offset);
  const auto found = read_referred(revisit);
  if (!found) return std::unexpected(found.error());
  if (*found) return {};
  const std::string_view url = revisit.field("WARC-Refers-To-Target-URI");
  return fail(Errc::not_found, fmt::format("the page that it repeats ({}) is in none of these files",
                                           !digest.empty() ? digest
                                           : !url.empty()  ? url
                                                           : revisit.field("WARC-Refers-To")));
}

// The record that a revisit refers to by id, or, as other writers do that have other digests or none, by URL and date.
Result<bool> WarcCaptures::Reader::read_referred(const WarcHead& revisit) {
  const std::string_view id = revisit.field("WARC-Refers-To");
  if (const auto place = id.empty() ? std::nullopt : captures_.by_id_.find(fingerprint(id))) {
    const auto read = read_repeated(revisit, place->file, place->offset);
    if (!read || *read) return read;
  }
  const std::string_view named = revisit.field("WARC-Refers-To-Target-URI");
  const std::string url = asked_url(std::string(named.empty() ? revisit.field("WARC-Target-URI") : named));
  const std::uint64_t time = time_as_number(cdx_timestamp(revisit.field("WARC-Refers-To-Date")));
  for (const Place& place : captures_.captures_of(url, time)) {
    const auto read = read_repeated(revisit, place.file, place.offset);
    if (!read || *read) return read;
  }
  return false;
}

Result<bool> WarcCaptures::Reader::read_repeated(const WarcHead& revisit, std::uint32_t file, std::uint64_t offset) {
  if (auto read = read_record(file, offset); !read) return std::unexpected(std::move(read.error()));
  const std::string_view id = revisit.field("WARC-Record-ID");
  const bool is_itself = !id.empty() && record_.head.field("WARC-Record-ID") == id;
  return !is_itself && !digests_differ(revisit.field("WARC-Payload-Digest"), record_.head.field("WARC-Payload-Digest"));
}

Result<WarcReader*> WarcCaptures::Reader::reader_of(std::uint32_t file, bool is_unpacked) {
  std::unique_ptr<WarcReader>& reader = is_unpacked ? readers_.back() : readers_[file];
  if (reader == nullptr) {
    const std::string& path = captures_.files_[file];
    auto bytes = is_unpacked ? Result<WarcBytes>(captures_.unpacked_->bytes()) : open_warc_bytes(path);
    if (!bytes) return std::unexpected(std::move(bytes.error()));
    reader = std::make_unique<WarcReader>(std::move(*bytes), path,
                                          WarcReaderLimits{.block_bytes = kMostMessageBytes, .is_lenient = true});
  }
  return reader.get();
}

Result<void> WarcCaptures::Reader::read_record(std::uint32_t file, std::uint64_t offset) {
  const bool is_unpacked = offset >= kUnpacked;
  const auto reader = reader_of(file, is_unpacked);
  if (!reader) return std::unexpected(reader.error());
  (*reader)->seek(is_unpacked ? offset - kUnpacked : offset);
  const auto read = (*reader)->next(record_);
  if (!read) return std::unexpected(read.error());
  if (*read) return {};
  return fail(Errc::corrupt, fmt::format("{}: it has become shorter", captures_.files_[file]));
}

}  // namespace argiope
