// The session of a page in a browser: a cookie in a token's place.
#include <utility>

#include "argiope/async/coro.hpp"
#include "serve/api/api_state.hpp"
#include "serve/gate/sessions.hpp"

namespace argiope {
namespace {

void write_caller(JsonWriter& json, const Caller& caller) {
  json.member("name", caller.name);
  json.member("scope", to_string(caller.scope));
  json.list("prefixes", caller.prefixes);
  json.member("by", to_string(caller.by));
}

Coro<Result<ServerResponse>> show(ApiState&, ApiCall& call) {
  co_return json_answer([&](JsonWriter& json) { write_caller(json, call.caller); });
}

Coro<Result<std::string>> read_words(ApiCall& call) {
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  std::string words = in.text("token", "");
  in.finish("a session has none");
  co_await or_return(call.read_all());
  co_return words;
}

Coro<Result<ServerResponse>> open(ApiState& api, ApiCall& call) {
  const std::string words = co_await or_return(read_words(call));
  auto opened = api.gate.open_session(call.request, words);
  if (!opened) co_return call.refuse(std::move(opened.error()));
  ServerResponse response = json_answer([&](JsonWriter& json) { write_caller(json, opened->caller); });
  response.headers.emplace_back("Cache-Control", "no-store");
  if (!opened->cookie.empty()) {
    response.headers.emplace_back("Set-Cookie", set_session_cookie(call.request, opened->cookie));
  }
  co_return response;
}

// Whether it was there or not: the browser forgets its cookie.
Coro<Result<ServerResponse>> close(ApiState& api, ApiCall& call) {
  if (auto closed = api.gate.close_session(call.request); !closed) co_return call.refuse(std::move(closed.error()));
  ServerResponse response = no_content();
  response.headers.emplace_back("Set-Cookie", set_session_cookie(call.request, ""));
  co_return response;
}

}  // namespace

std::vector<ApiRoute> session_routes() {
  using enum HttpMethod;
  return {
      {get, "/v1/session", TokenScope::read, show},
      // It has its token in its body, and its answer is kept nowhere.
      {post, "/v1/session", TokenScope::none, open, false, true},
      {delete_, "/v1/session", TokenScope::none, close},
  };
}

}  // namespace argiope
