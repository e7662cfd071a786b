// The index of archives: keys, lines, order.
#include "warc/internal/cdxj.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "argiope/base/random.hpp"
#include "support/temporary_folder.hpp"
#include "web/url/internal/surt.hpp"

namespace argiope {
namespace {

TEST(Surt, IsTheKeyThatReadersOfArchivesLookFor) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"http://example.com/", "com,example)/"},
      {"https://www.example.com", "com,example)/"},
      {"http://www34.archive.org/index.html?b=a&b=b&a=b", "org,archive)/index.html?a=b&b=a&b=b"},
      {"http://www2foo.com/", "com,www2foo)/"},
      {"http://ann:secret@example.com:8080/a/", "com,example:8080)/a"},
      {"https://example.com:443/A//B/./c/", "com,example)/a/b/c"},
      {"http://example.com/?", "com,example)/"},
      {"http://example.com/a#b", "com,example)/a"},
      {"http://example.com/a?B=C&a=1&", "com,example)/a?&a=1&b=c"},
      {"http://127.0.0.1:80/x", "1,0,0,127)/x"},
      {"http://[::1]:81/x", "[::1]:81)/x"},
      {"http://example.com/%257Ea%2521b%20c", "com,example)/~a!b%20c"},
      {"http://b\xc3\xbc"
       "cher.example/\xc3\x9c",
       "example,xn--bcher-kva)/%c3%9c"},
      {"http://a.com/x?jsessionid=0123456789abcdef0123456789ABCDEF&y=1", "com,a)/x?y=1"},
      {"http://a.com/x?sid=short", "com,a)/x?sid=short"},
      {"http://a.com/(S(4hqa0555fwsecu455xqckv45))/Mileg.aspx", "com,a)/mileg.aspx"},
      {"http://a.com/(4hqa0555fwsecu455xqckv45)/b", "com,a)/(4hqa0555fwsecu455xqckv45)/b"},
      {"dns:example.com", "dns:example.com"},
      {"not a url", "not%20a%20url"},
  };
  for (const auto& [url, key] : cases) EXPECT_EQ(surt_key(url), key) << url;
}

CdxjLine a_line() {
  return {.timestamp = "20240101000000",
          .url = "http://example.com/\"q\"",
          .mime = "text/html",
          .status = 200,
          .digest = "G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK",
          .length = 1242,
          .offset = 784,
          .filename = "example.warc.gz"};
}

TEST(Cdxj, IsWrittenAsPywbWritesIt) {
  std::string out;
  append_cdxj(out, a_line());
  EXPECT_EQ(out,
            "com,example)/\"q\" 20240101000000 {\"url\": \"http://example.com/\\\"q\\\"\", \"mime\": \"text/html\", "
            "\"status\": "
            "\"200\", \"digest\": \"G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK\", \"length\": \"1242\", \"offset\": \"784\", "
            "\"filename\": \"example.warc.gz\"}\n");
  const auto read = parse_cdxj(std::string_view(out).substr(0, out.size() - 1));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->url, a_line().url);
  EXPECT_EQ(read->status, 200);
  EXPECT_EQ(read->digest, a_line().digest);
  EXPECT_EQ(read->offset, 784u);
  EXPECT_EQ(read->length, 1242u);
}

TEST(Cdxj, IsReadAsOthersWriteIt) {
  const auto read = parse_cdxj(
      R"(com,a)/ 20240101000000 {"offset": 5, "length": 6, "filename": "f", "url": "http://a/", "digest": "sha1:ABC", "status": "-", "other": [1]})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->offset, 5u);
  EXPECT_EQ(read->digest, "ABC");
  EXPECT_EQ(read->status, 0);
  for (const std::string_view bad :
       {"", "a", "a b", "a 20240101000000 {", "a 20240101000000 {}",
        "a 2024 {\"offset\":1,\"length\":1,\"filename\":\"f\",\"url\":\"u\"}",
        "a 20240101000000 {\"offset\":\"x\",\"length\":1,\"filename\":\"f\",\"url\":\"u\"}",
        "!meta 20240101000000 {\"format\":1}"}) {
    EXPECT_FALSE(parse_cdxj(bad)) << bad;
  }
}

TEST(Cdxj, TimesAreThoseOfTheRecords) {
  EXPECT_EQ(cdx_timestamp("2026-02-03T04:05:06Z"), "20260203040506");
  EXPECT_EQ(cdx_timestamp("2026-02-03T04:05:06.999999999Z"), "20260203040506");
  EXPECT_EQ(cdx_timestamp("yesterday"), "");
}

class SortLines : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path(), std::ios::binary) << text; }
  std::string read() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string path() const { return folder_.file("lines"); }
  std::size_t files() const {
    const auto there = std::filesystem::directory_iterator(std::filesystem::path(path()).parent_path());
    return static_cast<std::size_t>(std::distance(begin(there), end(there)));
  }
  TemporaryFolder folder_;
};

TEST_F(SortLines, PutsThemInTheOrderOfTheirBytesWhateverFitsIntoMemory) {
  Random random{11};
  std::vector<std::string> lines;
  for (int i = 0; i < 500; ++i) {
    std::string line(random.below(60), ' ');
    for (char& c : line) c = static_cast<char>(random.between(' ', 255));
    lines.push_back(line);
  }
  std::string mixed, sorted;
  for (const std::string& line : lines) mixed += line + '\n';
  std::ranges::sort(lines, [](const std::string& a, const std::string& b) {
    return std::ranges::lexicographical_compare(
        a, b, {}, [](char c) { return static_cast<unsigned char>(c); },
        [](char c) { return static_cast<unsigned char>(c); });
  });
  for (const std::string& line : lines) sorted += line + '\n';
  for (const std::size_t memory : {1, 100, 5000, 1'000'000}) {
    write(mixed);
    const auto done = sort_lines(path(), memory);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(read(), sorted) << memory;
    EXPECT_EQ(files(), 1u) << "nothing is left beside it";
  }
}

TEST_F(SortLines, LeavesAFileThatCannotBeSorted) {
  EXPECT_FALSE(sort_lines(folder_.file("absent")));
  write("");
  EXPECT_TRUE(sort_lines(path()));
  EXPECT_EQ(read(), "");
}

}  // namespace
}  // namespace argiope
