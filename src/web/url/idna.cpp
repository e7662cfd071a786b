#include "web/url/idna.hpp"

#include <unicode/uidna.h>

#include <cstdint>
#include <stdexcept>

namespace argiope {
namespace {

const UIDNA* processor() {
  // Non-transitional, with the bidi and joiner rules; no STD3 rules, for the standard has its own list of
  // forbidden characters.
  static const UIDNA* const opened = [] {
    UErrorCode status = U_ZERO_ERROR;
    UIDNA* uidna = uidna_openUTS46(
        UIDNA_CHECK_BIDI | UIDNA_CHECK_CONTEXTJ | UIDNA_NONTRANSITIONAL_TO_ASCII | UIDNA_NONTRANSITIONAL_TO_UNICODE,
        &status);
    if (U_FAILURE(status)) throw std::runtime_error("ICU: cannot open UTS 46");
    return uidna;
  }();
  return opened;
}

// Errors for which ICU always checks and the URL Standard (CheckHyphens and VerifyDnsLength false) does not.
constexpr std::uint32_t kForgiven = UIDNA_ERROR_EMPTY_LABEL | UIDNA_ERROR_LABEL_TOO_LONG |
                                    UIDNA_ERROR_DOMAIN_NAME_TOO_LONG | UIDNA_ERROR_LEADING_HYPHEN |
                                    UIDNA_ERROR_TRAILING_HYPHEN | UIDNA_ERROR_HYPHEN_3_4;

}  // namespace

bool domain_to_ascii(std::string_view domain, std::string& out) {
  UErrorCode status = U_ZERO_ERROR;
  UIDNAInfo info = UIDNA_INFO_INITIALIZER;
  const auto length = static_cast<std::int32_t>(domain.size());
  out.resize(domain.size() * 2 + 64);
  std::int32_t written = uidna_nameToASCII_UTF8(processor(), domain.data(), length, out.data(),
                                                static_cast<std::int32_t>(out.size()), &info, &status);
  if (status == U_BUFFER_OVERFLOW_ERROR) {
    status = U_ZERO_ERROR;
    info = UIDNA_INFO_INITIALIZER;
    out.resize(static_cast<std::size_t>(written));
    written = uidna_nameToASCII_UTF8(processor(), domain.data(), length, out.data(),
                                     static_cast<std::int32_t>(out.size()), &info, &status);
  }
  if (U_FAILURE(status) || (info.errors & ~kForgiven) != 0) return false;
  out.resize(static_cast<std::size_t>(written));
  return true;
}

}  // namespace argiope
