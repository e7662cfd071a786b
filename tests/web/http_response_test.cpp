#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/deflate.hpp"
#include "web/http/internal/http_response_reader.hpp"

namespace argiope {
namespace {

std::string with_length(std::string_view headers, std::string_view body) {
  return "HTTP/1.1 200 OK\r\n" + std::string(headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

// One connection's bytes, as a client passes them on: what was not used goes in front of the next piece.
struct Reading {
  HttpResponse response;
  std::size_t surplus = 0;
  bool done = false;
  bool reusable = false;
  bool interim = false;
  Result<void> verdict;

  explicit Reading(std::string_view wire, std::size_t piece = std::string_view::npos, bool closed = true,
                   HttpReaderLimits limits = {}, HttpMethod method = HttpMethod::get) {
    ContentDecoder decoder;
    HttpResponseReader reader(response, decoder, limits, method);
    std::string waiting;
    while (!wire.empty() && !reader.done()) {
      waiting.append(wire.substr(0, piece));
      wire.remove_prefix(std::min(piece, wire.size()));
      auto used = reader.feed(waiting);
      if (!used) {
        verdict = std::unexpected(used.error());
        return;
      }
      waiting.erase(0, *used);
    }
    surplus = waiting.size() + wire.size();
    if (!reader.done() && closed) verdict = reader.feed_end();
    done = reader.done();
    reusable = reader.reusable();
    interim = reader.interim();
  }
};

Errc error_of(const Reading& reading) {
  EXPECT_FALSE(reading.verdict.has_value()) << reading.response.body;
  return reading.verdict ? Errc::internal : reading.verdict.error().code;
}

bool is_noted(const Reading& reading, HttpOddity oddity) {
  return (reading.response.oddities >> static_cast<unsigned>(oddity) & 1) != 0;
}

constexpr std::string_view kChunkedAnswer =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5\r\nhello\r\n7;note=\"x\"\r\n, world\r\n0\r\nX-Trailer: yes\r\n\r\n";

TEST(HttpResponse, IsReadInPiecesOfAnySize) {
  const std::string plain = with_length("ETag: \"a\"\r\n", "hello, world");
  const std::string packed = with_length("Content-Encoding: gzip\r\n", gzip("hello, world"));
  const std::string to_the_end = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\n\r\nhello, world";
  for (const std::string_view wire :
       {std::string_view{plain}, std::string_view{packed}, kChunkedAnswer, std::string_view{to_the_end}}) {
    for (const std::size_t piece : {1, 2, 3, 5, 17, 4096}) {
      const Reading reading(wire, piece);
      ASSERT_TRUE(reading.verdict) << reading.verdict.error().message << " in pieces of " << piece << ":\n" << wire;
      EXPECT_TRUE(reading.done);
      EXPECT_EQ(reading.response.status, 200);
      EXPECT_EQ(reading.response.body, "hello, world");
      EXPECT_FALSE(reading.response.truncated);
      EXPECT_EQ(reading.surplus, 0u);
    }
  }
}

TEST(HttpResponse, LeavesTheConnectionReusableUnlessItsEndWasTheBodys) {
  EXPECT_TRUE(Reading(with_length("", "x")).reusable);
  EXPECT_TRUE(Reading(kChunkedAnswer).reusable);
  EXPECT_FALSE(Reading(with_length("Connection: close\r\n", "x")).reusable);
  EXPECT_FALSE(Reading("HTTP/1.1 200 OK\r\n\r\nx").reusable);
  EXPECT_FALSE(Reading("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx").reusable);
  EXPECT_TRUE(Reading("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx").reusable);
  EXPECT_FALSE(Reading("HTTP/1.0 200 OK\r\nConnection: keep-alive, Close\r\nContent-Length: 1\r\n\r\nx").reusable);
}

TEST(HttpResponse, KeepsTheFieldsACrawlerAsksFor) {
  const Reading reading(with_length(
      "content-TYPE:  text/html; charset=utf-8 \r\nETag: W/\"1\"\r\nLast-Modified: Tue, 15 Nov 1994 12:45:26 GMT\r\n"
      "Location: /next\r\nRetry-After: 120\r\nREFRESH: 0;url='x'\r\nX-Robots-Tag: noindex\r\nServer: "
      "x\r\nX-ROBOTS-TAG: bot: nofollow\r\n",
      "body"));
  ASSERT_TRUE(reading.verdict);
  const HttpHeaders& headers = reading.response.headers;
  EXPECT_EQ(headers.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(headers.etag, "W/\"1\"");
  EXPECT_EQ(headers.last_modified, "Tue, 15 Nov 1994 12:45:26 GMT");
  EXPECT_EQ(headers.location, "/next");
  EXPECT_EQ(headers.retry_after, "120");
  EXPECT_EQ(headers.refresh, "0;url='x'");
  EXPECT_EQ(headers.robots_tag, "noindex\nbot: nofollow");
  EXPECT_EQ(headers.content_length, 4u);
}

TEST(HttpResponse, HasAListOfContentTypesAndTheFirstOfOtherRepeatedFields) {
  const Reading reading(
      with_length("Content-Type: text/html\r\nContent-Type: image/png\r\nETag: \"1\"\r\nETag: \"2\"\r\n", ""));
  EXPECT_EQ(reading.response.headers.content_type, "text/html, image/png");
  EXPECT_EQ(reading.response.headers.etag, "\"1\"");
}

// "If-None-Match: *" would never be answered with the page again.
TEST(HttpResponse, TakesNoStarForAValidator) {
  const Reading reading(with_length("ETag: *\r\nLast-Modified: *\r\nETag: *\r\n", "x"));
  EXPECT_EQ(reading.response.headers.etag, "");
  EXPECT_EQ(reading.response.headers.last_modified, "");
}

TEST(HttpResponse, ForgetsWhatTheReusedObjectHeldBefore) {
  HttpResponse response;
  ContentDecoder decoder;
  for (const bool first : {true, false}) {
    HttpResponseReader reader(response, decoder, {.body_bytes = 3}, HttpMethod::get);
    ASSERT_TRUE(reader.feed(first ? with_length("ETag: \"a\"\r\nContent-Encoding: gzip\r\n", gzip("abcdef"))
                                  : "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"));
    EXPECT_EQ(response.truncated, first);
  }
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "x");
  EXPECT_EQ(response.headers.etag, "");
  EXPECT_EQ(response.headers.content_encoding, "");
  EXPECT_EQ(response.headers.content_length, std::nullopt);
}

TEST(HttpResponse, HasNoBodyAfterHeadNor204Nor304WhateverItsFieldsSay) {
  const Reading head(with_length("Content-Encoding: gzip\r\n", ""), 1, false, {}, HttpMethod::head);
  EXPECT_TRUE(head.done);
  EXPECT_TRUE(head.reusable);

  const std::string_view fields = "\r\nETag: \"a\"\r\nContent-Length: 1000\r\nContent-Encoding: gzip\r\n\r\n";
  const Reading head_with_length("HTTP/1.1 200 OK" + std::string(fields), 1, false, {}, HttpMethod::head);
  EXPECT_TRUE(head_with_length.done);
  EXPECT_TRUE(head_with_length.reusable);
  EXPECT_EQ(head_with_length.response.body, "");
  EXPECT_EQ(head_with_length.response.headers.content_length, 1000u);

  const Reading head_chunked("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 1, false, {}, HttpMethod::head);
  EXPECT_TRUE(head_chunked.done);
  EXPECT_TRUE(head_chunked.reusable);

  for (const char* status : {"HTTP/1.1 304 Not Modified", "HTTP/1.1 204 No Content"}) {
    const Reading reading(status + std::string(fields), 1, false);
    EXPECT_TRUE(reading.done);
    EXPECT_EQ(reading.reusable, reading.response.status == 304) << "204 has no length";
    EXPECT_EQ(reading.response.headers.etag, "\"a\"");
    EXPECT_EQ(reading.response.headers.content_length, 1000u);
  }
}

TEST(HttpResponse, SaysItIsInterimAndWhereTheRealOneBegins) {
  const std::string real = with_length("", "x");
  const std::string interim = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
  const Reading reading(interim + real);
  EXPECT_TRUE(reading.done);
  EXPECT_TRUE(reading.interim);
  EXPECT_EQ(reading.surplus, real.size());
  EXPECT_FALSE(Reading(real).interim);
}

TEST(HttpResponse, CountsWhatCameBeyondItsEnd) {
  EXPECT_EQ(Reading(with_length("", "abc") + "HTTP/1.1 200 again").surplus, 18u);
  EXPECT_EQ(Reading(std::string(kChunkedAnswer) + "zzz").surplus, 3u);
}

TEST(HttpResponse, IsANetworkErrorWhenTheConnectionEndsInsideIt) {
  for (const char* wire :
       {"", "HTTP/1.", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nETag: \"a\"\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n"}) {
    EXPECT_EQ(error_of(Reading(wire)), Errc::network) << wire;
  }
}

TEST(HttpResponse, KeepsWhatCameOfABodyThatIsCutShort) {
  const std::string packed = gzip(std::string(10000, 'a') + "and then");
  const std::pair<std::string, std::string> cases[] = {
      {"Content-Length: 10\r\n\r\nabc", "connection closed with 7 bytes of the body missing"},
      {"Transfer-Encoding: chunked\r\n\r\n4\r\nab", "connection closed inside the body"},
      {"Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n", "connection closed inside the body"},
      {"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
       "bad HTTP response: a chunk of another size than it says"},
      {"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n", "bad HTTP response: the size of a chunk"},
      {"Content-Encoding: gzip\r\n\r\n" + packed.substr(0, packed.size() - 12), "the compressed body ends too early"}};
  for (const auto& [rest, damage] : cases) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::string_view::npos}) {
      const Reading reading("HTTP/1.1 200 OK\r\n" + rest, piece);
      ASSERT_TRUE(reading.verdict) << reading.verdict.error().message << rest;
      EXPECT_TRUE(reading.done);
      EXPECT_FALSE(reading.reusable);
      EXPECT_EQ(reading.response.damage, damage);
      EXPECT_EQ(reading.response.body.substr(0, 2), rest.contains("gzip") ? "aa" : "ab") << rest;
      EXPECT_TRUE(is_noted(reading, HttpOddity::cut_short));
    }
  }
  HttpResponse response;
  ContentDecoder decoder;
  HttpResponseReader reader(response, decoder, {}, HttpMethod::get);
  ASSERT_TRUE(reader.feed("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"));
  const Error reset{Errc::network, "read: Connection reset by peer"};
  ASSERT_TRUE(reader.feed_end(&reset));
  EXPECT_EQ(response.damage, reset.message);
}

TEST(HttpResponse, KeepsNoBytesThatAreNoText) {
  const Reading reading(
      with_length("Content-Type: text/html\xa0\r\nETag: \"\xe9\"\r\nLast-Modified: \xff\r\nETag: \"a\"\r\n", "x"));
  ASSERT_TRUE(reading.verdict);
  EXPECT_EQ(reading.response.headers.content_type, "text/html\xef\xbf\xbd");
  EXPECT_EQ(reading.response.headers.etag, "\"a\"") << "one that cannot be stored is passed over";
  EXPECT_EQ(reading.response.headers.last_modified, "");
}

// One kind of odd server a line: what it sends, what is noted.
TEST(HttpResponse, ReadsWhatBrowsersReadAndNotesWhatWasOdd) {
  const struct {
    std::string wire;
    HttpOddity odd;
  } cases[] = {
      {"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::blank_lines},
      {"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::status_line},
      {"HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::status_line},
      {"HTTP/1.1 200OK\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::status_line},
      {"http/1.1 200\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::status_line},
      {"ICY 200 OK\r\nicy-name: radio\r\n\r\nhello", HttpOddity::status_line},
      {"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", HttpOddity::line_feeds},
      {"HTTP/1.0 200 OK\nContent-Type: text/html\n\nhello", HttpOddity::line_feeds},
      {"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::header_line},
      {"HTTP/1.1 200 OK\r\n: none\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::header_line},
      {"HTTP/1.1 200 OK\r\nA B: c\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::header_line},
      {"HTTP/1.1 200 OK\r\nA: b\x01\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::header_line},
      {"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", HttpOddity::header_line},
      {"HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::header_line},
      {"HTTP/1.1 200 OK\r\nX: a\r\n  b\r\n\tc\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::folded_line},
      {"HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\nhello", HttpOddity::folded_line},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::repeated_length},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", HttpOddity::repeated_length},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
       HttpOddity::length_and_chunks},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: x\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
       HttpOddity::length_and_chunks},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", HttpOddity::transfer_coding},
      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", HttpOddity::transfer_coding},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n" + gzip("hello"), HttpOddity::transfer_coding},
      {with_length("Content-Encoding: utf-8\r\n", "hello"), HttpOddity::content_coding},
      {with_length("Content-Encoding: none\r\n", "hello"), HttpOddity::content_coding},
      {with_length("Content-Encoding: gzip\r\n", "hello"), HttpOddity::content_coding},
      {with_length("Content-Encoding: zstd\r\n", "hello"), HttpOddity::content_coding},
      {with_length("Content-Encoding: br\r\n", "hello"), HttpOddity::content_coding},
      {with_length("Content-Encoding: deflate\r\n", "hello"), HttpOddity::content_coding},
      {with_length("Content-Encoding: br, gzip\r\n", "hello"), HttpOddity::content_coding},
      {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nhello", HttpOddity::content_coding},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", HttpOddity::chunks},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", HttpOddity::chunks},
  };
  for (const auto& odd : cases) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{16}, std::string_view::npos}) {
      const Reading reading(odd.wire, piece);
      ASSERT_TRUE(reading.verdict) << reading.verdict.error().message << " in pieces of " << piece << ":\n" << odd.wire;
      EXPECT_EQ(reading.response.body, "hello") << odd.wire;
      EXPECT_EQ(reading.response.status, 200);
      EXPECT_TRUE(is_noted(reading, odd.odd)) << describe_oddities(reading.response.oddities) << "\n" << odd.wire;
      EXPECT_EQ(reading.response.damage, "");
      if (odd.odd != HttpOddity::content_coding) EXPECT_FALSE(reading.reusable) << odd.wire;
    }
  }
}

TEST(HttpResponse, TakesABodyAsItIsThatHasNotTheCodingItNames) {
  std::string page = "<!doctype html><p>";
  while (page.size() < 3000) page += "text that nobody has coded, ";
  for (const char* coding : {"gzip", "br", "deflate", "zstd"}) {
    const std::string wire =
        with_length("Content-Type: text/html\r\nContent-Encoding: " + std::string(coding) + "\r\n", page);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{700}, std::string_view::npos}) {
      const Reading reading(wire, piece);
      ASSERT_TRUE(reading.verdict) << coding << ": " << reading.verdict.error().message;
      EXPECT_EQ(reading.response.body, page) << coding << " in pieces of " << piece;
      EXPECT_TRUE(is_noted(reading, HttpOddity::content_coding)) << coding;
    }
  }
  std::string damaged = gzip(page);
  damaged[12] ^= 0x55;
  EXPECT_FALSE(is_noted(Reading(with_length("Content-Encoding: gzip\r\n", damaged)), HttpOddity::content_coding))
      << "it begins as gzip does";
  EXPECT_FALSE(is_noted(Reading(with_length("Content-Encoding: br\r\n", gzip(page))), HttpOddity::content_coding))
      << "of another coding";
}

TEST(HttpResponse, NotesNothingOfWhatIsAllowed) {
  for (const std::string& wire :
       {with_length("X:\r\nY:a  b \r\n", "hello"), std::string(kChunkedAnswer),
        std::string("HTTP/1.0 200 OK\r\n\r\nhello"), std::string("HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5 ; a=b\r\nhello\r\n00\r\n\r\n"),
        std::string("HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n")}) {
    EXPECT_EQ(Reading(wire).response.oddities, 0) << wire;
  }
  EXPECT_EQ(describe_oddities(1u << 2 | 1u << 11), "bare line feeds, cut short");
}

TEST(HttpResponse, ReadsAFieldThatIsFoldedInPieces) {
  for (const std::size_t piece : {1, 2, 5, 1000}) {
    const Reading reading(with_length("ETag: \"a\r\n   b\"\r\n", "x"), piece);
    EXPECT_EQ(reading.response.headers.etag, "\"a b\"") << piece;
  }
}

TEST(HttpResponse, TakesAnUnexpectedSwitchForTheEnd) {
  const Reading reading("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
  EXPECT_TRUE(reading.done);
  EXPECT_FALSE(reading.interim);
  EXPECT_FALSE(reading.reusable);
}

TEST(HttpResponse, RefusesWhatIsNotHttp) {
  for (const char* wire :
       {"\x16\x03\x01\x02 this is TLS", "<html>hello</html>\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1200 OK\r\n\r\n"}) {
    EXPECT_EQ(error_of(Reading(wire)), Errc::protocol) << wire;
  }
}

TEST(HttpResponse, RefusesLengthsThatAreNoneOrContradict) {
  for (const char* fields :
       {"Content-Length: -1", "Content-Length: 1x", "Content-Length: 99999999999999999999999", "Content-Length: 0x10",
        "Content-Length: 1\r\nContent-Length: 2", "Content-Length: 1, 2"}) {
    const std::string wire = "HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\n\r\nhello";
    EXPECT_EQ(error_of(Reading(wire)), Errc::protocol) << fields;
    EXPECT_EQ(error_of(Reading(wire, 1)), Errc::protocol) << fields;
  }
  for (const char* chunk : {"x\r\nabc\r\n0\r\n\r\n", "-1\r\nabc\r\n", "ffffffffffffffffff\r\nabc", "\r\n\r\n"}) {
    const std::string wire = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(chunk);
    EXPECT_EQ(error_of(Reading(wire)), Errc::protocol) << chunk;
  }
}

TEST(HttpResponse, ClaimsOfAHugeLengthReserveNoMoreThanTheLimit) {
  HttpResponse response;
  ContentDecoder decoder;
  HttpResponseReader reader(response, decoder, {.body_bytes = 4096}, HttpMethod::get);
  ASSERT_TRUE(reader.feed("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nabc"));
  EXPECT_EQ(response.body, "abc");
  EXPECT_LE(response.body.capacity(), 8192u);
  EXPECT_TRUE(reader.feed_end());
  EXPECT_EQ(response.damage, "connection closed with 18446744073709551612 bytes of the body missing");
}

TEST(HttpResponse, BoundsItsHead) {
  const HttpReaderLimits limits{.header_bytes = 1000};
  for (const std::size_t piece : {std::size_t{1}, std::size_t{100}, std::string_view::npos}) {
    const std::string long_field = "HTTP/1.1 200 OK\r\nX: " + std::string(2000, 'a');
    EXPECT_EQ(error_of(Reading(long_field, piece, true, limits)), Errc::too_large) << piece;
    EXPECT_EQ(error_of(Reading(long_field + "\r\n\r\n", piece, true, limits)), Errc::too_large) << piece;
    EXPECT_EQ(error_of(Reading("HTTP/1.1 200 " + std::string(2000, 'a'), piece, true, limits)), Errc::too_large)
        << piece;
    std::string many = "HTTP/1.1 200 OK\r\n";
    for (int i = 0; i < 300; ++i) many += "X: aaa\r\n";
    EXPECT_EQ(error_of(Reading(many + "\r\n", piece, true, limits)), Errc::too_large) << piece;
  }
  EXPECT_TRUE(
      Reading("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: " + std::string(800, 'a') + "\r\n\r\n", 100, true, limits)
          .verdict);
}

TEST(HttpResponse, BoundsTheNumberOfItsFields) {
  const HttpReaderLimits limits{.header_fields = 20};
  const auto with_fields = [](int count) {
    std::string wire = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
    for (int i = 1; i < count; ++i) wire += "X-" + std::to_string(i) + ": y\r\n";
    return wire + "\r\n";
  };
  EXPECT_TRUE(Reading(with_fields(20), 1, true, limits).verdict);
  EXPECT_EQ(error_of(Reading(with_fields(21), 1, true, limits)), Errc::too_large);
}

TEST(HttpResponse, BoundsChunkExtensionsAndTrailers) {
  const HttpReaderLimits limits{.header_bytes = 1000};
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::size_t piece : {std::size_t{1}, std::string_view::npos}) {
    EXPECT_EQ(error_of(Reading(head + "1;" + std::string(5000, 'a'), piece, true, limits)), Errc::too_large);
    EXPECT_EQ(error_of(Reading(head + "0\r\nX: " + std::string(5000, 'a'), piece, true, limits)), Errc::too_large);
  }
  std::string many = head + "0\r\n";
  for (int i = 0; i < 1000; ++i) many += "X: y\r\n";
  EXPECT_EQ(error_of(Reading(many + "\r\n")), Errc::too_large);
}

TEST(HttpResponse, IsCutOffAtTheBodyLimit) {
  const HttpReaderLimits limits{.body_bytes = 5};
  const std::string plain = with_length("", "hello, world");
  const std::string packed = with_length("Content-Encoding: gzip\r\n", gzip("hello, world"));
  const std::string to_the_end = "HTTP/1.1 200 OK\r\n\r\nhello, world";
  for (const std::string_view wire :
       {std::string_view{plain}, std::string_view{packed}, kChunkedAnswer, std::string_view{to_the_end}}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::string_view::npos}) {
      const Reading reading(wire, piece, false, limits);
      EXPECT_TRUE(reading.verdict);
      EXPECT_TRUE(reading.done);
      EXPECT_TRUE(reading.response.truncated);
      EXPECT_FALSE(reading.reusable);
      EXPECT_EQ(reading.response.body, "hello");
    }
  }
  const Reading exact(with_length("", "hello"), 1, false, limits);
  EXPECT_TRUE(exact.done);
  EXPECT_FALSE(exact.response.truncated);
  EXPECT_TRUE(exact.reusable);
  const Reading exact_packed(with_length("Content-Encoding: gzip\r\n", gzip("hello")), 1, false, limits);
  EXPECT_TRUE(exact_packed.done);
  EXPECT_FALSE(exact_packed.response.truncated);
}

TEST(HttpResponse, TakesRepeatedContentEncodingsAsOneList) {
  const std::string twice = gzip(gzip("hello"));
  EXPECT_EQ(Reading(with_length("Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", twice), 3).response.body,
            "hello");
  EXPECT_EQ(Reading(with_length("Content-Encoding: gzip, gzip\r\n", twice), 3).response.body, "hello");
  EXPECT_EQ(Reading(with_length("Content-Encoding: gzip\r\nContent-Encoding: compress\r\n", twice)).response.body,
            twice)
      << "what is not known is not touched";
}

TEST(HttpResponse, TakesIdentityForNoEncoding) {
  EXPECT_EQ(Reading(with_length("Content-Encoding: Identity\r\n", "hello")).response.body, "hello");
  EXPECT_EQ(Reading(with_length("Content-Encoding: \r\n", "hello")).response.body, "hello");
  EXPECT_EQ(Reading(with_length("Content-Encoding: identity, gzip\r\n", gzip("hello"))).response.body, "hello");
}

TEST(HttpResponse, MayBeEmptyThoughEncoded) {
  const Reading reading("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(reading.verdict);
  EXPECT_TRUE(reading.reusable);
}

TEST(HttpResponse, RefusesEncodingsThatGiveNothing) {
  const std::string cut = gzip("hello, world").substr(0, 10);
  EXPECT_EQ(error_of(Reading(with_length("Content-Encoding: gzip\r\n", cut))), Errc::protocol);
  // What has no mark of gzip was never packed, and is taken as it is: TakesABodyAsItIsThatHasNotTheCodingItNames.
  EXPECT_EQ(error_of(Reading(with_length("Content-Encoding: gzip\r\n", "\x1f\x8bplain text"))), Errc::protocol);
}

TEST(HttpResponse, IsRefusedWhenItIsABomb) {
  const std::string bomb = gzip(gzip(std::string(32 * 1024 * 1024, 'a')));
  ASSERT_LT(bomb.size(), 4096u);
  const HttpReaderLimits limits{.body_bytes = 64 * 1024 * 1024};
  const std::string wire = with_length("Content-Encoding: gzip, gzip\r\n", bomb);
  EXPECT_EQ(error_of(Reading(wire, std::string_view::npos, true, limits)), Errc::too_large);
  EXPECT_EQ(error_of(Reading(wire, 10, true, limits)), Errc::too_large);
}

const std::vector<std::string> kHtmlAlone = {"text/html"};

TEST(HttpResponse, ABodyOfAnotherTypeThanIsWantedIsNotKept) {
  const HttpReaderLimits limits{.wanted_types = kHtmlAlone};
  const std::string small = with_length("Content-Type: image/png\r\n", std::string(1000, 'x'));
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  const std::string packed = with_length("Content-Type: image/png\r\nContent-Encoding: gzip\r\n", "this is no gzip");
  for (const std::string& wire : {small, chunked, packed}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::string_view::npos}) {
      const Reading reading(wire, piece, false, limits);
      EXPECT_TRUE(reading.done) << wire;
      EXPECT_TRUE(reading.response.unwanted);
      EXPECT_EQ(reading.response.body, "");
      EXPECT_TRUE(reading.reusable) << "the rest is little, and was read";
    }
  }
  const Reading wanted(with_length("Content-Type: TEXT/html; charset=x\r\n", "hello"), 1, false, limits);
  EXPECT_FALSE(wanted.response.unwanted);
  EXPECT_EQ(wanted.response.body, "hello");
}

TEST(HttpResponse, OfALongBodyThatIsNotWantedNothingIsAwaited) {
  const HttpReaderLimits limits{.wanted_types = kHtmlAlone};
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n";
  for (const std::string& wire : {head + "Content-Length: 50000000\r\n\r\n", head + "\r\n",
                                  head + "Transfer-Encoding: chunked\r\n\r\n10000\r\n" + std::string(0x10000, 'x')}) {
    const Reading reading(wire, 1000, false, limits);
    EXPECT_TRUE(reading.done) << wire.substr(0, 100);
    EXPECT_TRUE(reading.response.unwanted);
    EXPECT_FALSE(reading.reusable);
  }
}

TEST(HttpResponse, WithoutATypeTheFirstBytesSayWhetherTheBodyIsWanted) {
  const HttpReaderLimits limits{.wanted_types = kHtmlAlone};
  for (const std::size_t piece : {std::size_t{1}, std::string_view::npos}) {
    const Reading page(with_length("", "<!doctype html><p>" + std::string(5000, 'x')), piece, false, limits);
    EXPECT_FALSE(page.response.unwanted);
    EXPECT_EQ(page.response.body.size(), 5018u);
    const Reading film(with_length("", std::string("\0\0\0 ftypisom", 12) + std::string(100'000, 'x')), piece, false,
                       limits);
    EXPECT_TRUE(film.done);
    EXPECT_TRUE(film.response.unwanted);
    EXPECT_EQ(film.response.body, "");
    EXPECT_FALSE(film.reusable);
    const Reading note(with_length("", "a note"), piece, false, limits);
    EXPECT_TRUE(note.response.unwanted);
    EXPECT_TRUE(note.reusable);
  }
}

TEST(HttpResponse, ThatABodyWhichNobodyWantsEndsTooSoonIsNoMatter) {
  const HttpReaderLimits limits{.wanted_types = kHtmlAlone};
  const Reading reading("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 100\r\n\r\nabc", 10, true,
                        limits);
  EXPECT_TRUE(reading.verdict);
  EXPECT_TRUE(reading.response.unwanted);
  EXPECT_EQ(reading.response.damage, "");
}

// --- the wire, for archives

TEST(HttpResponse, KeepsHeadAndCodedBodyAsTheyCameWhereThatIsAskedFor) {
  const std::string packed = gzip("hello, world");
  const std::string head = "HTTP/1.1 200 OK\r\nX-Odd : 1\r\nX-Long: a\r\n b\r\nContent-Encoding: gzip\r\n";
  const std::string length = "Content-Length: " + std::to_string(packed.size()) + "\r\n\r\n";
  const std::string chunks = "Transfer-Encoding: chunked\r\n\r\n";
  const HttpReaderLimits limits{.keep_wire = true};
  for (const std::size_t piece : {1, 3, 17, 4096}) {
    const Reading whole(head + length + packed, piece, true, limits);
    EXPECT_EQ(whole.response.wire.head, head + length) << piece;
    EXPECT_EQ(whole.response.wire.coded_body, packed) << piece;
    EXPECT_TRUE(whole.response.wire.is_coded);
    EXPECT_EQ(whole.response.body, "hello, world");
    const Reading in_chunks("\r\n" + head + chunks + "4\r\n" + packed.substr(0, 4) + "\r\n" +
                                fmt::format("{:x}", packed.size() - 4) + "\r\n" + packed.substr(4) +
                                "\r\n0\r\nX-Trailer: 1\r\n\r\n",
                            piece, true, limits);
    EXPECT_EQ(in_chunks.response.wire.head, head + chunks) << "without blank lines before it; " << piece;
    EXPECT_EQ(in_chunks.response.wire.coded_body, packed) << "without the chunks";
    const Reading plain(with_length("", "hello"), piece, true, limits);
    EXPECT_EQ(plain.response.wire.head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    EXPECT_FALSE(plain.response.wire.is_coded);
    EXPECT_EQ(plain.response.wire.coded_body, "") << "the body is what came";
  }
  const Reading not_asked(head + length + packed);
  EXPECT_EQ(not_asked.response.wire.head + not_asked.response.wire.coded_body, "");
}

TEST(HttpResponse, KeepsNoMoreOfACodedBodyThanOfTheBodyItself) {
  // Much that decodes to nothing.
  std::string packed = gzip(std::string(1, 'x'));
  const std::string nothing(1'000'000, '\0');
  const Reading reading(with_length("Content-Encoding: gzip\r\n", packed + nothing), 4096, true,
                        {.body_bytes = 1000, .keep_wire = true});
  EXPECT_EQ(reading.response.wire.coded_body.size(), 1000u);
  EXPECT_TRUE(reading.response.wire.is_cut);
  EXPECT_EQ(reading.response.body, "x");
}

}  // namespace
}  // namespace argiope
