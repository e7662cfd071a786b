// From the bytes of one connection to one HttpResponse: head, framing and decoding, without sockets.
// Beast's parser decides what the bytes mean; this class bounds them and keeps only what a crawler asks for.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/web/content_decoder.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

struct HttpReaderLimits {
  std::size_t header_bytes = 64 * 1024;
  std::size_t header_fields = 256;
  std::size_t body_bytes = 10 * 1024 * 1024;
};

class HttpResponseReader final : private boost::beast::http::basic_parser<false> {
 public:
  // Fills `response`, whose memory is reused. Both must outlive the reader.
  HttpResponseReader(HttpResponse& response, ContentDecoder& decoder, const HttpReaderLimits& limits,
                     HttpMethod method);

  // Takes bytes in the order received; gives how many were used. Those left over belong in front of the next bytes
  // (while !done()), or were sent beyond the response (when done()).
  Result<std::size_t> feed(std::string_view bytes);
  // The peer closed the connection. An error unless the response may end that way.
  Result<void> feed_end();

  // Complete, or cut off at the body limit.
  bool done() const noexcept { return is_done() || response_.truncated; }
  // Bytes of this response have arrived.
  bool started() const noexcept { return got_some(); }
  // After done(): the connection may carry another exchange.
  bool reusable() const noexcept { return is_done() && keep_alive() && !response_.truncated; }
  // An interim (1xx) response: the real one follows.
  bool interim() const noexcept { return response_.status >= 100 && response_.status < 200; }

 private:
  using error_code = boost::beast::error_code;
  using string_view = boost::beast::string_view;
  using field = boost::beast::http::field;

  void on_request_impl(boost::beast::http::verb, string_view, string_view, int, error_code&) override;
  void on_response_impl(int code, string_view reason, int version, error_code& ec) override;
  void on_field_impl(field name, string_view name_text, string_view value, error_code& ec) override;
  void on_header_impl(error_code& ec) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& content_length, error_code& ec) override;
  std::size_t on_body_impl(string_view body, error_code& ec) override;
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code& ec) override {
    return on_body_impl(body, ec);
  }
  void on_finish_impl(error_code& ec) override;

  void set_field(std::string& field_value, string_view value);
  Error describe(const error_code& ec) const;

  HttpResponse& response_;
  ContentDecoder& decoder_;
  HttpReaderLimits limits_;
  std::size_t fields_ = 0;
  bool encoded_ = false;
  std::optional<Error> error_;  // what went wrong above the parser
};

}  // namespace argiope
