#include "warc/internal/warc_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "warc/internal/warc_record.hpp"
#include "web/http/internal/reason_phrase.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

constexpr std::string_view kOriginalPrefix = "X-Archive-Orig-";
constexpr std::string_view kSecretLeftOut = "(left out)";
// The blank line of a head that came without one.
constexpr std::string_view kEndOfHead = "\r\n";

struct TransferCoding {
  bool is_there = false;
  bool is_more_than_chunked = false;
};

TransferCoding transfer_coding_of(std::string_view head) {
  TransferCoding coding;
  HttpHeadLine line;
  for (bool first = true; take_http_line(head, line, first); first = false) {
    if (!equals_lower(line.name, "transfer-encoding")) continue;
    coding.is_there = true;
    for_each_token(
        line.value, [](char c) { return c == ',' || c == ' ' || c == '\t'; },
        [&](std::string_view one) {
          const bool is_usual = equals_lower(one, "chunked") || equals_lower(one, "identity");
          coding.is_more_than_chunked = coding.is_more_than_chunked || !is_usual;
        });
  }
  return coding;
}

bool is_secret_field(std::string_view name) noexcept {
  return equals_lower(name, "authorization") || equals_lower(name, "proxy-authorization") ||
         equals_lower(name, "cookie");
}

// A head for a response of which nothing came as on the wire.
void append_made_head(std::string& out, const HttpResponse& response) {
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  const HttpHeaders& headers = response.headers;
  // Of the body as it is, which is decoded.
  const auto tells_of_codings = [](std::string_view name) {
    return equals_lower(name, "content-encoding") || equals_lower(name, "transfer-encoding") ||
           equals_lower(name, "content-length");
  };
  for (const auto& [name, value] : response.fields) {
    if (!tells_of_codings(name)) append_field(out, name, value);
  }
  const std::pair<std::string_view, const std::string&> known[] = {{"Content-Type", headers.content_type},
                                                                   {"Location", headers.location},
                                                                   {"ETag", headers.etag},
                                                                   {"Last-Modified", headers.last_modified}};
  for (const auto& [name, value] : known) {
    if (response.fields.empty() && !value.empty()) append_field(out, name, value);
  }
  out += kEndOfHead;
}

std::string_view why_truncated(const HttpResponse& response) noexcept {
  if (response.truncated || response.wire.is_cut) return "length";
  return response.damage.empty() ? std::string_view{} : "disconnect";
}

}  // namespace

void append_archived_head(std::string& out, std::string_view head, std::string_view codings) {
  const TransferCoding coding = transfer_coding_of(head);
  if (!coding.is_there) {
    out += head;
    return;
  }
  HttpHeadLine line;
  for (bool first = true; take_http_line(head, line, first); first = false) {
    const bool is_of_it = equals_lower(line.name, "transfer-encoding") || equals_lower(line.name, "content-length") ||
                          (coding.is_more_than_chunked && equals_lower(line.name, "content-encoding"));
    if (is_of_it) out += kOriginalPrefix;
    out += line.whole;
  }
  if (coding.is_more_than_chunked) append_field(out, "Content-Encoding", codings);
  out += kEndOfHead;
}

void append_archived_request(std::string& out, std::string_view request) {
  HttpHeadLine line;
  for (bool first = true; take_http_line(request, line, first); first = false) {
    if (is_secret_field(line.name)) {
      append_field(out, line.name, kSecretLeftOut);
    } else {
      out += line.whole;
    }
  }
  out += request;
}

bool WarcExchange::is_body_payload(const HttpResponse& response) noexcept {
  return !response.wire.is_coded || response.wire.head.empty();
}

void WarcExchange::assign(const HttpRequest& request, const HttpResponse& response, WallTime began) {
  assign_all_but_payload(request, response, began);
  bytes_ += is_body_payload(response) ? response.body : response.wire.coded_body;
}

void WarcExchange::assign(const HttpRequest& request, std::shared_ptr<const HttpResponse> response, WallTime began) {
  assign_all_but_payload(request, *response, began);
  kept_ = std::move(response);
}

void WarcExchange::assign_all_but_payload(const HttpRequest& request, const HttpResponse& response, WallTime began) {
  const HttpWire& wire = response.wire;
  url_ = request.url.without_fragment();
  address_ = response.remote == IpAddress{} ? std::string{} : response.remote.to_string();
  began_ = began;
  status_ = response.status;
  mime_ = mime_of(response.headers.content_type);
  truncated_ = why_truncated(response);
  kept_.reset();
  bytes_.clear();
  append_archived_request(bytes_, wire.request);
  request_size_ = bytes_.size();
  if (wire.head.empty()) {
    append_made_head(bytes_, response);
  } else {
    append_archived_head(bytes_, wire.head, response.headers.content_encoding);
  }
  head_size_ = bytes_.size() - request_size_;
}

}  // namespace argiope
