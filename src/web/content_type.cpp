#include "web/internal/content_type.hpp"

#include <algorithm>
#include <cstddef>

#include "web/http_field.hpp"
#include "web/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kSniffedBytes = 1445;  // the standard's "resource header"

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

// What a quoted parameter holds; `text` begins behind the opening quote and ends up behind the closing one.
std::string_view take_quoted(std::string_view& text) noexcept {
  std::size_t at = 0;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

}  // namespace

ContentType parse_content_type(std::string_view header) noexcept {
  std::string_view rest = trim(header);
  ContentType found;
  const std::string_view type = trim(take_until(rest, ";"));
  const std::size_t slash = type.find('/');
  if (slash == type.npos || !is_token(type.substr(0, slash)) || !is_token(type.substr(slash + 1))) return found;
  found.type = type;
  while (!rest.empty()) {
    rest.remove_prefix(1);  // ";"
    while (!rest.empty() && is_http_space(rest.front())) rest.remove_prefix(1);
    const std::string_view name = take_until(rest, ";=");
    if (rest.empty() || rest.front() == ';') continue;
    rest.remove_prefix(1);  // "="
    const bool quoted = rest.starts_with('"');
    if (quoted) rest.remove_prefix(1);
    const std::string_view value = quoted ? take_quoted(rest) : trim(take_until(rest, ";"));
    take_until(rest, ";");
    if (found.charset.empty() && equals_lower(name, "charset")) found.charset = value;
  }
  return found;
}

bool is_html(std::string_view content_type) noexcept {
  const std::string_view type = parse_content_type(content_type).type;
  return equals_lower(type, "text/html") || equals_lower(type, "application/xhtml+xml");
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

}  // namespace argiope
