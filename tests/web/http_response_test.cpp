// A response off the wire, without a wire: framing, limits, decoding.
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "web/http_response_reader.hpp"

namespace argiope {
namespace {

class HttpResponseTest : public testing::Test {
 protected:
  // Feeds `bytes` in pieces, and then the end of the stream if `end`.
  Result<void> read(std::string_view bytes, std::size_t piece = 1 << 20, bool end = true,
                    HttpMethod method = HttpMethod::get) {
    HttpResponseReader reader(response_, decoder_, limits_, method);
    std::string pending;
    while (!bytes.empty() && !reader.done()) {
      pending += bytes.substr(0, piece);
      bytes.remove_prefix(std::min(piece, bytes.size()));
      auto used = reader.feed(pending);
      if (!used) return std::unexpected(used.error());
      pending.erase(0, *used);
    }
    left_over_ = pending.size() + bytes.size();
    if (!reader.done() && !end) return fail(Errc::internal, "not done");
    Result<void> ended = reader.feed_end();
    reusable_ = ended && reader.reusable();
    return ended;
  }

  HttpReaderLimits limits_{.header_bytes = 4096, .header_fields = 20, .body_bytes = 100'000};
  ContentDecoder decoder_;
  HttpResponse response_;
  bool reusable_ = false;
  std::size_t left_over_ = 0;
};

TEST_F(HttpResponseTest, IsReadInPiecesOfAnySize) {
  const std::string bytes =
      "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"x\"\r\nContent-Length: 5\r\nX-Robots-Tag: nofollow\r\n\r\nhello";
  for (const std::size_t piece : {1, 2, 7, 1000}) {
    ASSERT_TRUE(read(bytes, piece, false));
    EXPECT_EQ(response_.status, 200);
    EXPECT_EQ(response_.body, "hello");
    EXPECT_EQ(response_.headers.content_type, "text/html");
    EXPECT_EQ(response_.headers.etag, "\"x\"");
    EXPECT_EQ(response_.headers.robots_tag, "nofollow");
    EXPECT_TRUE(reusable_);
  }
}

TEST_F(HttpResponseTest, JoinsChunks) {
  ASSERT_TRUE(read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n", 3, false));
  EXPECT_EQ(response_.body, "abcde");
  EXPECT_TRUE(reusable_);
}

TEST_F(HttpResponseTest, LastsUntilTheEndWithoutALength) {
  ASSERT_TRUE(read("HTTP/1.1 200 OK\r\n\r\nall of it"));
  EXPECT_EQ(response_.body, "all of it");
  EXPECT_FALSE(reusable_);
}

TEST_F(HttpResponseTest, MustBeAsLongAsItSays) {
  const auto cut = read("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Errc::network);
  EXPECT_NE(cut.error().message.find("6 bytes"), std::string::npos) << cut.error().message;
  ASSERT_TRUE(read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcMORE"));
  EXPECT_EQ(response_.body, "abc");
  EXPECT_EQ(left_over_, 4u);
}

TEST_F(HttpResponseTest, EndsEarlyWithAnErrorEverywhere) {
  EXPECT_EQ(read("").error().code, Errc::network);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-").error().code, Errc::network);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab").error().code, Errc::network);
}

TEST_F(HttpResponseTest, HasNoBodyForHeadAndFor304) {
  ASSERT_TRUE(read("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", 100, false, HttpMethod::head));
  EXPECT_TRUE(reusable_);
  ASSERT_TRUE(read("HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\n\r\n", 100, false));
  EXPECT_TRUE(reusable_);
}

TEST_F(HttpResponseTest, IsNotReusedWhenItSaysSo) {
  ASSERT_TRUE(read("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 100, false));
  EXPECT_FALSE(reusable_);
  ASSERT_TRUE(read("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 100, false));
  EXPECT_FALSE(reusable_);
}

TEST_F(HttpResponseTest, BoundsItsHead) {
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nX: " + std::string(10'000, 'x') + "\r\n\r\n", 100).error().code, Errc::too_large);
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 50; ++i) many += "X: y\r\n";
  EXPECT_EQ(read(many + "\r\n").error().code, Errc::too_large);
}

TEST_F(HttpResponseTest, CutsItsBodyOffAtTheLimit) {
  ASSERT_TRUE(read("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + std::string(200'000, 'x'), 5000));
  EXPECT_TRUE(response_.truncated);
  EXPECT_EQ(response_.body.size(), limits_.body_bytes);
  EXPECT_FALSE(reusable_);
}

TEST_F(HttpResponseTest, IsRefusedWhenItIsNotHttp) {
  for (const char* bytes : {"\x16\x03\x01 nonsense\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    const auto refused = read(bytes);
    ASSERT_FALSE(refused) << bytes;
    EXPECT_EQ(refused.error().code, Errc::protocol) << bytes << ": " << refused.error().message;
  }
}

TEST_F(HttpResponseTest, DecodesItsBody) {
  const std::string text(5000, 'a');
  std::string packed(compressBound(text.size()), '\0');
  uLongf size = packed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(text.data()), text.size()), Z_OK);
  packed.resize(size);
  ASSERT_TRUE(read("HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" + packed, 3, false));
  EXPECT_EQ(response_.body, text);
  EXPECT_TRUE(reusable_);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Encoding: rot13\r\nContent-Length: 1\r\n\r\nx").error().code, Errc::unsupported);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nxxxx").error().code, Errc::protocol);
}

TEST_F(HttpResponseTest, AnnouncesItselfAsInterim) {
  HttpResponseReader reader(response_, decoder_, limits_, HttpMethod::get);
  const std::string_view bytes = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
  const auto used = reader.feed(bytes);
  ASSERT_TRUE(used);
  EXPECT_TRUE(reader.done());
  EXPECT_TRUE(reader.interim());
  EXPECT_EQ(bytes.substr(*used), "HTTP/1.1 200 OK\r\n\r\n");
}

}  // namespace
}  // namespace argiope
