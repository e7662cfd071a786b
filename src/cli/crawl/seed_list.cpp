#include "cli/crawl/seed_list.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "argiope/web/detail/charset.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/text_lines.hpp"
#include "web/html/internal/sitemap.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// "host", "host/path" or "host:8080": a colon that no port follows ends a scheme.
bool has_scheme(std::string_view text) {
  const std::size_t colon = text.find_first_of(":/?#");
  if (colon == std::string_view::npos || text[colon] != ':' || text.starts_with('[')) return false;
  return colon + 1 == text.size() || !std::isdigit(static_cast<unsigned char>(text[colon + 1]));
}

// A sitemap or feed instead of lines: what begins as XML or gzip does.
bool is_sitemap_ahead(std::istream& in) {
  const int first = in.peek();
  return first == '<' || first == 0x1f;
}

// In UTF-16, as some editors write it: behind a mark, or with a zero among the first two bytes.
bool is_utf16_ahead(std::istream& in) {
  constexpr int kEnd = std::istream::traits_type::eof();
  if (in.peek() == kEnd) return false;
  const int first = in.get(), second = in.peek();
  in.clear();
  in.unget();
  return first == 0 || second == 0 || (first == 0xff && second == 0xfe) || (first == 0xfe && second == 0xff);
}

Result<void> read_sitemap_seeds(std::istream& in, const std::string& name, SeedList& list) {
  const SitemapLimits limits{.most_entries = SeedList::kMostSeeds, .most_links = SeedList::kMostSeeds};
  std::string body(limits.most_bytes, '\0');
  in.read(body.data(), static_cast<std::streamsize>(body.size()));
  body.resize(static_cast<std::size_t>(in.gcount()));
  const SitemapReport report = read_sitemap(body, {}, limits, [&](const SitemapEntry& entry) {
    if (entry.kind != SitemapLink::page) return;
    Result<Url> seed = fail(Errc::invalid_input, fmt::format("URL {}: it is relative", in_quotes(entry.url)));
    if (has_scheme(entry.url)) seed = parse_seed(std::string(entry.url));
    if (seed) {
      list.seeds.push_back(std::move(*seed));
    } else if (++list.bad_count <= SeedList::kMostTold) {
      list.bad.push_back(fmt::format("{}: {}", printable(name), seed.error().message));
    }
  });
  if (report.kind == SitemapKind::index) {
    return fail(Errc::invalid_input,
                fmt::format("{}: it is an index of sitemaps; --sitemap URL reads what it lists", printable(name)));
  }
  if (report.kind == SitemapKind::none)
    return fail(Errc::invalid_input, fmt::format("{}: neither a list of URLs nor a sitemap or feed", printable(name)));
  if (!report.trouble.empty()) {
    ++list.bad_count;
    list.bad.push_back(fmt::format("{}: {}", printable(name), report.trouble));
  }
  return {};
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\f\v");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\f\v") - first + 1);
}

// Of a line that is longer than a URL may be, so much that it is refused as one.
constexpr std::size_t kMostSeedLine = kMaxUrlLength + 1;

Result<void> read_seed_lines(std::istream& in, const std::string& name, SeedList& list) {
  std::optional<Error> too_many;
  const auto take = [&](const TextLine& line) {
    const std::string text = trimmed(std::string(line.text));
    if (text.empty() || text.starts_with('#')) return true;
    if (list.seeds.size() >= SeedList::kMostSeeds) {
      too_many = Error{Errc::too_large,
                       fmt::format("{}: more than {} URLs", place_of_line(name, line.number), SeedList::kMostSeeds)};
      return false;
    }
    auto seed = parse_seed(text);
    if (seed) {
      list.seeds.push_back(std::move(*seed));
    } else if (++list.bad_count <= SeedList::kMostTold) {
      list.bad.push_back(fmt::format("{}: {}", place_of_line(name, line.number), seed.error().message));
    }
    return true;
  };
  LineSplitter lines(kMostSeedLine);
  std::string piece(64 * 1024, '\0');
  while (in && !too_many) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    (void)lines.take(std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())), take);
  }
  if (!too_many) (void)lines.end(take);
  if (too_many) return std::unexpected(std::move(*too_many));
  if (in.bad()) return fail(Errc::io, fmt::format("{}: cannot be read", printable(name)));
  return {};
}

Result<void> read_utf16_list(std::istream& in, const std::string& name, SeedList& list) {
  constexpr std::size_t kMost = SitemapLimits{}.most_bytes;
  std::string bytes(kMost + 1, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  if (bytes.size() > kMost)
    return fail(Errc::too_large, fmt::format("{}: more than {} bytes of UTF-16", printable(name), kMost));
  // Without a mark the zeros tell which it is.
  if (bytes.front() == '\0') bytes.insert(0, "\xfe\xff");
  if (bytes.size() > 1 && bytes[1] == '\0') bytes.insert(0, "\xff\xfe");
  const CharsetDecision charset = detect_charset(bytes, {});
  const auto text = to_utf8(std::string_view(bytes).substr(charset.bom_length), charset.name);
  if (!text) return std::unexpected(text.error());
  const bool is_xml = trim_space(*text).starts_with('<');
  std::istringstream read(is_xml ? bytes : *text);
  return is_xml ? read_sitemap_seeds(read, name, list) : read_seed_lines(read, name, list);
}

}  // namespace

Result<Url> parse_seed(const std::string& text) {
  std::string spelled = text;
  if (!has_scheme(text)) {
    const bool loopback = text.starts_with("localhost") || text.starts_with("127.") || text.starts_with("[::1]");
    spelled = (loopback ? "http://" : "https://") + text;
  }
  auto url = Url::parse(spelled);
  if (!url)
    return fail(Errc::invalid_input,
                fmt::format("URL {}: {}", in_quotes(without_credentials(text)), url.error().message));
  if (url->scheme() != "http" && url->scheme() != "https") {
    return fail(Errc::invalid_input, fmt::format("URL {}: scheme {} cannot be crawled; use http or https",
                                                 in_quotes(without_credentials(text)), in_quotes(url->scheme())));
  }
  url->strip_fragment();
  return std::move(*url);
}

Result<void> read_seed_list(std::istream& in, const std::string& name, SeedList& list) {
  if (is_utf16_ahead(in)) return read_utf16_list(in, name, list);
  return is_sitemap_ahead(in) ? read_sitemap_seeds(in, name, list) : read_seed_lines(in, name, list);
}

std::string name_of_list(const std::string& path) { return path == "-" ? "standard input" : printable(path); }

Result<void> read_seed_list(const std::string& path, SeedList& list) {
  if (path == "-") return read_seed_list(std::cin, name_of_list(path), list);
  if (const auto good = expect_readable_file(path, FileReading::first); !good) {
    return fail(good.error().code, fmt::format("{}: {}", printable(path), good.error().message));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Errc::io, fmt::format("{}: {}", printable(path), std::strerror(errno)));
  return read_seed_list(file, path, list);
}

}  // namespace argiope
