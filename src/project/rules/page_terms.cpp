#include "project/rules/internal/page_terms.hpp"

#include "base/internal/fingerprint.hpp"

namespace argiope {

PageTag page_tag(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const PageTag tag = fingerprint(text);
  return tag == 0 ? 1 : tag;
}

RetryPolicy pyspider_retry_delay() {
  using std::chrono::hours;
  return {.jitter = 0, .table = {std::chrono::seconds{30}, hours{1}, hours{6}, hours{12}, hours{24}}};
}

}  // namespace argiope
