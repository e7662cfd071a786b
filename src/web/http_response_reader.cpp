#include "web/http_response_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>

namespace argiope {
namespace {

namespace http = boost::beast::http;

// Any error code will do to stop Beast's parser; what happened is in error_.
const boost::beast::error_code kStop = make_error_code(http::error::body_limit);

// The shortest end of a chunked body, "0", an empty line and their line ends. Whatever of such a body is unread is at
// least as long; and Beast 1.81, given less of a last chunk that it has met before, fails an assertion.
constexpr std::size_t kLastChunkBytes = 5;

}  // namespace

void HttpHeaders::clear() {
  content_type.clear();
  etag.clear();
  last_modified.clear();
  location.clear();
  retry_after.clear();
  robots_tag.clear();
  content_encoding.clear();
  content_length.reset();
}

HttpResponseReader::HttpResponseReader(HttpResponse& response, ContentDecoder& decoder, const HttpReaderLimits& limits,
                                       HttpMethod method)
    : response_(response), decoder_(decoder), limits_(limits) {
  response_.status = 0;
  response_.headers.clear();
  response_.body.clear();
  response_.truncated = false;
  eager(true);
  skip(method == HttpMethod::head);
  header_limit(static_cast<std::uint32_t>(
      std::min<std::size_t>(limits_.header_bytes, std::numeric_limits<std::uint32_t>::max())));
  body_limit(boost::none);  // ours counts decoded bytes
}

Result<std::size_t> HttpResponseReader::feed(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && !done()) {
    if (is_header_done() && chunked() && bytes.size() - used < kLastChunkBytes) break;
    error_code ec;
    const std::size_t step = put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), ec);
    used += step;
    if (error_) return std::unexpected(*error_);
    if (ec == http::error::need_more) {
      if (bytes.size() - used > limits_.header_bytes) return fail(Errc::too_large, "response header too large");
      break;
    }
    if (ec && !response_.truncated) return std::unexpected(describe(ec));
    if (step == 0) break;
  }
  return used;
}

Result<void> HttpResponseReader::feed_end() {
  if (done()) return {};
  if (!started()) return fail(Errc::network, "connection closed before a response");
  if (!is_header_done()) return fail(Errc::network, "connection closed inside the response header");
  if (const auto left = content_length_remaining(); left && *left > 0) {
    return fail(Errc::network, fmt::format("connection closed with {} bytes of the body missing", *left));
  }
  error_code ec;
  put_eof(ec);
  if (error_) return std::unexpected(*error_);
  if (ec) return fail(Errc::network, "connection closed inside the body");
  return {};
}

Error HttpResponseReader::describe(const error_code& ec) const {
  const bool too_large = ec == http::error::header_limit || ec == http::error::buffer_overflow;
  return {too_large ? Errc::too_large : Errc::protocol, fmt::format("bad HTTP response: {}", ec.message())};
}

void HttpResponseReader::on_request_impl(http::verb, string_view, string_view, int, error_code& ec) {
  ec = make_error_code(http::error::bad_version);  // not reached: this parser reads responses
}

void HttpResponseReader::on_response_impl(int code, string_view, int, error_code&) { response_.status = code; }

void HttpResponseReader::set_field(std::string& field_value, string_view value) {
  if (field_value.empty()) field_value.assign(value.data(), value.size());  // of repeated fields the first counts
}

void HttpResponseReader::on_field_impl(field name, string_view name_text, string_view value, error_code& ec) {
  if (++fields_ > limits_.header_fields) {
    error_ = Error{Errc::too_large, fmt::format("more than {} response header fields", limits_.header_fields)};
    ec = kStop;
    return;
  }
  HttpHeaders& headers = response_.headers;
  switch (name) {
    case field::content_type: return set_field(headers.content_type, value);
    case field::etag: return set_field(headers.etag, value);
    case field::last_modified: return set_field(headers.last_modified, value);
    case field::location: return set_field(headers.location, value);
    case field::retry_after: return set_field(headers.retry_after, value);
    case field::content_encoding:
      // Several fields are one list (RFC 9110, 5.3).
      if (!headers.content_encoding.empty()) headers.content_encoding += ", ";
      headers.content_encoding.append(value.data(), value.size());
      return;
    case field::unknown:
      if (boost::beast::iequals(name_text, "X-Robots-Tag")) {
        if (!headers.robots_tag.empty()) headers.robots_tag += '\n';
        headers.robots_tag.append(value.data(), value.size());
      }
      return;
    default: return;
  }
}

void HttpResponseReader::on_header_impl(error_code&) {
  // Here, because what follows is only called when there is a body.
  if (const auto length = content_length()) response_.headers.content_length = *length;
}

void HttpResponseReader::on_body_init_impl(const boost::optional<std::uint64_t>& content_length, error_code& ec) {
  const std::string& encoding = response_.headers.content_encoding;
  encoded_ = !encoding.empty() && !boost::beast::iequals(encoding, "identity");
  if (encoded_) {
    if (auto started = decoder_.start(encoding, limits_.body_bytes); !started) {
      error_ = std::move(started.error());
      ec = kStop;
    }
  } else if (content_length) {
    response_.body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(*content_length, limits_.body_bytes)));
  }
}

std::size_t HttpResponseReader::on_body_impl(string_view body, error_code& ec) {
  if (encoded_) {
    auto fed = decoder_.feed({body.data(), body.size()}, response_.body);
    if (!fed) {
      error_ = std::move(fed.error());
      ec = kStop;
    } else if (decoder_.truncated()) {
      response_.truncated = true;
      ec = kStop;
    }
    return body.size();
  }
  const std::size_t room = limits_.body_bytes - response_.body.size();
  response_.body.append(body.data(), std::min(room, body.size()));
  if (body.size() > room) {
    response_.truncated = true;
    ec = kStop;
  }
  return body.size();
}

void HttpResponseReader::on_finish_impl(error_code& ec) {
  if (!encoded_ || response_.truncated) return;
  if (auto finished = decoder_.finish(); !finished) {
    error_ = std::move(finished.error());
    ec = kStop;
  }
}

}  // namespace argiope
