// The receivers that are told when something is wrong, and whether a message gets there.
#include <utility>

#include "argiope/async/coro.hpp"
#include "serve/api/api_state.hpp"
#include "serve/notify/notifier.hpp"

namespace argiope {
namespace {

Coro<Result<ServerResponse>> list_notify(ApiState& api, ApiCall& call) {
  co_await or_return(call.check_unbound("the list of those who are told of trouble"));
  (void)co_await api.events.count(EventFeed::kCountAge);  // else `left` is as it was counted last
  co_return json_answer([&](JsonWriter& json) {
    json.array("notify", [&] {
      if (api.options.notifier == nullptr) return;
      for (const Notifier::Status& status : api.options.notifier->statuses()) {
        json.object([&] {
          json.member("name", status.name);
          json.member("gathered", status.gathered);
          json.member("lasting", status.lasting);
          json.member("messages", status.messages);
          json.member("last_at", status.last_at);
        });
      }
    });
    json.array("left", [&] {
      if (api.options.notifier == nullptr) return;
      for (const Notifier::Left& left : api.options.notifier->left()) {
        json.object([&] {
          json.member("name", left.name);
          json.member("messages", left.messages);
        });
      }
    });
  });
}

Coro<Result<ServerResponse>> test_notify(ApiState& api, ApiCall& call) {
  co_await or_return(call.check_unbound("a message of the daemon's"));
  auto name = co_await or_return(call.name_in_path("notify"));
  if (api.options.notifier == nullptr) co_return call.refuse(ProblemType::not_found, "the configuration names nobody");
  co_await or_return(call.no_members());
  const JobId job = co_await or_return(api.options.notifier->test(std::move(name)));
  co_return json_answer([&](JsonWriter& json) { json.member("job", job); });
}

}  // namespace

std::vector<ApiRoute> notify_routes() {
  return {{HttpMethod::get, "/v1/notify", TokenScope::read, list_notify},
          {HttpMethod::post, "/v1/notify/{notify}/test", TokenScope::admin, test_notify, true}};
}

}  // namespace argiope
