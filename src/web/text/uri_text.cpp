#include "web/text/internal/uri_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::string_view kSchemeEnd = "://";
constexpr std::string_view kInUris = "-._~:/?@!$&'()*+,;=";  // beside letters and digits

void append_escaped_uri(std::string& out, char c) {
  fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
}

// Where the path begins: behind an authority, or at once.
std::size_t path_begin(std::string_view url) {
  const std::size_t scheme = url.find(kSchemeEnd);
  if (scheme == std::string_view::npos || url.find_first_of("/?#") < scheme) return 0;
  return std::min(url.find_first_of("/?#", scheme + kSchemeEnd.size()), url.size());
}

}  // namespace

std::string as_rfc3986(std::string_view url) {
  std::string out;
  const std::size_t path = path_begin(url);
  bool has_fragment = false;
  for (std::size_t at = 0; at < url.size(); ++at) {
    const char c = url[at];
    const bool is_escape =
        c == '%' && at + 2 < url.size() && hex_value(url[at + 1]) >= 0 && hex_value(url[at + 2]) >= 0;
    const bool is_bracket = (c == '[' || c == ']') && at < path;
    const bool begins_fragment = c == '#' && !has_fragment;
    has_fragment = has_fragment || begins_fragment;
    if (is_alnum(c) || kInUris.contains(c) || is_escape || is_bracket || begins_fragment) {
      out += c;
    } else {
      append_escaped_uri(out, c);
    }
  }
  return out;
}

std::string reference_of_bytes(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (static_cast<unsigned char>(c) < 0x80) {
      out += c;
    } else {
      append_escaped_uri(out, c);
    }
  }
  return out;
}

std::string without_scheme(std::string_view url) {
  const std::size_t scheme = url.find(kSchemeEnd);
  const bool has_scheme = scheme != std::string_view::npos && url.find_first_of("/?#") > scheme;
  const std::string_view rest = has_scheme ? url.substr(scheme + kSchemeEnd.size()) : url;
  const std::size_t segment = std::min(rest.find_first_of("/?#"), rest.size());
  std::string out;
  for (const char c : rest.substr(0, segment)) {
    if (c == ':' || c == '[' || c == ']') {
      append_escaped_uri(out, c);
    } else {
      out += c;
    }
  }
  // Two slashes at the front would name a host.
  return as_rfc3986(
      out.append(rest.substr(std::min(segment == 0 ? rest.find_first_not_of('/') : segment, rest.size()))));
}

}  // namespace argiope
