// The API over an engine on a store in memory, in simulated time; requests go straight to its routes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/web/http_server.hpp"
#include "serve/api/api.hpp"
#include "serve/gate/internal/token_digest.hpp"
#include "store/jobs/memory_store.hpp"
#include "support/loop_fixture.hpp"
#include "support/open_engine.hpp"

namespace argiope {

// What an answer says.
struct Answered {
  int status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  boost::json::value json() const { return boost::json::parse(body); }
  // The value at a JSON pointer; null where there is none.
  boost::json::value at(std::string_view pointer) const {
    boost::system::error_code error;
    const boost::json::value whole = json();
    const boost::json::value* found = whole.find_pointer(pointer, error);
    return found == nullptr ? boost::json::value() : *found;
  }
  std::string text(std::string_view pointer) const {
    const boost::json::value value = at(pointer);
    return value.is_string() ? std::string(value.as_string()) : boost::json::serialize(value);
  }
  std::string header(std::string_view name) const {
    for (const auto& [given, value] : headers) {
      if (given == name) return value;
    }
    return {};
  }
  // "invalid_input" of a problem, and "" of what is none.
  std::string problem() const {
    constexpr std::string_view kPrefix = "urn:argiope:problem:";
    if (header("Content-Type") != "application/problem+json") return {};
    const std::string type = text("/type");
    return type.starts_with(kPrefix) ? type.substr(kPrefix.size()) : type;
  }
};

// A token whose words are its name.
inline Token token_named(std::string name, TokenScope scope, std::vector<std::string> prefixes = {}) {
  std::string digest = to_hex(digest_of_token(name));
  return {.name = std::move(name),
          .digest = std::move(digest),
          .scope = scope,
          .prefixes = std::move(prefixes),
          .expires_at = {}};
}

class ApiTest : public OnVirtualLoop {
 protected:
  using Fields = std::vector<std::pair<std::string_view, std::string_view>>;

  ~ApiTest() override {
    if (engine_) run([this]() -> Coro<void> { (void)co_await engine_->close(); });
    feed_.reset();
    api_.reset();
    engine_.reset();
    loop_.cancel_all_tasks();
    for (int i = 0; i < 64; ++i) loop_.run_once(TimePoint::min());
    EXPECT_EQ(loop_.task_count(), 0u);
  }

  // Called by the first request, or before it with what a test wants.
  void open(ApiOptions options = {}, EngineOptions engine_options = {}, GateOptions gate_options = {}) {
    run([&]() -> Coro<void> {
      engine_ = co_await open_engine(store_, std::move(engine_options));
      feed_ = std::make_unique<EventFeed>(*engine_, EventFeedOptions{}, 1);
    });
    gate_ = std::make_unique<Gate>(std::move(gate_options), loop_.clock());
    api_ = std::make_unique<Api>(*engine_, *gate_, *feed_, std::move(options));
    api_->add_to(router_);
  }

  template <class Body>
  void run(Body body) {
    loop_.run_until_complete(keeping(std::move(body)));
  }

  // One request, as a coroutine of its own.
  Coro<Answered> asking(HttpMethod method, std::string target, std::string body = {}, Fields fields = {}) {
    ServerRequest request;
    request.method = method;
    request.set_target(target);
    request.host = "localhost";
    request.peer = "127.0.0.1:5";
    request.headers = {fields.begin(), fields.end()};
    request.body = std::move(body);
    ServerResponse response = co_await router_(request);
    co_return Answered{response.status, std::move(response.body), std::move(response.headers)};
  }
  Answered ask(HttpMethod method, std::string target, std::string body = {}, Fields fields = {}) {
    if (!api_) open();
    return loop_.run_until_complete(asking(method, std::move(target), std::move(body), std::move(fields)));
  }
  // With the token of that name, as token_named() has made it.
  Answered ask_as(std::string_view name, HttpMethod method, std::string target, std::string body = {}) {
    const std::string bearer = "Bearer " + std::string(name);
    return ask(method, std::move(target), std::move(body), {{"Authorization", bearer}});
  }
  Task<Answered> start(HttpMethod method, std::string target, std::string body = {}) {
    if (!api_) open();
    return loop_.create_task(asking(method, std::move(target), std::move(body)));
  }
  Answered get(std::string target) { return ask(HttpMethod::get, std::move(target)); }
  Answered post(std::string target, std::string body = {}) {
    return ask(HttpMethod::post, std::move(target), std::move(body));
  }
  Answered put(std::string target, std::string body) {
    return ask(HttpMethod::put, std::move(target), std::move(body));
  }
  Answered patch(std::string target, std::string body) {
    return ask(HttpMethod::patch, std::move(target), std::move(body));
  }
  Answered erase(std::string target) { return ask(HttpMethod::delete_, std::move(target)); }
  void pass(Duration time) {
    run([time]() -> Coro<void> { co_await sleep(time); });
  }

  std::string put_job(std::string body) { return post("/v1/jobs", std::move(body)).text("/id"); }
  // A lease of one job of "mail", and its token.
  Answered lease(std::string more = "") {
    return post("/v1/leases", R"({"queues":["mail"],"worker":"w")" + more + "}");
  }

  MemoryStore store_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<EventFeed> feed_;
  std::unique_ptr<Api> api_;
  HttpRouter router_;
};

}  // namespace argiope
