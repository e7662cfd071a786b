// The browsers that pages are rendered in: one at a time takes new pages, and is replaced when it is old, large or
// stuck.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "argiope/async/detail/future.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/render/page_renderer.hpp"
#include "async/internal/background.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "render/browser_page.hpp"
#include "render/browser_process.hpp"
#include "render/devtools.hpp"

namespace argiope {
namespace {

constexpr Duration kStartPatience = std::chrono::seconds{30};
constexpr Duration kEndPatience = std::chrono::seconds{10};  // with a profile that is to be forgotten
constexpr std::size_t kMostProtocolBytes = std::size_t{64} << 20;
constexpr std::size_t kPagesPerMemoryCheck = 8;
constexpr std::size_t kMostWords = 300;

// The part of a browser's last words that says why: its last fatal line, or its last one.
std::string reason_in(std::string_view words) {
  std::string_view reason;
  bool is_fatal = false;
  while (!words.empty()) {
    const std::string_view line = words.substr(0, words.find('\n'));
    words.remove_prefix(std::min(words.size(), line.size() + 1));
    const bool fatal = line.contains("FATAL") || line.contains("sandbox") || line.contains("error while loading");
    if (line.empty() || (is_fatal && !fatal)) continue;
    reason = line;
    is_fatal = fatal;
  }
  return printable(reason, kMostWords);
}

// Memory that a process has for itself; 0 when it has gone.
std::uint64_t private_bytes(std::int64_t process) {
  std::FILE* const file = std::fopen(fmt::format("/proc/{}/statm", process).c_str(), "re");
  if (file == nullptr) return 0;
  unsigned long long size = 0, resident = 0, shared = 0;
  const int read = std::fscanf(file, "%llu %llu %llu", &size, &resident, &shared);
  std::fclose(file);
  if (read != 3 || shared > resident) return 0;
  return (resident - shared) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

struct RunningBrowser {
  explicit RunningBrowser(std::unique_ptr<detail::BrowserProcess> its_process)
      : process(std::move(its_process)), tools(process->to(), process->from(), kMostProtocolBytes) {}
  std::unique_ptr<detail::BrowserProcess> process;
  DevTools tools;
  std::size_t pages_begun = 0;
  std::size_t pages_under_way = 0;
  bool retired = false;  // takes no more pages, and ends with its last one
  bool ending = false;
};

}  // namespace

class ChromiumRenderer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(ChromiumOptions options, Launch launch)
      : options_(std::move(options)),
        launch_(std::move(launch)),
        places_(static_cast<std::ptrdiff_t>(options_.pages)) {}

  Coro<Result<void>> open() {
    auto browser = co_await obtain();
    if (!browser) co_return std::unexpected(std::move(browser.error()));
    co_return Result<void>{};
  }

  Coro<Result<RenderedPage>> render(const HttpRequest& request, const HttpResponse& response, PageParts& parts,
                                    RenderOptions wishes) {
    auto place = std::make_shared<Semaphore::Permit>(co_await places_.scoped());
    auto obtained = co_await obtain();
    if (!obtained) co_return std::unexpected(std::move(obtained.error()));
    const std::shared_ptr<RunningBrowser> browser = std::move(*obtained);
    ++browser->pages_begun;
    ++browser->pages_under_way;
    BrowserPage page(browser->tools, options_, request, response, parts, wishes);
    Result<RenderedPage> rendered = fail(Errc::cancelled, "cancelled");
    std::exception_ptr thrown;
    try {
      rendered = co_await page.render();
    } catch (...) {
      thrown = std::current_exception();
    }
    co_await page.leave();
    if (page.is_stuck()) end_now(browser);
    background().run(shared_from_this(), forget(browser, page.context(), std::move(place)));
    if (thrown) std::rethrow_exception(thrown);
    if (!rendered && browser->tools.has_ended()) co_return std::unexpected(why_ended(*browser));
    co_return rendered;
  }

  Coro<void> close() {
    if (current_) end_now(std::exchange(current_, nullptr));
    if (background_) co_await background_->quiet();
  }

  std::uint64_t browsers_started() const noexcept { return started_; }

 private:
  Background& background() {
    if (!background_) background_.emplace(EventLoop::current(), "browser");
    return *background_;
  }

  static Error why_ended(const RunningBrowser& browser) {
    Error why = browser.tools.has_ended() ? browser.tools.why_ended() : Error{Errc::network, "the browser has ended"};
    if (const std::string words = reason_in(browser.process->last_words()); !words.empty()) why.message += ": " + words;
    return why;
  }

  // One that takes a page more.
  Coro<Result<std::shared_ptr<RunningBrowser>>> obtain() {
    const auto held = co_await starting_.scoped();
    if (current_ &&
        (current_->retired || current_->tools.has_ended() || current_->pages_begun >= options_.pages_per_browser)) {
      retire(std::exchange(current_, nullptr));
    }
    if (current_) co_return current_;
    std::shared_ptr<RunningBrowser> browser;
    try {
      browser = std::make_shared<RunningBrowser>(launch_());
    } catch (const std::system_error& error) {
      co_return fail(Errc::io, fmt::format("the browser cannot be started: {}", error.what()));
    }
    ++started_;
    background().run(shared_from_this(), listen(browser));
    std::exception_ptr cancelled;
    Result<DevToolsMessage> version = fail(Errc::cancelled, "cancelled");
    try {
      version = co_await browser->tools.call("Browser.getVersion", {}, {}, kStartPatience);
    } catch (...) {
      cancelled = std::current_exception();
    }
    if (cancelled || !version) end_now(browser);
    if (cancelled) std::rethrow_exception(cancelled);
    if (!version) {
      Error why = why_ended(*browser);
      if (!browser->tools.has_ended()) why = version.error();
      co_return fail(why.code, fmt::format("the browser cannot be started: {}", why.message));
    }
    spdlog::debug("browser: {}", printable(version->text("/product"), kMostQuoted));
    current_ = browser;
    co_return browser;
  }

  // The browser's messages reach those who wait for them.
  Coro<void> listen(std::shared_ptr<RunningBrowser> browser) {
    const Error why = co_await browser->tools.run();
    if (!browser->ending) {
      spdlog::debug("{}", why_ended(*browser).message);
      end_now(browser);
    }
  }

  // It ends when its last page has.
  void retire(const std::shared_ptr<RunningBrowser>& browser) {
    browser->retired = true;
    if (browser->pages_under_way == 0) end_now(browser);
  }
  void end_now(const std::shared_ptr<RunningBrowser>& browser) {
    browser->retired = true;
    if (!std::exchange(browser->ending, true)) background().run(shared_from_this(), end(browser));
  }
  static Coro<void> end(std::shared_ptr<RunningBrowser> browser) { co_await browser->process->end(); }

  // The page's place is free when its profile is gone.
  Coro<void> forget(std::shared_ptr<RunningBrowser> browser, std::string context,
                    std::shared_ptr<Semaphore::Permit> place) {
    if (!context.empty() && !browser->tools.has_ended() && !browser->ending) {
      auto gone = co_await browser->tools.call(
          "Target.disposeBrowserContext",
          json_object([&](JsonWriter& json) { json.member("browserContextId", context); }), {}, kEndPatience);
      if (!gone && gone.error().code == Errc::timeout) end_now(browser);
    }
    if (browser->pages_begun % kPagesPerMemoryCheck == 0 && !browser->retired) co_await check_memory(browser);
    if (--browser->pages_under_way == 0 && browser->retired) end_now(browser);
    place.reset();
  }

  Coro<void> check_memory(std::shared_ptr<RunningBrowser> browser) {
    auto processes = co_await browser->tools.call("SystemInfo.getProcessInfo", {}, {}, kEndPatience);
    if (!processes) co_return;
    std::uint64_t bytes = 0;
    processes->for_each("/processInfo", [&](simdjson::dom::element entry) {
      std::int64_t id = 0;
      if (entry["id"].get(id) == simdjson::SUCCESS && id > 0) bytes += private_bytes(id);
    });
    if (bytes <= options_.memory_limit) co_return;
    spdlog::debug("the browser holds {} bytes, and is replaced", bytes);
    browser->retired = true;
  }

  const ChromiumOptions options_;
  const Launch launch_;
  Semaphore places_;
  Lock starting_;
  std::shared_ptr<RunningBrowser> current_;
  std::optional<Background> background_;
  std::uint64_t started_ = 0;
};

namespace {

ChromiumOptions checked(ChromiumOptions options) {
  if (auto good = check(options); !good) throw std::invalid_argument(good.error().message);
  return options;
}

}  // namespace

ChromiumRenderer::ChromiumRenderer(ChromiumOptions options)
    : ChromiumRenderer(checked(options), [options] { return detail::start_chromium(options); }) {}
ChromiumRenderer::ChromiumRenderer(ChromiumOptions options, Launch launch)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(launch))) {}
ChromiumRenderer::~ChromiumRenderer() = default;

Coro<Result<void>> ChromiumRenderer::open() { return impl_->open(); }
Coro<Result<RenderedPage>> ChromiumRenderer::render(const HttpRequest& request, const HttpResponse& response,
                                                    PageParts& parts, RenderOptions wishes) {
  return impl_->render(request, response, parts, std::move(wishes));
}
Coro<void> ChromiumRenderer::close() { return impl_->close(); }
std::uint64_t ChromiumRenderer::browsers_started() const noexcept { return impl_->browsers_started(); }

}  // namespace argiope
