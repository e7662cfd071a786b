// PageRenderer: what makes of a fetched page what its scripts make of it. ChromiumRenderer (chromium.hpp) does it with
// a browser; tests do it without. A renderer opens no connection: all that a page asks for goes through PageParts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/cookies.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

// The kind of thing that a page asks for.
enum class PartKind : std::uint8_t {
  script,
  style,
  data,  // fetch() and XMLHttpRequest
  image,
};

// Fetches for one page, as the crawl that the page belongs to would.
//
// Threads: the loop's own.
class PageParts {
 public:
  virtual ~PageParts() = default;

  // Sends one request of the page and gives its response, whatever its status; redirects are not followed. Fields that
  // name the client or the connection are left out of it, and so is what belongs to another site than the page's.
  // `response.fields` is filled.
  // Errors: those of HttpTransport::send(); refused and too_large also for what the page may not ask for, or not any
  // more. Suspends: until the host may be asked and has answered. Cancel: throws CancelledError.
  virtual Coro<Result<void>> fetch(HttpRequest request, PartKind kind, HttpResponse& response) = 0;
  // Those that requests to the page's host are sent with.
  virtual std::vector<Cookie> cookies() const = 0;
};

// The wishes for one page, beside what a renderer does for all.
struct RenderOptions {
  // A script of ours: a function, which is called, an expression, or statements with `return`. It runs in the page and
  // has the page's rights; a promise is waited for. Empty: none.
  std::string script;
  bool script_at_start =
      false;  // before the page's own scripts; else when the page is done, which then is waited for once more
  // Of the window, in pixels; 0: the renderer's own.
  std::uint32_t width = 0, height = 0;
  bool images = false;  // fetched, too
};

// The outcome of rendering a page.
struct RenderedPage {
  std::string html;     // the document as it is now, in UTF-8, beginning with its doctype
  bool is_cut = false;  // `html` ends at HttpRequest::body_limit
  // Where the page's script (location.href, a refresh) has gone, an absolute URL; empty: nowhere.
  std::string led_to;
  // Its script has asked for the page itself once more.
  bool reloads = false;
  // The URLs that the script has given to the page (history.pushState), in their order.
  std::vector<std::string> own_urls;
  // All that the page's host would be sent now, those that scripts have set included.
  std::vector<Cookie> cookies;
  // The result of RenderOptions::script as JSON: at most kMostScriptResult bytes; of strangers as all of the page.
  // Empty: none.
  std::string script_result;
};

inline constexpr std::size_t kMostScriptResult = std::size_t{1} << 20;

// Threads: the loop's own.
class PageRenderer {
 public:
  virtual ~PageRenderer() = default;

  // Before the first page. Errors: why nothing can be rendered.
  virtual Coro<Result<void>> open() = 0;
  // Renders the HTML page that `request` was answered with; `request`, `response` and `parts` are there until it ends.
  // Errors: timeout, network (what renders has crashed or ended), protocol, too_large, and of `wishes.script`
  // invalid_input (it is no script) and protocol (it has thrown). They are those of this page alone.
  // Suspends: until it is done, and before that until there is room for one more page. Cancel: throws CancelledError.
  virtual Coro<Result<RenderedPage>> render(const HttpRequest& request, const HttpResponse& response, PageParts& parts,
                                            RenderOptions wishes) = 0;
  // After the last page: frees what was opened. May be called without open(), and twice. open() may follow.
  virtual Coro<void> close() = 0;
};

}  // namespace argiope
