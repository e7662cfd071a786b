// Page: what a program gets of each answer while it crawls (CrawlOptions::on_page).
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/link_scanner.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

class PageView;

struct PageLink {
  std::string url;  // absolute, without fragment
  LinkKind kind{};
  bool nofollow = false;
  std::string text;  // of an `a` element, in UTF-8; see link_text()
};

// One answer. The objects it refers to live until the handler has ended; copy what is to stay.
struct Page {
  const Url& url;
  const HttpResponse& response;  // status; headers, all of them in `fields`; body, decoded, in the charset it came in
  std::uint32_t depth = 0;       // links followed from a seed
  // For the crawl's own use: the page as all others read it, so that it is read once. Null: it is read by itself.
  PageView* view = nullptr;

  int status() const noexcept { return response.status; }
  std::string_view body() const noexcept { return response.body; }
  // By its Content-Type, or without one by its first bytes.
  bool is_html() const noexcept;
  // The body in UTF-8, whatever charset it came in.
  std::string text() const;
  // Where its Refresh field leads, and all links of an HTML page in their order, those that the crawl does not follow
  // too.
  // Cost: of a page that a crawl hands over the pass that the crawl makes anyway; else one each time it is called.
  std::vector<PageLink> links() const;
};

// The work on each page: a function of `const Page&` that returns nothing, or a coroutine, which is awaited.
class PageHandler {
 public:
  PageHandler() = default;
  template <class Handle>
  requires(!std::same_as<std::remove_cvref_t<Handle>, PageHandler> && std::invocable<Handle&, const Page&>)
      PageHandler(Handle handle) {  // as std::function's
    using Returned = std::invoke_result_t<Handle&, const Page&>;
    static_assert(std::is_void_v<Returned> || std::same_as<Returned, Coro<void>>,
                  "a page handler returns nothing, or is a coroutine that returns Coro<void>");
    if constexpr (std::is_void_v<Returned>) {
      plain_ = std::move(handle);
    } else {
      awaited_ = std::move(handle);
    }
  }

  explicit operator bool() const noexcept { return plain_ || awaited_; }
  // Suspends: as the handler does. Throws what the handler throws.
  Coro<void> operator()(const Page& page) const;

 private:
  std::function<void(const Page&)> plain_;
  std::function<Coro<void>(const Page&)> awaited_;
};

}  // namespace argiope
