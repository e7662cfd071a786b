#include "cli/crawl/seed_list.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>

#include "base/internal/printable.hpp"

namespace argiope {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// "host", "host/path" or "host:8080": a colon that no port follows ends a scheme.
bool has_scheme(std::string_view text) {
  const std::size_t colon = text.find_first_of(":/?#");
  if (colon == std::string_view::npos || text[colon] != ':' || text.starts_with('[')) return false;
  return colon + 1 == text.size() || !std::isdigit(static_cast<unsigned char>(text[colon + 1]));
}

// The next line, without its end; of one that is longer than a URL may be only so much. nullopt at the end.
std::optional<std::string> next_line(std::istream& in) {
  std::string line;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    if (c == '\n') return line;
    if (line.size() <= kMaxUrlLength) line += static_cast<char>(c);
  }
  return line.empty() ? std::nullopt : std::optional(std::move(line));
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\f\v");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\f\v") - first + 1);
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
  std::size_t number = 0;
  while (auto line = next_line(in)) {
    if (++number == 1 && line->starts_with(kByteOrderMark)) line->erase(0, kByteOrderMark.size());
    const std::string text = trimmed(*line);
    if (text.empty() || text.starts_with('#')) continue;
    if (list.seeds.size() >= SeedList::kMostSeeds) {
      return fail(Errc::too_large, fmt::format("{}:{}: more than {} URLs", printable(name), number, SeedList::kMostSeeds));
    }
    auto seed = parse_seed(text);
    if (seed) {
      list.seeds.push_back(std::move(*seed));
    } else if (++list.bad_count <= SeedList::kMostTold) {
      list.bad.push_back(fmt::format("{}:{}: {}", printable(name), number, seed.error().message));
    }
  }
  if (in.bad()) return fail(Errc::io, fmt::format("{}: cannot be read", printable(name)));
  return {};
}

std::string name_of_list(const std::string& path) { return path == "-" ? "standard input" : printable(path); }

Result<void> read_seed_list(const std::string& path, SeedList& list) {
  if (path == "-") return read_seed_list(std::cin, name_of_list(path), list);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return fail(errno == ENOENT ? Errc::not_found : Errc::io,
                fmt::format("{}: {}", printable(path), std::strerror(errno)));
  }
  return read_seed_list(file, path, list);
}

}  // namespace argiope
