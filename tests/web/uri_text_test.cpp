// URLs as RFC 3986 has them.
#include "web/text/internal/uri_text.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

TEST(UriText, HasNoCharacterThatRfc3986DoesNotAllowThere) {
  EXPECT_EQ(as_rfc3986("https://a.test/x/y?z=1&w=%20#f"), "https://a.test/x/y?z=1&w=%20#f");
  EXPECT_EQ(as_rfc3986("https://a.test/{x}|y^z`?q={\"}|\\"), "https://a.test/%7Bx%7D%7Cy%5Ez%60?q=%7B%22%7D%7C%5C");
  EXPECT_EQ(as_rfc3986("http://[::1]:80/a[0]?b[]=c"), "http://[::1]:80/a%5B0%5D?b%5B%5D=c");
  EXPECT_EQ(as_rfc3986("https://a.test/100%/%zz/%41"), "https://a.test/100%25/%25zz/%41");
  EXPECT_EQ(as_rfc3986("https://a.test/#x#y"), "https://a.test/#x%23y");
  EXPECT_EQ(as_rfc3986("\xc3\xa4 b"), "%C3%A4%20b");
}

TEST(UriText, WithoutItsSchemeIsARelativeReference) {
  EXPECT_EQ(without_scheme("https://example.com/page?x=1"), "example.com/page?x=1");
  EXPECT_EQ(without_scheme("http://example.com:8080/a:b"), "example.com%3A8080/a:b");
  EXPECT_EQ(without_scheme("http://[::1]:8080/a[0]"), "%5B%3A%3A1%5D%3A8080/a%5B0%5D");
  EXPECT_EQ(without_scheme("mailto:a@b.test"), "mailto%3Aa@b.test");
  EXPECT_EQ(without_scheme("//host/x"), "host/x");
  EXPECT_EQ(without_scheme("/x?u=http://y"), "x?u=http://y");
  EXPECT_EQ(without_scheme("https:///x"), "x");
  EXPECT_EQ(without_scheme(""), "");
}

TEST(UriText, OfAHeaderFieldIsReadByteByByte) {
  EXPECT_EQ(reference_of_bytes("/caf\xe9?x=\xfc"), "/caf%E9?x=%FC");
  EXPECT_EQ(reference_of_bytes("/caf\xc3\xa9 %41#\xff"), "/caf%C3%A9 %41#%FF");
  EXPECT_EQ(reference_of_bytes(""), "");
}

}  // namespace
}  // namespace argiope
