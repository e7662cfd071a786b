// The article of a page: made pages whose article is known, with what usually stands around it.
#include "document/internal/readable.hpp"

#include <gtest/gtest.h>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

constexpr std::string_view kSentence =
    "The river rose in the night, slowly at first, and by morning the bridge, which had stood for a century, was "
    "gone. ";

std::string paragraphs(int count, std::string_view mark) {
  std::string html;
  for (int i = 0; i < count; ++i) {
    html +=
        "<p>" + std::string(mark) + std::to_string(i) + " " + std::string(kSentence) + std::string(kSentence) + "</p>";
  }
  return html;
}
std::string links(int count, std::string_view text) {
  std::string html = "<ul>";
  for (int i = 0; i < count; ++i) html += "<li><a href=/x" + std::to_string(i) + ">" + std::string(text) + "</a></li>";
  return html + "</ul>";
}
ReadableArticle article_in(std::string_view html) {
  const auto document = Document::parse_html(html);
  auto article = find_article(*document);
  EXPECT_TRUE(article) << "no article found";
  return article ? std::move(*article) : ReadableArticle{};
}
bool has(std::string_view text, std::string_view part) { return text.contains(part); }

TEST(ReadableArticle, IsFoundAmongNavigationCommentsAndAdvertisements) {
  const std::string page =
      "<title>The bridge - News</title><body><nav>" + links(30, "Section name") + "</nav><div id=sidebar>" +
      links(20, "Read this story, too, it is about something else") + "</div><div class=content><h1>The bridge</h1>" +
      paragraphs(6, "body") +
      "<div class=share-buttons>Share on everything, please, do it</div></div><div class=comments>" +
      paragraphs(4, "comment") + "</div><footer>" + paragraphs(1, "imprint") + "</footer>";
  const ReadableArticle article = article_in(page);
  EXPECT_EQ(article.title, "The bridge");
  EXPECT_TRUE(has(article.text, "body0 The river") && has(article.text, "body5 The river"));
  for (const char* const other : {"Section name", "Read this story", "Share on", "comment0", "imprint0"}) {
    EXPECT_FALSE(has(article.text, other)) << other;
    EXPECT_FALSE(has(article.html, other)) << other;
  }
  EXPECT_TRUE(has(article.text, "\n\nbody1")) << "paragraphs stand apart";
}

TEST(ReadableArticle, IsFoundWithoutAnyNamesOfClasses) {
  const std::string page = "<body><div>" + links(40, "Somewhere") + "</div><div><div>" + paragraphs(5, "body") +
                           "</div></div><div>" + links(40, "Elsewhere") + "</div>";
  const ReadableArticle article = article_in(page);
  EXPECT_TRUE(has(article.text, "body0") && has(article.text, "body4"));
  EXPECT_FALSE(has(article.text, "Somewhere") || has(article.text, "Elsewhere"));
}

TEST(ReadableArticle, ThatIsInSeveralPartsIsPutTogether) {
  const std::string page = "<body><div><div>" + paragraphs(4, "first") +
                           "</div><div class=ad-banner>Buy it, now, today, here, please</div><div>" +
                           paragraphs(4, "second") + "</div><p>" + std::string(kSentence) + "third</p></div>";
  const ReadableArticle article = article_in(page);
  EXPECT_TRUE(has(article.text, "first0") && has(article.text, "second3") && has(article.text, "third"));
  EXPECT_FALSE(has(article.text, "Buy it"));
}

TEST(ReadableArticle, KeepsListsCodeAndQuotes) {
  const std::string page =
      "<article><h1>T</h1>" + paragraphs(3, "body") +
      "<ul><li>one point to make<li>another point to make</ul><pre>int main() {\n  return 0;\n}</pre><blockquote>" +
      std::string(kSentence) + "quoted</blockquote></article>";
  const ReadableArticle article = article_in(page);
  EXPECT_TRUE(has(article.text, "one point to make\nanother point"));
  EXPECT_TRUE(has(article.text, "int main() {\n  return 0;\n}"));
  EXPECT_TRUE(has(article.text, "quoted"));
}

TEST(ReadableArticle, TakesAuthorDateAndExcerptFromWhatThePageSays) {
  const std::string page =
      "<meta name=author content=Ann><meta property=article:published_time content=2026-01-02T03:04:05Z>"
      "<meta name=description content='In short'><article>" +
      paragraphs(4, "x") + "</article>";
  const ReadableArticle article = article_in(page);
  EXPECT_EQ(article.author, "Ann");
  EXPECT_EQ(article.date, "2026-01-02T03:04:05Z");
  EXPECT_EQ(article.excerpt, "In short");
  const ReadableArticle by_data = article_in(
      "<title>T</title><script "
      "type='application/ld+json'>{\"@type\":\"Article\",\"author\":[{\"name\":\"Bob\"}],\"datePublished\":\"2026\"}"
      "</script><article>" +
      paragraphs(4, "x") + "</article>");
  EXPECT_EQ(by_data.author, "Bob");
  EXPECT_EQ(by_data.date, "2026");
  EXPECT_EQ(by_data.title, "T");
  EXPECT_TRUE(by_data.excerpt.starts_with("x0 The river"));
}

TEST(ReadableArticle, IsNotThereWhereThereAreOnlyLinksOrNothing) {
  for (const std::string& html :
       {std::string(), links(100, "A front page has many stories"), std::string("<p hidden>short</p>")}) {
    const auto document = Document::parse_html(html);
    EXPECT_FALSE(find_article(*document)) << html.substr(0, 50);
  }
  EXPECT_FALSE(find_article(*Document::parse_xml("<a>" + std::string(kSentence) + std::string(kSentence) + "</a>")));
}

TEST(ReadableArticle, IsNotLostByAWordInTheClassOfWhatIsAroundIt) {
  for (const char* const wrapper :
       {"<div class=no-sidebar>", "<div class='page with-sidebar'>", "<div class=overflow-hidden>",
        "<form id=aspnetForm>", "<section class=has-comments>", "<fieldset>", "<div id=menu-open><article>", "<aside>",
        "<header>"}) {
    const std::string page = std::string("<body><nav>") + links(20, "Section name") + "</nav>" + wrapper +
                             "<div><h1>T</h1>" + paragraphs(6, "body") + "</div></div><div class=comments>" +
                             paragraphs(2, "comment") + "</div>";
    const ReadableArticle article = article_in(page);
    EXPECT_TRUE(has(article.text, "body0") && has(article.text, "body5")) << wrapper;
    EXPECT_FALSE(has(article.text, "Section name")) << wrapper;
  }
}

TEST(ReadableArticle, HasNothingThatIsNotShown) {
  const std::string page = "<div>" + paragraphs(6, "body") + "<p style='Display : NONE'>secret " +
                           std::string(kSentence) +
                           "</p><div hidden>secret</div><p style='visibility:hidden;'>secret</p></div>";
  EXPECT_FALSE(has(article_in(page).text, "secret"));
}

TEST(ReadableArticle, OfSeveralSectionsIsWhole) {
  std::string page = "<body><nav>" + links(20, "Section name") + "</nav><div class=c1>";
  for (int i = 0; i < 4; ++i)
    page += "<div><div><div>" + paragraphs(3, "part" + std::to_string(i) + "-") + "</div></div></div>";
  const ReadableArticle article = article_in(page + "</div>");
  for (const char* const part : {"part0-0", "part1-1", "part2-0", "part3-2"})
    EXPECT_TRUE(has(article.text, part)) << part;
  EXPECT_FALSE(has(article.text, "Section name"));
}

TEST(ReadableArticle, OfAPageWithNextToNoTextIsThat) {
  EXPECT_EQ(article_in("<body><p>short</p>").text, "short");
  EXPECT_EQ(article_in("<body><ol><li>one</li><li>two</li></ol>").text.substr(0, 3), "one");
}

// Editors and word processors write so: no paragraph, and all text in elements of a line.
TEST(ReadableArticle, WhoseTextIsInSpansOfNestedDivsIsWhole) {
  std::string page = "<body><nav>" + links(20, "Section name") + "</nav><div class=chapter><div><div>";
  for (int i = 0; i < 6; ++i)
    page += "<div><div><span>body" + std::to_string(i) + " " + std::string(kSentence) + "</span></div></div>";
  page += "</div></div><div class=notes><p>note " + std::string(kSentence) + "</p></div></div>";
  const ReadableArticle article = article_in(page);
  for (const char* const part : {"body0", "body3", "body5"}) EXPECT_TRUE(has(article.text, part)) << part;
  EXPECT_FALSE(has(article.text, "Section name"));
}

TEST(ReadableArticle, MayBeInAnAnchorThatLeadsNowhere) {
  for (const char* const anchor : {"<a name=top>", "<a href=javascript:>", "<a href='JavaScript:void(0)'>"}) {
    const std::string page = std::string("<body>") + anchor + paragraphs(4, "body") + "</a>";
    EXPECT_TRUE(has(article_in(page).text, "body3")) << anchor;
  }
}

TEST(ReadableArticle, HasNoUrlForItsAuthor) {
  const ReadableArticle article = article_in(
      "<meta property=article:author content=https://www.facebook.com/ann><script type='application/ld+json'>"
      "{\"@type\":\"Article\",\"author\":{\"name\":\"Ann Example\"}}</script><article>" +
      paragraphs(4, "x") + "</article>");
  EXPECT_EQ(article.author, "Ann Example");
  EXPECT_EQ(
      article_in("<meta property=article:author content=//x/ann><article>" + paragraphs(4, "x") + "</article>").author,
      "");
}

// A page of a random layout; how much of the article's and of other text the finder gives.
struct Recovered {
  int of_article = 0, in_article = 0, of_others = 0, in_others = 0;
};
void add_random_page(Random& random, Recovered& sum) {
  const auto pick = [&](std::vector<std::string> words) { return words[random.below(words.size())]; };
  const std::string wrapper = pick({"div", "section", "article", "main", "td"});
  const std::string name = pick({"", " class=content", " id=main", " class='post entry'", " class=c12"});
  std::string page = "<body>";
  const auto others = [&](std::string_view mark) {
    const std::string kind =
        pick({"<nav>", "<div class=sidebar>", "<aside>", "<footer>", "<div class=related>", "<div id=comments>"});
    std::string text = links(5 + static_cast<int>(random.below(20)), "another story of the day");
    for (std::uint64_t i = random.below(3); i > 0; --i)
      text += "<p>" + std::string(mark) + " " + std::string(kSentence) + "</p>";
    return kind + text + (kind[1] == 'd' ? "</div>" : "</" + kind.substr(1));
  };
  page += others("other") + others("other");
  const int count = 3 + static_cast<int>(random.below(10));
  const std::string table = wrapper == "td" ? "<table><tr>" : "";
  page += table + "<" + wrapper + name + ">" + paragraphs(count, "body") + "</" + wrapper + ">" +
          (table.empty() ? "" : "</table>");
  page += others("other");
  const auto document = Document::parse_html(page);
  const std::string text = find_article(*document).value_or(ReadableArticle{}).text;
  const auto occurrences = [](std::string_view in, std::string_view what) {
    int found = 0;
    for (std::size_t at = in.find(what); at != std::string_view::npos; at = in.find(what, at + 1)) ++found;
    return found;
  };
  sum.of_article += count;
  sum.in_article += occurrences(text, "body");
  sum.of_others += occurrences(page, "other The");
  sum.in_others += occurrences(text, "other The");
}

TEST(ReadableArticle, OfAThousandMadePagesIsNearlyAlwaysWhole) {
  Random random(14);
  Recovered sum;
  for (int i = 0; i < 1000; ++i) add_random_page(random, sum);
  EXPECT_GT(sum.in_article, sum.of_article * 98 / 100);
  EXPECT_LT(sum.in_others, sum.of_others * 2 / 100);
}

}  // namespace
}  // namespace argiope
