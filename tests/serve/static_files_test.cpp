// The files that the binary carries: how they are answered, and that the dashboard is whole.
#include "serve/static_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string>

#include "support/header_of.hpp"
#include "support/http_server_fixture.hpp"

namespace argiope {
namespace {

constexpr StaticFile kPage{"/", "text/html; charset=utf-8", "\"a1\"", "<p>hello</p>"};

ServerResponse asked_with(std::string_view if_none_match) {
  ServerRequest request;
  request.headers.emplace_back("if-none-match", if_none_match);
  return answer(kPage, request);
}

TEST(StaticFile, IsAnsweredWithItsTypeAndTag) {
  const ServerResponse response = answer(kPage, ServerRequest{});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "<p>hello</p>");
  EXPECT_EQ(header_of(response, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(header_of(response, "ETag"), "\"a1\"");
  EXPECT_EQ(header_of(response, "Cache-Control"), "no-cache");
}

TEST(StaticFile, TellsTheBrowserToRunNothingElseAndToShowItInNoFrame) {
  for (const ServerResponse& response : {answer(kPage, ServerRequest{}), asked_with("\"a1\"")}) {
    EXPECT_EQ(header_of(response, "Content-Security-Policy"),
              "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
              "base-uri 'none'; frame-ancestors 'none'; form-action 'self'");
    EXPECT_EQ(header_of(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(header_of(response, "X-Frame-Options"), "DENY");
    EXPECT_EQ(header_of(response, "Referrer-Policy"), "no-referrer");
  }
}

TEST(StaticFile, IsNotSentAgainToWhoHasIt) {
  for (const std::string_view tags : {"\"a1\"", "W/\"a1\"", "\"b\", \"a1\"", "  \"a1\" ,\"b\"", "*"}) {
    const ServerResponse response = asked_with(tags);
    EXPECT_EQ(response.status, 304) << tags;
    EXPECT_EQ(response.body, "") << tags;
    EXPECT_EQ(header_of(response, "ETag"), "\"a1\"") << tags;
  }
  for (const std::string_view tags : {"", "\"a2\"", "a1", "\"a1", "W/", ",", " , ,", "\"a1\"x"}) {
    EXPECT_EQ(asked_with(tags).status, 200) << tags;
  }
}

using StaticFilesOverHttp = HttpServerTest;

TEST_F(StaticFilesOverHttp, GetAndHeadAreServedAndNothingElse) {
  HttpRouter router;
  add_static_files(router, {&kPage, 1});
  with_server(
      [&](HttpServer&) -> Coro<void> {
        const std::string got = co_await talk(last("/"));
        EXPECT_TRUE(got.starts_with("HTTP/1.1 200")) << got;
        EXPECT_EQ(body_of(got), "<p>hello</p>");
        const std::string head = co_await talk("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        EXPECT_TRUE(head.starts_with("HTTP/1.1 200")) << head;
        EXPECT_EQ(body_of(head), "");
        EXPECT_EQ(count(head, "Content-Length: 12\r\n"), 1u) << head;
        const std::string same = co_await talk(get("/", "If-None-Match: \"a1\"\r\nConnection: close\r\n"));
        EXPECT_TRUE(same.starts_with("HTTP/1.1 304")) << same;
        EXPECT_EQ(body_of(same), "");
        EXPECT_TRUE((co_await talk(post("/", "x", "Connection: close\r\n"))).starts_with("HTTP/1.1 405"));
        EXPECT_TRUE((co_await talk(last("/ui/../CMakeLists.txt"))).starts_with("HTTP/1.1 404"));
      },
      router);
}

class Dashboard : public testing::Test {
 protected:
  Dashboard() {
    for (const StaticFile& file : dashboard_files()) EXPECT_TRUE(files_.emplace(file.path, &file).second) << file.path;
  }
  bool is_there() const { return files_.contains("/ui/main.js"); }
  // What `pattern` finds in the file, its first group.
  static std::vector<std::string> found_in(const StaticFile& file, const char* pattern) {
    const std::string text(file.bytes);
    const std::regex wanted(pattern);
    std::vector<std::string> found;
    for (std::sregex_iterator it(text.begin(), text.end(), wanted), end; it != end; ++it) found.push_back((*it)[1]);
    return found;
  }
  // "../api.js" beside "/ui/pages/job.js" is "/ui/api.js".
  static std::string resolved(std::string_view importer, std::string_view name) {
    std::string folder(importer.substr(0, importer.rfind('/')));
    while (name.starts_with("../")) {
      name.remove_prefix(3);
      folder.erase(folder.rfind('/'));
    }
    if (name.starts_with("./")) name.remove_prefix(2);
    return folder + "/" + std::string(name);
  }

  std::map<std::string_view, const StaticFile*> files_;
};

TEST_F(Dashboard, StartsAtTheRootWithOrWithoutItsLibraries) {
  ASSERT_TRUE(files_.contains("/"));
  const StaticFile& page = *files_.at("/");
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  EXPECT_TRUE(page.bytes.starts_with("<!doctype html>"));
  if (!is_there()) EXPECT_NE(page.bytes.find("make dashboard"), std::string_view::npos);
}

TEST_F(Dashboard, TagsTellItsFilesApart) {
  std::map<std::string_view, std::string_view> bytes_of;
  for (const auto& [path, file] : files_) {
    EXPECT_GE(file->etag.size(), 10u) << path;
    const auto [known, is_new] = bytes_of.emplace(file->etag, file->bytes);
    EXPECT_TRUE(is_new || known->second == file->bytes) << path;
  }
}

TEST_F(Dashboard, CarriesAllThatItsPagesName) {
  if (!is_there()) GTEST_SKIP() << "built without the dashboard";
  for (const std::string& name : found_in(*files_.at("/"), "(?:src|href)=\"([^\"]+)\"")) {
    EXPECT_TRUE(files_.contains("/" + name)) << name;
  }
  for (const auto& [path, file] : files_) {
    if (!file->type.starts_with("text/javascript") || path == "/ui/lib/uplot.mjs") continue;
    for (const std::string& name : found_in(*file, "\\b(?:from|import) *['\"]([^'\"]+)['\"]")) {
      EXPECT_TRUE(files_.contains(resolved(path, name))) << path << " imports " << name;
    }
  }
}

// Names of markup languages, and hosts of RFC 6761 that are only ever examples: neither is asked.
bool is_only_a_name(const std::string& url) {
  static const std::regex example("https?://([a-z0-9-]+\\.)*example(/.*)?");
  return url == "http://www.w3.org/2000/svg" || url == "http://www.w3.org/1999/xhtml" || std::regex_match(url, example);
}

TEST_F(Dashboard, AsksNoOtherServerAndPutsNoTextIntoThePageAsMarkup) {
  for (const auto& [path, file] : files_) {
    if (path.starts_with("/ui/lib/") || path == "/ui/licenses.txt") continue;
    for (const std::string& url : found_in(*file, "(https?://[^\\s'\"`<>)]*)")) {
      EXPECT_TRUE(is_only_a_name(url)) << path << ": " << url;
    }
    for (const std::string_view word : {"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("}) {
      EXPECT_EQ(file->bytes.find(word), std::string_view::npos) << path << ": " << word;
    }
    if (!file->type.starts_with("text/html")) continue;
    for (const std::string_view word : {"<style", " style=", " onclick=", "javascript:"}) {
      EXPECT_EQ(file->bytes.find(word), std::string_view::npos) << path << ": " << word;
    }
  }
}

}  // namespace
}  // namespace argiope
