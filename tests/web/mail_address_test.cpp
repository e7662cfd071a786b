// Mail addresses by RFC 5321, 6531 and 6068: what may be one, and what is said of what may not.
#include "web/url/internal/mail_address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace argiope {
namespace {

using testing::HasSubstr;

TEST(MailAddress, MayBeOneByTheRfcs) {
  for (const std::string_view address :
       {"a@b.example", "first.last+tag@sub.example.org", "!#$%&'*+-/=?^_`{|}~@x.example", "\"a b@\\\"c\"@b.example",
        "user@localhost", "user@[127.0.0.1]", "user@[IPv6:2001:db8::1]", "jürgen@müller.example",
        "x@xn--mller-kva.example", "a@1.2.example"}) {
    EXPECT_EQ(mail_address_trouble(address), "") << address;
  }
}

TEST(MailAddress, ThatCanBeNoneIsToldWhy) {
  EXPECT_THAT(mail_address_trouble("nobody"), HasSubstr("has no @"));
  EXPECT_THAT(mail_address_trouble("@b.example"), HasSubstr("nothing before the @"));
  EXPECT_THAT(mail_address_trouble("a@"), HasSubstr("nothing behind the @"));
  EXPECT_THAT(mail_address_trouble(std::string(65, 'a') + "@b.example"), HasSubstr("more than 64"));
  for (const std::string_view local : {".a", "a.", "a..b", "a b", "a,b", "\"a", "a\"b\"", "(c)a", "a@b"}) {
    EXPECT_THAT(mail_address_trouble(std::string(local) + "@b.example"), HasSubstr("before the @")) << local;
  }
  for (const std::string_view domain :
       {"b..example", "-b.example", "b-.example", "b_c.example", "b c", ".", "[1.2.3]x", "[300.1.1.1]", "b.example."}) {
    EXPECT_THAT(mail_address_trouble("a@" + std::string(domain)), HasSubstr("no domain")) << domain;
  }
}

TEST(MailTo, MayHaveSeveralAddressesAndFields) {
  for (const std::string_view url :
       {"mailto:a@b.example", "MAILTO:a@b.example,c@d.example", "mailto:a%40b.example", "mailto:%22a%2Cb%22@c.example",
        "mailto:?subject=look", "mailto:?to=a@b.example&body=x%20y", "mailto: a@b.example ",
        "mailto:a@b.example?subject=1,2@"}) {
    EXPECT_EQ(mailto_trouble(url), "") << url;
  }
}

TEST(MailTo, IsWrongWhereOneOfItsAddressesIs) {
  EXPECT_THAT(mailto_trouble("mailto:"), HasSubstr("no address"));
  EXPECT_THAT(mailto_trouble("mailto:a@b.example,"), HasSubstr("missing"));
  EXPECT_THAT(mailto_trouble("mailto:a@b.example,nobody"), HasSubstr("\"nobody\" has no @"));
  EXPECT_THAT(mailto_trouble("mailto:a@b.example?cc=x"), HasSubstr("\"x\" has no @"));
  EXPECT_THAT(mailto_trouble("mailto:a%ff@b.example"), HasSubstr("not UTF-8"));
}

}  // namespace
}  // namespace argiope
