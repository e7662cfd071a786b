// Hosts that projects visit: what is done at each, and why nothing is.
#include <limits>
#include <utility>

#include "argiope/async/coro.hpp"
#include "serve/api/project_call.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostSiteBytes = 2'000;

void write_members(JsonWriter& json, const HostStatusNow& host) {
  json.member("site", host.site);
  json.member("doing", to_string(host.doing));
  json.member("sentence", host.words);
  json.member("until", host.until);
  json.member("under_way", host.under_way);
  json.member("at_most", host.at_most);
  json.member("delay_ms", host.delay ? std::optional(std::chrono::floor<std::chrono::milliseconds>(*host.delay).count())
                                     : std::nullopt);
  json.member("rate", host.rate);
  json.member("robots_known", host.robots_known);
  json.member("trouble", host.trouble);
  json.array("projects", [&] {
    for (const std::string& project : host.projects) json.value(project);
  });
  json.member("project_count", host.project_count);
}

Coro<Result<ServerResponse>> list_hosts(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const std::string filter = query.text("filter").value_or("");
  const auto project = query.text("project");
  const auto doing = query.one_of("doing", {"ready", "busy", "waiting", "resting"});
  const std::uint64_t after = query.whole("after", 0, std::numeric_limits<std::uint32_t>::max(), 0);
  const std::size_t limit = query.whole("limit", 1, kMostInPage, kUsualPage);
  co_await or_return(query.finish());
  if (filter.size() > kMostSiteBytes)
    co_return call.refuse_parameter("filter", "filter: a piece of a site, as https://shop.example is one");
  const PageEngine& engine = (co_await or_return(projects_of(api, call)))->engine;
  if (project) {
    co_await or_return(call.check_use(*project));
    if (!engine.project(*project)) co_return call.refuse(ProblemType::not_found, "project: there is none of that name");
  }
  const HostsFound found =
      engine.hosts({.filter = filter,
                    .doing = doing ? std::optional(static_cast<HostDesk::Doing>(*doing)) : std::nullopt,
                    .project = project ? std::optional<std::string_view>(*project) : std::nullopt,
                    .after = static_cast<std::uint32_t>(after),
                    .limit = limit,
                    .may_see = call.caller.sight()});
  co_return json_answer([&](JsonWriter& json) {
    json.array("hosts", [&] {
      for (const HostStatusNow& host : found.hosts) json.object([&] { write_members(json, host); });
    });
    json.member("next", found.next);
  });
}

Coro<Result<ServerResponse>> explain_host(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const std::string site = query.text("site").value_or("");
  co_await or_return(query.finish());
  if (site.empty() || site.size() > kMostSiteBytes) {
    co_return call.refuse_parameter("site", "site: a site as https://shop.example, a URL of it, or the name of a host");
  }
  const PageEngine& engine = (co_await or_return(projects_of(api, call)))->engine;
  const HostExplanation why = engine.explain_host(site, call.caller.sight());
  co_return json_answer([&](JsonWriter& json) {
    json.member("site", why.host.site);
    json.member("known", why.known);
    json.member("reason", why.reason);
    json.member("words", why.words);
    json.member("until", why.until);
    if (!why.known) return;
    json.object("host", [&] { write_members(json, why.host); });
    json.array("projects", [&] {
      for (const HostExplanation::OfProject& project : why.projects) {
        json.object([&] {
          json.member("project", project.name);
          json.member("doing", to_string(project.doing));
          json.member("until", project.until);
          json.member("under_way", project.under_way);
          json.member("ready", project.ready);
          json.member("delayed", project.delayed);
          json.member("first_due", project.first_due);
        });
      }
    });
  });
}

}  // namespace

std::vector<ApiRoute> host_routes() {
  using enum HttpMethod;
  return {
      reading_much(get, "/v1/hosts", list_hosts, true),
      {.method = get, .pattern = "/v1/hosts/explain", .handler = explain_host, .has_query = true},
  };
}

}  // namespace argiope
