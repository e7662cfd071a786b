#include "web/url/internal/public_suffix.hpp"

#include <libpsl.h>

#include <string>

#include "argiope/web/detail/ip_address.hpp"

namespace argiope {
namespace {

// Read once, and kept until the process ends.
const psl_ctx_t* suffix_list() {
  static const psl_ctx_t* const list = psl_latest(nullptr);
  return list;
}

bool is_no_name(std::string_view host) { return host.starts_with('[') || IpAddress::parse(host).has_value(); }

// libpsl takes "com." for a name of its own.
std::string name_for_the_list(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  return std::string(host);
}

}  // namespace

bool is_public_suffix(std::string_view host) {
  if (host.empty() || is_no_name(host)) return false;
  // Without a list any name may be one: better no cookie for a domain than one for too many.
  if (suffix_list() == nullptr) return true;
  return psl_is_public_suffix(suffix_list(), name_for_the_list(host).c_str()) != 0;
}

std::string_view registrable_domain(std::string_view host) {
  if (host.empty() || is_no_name(host) || suffix_list() == nullptr) return host;
  const std::string name = name_for_the_list(host);
  const char* const found = psl_registrable_domain(suffix_list(), name.c_str());
  return found == nullptr ? host : host.substr(static_cast<std::size_t>(found - name.c_str()));
}

}  // namespace argiope
