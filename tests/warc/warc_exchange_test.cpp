// What of an exchange goes into an archive.
#include "warc/internal/warc_exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace argiope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string archived_head(std::string_view head, std::string_view codings = {}) {
  std::string out;
  append_archived_head(out, head, codings);
  return out;
}

struct Exchanged {
  HttpRequest request;
  HttpResponse response;
  Exchanged() {
    request.url = *Url::parse("http://a.test/x?y#z");
    response.status = 200;
    response.headers.content_type = "text/html;charset=utf-8";
    response.body = "<html>";
    response.wire.request = "GET /x?y HTTP/1.1\r\nHost: a.test\r\n\r\n";
    response.wire.head = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n\r\n";
  }
  WarcExchange assign() const {
    WarcExchange exchange;
    exchange.assign(request, response, WallTime{});
    return exchange;
  }
};

TEST(WarcExchange, HasTheBytesOfTheWire) {
  const Exchanged wire;
  const WarcExchange exchange = wire.assign();
  EXPECT_EQ(exchange.url(), "http://a.test/x?y");
  EXPECT_EQ(exchange.request(), wire.response.wire.request);
  EXPECT_EQ(exchange.head(), wire.response.wire.head);
  EXPECT_EQ(exchange.payload(), "<html>");
  EXPECT_EQ(exchange.mime(), "text/html");
  EXPECT_EQ(exchange.truncated(), "");
  EXPECT_EQ(exchange.address(), "");
}

TEST(WarcExchange, HasTheBodyInItsContentCoding) {
  Exchanged wire;
  wire.response.wire.is_coded = true;
  wire.response.wire.coded_body = "packed";
  EXPECT_EQ(wire.assign().payload(), "packed");
}

TEST(WarcExchange, KeepsABodyThatIsThePayload) {
  const auto wire = std::make_shared<Exchanged>();
  const std::shared_ptr<const HttpResponse> response(wire, &wire->response);
  ASSERT_TRUE(WarcExchange::is_body_payload(*response));
  WarcExchange exchange;
  exchange.assign(wire->request, response, WallTime{});
  EXPECT_EQ(exchange.payload().data(), response->body.data()) << "not a copy";
  EXPECT_EQ(exchange.request(), response->wire.request);
  EXPECT_EQ(exchange.head(), response->wire.head);
  EXPECT_EQ(exchange.held(), response->wire.request.size() + response->wire.head.size() + response->body.capacity() +
                                 response->wire.coded_body.capacity());
  exchange.let_go();
  EXPECT_EQ(response.use_count(), 2) << "of the test alone";
  exchange.assign(wire->request, response, WallTime{});
  exchange.assign(wire->request, *response, WallTime{});
  EXPECT_EQ(exchange.payload(), "<html>");
  EXPECT_EQ(response.use_count(), 2);
}

TEST(WarcExchange, TellsAPayloadThatIsNotTheBody) {
  Exchanged wire;
  wire.response.wire.is_coded = true;
  EXPECT_FALSE(WarcExchange::is_body_payload(wire.response));
  wire.response.wire.head.clear();
  EXPECT_TRUE(WarcExchange::is_body_payload(wire.response)) << "the head that is made says nothing of a coding";
}

TEST(WarcExchange, SaysWhyAPayloadIsNotWhole) {
  Exchanged wire;
  wire.response.truncated = true;
  EXPECT_EQ(wire.assign().truncated(), "length");
  wire.response.truncated = false;
  wire.response.wire.is_cut = true;
  EXPECT_EQ(wire.assign().truncated(), "length");
  wire.response.wire.is_cut = false;
  wire.response.damage = "connection closed";
  EXPECT_EQ(wire.assign().truncated(), "disconnect");
}

TEST(WarcExchange, KeepsMemoryAndNothingElseOfTheOneBefore) {
  Exchanged first, second;
  first.response.truncated = true;
  first.response.body = std::string(1000, 'x');
  first.response.remote = *IpAddress::parse("192.0.2.1");
  second.response.wire.request.clear();
  second.response.headers.content_type.clear();
  WarcExchange exchange;
  exchange.assign(first.request, first.response, WallTime{});
  exchange.assign(second.request, second.response, WallTime{});
  EXPECT_EQ(exchange.request(), "");
  EXPECT_EQ(exchange.payload(), "<html>");
  EXPECT_EQ(exchange.truncated(), "");
  EXPECT_EQ(exchange.address(), "");
  EXPECT_EQ(exchange.mime(), "unk");
}

TEST(WarcExchange, MakesAHeadWhereTheTransportTellsNothingOfTheWire) {
  Exchanged wire;
  wire.response.wire = {};
  wire.response.headers.location = "/y";
  EXPECT_EQ(wire.assign().head(), "HTTP/1.1 200 OK\r\nContent-Type: text/html;charset=utf-8\r\nLocation: /y\r\n\r\n");
  wire.response.fields = {
      {"Server", "x"}, {"Content-Encoding", "gzip"}, {"content-length", "3"}, {"Transfer-Encoding", "chunked"}};
  EXPECT_EQ(wire.assign().head(), "HTTP/1.1 200 OK\r\nServer: x\r\n\r\n") << "of the body as it is kept, decoded";
  EXPECT_EQ(wire.assign().payload(), "<html>");
}

TEST(WarcExchange, HasNoTransferCodingAndSaysWhatItWas) {
  EXPECT_EQ(archived_head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(archived_head("HTTP/1.1 200 OK\r\nA: 1\r\ntransfer-encoding:  chunked\r\nB: 2\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nA: 1\r\nX-Archive-Orig-transfer-encoding:  chunked\r\nB: 2\r\n\r\n");
  EXPECT_EQ(archived_head(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nX-Archive-Orig-Transfer-Encoding: chunked\r\nX-Archive-Orig-Content-Length: 5\r\n"
            "Content-Encoding: gzip\r\n\r\n");
  EXPECT_EQ(archived_head("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nTransfer-Encoding: gzip,\r\n chunked\r\n\r\n",
                          "br, gzip"),
            "HTTP/1.1 200 OK\r\nX-Archive-Orig-Content-Encoding: br\r\nX-Archive-Orig-Transfer-Encoding: gzip,\r\n "
            "chunked\r\n"
            "Content-Encoding: br, gzip\r\n\r\n");
}

TEST(WarcExchange, DoesNotTellWhoWeAre) {
  std::string out;
  append_archived_request(
      out,
      "POST / HTTP/1.1\r\nHost: a.test\r\nAuthorization: Basic c2VjcmV0\r\ncookie: secret=1;\r\n secret=2\r\n"
      "Proxy-Authorization: secret\r\nX-Other: 1\r\n\r\nAuthorization: of the body");
  EXPECT_THAT(out, Not(HasSubstr("ecret")));
  EXPECT_EQ(out,
            "POST / HTTP/1.1\r\nHost: a.test\r\nAuthorization: (left out)\r\ncookie: (left out)\r\n"
            "Proxy-Authorization: (left out)\r\nX-Other: 1\r\n\r\nAuthorization: of the body");
}

}  // namespace
}  // namespace argiope
