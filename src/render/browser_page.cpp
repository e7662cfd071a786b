#include "render/browser_page.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/base64.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "web/http/internal/http_method_names.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

constexpr Duration kQuietTime = std::chrono::milliseconds{500};  // without requests, before a page counts as done
constexpr Duration kLookAgain = std::chrono::milliseconds{100};  // between two looks for an element
constexpr Duration kBrowserPatience = std::chrono::seconds{10};  // with what the browser always can
constexpr Duration kPagePatience = std::chrono::seconds{5};      // with a page that has to say what it looks like
constexpr std::size_t kMostOwnUrls = 1000;
constexpr std::size_t kMostOwnUrlBytes = 8000;
constexpr std::size_t kPieceBytes = 1536 * 1024;         // of a document, in one message; a multiple of 3
constexpr const char* kScriptPromise = "argiopeScript";  // in the page: what the script that began with it will give
constexpr std::string_view kWorldName = "argiope";

// The fields of an answer that are about the connection, that would make a download or another request of it, or that
// we say ourselves.
constexpr std::array<std::string_view, 20> kOwnFields = {"accept-ch",
                                                         "alt-svc",
                                                         "connection",
                                                         "content-disposition",
                                                         "content-encoding",
                                                         "content-length",
                                                         "content-type",
                                                         "critical-ch",
                                                         "cross-origin-opener-policy",
                                                         "keep-alive",
                                                         "link",
                                                         "nel",
                                                         "report-to",
                                                         "reporting-endpoints",
                                                         "set-cookie",
                                                         "speculation-rules",
                                                         "trailer",
                                                         "transfer-encoding",
                                                         "strict-transport-security",
                                                         "upgrade"};

std::optional<PartKind> kind_of(std::string_view type, bool with_images) {
  if (type == "Script") return PartKind::script;
  if (type == "Stylesheet") return PartKind::style;
  if (type == "XHR" || type == "Fetch") return PartKind::data;
  if (type == "Image" && with_images) return PartKind::image;
  return std::nullopt;
}

// A request that was made ahead of time is no part of the page.
bool is_prefetch(const PausedRequest& request) {
  return std::ranges::any_of(request.headers, [](const auto& field) {
    const std::string name = in_lower_case(field.first);
    return name == "sec-purpose" || (name == "purpose" && field.second == "prefetch");
  });
}

// A stream of events never ends: it would hold up all that the page asks for after it.
bool is_event_stream(const PausedRequest& request) {
  return std::ranges::any_of(request.headers, [](const auto& field) {
    return equals_lower(field.first, "accept") && in_lower_case(field.second).contains("text/event-stream");
  });
}

// Of a cookie, what the browser gives back as it was given: else it would count as changed by the page.
bool is_plain(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0 || (length == 1 && text.front() < ' ') || text.front() == '\x7f') return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

BrowserPage::BrowserPage(DevTools& tools, const ChromiumOptions& options, const HttpRequest& request,
                         const HttpResponse& response, PageParts& parts, const RenderOptions& wishes)
    : tools_(tools), options_(options), request_(request), response_(response), parts_(parts), wishes_(wishes) {}

// --- what we ask
// -------------------------------------------------------------------------------------------------------

Coro<BrowserPage::Answer> BrowserPage::ask(std::string method, std::string its_params) {
  return tools_.call(std::move(method), std::move(its_params), session_, kPagePatience);
}

Coro<BrowserPage::Answer> BrowserPage::ask_browser(std::string method, std::string its_params) {
  auto answer = co_await tools_.call(std::move(method), std::move(its_params), {}, kBrowserPatience);
  if (!answer && answer.error().code == Errc::timeout) stuck_ = true;
  co_return answer;
}

Coro<Result<RenderedPage>> BrowserPage::render() {
  if (auto opened = co_await open(); !opened) co_return std::unexpected(std::move(opened.error()));
  deadline_ = saturating_add(now(), options_.timeout);
  if (auto prepared = co_await prepare(); !prepared) co_return std::unexpected(std::move(prepared.error()));
  RenderedPage page;
  if (auto done = co_await wait_until_done(); !done) co_return std::unexpected(std::move(done.error()));
  if (!script_.empty() && led_to_.empty()) {
    if (auto ran = co_await run_script(page); !ran)
      co_return std::unexpected(std::move(failed_ ? *failed_ : ran.error()));
  }
  page.led_to = led_to_;
  page.reloads = reloads_;
  if (auto read = co_await read_document(page); !read && page.led_to.empty()) {
    co_return std::unexpected(std::move(failed_ ? *failed_ : read.error()));
  }
  co_await read_cookies(page);
  page.own_urls = std::move(own_urls_);
  co_return page;
}

// A profile, a page in it, and the way to that page.
Coro<Result<void>> BrowserPage::open() {
  auto context = co_await ask_browser("Target.createBrowserContext",
                                      json_object([](JsonWriter& json) { json.member("disposeOnDetach", true); }));
  if (!context) co_return std::unexpected(std::move(context.error()));
  context_ = context->text("/browserContextId");
  const auto of_context = [&](JsonWriter& json) { json.member("browserContextId", context_); };
  auto denied = co_await ask_browser("Browser.setDownloadBehavior", json_object([&](JsonWriter& json) {
                                       json.member("behavior", "deny");
                                       of_context(json);
                                     }));
  if (!denied) co_return std::unexpected(std::move(denied.error()));
  std::vector<Cookie> cookies = parts_.cookies();
  std::erase_if(cookies, [](const Cookie& cookie) { return !is_plain(cookie.name) || !is_plain(cookie.value); });
  co_await set_cookies(cookies);
  auto target = co_await ask_browser("Target.createTarget", json_object([&](JsonWriter& json) {
                                       json.member("url", "about:blank");
                                       of_context(json);
                                     }));
  if (!target) co_return std::unexpected(std::move(target.error()));
  target_ = target->text("/targetId");
  frame_ = target_;
  auto attached = co_await ask_browser("Target.attachToTarget", json_object([&](JsonWriter& json) {
                                         json.member("targetId", target_);
                                         json.member("flatten", true);
                                       }));
  if (!attached) co_return std::unexpected(std::move(attached.error()));
  session_ = attached->text("/sessionId");
  if (session_.empty()) co_return fail(Errc::protocol, "the browser gives no way to its page");
  tools_.listen(session_, [this](const DevToolsMessage& event) { on_event(event); });
  co_return Result<void>{};
}

// A cookie that the browser does not take is one that the page's scripts do not see. It refuses all of a list for one
// of them.
Coro<void> BrowserPage::set_cookies(std::span<const Cookie> cookies) {
  if (cookies.empty()) co_return;
  const auto write = [&](JsonWriter& json, const Cookie& cookie) {
    json.object([&] {
      json.member("name", cookie.name);
      json.member("value", cookie.value);
      if (cookie.host_only) {
        json.member("url", request_.url.site_key() + cookie.path);
      } else {
        json.member("domain", "." + cookie.domain);
      }
      json.member("path", cookie.path);
      json.member("secure", cookie.secure);
      json.member("httpOnly", cookie.http_only);
      if (cookie.expires)
        json.member("expires", std::chrono::duration<double>(cookie.expires->time_since_epoch()).count());
    });
  };
  const auto set = co_await ask_browser("Storage.setCookies", json_object([&](JsonWriter& json) {
                                          json.member("browserContextId", context_);
                                          json.array("cookies", [&] {
                                            for (const Cookie& cookie : cookies) write(json, cookie);
                                          });
                                        }));
  if (set || set.error().code != Errc::protocol || cookies.size() == 1) co_return;
  const std::size_t half = cookies.size() / 2;
  co_await set_cookies(cookies.first(half));
  co_await set_cookies(cookies.subspan(half));
}

// From here on nothing is asked for but by us; then the page begins.
Coro<Result<void>> BrowserPage::prepare() {
  const std::pair<const char*, std::string> steps[] = {
      {"Fetch.enable", R"({"patterns":[{"urlPattern":"*"}]})"},
      {"Page.enable", {}},
      {"Page.setLifecycleEventsEnabled", R"({"enabled":true})"},
      {"Inspector.enable", {}},
      // Workers wait until they are looked at.
      {"Target.setAutoAttach", R"({"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true})"},
      {"Network.setBypassServiceWorker", R"({"bypass":true})"},
  };
  for (const auto& [method, its_params] : steps) {
    auto answer = co_await ask(method, its_params);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
  }
  if (auto set = co_await set_window(); !set) co_return set;
  if (auto read = co_await read_script(); !read) co_return read;
  quiet_since_ = now();
  tools_.tell("Page.navigate", json_object([&](JsonWriter& json) { json.member("url", request_.url.href()); }),
              session_);
  co_return Result<void>{};
}

Coro<Result<void>> BrowserPage::set_window() {
  if (wishes_.width == 0 && wishes_.height == 0) co_return Result<void>{};
  auto set = co_await ask("Emulation.setDeviceMetricsOverride", json_object([&](JsonWriter& json) {
                            json.member("width", wishes_.width);
                            json.member("height", wishes_.height);
                            json.member("deviceScaleFactor", 1);
                            json.member("mobile", false);
                          }));
  if (!set) co_return std::unexpected(std::move(set.error()));
  co_return Result<void>{};
}

Coro<Result<bool>> BrowserPage::is_script(const std::string& body) {
  // Read and not run, in the empty page that is there before the first.
  auto read = co_await evaluate_in_page(fmt::format("void(async()=>{{{}}})", body), kPagePatience);
  if (!read) co_return std::unexpected(std::move(read.error()));
  co_return !read->has("/exceptionDetails");
}

Coro<Result<void>> BrowserPage::read_script() {
  std::string_view text = wishes_.script;
  while (!text.empty() && (is_space(text.back()) || text.back() == ';')) text.remove_suffix(1);
  if (text.empty()) co_return Result<void>{};
  std::string body = fmt::format("const f=(\n{}\n);return typeof f==='function'?f():f", text);
  auto good = co_await is_script(body);
  if (good && !*good) {
    body = fmt::format("\n{}\n", text);
    good = co_await is_script(body);
  }
  if (!good) co_return std::unexpected(std::move(good.error()));
  if (!*good)
    co_return fail(Errc::invalid_input,
                   "its script is neither a function nor an expression nor statements of JavaScript");
  script_ = fmt::format("(async()=>{{{}}})()", body);
  if (!wishes_.script_at_start) co_return Result<void>{};
  // Frames are pages of their own, and empty.
  const std::string source = fmt::format(
      "if(self===top)Object.defineProperty(globalThis,'{}',{{value:(()=>{{const p={};p.catch(()=>{{}});return "
      "p}})()}})",
      kScriptPromise, script_);
  auto added = co_await ask("Page.addScriptToEvaluateOnNewDocument",
                            json_object([&](JsonWriter& json) { json.member("source", source); }));
  if (!added) co_return std::unexpected(std::move(added.error()));
  script_ = kScriptPromise;
  co_return Result<void>{};
}

Coro<Result<void>> BrowserPage::run_script(RenderedPage& page) {
  // It has the time that the page has, and a little where that is over.
  auto answer = co_await evaluate_in_page(
      fmt::format("(async()=>{{const s=JSON.stringify(await {});if(s===undefined)return '';"
                  "if(typeof s!=='string'||s.length>{})throw 'its result is too large';return s}})()",
                  script_, kMostScriptResult),
      std::max<Duration>(deadline_ - now(), kPagePatience));
  if (!answer && answer.error().code == Errc::timeout) co_return fail(Errc::timeout, "its script has not ended");
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  if (answer->has("/exceptionDetails")) {
    std::string_view why = answer->text("/exceptionDetails/exception/description");
    if (why.empty()) why = answer->text("/exceptionDetails/exception/value");
    co_return fail(Errc::protocol,
                   fmt::format("its script has failed: {}", printable(why.substr(0, why.find('\n')), kMostQuoted)));
  }
  const std::string_view result = answer->text("/result/value");
  if (result.size() > kMostScriptResult) co_return fail(Errc::too_large, "its script's result is too large");
  // The page's scripts may have changed what makes JSON of it.
  if (!result.empty() && !JsonText::parse(result)) co_return fail(Errc::protocol, "its script's result is no JSON");
  page.script_result = result;
  if (wishes_.script_at_start) co_return Result<void>{};
  co_return co_await wait_until_done(true);
}

Coro<void> BrowserPage::wait_for_news(TimePoint until) {
  news_.clear();
  try {
    co_await timeout_at(until).run(news_.wait());
  } catch (const TimeoutError&) {
    // Time has passed: that is news enough.
  }
}

Coro<Result<void>> BrowserPage::wait_until_done(bool is_again) {
  std::optional<TimePoint> loaded_at;
  if (is_again) loaded_at = quiet_since_ = now();
  for (;;) {
    if (tools_.has_ended()) co_return std::unexpected(tools_.why_ended());
    if (failed_) co_return std::unexpected(*failed_);
    if (!led_to_.empty()) co_return Result<void>{};
    if (loaded_ && !loaded_at) loaded_at = now();
    const bool late = now() >= deadline_;
    TimePoint look_at = deadline_;
    if (!options_.until.empty() && !is_again) {
      if (!loader_.empty()) {  // else it is not the page yet
        auto there = co_await is_there(options_.until);
        if (!there) co_return std::unexpected(std::move(there.error()));
        if (*there) co_return Result<void>{};
      }
      if (late) {
        co_return fail(Errc::timeout, fmt::format("no element {} after {} s", in_quotes(options_.until),
                                                  std::chrono::duration<double>(options_.timeout).count()));
      }
      look_at = std::min(look_at, now() + kLookAgain);
    } else if (loaded_at) {
      const TimePoint done_at = options_.wait               ? saturating_add(*loaded_at, *options_.wait)
                                : part_tasks_under_way_ > 0 ? deadline_
                                                            : std::max(*loaded_at, quiet_since_) + kQuietTime;
      if (late || now() >= done_at) co_return Result<void>{};
      look_at = std::min(look_at, done_at);
    } else if (late) {
      co_return fail(Errc::timeout,
                     fmt::format("not loaded after {} s", std::chrono::duration<double>(options_.timeout).count()));
    }
    co_await wait_for_news(look_at);
  }
}

Coro<BrowserPage::Answer> BrowserPage::evaluate_in_page(std::string expression, Duration limit) {
  return tools_.call("Runtime.evaluate", json_object([&](JsonWriter& json) {
                       json.member("expression", expression);
                       json.member("awaitPromise", true);
                       json.member("returnByValue", true);
                     }),
                     session_, limit);
}

Coro<BrowserPage::Answer> BrowserPage::evaluate(std::string expression) {
  if (world_ == 0 || world_loader_ != loader_) {
    const std::string loader = loader_;
    auto world = co_await ask("Page.createIsolatedWorld", json_object([&](JsonWriter& json) {
                                json.member("frameId", frame_);
                                json.member("worldName", kWorldName);
                              }));
    if (!world) co_return world;
    world_ = static_cast<std::int64_t>(world->number("/executionContextId"));
    world_loader_ = loader;
  }
  auto answer = co_await ask("Runtime.evaluate", json_object([&](JsonWriter& json) {
                               json.member("expression", expression);
                               json.member("contextId", world_);
                               json.member("returnByValue", true);
                             }));
  if (answer && answer->has("/exceptionDetails")) {
    co_return fail(Errc::protocol,
                   fmt::format("the page cannot be read: {}",
                               printable(answer->text("/exceptionDetails/exception/description"), kMostQuoted)));
  }
  co_return answer;
}

Coro<Result<bool>> BrowserPage::is_there(const std::string& selector) {
  std::string quoted;
  append_json_string(quoted, selector);
  auto found = co_await evaluate(fmt::format("document.querySelector({})!==null", quoted));
  // While one document takes the place of another there is none to ask.
  if (!found && found.error().code == Errc::protocol && !found.error().message.contains("SyntaxError")) co_return false;
  if (!found) co_return std::unexpected(std::move(found.error()));
  co_return found->flag("/result/value");
}

// In pieces, so that no message is large: the bytes of the document in UTF-8, as base64.
Coro<Result<void>> BrowserPage::read_document(RenderedPage& page) {
  auto made = co_await evaluate(
      "(()=>{const t=document.doctype,e=document.documentElement;"
      "const h=(t?'<!DOCTYPE '+t.name+(t.publicId?' PUBLIC \"'+t.publicId+'\"':t.systemId?' SYSTEM':'')"
      "+(t.systemId?' \"'+t.systemId+'\"':'')+'>':'')+(e?e.outerHTML:'');"
      "globalThis.made=new TextEncoder().encode(h);return location.protocol+made.length})()");
  if (!made) co_return std::unexpected(std::move(made.error()));
  const std::string_view told = made->text("/result/value");
  if (!told.starts_with("http")) co_return fail(Errc::protocol, "the page's script has left it for another document");
  std::uint64_t size = 0;
  for (const char c : told.substr(std::min(told.size(), told.find(':') + 1))) {
    if (is_digit(c)) size = size * 10 + static_cast<std::uint64_t>(c - '0');
  }
  page.is_cut = size > request_.body_limit;
  const std::uint64_t wanted = std::min<std::uint64_t>(size, request_.body_limit);
  while (page.html.size() < wanted) {
    const std::uint64_t end = std::min<std::uint64_t>(wanted, page.html.size() + kPieceBytes);
    auto piece = co_await evaluate(
        fmt::format("(()=>{{let s='';for(let "
                    "i={};i<{};i+=24576)s+=btoa(String.fromCharCode.apply(null,made.subarray(i,Math.min(i+24576,{}))));"
                    "return s}})()",
                    page.html.size(), end, end));
    if (!piece) co_return std::unexpected(std::move(piece.error()));
    const auto bytes = from_base64(piece->text("/result/value"));
    if (!bytes || bytes->size() != end - page.html.size()) {
      co_return fail(Errc::protocol, "the browser does not give the page as it should");
    }
    page.html += *bytes;
  }
  co_return Result<void>{};
}

Coro<void> BrowserPage::read_cookies(RenderedPage& page) {
  auto answer = co_await ask_browser("Storage.getCookies",
                                     json_object([&](JsonWriter& json) { json.member("browserContextId", context_); }));
  if (!answer) co_return;
  answer->for_each("/cookies", [&](simdjson::dom::element entry) {
    const auto text = [&](const char* name) {
      std::string_view value;
      return entry[name].get(value) == simdjson::SUCCESS ? value : std::string_view{};
    };
    const auto flag = [&](const char* name) {
      bool value = false;
      return entry[name].get(value) == simdjson::SUCCESS && value;
    };
    Cookie cookie;
    cookie.name = text("name");
    cookie.value = text("value");
    std::string_view domain = text("domain");
    cookie.host_only = !domain.starts_with('.');
    if (!cookie.host_only) domain.remove_prefix(1);
    cookie.domain = domain;
    cookie.path = text("path");
    cookie.secure = flag("secure");
    cookie.http_only = flag("httpOnly");
    double expires = 0;
    if (!flag("session") && entry["expires"].get(expires) == simdjson::SUCCESS && std::isfinite(expires)) {
      constexpr double kLatest = 9e9;  // of what a WallTime holds
      cookie.expires =
          WallTime{} + std::chrono::milliseconds{static_cast<std::int64_t>(std::clamp(expires, 0.0, kLatest) * 1000)};
    }
    page.cookies.push_back(std::move(cookie));
  });
}

Coro<void> BrowserPage::leave() {
  if (!session_.empty()) tools_.forget(session_);
  for (Task<void>& task : part_tasks_) {
    // Cancelled again and again or not: what the task refers to must outlive it.
    while (!task.done()) {
      task.cancel();
      try {
        co_await task;
      } catch (const CancelledError&) {
        // the task's, or our own, which our caller knows of
      } catch (const std::exception& error) {
        spdlog::debug("{}: {}", request_.url.href(), error.what());
      }
    }
  }
  part_tasks_.clear();
}

// --- what the browser tells
// ----------------------------------------------------------------------------------------------

void BrowserPage::fail_with(Error why) {
  if (!failed_) failed_ = std::move(why);
  news();
}

void BrowserPage::on_event(const DevToolsMessage& event) {
  const std::string_view method = event.method;
  if (method == "Fetch.requestPaused") {
    on_paused(event);
  } else if (method == "Page.lifecycleEvent") {
    if (event.text("/name") == "load" && event.text("/frameId") == frame_ && event.text("/loaderId") == loader_ &&
        !loader_.empty()) {
      loaded_ = true;
      news();
    }
  } else if (method == "Page.frameNavigated") {
    if (event.has("/frame/parentId")) return;
    const std::string_view url = event.text("/frame/url");
    if (!delivered_ || !url.starts_with("http")) {
      if (delivered_) fail_with({Errc::protocol, "the page's script has left it for another document"});
      return;
    }
    loader_ = event.text("/frame/loaderId");
    frame_ = event.text("/frame/id");
    news();
  } else if (method == "Page.navigatedWithinDocument") {
    if (event.text("/frameId") == frame_) note_own_url(event.text("/url"));
  } else if (method == "Page.javascriptDialogOpening") {
    tools_.tell("Page.handleJavaScriptDialog", R"({"accept":false})", session_);
  } else if (method == "Target.attachedToTarget") {
    // A worker's requests pass through its page. Whatever else there may be never starts.
    if (event.text("/targetInfo/type") == "worker") {
      tools_.tell("Runtime.runIfWaitingForDebugger", {}, event.text("/sessionId"));
    }
  } else if (method == "Inspector.targetCrashed") {
    fail_with({Errc::network, "the page's process has crashed"});
  } else if (method == "Inspector.detached") {
    fail_with({Errc::network, fmt::format("the page has gone: {}", printable(event.text("/reason"), kMostQuoted))});
  }
}

void BrowserPage::note_own_url(std::string_view url) {
  if (own_urls_.size() < kMostOwnUrls && url.size() <= kMostOwnUrlBytes &&
      std::ranges::find(own_urls_, url) == own_urls_.end()) {
    own_urls_.emplace_back(url);
  }
}

void BrowserPage::refuse(const PausedRequest& request, std::string_view why) {
  tools_.tell("Fetch.failRequest", json_object([&](JsonWriter& json) {
                json.member("requestId", request.id);
                json.member("errorReason", why);
              }),
              session_);
}

void BrowserPage::on_paused(const DevToolsMessage& event) {
  auto request = paused_request_of(event);
  if (!request) {
    PausedRequest unknown;
    unknown.id = event.text("/requestId");
    if (!unknown.id.empty()) refuse(unknown);
    return;
  }
  if (request->type == "Document") return on_document(std::move(*request));
  const auto kind = kind_of(request->type, wishes_.images);
  if (!kind || is_prefetch(*request) || is_event_stream(*request) || !delivered_) return refuse(*request);
  std::erase_if(part_tasks_, [](const Task<void>& task) { return task.done(); });
  ++part_tasks_under_way_;
  part_tasks_.push_back(EventLoop::current().create_task(answer_part(std::move(*request), *kind), "page's request"));
}

// The page itself; or where its script wants to go instead.
void BrowserPage::on_document(PausedRequest request) {
  // Frames stay empty. No error page is shown for what is aborted.
  if (request.frame != frame_) return refuse(request, "Aborted");
  if (!delivered_) {
    // Some browsers try https first.
    const bool is_asked = std::string_view(request.url).substr(0, request.url.find(':')) == request_.url.scheme();
    if (!is_asked) return refuse(request, "ConnectionFailed");
    delivered_ = true;
    const std::string document = fulfilment(request, response_, false);
    tools_.tell("Fetch.fulfillRequest", document, session_);
    return;
  }
  if (request.method == "GET" && request.url != request_.url.without_fragment()) {
    if (led_to_.empty()) led_to_ = request.url;
  } else {
    // It sends a form, or loads itself anew. That has stopped its loading, of whose end the browser does not tell.
    reloads_ |= request.method == "GET";
    loaded_ = true;
    quiet_since_ = now();
  }
  news();
  refuse(request, "Aborted");
}

std::string BrowserPage::fulfilment(const PausedRequest& request, const HttpResponse& response,
                                    bool keeps_cookies) const {
  return json_object([&](JsonWriter& json) {
    json.member("requestId", request.id);
    json.member("responseCode", response.status);
    json.array("responseHeaders", [&] {
      const auto field = [&](std::string_view name, std::string_view value) {
        json.object([&] {
          json.member("name", name);
          json.member("value", value);
        });
      };
      if (!response.headers.content_type.empty()) field("Content-Type", response.headers.content_type);
      for (const auto& [name, value] : response.fields) {
        const std::string lower = in_lower_case(name);
        const bool is_cookie = keeps_cookies && lower == "set-cookie";
        if (is_cookie || std::ranges::find(kOwnFields, lower) == kOwnFields.end()) field(name, value);
      }
    });
    json.member("body", to_base64(response.body));
  });
}

Coro<void> BrowserPage::answer_part(PausedRequest paused, PartKind kind) {
  struct Leaves {
    BrowserPage& page;
    ~Leaves() {
      --page.part_tasks_under_way_;
      page.quiet_since_ = page.now();
      page.news();
    }
  } const leaves{*this};
  HttpRequest request;
  const auto method = http_method_named(paused.method);
  auto url = Url::parse(paused.url);
  if (!method || !url) co_return refuse(paused);
  request.method = *method;
  request.url = std::move(*url);
  request.headers = std::move(paused.headers);
  request.body = std::move(paused.body);
  HttpResponse response;
  std::optional<Error> why;
  try {
    if (auto fetched = co_await parts_.fetch(std::move(request), kind, response); !fetched)
      why = std::move(fetched.error());
  } catch (const CancelledError&) {
    throw;
  } catch (const std::exception& error) {
    why = Error{Errc::internal, error.what()};
  }
  if (why) {
    spdlog::debug("{}: not fetched for {}: {}", printable(paused.url), request_.url.href(), printable(why->message));
    co_return refuse(paused, why->code == Errc::refused ? "BlockedByClient" : "Failed");
  }
  if (!response.damage.empty()) co_return refuse(paused, "Failed");
  co_await tools_.tell_much("Fetch.fulfillRequest", fulfilment(paused, response, true), session_);
}

}  // namespace argiope
