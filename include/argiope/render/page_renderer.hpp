// PageRenderer: what makes of a fetched page what its scripts make of it. ChromiumRenderer does it with
// a browser; tests do it without. A renderer opens no connection: all that a page asks for goes through PageParts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/http_session.hpp"

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

// ChromiumRenderer: pages as a Chromium on this machine makes them.

namespace detail {
class BrowserProcess;
}

struct ChromiumOptions {
  std::string program;                 // see find_chromium()
  std::string user_agent = "argiope";  // what scripts are told
  // Chromium's own sandbox keeps scripts from the machine. It does not work for root.
  bool sandbox = true;

  std::size_t pages = 4;  // rendered at a time
  // When a page is done: when it has loaded and has asked for nothing for 500 ms. Or so long after it has loaded:
  std::optional<Duration> wait;
  // Or as soon as there is an element for this CSS selector; empty: does not count.
  std::string until;
  // A page that has not loaded by then, or has no such element, is an error; one that has is taken as it is. Counts
  // from when there is room for it.
  Duration timeout = std::chrono::seconds{30};

  // The browser is replaced after so many pages, and when its processes hold more memory than this. A page that alone
  // wants more crashes.
  std::size_t pages_per_browser = 500;
  std::uint64_t memory_limit = std::uint64_t{2} << 30;
};

// The browser's program: `name` where it is given (a path, or a name in PATH), else the first in PATH of chromium,
// chromium-browser, google-chrome and google-chrome-stable.
// Errors: not_found, as a sentence that says what to install.
Result<std::string> find_chromium(const std::string& name = {});
// Whether a browser may be started so. Errors: unsupported for root with a sandbox, invalid_input for `until`.
Result<void> check(const ChromiumOptions& options);

// A browser that is started when it is needed, in a folder that is removed with it, and spoken to by its debugging
// protocol over a pipe. Each page has a profile of its own, which is forgotten with it.
//
// The browser reaches no network: each request of a page is answered with what PageParts gives, or refused (pictures
// that RenderOptions does not ask for, media, fonts, frames, WebSocket, WebRTC, downloads, service workers). Where the
// system lets us, it also runs without network interfaces.
//
// It ends with this object and with this process, however that ends. One that crashes or does not answer is replaced;
// the pages that it had are errors. So is a page of which the browser's process for it crashes.
//
// Threads: the loop's own. Lifetime: close() before the loop ends.
class ChromiumRenderer final : public PageRenderer {
 public:
  // Starts a browser. Throws what create_subprocess_exec does.
  using Launch = std::function<std::unique_ptr<detail::BrowserProcess>()>;

  // Throws std::invalid_argument for options that check() refuses.
  explicit ChromiumRenderer(ChromiumOptions options);
  // With another browser than Chromium; for tests.
  ChromiumRenderer(ChromiumOptions options, Launch launch);
  ~ChromiumRenderer() override;

  Coro<Result<void>> open() override;
  Coro<Result<RenderedPage>> render(const HttpRequest& request, const HttpResponse& response, PageParts& parts,
                                    RenderOptions wishes = {}) override;
  Coro<void> close() override;

  // Browsers that were started, those that were replaced included.
  std::uint64_t browsers_started() const noexcept;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace argiope
