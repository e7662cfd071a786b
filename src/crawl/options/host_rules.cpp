#include "crawl/options/internal/host_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "argiope/web/url.hpp"
#include "base/internal/printable.hpp"
#include "web/text/internal/lower_case.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {
namespace {

std::unexpected<Error> no_place(std::string_view text) {
  return fail(
      Errc::invalid_input,
      fmt::format("{}: a host, HOST:PORT, http://HOST, *.DOMAIN for its subdomains, or * for all", in_quotes(text)));
}

// "example.org:8080" of "http://example.org:8080/x".
std::string_view authority_of(std::string_view site) noexcept {
  const std::size_t scheme = site.find("://");
  if (scheme != std::string_view::npos) site.remove_prefix(scheme + 3);
  return site.substr(0, site.find_first_of("/?#"));
}

// Where the port begins, behind its colon; npos without one.
std::size_t port_in(std::string_view authority) noexcept {
  const std::size_t colon =
      authority.find(':', authority.starts_with('[') ? std::min(authority.find(']'), authority.size()) : 0);
  return colon == std::string_view::npos ? colon : colon + 1;
}

}  // namespace

Result<std::string> parse_host_place(std::string_view text) {
  if (text == "*") return std::string(text);
  const bool subdomains = text.starts_with("*.");
  const std::string_view name = subdomains ? text.substr(2) : text;
  const bool is_origin = name.contains("://");
  if (name.empty() || (subdomains && is_origin)) return no_place(text);
  const auto url = Url::parse(is_origin ? std::string(name) : fmt::format("http://{}/", name));
  const bool is_whole = url && url->path_and_query() == "/" && url->username().empty() && can_be_host(url->host());
  if (!is_whole) return no_place(text);
  if (is_origin) {
    if (url->scheme() != "http" && url->scheme() != "https") return no_place(text);
    return url->site_key();
  }
  const bool has_port = port_in(name) != std::string_view::npos;
  if (has_port && subdomains) return no_place(text);
  std::string place(subdomains ? "*." : "");
  place += url->host();
  if (has_port) place += fmt::format(":{}", url->effective_port());
  return place;
}

std::string product_token_of(std::string_view user_agent) {
  return in_lower_case(user_agent.substr(0, user_agent.find_first_of("/ (")));
}

std::string_view site_in(std::string_view href) noexcept {
  const std::string_view authority = authority_of(href);
  return href.substr(0, static_cast<std::size_t>(authority.data() + authority.size() - href.data()));
}

HostRules::HostRules(std::vector<HostSettings> settings) : settings_(std::move(settings)) {
  for (const HostSettings& one : settings_) {
    for (const std::string& place : one.match) {
      auto& of_place = by_place_[place];
      if (of_place.empty() || of_place.back() != &one) of_place.push_back(&one);
    }
  }
}

std::vector<const HostSettings*> HostRules::of(std::string_view site) const {
  std::vector<const HostSettings*> found;
  if (by_place_.empty()) return found;
  const auto look = [&](std::string_view place) {
    const auto known = by_place_.find(place);
    if (known == by_place_.end()) return;
    for (const HostSettings* one : known->second) {
      if (std::ranges::find(found, one) == found.end()) found.push_back(one);
    }
  };
  const std::string_view authority = authority_of(site);
  look(site_in(site));
  const std::size_t port = port_in(authority);
  const std::string_view host = port == std::string_view::npos ? authority : authority.substr(0, port - 1);
  const std::string_view usual = site.starts_with("https:") ? "443" : "80";
  look(fmt::format("{}:{}", host, port == std::string_view::npos ? usual : authority.substr(port)));
  look(host);
  for (std::size_t dot = host.find('.'); dot != std::string_view::npos; dot = host.find('.', dot + 1)) {
    look(fmt::format("*{}", host.substr(dot)));
  }
  look("*");
  return found;
}

}  // namespace argiope
