// The daemon itself, and the document of its API.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "serve/api/api_state.hpp"
#include "serve/api/openapi.hpp"
#include "serve/api_fixture.hpp"

namespace argiope {
namespace {

using ApiDaemon = ApiTest;

TEST_F(ApiDaemon, SaysWhichItIs) {
  open({.version = "1.2.3", .store = "memory:"});
  const Answered version = get("/v1/version");
  EXPECT_EQ(version.text("/version"), "1.2.3");
  EXPECT_EQ(version.text("/api"), "1");
  EXPECT_EQ(version.text("/store"), "memory:");
}

TEST_F(ApiDaemon, TellsWhatIsInForce) {
  open({.config = [] { return std::string(R"({"listen":"127.0.0.1:7733"})"); },
        .queue_is_locked = [](std::string_view name) { return name == "mail"; }});
  put_job(R"({"queue":"mail"})");
  const Answered config = get("/v1/config");
  EXPECT_EQ(config.text("/queues/0/name"), "mail");
  EXPECT_EQ(config.text("/queues/0/locked"), "true");
  EXPECT_EQ(config.text("/daemon/listen"), "127.0.0.1:7733");
  EXPECT_EQ(config.text("/most_jobs"), "10000");
}

TEST_F(ApiDaemon, CountsAllQueues) {
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(get("/v1/counters").text("/queues/mail/ready"), "1");
}

TEST_F(ApiDaemon, CountsWhatBecameOfTheJobsOfAQueue) {
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"mail"})");
  pass(2s);
  const std::string token = lease().text("/leases/0/token");
  pass(1s);
  post("/v1/leases/settle", fmt::format(R"({{"settlements":[{{"token":{},"outcome":"done"}}]}})", token));
  const Answered stats = get("/v1/queues/mail/stats");
  EXPECT_EQ(stats.text("/counts/ready"), "1");
  EXPECT_EQ(stats.text("/totals/added"), "2");
  EXPECT_EQ(stats.text("/totals/done"), "1");
  EXPECT_EQ(stats.text("/runs/count"), "1");
  EXPECT_EQ(stats.at("/runs/p50_ms").to_number<double>(), 1000);
  EXPECT_EQ(get("/v1/queues/other/stats").problem(), "not_found");
}

TEST_F(ApiDaemon, EventsAreAStream) {
  open();
  run([&]() -> Coro<void> {
    ServerRequest request;
    request.set_target("/v1/events?kinds=job,queue&queue=mail");
    const ServerResponse response = co_await router_(request);
    EXPECT_EQ(response.status, 200);
    EXPECT_TRUE(response.stream);
  });
  EXPECT_EQ(get("/v1/events?kinds=job,weather").problem(), "invalid_input");
  EXPECT_EQ(get("/v1/events?speed=fast").problem(), "invalid_input");
}

TEST_F(ApiDaemon, WhoChangedWhatIsKept) {
  open({.audit = {.most_entries = 3}});
  put("/v1/queues/a%20b", R"({"rate":1})");
  put("/v1/queues/c", R"({"rate":"x"})");
  get("/v1/queues/a%20b");
  put_job(R"({"queue":"c"})");
  const Answered audit = get("/v1/audit");
  EXPECT_EQ(audit.at("/entries").as_array().size(), 1u);
  EXPECT_EQ(audit.text("/entries/0/who"), "local");
  EXPECT_EQ(audit.text("/entries/0/method"), "PUT");
  EXPECT_EQ(audit.text("/entries/0/path"), "/v1/queues/a b");
  EXPECT_EQ(audit.text("/entries/0/request"), R"({"rate":1})");
  for (int i = 0; i < 5; ++i) post("/v1/queues/c/pause");
  EXPECT_EQ(get("/v1/audit?limit=2").text("/next"), "5");
  EXPECT_EQ(get("/v1/audit?limit=2&after=5").text("/entries/0/number"), "6");
  EXPECT_EQ(get("/v1/audit?after=6").text("/next"), "null");
  EXPECT_EQ(get("/v1/audit?after=6").text("/entries"), "[]");
}

// --- the document

using Operations = std::set<std::string>;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

TEST(OpenApi, EveryRouteIsInTheDocumentAndEveryOperationIsRouted) {
  const boost::json::value document = boost::json::parse(kOpenApi);
  Operations documented;
  // Those that the daemon answers besides.
  Operations routed{"get /healthz none", "get /readyz none", "get /metrics read"};
  for (const auto& [path, operations] : document.at("paths").as_object()) {
    for (const auto& [method, operation] : operations.as_object()) {
      documented.insert(fmt::format("{} {} {}", std::string(method), std::string(path),
                                    std::string(operation.at("x-scope").as_string())));
    }
  }
  for (const ApiRoute& route : all_routes()) {
    routed.insert(fmt::format("{} {} {}", lower(to_string(route.method)), route.pattern, to_string(route.scope)));
  }
  EXPECT_EQ(documented, routed);
}

TEST(OpenApi, WhatMayBeBusySaysSo) {
  const boost::json::value document = boost::json::parse(kOpenApi);
  for (const ApiRoute& route : all_routes()) {
    const boost::json::value& operation = document.at("paths").at(route.pattern).at(lower(to_string(route.method)));
    EXPECT_EQ(operation.at("responses").as_object().contains("503"), route.reads_much) << route.pattern;
  }
}

TEST(OpenApi, ARouteTakesParametersWhereTheDocumentHasThem) {
  const boost::json::value document = boost::json::parse(kOpenApi);
  const auto is_in_query = [&](const boost::json::value& given) {
    const boost::json::value* parameter = &given;
    boost::system::error_code error;
    if (const auto* const reference = given.as_object().if_contains("$ref")) {
      parameter = document.find_pointer(std::string(reference->as_string()).substr(1), error);
    }
    return parameter->at("in") == "query";
  };
  for (const ApiRoute& route : all_routes()) {
    const auto& operation = document.at("paths").at(route.pattern).at(lower(to_string(route.method))).as_object();
    const auto* const parameters = operation.if_contains("parameters");
    const bool documented = parameters != nullptr && std::ranges::any_of(parameters->as_array(), is_in_query);
    EXPECT_EQ(route.has_query, documented) << to_string(route.method) << ' ' << route.pattern;
  }
}

void collect_references(const boost::json::value& value, Operations& references) {
  if (value.is_array()) {
    for (const auto& entry : value.as_array()) collect_references(entry, references);
  }
  if (!value.is_object()) return;
  for (const auto& [name, member] : value.as_object()) {
    if (name == "$ref") references.insert(std::string(member.as_string()));
    collect_references(member, references);
  }
}

TEST(OpenApi, EveryReferenceLeadsSomewhereAndEveryPartIsUsed) {
  const boost::json::value document = boost::json::parse(kOpenApi);
  Operations references, parts;
  collect_references(document, references);
  for (const char* kind : {"schemas", "parameters", "responses"}) {
    for (const auto& [name, part] : document.at("components").at(kind).as_object()) {
      parts.insert(fmt::format("#/components/{}/{}", kind, std::string(name)));
    }
  }
  EXPECT_EQ(references, parts);
}

TEST(OpenApi, EveryParameterOfAPathIsDescribedAndEveryOperationHasItsOwnName) {
  const boost::json::value document = boost::json::parse(kOpenApi);
  Operations names;
  for (const auto& [path, operations] : document.at("paths").as_object()) {
    const auto wanted = std::ranges::count(std::string(path), '{');
    for (const auto& [method, operation] : operations.as_object()) {
      EXPECT_TRUE(names.insert(std::string(operation.at("operationId").as_string())).second) << path;
      EXPECT_TRUE(operation.at("responses").as_object().contains("default")) << path;
      if (!operation.as_object().contains("parameters")) {
        EXPECT_EQ(wanted, 0) << path;
        continue;
      }
      const auto in_path = std::ranges::count_if(operation.at("parameters").as_array(), [](const auto& parameter) {
        return parameter.as_object().contains("in") && parameter.at("in") == "path";
      });
      EXPECT_EQ(in_path, wanted) << path;
    }
  }
}

TEST_F(ApiDaemon, TheDocumentIsServedToWhoeverAsks) {
  open({}, {}, {.tokens = {{.name = "t", .digest = std::string(64, 'a'), .scope = TokenScope::read}}});
  const Answered document = get("/v1/openapi.json");
  EXPECT_EQ(document.status, 200);
  EXPECT_EQ(document.text("/openapi"), "3.1.0");
  EXPECT_EQ(get("/v1/version").problem(), "unauthorized");
}

}  // namespace
}  // namespace argiope
