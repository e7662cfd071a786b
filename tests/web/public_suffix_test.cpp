#include "web/url/internal/public_suffix.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

TEST(PublicSuffix, ARegistrableDomainIsOneLabelMoreThanAPublicSuffix) {
  EXPECT_EQ(registrable_domain("www.example.org"), "example.org");
  EXPECT_EQ(registrable_domain("example.org"), "example.org");
  EXPECT_EQ(registrable_domain("a.b.example.co.uk"), "example.co.uk");
  EXPECT_EQ(registrable_domain("ann.github.io"), "ann.github.io") << "the private part of the list";
  EXPECT_EQ(registrable_domain("www.city.kawasaki.jp"), "city.kawasaki.jp") << "an exception to a wildcard";
  EXPECT_EQ(registrable_domain("www.xn--bcher-kva.example"), "xn--bcher-kva.example");
  EXPECT_EQ(registrable_domain("www.example.com."), "example.com.");
  EXPECT_EQ(registrable_domain("a.b.test"), "b.test") << "of a suffix that nobody has listed";
}

TEST(PublicSuffix, WhatNobodyCanRegisterIsItself) {
  for (const char* host : {"", "com", "co.uk", "localhost", "10.0.0.1", "[::1]", "github.io"})
    EXPECT_EQ(registrable_domain(host), host);
}

TEST(PublicSuffix, BelowASuffixDomainsHaveNothingToDoWithEachOther) {
  EXPECT_TRUE(is_public_suffix("com"));
  EXPECT_TRUE(is_public_suffix("co.uk"));
  EXPECT_TRUE(is_public_suffix("github.io"));
  EXPECT_FALSE(is_public_suffix("example.org"));
  EXPECT_FALSE(is_public_suffix("10.0.0.1"));
  EXPECT_FALSE(is_public_suffix("[::1]"));
  EXPECT_TRUE(is_public_suffix("com."));
  EXPECT_FALSE(is_public_suffix(""));
}

}  // namespace
}  // namespace argiope
