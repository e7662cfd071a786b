#include "web/internal/public_suffix.hpp"

#include <libpsl.h>

#include "argiope/web/ip_address.hpp"

namespace argiope {
namespace {

// For as long as the process lives.
const psl_ctx_t* public_suffix_list() {
  static const psl_ctx_t* const list = psl_latest(nullptr);
  return list;
}

bool is_address(std::string_view host) { return host.starts_with('[') || IpAddress::parse(host); }

}  // namespace

std::string registrable_domain(std::string_view host) {
  std::string name(host);
  if (is_address(host)) return name;
  const char* const found = psl_registrable_domain(public_suffix_list(), name.c_str());
  return found == nullptr ? name : std::string(found);
}

bool is_public_suffix(std::string_view host) {
  return !is_address(host) && psl_is_public_suffix(public_suffix_list(), std::string(host).c_str()) != 0;
}

}  // namespace argiope
