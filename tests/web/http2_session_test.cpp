// Http2Session without sockets: what hostile servers send, frame by frame.
#include "web/http/http2_session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <memory>
#include <string>

#include "support/http2_server.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;

// The session, and one request that it has sent.
class Http2SessionTest : public ::testing::Test {
 public:
  Http2SessionTest() {
    session.start(stream, head);
    session.fill(sent, 1 << 20);
  }
  ~Http2SessionTest() override { session.stop(stream); }

  // The server's preface: SETTINGS without an entry.
  static std::string settings() { return http2_frame(NGHTTP2_SETTINGS, 0, 0, {}); }
  static std::string headers(std::string_view block, std::uint8_t flags = NGHTTP2_FLAG_END_HEADERS) {
    return http2_frame(NGHTTP2_HEADERS, flags, 1, block);
  }
  static std::string ok() { return "\x88"; }  // :status 200, of HPACK's static table
  static std::string data(std::string_view bytes, std::uint8_t flags = 0) {
    return http2_frame(NGHTTP2_DATA, flags, 1, bytes);
  }
  void receive(const std::string& bytes) {
    session.receive(bytes);
    sent.clear();
    session.fill(sent, 1 << 20);
    if (session.is_over()) session.lose(nullptr);
  }
  void expect_end(Errc code, const char* message) {
    ASSERT_EQ(stream.end, Http2End::failed);
    EXPECT_EQ(stream.error.code, code);
    EXPECT_THAT(stream.error.message, HasSubstr(message));
  }

  HttpResponse response;
  ContentDecoder decoder;
  HttpReaderLimits limits;
  std::string head = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
  std::string sent;
  Http2Session session{{.header_bytes = 64 * 1024, .streams = 10}};
  Http2Stream stream{response, decoder, limits, HttpMethod::get};
};

TEST_F(Http2SessionTest, ReadsAResponseInPiecesOfAnySize) {
  const std::string all = settings() + headers(ok()) + data("hel") + data("lo", NGHTTP2_FLAG_END_STREAM);
  for (const char byte : all) receive({byte});
  EXPECT_EQ(stream.end, Http2End::whole);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "hello");
  EXPECT_EQ(response.wire_bytes, 9u + 1 + 9 + 3 + 9 + 2);
  EXPECT_FALSE(session.is_over());
  EXPECT_EQ(session.active(), 0u);
}

TEST_F(Http2SessionTest, AFloodOfContinuationsEndsTheSession) {
  receive(settings());
  session.receive(headers(ok(), 0));
  for (int i = 0; i < 1000 && !session.is_broken() && !session.is_over(); ++i) {
    receive(http2_frame(NGHTTP2_CONTINUATION, 0, 1, ""));
  }
  EXPECT_TRUE(session.is_over());
  ASSERT_EQ(stream.end, Http2End::failed);
  EXPECT_EQ(stream.error.code, Errc::protocol);
}

TEST_F(Http2SessionTest, AHeaderBombIsCutOffAtTheLimitOfHeads) {
  // A field of 4,000 bytes into the table, and then that field by its number, byte by byte.
  std::string block = ok();
  block += "\x40\x01x\x7f";
  block += "\xa1\x1e";  // 127 + 0xa1 - 0x80 + 0x1e * 128 = 4,000
  block += std::string(4000, 'a');
  block += std::string(10'000, '\xbe');
  receive(settings() + headers(block, NGHTTP2_FLAG_END_HEADERS));
  expect_end(Errc::too_large, "response header larger than 262144 bytes");
  EXPECT_FALSE(session.is_over());
}

TEST_F(Http2SessionTest, TrailersCountAsHeadersDo) {
  std::string block;
  for (int i = 0; i < 2000; ++i) block += std::string("\0\1a\1b", 5);
  receive(settings() + headers(ok()) + data("hello") +
          http2_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, block));
  expect_end(Errc::too_large, "more than 1000 response header fields");
}

TEST_F(Http2SessionTest, AHeadThatRepeatsOrMissesItsStatusIsRefused) {
  receive(settings() + headers("\x88\x88"));
  ASSERT_EQ(stream.end, Http2End::failed);
  EXPECT_EQ(stream.error.code, Errc::protocol);
}

TEST_F(Http2SessionTest, ABodyBeforeItsHeadIsRefused) {
  receive(settings() + data("hello"));
  ASSERT_EQ(stream.end, Http2End::failed);
  EXPECT_EQ(stream.error.code, Errc::protocol);
}

TEST_F(Http2SessionTest, APushIsRefusedAndOneAfterTheServerHasHeardThatEndsTheSession) {
  // Host comes as :authority, and the stream's own head is another one.
  const std::string request = "\x82\x87\x84\x41\x01h";
  receive(settings() +
          http2_frame(NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, std::string("\0\0\0\2", 4) + request));
  EXPECT_THAT(sent, HasSubstr(http2_frame(NGHTTP2_RST_STREAM, 0, 2, std::string("\0\0\0\x08", 4))));
  EXPECT_FALSE(stream.answered);
  receive(http2_frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, {}));
  EXPECT_FALSE(session.is_over());
  receive(http2_frame(NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, std::string("\0\0\0\4", 4) + request));
  EXPECT_TRUE(session.is_over());
  expect_end(Errc::protocol, "bad HTTP/2: ");
}

TEST_F(Http2SessionTest, AFrameThatIsLargerThanAllowedEndsTheSession) {
  receive(settings() + data(std::string(20'000, 'x')));
  EXPECT_TRUE(session.is_over());
  ASSERT_EQ(stream.end, Http2End::failed);
}

TEST_F(Http2SessionTest, AFloodOfPingsOrSettingsIsBounded) {
  // Nothing takes what is to be sent: answers pile up, until that is too many.
  session.receive(settings());
  for (int i = 0; i < 5000 && !session.is_broken(); ++i) {
    session.receive(http2_frame(NGHTTP2_PING, 0, 0, "12345678"));
    session.receive(settings());
  }
  EXPECT_TRUE(session.is_broken());
  session.lose(nullptr);
  expect_end(Errc::protocol, "bad HTTP/2: ");
}

TEST_F(Http2SessionTest, AFloodOfFramesThatBringNothingEndsTheSession) {
  const std::string windows = http2_frame(NGHTTP2_WINDOW_UPDATE, 0, 0, std::string("\0\0\0\1", 4));
  receive(settings() + headers(ok()));
  for (int i = 0; i < 900; ++i) receive(i % 2 == 0 ? windows : data(""));
  receive(data("hel"));
  for (int i = 0; i < 900; ++i) receive(data(""));
  receive(data("lo"));
  EXPECT_EQ(response.body, "hello");
  EXPECT_FALSE(session.is_over());
  for (int i = 0; i < 1100 && !session.is_broken(); ++i) receive(data(""));
  EXPECT_TRUE(session.is_over());
  EXPECT_EQ(stream.end, Http2End::whole);
  EXPECT_THAT(response.damage, HasSubstr("bad HTTP/2: a flood of frames that bring nothing"));
}

TEST_F(Http2SessionTest, FieldsThatAreNoneArePassedOver) {
  receive(settings() +
          headers(ok() + std::string("\0\3A B\1x\0\4etag\1y", 15), NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM));
  // nghttp2 refuses names in upper case, and passes over other nonsense.
  EXPECT_NE(stream.end, Http2End::open);
}

TEST_F(Http2SessionTest, WhatIsStoppedIsBrokenOffAndHeardOfNoMore) {
  receive(settings() + headers(ok()) + data("hel"));
  session.stop(stream);
  sent.clear();
  session.fill(sent, 1 << 20);
  EXPECT_EQ(sent, http2_frame(NGHTTP2_RST_STREAM, 0, 1, std::string("\0\0\0\x08", 4)));
  session.receive(data("lo", NGHTTP2_FLAG_END_STREAM));
  EXPECT_EQ(response.body, "hel");
  EXPECT_EQ(stream.end, Http2End::open);
  EXPECT_EQ(session.active(), 0u);
}

TEST_F(Http2SessionTest, AGoodbyeLetsStreamsEnd) {
  receive(settings() + http2_frame(NGHTTP2_GOAWAY, 0, 0, std::string("\0\0\0\1\0\0\0\0", 8)));
  EXPECT_FALSE(session.has_room());
  EXPECT_EQ(stream.end, Http2End::open);
  receive(headers(ok(), NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM));
  EXPECT_EQ(stream.end, Http2End::whole);
  EXPECT_TRUE(session.is_over());
}

TEST_F(Http2SessionTest, AGoodbyeBeforeTheStreamLeavesItUnprocessed) {
  receive(settings() + http2_frame(NGHTTP2_GOAWAY, 0, 0, std::string("\0\0\0\0\0\0\0\0", 8)));
  EXPECT_EQ(stream.end, Http2End::unprocessed);
}

}  // namespace
}  // namespace argiope
