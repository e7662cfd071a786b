// Requests answered from archives: ours, and those of others.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "argiope/warc/warc.hpp"
#include "support/deflate.hpp"
#include "support/loop_fixture.hpp"
#include "support/temporary_folder.hpp"
#include "warc/internal/sha1.hpp"
#include "warc/internal/warc_archive.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;

class WarcReplayTest : public LoopTest<VirtualTime> {
 protected:
  // Adds a record to a file of another's.
  void add(std::string_view url, std::string_view http, std::string_view date = "2026-01-01T00:00:00Z",
           std::string_view type = "response", std::string_view more = {}) {
    foreign_ += gzip("WARC/1.0\r\nWARC-Type: " + std::string(type) + "\r\nWARC-Target-URI: <" + std::string(url) +
                     ">\r\nWARC-Date: " + std::string(date) + "\r\n" + std::string(more) +
                     "Content-Length: " + std::to_string(http.size()) + "\r\n\r\n" + std::string(http) + "\r\n\r\n");
  }
  std::string written() {
    const std::string file = folder_.file("foreign.warc.gz");
    std::ofstream(file, std::ios::binary | std::ios::trunc) << foreign_;
    return file;
  }
  std::shared_ptr<const WarcReplay> open(const std::vector<std::string>& files) {
    auto replay = WarcReplay::open(files);
    EXPECT_TRUE(replay) << (replay ? "" : replay.error().message);
    return replay ? *replay : nullptr;
  }
  Result<void> ask(const std::shared_ptr<const WarcReplay>& replay, std::string_view url) {
    request_.url = *Url::parse(url);
    const auto transport = WarcReplay::transport(replay);
    Result<void> sent;
    run([&]() -> Coro<void> { sent = co_await transport->send(request_, response_); });
    return sent;
  }

  TemporaryFolder folder_;
  std::string foreign_;
  HttpRequest request_;
  HttpResponse response_;
};

TEST_F(WarcReplayTest, AnswersWhatWasAnsweredThen) {
  add("http://a.test/x",
      "HTTP/1.1 404 Gone Away\r\nContent-Type: text/html\r\nETag: \"1\"\r\nContent-Length: 4\r\n\r\ngone",
      "2026-01-01T00:00:00Z", "response", "WARC-IP-Address: 192.0.2.9\r\n");
  const auto replay = open({written()});
  EXPECT_EQ(replay->urls(), 1u);
  ASSERT_TRUE(ask(replay, "http://a.test/x#fragment"));
  EXPECT_EQ(response_.status, 404);
  EXPECT_EQ(response_.body, "gone");
  EXPECT_EQ(response_.headers.etag, "\"1\"");
  EXPECT_EQ(response_.remote.to_string(), "192.0.2.9");
  EXPECT_TRUE(response_.connected);
  EXPECT_EQ(response_.oddities, 0);
  request_.method = HttpMethod::head;
  ASSERT_TRUE(ask(replay, "http://a.test/x"));
  EXPECT_EQ(response_.body, "");
}

TEST_F(WarcReplayTest, TellsWhatIsNotInTheArchiveAndThatThereAreNoRobots) {
  add("http://a.test/x", "HTTP/1.1 200 OK\r\n\r\nhello");
  const auto replay = open({written()});
  const auto absent = ask(replay, "http://a.test/y");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Errc::not_found);
  EXPECT_EQ(absent.error().message, "http://a.test/y: not in the archive");
  ASSERT_TRUE(ask(replay, "http://b.test/robots.txt"));
  EXPECT_EQ(response_.status, 404);
}

TEST_F(WarcReplayTest, TakesTheNewestCaptureWhereverItIs) {
  add("http://a.test/x", "HTTP/1.1 200 OK\r\n\r\nnew", "2026-01-02T00:00:00Z");
  add("http://a.test/x", "HTTP/1.1 200 OK\r\n\r\nold", "2026-01-01T00:00:00Z");
  add("http://a.test/y", "HTTP/1.1 503 Later\r\nRetry-After: 100\r\n\r\n", "2026-01-01T00:00:00Z");
  add("http://a.test/y", "HTTP/1.1 200 OK\r\n\r\nat last", "2026-01-01T00:00:00Z");
  const auto replay = open({written()});
  ASSERT_TRUE(ask(replay, "http://a.test/x"));
  EXPECT_EQ(response_.body, "new");
  ASSERT_TRUE(ask(replay, "http://a.test/y"));
  EXPECT_EQ(response_.body, "at last") << "of the same second the later one";
}

TEST_F(WarcReplayTest, NeverAsksToWait) {
  add("http://a.test/y", "HTTP/1.1 503 Later\r\nRetry-After: 100\r\n\r\n");
  ASSERT_TRUE(ask(open({written()}), "http://a.test/y"));
  EXPECT_EQ(response_.status, 503);
  EXPECT_EQ(response_.headers.retry_after, "");
}

TEST_F(WarcReplayTest, UndoesCodingsChunksAndWhatOthersLeaveOfThem) {
  add("http://a.test/gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip("hello"));
  add("http://a.test/chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  add("http://a.test/undone", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello");
  add("http://a.test/short", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhello", "2026-01-01T00:00:00Z", "response",
      "WARC-Truncated: length\r\n");
  add("http://a.test/unpacked", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nhello");
  add("http://a.test/both",
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\nhello");
  add("http://a.test/by-http2", "HTTP/2 200\r\ncontent-length: 5\r\n\r\nhello");
  add("http://a.test/by-http3", "HTTP/3 200 OK\r\n\r\nhello");
  add("http://a.test/no-end", "HTTP/1.1 200 OK\n\nhello");
  add("http://a.test/chunks-without-the-last",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n");
  const auto replay = open({written()});
  for (const std::string path : {"gzip", "chunks", "undone", "short", "unpacked", "both", "by-http2", "by-http3",
                                 "no-end", "chunks-without-the-last"}) {
    const auto sent = ask(replay, "http://a.test/" + path);
    ASSERT_TRUE(sent) << path << ": " << sent.error().message;
    EXPECT_EQ(response_.body, "hello") << path;
    EXPECT_EQ(response_.damage.empty(), path != "chunks-without-the-last") << path;
    EXPECT_EQ(response_.truncated, path == "short") << path;
  }
}

TEST_F(WarcReplayTest, FindsWhatARevisitRefersTo) {
  Sha1 sha1;
  const std::string digest = "WARC-Payload-Digest: " + digest_name(sha1.of({"hello"})) + "\r\n";
  const std::string profile = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n";
  add("http://a.test/1", "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n\r\nhello", "2026-01-01T00:00:00Z", "response", digest);
  add("http://a.test/2", "HTTP/1.1 203 OK\r\nETag: \"2\"\r\n\r\n", "2026-01-01T00:00:00Z", "revisit", digest + profile);
  add("http://a.test/3", "", "2026-01-01T00:00:00Z", "revisit", digest + profile);
  add("http://a.test/4", "", "2026-01-01T00:00:00Z", "revisit",
      "WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\r\n" + profile);
  const auto replay = open({written()});
  ASSERT_TRUE(ask(replay, "http://a.test/2"));
  EXPECT_EQ(response_.status, 203);
  EXPECT_EQ(response_.headers.etag, "\"2\"");
  EXPECT_EQ(response_.body, "hello");
  ASSERT_TRUE(ask(replay, "http://a.test/3"));
  EXPECT_EQ(response_.status, 200);
  EXPECT_EQ(response_.body, "hello");
  const auto lost = ask(replay, "http://a.test/4");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Errc::not_found);
  EXPECT_THAT(lost.error().message, HasSubstr("is in none of these files"));
}

TEST_F(WarcReplayTest, FindsWhatARevisitOfAnotherWriterRefersToByUrlAndDate) {
  const std::string profile = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n";
  const auto refers = [&](const std::string& url, const std::string& date) {
    return profile + "WARC-Refers-To-Target-URI: " + url + "\r\nWARC-Refers-To-Date: " + date + "\r\n";
  };
  const std::string ok = "HTTP/1.1 200 OK\r\n\r\n", then = "2026-01-01T00:00:00Z", later = "2026-02-01T00:00:00Z";
  add("http://a.test/1", ok + "hello", then, "response", "WARC-Payload-Digest: sha256:00ff\r\n");
  // Of the same page, without a word of where; its older capture comes behind it.
  add("http://a.test/2", ok, later, "revisit", profile);
  add("http://a.test/2", ok + "two", then);
  add("http://a.test/3", ok, later, "revisit",
      refers("http://a.test/1", then) + "WARC-Payload-Digest: sha256:00FF\r\n");
  add("http://a.test/4", ok, later, "revisit",
      refers("http://a.test/1", then) + "WARC-Payload-Digest: sha256:0000\r\n");
  add("http://a.test/5", ok, later, "revisit", refers("http://a.test/1", later));
  add("http://a.test/6", ok, later, "revisit", refers("http://a.test/2", then));
  add("http://a.test/7", ok, later, "revisit", profile);
  const auto replay = open({written()});
  EXPECT_EQ(replay->urls(), 7u);
  const std::pair<const char*, const char*> found[] = {{"2", "two"}, {"3", "hello"}, {"6", "two"}};
  for (const auto& [page, body] : found) {
    const auto sent = ask(replay, std::string("http://a.test/") + page);
    ASSERT_TRUE(sent) << page << ": " << sent.error().message;
    EXPECT_EQ(response_.body, body) << page;
  }
  for (const char* other : {"4", "5", "7"}) {
    const auto lost = ask(replay, std::string("http://a.test/") + other);
    ASSERT_FALSE(lost) << other;
    EXPECT_EQ(lost.error().code, Errc::not_found) << other;
  }
}

TEST_F(WarcReplayTest, TakesThePayloadAsTheRecordFramesIt) {
  const std::string text = "<p>hello, this is text that nobody has coded</p>", png = "\x89PNG\r\n\x1a\n and so on";
  const auto coded = [](const std::string& coding) {
    return "HTTP/1.1 200 OK\r\nContent-Encoding: " + coding + "\r\n\r\n";
  };
  for (const std::string coding : {"gzip", "br", "deflate", "zstd", "gzip, br"})
    add("http://a.test/" + coding, coded(coding) + text);
  add("http://a.test/picture", coded("br") + png);
  add("http://a.test/longer", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Length: 7\r\n\r\n" + text);
  add("http://a.test/shorter", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + text);
  add("http://a.test/no-chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ndead beef\r\n" + text);
  add("http://a.test/folded", "HTTP/1.1 200 OK\r\nContent-Encoding:\r\n gzip\r\n\r\n" + text);
  const auto replay = open({written()});
  for (const std::string path : {"gzip", "br", "deflate", "zstd", "gzip,%20br", "longer", "shorter", "folded"}) {
    const auto sent = ask(replay, "http://a.test/" + path);
    ASSERT_TRUE(sent) << path << ": " << sent.error().message;
    EXPECT_EQ(response_.body, text) << path;
    EXPECT_EQ(response_.damage, "") << path;
  }
  ASSERT_TRUE(ask(replay, "http://a.test/picture"));
  EXPECT_EQ(response_.body, png);
  ASSERT_TRUE(ask(replay, "http://a.test/no-chunks"));
  EXPECT_EQ(response_.body, "dead beef\r\n" + text);
}

TEST_F(WarcReplayTest, TellsOfABodyThatWasCutOffWhenItWasArchived) {
  add("http://a.test/time", "HTTP/1.1 200 OK\r\n\r\nhel", "2026-01-01T00:00:00Z", "response",
      "WARC-Truncated: time\r\n");
  add("http://a.test/length", "HTTP/1.1 200 OK\r\n\r\nhel", "2026-01-01T00:00:00Z", "response",
      "WARC-Truncated: length\r\n");
  add("http://a.test/segment", "HTTP/1.1 200 OK\r\n\r\nhel", "2026-01-01T00:00:00Z", "response",
      "WARC-Segment-Number: 1\r\n");
  const auto replay = open({written()});
  ASSERT_TRUE(ask(replay, "http://a.test/time"));
  EXPECT_EQ(response_.damage, "cut off when it was archived: \"time\"");
  for (const char* page : {"length", "segment"}) {
    ASSERT_TRUE(ask(replay, std::string("http://a.test/") + page));
    EXPECT_TRUE(response_.truncated) << page;
    EXPECT_EQ(response_.damage, "") << page;
  }
}

TEST_F(WarcReplayTest, TakesStatusLinesAsOthersWriteThem) {
  for (const std::string line :
       {"HTTP/2 200", "HTTP/2.0 200 ", "HTTP/3 200 OK", "HTTP 200", "HTTP 200 OK", "\r\nHTTP/1.1 200 OK",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK", "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK",
        "SPDY/3 200", "h2 200 OK", "HTTPS/1.1 200 OK"}) {
    foreign_.clear();
    add("http://a.test/", line + "\r\nContent-Type: text/html\r\n\r\nhello");
    ASSERT_TRUE(ask(open({written()}), "http://a.test/")) << line;
    EXPECT_EQ(response_.status, 200) << line;
    EXPECT_EQ(response_.body, "hello") << line;
    EXPECT_EQ(response_.headers.content_type, "text/html") << line;
  }
}

TEST_F(WarcReplayTest, AnswersWithResourcesAndPayloadsWithoutAHead) {
  add("http://a.test/resource", "hello", "2026-01-01", "resource", "Content-Type: text/css\r\n");
  add("http://a.test/headless", "hello", "", "response", "Content-Type: text/plain\r\n");
  add("http://a.test/folded", "hello", "2026-01-01T00:00:00Z", "resource",
      "Content-Type: text/plain;\r\n  charset=utf-8\r\n");
  add("http://a.test/conversion", "hello", "2026-01-01T00:00:00Z", "conversion");
  const auto replay = open({written()});
  EXPECT_EQ(replay->urls(), 3u);
  const std::pair<const char*, const char*> types[] = {
      {"resource", "text/css"}, {"headless", "text/plain"}, {"folded", "text/plain; charset=utf-8"}};
  for (const auto& [page, type] : types) {
    ASSERT_TRUE(ask(replay, std::string("http://a.test/") + page)) << page;
    EXPECT_EQ(response_.status, 200) << page;
    EXPECT_EQ(response_.body, "hello") << page;
    EXPECT_EQ(response_.headers.content_type, type) << page;
  }
}

TEST_F(WarcReplayTest, FindsRevisitsByDigestsOfAnyKindAndByAnyOlderCapture) {
  const std::string ok = "HTTP/1.1 200 OK\r\n\r\n";
  const auto digest = [](std::string_view name) { return "WARC-Payload-Digest: " + std::string(name) + "\r\n"; };
  const std::string sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
  const std::string agnostic =
      "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/uri-agnostic-identical-payload-digest\r\n";
  add("http://a.test/1", ok + "hello", "2026-01-01T00:00:00Z", "response", digest("sha256:" + sha256));
  add("http://a.test/2", ok, "2026-01-01T00:00:00Z", "revisit", digest("sha-256:" + sha256) + agnostic);
  add("http://a.test/3", ok + "three", "2026-01-01T00:00:00Z", "response",
      digest("sha1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"));
  add("http://a.test/4", ok, "2026-01-01T00:00:00Z", "revisit", digest("sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N"));
  add("http://a.test/short", ok + "short", "2026-01-01T00:00:00Z", "response", digest("xxh3:26c7827d889f6da3"));
  add("http://a.test/same-as-short", ok, "2026-01-01T00:00:00Z", "revisit", digest("XXH3:26C7827D889F6DA3"));
  for (int day = 1; day < 4; ++day) {
    add("http://a.test/5", ok + "day " + std::to_string(day), "2026-01-0" + std::to_string(day) + "T00:00:00Z");
  }
  const auto refers = [](const std::string& url, const std::string& date) {
    return "WARC-Record-ID: <urn:x:" + date + ">\r\nWARC-Refers-To-Target-URI: " + url +
           "\r\nWARC-Refers-To-Date: " + date + "\r\n";
  };
  add("http://a.test/6", ok, "2026-01-09T00:00:00Z", "revisit", refers("http://a.test/5", "2026-01-02T00:00:00Z"));
  add("http://a.test/7", ok, "2026-01-10T00:00:00Z", "revisit", refers("http://a.test/6", "2026-01-09T00:00:00Z"));
  add("http://a.test/8", ok, "2026-01-11T00:00:00Z", "revisit", refers("http://a.test/8", "2026-01-11T00:00:00Z"));
  const auto replay = open({written()});
  const std::pair<const char*, const char*> found[] = {{"2", "hello"}, {"4", "three"}, {"same-as-short", "short"},
                                                       {"5", "day 3"}, {"6", "day 2"}, {"7", "day 2"}};
  for (const auto& [page, body] : found) {
    const auto sent = ask(replay, std::string("http://a.test/") + page);
    ASSERT_TRUE(sent) << page << ": " << sent.error().message;
    EXPECT_EQ(response_.body, body) << page;
  }
  EXPECT_FALSE(ask(replay, "http://a.test/8")) << "a circle";
}

TEST_F(WarcReplayTest, FindsWhatARevisitRefersToByItsId) {
  const std::string ok = "HTTP/1.1 200 OK\r\n\r\n";
  const auto ids = [](std::string_view own, std::string_view other) {
    return fmt::format("WARC-Record-ID: <urn:x:{}>\r\nWARC-Refers-To: <urn:x:{}>\r\n", own, other);
  };
  add("http://a.test/1", ok + "hello", "2026-01-01T00:00:00Z", "response", "WARC-Record-ID: <urn:x:one>\r\n");
  add("http://a.test/2", ok, "2026-01-02T00:00:00Z", "revisit", ids("two", "one"));
  add("http://a.test/3", ok, "2026-01-02T00:00:00Z", "revisit", ids("three", "two"));
  add("http://a.test/4", ok, "2026-01-02T00:00:00Z", "revisit", ids("four", "none"));
  add("http://a.test/5", ok, "2026-01-02T00:00:00Z", "revisit", ids("five", "five"));
  const auto replay = open({written()});
  for (const char* page : {"2", "3"}) {
    const auto sent = ask(replay, std::string("http://a.test/") + page);
    ASSERT_TRUE(sent) << page << ": " << sent.error().message;
    EXPECT_EQ(response_.body, "hello") << page;
  }
  const auto lost = ask(replay, "http://a.test/4");
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().message, HasSubstr("(urn:x:none) is in none of these files"));
  EXPECT_FALSE(ask(replay, "http://a.test/5")) << "itself";
}

// Records of others, plain, with anything between them.
class WarcSeparators : public WarcReplayTest {
 protected:
  static std::string plain(std::string_view url, std::string_view body, std::ptrdiff_t longer = 0) {
    const std::string block = "HTTP/1.1 200 OK\r\n\r\n" + std::string(body);
    return "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/" + std::string(url) +
           "\r\nWARC-Date: 2026-01-01T00:00:00Z\r\nContent-Length: " +
           std::to_string(static_cast<std::ptrdiff_t>(block.size()) + longer) + "\r\n\r\n" + block;
  }
  std::size_t urls_in(std::string file) {
    foreign_ = std::move(file);
    const auto replay = open({written()});
    return replay ? replay->urls() : 0;
  }
};

TEST_F(WarcSeparators, OfAnyKindLoseNoRecord) {
  const std::string end = "\r\n\r\n";
  for (const std::string& between :
       {std::string(), std::string("\n"), std::string("\r\n"), end + end, end + "JUNK", end + std::string(5000, '\0'),
        std::string(200, '\n'), end + std::string(300'000, 'x') + "\n", std::string("\0\0", 2)}) {
    EXPECT_EQ(urls_in(plain("1", "one") + between + plain("2", "two") + between), 2u) << between.size();
    EXPECT_EQ(urls_in(between + plain("1", "one") + between + gzip(plain("2", "two") + end)), 2u) << between.size();
  }
  EXPECT_EQ(urls_in(gzip(plain("1", "one")) + gzip(plain("2", "two") + end + end)), 2u) << "in members of gzip, too";
}

TEST_F(WarcSeparators, OfARecordWithAWrongLengthCostItAlone) {
  const std::string end = "\r\n\r\n";
  EXPECT_EQ(urls_in(plain("1", "one", 40) + end + plain("2", "two") + end + plain("3", "three") + end), 2u)
      << "too long";
  EXPECT_EQ(urls_in(plain("1", "one", 100'000) + end + plain("2", "two") + end), 1u) << "beyond the file";
  EXPECT_EQ(urls_in(plain("1", "one two three", -9) + end + plain("2", "two") + end), 2u) << "too short";
}

TEST_F(WarcSeparators, OfGzipNeedNotBeThoseOfRecords) {
  const std::string end = "\r\n\r\n";
  const std::string long_body(300'000, 'x');
  const std::string records = plain("1", "one") + end + plain("2", long_body) + end + plain("3", "three") + end;
  EXPECT_EQ(urls_in(gzip(records)), 3u) << "one member";
  for (const std::size_t size : {std::size_t{100}, std::size_t{10'000}, records.size() - 10}) {
    std::string blocks;
    for (std::size_t at = 0; at < records.size(); at += size) blocks += gzip(records.substr(at, size));
    EXPECT_EQ(urls_in(blocks), 3u) << "blocks of " << size;
  }
  EXPECT_EQ(urls_in(gzip(plain("0", "zero") + end) + gzip(records)), 4u);
  std::string damaged = gzip(records) + std::string(100, '\0') + gzip(plain("4", "four") + end);
  EXPECT_EQ(urls_in(damaged), 4u) << "and what is behind it";
  foreign_ = gzip(records);
  const auto replay = open({written()});
  for (const auto& [url, body] :
       {std::pair{"http://a.test/2", long_body}, {"http://a.test/3", "three"}, {"http://a.test/1", "one"}}) {
    ASSERT_TRUE(ask(replay, url)) << url;
    EXPECT_EQ(response_.body, body);
  }
}

TEST_F(WarcReplayTest, FindsRecordsOfWhichItsIndexSaysNothing) {
  std::vector<std::size_t> begins;
  for (const char* page : {"1", "2", "3", "4"}) {
    begins.push_back(foreign_.size());
    add(std::string("http://a.test/") + page, std::string("HTTP/1.1 200 OK\r\n\r\n") + page);
  }
  const std::string file = written();
  const auto line = [&](std::size_t i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1] : foreign_.size();
    return "test,a)/" + std::to_string(i + 1) + " 20260101000000 {\"url\":\"http://a.test/" + std::to_string(i + 1) +
           "\",\"status\":\"200\",\"length\":\"" + std::to_string(end - begins[i]) + "\",\"offset\":\"" +
           std::to_string(begins[i]) + "\",\"filename\":\"foreign.warc.gz\"}\n";
  };
  for (const std::string& index : {line(3), line(1), line(2) + line(0), line(0) + line(3), std::string("nothing\n")}) {
    std::ofstream(folder_.file("foreign.cdxj"), std::ios::trunc) << index;
    const auto replay = open({file});
    EXPECT_EQ(replay->urls(), 4u) << index;
    for (const char* page : {"1", "2", "3", "4"}) {
      ASSERT_TRUE(ask(replay, std::string("http://a.test/") + page)) << index;
      EXPECT_EQ(response_.body, page);
    }
  }
}

// As when an archive was made anew in the place of another, whose index is still there.
TEST_F(WarcReplayTest, PassesOverAnIndexThatIsOfAnotherFile) {
  std::vector<std::size_t> begins;
  for (const char* page : {"1", "2", "3"}) {
    begins.push_back(foreign_.size());
    add(std::string("http://a.test/") + page, std::string("HTTP/1.1 200 OK\r\n\r\n") + page);
  }
  const std::string file = written();
  const auto line = [&](const std::string& page, std::size_t offset) {
    return "test,a)/" + page + " 20260101000000 {\"url\":\"http://a.test/" + page +
           "\",\"status\":\"200\",\"length\":\"20\",\"offset\":\"" + std::to_string(offset) +
           "\",\"filename\":\"foreign.warc.gz\"}\n";
  };
  for (const std::string& index :
       {line("1", 7), line("2", begins[0]), line("1", begins[0]) + line("2", begins[1] + 1), line("4", begins[2])}) {
    std::ofstream(folder_.file("foreign.cdxj"), std::ios::trunc) << index;
    const auto replay = open({file});
    EXPECT_EQ(replay->urls(), 3u) << index;
    for (const char* page : {"1", "2", "3"}) {
      ASSERT_TRUE(ask(replay, std::string("http://a.test/") + page)) << index;
      EXPECT_EQ(response_.body, page);
    }
  }
}

TEST_F(WarcReplayTest, LeavesOutADamagedRecordAndReadsWhatIsBehindIt) {
  add("http://a.test/1", "HTTP/1.1 200 OK\r\n\r\none");
  const std::size_t second = foreign_.size();
  add("http://a.test/2", "HTTP/1.1 200 OK\r\n\r\ntwo");
  add("http://a.test/3", "HTTP/1.1 200 OK\r\n\r\nthree");
  foreign_[second + 30] ^= 0x55;
  foreign_ += std::string(600, '\0');  // as after a power cut
  const auto replay = open({written()});
  EXPECT_EQ(replay->urls(), 2u);
  ASSERT_TRUE(ask(replay, "http://a.test/3"));
  EXPECT_EQ(response_.body, "three");
}

TEST_F(WarcReplayTest, ReadsWhatWasArchivedByTheIndexAndWithoutIt) {
  ManualClock clock;
  const std::string path = folder_.file("site");
  auto archive = WarcArchive::open(
      {.path = path, .most_bytes = 3000, .info = {{std::string(kWarcSeedField), "http://a.test/7"}}}, clock, Random{1});
  ASSERT_TRUE(archive);
  const auto body = [](int i) {
    return std::string(1000 + static_cast<std::size_t>(i), static_cast<char>('a' + i % 20));
  };
  for (int i = 0; i < 40; ++i) {
    HttpRequest asked;
    asked.url = *Url::parse("http://a.test/" + std::to_string(i));
    HttpResponse given;
    given.status = 200;
    given.body = body(i % 30);  // the last ten are revisits
    given.wire.head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    WarcExchange exchange;
    exchange.assign(asked, given, clock.wall_now());
    ASSERT_TRUE((*archive)->add(exchange));
  }
  ASSERT_TRUE((*archive)->write_out());
  const auto read_all = [&](std::string_view which) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(path).parent_path())) {
      if (entry.path().string().ends_with(".warc.gz")) files.push_back(entry.path().string());
    }
    EXPECT_GE(files.size(), 2u);
    const auto replay = open(files);
    EXPECT_EQ(replay->urls(), 40u) << which;
    ASSERT_EQ(replay->seeds().size(), 1u);
    EXPECT_EQ(replay->seeds()[0].href(), "http://a.test/7");
    for (int i = 0; i < 40; ++i) {
      const auto sent = ask(replay, "http://a.test/" + std::to_string(i));
      ASSERT_TRUE(sent) << which << ": " << sent.error().message;
      EXPECT_EQ(response_.body, body(i % 30)) << which << ' ' << i;
    }
  };
  read_all("while it is written");
  std::filesystem::copy_file(path + ".cdxj", path + ".written");
  ASSERT_TRUE((*archive)->close());
  read_all("with its index");
  std::filesystem::rename(path + ".written", path + ".cdxj");
  std::filesystem::resize_file(path + ".cdxj", std::filesystem::file_size(path + ".cdxj") / 2);
  read_all("with half of one that was being written");
  std::filesystem::remove(path + ".cdxj");
  read_all("without one");
}

TEST_F(WarcReplayTest, BeginsWithTheFirstPageWhereNoSeedIsTold) {
  add("http://a.test/robots.txt", "HTTP/1.1 404 No\r\n\r\n");
  add("http://a.test/start", "HTTP/1.1 200 OK\r\n\r\n");
  add("http://a.test/", "HTTP/1.1 200 OK\r\n\r\n");
  const auto replay = open({written()});
  ASSERT_EQ(replay->seeds().size(), 1u);
  EXPECT_EQ(replay->seeds()[0].href(), "http://a.test/start");
}

TEST_F(WarcReplayTest, TakesNoAnswerOfNotModifiedForThePage) {
  const std::string profile = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n";
  add("http://a.test/1", "HTTP/1.1 200 OK\r\n\r\none");
  add("http://a.test/1", "HTTP/1.1 304 Not Modified\r\n\r\n", "2026-01-02T00:00:00Z");
  add("http://a.test/2", "HTTP/1.1 200 OK\r\n\r\ntwo");
  add("http://a.test/2", "HTTP/1.1 304 Not Modified\r\n\r\n", "2026-01-02T00:00:00Z", "revisit", profile);
  const auto replay = open({written()});
  ASSERT_TRUE(ask(replay, "http://a.test/1"));
  EXPECT_EQ(response_.body, "one");
  ASSERT_TRUE(ask(replay, "http://a.test/2"));
  EXPECT_EQ(response_.body, "two");
}

TEST_F(WarcReplayTest, TakesNoAnswerToAnotherMethodThanGet) {
  const auto id = [](int number) { return "WARC-Record-ID: <urn:x:" + std::to_string(number) + ">\r\n"; };
  const auto names = [](int number) { return "WARC-Concurrent-To: <urn:x:" + std::to_string(number) + ">\r\n"; };
  const std::string form = "HTTP/1.1 200 OK\r\n\r\nform", sent = "HTTP/1.1 200 OK\r\n\r\nwelcome";
  add("http://a.test/before", form, "2026-01-01T00:00:00Z", "response", id(1));
  add("http://a.test/before", "POST /before HTTP/1.1\r\n\r\n", "2026-01-02T00:00:00Z", "request", id(2) + names(3));
  add("http://a.test/before", sent, "2026-01-02T00:00:00Z", "response", id(3));
  add("http://a.test/behind", form, "2026-01-01T00:00:00Z", "response", id(4));
  add("http://a.test/behind", "GET /behind HTTP/1.1\r\n\r\n", "2026-01-01T00:00:00Z", "request", id(5) + names(4));
  add("http://a.test/behind", sent, "2026-01-02T00:00:00Z", "response", id(6) + names(7));
  add("http://a.test/behind", "POST /behind HTTP/1.1\r\n\r\n", "2026-01-02T00:00:00Z", "request", id(7));
  add("http://a.test/head", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nform", "2026-01-01T00:00:00Z", "response",
      id(8));
  add("http://a.test/head", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", "2026-01-02T00:00:00Z", "response", id(9));
  add("http://a.test/head", "HEAD /head HTTP/1.1\r\n\r\n", "2026-01-02T00:00:00Z", "request", names(9));
  const auto replay = open({written()});
  for (const std::string path : {"before", "behind", "head"}) {
    ASSERT_TRUE(ask(replay, "http://a.test/" + path)) << path;
    EXPECT_EQ(response_.body, "form") << path;
  }
}

TEST_F(WarcReplayTest, MeasuresARecordThatDoesNotSayHowLongItIs) {
  const auto record = [](const std::string& url, const std::string& length) {
    return "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/" + url + "\r\nno field\r\n" + length +
           "\r\nHTTP/1.1 200 OK\r\n\r\nhello\n\n" + url + "\r\n\r\n";
  };
  const std::string records[] = {record("1", ""), record("2", "Content-Length: +17\r\n"),
                                 record("3", "Content-Length:\r\n")};
  for (const bool is_packed : {false, true}) {
    foreign_.clear();
    for (const std::string& one : records) foreign_ += is_packed ? gzip(one) : one;
    const auto replay = open({written()});
    EXPECT_EQ(replay->urls(), 3u) << is_packed;
    for (const std::string url : {"1", "2", "3"}) {
      ASSERT_TRUE(ask(replay, "http://a.test/" + url)) << url;
      EXPECT_EQ(response_.body, "hello\n\n" + url) << is_packed;
    }
  }
}

TEST_F(WarcReplayTest, ReadsWhatIsPackedByZstdWithADictionaryToo) {
  const auto packed = [](std::string_view text, std::string_view dictionary) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
    out.resize(ZSTD_compress_usingDict(context.get(), out.data(), out.size(), text.data(), text.size(),
                                       dictionary.data(), dictionary.size(), 3));
    return out;
  };
  const auto in_frame = [](const std::string& dictionary) {
    std::string frame("\x5d\x2a\x4d\x18");
    for (int by = 0; by < 32; by += 8) frame += static_cast<char>(dictionary.size() >> by & 0xff);
    return frame + dictionary;
  };
  const std::string head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/";
  const auto record = [&](const std::string& url) {
    return head + url + "\r\nContent-Length: 24\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhello\r\n\r\n";
  };
  const std::string info =
      "WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 31\r\n\r\nargiope-seed: http://a.test/2\r\n\r\n\r\n";
  const std::string dictionary = head + "common to all of them";
  const std::string files[] = {packed(info, "") + packed(record("1"), "") + packed(record("2"), ""),
                               packed(info + record("1") + record("2"), ""),
                               in_frame(dictionary) + packed(info, dictionary) + packed(record("1"), dictionary) +
                                   packed(record("2"), dictionary),
                               in_frame(packed(dictionary, "")) + packed(info, dictionary) +
                                   packed(record("1"), dictionary) + packed(record("2"), dictionary)};
  for (const std::string& file : files) {
    foreign_ = file;
    const auto replay = open({written()});
    EXPECT_EQ(replay->urls(), 2u);
    ASSERT_EQ(replay->seeds().size(), 1u);
    EXPECT_EQ(replay->seeds()[0].href(), "http://a.test/2");
    ASSERT_TRUE(ask(replay, "http://a.test/2"));
    EXPECT_EQ(response_.body, "hello");
  }
}

TEST_F(WarcReplayTest, TakesThePayloadThatARevisitKeepsAndTheCodingThatItLeavesOut) {
  const std::string profile = "WARC-Profile: http://example.org/a-profile-of-its-own\r\n";
  const std::string digest = "WARC-Payload-Digest: sha1:T9hC7AUmvKzqvP7H3XqTInAgrco=\r\n";
  add("http://a.test/kept", "HTTP/1.1 200 OK\r\n\r\nhello", "2026-01-01T00:00:00Z", "revisit", profile);
  add("http://a.test/coded", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip("hello"),
      "2026-01-01T00:00:00Z", "response", digest);
  add("http://a.test/same", "HTTP/1.1 200 OK\r\nETag: \"2\"\r\n\r\n", "2026-01-02T00:00:00Z", "revisit",
      profile + digest);
  add("http://a.test/named", "HTTP/1.1 200 OK\r\nETag: \"2\"\r\nContent-Encoding: gzip\r\n\r\n", "2026-01-02T00:00:00Z",
      "revisit", profile + digest);
  add("http://a.test/named-small", "HTTP/1.1 200 OK\r\netag: \"2\"\r\ncontent-encoding: gzip\r\n\r\n",
      "2026-01-02T00:00:00Z", "revisit", profile + digest);
  const auto replay = open({written()});
  for (const std::string path : {"kept", "same", "named", "named-small"}) {
    const auto sent = ask(replay, "http://a.test/" + path);
    ASSERT_TRUE(sent) << sent.error().message;
    EXPECT_EQ(response_.body, "hello") << path;
  }
  EXPECT_EQ(response_.headers.etag, "\"2\"");
}

TEST_F(WarcReplayTest, SaysWhatAFileIsThatIsNoWarcFile) {
  const std::pair<std::string, std::string> files[] = {
      {"BZh91AY&SY", "bzip2"},
      {std::string("\xfd"
                   "7zXZ\0",
                   6),
       "by xz"},
      {"PK\x03\x04", "WACZ"},
      {"filedesc://a.arc 0.0.0.0 20260101000000 text/plain 76\n", "ARC"}};
  for (const auto& [begin, what] : files) {
    foreign_ = begin;
    const auto refused = WarcReplay::open({written()});
    ASSERT_FALSE(refused) << what;
    EXPECT_EQ(refused.error().code, Errc::wrong_format);
    EXPECT_THAT(refused.error().message, HasSubstr(what));
  }
}

TEST_F(WarcReplayTest, ReadsATornFileAsFarAsItIsWholeAndRefusesOthers) {
  add("http://a.test/1", "HTTP/1.1 200 OK\r\n\r\nhello");
  const std::size_t whole = foreign_.size();
  add("http://a.test/2", "HTTP/1.1 200 OK\r\n\r\nhello");
  const std::string file = written();
  std::filesystem::resize_file(file, whole + 20);
  EXPECT_EQ(open({file})->urls(), 1u);
  foreign_ = "no archive at all";
  const auto refused = WarcReplay::open({written()});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::wrong_format);
  const auto absent = WarcReplay::open({folder_.file("absent.warc.gz")});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Errc::not_found);
}

}  // namespace
}  // namespace argiope
