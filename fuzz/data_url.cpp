// data: URLs of pages: any bytes. What is refused says why and has no body; what is answered has one no longer than the
// URL, a media type that a header may have, and the same content whether it is percent-encoded or in base64.
#include <cstdint>
#include <string>
#include <string_view>

#include "argiope/web/http_client.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/base64.hpp"
#include "fuzz/require.hpp"
#include "project/fetch/internal/page_fetcher.hpp"
#include "project/rules/internal/data_scheme.hpp"

using namespace argiope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string& url : {std::string(bytes), "data:" + std::string(bytes)}) {
    const PageResponse response = answer_of_data_url(url);
    require(response.url == url);
    if (!response.error_kind.empty()) {
      require(response.status == 0 && response.body.empty() && !response.error_text.empty());
      continue;
    }
    require(is_data_url(url) && response.status == 200 && response.body.size() <= url.size());
    require(response.headers.size() == 1 && is_header_safe(response.headers[0].second) &&
            !response.headers[0].second.empty());
  }
  require(answer_of_data_url("data:text/plain," + percent_encode(bytes)).body == bytes);
  require(answer_of_data_url("data:text/plain;base64," + to_base64(bytes)).body == bytes);
  return 0;
}
