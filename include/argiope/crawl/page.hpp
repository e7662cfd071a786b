// What a program gets of each answer of a crawl: a Page, or as a CrawlSink the whole exchange.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_record.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/link_scanner.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

class PageView;

// Page: the answer as a program gets it while it crawls (CrawlOptions::on_page).

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

// CrawlSink: what keeps something of each exchange of a crawl: archives, mirrors, tables of results.

struct FetchedPage;
struct PageReferences;

// The kind of thing that the crawl asked for.
enum class ExchangeKind : std::uint8_t {
  page,       // a URL of the crawl
  check,      // whether a link out of scope works: by HEAD, or by GET of no more than its first bytes
  robots,     // robots.txt, or what it redirects to
  probe,      // whether a host is alive, or has a sitemap at one of the usual places, by HEAD
  requisite,  // what a page is shown with, by GET: CrawlOptions::requisites
  sitemap,    // a sitemap or feed, or what redirects to one
  part,       // what a page has asked for while it was rendered
};

// A request and the response to it, whatever its status: redirects, 304, and those after which the URL is asked again.
// The objects it refers to are there during take(); copy what is to stay.
struct Exchange {
  ExchangeKind kind{};
  const HttpRequest& request;
  const HttpResponse& response;  // with `wire` where a sink wants it
  WallTime began;                // when the request was sent
  std::uint32_t depth = 0;       // of a page: links followed from a seed
  std::int64_t url_id = 0;       // of a page, check or requisite, in the database; else 0
  bool asked_again =
      false;  // the body is cut short, or the page could not be rendered, and the URL is asked again or given up
  // The page as JavaScript has made it, with its type and body in UTF-8; null where nothing was rendered.
  const HttpResponse* rendered = nullptr;
  // For the project's own sinks: the response as it came, and the page as JavaScript has made it, which they may keep
  // without a copy. Null where they are no page of a visit.
  FetchedPage* fetched = nullptr;
  FetchedPage* rendered_page = nullptr;
  // For them, too: where the response's body, as it came, names URLs. Null where the crawl has not looked.
  const PageReferences* references = nullptr;

  // The response as readers of pages want it.
  const HttpResponse& page() const noexcept { return rendered != nullptr ? *rendered : response; }
};

// A crawl shows each exchange to its sinks (CrawlOptions::sinks), in their order, before its outcome goes to the
// database; and the database commits no outcome before the sinks have kept what belongs to it. So a sink may gather,
// write in groups, and work on a thread of its own, and a process that is killed loses nothing: what was not kept is
// fetched again by the next run. It may then see an exchange twice.
//
// Errors:  a sink that fails ends the crawl, which can be gone on with; its error is that of Crawler::report().
// Threads: take() of each shard, from several at a time; keep() from the database's; the rest from any.
class CrawlSink {
 public:
  virtual ~CrawlSink() = default;

  // Whether Exchange::response must have `wire`. Asked once, at the start.
  virtual bool wants_wire() const noexcept { return false; }
  // Must not wait for disk or network: the shard does nothing else meanwhile.
  virtual Result<void> take(const Exchange& exchange) = 0;
  // Bytes taken and not yet worked off. Fetching pauses while it is many.
  virtual std::size_t backlog() const noexcept { return 0; }
  // Waits until all that has been taken so far survives what the database's commits survive.
  virtual Result<void> keep() { return {}; }
  // Where what it has kept ends, for its next run: stored in the commit that keep() was called for, or in a later one.
  // Never more than what was kept. Any thread.
  virtual std::optional<UrlNote> note() const { return std::nullopt; }
  // Whether a URL that earlier runs have fetched is not among what the sink has kept: it is fetched again, whole. Asked
  // at the opening of a crawl, and before a conditional request, and only if can_lack().
  virtual bool can_lack() const noexcept { return false; }
  virtual bool lacks(std::string_view) const { return false; }
  // The name under which the database remembers which runs have shown their answers to the sink, or to one before it
  // that has made the same: "archive/…", where what stands before the slash is told to users. URLs that another run has
  // asked last are asked without validators, so that the sink sees them whole. Empty: it needs no more than what has
  // changed.
  virtual std::string demand() const { return {}; }
  // Whether nothing is left of what earlier runs have shown it.
  virtual bool begins_anew() const noexcept { return false; }
  // The run has ended, and nothing more comes: keep(), and what is done once at the end.
  virtual Result<void> finish() { return keep(); }
};

}  // namespace argiope
