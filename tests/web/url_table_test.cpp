// What is followed, checked and saved of a page agree: row by row of the table of what holds a URL, and on odd pages.
#include "web/html/url_table.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/random.hpp"
#include "web/html/internal/page_rewriter.hpp"
#include "web/html/internal/page_survey.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSubsetOf;
using testing::Pair;

using Followed = std::vector<std::pair<LinkKind, std::string>>;
using Saved = std::vector<std::pair<ReferenceRole, std::string>>;

Followed followed_of(std::string_view html) {
  ScanResult scanned;
  scan_links(html, {}, scanned);
  Followed out;
  for (const ScannedLink& link : scanned.links) out.emplace_back(link.kind, link.url);
  return out;
}

Followed checked_of(std::string_view html) {
  Followed out;
  for (const PageSurvey survey = survey_page(html); const SurveyedLink& link : survey.links) {
    out.emplace_back(link.kind, link.url);
  }
  return out;
}

// What becomes another URL in a mirror, with what stays on the web.
Saved saved_of(std::string_view html) {
  PageReferences references;
  scan_references(html, references);
  Saved out;
  std::string same;
  rewrite_page(
      html, references, "UTF-8", {.as_file = false},
      [&](std::string_view url, ReferenceRole role, std::string&) {
        out.emplace_back(role, url);
        return Rewritten::as_it_was;
      },
      same);
  return out;
}

// Fixed, and checked: docs/crawl-links.md names them.
bool is_checked_though_fixed(std::string_view relation) {
  return relation == "canonical" || relation == "shortlink" || relation == "manifest";
}

bool is_checked_by_rule(ReferenceRole role, std::string_view relation) {
  if (role == ReferenceRole::fixed) return is_checked_though_fixed(relation);
  return role != ReferenceRole::form;
}

// `html` has one URL, "x/y".
void expect_one(std::string_view html, ReferenceRole role, std::optional<LinkKind> kind) {
  SCOPED_TRACE(html);
  EXPECT_THAT(saved_of(html), ElementsAre(Pair(role, "x/y")));
  if (!kind) {
    EXPECT_THAT(checked_of(html), IsEmpty());
    EXPECT_THAT(followed_of(html), IsEmpty());
    return;
  }
  EXPECT_THAT(checked_of(html), ElementsAre(Pair(*kind, "x/y")));
  if (is_followed(*kind)) {
    EXPECT_THAT(followed_of(html), ElementsAre(Pair(*kind, "x/y")));
  } else {
    EXPECT_THAT(followed_of(html), IsEmpty());
  }
}

std::string_view written(ReferenceSyntax syntax) {
  switch (syntax) {
    case ReferenceSyntax::srcset: return "x/y 2x";
    case ReferenceSyntax::css: return "a:url(x/y)";
    case ReferenceSyntax::refresh: return "1;url=x/y";
    case ReferenceSyntax::html: return "<a href=x/y>";
    default: return "x/y";
  }
}

std::string_view said_beside(UrlCondition condition) {
  switch (condition) {
    case UrlCondition::none: return "";
    case UrlCondition::image_input: return " type=image";
    case UrlCondition::refresh: return " http-equiv=refresh";
  }
  return "";
}

std::vector<std::string> elements_of(const UrlAttribute& row) {
  std::vector<std::string> names;
  for_each_token(row.elements, is_space, [&](std::string_view name) { names.emplace_back(name); });
  if (names.empty()) names = {"p", "custom-element", "td", "a"};
  return names;
}

TEST(UrlTable, IsReadTheSameByThoseWhoFollowCheckAndSave) {
  for (const UrlAttribute& row : kUrlAttributes) {
    if (row.syntax == ReferenceSyntax::base || row.syntax == ReferenceSyntax::drop) continue;
    for (const std::string& element : elements_of(row)) {
      const std::string html =
          fmt::format("<{}{} {}='{}'>", element, said_beside(row.condition), row.attribute, written(row.syntax));
      expect_one(html, row.role, row.kind);
      if (row.condition == UrlCondition::none) continue;
      const std::string without = fmt::format("<{} {}='{}'>", element, row.attribute, written(row.syntax));
      EXPECT_THAT(saved_of(without), IsEmpty()) << without;
      EXPECT_THAT(checked_of(without), IsEmpty()) << without;
    }
  }
}

TEST(UrlTable, IsReadTheSameInDrawings) {
  for (const UrlAttribute& row : kForeignUrls) {
    for (std::string element : elements_of(row)) {
      if (row.elements.empty()) element = "pattern";
      for (const std::string_view attribute : {"href", "xlink:href"}) {
        expect_one(fmt::format("<svg><{} {}=x/y /></svg>", element, attribute), row.role, row.kind);
      }
    }
  }
}

TEST(UrlTable, OfRelationsIsReadTheSame) {
  for (const LinkRelation& relation : kLinkRelations) {
    expect_one(fmt::format("<link rel='{}' href=x/y>", relation.name), relation.role, relation.kind);
  }
  expect_one("<link rel=me href=x/y>", kUnknownRelation.role, kUnknownRelation.kind);
  expect_one("<link itemprop=url href=x/y>", kUnknownRelation.role, kUnknownRelation.kind);
}

TEST(UrlTable, ChecksWhatIsSavedAndWhatIsFixedByName) {
  for (const UrlAttribute& row : kUrlAttributes) {
    EXPECT_EQ(row.kind.has_value(), is_checked_by_rule(row.role, "")) << row.elements << " " << row.attribute;
  }
  for (const LinkRelation& relation : kLinkRelations) {
    EXPECT_EQ(relation.kind.has_value(), is_checked_by_rule(relation.role, relation.name)) << relation.name;
  }
}

TEST(UrlTable, FollowsWhateverStandsBesideARelationButStyleSheets) {
  expect_one("<link rel='icon author' href=x/y>", ReferenceRole::image, LinkKind::other);
  expect_one("<link rel='alternate stylesheet' href=x/y>", ReferenceRole::stylesheet, LinkKind::stylesheet);
  expect_one("<link rel='next PREFETCH' href=x/y>", ReferenceRole::hint, LinkKind::next);
  expect_one("<link rel=preload as=style href=x/y>", ReferenceRole::stylesheet, LinkKind::resource);
}

TEST(UrlTable, HasAttributesOfTheirElementsAlone) {
  for (const std::string_view html :
       {"<my-card background=blue>", "<article cite=x>", "<p src=x data-src=y href=z>", "<input src=x>",
        "<button src=x>", "<audio poster=x>", "<svg><object data=x></object></svg>"}) {
    EXPECT_THAT(saved_of(html), IsEmpty()) << html;
    EXPECT_THAT(checked_of(html), IsEmpty()) << html;
  }
}

TEST(UrlTable, SeesPagesWithinPagesAndStylesInDrawings) {
  constexpr std::string_view kPage =
      "<iframe srcdoc=\"<img src=a><a href=b>&lt;iframe srcdoc='<img src=c>'&gt;\"></iframe>\n"
      "<svg><style>p{fill:url(d)}</style><style><![CDATA[q{fill:url(e)}]]></style></svg>";
  EXPECT_THAT(checked_of(kPage),
              ElementsAre(Pair(LinkKind::image, "a"), Pair(LinkKind::mention, "b"), Pair(LinkKind::image, "c"),
                          Pair(LinkKind::css, "d"), Pair(LinkKind::css, "e")));
  EXPECT_THAT(saved_of(kPage), ElementsAre(Pair(ReferenceRole::image, "a"), Pair(ReferenceRole::link, "b"),
                                           Pair(ReferenceRole::image, "c"), Pair(ReferenceRole::object, "d"),
                                           Pair(ReferenceRole::object, "e")));
}

// Without what is neither here nor there, and what the pieces below call "no…": it is saved as it is, and not checked.
template <class Urls>
std::vector<std::string> compared(const Urls& urls) {
  std::vector<std::string> out;
  for (const auto& [what, url] : urls) {
    const std::string_view trimmed = trim_space(url);
    if (!trimmed.empty() && !trimmed.starts_with('#') && !trimmed.starts_with("no")) out.emplace_back(trimmed);
  }
  std::ranges::sort(out);
  return out;
}

TEST(UrlTable, IsReadTheSameInOddPages) {
  constexpr std::string_view kPieces[] = {"<a href=a1 rel=nofollow>",
                                          "<area href=a2>",
                                          "<base href=/b/>",
                                          "<link rel=next href=a3>",
                                          "<link rel=me href=a4>",
                                          "<link rel='icon author' href=a5>",
                                          "<link rel=preconnect href=no1>",
                                          "<link rel=canonical href=a6>",
                                          "<form action=no2>",
                                          "<img src=b1 srcset='b2, b3 2x' data-src=b4 lowsrc=b5>",
                                          "<image src=b6>",
                                          "<source srcset=b7 src=b8>",
                                          "<input src=b9>",
                                          "<input TYPE=Image src=b10>",
                                          "<td background=c1 style='x:url(c2)'>",
                                          "<q cite=c3>",
                                          "<object data=c4>",
                                          "<use href=c5>",
                                          "<image href=c6 xlink:href=c7>",
                                          "<pattern xlink:href=c8>",
                                          "<a xlink:href=c9>",
                                          "<meta http-equiv=refresh content=1;url=d1>",
                                          "<meta http-equiv='refresh ' content=1;url=d2>",
                                          "<iframe src=d3 srcdoc='<img src=d4><a href=d5>'>",
                                          "</iframe>",
                                          "<!--",
                                          "-->",
                                          "<script>",
                                          "</script>",
                                          "<style>x{y:url(e1)}",
                                          "<style>@import 'e2';",
                                          "</style>",
                                          "<title>",
                                          "</title>",
                                          "<textarea>",
                                          "</textarea>",
                                          "<svg>",
                                          "</svg>",
                                          "<style/>",
                                          "<desc>",
                                          "<math>",
                                          "</math>",
                                          "<![CDATA[",
                                          "]]>",
                                          "<template>",
                                          "</template>",
                                          "\"",
                                          "'",
                                          ">",
                                          "<",
                                          "=",
                                          " ",
                                          "&amp;",
                                          "&#x27;",
                                          "<p style=\"z:url(e3&amp;)\">",
                                          "<h1>",
                                          "<video src=f1 poster=f2>"};
  Random random(28);
  std::size_t urls = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string html;
    for (auto n = random.below(40); n > 0; --n) html += kPieces[random.below(std::size(kPieces))];
    const Followed checked = checked_of(html);
    ASSERT_THAT(followed_of(html), IsSubsetOf(checked)) << html;
    ASSERT_EQ(compared(checked), compared(saved_of(html))) << html;
    urls += checked.size();
  }
  EXPECT_GT(urls, 5'000u);
}

}  // namespace
}  // namespace argiope
