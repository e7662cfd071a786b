// Hosts that are written as addresses, and those that are this machine.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "argiope/web/detail/ip_address.hpp"
#include "argiope/web/url.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

// The address that a host is, as Url spells it; nullopt for names.
inline std::optional<IpAddress> address_of_host(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return IpAddress::parse(host);
}

// Whether a host, as Url spells it, can be one of the net: an address, or a name whose labels have letters, digits, -
// and _. A URL may have others (".example.org", "*", "a,b"), which no page is ever at.
inline bool can_be_host(std::string_view host) {
  if (address_of_host(host)) return true;
  if (host.ends_with('.')) host.remove_suffix(1);
  const auto is_of_label = [](char c) { return is_alnum(c) || c == '-' || c == '_'; };
  return !host.empty() && !host.starts_with('.') && !host.ends_with('.') && !host.contains("..") &&
         std::ranges::all_of(host, [&](char c) { return c == '.' || is_of_label(c); });
}

// "localhost" and what is below it, 127.0.0.0/8 and ::1: what is sent there does not leave this machine.
inline bool is_loopback(const Url& url) {
  const std::string_view host = url.host();
  if (host == "localhost" || host.ends_with(".localhost")) return true;
  const auto address = address_of_host(host);
  return address && classify(*address) == AddressClass::loopback;
}

}  // namespace argiope
