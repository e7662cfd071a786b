// One page in a browser, from an empty profile to the document that its scripts have made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argiope/async/detail/future.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/render/page_renderer.hpp"
#include "render/devtools.hpp"

namespace argiope {

// For one page. `is_stuck()` afterwards: the browser did not do what it always can, and should be replaced.
//
// Threads:  the loop's own.
// Lifetime: what it is given outlives it. It is destroyed after leave().
class BrowserPage {
 public:
  BrowserPage(DevTools& tools, const ChromiumOptions& options, const HttpRequest& request, const HttpResponse& response,
              PageParts& parts, const RenderOptions& wishes);
  BrowserPage(const BrowserPage&) = delete;
  BrowserPage& operator=(const BrowserPage&) = delete;

  // To be called once. Errors and cancellation as PageRenderer::render().
  Coro<Result<RenderedPage>> render();
  // Whatever render() came to: ends what the page still asks for. Does not throw.
  Coro<void> leave();
  // The profile, to be forgotten; empty: there is none.
  const std::string& context() const noexcept { return context_; }
  bool is_stuck() const noexcept { return stuck_; }

 private:
  using Answer = Result<DevToolsMessage>;

  // --- what we ask of the browser
  Coro<Answer> ask(std::string method, std::string params = {});
  Coro<Answer> ask_browser(std::string method, std::string params = {});
  Coro<Result<void>> open();
  Coro<void> set_cookies(std::span<const Cookie> cookies);
  Coro<Result<void>> prepare();
  Coro<Result<void>> set_window();
  // Makes of its own script what can be evaluated, in `script_`. Errors: invalid_input for what is none.
  Coro<Result<void>> read_script();
  // Where it stands in its own function: whether that can be.
  Coro<Result<bool>> is_script(const std::string& body);
  Coro<Result<void>> run_script(RenderedPage& page);
  // `is_again`: it was done already, and its script has run since.
  Coro<Result<void>> wait_until_done(bool is_again = false);
  Coro<Result<bool>> is_there(const std::string& selector);
  // Among the page's scripts, which can change what functions do there. A promise is waited for.
  Coro<Answer> evaluate_in_page(std::string expression, Duration limit);
  // In a world of ours: the page's scripts cannot change what functions do there.
  Coro<Answer> evaluate(std::string expression);
  Coro<Result<void>> read_document(RenderedPage& page);
  Coro<void> read_cookies(RenderedPage& page);
  Coro<void> wait_for_news(TimePoint until);

  // --- what the browser tells us
  void on_event(const DevToolsMessage& event);
  void on_paused(const DevToolsMessage& event);
  void on_document(PausedRequest request);
  void note_own_url(std::string_view url);
  void fail_with(Error why);
  void refuse(const PausedRequest& request, std::string_view why = "BlockedByClient");
  Coro<void> answer_part(PausedRequest request, PartKind kind);
  std::string fulfilment(const PausedRequest& request, const HttpResponse& response, bool keeps_cookies) const;
  void news() { news_.set(); }
  TimePoint now() const { return EventLoop::current().time(); }

  DevTools& tools_;
  const ChromiumOptions& options_;
  const HttpRequest& request_;
  const HttpResponse& response_;
  PageParts& parts_;
  const RenderOptions& wishes_;

  std::string context_, target_, session_, frame_, loader_;
  std::string world_loader_;  // of the document that world_ belongs to
  std::int64_t world_ = 0;
  TimePoint deadline_ = kNever;
  bool delivered_ = false;  // the document that was fetched
  bool loaded_ = false;     // or its script has stopped that
  bool reloads_ = false;
  TimePoint quiet_since_{};
  std::size_t part_tasks_under_way_ = 0;
  std::vector<Task<void>> part_tasks_;
  std::optional<Error> failed_;
  std::string led_to_;
  std::vector<std::string> own_urls_;
  std::string script_;  // an expression: the promise of its result
  Event news_;
  bool stuck_ = false;
};

}  // namespace argiope
