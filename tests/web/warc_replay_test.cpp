// Requests answered from archives: ours, and those of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "argiope/web/warc.hpp"
#include "support/deflate.hpp"
#include "support/loop_fixture.hpp"
#include "support/temporary_folder.hpp"
#include "web/internal/sha1.hpp"
#include "web/internal/warc_archive.hpp"

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
  add("http://a.test/both", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\nhello");
  add("http://a.test/by-http2", "HTTP/2 200\r\ncontent-length: 5\r\n\r\nhello");
  add("http://a.test/by-http3", "HTTP/3 200 OK\r\n\r\nhello");
  add("http://a.test/no-end", "HTTP/1.1 200 OK\n\nhello");
  const auto replay = open({written()});
  for (const std::string path : {"gzip", "chunks", "undone", "short", "unpacked", "both", "by-http2", "by-http3", "no-end"}) {
    const auto sent = ask(replay, "http://a.test/" + path);
    ASSERT_TRUE(sent) << path << ": " << sent.error().message;
    EXPECT_EQ(response_.body, "hello") << path;
    EXPECT_EQ(response_.damage, "") << path;
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
  add("http://a.test/3", ok, later, "revisit", refers("http://a.test/1", then) + "WARC-Payload-Digest: sha256:00FF\r\n");
  add("http://a.test/4", ok, later, "revisit", refers("http://a.test/1", then) + "WARC-Payload-Digest: sha256:0000\r\n");
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
