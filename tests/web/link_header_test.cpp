// The canonical URL in a Link field: what RFC 8288 allows, and what servers send.
#include "web/html/internal/link_header.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

TEST(LinkHeader, NamesTheCanonicalUrl) {
  EXPECT_EQ(canonical_in_link_header("<https://h/a>; rel=\"canonical\""), "https://h/a");
  EXPECT_EQ(canonical_in_link_header("<../b>;rel=canonical"), "../b");
  EXPECT_EQ(canonical_in_link_header("</a>; rel=\"next canonical\"; title=\"x\""), "/a");
  EXPECT_EQ(canonical_in_link_header("</a> ; REL = CANONICAL"), "/a");
  EXPECT_EQ(canonical_in_link_header("< /a >; rel=canonical"), "/a");
}

TEST(LinkHeader, MayHaveSeveralLinks) {
  EXPECT_EQ(canonical_in_link_header("</s.css>; rel=preload; as=style, </a>; rel=canonical, </b>; rel=canonical"), "/a");
  EXPECT_EQ(canonical_in_link_header("</x,y;z>; rel=next, </a,b>; rel=canonical"), "/a,b");
  EXPECT_EQ(canonical_in_link_header("</x>; title=\"a, <b>; rel=canonical \\\" ,\"; rel=next, </a>; rel=canonical"), "/a");
}

TEST(LinkHeader, MayNameNone) {
  for (const char* value : {"", "canonical", "<", "<>", "</a>", "</a>; rel", "</a>; rel=", "</a>; rel=\"", "</a; rel=canonical", "/a; rel=canonical",
                            "</a>; rel=canonicals", "</a>; rel=next; rel=canonical", "</a>; rel=canonical; anchor=\"#b\"", "</a>, rel=canonical",
                            "</a>; title=\"rel=canonical"}) {
    EXPECT_EQ(canonical_in_link_header(value), "") << value;
  }
}

}  // namespace
}  // namespace argiope
