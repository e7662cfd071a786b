// The link scanner on any bytes. Beside not crashing: what it reports stays within the page, its own buffer and the
// limits it was given, and scanning again gives the same, also where references are found in the same pass.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "argiope/web/link_scanner.hpp"
#include "fuzz/require.hpp"
#include "web/html/internal/page_references.hpp"

namespace {

bool within(std::string_view part, const char* data, std::size_t size) {
  const std::less_equal<const char*> not_behind;
  return not_behind(data, part.data()) && not_behind(part.data() + part.size(), data + size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static argiope::ScanResult result;
  static argiope::ScanResult again;
  const std::string_view html(reinterpret_cast<const char*>(data), size);
  argiope::ScanOptions options;
  options.agent = "argiope";
  options.max_links = 20;
  options.max_value_bytes = 200;
  argiope::scan_links(html, options, result);
  require(result.links.size() <= options.max_links);
  require(result.decoded.size() <= 3 * size);
  for (const argiope::ScannedLink& link : result.links) {
    require(link.url.size() <= 3 * options.max_value_bytes);
    require(link.url.empty() || within(link.url, html.data(), size) ||
            within(link.url, result.decoded.data(), result.decoded.size()));
  }
  argiope::scan_links(html, options, again);
  require(again.links.size() == result.links.size() && again.base_href == result.base_href);
  for (std::size_t i = 0; i < again.links.size(); ++i) require(again.links[i].url == result.links[i].url);
  static argiope::PageReferences references, alone;
  argiope::scan_links_and_references(html, options, again, references);
  argiope::scan_references(html, alone);
  require(references.found == alone.found && references.base_href == alone.base_href && references.head == alone.head);
  require(again.links.size() == result.links.size() && again.base_href == result.base_href &&
          again.dropped == result.dropped);
  for (std::size_t i = 0; i < again.links.size(); ++i) require(again.links[i].url == result.links[i].url);
  return 0;
}
