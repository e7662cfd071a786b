// `argiope project explain`: why a page is not visited now, as far as what is stored tells, or its daemon.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/json_told.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/commands.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_looks.hpp"
#include "cli/project/project_place.hpp"
#include "cli/table.hpp"
#include "project/process/internal/asked_pages.hpp"
#include "project/rules/internal/failure_pause.hpp"
#include "project/rules/internal/page_reasons.hpp"

namespace argiope {
namespace {

// A hopeless page has more.
constexpr std::uint32_t kMostRetriesTold = 1'000'000;

struct ProjectExplainArguments {
  std::string name, page;
  ProjectPlace place;
  bool json = false;
};

struct StoredExplanation {
  std::string name;  // of the page
  std::optional<PageRecord> page;
  std::string rule;  // that it has, or would get
  std::string reason, words;
  std::optional<WallTime> until;
};

// The page of that name, or of the URL as projects name them.
Result<std::optional<PageRecord>> find_by_name_or_url(PageStore& store, const ProjectRecord& project,
                                                      std::string& name) {
  auto found = store.find_page(project.id, name);
  if (!found || *found) return found;
  auto usual = usual_page_name(name);
  if (!usual || *usual == name) return found;
  name = *std::move(usual);
  return store.find_page(project.id, name);
}

// On which terms it would be asked for. Only the process that runs a script knows what that says of its rules.
PageTerms terms_of(const ProjectDefinition& definition, std::string_view rule) {
  for (const ProjectRule& one : definition.rules) {
    if (one.name() == rule) return one.terms;
  }
  return PageTerms{.tag = page_tag(definition.version)};
}

PageReason why_it_waits(const PageRecord& page, const ProjectRecord& project, bool has_owner, WallTime now) {
  const ProjectStatus status = status_of(project);
  if (status != ProjectStatus::running && status != ProjectStatus::debug) return why_stopped(status);
  if (!project.trouble.empty()) return why_standing(project.trouble);
  if (auto later = why_not_due(page.known, now, page.error)) return std::move(*later);
  FailurePause pause;
  if (auto stored = FailurePause::read(project.pause); stored && !project.pause.empty()) pause = *stored;
  if (pause.state(now) == FailurePause::State::paused) return why_paused(pause.next_change());
  if (!has_owner) return {"not_run", "nobody runs its project: argiope project run does"};
  if (pause.state(now) == FailurePause::State::probing) return why_probing(pause.next_change());
  return {"due", "it is due: its turn, its project's rate or its host's rest come first"};
}

Result<StoredExplanation> explain_page(PageStore& store, const ProjectRecord& project, std::string name, bool has_owner,
                                       WallTime now) {
  StoredExplanation told;
  auto version = version_of(store, project);
  if (!version) return std::unexpected(std::move(version.error()));
  const auto definition = definition_of(*version);
  if (!definition) return std::unexpected(definition.error());
  auto page = find_by_name_or_url(store, project, name);
  if (!page) return std::unexpected(std::move(page.error()));
  told.name = std::move(name);
  told.page = std::move(*page);
  if (!told.page) {
    const auto map = ProjectMap::make(*definition);
    if (!map) return std::unexpected(map.error());
    const auto url = usual_page_name(told.name);
    if (const auto place = url ? map->find(*url).rule : std::nullopt) told.rule = definition->rules[*place].name();
    PageReason why = why_unknown(*definition, *map, url);
    told.reason = why.reason;
    told.words = std::move(why.words);
    return told;
  }
  told.rule = told.page->rule;
  const KnownPage& known = told.page->known;
  PageReason why = known.state == PageState::waiting
                       ? why_it_waits(*told.page, project, has_owner, now)
                       : why_at_rest(known, terms_of(*definition, told.rule), now, told.page->error);
  told.reason = why.reason;
  told.words = std::move(why.words);
  told.until = why.until;
  return told;
}

void print_fact(std::string_view name, const std::string& value) {
  if (!value.empty()) fmt::print("  {}: {}\n", name, value);
}

std::string shown_time(WallTime time) { return time == WallTime{} ? std::string{} : to_rfc3339(time); }

void print_explanation(const StoredExplanation& told, WallTime now) {
  fmt::print("{}\n  {}", printable(told.name), printable(told.words));
  const bool waits = told.page && told.page->known.state == PageState::waiting;  // else the words have it
  if (waits && told.until && *told.until > now)
    fmt::print(", until {} (in {})", to_rfc3339(*told.until), format_roughly(*told.until - now));
  fmt::print("\n");
  print_fact("rule", printable(told.rule, kMostOfName));
  if (!told.page) return;
  const PageRecord& page = *told.page;
  print_fact("state", std::string(to_string(page.known.state)));
  print_fact("url", printable(page.url));
  if (page.known.state == PageState::waiting)
    print_fact("due", page.known.due == WallTime{} ? "at once" : to_rfc3339(page.known.due));
  if (page.known.priority != 0) print_fact("priority", fmt::to_string(page.known.priority));
  if (page.known.retried > 0 && page.known.retried < kMostRetriesTold)
    print_fact("failures in a row", fmt::to_string(page.known.retried));
  print_fact("last success", shown_time(page.known.succeeded_at));
  print_fact("last visit", shown_time(page.known.ended_at));
  if (page.status_code != 0) print_fact("answered", fmt::to_string(page.status_code));
  print_fact("error of the last visit", printable(page.error, kMostOfText));
}

std::string explanation_json(const std::string& project, const StoredExplanation& told) {
  return json_object([&](JsonWriter& out) {
    out.member("project", project);
    out.member("page", told.name);
    out.member("known", told.page.has_value());
    out.member("rule", told.rule);
    out.member("reason", told.reason);
    out.member("words", told.words);
    out.member("until", told.until);
    if (!told.page) return;
    const PageRecord& page = *told.page;
    out.member("state", to_string(page.known.state));
    if (page.known.state == PageState::waiting) {
      out.member("waits_for", to_string(page.known.wait));
      out.member("due", page.known.due);
    }
    out.member("priority", page.known.priority);
    if (page.known.retried < kMostRetriesTold) out.member("failures", page.known.retried);
    out.member("succeeded_at", page.known.succeeded_at);
    out.member("ended_at", page.known.ended_at);
    out.member("status_code", page.status_code);
    out.member("error", page.error);
    out.member("round", page.round);
  });
}

// Without a page nothing can be told: of a host not at all, for that is in no database.
Error say_what_is_needed(const std::string& name) {
  if (!name.contains("://")) return {Errc::invalid_input, "URL: give the page that is to be explained"};
  return {Errc::invalid_input,
          "NAME: give a project before the URL of a page: argiope project explain NAME URL. Why a host is not asked, "
          "argiope serve tells: page Hosts of its "
          "dashboard, GET /v1/hosts/explain"};
}

int show_explanation(const ProjectExplainArguments& arguments, const StoredExplanation& told, WallTime now) {
  if (arguments.json) {
    fmt::print("{}\n", explanation_json(arguments.name, told));
  } else {
    print_explanation(told, now);
  }
  return kExitFinished;
}

// --- from a daemon, which also knows what it is waiting for itself

StoredExplanation read_told_explanation(const JsonValue& answer) {
  ToldMembers in(answer);
  StoredExplanation told;
  bool is_known = false;
  in.read("page", told.name);
  in.read("known", is_known);
  in.read("rule", told.rule);
  in.read("reason", told.reason);
  in.read("words", told.words);
  in.read("until", told.until);
  if (!is_known) return told;
  KnownPage& known = told.page.emplace().known;
  in.read_word("state", known.state, PageState::cancelled);
  in.read_word("waits_for", known.wait, PageWait::recrawl);
  in.read("priority", known.priority);
  in.read("due_at", known.due);
  in.read("succeeded_at", known.succeeded_at);
  in.read("ended_at", known.ended_at);
  in.read("retried", known.retried);
  return told;
}

// The rest that the daemon says of the page.
void read_told_page(const JsonValue& answer, PageRecord& page) {
  ToldMembers in(answer);
  in.read("page", page.name);
  in.read("url", page.url);
  if (page.url == page.name) page.url.clear();
  in.read("status_code", page.status_code);
  in.read("error", page.error);
  in.read("round", page.round);
}

int explain_by_daemon(const ProjectExplainArguments& arguments) {
  auto daemon = ProjectDaemon::open(arguments.place.daemon);
  if (!daemon) return complain_of_daemon(daemon.error());
  auto told = (*daemon)->get(path_of_project(arguments.name, "pages/explain?page=" + percent_encode(arguments.page)),
                             read_told_explanation);
  if (!told) return complain_of_daemon(told.error());
  if (told->page) {
    const auto read = (*daemon)->get(path_of_project(arguments.name, "pages/one?page=" + percent_encode(told->name)),
                                     [&](const JsonValue& answer) {
                                       read_told_page(answer, *told->page);
                                       return true;
                                     });
    if (!read) return complain_of_daemon(read.error());
  }
  return show_explanation(arguments, *told, calendar_now());
}

int run_project_explain(const ProjectExplainArguments& arguments) {
  if (arguments.page.empty()) return complain_of_project(say_what_is_needed(arguments.name), kExitUsage);
  if (!arguments.place.daemon.empty()) return explain_by_daemon(arguments);
  auto store = look_at_pages(arguments.place.database);
  if (!store) return complain_of_project(store.error(), kExitNothing);
  const auto project = find_project(**store, arguments.name);
  if (!project) return complain_of_project(project.error(), status_for(project.error()));
  const WallTime now = calendar_now();
  const auto told =
      explain_page(**store, *project, arguments.page, !owner_of_pages(arguments.place.database).empty(), now);
  if (!told) return complain_of_project(told.error(), kExitNothing);
  return show_explanation(arguments, *told, now);
}

}  // namespace

std::function<int()> add_project_explain(CLI::App& project) {
  auto arguments = std::make_shared<ProjectExplainArguments>();
  CLI::App* command = project.add_subcommand("explain", "Say why a page is not visited now, and when it will be.");
  command->add_option("NAME", arguments->name, "The project")->required()->type_name("");
  command->add_option("URL", arguments->page, "The page, by its URL or its name (needed)")->type_name("");
  arguments->place.add_to(*command);
  command->add_flag("--json", arguments->json, "JSON instead of text");
  command->footer(
      "It is told from what is stored, also beside a running owner; what only that one knows, such as a host's rest, "
      "is not in it. A daemon\n"
      "(--store) tells that, too; of hosts it tells on the page Hosts of its dashboard and by GET /v1/hosts/explain.\n"
      "Exit status: 0, 2 there is no such project, 3 the database cannot be read.\n"
      "Example: argiope project explain shop https://example.org/item/1");
  return [arguments] { return run_project_explain(*arguments); };
}

}  // namespace argiope
