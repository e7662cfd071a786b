// Projects: what they are and do, their status and rate, and the versions of their files.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "project/run/internal/round_json.hpp"
#include "serve/api/project_call.hpp"
#include "serve/base/without_secrets.hpp"

namespace argiope {

namespace {

constexpr Duration kCommitPoll = std::chrono::milliseconds{2};
constexpr std::size_t kRoundsShown = 20;
constexpr std::int64_t kMostBurstAsked = 1'000'000;
constexpr std::int64_t kMostVersionNumber = std::int64_t{1} << 53;
constexpr std::size_t kMostNoteBytes = 1'000;
constexpr std::size_t kMostSourceBytes = 16 * 1024 * 1024;
constexpr std::size_t kMostReadAtOnce = 1024 * 1024;  // of versions, before others have their turn

void write_counts(JsonWriter& json, const ProjectCounters& counters, WallTime now) {
  using enum ProjectCounters::Count;
  constexpr ProjectCounters::Count kKinds[] = {pending, success, retry, failed};
  json.object("counts", [&] {
    for (const auto span : {ProjectCounters::Span::m5, ProjectCounters::Span::h1, ProjectCounters::Span::d1}) {
      json.object(to_string(span), [&] {
        for (const auto kind : kKinds) json.member(to_string(kind), counters.sum(kind, span, now));
      });
    }
    json.object("all", [&] {
      for (const auto kind : kKinds) json.member(to_string(kind), counters.all(kind));
    });
  });
  json.object("mean_ms", [&] {
    json.key("fetch");
    json.fixed(milliseconds_of(counters.mean(ProjectCounters::Time::fetch, now)), 3);
    json.key("process");
    json.fixed(milliseconds_of(counters.mean(ProjectCounters::Time::process, now)), 3);
  });
}

// How visits have ended, slot by slot, the oldest first.
void write_history(JsonWriter& json, const ProjectCounters& counters, WallTime now) {
  using enum ProjectCounters::Count;
  json.object("history", [&] {
    for (const auto span : {ProjectCounters::Span::m5, ProjectCounters::Span::h1, ProjectCounters::Span::d1}) {
      json.object(to_string(span), [&] {
        const CountRing& ring = counters.ring(success, span);
        json.member("began", ring.first(now));
        json.member("ended", now);
        json.member("step_s", std::chrono::duration_cast<std::chrono::seconds>(ring.width()).count());
        for (const auto kind : {success, retry, failed}) {
          json.array(to_string(kind), [&] {
            for (const std::uint64_t count : counters.ring(kind, span).values(now)) json.value(count);
          });
        }
      });
    }
  });
}

bool is_locked(const DaemonProjects& projects, std::string_view name) {
  return projects.is_locked && projects.is_locked(name);
}

void write_members(JsonWriter& json, const DaemonProjects& projects, const ProjectStatusNow& status, WallTime now) {
  json.member("name", status.name);
  json.member("group", status.group);
  json.member("status", to_string(status.status));
  json.member("doing", to_string(status.doing));
  json.member("until", status.until);
  json.member("trouble", status.trouble);
  json.member("rate", status.rate);
  json.member("burst", status.burst);
  json.member("weight", status.weight);
  json.member("version", status.version);
  json.member("pages", status.pages);
  json.member("under_way", status.under_way);
  json.member("outstanding", status.outstanding);
  json.key("round");
  if (status.round) {
    json.object([&] { write_round(json, *status.round); });
  } else {
    json.null();
  }
  json.member("next_start", status.next_start);
  json.member("made_at", status.made_at);
  json.member("changed_at", status.changed_at);
  json.member("locked", is_locked(projects, status.name));
  if (const ProjectCounters* const counters = projects.engine.counters(status.name)) write_counts(json, *counters, now);
}

Result<ProjectRecord> record_of(PageStore& store, ProjectId id) {
  auto records = store.projects();
  if (!records) return std::unexpected(std::move(records.error()));
  const auto found = std::ranges::find(*records, id, &ProjectRecord::id);
  if (found == records->end()) return fail(Errc::not_found, "the project is gone");
  return std::move(*found);
}

Result<ProjectVersion> version_of(PageStore& store, const ProjectStatusNow& project, std::int64_t number) {
  auto version = store.version(project.id, number);
  if (!version) return std::unexpected(std::move(version.error()));
  if (!*version) {
    return fail(Errc::not_found, fmt::format("project {} has no version {}; the newest is {}", in_quotes(project.name),
                                             number, project.version));
  }
  return std::move(**version);
}

// --- looks -----------------------------------------------------------------------------------------------------------

Coro<Result<ServerResponse>> list_projects(ApiState& api, ApiCall& call) {
  DaemonProjects& projects = *co_await or_return(projects_of(api, call));
  const auto records = co_await or_return(projects.store.projects());
  std::vector<ProjectStatusNow> all = projects.engine.projects();
  std::ranges::sort(all, {}, &ProjectStatusNow::name);
  const WallTime now = api.engine.calendar_now();
  co_return json_answer([&](JsonWriter& json) {
    json.array("projects", [&] {
      for (const ProjectStatusNow& status : all) {
        if (call.caller.may_use(status.name)) json.object([&] { write_members(json, projects, status, now); });
      }
    });
    json.array("deleted", [&] {
      for (const ProjectRecord& record : records) {
        if (!record.deleted_at || !call.caller.may_use(record.name)) continue;
        json.object([&] {
          json.member("name", record.name);
          json.member("deleted_at", record.deleted_at);
        });
      }
    });
  });
}

// Possible passwords are for those who may change the project: for others the definition has "…", and a source with one
// is null.
void write_definition(JsonWriter& json, const ApiCall& call, const ProjectVersion& version) {
  const std::string shown =
      call.caller.scope < TokenScope::admin ? definition_without_secrets(version.text) : version.text;
  const bool has_secrets = shown != version.text;
  json.key("definition");
  json.raw(shown.empty() ? std::string_view("null") : std::string_view(shown));
  json.member("source",
              version.source.empty() || has_secrets ? std::nullopt : std::optional(std::string_view(version.source)));
  json.member("script", version.script.empty() ? std::nullopt : std::optional(std::string_view(version.script)));
}

// All of one: what was submitted before is there.
Coro<Result<ServerResponse>> show(ApiState& api, ApiCall& call, int status = 200) {
  co_await or_return(committed((co_await or_return(projects_of(api, call)))->store));
  const NamedProject project = co_await or_return(project_in_path(api, call));
  PageStore& store = project.of.store;
  const ProjectVersion version = co_await or_return(version_of(store, project.now, project.now.version));
  const auto rounds = co_await or_return(store.rounds(project.now.id, kRoundsShown));
  const auto results = co_await or_return(store.count_results(project.now.id));
  const auto definition = project.of.engine.definition(project.now.name);
  co_return json_answer(
      [&](JsonWriter& json) {
        write_members(json, project.of, project.now, api.engine.calendar_now());
        json.member("results", results);
        if (const ProjectCounters* const counters = project.of.engine.counters(project.now.name))
          write_history(json, *counters, api.engine.calendar_now());
        write_definition(json, call, version);
        json.array("rules", [&] {
          if (!definition) return;
          for (const ProjectRule& rule : definition->rules) json.value(rule.name());
        });
        json.array("rounds", [&] {
          for (const RoundRecord& round : rounds) json.object([&] { write_round(json, round); });
        });
        json.array("coverage", [&] {
          for (const FieldCount& count : project.of.engine.coverage(project.now.name)) {
            json.object([&] {
              json.member("field", count.field);
              json.member("records", count.records);
              json.member("dropped", count.dropped);
              json.member("found", count.found);
            });
          }
        });
        json.array("alarms", [&] {
          for (const std::string& alarm : project.of.engine.alarms(project.now.name)) json.value(alarm);
        });
        json.array("sinks", [&] {
          for (const SinkRow& sink : project.of.engine.sinks(project.now.name)) {
            json.object([&] {
              json.member("name", shown_sink_name(sink.name));
              json.member("cursor", sink.cursor);
              json.member("trouble", sink.trouble);
            });
          }
        });
      },
      status);
}

Coro<Result<ServerResponse>> show_project(ApiState& api, ApiCall& call) { return show(api, call); }

Coro<Result<ServerResponse>> list_versions(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const std::size_t limit = query.whole("limit", 1, kMostInPage, kUsualPage);
  co_await or_return(query.finish());
  const NamedProject project = co_await or_return(project_in_path(api, call));
  // Each may have 16 MiB and more: one at a time is in memory.
  struct Told {
    std::int64_t number;
    WallTime made_at;
    std::string note;
    std::size_t source_bytes, script_bytes;
  };
  std::vector<Told> versions;
  std::size_t bytes_read = 0;
  for (std::int64_t number = project.now.version; number > 0 && versions.size() < limit; --number) {
    const auto version = co_await or_return(project.of.store.version(project.now.id, number));
    if (!version) continue;
    versions.push_back({number, version->made_at, version->note,
                        version->source.empty() ? version->text.size() : version->source.size(),
                        version->script.size()});
    bytes_read += version->text.size() + version->source.size() + version->script.size();
    if (bytes_read < kMostReadAtOnce) continue;
    bytes_read = 0;
    co_await sleep(Duration{});
  }
  co_return json_answer([&](JsonWriter& json) {
    json.array("versions", [&] {
      for (const Told& version : versions) {
        json.object([&] {
          json.member("number", version.number);
          json.member("made_at", version.made_at);
          json.member("note", version.note);
          json.member("source_bytes", version.source_bytes);
          json.member("script_bytes", version.script_bytes);
        });
      }
    });
  });
}

Coro<Result<ServerResponse>> show_version(ApiState& api, ApiCall& call) {
  const NamedProject project = co_await or_return(project_in_path(api, call));
  const auto number = plain_number(call.request.path_value("version"));
  if (!number || *number > static_cast<std::uint64_t>(kMostVersionNumber)) {
    co_return call.refuse(ProblemType::not_found, "a version is a whole number from 1");
  }
  const ProjectVersion version =
      co_await or_return(version_of(project.of.store, project.now, static_cast<std::int64_t>(*number)));
  co_return json_answer([&](JsonWriter& json) {
    json.member("number", version.number);
    json.member("made_at", version.made_at);
    json.member("note", version.note);
    write_definition(json, call, version);
  });
}

// --- what is done with them ------------------------------------------------------------------------------------------

Result<void> check_unlocked(const DaemonProjects& projects, ApiCall& call, std::string_view name) {
  if (!is_locked(projects, name)) return {};
  return call.refuse(
      ProblemType::locked,
      fmt::format("project {}: its file, which the configuration names, decides what it is", in_quotes(name)));
}

// The acts with the daemon's rights that only the configuration's own files may ask for.
std::string_view why_not_by_api(const ProjectSink& sink) {
  if (sink.kind == ProjectSink::Kind::command) return "a command runs with the daemon's rights";
  if (sink.kind == ProjectSink::Kind::postgresql) return "a database is reached with the daemon's rights";
  if (!sink.secret_file.empty() || !sink.secret_variable.empty()) return "secrets are the daemon's";
  const auto leaves_its_folder = [&] {
    return sink.target.starts_with('/') || ("/" + sink.target + "/").find("/../") != std::string::npos;
  };
  if (sink.kind == ProjectSink::Kind::file && leaves_its_folder())
    return "its file must be in the project's own folder: a name without / at its start, and without ..";
  return {};
}

// Whether a definition that came by the API, or goes back to one, has nothing that is the operator's to say.
Result<void> check_may_by_api(ApiCall& call, const ProjectDefinition& definition) {
  if (!definition.processor.readable.empty()) {
    const std::string why =
        "readable: only a project whose file the configuration names says what its script sees besides its own folder";
    return call.refuse({ProblemType::invalid_input, why, {{"/project/readable", why}}});
  }
  for (std::size_t i = 0; i < definition.sinks.size(); ++i) {
    const ProjectSink& sink = definition.sinks[i];
    if (sink.kind == ProjectSink::Kind::queue) {
      if (auto may = call.check_put(sink.target, {}); !may) return may;
      continue;
    }
    if (const std::string_view why = why_not_by_api(sink); !why.empty()) {
      return call.refuse({ProblemType::invalid_input,
                          fmt::format("sink {}: {}; only a project whose file the configuration names may have it",
                                      in_quotes(sink.name), why),
                          {{fmt::format("/sink/{}", i), std::string(why)}}});
    }
  }
  return {};
}

std::optional<double> read_rate(const JsonValue& value) {
  if (value.is_null()) return std::nullopt;
  const auto number = value.if_number()  ? value.if_number()
                      : value.if_whole() ? std::optional(static_cast<double>(*value.if_whole()))
                                         : std::nullopt;
  if (!number || !(*number >= 0)) value.wrong("visits a second, from 0; or null, as its file says");
  return number;
}

// Changes the settings beside the file, which may be changed of any project.
Coro<Result<ServerResponse>> change_project(ApiState& api, ApiCall& call) {
  const NamedProject project = co_await or_return(project_in_path(api, call));
  const std::string& name = project.now.name;
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  const JsonValue* const status_given = in.find("status");
  const JsonValue* const rate_given = in.find("rate");
  const JsonValue* const burst_given = in.find("burst");
  const JsonValue* const group_given = in.find("group");
  in.finish("there are only status, rate, burst and group");
  ProjectStatus status = project.now.status;
  if (status_given != nullptr)
    status = static_cast<ProjectStatus>(status_given->one_of({"TODO", "STOP", "CHECKING", "DEBUG", "RUNNING"}));
  const std::optional<double> rate = rate_given != nullptr ? read_rate(*rate_given) : std::nullopt;
  std::optional<std::uint32_t> burst;
  if (burst_given != nullptr && !burst_given->is_null())
    burst = static_cast<std::uint32_t>(burst_given->whole(1, kMostBurstAsked, "null"));
  std::string group = group_given != nullptr ? group_given->text(0, kMostNameBytes) : std::string{};
  co_await or_return(call.read_all());

  PageEngine& engine = project.of.engine;
  if (rate_given != nullptr || burst_given != nullptr) {
    // The one that is not given stays as it was set.
    co_await or_return(committed(project.of.store));
    const ProjectRecord record = co_await or_return(record_of(project.of.store, project.now.id));
    co_await or_return(engine.set_rate(name, rate_given != nullptr ? rate : record.rate,
                                       burst_given != nullptr ? burst : record.burst));
  }
  if (group_given != nullptr) co_await or_return(engine.set_group(name, std::move(group)));
  if (status_given != nullptr) co_await or_return(engine.set_status(name, status));
  co_return co_await show(api, call);
}

Coro<Result<ServerResponse>> start_project(ApiState& api, ApiCall& call) {
  const NamedProject project = co_await or_return(project_in_path(api, call));
  co_await or_return(call.no_members());
  if (project.now.status != ProjectStatus::running && project.now.status != ProjectStatus::debug) {
    co_return call.refuse(ProblemType::wrong_state,
                          fmt::format("project {} is {}: its pages are not visited", in_quotes(project.now.name),
                                      to_string(project.now.status)));
  }
  co_await or_return(project.of.engine.start(project.now.name));
  co_return co_await show(api, call);
}

Coro<Result<ServerResponse>> resume_project(ApiState& api, ApiCall& call) {
  const NamedProject project = co_await or_return(project_in_path(api, call));
  co_await or_return(call.no_members());
  co_await or_return(project.of.engine.resume(project.now.name));
  co_return co_await show(api, call);
}

Coro<Result<ServerResponse>> delete_project(ApiState& api, ApiCall& call) {
  const NamedProject project = co_await or_return(project_in_path(api, call));
  co_await or_return(check_unlocked(project.of, call, project.now.name));
  co_await or_return(project.of.engine.remove(project.now.name));
  co_await or_return(committed(project.of.store));
  co_return no_content();
}

Coro<Result<ServerResponse>> restore_project(ApiState& api, ApiCall& call) {
  DaemonProjects& projects = *co_await or_return(projects_of(api, call));
  const std::string name = co_await or_return(call.name_in_path("project"));
  co_await or_return(call.no_members());
  if (projects.engine.project(name))
    co_return call.refuse(ProblemType::wrong_state, fmt::format("project {} was not deleted", in_quotes(name)));
  co_await or_return(projects.engine.restore(name));
  co_return co_await show(api, call);
}

// The script that versions keep is the one that runs.
Result<void> keep_script(const DaemonProjects& projects, const PageEngine::Draft& draft) {
  if (draft.script.empty() || !projects.keep_script) return {};
  return projects.keep_script(draft.definition, draft.script);
}

Result<bool> is_deleted(PageStore& store, std::string_view name) {
  const auto records = store.projects();
  if (!records) return std::unexpected(records.error());
  return std::ranges::any_of(*records,
                             [&](const ProjectRecord& record) { return record.deleted_at && record.name == name; });
}

// --- new ones, and new versions --------------------------------------------------------------------------------------

// The body is a definition as JSON, or has the TOML of one as "source".
Result<PageEngine::Draft> read_draft(const DaemonProjects& projects, ApiCall& call, const JsonValue& root) {
  JsonMembers in(root);
  in.refuse_repeated();
  if (!in.has("source")) {
    PageEngine::Draft draft{
        .definition = read_project(root), .text = root.json(), .source = {}, .script = {}, .note = {}};
    if (auto good = call.read_all(); !good) return std::unexpected(std::move(good.error()));
    return draft;
  }
  const std::string source = in.find("source")->text(1, kMostSourceBytes);
  const std::string note = in.has("note") ? in.find("note")->text(0, kMostNoteBytes) : std::string{};
  std::string script = in.has("script") ? in.find("script")->text(1, kMostSourceBytes) : std::string{};
  in.finish("beside source there are only script and note");
  if (auto good = call.read_all(); !good) return std::unexpected(std::move(good.error()));
  auto draft = projects.read_source(source);
  if (!draft) return draft;
  draft->note = note;
  draft->script = std::move(script);
  return draft;
}

Coro<Result<ServerResponse>> put_project(ApiState& api, ApiCall& call) {
  DaemonProjects& projects = *co_await or_return(projects_of(api, call));
  const std::string name = co_await or_return(call.name_in_path("project"));
  co_await or_return(check_unlocked(projects, call, name));
  const JsonValue root = co_await or_return(call.object());
  PageEngine::Draft draft = co_await or_return(read_draft(projects, call, root));
  if (draft.definition.name != name) {
    co_return call.refuse(
        {ProblemType::invalid_input, "the project has another name than the path", {{"/project/name", name}}});
  }
  co_await or_return(check_may_by_api(call, draft.definition));
  if (draft.note.empty()) draft.note = fmt::format("by {}", call.caller.name);
  if (!projects.engine.project(name))
    co_await or_return(committed(projects.store));  // it may have been deleted a moment ago
  const bool is_new = !projects.engine.project(name);
  if (is_new && co_await or_return(is_deleted(projects.store, name))) {
    co_return call.refuse(
        ProblemType::conflict,
        fmt::format("project {} was deleted, and can still be restored: restore it, or take another name",
                    in_quotes(name)));
  }
  co_await or_return(keep_script(projects, draft));
  co_await or_return(projects.engine.put_project(std::move(draft)));
  co_return co_await show(api, call, is_new ? 201 : 200);
}

Coro<Result<ServerResponse>> roll_back(ApiState& api, ApiCall& call) {
  const NamedProject project = co_await or_return(project_in_path(api, call));
  co_await or_return(check_unlocked(project.of, call, project.now.name));
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  const std::int64_t number = in.whole("version", kMostVersionNumber, 1);
  in.finish("there is only version");
  if (!in.has("version")) root.refuse("version is missing");
  co_await or_return(call.read_all());
  co_await or_return(committed(project.of.store));
  ProjectVersion version = co_await or_return(version_of(project.of.store, project.now, number));
  auto definition = co_await or_return(parse_project_json(version.text));
  co_await or_return(check_may_by_api(call, definition));  // the configuration may have named its file then
  PageEngine::Draft draft{.definition = std::move(definition),
                          .text = std::move(version.text),
                          .source = std::move(version.source),
                          .script = std::move(version.script),
                          .note = fmt::format("back to {}", number)};
  co_await or_return(keep_script(project.of, draft));
  co_await or_return(project.of.engine.put_project(std::move(draft)));
  co_return co_await show(api, call);
}

}  // namespace

Result<DaemonProjects*> projects_of(ApiState& api, ApiCall& call) {
  if (api.options.projects != nullptr) return api.options.projects;
  return call.refuse(ProblemType::not_found,
                     "this daemon has no projects: its configuration has neither pages nor a [[project]]");
}

Result<NamedProject> project_in_path(ApiState& api, ApiCall& call) {
  auto projects = projects_of(api, call);
  if (!projects) return std::unexpected(std::move(projects.error()));
  const auto name = call.name_in_path("project");
  if (!name) return std::unexpected(name.error());
  auto status = (*projects)->engine.project(*name);
  if (!status) return fail(Errc::not_found, fmt::format("there is no project {}", in_quotes(*name)));
  return NamedProject{**projects, std::move(*status)};
}

Coro<Result<void>> committed(PageStore& store) {
  const std::uint64_t flush = store.begin_flush();
  while (!store.flushed(flush)) {
    if (auto failure = store.failure()) co_return std::unexpected(std::move(*failure));
    co_await sleep(kCommitPoll);
  }
  if (auto failure = store.failure()) co_return std::unexpected(std::move(*failure));
  co_return Result<void>{};
}

double milliseconds_of(Duration span) noexcept { return to_seconds(span) * 1e3; }

std::vector<ApiRoute> project_routes() {
  using enum HttpMethod;
  return {
      reading_much(get, "/v1/projects", list_projects),
      project_try_route(),
      {get, "/v1/projects/{project}", TokenScope::read, show_project},
      {put, "/v1/projects/{project}", TokenScope::admin, put_project, true},
      {patch, "/v1/projects/{project}", TokenScope::admin, change_project, true},
      {delete_, "/v1/projects/{project}", TokenScope::admin, delete_project, true},
      {post, "/v1/projects/{project}/restore", TokenScope::admin, restore_project, true},
      {post, "/v1/projects/{project}/start", TokenScope::admin, start_project, true},
      {post, "/v1/projects/{project}/resume", TokenScope::admin, resume_project, true},
      reading_much(get, "/v1/projects/{project}/versions", list_versions, true),
      {get, "/v1/projects/{project}/versions/{version}", TokenScope::read, show_version},
      {post, "/v1/projects/{project}/roll-back", TokenScope::admin, roll_back, true},
  };
}

}  // namespace argiope
