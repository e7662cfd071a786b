// What a server takes for a request, and what it must not: RFC 9112, and what smuggles a second request past a proxy.
#include "web/server/http_request_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using State = HttpRequestReader::State;

// What became of one connection's bytes: each request in one line, and how it ended.
struct Read {
  std::vector<std::string> requests;
  int refused = 0;
  std::string detail;
  bool is_waiting = false;  // for the rest of a request
  friend bool operator==(const Read&, const Read&) = default;
};

Read read_pieces(const std::vector<std::string_view>& pieces, const HttpServerOptions& options = {}) {
  Read read;
  ServerRequest request;
  HttpRequestReader reader(options, request);
  for (const std::string_view piece : pieces) {
    reader.input() += piece;
    while (reader.read() == State::complete) {
      std::string line = std::string(to_string(request.method)) + ' ' + std::string(request.target) + " @" +
                         std::string(request.host) + (reader.keep_alive() ? "" : " close");
      for (const auto& [name, value] : request.headers) line.append("|").append(name).append("=").append(value);
      read.requests.push_back(line + '|' + request.body);
      reader.next();
    }
    if (reader.state() == State::refused) {
      read.refused = reader.refusal().status;
      read.detail = reader.refusal().detail;
      return read;
    }
  }
  read.is_waiting = reader.has_begun();
  return read;
}

Read read_whole(std::string_view bytes, const HttpServerOptions& options = {}) { return read_pieces({bytes}, options); }
Read read_bytewise(std::string_view bytes, const HttpServerOptions& options = {}) {
  std::vector<std::string_view> pieces;
  for (std::size_t i = 0; i < bytes.size(); ++i) pieces.push_back(bytes.substr(i, 1));
  return read_pieces(pieces, options);
}

TEST(HttpRequestReader, ReadsWhatIsThere) {
  ServerRequest request;
  const HttpServerOptions options;
  HttpRequestReader reader(options, request);
  reader.input() =
      "POST /orders/a%2Fb?x=1&name=J%C3%BCrgen+K&flag HTTP/1.1\r\nHost: shop.example:8080\r\nX-Two: a\r\nx-two: b\r\n"
      "Content-Length: 5\r\n\r\nhello";
  ASSERT_EQ(reader.read(), State::complete);
  EXPECT_EQ(request.method, HttpMethod::post);
  EXPECT_EQ(request.target, "/orders/a%2Fb?x=1&name=J%C3%BCrgen+K&flag");
  EXPECT_EQ(request.path, "/orders/a%2Fb");
  EXPECT_EQ(request.query, "x=1&name=J%C3%BCrgen+K&flag");
  EXPECT_EQ(request.host, "shop.example:8080");
  EXPECT_EQ(request.header("X-TWO"), "a");
  EXPECT_EQ(request.header("X-Three"), "");
  EXPECT_EQ(request.query_value("x"), "1");
  EXPECT_EQ(request.query_value("name"), "J\xC3\xBCrgen K");
  EXPECT_EQ(request.query_value("flag"), "");
  EXPECT_EQ(request.query_value("y"), std::nullopt);
  EXPECT_EQ(request.body, "hello");
  EXPECT_THAT(request.headers, ElementsAre(Pair("Host", "shop.example:8080"), Pair("X-Two", "a"), Pair("x-two", "b"),
                                           Pair("Content-Length", "5")));
  EXPECT_TRUE(reader.keep_alive());
  EXPECT_FALSE(reader.has_more());
}

// --- wherever the bytes are cut

const std::vector<std::string>& good_connections() {
  static const std::vector<std::string> all = {
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
      "\r\nGET /after/a/blank/line HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /y HTTP/1.1\r\nHost: b\r\n\r\n",
      "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwiki\r\n5;x=\"y\"\r\npedia\r\n0\r\n\r\n",
      "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\nGET /y HTTP/1.1\r\nHost: b\r\n\r\n",
      "POST /t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nChecksum: 1\r\nHost: c\r\n\r\n"
      "DELETE /z HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\n",
      "GET http://absolute.example:81/p?q HTTP/1.1\r\nHost: other\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: \r\n\r\n",
      "GET /old HTTP/1.0\r\n\r\n",
      "GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      "GET /empty HTTP/1.1\r\nHost: a\r\nX:\r\nY: \t v \t\r\n\r\n",
      "GET /same HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n"
      "HEAD /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /y HTTP/1.1\r\nHost: b\r\n\r\n",
      "POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\t\r\n\r\n"
      "0A ; a\t=\t\"\\\";\t\xFC\" ;b;c=d\r\n0123456789\r\n00;e=\"\"\r\n\r\nHEAD /y HTTP/1.1\r\nHost: b\r\n\r\n",
  };
  return all;
}

TEST(HttpRequestReader, ReadsTheSameWhereverTheBytesAreCut) {
  for (const std::string& bytes : good_connections()) {
    const Read whole = read_whole(bytes);
    EXPECT_EQ(whole.refused, 0) << bytes << whole.detail;
    EXPECT_FALSE(whole.is_waiting) << bytes;
    EXPECT_GE(whole.requests.size(), 1u);
    EXPECT_EQ(read_bytewise(bytes), whole) << bytes;
    const std::string_view view = bytes;
    for (std::size_t first = 0; first < view.size(); ++first) {
      for (std::size_t second = first; second < view.size(); second += 7) {
        EXPECT_EQ(read_pieces({view.substr(0, first), view.substr(first, second - first), view.substr(second)}), whole)
            << bytes << " cut at " << first << " and " << second;
      }
    }
  }
}

TEST(HttpRequestReader, WaitsForTheRestOfEveryRequestThatIsCutShort) {
  for (const std::string& bytes : good_connections()) {
    for (std::size_t size = 1; size < bytes.size(); ++size) {
      const Read read = read_whole(std::string_view(bytes).substr(0, size));
      EXPECT_EQ(read.refused, 0) << bytes.substr(0, size) << read.detail;
    }
  }
}

TEST(HttpRequestReader, GivesBodiesWithoutTheirChunksAndNoTrailers) {
  EXPECT_THAT(read_whole(good_connections()[3]).requests,
              ElementsAre("POST /c @a|Host=a|Transfer-Encoding=chunked|wikipedia"));
  EXPECT_THAT(read_whole(good_connections()[5]).requests,
              ElementsAre("POST /t @a|Host=a|Transfer-Encoding=chunked|x", "DELETE /z @b|Host=b|Content-Length=0|"));
}

TEST(HttpRequestReader, TakesTheHostOutOfAnAbsoluteTarget) {
  EXPECT_THAT(read_whole(good_connections()[6]).requests,
              ElementsAre("GET /p?q @absolute.example:81|Host=other|", "OPTIONS * @|Host=|"));
}

TEST(HttpRequestReader, KnowsWhoKeepsTheConnection) {
  EXPECT_THAT(read_whole(good_connections()[7]).requests, ElementsAre("GET /old @ close|"));
  EXPECT_THAT(read_whole(good_connections()[8]).requests,
              ElementsAre("GET /old @|Connection=keep-alive|", "GET /next @a close|Host=a|Connection=close|"));
  // Once it is said to close, nothing keeps it (RFC 9112, 9.3).
  for (const std::string said :
       {"Connection: keep-alive, close\r\n", "Connection: Close\r\nConnection: keep-alive\r\n"}) {
    EXPECT_THAT(read_whole("GET / HTTP/1.0\r\n" + said + "\r\n").requests, ElementsAre(HasSubstr(" close|")));
    EXPECT_THAT(read_whole("GET / HTTP/1.1\r\nHost: a\r\n" + said + "\r\n").requests,
                ElementsAre(HasSubstr(" close|")));
  }
}

// --- what is refused, whole and byte by byte

struct Bad {
  const char* what;
  std::string bytes;
  int status;
  const char* detail;
};

class RefusedRequest : public ::testing::TestWithParam<Bad> {};

TEST_P(RefusedRequest, IsRefusedAndNothingBehindItIsRead) {
  const Bad& bad = GetParam();
  const std::string followed = bad.bytes + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const Read& read : {read_whole(followed), read_bytewise(followed)}) {
    EXPECT_EQ(read.refused, bad.status) << read.detail;
    EXPECT_THAT(read.detail, HasSubstr(bad.detail));
    EXPECT_THAT(read.requests, ElementsAre());
  }
}

constexpr const char* kPost = "POST /x HTTP/1.1\r\nHost: a\r\n";
const std::string kChunked = std::string(kPost) + "Transfer-Encoding: chunked\r\n\r\n";

INSTANTIATE_TEST_SUITE_P(
    Smuggling, RefusedRequest,
    ::testing::Values(
        Bad{"LengthThenChunks", std::string(kPost) + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400, "beside Content-Length"},
        Bad{"ChunksThenLength", std::string(kPost) + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
            400, "beside Transfer-Encoding"},
        Bad{"TwoLengths", std::string(kPost) + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", 400, "twice"},
        Bad{"TheSameLengthTwice", std::string(kPost) + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400, "twice"},
        Bad{"AListOfLengths", std::string(kPost) + "Content-Length: 1, 1\r\n\r\na", 400, "twice"},
        Bad{"ASignedLength", std::string(kPost) + "Content-Length: +1\r\n\r\na", 400, "not a number"},
        Bad{"ANegativeLength", std::string(kPost) + "Content-Length: -1\r\n\r\na", 400, "not a number"},
        Bad{"AHexadecimalLength", std::string(kPost) + "Content-Length: 0x1\r\n\r\na", 400, "not a number"},
        Bad{"AnEmptyLength", std::string(kPost) + "Content-Length:\r\n\r\na", 400, "not a number"},
        Bad{"ALengthOverAllBounds", std::string(kPost) + "Content-Length: 18446744073709551617\r\n\r\na", 400,
            "not a number"},
        Bad{"AnotherCoding", std::string(kPost) + "Transfer-Encoding: gzip\r\n\r\n", 501, "chunked"},
        Bad{"ACodingBeforeChunked", std::string(kPost) + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501,
            "chunked"},
        Bad{"ACodingBehindChunked", std::string(kPost) + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501,
            "chunked"},
        Bad{"AlmostChunked", std::string(kPost) + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, "chunked"},
        Bad{"AnEmptyCoding", std::string(kPost) + "Transfer-Encoding:\r\n\r\n0\r\n\r\n", 501, "chunked"},
        Bad{"TwoCodings", std::string(kPost) + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
            "twice"},
        Bad{"TwoCodingsTheSecondChunked",
            std::string(kPost) + "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "twice"},
        Bad{"ChunksByHttp10", "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "HTTP/1.0"},
        Bad{"ASpaceBeforeTheColon", std::string(kPost) + "Content-Length : 4\r\n\r\nabcd", 400, "colon"},
        Bad{"AFoldedLine", std::string(kPost) + "X: a\r\n b\r\n\r\n", 400, "second line"},
        Bad{"AFoldedLength", std::string(kPost) + "Content-Length:\r\n 4\r\n\r\nabcd", 400, "second line"},
        Bad{"AFirstFieldThatIsFolded", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400, "second line"},
        Bad{"LineFeedsAlone", "GET / HTTP/1.1\nHost: a\n\n", 400, "LF alone"},
        Bad{"OneLineFeedAlone", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400, "LF alone"},
        Bad{"TheLastLineFeedAlone", "GET / HTTP/1.1\r\nHost: a\r\n\n", 400, "LF alone"},
        Bad{"ACarriageReturnAlone", "GET / HTTP/1.1\r\nHost: a\r\nX: b\rContent-Length: 4\r\n\r\n", 400, "CR alone"},
        Bad{"ANullInAField", std::string(kPost) + std::string("X: a\0b\r\n\r\n", 10), 400, "control character"},
        Bad{"ACarriageReturnBeforeTheEnd", std::string(kPost) + "Content-Length: 4\r\r\n\r\nabcd", 400, "CR alone"},
        Bad{"AVerticalTabBeforeTheCoding", std::string(kPost) + "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n", 400,
            "control character"},
        Bad{"ACodingInQuotes", std::string(kPost) + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 501, "chunked"},
        Bad{"ACodingWithAParameter", std::string(kPost) + "Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n", 501,
            "chunked"},
        Bad{"ATabBeforeTheColon", std::string(kPost) + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", 400, "colon"},
        Bad{"ALengthWithSomethingBehindIt", std::string(kPost) + "Content-Length: 4;a\r\n\r\nabcd", 400,
            "not a number"},
        Bad{"AConnectionThatIsNoList", std::string(kPost) + "Connection: a b\r\n\r\n", 400, "not a list"},
        Bad{"AChunkWithoutSize", kChunked + "\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AChunkSizeThatIsNone", kChunked + "zz\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"ANegativeChunkSize", kChunked + "-1\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AChunkSizeWith0x", kChunked + "0x5\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AChunkSizeThatOverflows", kChunked + "10000000000000005\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AHugeChunkSize", kChunked + "ffffffffffffffff\r\nabcde\r\n0\r\n\r\n", 413, "allowed"},
        Bad{"AChunkThatGoesOn", kChunked + "3\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AChunkLineWithLineFeedAlone", kChunked + "5\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AChunkEndWithLineFeedAlone", kChunked + "5\r\nabcde\n0\r\n\r\n", 400, "chunk"},
        Bad{"AChunkSizeWithASpace", kChunked + "5 \r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"ATrailerThatIsNone", kChunked + "0\r\nno colon\r\n\r\n", 400, "colon"},
        Bad{"ALineFeedInAnExtension", kChunked + "5;x=\"a\nb\"\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"ACarriageReturnInAnExtension", kChunked + "5;x=\"a\rb\"\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AControlCharacterInAnExtension", kChunked + "5;x=\"a\1b\"\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AnExtensionWithoutName", kChunked + "5;\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AnExtensionWithoutValue", kChunked + "5;x=\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AnExtensionThatEndsInABackslash", kChunked + "5;x=\"a\\\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"AnExtensionWithSomethingBehindIt", kChunked + "5;x=\"a\"b\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"ACarriageReturnTwiceBehindASize", kChunked + "5\r\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"ACarriageReturnTwiceBehindAChunk", kChunked + "5\r\nabcde\r\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"TheLastChunkWithLineFeedAlone", kChunked + "0\n\r\n", 400, "chunk"},
        Bad{"TheEndOfTrailersWithLineFeedAlone", kChunked + "0\r\n\n", 400, "LF alone"},
        Bad{"ATrailerThatIsFoldedAtOnce", kChunked + "0\r\n X: a\r\n\r\n", 400, "colon"},
        Bad{"ATrailerWithAControlCharacter", kChunked + "0\r\nX: a\1\r\n\r\n", 400, "control character"},
        Bad{"ATrailingCoding", kChunked + "0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "Transfer-Encoding"},
        Bad{"AnExtensionWithoutItsEnd", kChunked + "5;x=\"a\r\nabcde\r\n0\r\n\r\n", 400, "chunk"},
        Bad{"ATrailerThatIsFolded", kChunked + "0\r\nX: a\r\n b\r\n\r\n", 400, "colon"},
        Bad{"ATrailerWithLineFeedAlone", kChunked + "0\r\nX: a\n\r\n", 400, "LF alone"},
        Bad{"ATrailingLength", kChunked + "0\r\nContent-Length: 4\r\n\r\n", 400, "Content-Length"}),
    [](const auto& info) { return info.param.what; });

INSTANTIATE_TEST_SUITE_P(
    Malformed, RefusedRequest,
    ::testing::Values(Bad{"NoHost", "GET / HTTP/1.1\r\n\r\n", 400, "no Host"},
                      Bad{"TwoHosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "Host is given twice"},
                      Bad{"AHostWithAPath", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "Host is no name"},
                      Bad{"AHostWithAUser", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400, "Host is no name"},
                      Bad{"AHostWithASpace", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "Host is no name"},
                      Bad{"NoSlash", "GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "slash"},
                      Bad{"AStarForGet", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400, "slash"},
                      Bad{"ATargetWithoutHost", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "no host"},
                      Bad{"NoVersion", "GET /\r\nHost: a\r\n\r\n", 400, "target"},
                      Bad{"ASpaceInTheTarget", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "HTTP/1.1"},
                      Bad{"AnotherProtocol", "GET / ICY/1.1\r\nHost: a\r\n\r\n", 400, "HTTP/1.1"},
                      Bad{"TwoSpaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"},
                      Bad{"ATabInTheTarget", "GET /\ta HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target"},
                      Bad{"AMethodThatIsNone", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "method"},
                      Bad{"BinaryGarbage", "\x80\x01\x02\x03\r\n\r\n", 400, "method"},
                      Bad{"TlsHello", "\x16\x03\x01\x02\x00\x01\x00", 400, "not TLS"},
                      Bad{"AFieldWithoutAColon", "GET / HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n", 400, "colon"},
                      Bad{"AFieldWithoutAName", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", 400, "colon"},
                      Bad{"BlankLinesWithoutEnd", "\r\n\r\n\r\n\r\n\r\n\r\n", 400, "empty lines"},
                      Bad{"Http20", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/1.1"},
                      Bad{"Http12", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505, "HTTP/1.1"},
                      Bad{"AnUnknownMethod", "BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", 501, "BREW"},
                      Bad{"Connect", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 501, "CONNECT"},
                      Bad{"AnotherExpectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n", 417,
                          "expectation"}),
    [](const auto& info) { return info.param.what; });

// --- limits

TEST(HttpRequestReader, RefusesAHeadThatIsTooLong) {
  HttpServerOptions options;
  options.max_header_bytes = 200;
  const std::string line = "GET / HTTP/1.1\r\nHost: a\r\n";
  const std::string fits = line + "X: " + std::string(200 - line.size() - 3 - 4, 'x') + "\r\n\r\n";
  ASSERT_EQ(fits.size(), 200u);
  EXPECT_EQ(read_whole(fits, options).refused, 0);
  EXPECT_EQ(read_bytewise(fits, options).requests.size(), 1u);
  const std::string over = line + "X: " + std::string(200 - line.size() - 3 - 3, 'x') + "\r\n\r\n";
  EXPECT_EQ(read_whole(over, options).refused, 431);
  EXPECT_EQ(read_bytewise(over, options).refused, 431);
  EXPECT_EQ(read_whole("GET /" + std::string(300, 'x'), options).refused, 414);
  EXPECT_EQ(read_bytewise("GET /" + std::string(300, 'x') + " HTTP/1.1\r\n", options).refused, 414);
  // In many small fields, each of which comes alone.
  std::string many = line;
  for (int i = 0; i < 100; ++i) many += "a: b\r\n";
  EXPECT_EQ(read_bytewise(many, options).refused, 431);
}

TEST(HttpRequestReader, RefusesTooManyFields) {
  HttpServerOptions options;
  options.max_header_fields = 3;
  EXPECT_EQ(read_whole("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\n\r\n", options).refused, 0);
  EXPECT_EQ(read_whole("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", options).refused, 431);
}

TEST(HttpRequestReader, RefusesABodyThatIsTooLong) {
  HttpServerOptions options;
  options.max_body_bytes = 8;
  const std::string length = std::string(kPost) + "Content-Length: ";
  EXPECT_EQ(read_whole(length + "8\r\n\r\n12345678", options).requests.size(), 1u);
  // Before any of it has come.
  EXPECT_EQ(read_whole(length + "9\r\n\r\n", options).refused, 413);
  EXPECT_EQ(read_bytewise(kChunked + "4\r\n1234\r\n4\r\n5678\r\n0\r\n\r\n", options).requests.size(), 1u);
  EXPECT_EQ(read_bytewise(kChunked + "4\r\n1234\r\n5\r\n56789\r\n0\r\n\r\n", options).refused, 413);
  EXPECT_EQ(read_whole(kChunked + "4\r\n1234\r\n5\r\n", options).refused, 413);
}

TEST(HttpRequestReader, AsksForTheLimitOfEachBody) {
  HttpServerOptions options;
  options.max_body_bytes = 1;
  options.body_limit = [](const ServerRequest& request) -> std::size_t {
    return request.path == "/batch" && request.header("x-many") == "yes" ? 100 : 2;
  };
  EXPECT_EQ(
      read_whole("POST /batch HTTP/1.1\r\nHost: a\r\nX-Many: yes\r\nContent-Length: 3\r\n\r\nabc", options).refused, 0);
  EXPECT_EQ(read_whole("POST /one HTTP/1.1\r\nHost: a\r\nX-Many: yes\r\nContent-Length: 3\r\n\r\nabc", options).refused,
            413);
}

TEST(HttpRequestReader, BoundsWhatStandsBetweenChunks) {
  EXPECT_EQ(read_whole(kChunked + "1;x=" + std::string(20'000, 'y')).refused, 400);
  EXPECT_EQ(read_whole(kChunked + "0\r\nX: " + std::string(20'000, 'y')).refused, 400);
  EXPECT_EQ(read_bytewise(kChunked + std::string(20'000, '0')).refused, 400);
  // Each line by itself.
  std::string many = kChunked;
  for (int i = 0; i < 100; ++i) many += "1;x=" + std::string(1'000, 'y') + "\r\nz\r\n";
  EXPECT_EQ(read_whole(many + "0\r\n\r\n").requests.size(), 1u);
}

// The bytes that are found out to have no end of a line are not searched again.
TEST(HttpRequestReader, ReadsEachByteOnceHoweverSmallThePieces) {
  HttpServerOptions options;
  options.max_header_bytes = 1'000'000;
  const std::string long_line(900'000, 'x');
  EXPECT_EQ(read_bytewise("GET / HTTP/1.1\r\nHost: a\r\nX: " + long_line + "\r\n\r\n", options).requests.size(), 1u);
  EXPECT_EQ(read_bytewise(kChunked + "1;x=" + long_line + "\r\nz\r\n0\r\n\r\n", options).requests.size(), 1u);
}

TEST(HttpRequestReader, KeepsNoMemoryOfLargeRequests) {
  const HttpServerOptions options;
  ServerRequest request;
  HttpRequestReader reader(options, request);
  reader.input() += std::string(kPost) + "Content-Length: 1000000\r\n\r\n" + std::string(1'000'000, 'x');
  ASSERT_EQ(reader.read(), State::complete);
  EXPECT_EQ(request.body.size(), 1'000'000u);
  reader.next();
  EXPECT_LT(request.body.capacity(), 100'000u);
  EXPECT_LT(reader.input().capacity(), 10'000u);
}

}  // namespace
}  // namespace argiope
