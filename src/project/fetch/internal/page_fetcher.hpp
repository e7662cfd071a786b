// One page's way to its answer: its request with all that was said of it, redirects, what the answer comes to. Hosts
// are asked by way of the HostDesk, each hop's own; `data:` URLs are answered without any.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/http_session.hpp"
#include "project/fetch/internal/host_desk.hpp"
#include "project/fetch/internal/page_rendering.hpp"
#include "project/process/internal/processor.hpp"

namespace argiope {

struct FetchOrder {
  std::string url;                  // with a fragment it is not sent
  PageSettings settings;            // merged
  std::string etag, last_modified;  // of the last success
  std::size_t body_limit = 10 * 1024 * 1024;
  Duration timeout = std::chrono::seconds{120};  // redirects included and rendering not, where the settings say none
  // The project's: its cookies go along behind the page's own, and what servers set is kept in it. Null: none are kept.
  // The transport should keep none itself: an HttpSession sends nothing of its jar with a request that has cookies
  // already.
  CookieJar* jar = nullptr;
};

struct FetchedAnswer {
  PageResponse response;  // docs/processors.md, "page"
  Result<void> sent;      // of the last request
  std::string etag, last_modified;
  bool is_success = false;    // 200 to 399 but 304, and no error
  bool is_unchanged = false;  // 304, and it was asked whether it has changed
  bool is_refused =
      false;  // by us: nothing was sent, or a redirect led where we do not ask, and another attempt would end so, too
  std::optional<Duration> retry_after;
  std::vector<PageLog> notes;  // of what was said and could not be done
};

// As docs/processors.md says it: "dns", "tls", "timeout", "redirects", "too_large", "refused" or "network".
std::string_view fetch_error_kind(const Error& error) noexcept;
// Whether it is no failure of a server's, but what we do not ask: a private address, a request that cannot be made.
bool is_refused_by_us(const Error& error) noexcept;

// Answers a `data:` URL (RFC 2397, and the Fetch Standard where that says less); nothing is sent. One that is none has
// the error "refused".
PageResponse answer_of_data_url(std::string_view url);
// The request of an order, and the first URL of it. Errors: invalid_input, naming what is wrong.
Result<HttpRequest> request_of(const FetchOrder& order);

// Sends the order and follows its redirects. The first host has been entered by the caller (HostDesk::begin), unless
// the URL is a `data:` one; each further request enters its host here, the same one again too, and waits for it as long
// as the order's timeout lets it. All of them are left here, the first too, by HostDesk::end() or give_back(), whatever
// happens: the caller calls neither. Orders with `render` are refused, and nothing is sent, where `rendering` is null
// or renders nothing. Else an HTML page that was answered with 200 is what its scripts make of it: the URL that they
// lead to is a redirect, and the desk asks hosts for their requests, too, in the page's own way. A page that could not
// be rendered has the error "render". A page with a way of its own that leads to no connection says nothing of its
// host. Where somebody could hear it whom the run has not chosen (a proxy of the page's own that gets http requests, a
// server whose certificate is not checked), it goes without the fields and the certificate that the run has for some
// servers only. A status that is no success has the error "status"; 304 has none where it was asked for.
// It is to be awaited by the task that has entered the host: one that never starts leaves nothing.
// `order` and `rendering` outlive it. Suspends. Cancel: throws CancelledError; what was entered is left.
Coro<FetchedAnswer> fetch_page(const FetchOrder& order, HttpTransport& transport, HostDesk& desk,
                               std::function<std::uint32_t(const Url&)> host_of, PageRendering* rendering = nullptr);

}  // namespace argiope
