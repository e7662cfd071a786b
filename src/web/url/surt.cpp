#include "web/url/internal/surt.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "argiope/web/url.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr int kMostUnescapings = 16;

void lower_in_place(std::string& text) {
  std::ranges::transform(text, text.begin(), [](char c) { return to_lower(c); });
}

// "%2541" is "A": until nothing changes any more.
std::string unescaped_fully(std::string_view text) {
  std::string now = percent_decode(text);
  for (int times = 1; times < kMostUnescapings && now.contains('%'); ++times) {
    std::string next = percent_decode(now);
    if (next == now) break;
    now = std::move(next);
  }
  return now;
}

std::string escaped_where_needed(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '#' && c != '%') {
      out += c;
      continue;
    }
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::string_view without_www(std::string_view host) noexcept {
  if (!host.starts_with("www")) return host;
  std::size_t end = 3;
  while (end < host.size() && is_digit(host[end])) ++end;
  return end < host.size() && host[end] == '.' ? host.substr(end + 1) : host;
}

std::string host_turned_round(std::string_view host) {
  if (host.starts_with('[')) return std::string(host);
  std::string out;
  while (!host.empty()) {
    const std::size_t dot = host.rfind('.');
    if (!out.empty()) out += ',';
    out += host.substr(dot == std::string_view::npos ? 0 : dot + 1);
    host = host.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return out;
}

// --- what changes with each visit and says nothing of the page

bool all_of_kind(std::string_view text, bool (*is_of_kind)(char)) { return std::ranges::all_of(text, is_of_kind); }
bool is_sid_character(char c) { return is_alnum(c); }
bool is_sid_letter(char c) { return is_alpha(c); }

// "(a(…)s(…))" or "(…)", each … 24 letters and digits: of ASP.NET.
bool is_asp_session(std::string_view segment) {
  constexpr std::size_t kId = 24;
  if (segment.size() < kId + 2 || !segment.starts_with('(') || !segment.ends_with(')')) return false;
  segment = segment.substr(1, segment.size() - 2);
  if (segment.size() == kId) return all_of_kind(segment, is_sid_character);
  for (; !segment.empty(); segment.remove_prefix(kId + 3)) {
    const bool fits = segment.size() >= kId + 3 && is_alpha(segment[0]) && segment[1] == '(' && segment[kId + 2] == ')';
    if (!fits || !all_of_kind(segment.substr(2, kId), is_sid_character)) return false;
  }
  return true;
}

bool is_session_parameter(std::string_view parameter) {
  const std::size_t equals = parameter.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = parameter.substr(0, equals), value = parameter.substr(equals + 1);
  constexpr std::string_view kAsp = "aspsessionid";
  if (name.size() == kAsp.size() + 8 && starts_with_lower(name, kAsp)) {
    return value.size() == 24 && all_of_kind(name.substr(kAsp.size()), is_sid_letter) &&
           all_of_kind(value, is_sid_letter);
  }
  const bool is_named =
      equals_lower(name, "jsessionid") || equals_lower(name, "phpsessid") || equals_lower(name, "sid");
  return is_named && value.size() == 32 && all_of_kind(value, is_sid_character);
}

// --- path and query

std::string key_of_path(std::string_view escaped) {
  std::string path = unescaped_fully(escaped);
  lower_in_place(path);
  const bool may_have_session = path.contains(".aspx");
  std::string out;
  for_each_token(
      path, [](char c) { return c == '/'; },
      [&](std::string_view segment) {
        if (may_have_session && is_asp_session(segment)) return;
        out += '/';
        out += segment;
      });
  return out.empty() ? "/" : escaped_where_needed(out);
}

std::string key_of_query(std::string_view escaped) {
  std::string query = unescaped_fully(escaped);
  std::vector<std::pair<std::string, std::string>> parameters;
  for (std::size_t at = 0; at <= query.size();) {
    const std::size_t end = std::min(query.find('&', at), query.size());
    std::string parameter = query.substr(at, end - at);
    at = end + 1;
    if (is_session_parameter(parameter)) continue;
    lower_in_place(parameter);
    const std::size_t equals = std::min(parameter.find('='), parameter.size());
    parameters.emplace_back(parameter.substr(0, equals), parameter.substr(equals));
  }
  std::ranges::sort(parameters);
  std::string out;
  for (const auto& [name, value] : parameters) {
    if (&name != &parameters.front().first) out += '&';
    out += name;
    out += value;
  }
  return escaped_where_needed(out);
}

}  // namespace

std::string surt_key(std::string_view text) {
  const auto url = Url::parse(text);
  if (!url || (url->scheme() != "http" && url->scheme() != "https")) return escaped_where_needed(text);
  std::string key = host_turned_round(without_www(url->host()));
  if (!url->port().empty()) {
    key += ':';
    key += url->port();
  }
  key += ')';
  key += key_of_path(url->pathname());
  if (url->search().size() > 1) {
    const std::string query = key_of_query(url->search().substr(1));
    if (!query.empty()) key.append("?").append(query);
  }
  return key;
}

}  // namespace argiope
