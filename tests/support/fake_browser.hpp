// A browser without a browser: speaks the debugging protocol as Chromium does, for one page at a time after the other,
// and can be told to misbehave.
#pragma once

#include <sys/socket.h>

#include <boost/json.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/detail/future.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "base/internal/base64.hpp"
#include "render/browser_process.hpp"

namespace argiope {

// What the browsers of one test do, and what they were told.
struct FakeBrowserScript {
  struct Part {
    std::string url;
    std::string type = "Script";
    std::string method = "GET";
    std::string headers = "{}";  // JSON
    std::string post_data = {};
  };
  std::vector<Part> parts;  // that the page asks for once it is there
  std::optional<Part> before_document;
  std::string document = "<html></html>";
  std::set<std::string> silent;   // methods that are never answered
  std::set<std::string> refused;  // that are answered with an error
  std::string bad_cookie;         // in its text: no list with it is taken
  // What it says after a method, as it stands; $S: the page's session.
  std::map<std::string, std::vector<std::string>> after;
  std::string ends_at;  // a method at which it ends
  bool loads = true;
  int looks_until_there = 0;  // for an element
  std::string cookies = "[]";
  int forms_not_read = 0;                                   // of the view's script, before one that is
  std::string script_gives = R"({"result":{"value":""}})";  // when it is run; empty: nothing ever
  std::string words;                                        // its last ones

  std::vector<std::pair<std::string, boost::json::object>> heard;           // methods and parameters
  std::vector<std::pair<std::string, boost::json::object>> answered_parts;  // URL, and what it was answered with
  int browsers = 0;
  int ended = 0;

  std::size_t count(const std::string& method) const {
    std::size_t times = 0;
    for (const auto& [name, params] : heard) times += name == method ? 1u : 0u;
    return times;
  }
};

// One of them, at both ends of a socket.
class FakeBrowser final : public detail::BrowserProcess {
 public:
  explicit FakeBrowser(std::shared_ptr<FakeBrowserScript> script) : script_(std::move(script)) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    StreamOptions wide;
    wide.write_limit = std::size_t{256} << 20;
    wide.limit = std::size_t{256} << 20;
    ours_ = Stream(ends[0], wide);
    ++script_->browsers;
    task_ = EventLoop::current().create_task(serve(script_, Stream(ends[1], wide)), "fake browser");
  }
  Stream& to() override { return ours_; }
  Stream& from() override { return ours_; }
  std::string last_words() const override { return script_->words; }
  Coro<void> end() override {
    ++script_->ended;
    ours_.abort();
    if (!task_.done()) task_.cancel();
    co_return;
  }

 private:
  using Script = std::shared_ptr<FakeBrowserScript>;
  struct Page {
    int number = 0;
    std::string url;
    std::string session;
    std::set<std::string> open_parts;
    std::map<std::string, std::string> urls;  // by request
    int last_request = 0;
    bool delivered = false;
  };

  static void say(Stream& stream, std::string text) {
    text += '\0';
    if (!stream.is_closing()) stream.write(text);
  }
  static void event(Stream& stream, const Page& page, const std::string& method, const std::string& params) {
    say(stream, R"({"method":")" + method + R"(","params":)" + params + R"(,"sessionId":")" + page.session + "\"}");
  }
  static void paused(Stream& stream, Page& page, const FakeBrowserScript::Part& part) {
    const std::string id = "R" + std::to_string(++page.last_request);
    page.urls[id] = part.url;
    std::string post;
    if (!part.post_data.empty()) {
      post = R"(,"hasPostData":true,"postDataEntries":[{"bytes":")" + to_base64(part.post_data) + R"("}])";
    }
    event(stream, page, "Fetch.requestPaused",
          R"({"requestId":")" + id + R"(","frameId":"T","resourceType":")" + part.type + R"(","request":{"url":")" +
              part.url + R"(","method":")" + part.method + R"(","headers":)" + part.headers + post + "}}");
    if (part.type != "Document") page.open_parts.insert(id);
  }
  static void maybe_loaded(const Script& script, Stream& stream, Page& page) {
    if (!page.delivered || !page.open_parts.empty() || !script->loads) return;
    event(stream, page, "Page.lifecycleEvent", R"({"frameId":"T","loaderId":"L","name":"load"})");
  }

  static std::string evaluated(const Script& script, const std::string& expression) {
    if (expression.starts_with("void(")) return script->forms_not_read-- > 0 ? R"({"exceptionDetails":{}})" : "{}";
    if (expression.find("JSON.stringify") != std::string::npos) return script->script_gives;
    if (expression.find("outerHTML") != std::string::npos) {
      return R"({"result":{"value":"http:)" + std::to_string(script->document.size()) + "\"}}";
    }
    if (expression.find("querySelector") != std::string::npos) {
      return script->looks_until_there-- <= 0 ? R"({"result":{"value":true}})" : R"({"result":{"value":false}})";
    }
    const std::size_t from = std::stoul(expression.substr(expression.find("let i=") + 6));
    const std::size_t to = std::stoul(expression.substr(expression.find("i<") + 2));
    return R"({"result":{"value":")" + to_base64(std::string_view(script->document).substr(from, to - from)) + "\"}}";
  }

  static Coro<void> serve(Script script, Stream stream) {
    Page page;
    try {
      for (;;) {
        std::string text = co_await stream.read_until(std::string(1, '\0'), std::size_t{256} << 20);
        text.pop_back();
        const boost::json::object message = boost::json::parse(text).as_object();
        const std::string method(message.at("method").as_string());
        const boost::json::object& params = message.at("params").as_object();
        const std::string id = std::to_string(message.at("id").to_number<std::int64_t>());
        script->heard.emplace_back(method, params);
        if (method == script->ends_at) co_return stream.abort();
        if (script->silent.contains(method)) continue;
        const bool has_bad_cookie = method == "Storage.setCookies" && !script->bad_cookie.empty() &&
                                    boost::json::serialize(params).find(script->bad_cookie) != std::string::npos;
        if (script->refused.contains(method) || has_bad_cookie) {
          say(stream, R"({"id":)" + id + R"(,"error":{"code":-1,"message":"no )" + method + "\"}}");
          continue;
        }
        std::string result = "{}";
        if (method == "Browser.getVersion") result = R"({"product":"Fake/1"})";
        if (method == "Target.createBrowserContext") result = R"({"browserContextId":"C"})";
        if (method == "Target.createTarget") result = R"({"targetId":"T"})";
        if (method == "Target.attachToTarget") {
          const int number = page.number + 1;
          page = Page{};
          page.number = number;
          page.session = "S" + std::to_string(number);
          result = R"({"sessionId":")" + page.session + "\"}";
        }
        if (method == "Page.createIsolatedWorld") result = R"({"executionContextId":7})";
        if (method == "Runtime.evaluate") result = evaluated(script, std::string(params.at("expression").as_string()));
        if (method == "Storage.getCookies") result = R"({"cookies":)" + script->cookies + "}";
        if (method == "SystemInfo.getProcessInfo")
          result = R"({"processInfo":[{"type":"browser","id":1,"cpuTime":0}]})";
        if (!result.empty()) say(stream, R"({"id":)" + id + R"(,"result":)" + result + "}");
        if (method == "Page.navigate") {
          page.url = params.at("url").as_string();
          if (script->before_document) paused(stream, page, *script->before_document);
          paused(stream, page, {.url = page.url, .type = "Document"});
        }
        if (method == "Fetch.fulfillRequest" || method == "Fetch.failRequest") {
          const std::string request(params.at("requestId").as_string());
          if (!page.delivered && method == "Fetch.fulfillRequest") {
            page.delivered = true;
            event(stream, page, "Page.frameNavigated",
                  R"({"frame":{"id":"T","loaderId":"L","url":")" + page.url + "\"}}");
            for (const auto& part : script->parts) paused(stream, page, part);
          } else {
            script->answered_parts.emplace_back(page.urls[request], params);
            page.open_parts.erase(request);
          }
          maybe_loaded(script, stream, page);
        }
        if (const auto more = script->after.find(method); more != script->after.end()) {
          for (std::string line : more->second) {
            for (std::size_t at; (at = line.find("$S")) != std::string::npos;) line.replace(at, 2, page.session);
            say(stream, line);
          }
        }
      }
    } catch (const CancelledError&) {
      throw;
    } catch (const std::exception&) {
      // Nobody is there any more.
    }
  }

  Script script_;
  Stream ours_;
  Task<void> task_;
};

}  // namespace argiope
