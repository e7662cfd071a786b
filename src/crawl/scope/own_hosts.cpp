#include "crawl/scope/internal/own_hosts.hpp"

#include "base/internal/fingerprint.hpp"
#include "crawl/options/internal/host_rules.hpp"

namespace argiope {
namespace {

bool is_of_crawl(const UrlRecord& record) noexcept {
  if (record.state == UrlState::excluded) return false;
  switch (record.reason) {
    case UrlReason::checked:
    case UrlReason::asset:
    case UrlReason::requisite:
    case UrlReason::sitemap: return false;
    default: return true;
  }
}

}  // namespace

std::string_view host_in(std::string_view href) noexcept {
  const std::string_view site = site_in(href);
  const std::size_t scheme = site.find("://");
  return scheme == std::string_view::npos ? site : site.substr(scheme + 3);
}

void OwnHosts::add(const UrlRecord& record) {
  if (!is_of_crawl(record)) return;
  const std::string_view host = host_in(record.url);
  if (host == last_ && !hosts_.empty()) return;
  hosts_.insert(fingerprint(host));
  last_ = host;
}

bool OwnHosts::has(std::string_view href) const noexcept { return hosts_.contains(fingerprint(host_in(href))); }

}  // namespace argiope
