// The canonical URL in a Link field: what RFC 8288 allows, and what servers send.
#include "web/html/internal/link_header.hpp"

#include <gtest/gtest.h>

#include <string>

namespace argiope {
namespace {

std::string canonical(std::string_view value, std::string_view page = "https://h/d/p?q") {
  return std::string(canonical_in_link_header(value, *Url::parse(page)));
}

TEST(LinkHeader, NamesTheCanonicalUrl) {
  EXPECT_EQ(canonical("<https://h/a>; rel=\"canonical\""), "https://h/a");
  EXPECT_EQ(canonical("<../b>;rel=canonical"), "../b");
  EXPECT_EQ(canonical("</a>; rel=\"next canonical\"; title=\"x\""), "/a");
  EXPECT_EQ(canonical("</a> ; REL = CANONICAL"), "/a");
  EXPECT_EQ(canonical("< /a >; rel=canonical"), "/a");
}

TEST(LinkHeader, MayHaveSeveralLinks) {
  EXPECT_EQ(canonical("</s.css>; rel=preload; as=style, </a>; rel=canonical, </b>; rel=canonical"), "/a");
  EXPECT_EQ(canonical("</x,y;z>; rel=next, </a,b>; rel=canonical"), "/a,b");
  EXPECT_EQ(canonical("</x>; title=\"a, <b>; rel=canonical \\\" ,\"; rel=next, </a>; rel=canonical"), "/a");
}

TEST(LinkHeader, HasRelationsBetweenSpacesAndCommasWithinQuotes) {
  EXPECT_EQ(canonical("</a>; rel=\"next,canonical\", </b>; rel=\"x, y\", </c>; rel=\" up\tcanonical \""), "/c")
      << "a comma is part of a word";
  EXPECT_EQ(canonical("</a>; rel=canonical,next"), "/a") << "without quotes it ends the link";
  EXPECT_EQ(canonical("</a>; rel=up canonical; title=x"), "/a");
  EXPECT_EQ(canonical("</a>; rel=\"canonical\" x; title=y"), "/a");
  EXPECT_EQ(canonical("</a>;; rel=canonical;"), "/a");
}

TEST(LinkHeader, NamesThatOfThePageAlone) {
  for (const char* anchor : {"\"\"", "\"?q\"", "?q", "p?q", "/d/p?q", "\"https://H:443/d/p?q\"", "//h/d/./p?q"}) {
    EXPECT_EQ(canonical("</a>; anchor=" + std::string(anchor) + "; rel=canonical"), "/a") << anchor;
  }
  for (const char* anchor : {"\"#b\"", "\"/\"", "p", "http://h/d/p?q", "\"https://other.test/d/p?q\"", "\"http://\""}) {
    EXPECT_EQ(canonical("</a>; rel=canonical; anchor=" + std::string(anchor)), "") << anchor;
    EXPECT_EQ(canonical("</a>; rel=canonical; anchor=" + std::string(anchor) + "; anchor=\"\", </b>; rel=canonical"),
              "/b")
        << anchor;
    EXPECT_EQ(canonical("</a>; rel=\"canonical\" x; anchor=" + std::string(anchor)), "") << anchor;
  }
}

TEST(LinkHeader, MayNameNone) {
  for (const char* value :
       {"", "canonical", "<", "<>", "</a>", "</a>; rel", "</a>; rel=", "</a>; rel=\"", "</a; rel=canonical",
        "/a; rel=canonical", "</a>; rel=canonicals", "</a>; rel=next; rel=canonical",
        "</a>; rel=canonical; anchor=\"#b\"", "</a>, rel=canonical", "</a>; title=\"rel=canonical"}) {
    EXPECT_EQ(canonical(value), "") << value;
  }
}

}  // namespace
}  // namespace argiope
