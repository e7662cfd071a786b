// ChromiumRenderer: pages as a Chromium on this machine makes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/render/page_renderer.hpp"

namespace argiope {

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
