// What URLs are called as files: readable, and safe whatever a server calls its pages.
#include "crawl/save/file_names.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/random.hpp"
#include "base/internal/utf8.hpp"

namespace argiope {
namespace {

Url url_of(std::string_view text) {
  auto url = Url::parse(text);
  EXPECT_TRUE(url) << text;
  return url.value_or(Url{});
}

std::string path_of(std::string_view url, std::string_view content_type = "text/html") {
  const Url parsed = url_of(url);
  return file_path(parsed, type_of_answer(parsed, content_type, ""));
}

TEST(FileNames, AreThoseOfTheirUrlsWhereThatCanBe) {
  EXPECT_EQ(path_of("https://example.org/a/b.html"), "example.org/a/b.html");
  EXPECT_EQ(path_of("https://example.org/a/B.HTM"), "example.org/a/B.HTM");
  EXPECT_EQ(path_of("https://example.org/x/y.png", "image/png"), "example.org/x/y.png");
  EXPECT_EQ(path_of("https://example.org/photo.jpg", "image/webp"), "example.org/photo.jpg")
      << "pictures are told by their bytes";
  EXPECT_EQ(path_of("https://example.org/LICENSE.rst", "text/plain"), "example.org/LICENSE.rst");
  EXPECT_EQ(path_of("https://example.org/a.tar.gz", "application/gzip"), "example.org/a.tar.gz");
}

TEST(FileNames, OfFoldersAreIndexes) {
  EXPECT_EQ(path_of("https://example.org/"), "example.org/index.html");
  EXPECT_EQ(path_of("https://example.org/a/"), "example.org/a/index.html");
  EXPECT_EQ(path_of("https://example.org/a/?page=2"), "example.org/a/index@page=2.html");
  EXPECT_EQ(path_of("https://example.org/a/", "application/pdf"), "example.org/a/index.pdf");
}

TEST(FileNames, SayWhatTheFileIs) {
  EXPECT_EQ(path_of("https://example.org/about"), "example.org/about.html");
  EXPECT_EQ(path_of("https://example.org/v1.2"), "example.org/v1.2.html");
  EXPECT_EQ(path_of("https://example.org/show.php"), "example.org/show.php.html");
  EXPECT_EQ(path_of("https://example.org/a.html", "text/plain"), "example.org/a.html.txt");
  EXPECT_EQ(path_of("https://example.org/a.html", "application/octet-stream"), "example.org/a.html.bin");
  EXPECT_EQ(path_of("https://example.org/pic", "image/png"), "example.org/pic.png");
  EXPECT_EQ(path_of("https://example.org/load.php", "text/css"), "example.org/load.php.css");
  EXPECT_EQ(path_of("https://example.org/a", "application/xhtml+xml"), "example.org/a.xhtml");
  EXPECT_EQ(path_of("https://example.org/feed", "application/rss+xml"), "example.org/feed");
  EXPECT_EQ(path_of("https://example.org/thing", ""), "example.org/thing");
}

TEST(FileNames, HaveTheQueryInFrontOfTheExtension) {
  EXPECT_EQ(path_of("https://example.org/s.css?v=1.2", "text/css"), "example.org/s@v=1.2.css");
  EXPECT_EQ(path_of("https://example.org/show.php?id=3&x=a%2Fb"), "example.org/show.php@id=3&x=a%2Fb.html");
  EXPECT_EQ(path_of("https://example.org/a?"), "example.org/a.html");
  EXPECT_EQ(path_of("https://example.org/a?q=<b>|c*"), "example.org/a@q=%3Cb%3E%7Cc%2A.html");
}

TEST(FileNames, TellServersApart) {
  EXPECT_EQ(path_of("http://example.org:8080/"), "example.org+8080/index.html");
  EXPECT_EQ(path_of("https://example.org:443/"), "example.org/index.html");
  EXPECT_EQ(path_of("http://[::1]:80/"), "%5B%3A%3A1%5D/index.html");
}

TEST(FileNames, AreReadableInAnyAlphabet) {
  EXPECT_EQ(path_of("https://example.org/caf%C3%A9/%E6%97%A5%E6%9C%AC"),
            "example.org/caf\xc3\xa9/\xe6\x97\xa5\xe6\x9c\xac.html");
  EXPECT_EQ(path_of("https://example.org/a%20b%E2%80%AEc"), "example.org/a b%E2%80%AEc.html")
      << "what turns the direction of text is escaped";
  EXPECT_EQ(path_of("https://example.org/a%FFb%C3"), "example.org/a%FFb%C3.html");
}

TEST(FileNames, HoldNothingThatAFileSystemRefuses) {
  EXPECT_EQ(path_of("https://example.org/con"), "example.org/%63on.html");
  EXPECT_EQ(path_of("https://example.org/AUX.x/Lpt1.html"), "example.org/%41UX.x/%4Cpt1.html");
  EXPECT_EQ(path_of("https://example.org/com10/console"), "example.org/com10/console.html");
  EXPECT_EQ(path_of("https://example.org/a./b%20/.%2e%2fc"), "example.org/a%2E/b%20/..%2Fc.html");
  EXPECT_EQ(path_of("https://example.org/%00%1f%7f%5c:*?%22"), "example.org/%00%1F%7F%5C%3A%2A@%22.html");
  EXPECT_EQ(path_of("https://example.org//a//"), "example.org/_/a/_/index.html");
}

TEST(FileNames, NeverLeadOutOfTheirFolder) {
  for (const auto* url : {"https://example.org/../../etc/passwd", "https://example.org/%2e%2e/%2e%2e/x",
                          "https://example.org/..%2f..%2fx", "https://example.org/%2e%2e%2f",
                          "https://example.org/a/..;/x", "https://example.org/..%5c..%5cx"}) {
    const std::string path = path_of(url);
    EXPECT_TRUE(path.starts_with("example.org/")) << path;
    EXPECT_FALSE(("/" + path + "/").contains("/../")) << path;
    EXPECT_FALSE(path.contains('\\')) << path;
  }
}

TEST(FileNames, AreCutAndToldApartByAHash) {
  const std::string path = path_of("https://example.org/" + std::string(3000, 'a') + ".html");
  EXPECT_TRUE(path.starts_with("example.org/aaaa"));
  EXPECT_TRUE(path.ends_with(".html"));
  EXPECT_LE(path.size(), 220u);
  EXPECT_NE(path, path_of("https://example.org/" + std::string(3001, 'a') + ".html"));
  std::string deep = "https://example.org";
  for (int i = 0; i < 500; ++i) deep += "/folder";
  EXPECT_LE(path_of(deep).size(), 700u);
  EXPECT_NE(path_of(deep), path_of(deep + "/folder"));
  EXPECT_TRUE(path_of(deep).starts_with("example.org/folder/folder/"));
}

// What any file system asks of a part.
void expect_sound(const std::string& path, std::size_t longest_part = 200) {
  EXPECT_FALSE(path.empty() || path.front() == '/' || path.ends_with('/') || path.contains("//")) << path;
  EXPECT_TRUE(is_utf8(path)) << path;
  EXPECT_LE(path.size(), 1000u) << path;
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    EXPECT_TRUE(part != "." && part != ".." && part.size() <= longest_part) << path;
    EXPECT_TRUE(part.back() != '.' && part.back() != ' ' && part.front() != ' ') << path;
    EXPECT_EQ(part.find_first_of("<>:\"\\|?*#"), std::string_view::npos) << path;
    for (const char c : part) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << path;
  }
}

std::string random_url(Random& random) {
  const std::vector<std::string> pieces = {"/",
                                           "a",
                                           "B",
                                           "b",
                                           ".",
                                           "..",
                                           "%2e",
                                           "%2F",
                                           "%5c",
                                           "?",
                                           "&",
                                           "=",
                                           "con",
                                           ".html",
                                           ".png",
                                           "%C3%A9",
                                           "%e9",
                                           "%20",
                                           "+",
                                           "~",
                                           "@",
                                           "index",
                                           ";",
                                           ":",
                                           "*",
                                           "'",
                                           "%00",
                                           "#",
                                           "\xe6\x97\xa5",
                                           "%E2%80%8F",
                                           "%25",
                                           ".php",
                                           "x",
                                           std::string(250, 'y'),
                                           "lpt1.",
                                           " "};
  std::string url = random.chance(0.5) ? "https://h.example" : "http://h.example:81";
  url += "/";
  for (auto count = random.below(14); count > 0; --count) url += pieces[random.below(pieces.size())];
  return url;
}

TEST(FileNames, AreSoundWhateverTheUrl) {
  Random random(1);
  const std::string_view types[] = {"text/html", "image/png", "text/css",     "application/pdf",
                                    "",          "x/y",       "image/svg+xml"};
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = random_url(random);
    const auto url = Url::parse(text);
    if (!url) continue;
    const FileType type = type_of_answer(*url, types[random.below(std::size(types))], "");
    const std::string path = file_path(*url, type);
    expect_sound(path);
    EXPECT_EQ(path, file_path(*url, type));
    EXPECT_TRUE(name_fits(path, type)) << path;
    expect_sound(marked_path(path, "0123abcd"), 220);
    EXPECT_TRUE(name_fits(marked_path(path, "0123abcd"), type)) << path;
  }
}

TEST(FileNames, AreAgreedOnByWhoLinksAndWhoSavesWhereTheExtensionTells) {
  for (const auto* text :
       {"https://e.org/a/b.html", "https://e.org/a", "https://e.org/a/?x=1", "https://e.org/", "https://e.org/a.php"}) {
    const Url url = url_of(text);
    EXPECT_EQ(file_path(url, *guess_type(url, ReferenceRole::link)), path_of(text)) << text;
  }
  const Url sheet = url_of("https://e.org/load.php?only=styles");
  EXPECT_EQ(file_path(sheet, *guess_type(sheet, ReferenceRole::stylesheet)), path_of(sheet.href(), "text/css"));
  EXPECT_FALSE(guess_type(url_of("https://e.org/image?id=3"), ReferenceRole::image));
}

TEST(FileNames, AreMarkedInTheNameOrInAFolder) {
  EXPECT_EQ(marked_path("h/a/b.html", "x"), "h/a/b~x.html");
  EXPECT_EQ(marked_path("h/a/b", "x"), "h/a/b~x");
  EXPECT_EQ(marked_path("h/a/b.html", "x", 0), "h~x/a/b.html");
  EXPECT_EQ(marked_path("h/a/b.html", "x", 1), "h/a~x/b.html");
}

TEST(FileNames, AreFoldedWhereFileSystemsSeeNoDifference) {
  EXPECT_EQ(folded_path("Host/A.HTML"), folded_path("host/a.html"));
  EXPECT_EQ(folded_path("h/\xc3\x89"), folded_path("h/e\xcc\x81"));
  EXPECT_EQ(folded_path("h/stra\xc3\x9f"
                        "e"),
            folded_path("h/STRASSE"));
  EXPECT_NE(folded_path("h/a"), folded_path("h/b"));
}

TEST(FileNames, AreReferredToByWhatLeadsThere) {
  EXPECT_EQ(relative_reference("h/a/b.html", "h/a/c.html"), "c.html");
  EXPECT_EQ(relative_reference("h/a/b.html", "h/a/b.html"), "b.html");
  EXPECT_EQ(relative_reference("h/a/b.html", "h/d/e/f.png"), "../d/e/f.png");
  EXPECT_EQ(relative_reference("h/a/b.html", "h/b.html"), "../b.html");
  EXPECT_EQ(relative_reference("h/a/b.html", "i/a/b.html"), "../../i/a/b.html");
  EXPECT_EQ(relative_reference("h/a.html", "h/x (1)%2F,'&.html"), "x%20%281%29%252F%2C%27%26.html");
  EXPECT_TRUE(is_same_reference("operator().html", "operator%28%29.html"));
  EXPECT_FALSE(is_same_reference("a%252F.html", "a%2F.html"));
  EXPECT_FALSE(is_same_reference("a?b", "a%3Fb"));
}

TEST(FileNames, AreFoundAgainFromWhatRefersToThem) {
  Random random(2);
  for (int round = 0; round < 20'000; ++round) {
    const auto one = Url::parse(random_url(random)), other = Url::parse(random_url(random));
    if (!one || !other) continue;
    const std::string from = file_path(*one, {FileKind::html, "html"});
    const std::string to = file_path(*other, {FileKind::picture, "png"});
    const auto base = Url::parse(saved_url(from));
    ASSERT_TRUE(base);
    const auto target = Url::parse(relative_reference(from, to), &*base);
    ASSERT_TRUE(target);
    EXPECT_EQ(saved_path(*target), to);
    EXPECT_EQ(saved_path(*base), from);
  }
  EXPECT_FALSE(saved_path(url_of("https://example.org/")));
}

}  // namespace
}  // namespace argiope
