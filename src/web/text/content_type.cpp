#include "web/text/internal/content_type.hpp"

#include <algorithm>
#include <cstddef>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

constexpr bool is_http_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && is_http_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_http_space(text.back())) text.remove_suffix(1);
  return text;
}

// Cuts off and returns what stands before the first of `stops`, which stays.
std::string_view take_until(std::string_view& text, std::string_view stops) noexcept {
  const std::string_view taken = text.substr(0, text.find_first_of(stops));
  text.remove_prefix(taken.size());
  return taken;
}

// A mark at the beginning of a body, or a little behind it.
struct Signature {
  std::size_t at;
  std::string_view bytes, type;
};
using namespace std::string_view_literals;
constexpr Signature kSignatures[] = {
    {0, "%PDF-"sv, "application/pdf"},
    {0, "%!PS-Adobe-"sv, "application/postscript"},
    {0, "\x89PNG\r\n\x1a\n"sv, "image/png"},
    {0, "GIF8"sv, "image/gif"},
    {0, "\xff\xd8\xff"sv, "image/jpeg"},
    {8, "WEBPVP"sv, "image/webp"},
    {0, "BM"sv, "image/bmp"},
    {0, "\0\0\1\0"sv, "image/x-icon"},
    {0, "\x1f\x8b\x08"sv, "application/x-gzip"},
    {0, "PK\3\4"sv, "application/zip"},
    {0, "Rar!\x1a\7"sv, "application/x-rar-compressed"},
    {0, "OggS\0"sv, "application/ogg"},
    {0, "ID3"sv, "audio/mpeg"},
    {8, "WAVE"sv, "audio/wave"},
    {8, "AVI "sv, "video/avi"},
    {4, "ftyp"sv, "video/mp4"},
    {0, "\x1a\x45\xdf\xa3"sv, "video/webm"},
    {0, "wOFF"sv, "font/woff"},
    {0, "wOF2"sv, "font/woff2"},
};

// A "binary data byte" of the standard.
constexpr bool is_binary(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= 0x08 || byte == 0x0b || (byte >= 0x0e && byte <= 0x1a) || (byte >= 0x1c && byte <= 0x1f);
}

bool fits_media_type(std::string_view type, std::string_view wanted) noexcept {
  if (wanted == "*/*") return true;
  if (!wanted.ends_with("/*")) return equals_lower(type, wanted);
  return starts_with_lower(type, wanted.substr(0, wanted.size() - 1));
}

// Cuts off and returns the first of a list's elements, up to a comma that is not in quotes.
std::string_view take_element(std::string_view& list) noexcept {
  std::size_t at = 0;
  for (bool is_quoted = false; at < list.size() && (is_quoted || list[at] != ','); ++at) {
    if (list[at] == '"') is_quoted = !is_quoted;
    if (is_quoted && list[at] == '\\') ++at;
  }
  const std::string_view element = list.substr(0, at);
  list.remove_prefix(std::min(at + 1, list.size()));
  return element;
}

ContentType parse_one_type(std::string_view element) noexcept {
  std::string_view rest = trim(element);
  ContentType found;
  const std::string_view type = take_until(rest, "; \t\r\n");
  const std::size_t slash = type.find('/');
  if (slash == type.npos || !is_token(type.substr(0, slash)) || !is_token(type.substr(slash + 1))) return found;
  found.type = type;
  while (!rest.empty()) {
    rest.remove_prefix(1);  // ";"
    while (!rest.empty() && is_http_space(rest.front())) rest.remove_prefix(1);
    const std::string_view name = take_until(rest, ";=");
    if (rest.empty() || rest.front() == ';') continue;
    rest.remove_prefix(1);  // "="
    const std::string_view value = rest.starts_with('"') ? take_quoted(rest) : trim(take_until(rest, ";"));
    take_until(rest, ";");
    if (found.charset.empty() && equals_lower(name, "charset")) found.charset = value;
  }
  return found;
}

}  // namespace

ContentType parse_content_type(std::string_view header) noexcept {
  ContentType found;
  while (!header.empty()) {
    ContentType one = parse_one_type(take_element(header));
    if (one.type.empty() || one.type == "*/*") continue;
    if (one.charset.empty() && equals_ignoring_case(one.type, found.type)) one.charset = found.charset;
    found = one;
  }
  return found;
}

bool is_html(std::string_view content_type) noexcept {
  const std::string_view type = parse_content_type(content_type).type;
  return equals_lower(type, "text/html") || equals_lower(type, "application/xhtml+xml");
}

bool is_xml(std::string_view content_type) noexcept {
  const std::string_view type = parse_content_type(content_type).type;
  return equals_lower(type, "application/xml") || equals_lower(type, "text/xml");
}

bool sniff_is_html(std::string_view body) noexcept {
  constexpr std::string_view kOpenings[] = {
      "<!doctype html", "<html",  "<head", "<script", "<iframe", "<h1", "<div", "<font", "<table", "<a",
      "<style",         "<title", "<b",    "<body",   "<br",     "<p",  "<!--"};
  body = body.substr(0, kSniffedBytes);
  if (body.starts_with("\xEF\xBB\xBF")) body.remove_prefix(3);
  while (!body.empty() && is_space(body.front())) body.remove_prefix(1);
  return std::ranges::any_of(kOpenings, [body](std::string_view opening) {
    if (!starts_with_lower(body, opening) || body.size() == opening.size()) return false;
    return body[opening.size()] == ' ' || body[opening.size()] == '>';
  });
}

bool has_media_type(std::string_view content_type, std::span<const std::string> types) noexcept {
  const std::string_view type = parse_content_type(content_type).type;
  return !type.empty() &&
         std::ranges::any_of(types, [type](const std::string& wanted) { return fits_media_type(type, wanted); });
}

std::string_view sniff_type(std::string_view body) noexcept {
  body = body.substr(0, kSniffedBytes);
  if (sniff_is_html(body)) return "text/html";
  const std::size_t text = body.find_first_not_of(" \t\n\f\r");
  if (text != std::string_view::npos && body.substr(text).starts_with("<?xml")) return "text/xml";
  for (const Signature& one : kSignatures) {
    if (body.size() > one.at && body.substr(one.at).starts_with(one.bytes)) return one.type;
  }
  const bool has_mark =
      body.starts_with("\xfe\xff") || body.starts_with("\xff\xfe") || body.starts_with("\xef\xbb\xbf");
  return has_mark || std::ranges::none_of(body, is_binary) ? "text/plain" : "application/octet-stream";
}

}  // namespace argiope
