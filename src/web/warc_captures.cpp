#include "web/warc_captures.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <utility>

#include "base/internal/fingerprint.hpp"
#include "web/internal/ascii.hpp"
#include "web/internal/warc_archive.hpp"
#include "web/internal/warc_capture.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostMessageBytes = 256 * 1024 * 1024;
constexpr std::string_view kIndexEnding = ".cdxj";

// As a crawl asks for it.
std::string asked_url(const std::string& url) {
  const auto parsed = Url::parse(url);
  return parsed ? std::string(parsed->without_fragment()) : url;
}

std::uint64_t capture_key(const std::string& url) { return fingerprint(url); }

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

bool is_robots_url(std::string_view url) { return url.ends_with("/robots.txt"); }

}  // namespace

struct WarcCaptures::IndexedFile {
  std::uint64_t size = 0;
  std::optional<std::uint64_t> last;  // the offset of the last record that an index has
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
  IndexedFile file;
  std::error_code error;
  file.size = std::filesystem::file_size(path, error);
  if (error) {
    const bool is_absent = error == std::errc::no_such_file_or_directory;
    return fail(is_absent ? Errc::not_found : Errc::io, fmt::format("{}: {}", path, error.message()));
  }
  for (const std::string& index : possible_indexes(path)) {
    if (file.last || !std::filesystem::exists(index, error)) continue;
    if (auto read = read_index(index, file_name_of(path), file); !read) return read;
  }
  if (auto seeds = read_seeds(path); !seeds) return seeds;
  return read_file(path, file);
}

Result<void> WarcCaptures::read_index(const std::string& index, const std::string& name, IndexedFile& file) {
  std::ifstream in(index, std::ios::binary);
  for (std::string text; std::getline(in, text);) {
    const auto line = parse_cdxj(text);
    if (!line || line->filename != name || line->offset + line->length > file.size) continue;
    add(*line);
    file.last = std::max(file.last.value_or(0), line->offset);
  }
  if (in.bad()) return fail(Errc::io, fmt::format("{}: cannot be read", index));
  return {};
}

// The seeds are in the record at its front.
Result<void> WarcCaptures::read_seeds(const std::string& path) {
  auto bytes = open_warc_bytes(path);
  if (!bytes) return std::unexpected(std::move(bytes.error()));
  WarcReader reader(std::move(*bytes), path, {.block_bytes = 1024 * 1024});
  WarcRecord record;
  const auto read = reader.next(record);
  if (!read || !*read || record.head.type() != WarcType::warcinfo) return {};
  for_each_token(
      record.block, [](char c) { return c == '\r' || c == '\n'; },
      [&](std::string_view line) {
        if (!line.starts_with(kWarcSeedField) || line.substr(kWarcSeedField.size(), 1) != ":") return;
        auto url = Url::parse(trim_space(line.substr(kWarcSeedField.size() + 1)));
        if (url && std::ranges::find(seeds_, *url) == seeds_.end()) seeds_.push_back(std::move(*url));
      });
  return {};
}

Result<void> WarcCaptures::read_file(const std::string& path, const IndexedFile& file) {
  auto bytes = open_warc_bytes(path);
  if (!bytes) return std::unexpected(std::move(bytes.error()));
  WarcReader reader(std::move(*bytes), path);
  reader.seek(file.last.value_or(0));
  WarcRecord record;
  for (;;) {
    const auto read = reader.next(record);
    if (!read && reader.ends_early() && reader.position() > 0) {
      spdlog::warn("{}; it is read as far as it is whole", read.error().message);
      return {};
    }
    if (!read && reader.position() == 0 && read.error().code == Errc::corrupt) {
      return fail(Errc::wrong_format, fmt::format("{}: no WARC file: {}", path, read.error().message));
    }
    if (!read) return std::unexpected(read.error());
    if (!*read) return {};
    if (file.last && record.offset <= *file.last) continue;
    if (const auto line = capture_of(record, file_name_of(path))) add(*line);
  }
}

void WarcCaptures::add(const CdxjLine& capture) {
  const auto digest = PayloadTable::key_of_base32(capture.digest);
  if (digest && !is_revisit(capture)) payloads_.add(*digest, {last_file(), capture.offset});
  Place place{.file = last_file(), .offset = capture.offset};
  const std::string& time = capture.timestamp;
  (void)std::from_chars(time.data(), time.data() + time.size(), place.time);
  const std::string url = asked_url(capture.url);
  const auto order = [](const Place& one) { return std::tuple(one.time, one.file, one.offset); };
  Place& known = places_[capture_key(url)];
  if (order(known) <= order(place)) known = place;
  const bool is_earlier =
      !first_page_ || std::tuple(place.file, place.offset) < std::tuple(first_page_->file, first_page_->offset);
  if (is_earlier && !is_robots_url(url)) first_page_ = {place.file, place.offset, url};
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
  const std::size_t head_size = http_head_size(record_.block).value_or(record_.block.size());
  message.head = record_.block.substr(0, head_size);
  message.address = head.field("WARC-IP-Address");
  message.truncated = head.field("WARC-Truncated");
  if (head.type() == WarcType::revisit) {
    if (auto read = read_revisited(message); !read) return std::unexpected(std::move(read.error()));
    return true;
  }
  message.payload.assign(record_.block, head_size);
  if (record_.block.size() < head.content_length()) message.truncated = "length";
  return true;
}

Result<void> WarcCaptures::Reader::read_revisited(WarcMessage& message) {
  const std::string_view digest = record_.head.field("WARC-Payload-Digest");
  const auto key =
      PayloadTable::key_of_base32(digest.substr(std::min<std::size_t>(digest.find(':') + 1, digest.size())));
  const auto place = key ? captures_.payloads_.find(*key) : std::nullopt;
  if (!place)
    return fail(Errc::not_found, fmt::format("the page that it repeats ({}) is in none of these files", digest));
  if (auto read = read_record(place->file, place->offset); !read) return read;
  const std::size_t head_size = http_head_size(record_.block).value_or(record_.block.size());
  if (message.head.empty()) message.head = record_.block.substr(0, head_size);
  message.payload.assign(record_.block, head_size);
  return {};
}

Result<void> WarcCaptures::Reader::read_record(std::uint32_t file, std::uint64_t offset) {
  std::unique_ptr<WarcReader>& reader = readers_[file];
  const std::string& path = captures_.files_[file];
  if (reader == nullptr) {
    auto bytes = open_warc_bytes(path);
    if (!bytes) return std::unexpected(std::move(bytes.error()));
    reader = std::make_unique<WarcReader>(std::move(*bytes), path, WarcReaderLimits{.block_bytes = kMostMessageBytes});
  }
  reader->seek(offset);
  const auto read = reader->next(record_);
  if (!read) return std::unexpected(read.error());
  if (*read) return {};
  return fail(Errc::corrupt, fmt::format("{}: it has become shorter", path));
}

}  // namespace argiope
