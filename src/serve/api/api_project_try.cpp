// A page as a project would visit it now, be the project stored or a draft. Nothing of it is stored.
#include <fmt/format.h>

#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "project/process/internal/asked_pages.hpp"
#include "project/run/internal/tried_page_json.hpp"
#include "serve/api/project_call.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostTriedSource = 16 * 1024 * 1024;
constexpr std::size_t kMostTriedUrl = 1024 * 1024;  // data: URLs have their pages in them
constexpr std::size_t kMostTriedRule = 1'000;
constexpr std::size_t kMostTriedValue = 1024 * 1024;
constexpr std::size_t kMostResponseId = 100;

struct AskedTry {
  std::string project, source, script;
  std::string response;  // the id of one that was kept; empty: the page is fetched
  PageTryOrder order;
};

std::string read_value(JsonMembers& in, std::string_view name) {
  const JsonValue* const given = in.find(name);
  if (given == nullptr || given->is_null()) return {};
  std::string json = given->json();
  if (json.size() > kMostTriedValue) given->refuse(fmt::format("at most {} bytes", kMostTriedValue));
  return json;
}

// All that an ask may say of a page.
void read_whole_page(const JsonValue& given, PageTryOrder& order) {
  auto page = read_asked_page(given.json());
  if (!page) return given.refuse(page.error().message);
  if (page->cancel) return given.refuse("a page that is cancelled is not visited");
  order.page = std::move(*page);
}

Result<AskedTry> read_try(ApiCall& call, const JsonValue& root) {
  JsonMembers in(root);
  in.refuse_repeated();
  AskedTry asked;
  const JsonValue* const source = in.find("source");
  const JsonValue* const project = in.find("project");
  const JsonValue* const script = in.find("script");
  const JsonValue* const url = in.find("url");
  const JsonValue* const rule = in.find("rule");
  const JsonValue* const page = in.find("page");
  const JsonValue* const response = in.find("response");
  const bool has_pieces = url != nullptr || rule != nullptr || in.has("data");
  asked.order.page.context_json = read_value(in, "data");
  asked.order.save_json = read_value(in, "save");
  in.finish("there are only source, script, project, page, url, rule, data, save and response");
  if ((source == nullptr) == (project == nullptr)) root.refuse("either source or project");
  if (page != nullptr && has_pieces) page->refuse("either page, or url with rule and data");
  if (page == nullptr && url == nullptr) root.refuse("url is missing");
  if (page != nullptr) read_whole_page(*page, asked.order);
  if (response != nullptr && !response->is_null()) asked.response = response->text(1, kMostResponseId);
  if (source != nullptr) asked.source = source->text(1, kMostTriedSource);
  if (project != nullptr) asked.project = project->text(1, kMostNameBytes);
  if (script != nullptr && source == nullptr) script->refuse("a script is tried with its source");
  if (script != nullptr && !script->is_null()) asked.script = script->text(0, kMostTriedSource);
  if (url != nullptr) asked.order.page.url = url->text(1, kMostTriedUrl);
  if (rule != nullptr && !rule->is_null()) asked.order.page.rule = rule->text(0, kMostTriedRule);
  if (auto good = call.checked(); !good) return std::unexpected(std::move(good.error()));
  return asked;
}

// The stored one, by its name.
Result<ProjectVersion> newest_of(const DaemonProjects& projects, std::string_view name) {
  const auto status = projects.engine.project(name);
  if (!status) return fail(Errc::not_found, fmt::format("there is no project {}", in_quotes(name)));
  auto version = projects.store.version(status->id, status->version);
  if (!version) return std::unexpected(std::move(version.error()));
  if (!*version) return fail(Errc::not_found, fmt::format("project {} has no file in the database", in_quotes(name)));
  return std::move(**version);
}

// With the definition that is tried.
Result<void> complete(const DaemonProjects& projects, ApiCall& call, AskedTry& asked) {
  if (!asked.project.empty()) {
    if (auto may = call.check_use(asked.project); !may) return may;
    auto version = newest_of(projects, asked.project);
    if (!version) return std::unexpected(std::move(version.error()));
    asked.order.definition = std::move(version->text);
    return {};
  }
  auto draft = projects.read_source(asked.source);
  if (!draft) return std::unexpected(std::move(draft.error()));
  if (auto may = call.check_use(draft->definition.name); !may) return may;
  asked.order.definition = std::move(draft->text);
  if (!asked.script.empty() && draft->definition.processor.command.empty()) {
    return fail(Errc::invalid_input, "script: the source has no program as processor that would run it");
  }
  return {};
}

// For whom an answer is kept: a session is for its token.
std::string owner_of(const Caller& caller) {
  return fmt::format("{} {}", caller.by == KnownBy::user ? "user" : "token", caller.name);
}

bool is_same_page(std::string_view one, std::string_view other) {
  const auto a = Url::parse(one), b = Url::parse(other);
  return a && b && a->href() == b->href();
}

Result<void> take_kept(ApiState& api, ApiCall& call, AskedTry& asked) {
  if (asked.response.empty()) return {};
  const KeptAnswers::Kept* const kept =
      api.kept_answers.find(asked.response, owner_of(call.caller), EventLoop::current().time());
  if (kept == nullptr) {
    const std::string why = "it is kept no more: the page has to be fetched anew";
    return call.refuse(
        {ProblemType::not_found, fmt::format("response {}: {}", in_quotes(asked.response), why), {{"/response", why}}});
  }
  if (!is_same_page(kept->url, asked.order.page.url)) {
    const std::string why = fmt::format("it is what {} was answered", in_quotes(kept->url));
    return call.refuse({ProblemType::invalid_input,
                        fmt::format("response {}: {}", in_quotes(asked.response), why),
                        {{"/response", why}}});
  }
  asked.order.answer = kept->answer;
  asked.order.answered_request = kept->request;
  return {};
}

// The response that came is kept for another try. That of an earlier one stays as it is.
void write_kept(JsonWriter& json, const KeptAnswers::Kept* kept, bool is_reused, WallTime now, TimePoint time) {
  json.key("response");
  if (kept == nullptr) return json.null();
  json.object([&] {
    json.member("id", kept->id);
    json.member("fetched_at", kept->fetched_at);
    json.member("kept_until", now + (kept->until - time));
    json.member("is_reused", is_reused);
  });
}

Coro<Result<ServerResponse>> try_page(ApiState& api, ApiCall& call) {
  DaemonProjects& projects = *co_await or_return(projects_of(api, call));
  AskedTry asked;
  {
    const JsonValue root = co_await or_return(call.object());
    asked = co_await or_return(read_try(call, root));
  }
  co_await or_return(call.read_all());
  co_await or_return(committed(projects.store));
  co_await or_return(complete(projects, call, asked));
  co_await or_return(take_kept(api, call, asked));
  if (projects.try_script) {
    asked.order.make_processor = [&projects, script = std::move(asked.script)](const ProjectDefinition& definition,
                                                                               ProcessorWatch watch) {
      return projects.try_script(definition, script, std::move(watch));
    };
  }
  const std::string url = asked.order.page.url;
  const auto earlier = asked.order.answer;
  auto tried = co_await projects.engine.try_page(std::move(asked.order));
  if (!tried && tried.error().code == Errc::busy) co_return call.refuse_as(ProblemType::too_many, tried.error());
  // Its script may not have what it names.
  if (!tried && tried.error().code == Errc::refused)
    co_return call.refuse_as(ProblemType::invalid_input, tried.error());
  const TriedPage page = co_await or_return(std::move(tried));
  const TimePoint time = EventLoop::current().time();
  const WallTime now = api.engine.calendar_now();
  const std::string owner = owner_of(call.caller);
  const bool is_reused = page.answer && page.answer == earlier;
  const KeptAnswers::Kept* kept = is_reused ? api.kept_answers.find(asked.response, owner, time) : nullptr;
  if (!is_reused && page.answer) kept = api.kept_answers.keep(owner, url, page.request, page.answer, now, time);
  co_return json_answer([&](JsonWriter& json) {
    write_tried_page(json, url, page);
    write_kept(json, kept, is_reused, now, time);
  });
}

}  // namespace

ApiRoute project_try_route() { return {HttpMethod::post, "/v1/projects/try", TokenScope::admin, try_page, true}; }

}  // namespace argiope
