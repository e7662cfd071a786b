// Settings of three pages, a line each: any bytes. What is read is written and read again, and merged as it should be.
#include "project/rules/internal/page_settings.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"

using namespace argiope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  std::array<PageSettings, 3> all;
  for (PageSettings& settings : all) {
    const std::size_t length = std::min(input.find('\n'), input.size());
    const auto read = read_settings(input.substr(0, length));
    input.remove_prefix(std::min(length + 1, input.size()));
    if (!read) {
      require(!read.error().message.contains('\n'));
      continue;
    }
    settings = *read;
    require(read_settings(stored(settings)) == settings);
    require(settings.request.headers.size() <= RequestSettings::kMostNamed);
  }
  const auto& [page, rule, defaults] = all;
  require(merged(page, {}, {}) == page && merged({}, page, {}) == page && merged({}, {}, page) == page);
  const PageSettings both = merged(page, rule, defaults);
  require(both == merged(merged(page, rule, {}), defaults, {}) && both == merged(page, merged({}, rule, defaults), {}));
  const PageSettings last = settled(both);
  require(settled(last) == last && read_settings(stored(last)) == last);
  const PageTerms terms = terms_of(both, {});
  require(terms.retries <= 1'000 && terms.age >= kNeverOld);
  RequestSettings request = last.request;
  (void)take_out_clients_headers(request);
  require(take_out_clients_headers(request).empty());
  return 0;
}
