#include "serve/gate/request_source.hpp"

#include <algorithm>
#include <optional>

#include "argiope/web/detail/ip_address.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

namespace {

// HOST or HOST:PORT, of a Host field or an origin.
struct Authority {
  std::string_view name;  // without brackets, and without the dot of a full name
  std::string_view port;  // empty: not said
  bool in_brackets = false;
};

std::optional<Authority> parse_authority(std::string_view text) noexcept {
  Authority authority;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    authority = {.name = text.substr(1, end - 1), .port = {}, .in_brackets = true};
    rest = text.substr(end + 1);
  } else {
    const std::size_t end = std::min(text.find(':'), text.size());
    authority.name = text.substr(0, end);
    rest = text.substr(end);
    if (authority.name.ends_with('.')) authority.name.remove_suffix(1);
  }
  if (!rest.empty() && !rest.starts_with(':')) return std::nullopt;
  authority.port = rest.substr(rest.empty() ? 0 : 1);
  if (authority.name.empty() || !std::ranges::all_of(authority.port, is_digit)) return std::nullopt;
  return authority;
}

bool is_address(const Authority& authority) {
  const auto address = IpAddress::parse(authority.name);
  return address && address->is_v4() != authority.in_brackets;
}

bool is_localhost(std::string_view name) noexcept {
  constexpr std::string_view kBelow = ".localhost";
  return equals_lower(name, "localhost") ||
         (name.size() > kBelow.size() && equals_lower(name.substr(name.size() - kBelow.size()), kBelow));
}

bool is_same_host(const Authority& asked, std::string_view configured) noexcept {
  const auto ours = parse_authority(configured);
  return ours && equals_ignoring_case(asked.name, ours->name) && (ours->port.empty() || ours->port == asked.port);
}

std::string_view port_or(const Authority& authority, std::string_view usual) noexcept {
  return authority.port.empty() ? usual : authority.port;
}

// Whether `origin` is where a page comes from that was asked for at `host`.
bool is_origin_of(std::string_view origin, std::string_view host) noexcept {
  const bool secure = starts_with_lower(origin, "https://");
  if (!secure && !starts_with_lower(origin, "http://")) return false;
  const auto page = parse_authority(origin.substr(secure ? 8 : 7));
  const auto ours = parse_authority(host);
  const std::string_view usual = secure ? "443" : "80";
  return page && ours && equals_ignoring_case(page->name, ours->name) && port_or(*page, usual) == port_or(*ours, usual);
}

// To a whole page, and not to a frame within one.
bool is_followed_link(const ServerRequest& request) noexcept {
  return changes_nothing(request.method) && request.header("Sec-Fetch-Mode") == "navigate" &&
         request.header("Sec-Fetch-Dest") == "document";
}

}  // namespace

bool changes_nothing(HttpMethod method) noexcept {
  return method == HttpMethod::get || method == HttpMethod::head || method == HttpMethod::options;
}

bool asks_for_us(const ServerRequest& request, const std::vector<std::string>& hosts) noexcept {
  if (request.host.empty()) return true;
  const auto asked = parse_authority(request.host);
  if (!asked) return false;
  return is_localhost(asked->name) || is_address(*asked) ||
         std::ranges::any_of(hosts, [&](const std::string& host) { return is_same_host(*asked, host); });
}

bool is_of_foreign_page(const ServerRequest& request, const std::vector<std::string>& origins) noexcept {
  const std::string_view origin = request.header("Origin");
  const std::string_view site = request.header("Sec-Fetch-Site");
  if (std::ranges::any_of(origins, [&](const std::string& one) { return equals_ignoring_case(origin, one); }))
    return false;
  if (site.empty()) return !origin.empty() && !is_origin_of(origin, request.host);
  return site != "same-origin" && site != "none" && !is_followed_link(request);
}

}  // namespace argiope
