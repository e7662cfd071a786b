// One HTTP exchange as it goes into an archive: its bytes, in the order in which they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

// The bytes are those of the wire (HttpWire), but for three things.
//   * The transfer coding is undone, and its fields are called X-Archive-Orig-…: what is in the archive has none, so
//     that readers agree on what the payload is, and on its digest.
//   * Request fields that say who we are (Authorization, Proxy-Authorization, Cookie) are left out: archives are passed
//     on.
//   * Where the transport tells nothing of the wire, a head is made from what it does tell.
class WarcExchange {
 public:
  // Keeps the memory of the one before. `response` is one to `request`, which was sent at `began`.
  void assign(const HttpRequest& request, const HttpResponse& response, WallTime began);

  const std::string& url() const noexcept { return url_; }  // without its fragment
  const std::string& address() const noexcept { return address_; }
  WallTime began() const noexcept { return began_; }
  int status() const noexcept { return status_; }
  const std::string& mime() const noexcept { return mime_; }
  // Why the payload is not whole, as WARC-Truncated says it; empty: it is.
  std::string_view truncated() const noexcept { return truncated_; }

  std::string_view request() const noexcept { return part(0, request_size_); }  // empty: nothing is known of it
  std::string_view head() const noexcept { return part(request_size_, head_size_); }
  std::string_view payload() const noexcept { return part(request_size_ + head_size_, bytes_.size()); }
  std::size_t size() const noexcept { return bytes_.size(); }

 private:
  std::string_view part(std::size_t from, std::size_t size) const noexcept {
    return std::string_view(bytes_).substr(from, size);
  }

  std::string bytes_;  // request, head and payload
  std::size_t request_size_ = 0;
  std::size_t head_size_ = 0;
  std::string url_;
  std::string address_;
  WallTime began_{};
  int status_ = 0;
  std::string mime_;
  std::string_view truncated_;
};

// Appends the head of a response as it is archived: without a transfer coding. `codings`: those that the payload has
// all the same, because they came as a transfer coding; they count where `head` has a transfer coding other than
// chunked.
void append_archived_head(std::string& out, std::string_view head, std::string_view codings);
// Appends a request as it is archived.
void append_archived_request(std::string& out, std::string_view request);

}  // namespace argiope
