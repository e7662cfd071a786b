// The style of HTML reports is allowed by its digest alone: the digest must be that of the style.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <string>

#include "base/internal/base64.hpp"
#include "base/internal/html_report.hpp"

namespace argiope {
namespace {

TEST(HtmlReportStyle, HasTheDigestThatTheReportAllows) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  const std::string_view style = html_report_style();
  ASSERT_EQ(EVP_Digest(style.data(), style.size(), digest, &size, EVP_sha256(), nullptr), 1);
  const std::string expected = to_base64({reinterpret_cast<const char*>(digest), size});
  EXPECT_THAT(html_document("t", ""), testing::HasSubstr("'sha256-" + expected + "'"))
      << "the style has changed: write this digest";
}

}  // namespace
}  // namespace argiope
