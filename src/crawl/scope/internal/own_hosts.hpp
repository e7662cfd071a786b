// Whose a URL is: of a host that is crawled, or of another, to which pages of those link.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "argiope/store/detail/url_record.hpp"

namespace argiope {

// "example.org:8080" of "http://example.org:8080/x", as Url spells it: hosts are the same whatever the scheme.
std::string_view host_in(std::string_view href) noexcept;

// The hosts of which a crawl has pages, or was given URLs. URLs only checked, and what pages are shown with, make none.
//
// Memory:  50 bytes a host.
// Threads: one at a time.
class OwnHosts {
 public:
  // Its host, if the record is of a page of the crawl.
  void add(const UrlRecord& record);
  bool has(std::string_view href) const noexcept;

 private:
  std::unordered_set<std::uint64_t> hosts_;  // fingerprints
  std::string last_;                         // what was added last: most records have the host of the one before
};

}  // namespace argiope
