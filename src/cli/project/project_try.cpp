#include "cli/project/project_try.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "argiope/base/clock.hpp"
#include "argiope/crawl/local_crawl.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/file_kind.hpp"
#include "cli/human.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_place.hpp"
#include "cli/project/project_try_script.hpp"
#include "cli/project/run_arguments.hpp"
#include "cli/project/stored_urls.hpp"
#include "cli/table.hpp"
#include "cli/version.hpp"
#include "config/internal/project_file.hpp"
#include "crawl/extract/internal/extraction_json.hpp"
#include "project/rules/internal/ask_words.hpp"
#include "project/run/internal/page_trial.hpp"
#include "project/run/internal/tried_page_json.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostRecordsShown = 3;
constexpr std::size_t kMostLinksShown = 30;

struct ProjectTryArguments {
  std::string file, url, database, format = "text";
  std::string rule, data, page, sandbox = "strict";
  RequestArguments requests;  // of them the guard alone
  RenderArguments render;
  bool json = false;
  bool is_json() const { return json || format == "json"; }
};

// The outcome of the request.
struct TriedFetch {
  std::optional<FetchedPage> page;
  std::optional<Duration> took;
  std::string why_not;  // where there is no page
};

std::string why_not_fetched(const UrlRecord& record) {
  if (record.reason == UrlReason::robots) return "robots.txt forbids it";
  if (!record.error.empty()) return record.error;
  if (record.reason != UrlReason::none) return std::string(to_string(record.reason));
  return record.status_code == 0 ? "it was not answered" : fmt::format("answered {}", record.status_code);
}

// As a crawl of this one URL fetches it: past robots.txt and the guard of addresses, and with redirects followed.
Result<TriedFetch> fetch_one(const ProjectTryArguments& arguments, const Url& url) {
  TriedFetch tried;
  CrawlOptions options{.seeds = {url}, .max_depth = 0};
  options.retries = 0;
  options.keep_facts = true;
  options.user_agent = fmt::format("argiope/{}", kVersion);
  options.on_page = [&tried](const Page& page) {
    tried.page = FetchedPage{.url = page.url,
                             .status = page.status(),
                             .content_type = page.response.headers.content_type,
                             .body = std::string(page.body()),
                             .links = page.links(),
                             .fetched_at = SystemClock().wall_now()};
  };
  CrawlSetup setup;
  arguments.requests.apply(setup);
  auto crawl = LocalCrawl::open(std::move(options), setup);
  if (!crawl) return std::unexpected(std::move(crawl.error()));
  if (auto report = (*crawl)->run(); !report) return std::unexpected(std::move(report.error()));
  UrlStore& store = (*crawl)->store();
  std::int64_t url_id = 0;
  const auto looked = store.scan(1, [&](const UrlRecord& record) {
    if (tried.page && record.url == tried.page->url.href()) url_id = record.url_id;
    if (!tried.page && record.depth == 0) tried.why_not = why_not_fetched(record);
    return true;
  });
  if (!looked) return std::unexpected(looked.error());
  const auto timed = store.scan_facts([&](const PageFacts& facts) {
    if (facts.url_id == url_id) tried.took = facts.took;
    return true;
  });
  if (!timed) return std::unexpected(timed.error());
  return tried;
}

// As a run of the project fetches it, by what its rule says of requests.
Result<TriedFetch> fetch_by_rule(const ProjectTryArguments& arguments, const Url& url) {
  auto projects = read_run_projects({arguments.file});
  if (!projects) return std::unexpected(std::move(projects.error()));
  HttpResponse answer;
  const auto take = [&](const PageResponse& response) {
    answer.status = response.status;
    answer.fields = response.headers;
    answer.body = response.body;
  };
  const ScriptTryArguments usual{
      .file = arguments.file, .url = url.href(), .requests = arguments.requests, .render = arguments.render};
  const auto made = try_by_engine(usual, std::move(projects->front()), take);
  if (!made) return std::unexpected(made.error());
  TriedFetch tried{.took = made->took, .why_not = made->not_fetched};
  const auto from = Url::parse(made->url);
  if (answer.status == 0 || !made->not_fetched.empty() || !from) return tried;
  answer.headers.content_type = content_type_of(*made);
  tried.page = FetchedPage{.url = *from,
                           .status = answer.status,
                           .content_type = answer.headers.content_type,
                           .body = answer.body,
                           .links = Page{*from, answer}.links(),
                           .fetched_at = SystemClock().wall_now()};
  return tried;
}

// Whether a crawl would fetch it otherwise.
bool has_own_request(const ProjectDefinition& project, const ProjectMap& map, const Url& url) {
  const auto place = map.find(url.href()).rule;
  return place && !file_settings(project.rules[*place].request, project.request).is_empty();
}

using KnownPages = std::map<std::string, KnownPage, std::less<>>;

// The database's knowledge of the page and of the URLs it links to.
Result<KnownPages> known_to(const std::string& database, const ProjectDefinition& project, const Url& asked,
                            const FetchedPage* page) {
  KnownPages known;
  if (database.empty()) return known;
  std::unordered_set<std::string_view> wanted = {asked.href()};
  if (page != nullptr) {
    for (const PageLink& link : page->links) wanted.insert(link.url);
  }
  const auto scanned = scan_stored_urls(database, project.name, [&](const StoredUrl& stored) {
    if (stored.known && wanted.contains(stored.name)) known.emplace(stored.name, *stored.known);
  });
  if (!scanned) return std::unexpected(scanned.error());
  return known;
}

std::string_view rule_name_of(const ProjectDefinition& project, const TrialAsk& ask) {
  return ask.answer.rule ? std::string_view(project.rules[*ask.answer.rule].name()) : std::string_view{};
}

// --- for people

std::string would_be(const TrialAsk& ask) {
  return ask.decision ? in_words(*ask.decision) : in_words(ask.answer.place);
}

std::string would_be(const TrialLink& link) {
  if (link.ask.answer.place == ProjectMap::Place::page && !link.is_followed)
    return link.nofollow ? "not followed: nofollow" : "not followed";
  return would_be(link.ask);
}

std::string shown_value(const FieldValue& value) {
  std::string json;
  JsonWriter out(json);
  write_field_value(out, value);
  return printable(json, kMostOfName);
}

void print_records(const ProjectDefinition& project, const PageTrial& trial) {
  if (trial.not_extracted) fmt::print("The page could not be read: {}\n", printable(trial.not_extracted->message));
  if (trial.columns.empty() || trial.not_extracted) return;
  const auto& records = trial.extracted.records;
  fmt::print("{} by rule {}\n", counted(records.size(), "record"), printable(rule_name_of(project, trial.ask)));
  for (std::size_t i = 0; i < std::min(records.size(), kMostRecordsShown); ++i) {
    for (std::size_t field = 0; field < trial.columns.size(); ++field) {
      fmt::print("  {}{}: {}\n",
                 field == 0 && records.size() > 1 ? "- "
                 : records.size() > 1             ? "  "
                                                  : "",
                 printable(trial.columns[field]), shown_value(records[i].values[field]));
    }
  }
  if (records.size() > kMostRecordsShown) fmt::print("  … {} more\n", records.size() - kMostRecordsShown);
  if (trial.extracted.dropped > 0)
    fmt::print("  {} dropped: a required field was missing\n", counted(trial.extracted.dropped, "record"));
  for (const FieldTrouble& trouble : trial.extracted.troubles) {
    fmt::print("  {}: {}\n", printable(trial.columns[trouble.field]), printable(trouble.why));
  }
}

void print_links(const ProjectDefinition& project, const PageTrial& trial) {
  const auto followed =
      std::ranges::count_if(trial.links, [](const TrialLink& link) { return link.is_followed && link.ask.decision; });
  fmt::print("{}, {} of them followed to pages\n", counted(trial.links.size(), "link"), followed);
  if (trial.links.empty()) return;
  Table table({"RULE", "URL", "WOULD BE"});
  for (std::size_t i = 0; i < std::min(trial.links.size(), kMostLinksShown); ++i) {
    const TrialLink& link = trial.links[i];
    const std::string_view rule = rule_name_of(project, link.ask);
    table.add({rule.empty() ? "-" : one_line(rule, kMostOfName), printable(link.url, kMostOfName), would_be(link)});
  }
  table.print();
  if (trial.links.size() > kMostLinksShown)
    fmt::print("… {} more (--json has all)\n", trial.links.size() - kMostLinksShown);
}

void print_trial(const ProjectDefinition& project, const Url& asked, const TriedFetch& tried, const PageTrial& trial) {
  fmt::print("{}\n", printable(asked.href()));
  const std::string_view rule = rule_name_of(project, trial.ask);
  fmt::print("  rule {}; asked for it would be: {}\n", rule.empty() ? "none" : printable(rule), would_be(trial.ask));
  if (!tried.page) return fmt::print("  not fetched: {}\n", printable(tried.why_not));
  if (tried.page->url.href() != asked.href()) fmt::print("  leads to {}\n", printable(tried.page->url.href()));
  fmt::print("  answered {}, {}, {}", tried.page->status,
             printable(tried.page->content_type.empty() ? "no type" : tried.page->content_type),
             counted(tried.page->body.size(), "byte"));
  if (tried.took) fmt::print(", in {}", human_duration(to_seconds(*tried.took)));
  fmt::print("\n");
  print_records(project, trial);
  print_links(project, trial);
}

// --- for programs

void write_ask(JsonWriter& out, const ProjectDefinition& project, const TrialAsk& ask) {
  out.member("place", to_string(ask.answer.place));
  if (!ask.answer.rule) return;
  out.member("rule", rule_name_of(project, ask));
  if (!ask.decision) return;
  out.member("verdict", to_string(ask.decision->verdict));
  out.member("reason", to_string(ask.decision->reason));
  if (ask.decision->until == WallTime{}) return;
  out.key("until");
  if (ask.decision->until == WallTime::max()) return out.null();
  out.value(ask.decision->until);
}

void write_records(JsonWriter& out, const PageTrial& trial) {
  if (trial.not_extracted) out.member("not_extracted", trial.not_extracted->message);
  if (trial.columns.empty()) return;
  out.array("records", [&] {
    for (const ExtractedRecord& record : trial.extracted.records) {
      out.object([&] {
        for (std::size_t i = 0; i < trial.columns.size(); ++i) {
          out.key(trial.columns[i]);
          write_field_value(out, record.values[i]);
        }
      });
    }
  });
  out.member("dropped", trial.extracted.dropped);
  out.array("troubles", [&] {
    for (const FieldTrouble& trouble : trial.extracted.troubles) {
      out.object([&] {
        out.member("field", trial.columns[trouble.field]);
        out.member("why", trouble.why);
      });
    }
  });
}

std::string trial_json(const ProjectDefinition& project, const Url& asked, const TriedFetch& tried,
                       const PageTrial& trial) {
  return json_object([&](JsonWriter& out) {
    out.member("url", asked.href());
    write_ask(out, project, trial.ask);
    if (!tried.page) return out.member("error", tried.why_not);
    const FetchedPage& page = *tried.page;
    if (page.url.href() != asked.href()) out.member("leads_to", page.url.href());
    out.member("status", page.status);
    out.member("content_type", page.content_type);
    out.member("size", page.body.size());
    out.member("fetched_at", page.fetched_at);
    if (tried.took) out.member("took_s", to_seconds(*tried.took));
    write_records(out, trial);
    out.array("links", [&] {
      for (const TrialLink& link : trial.links) {
        out.object([&] {
          out.member("url", link.url);
          out.member("kind", to_string(link.kind));
          out.member("times", link.times);
          out.member("followed", link.is_followed);
          if (link.nofollow) out.member("nofollow", true);
          write_ask(out, project, link.ask);
        });
      }
    });
  });
}

// --- the command

int run_project_try(const ProjectTryArguments& arguments) {
  const auto project = or_other_kind(read_project_file(arguments.file), arguments.file, FileKind::project);
  if (!project) return complain_of_project(project.error(), kExitUsage);
  // Only an engine knows to read what a page says of itself, its name and rule among it.
  if (!project->processor.empty() || !arguments.page.empty()) {
    return run_script_try({.file = arguments.file,
                           .url = arguments.url,
                           .rule = arguments.rule,
                           .data = arguments.data,
                           .page = arguments.page,
                           .sandbox = arguments.sandbox,
                           .database = arguments.database,
                           .requests = arguments.requests,
                           .render = arguments.render,
                           .json = arguments.is_json()});
  }
  if (!arguments.rule.empty() || !arguments.data.empty()) {
    return complain_of_project({Errc::invalid_input, "--rule and --data are for projects with a script"}, kExitUsage);
  }
  const auto map = ProjectMap::make(*project);
  if (!map) return complain_of_project(map.error(), kExitUsage);
  auto asked = Url::parse(arguments.url);
  if (!asked || (asked->scheme() != "http" && asked->scheme() != "https")) {
    const std::string why = asked ? "neither http nor https" : asked.error().message;
    return complain_of_project({Errc::invalid_input, fmt::format("URL {}: {}", in_quotes(arguments.url), why)},
                               kExitUsage);
  }
  asked->strip_fragment();
  const auto tried =
      has_own_request(*project, *map, *asked) ? fetch_by_rule(arguments, *asked) : fetch_one(arguments, *asked);
  if (!tried)
    return complain_of_project(tried.error(), tried.error().code == Errc::invalid_input ? kExitUsage : kExitNothing);
  const FetchedPage* const page = tried->page ? &*tried->page : nullptr;
  const auto known = known_to(arguments.database, *project, *asked, page);
  if (!known) return complain_of_project(known.error(), kExitNothing);
  const auto find = [&](std::string_view url) -> std::optional<KnownPage> {
    const auto found = known->find(url);
    return found == known->end() ? std::nullopt : std::optional(found->second);
  };
  const auto trial = try_page(*project, *map, *asked, page, find, SystemClock().wall_now());
  if (!trial) return complain_of_project(trial.error(), kExitUsage);
  if (arguments.is_json()) {
    fmt::print("{}\n", trial_json(*project, *asked, *tried, *trial));
  } else {
    print_trial(*project, *asked, *tried, *trial);
  }
  return page != nullptr && page->status < 400 ? kExitFinished : kExitBroken;
}

}  // namespace

std::function<int()> add_project_try(CLI::App& project) {
  auto arguments = std::make_shared<ProjectTryArguments>();
  CLI::App* command = project.add_subcommand(
      "try", "Fetch one page, and say which rule it gets, its fields, and what would become of its links.");
  command->add_option("FILE", arguments->file, "The project, in TOML")->required()->type_name("");
  command->add_option("URL", arguments->url, "The page")->required()->type_name("");
  // One option, two lines: no formatter sees that.
  // clang-format off
  command->add_option("-d,--db,--database", arguments->database, "Database of a crawl, or of projects: what is known of the page and its links; without, nothing is known")
      ->type_name("FILE");
  command->add_option("--format", arguments->format, "text or json")->check(CLI::IsMember({"text", "json"}))->type_name("FORMAT")->capture_default_str();
  command->add_flag("--json", arguments->json, "The same as --format json");
  command->add_option("--page", arguments->page, "More that is said of the page, JSON, as asks have it: {\"request\": {\"method\": \"POST\"}}")->type_name("JSON");
  (void)arguments->requests.add_guard_to(*command);
  refuse_daemon(*command, "this command fetches the page itself; a daemon tries one on the debug page of its dashboard, and by POST /v1/projects/try");
  const char* const script_group = "Projects with a script (docs/processors.md)";
  command->add_option("--rule", arguments->rule, "The rule that the page carries: what its script calls; without, what an ask for it would get")
      ->group(script_group)->type_name("RULE");
  command->add_option("--data", arguments->data, "The data that the page was asked for with, JSON")->group(script_group)->type_name("JSON");
  command->add_option("--sandbox", arguments->sandbox, "How the script is confined, as argiope project run has it")
      ->check(CLI::IsMember({"strict", "basic", "none"}))->group(script_group)->capture_default_str();
  (void)arguments->render.add_browser_to(*command, kRenderGroup);
  command->footer(
      "The page is fetched once, by robots.txt, with redirects followed, and as its rule says. Nothing is stored. A script is run for it, and\n"
      "data:,on_start is the page of its start. Private addresses are asked only where URL or a `start` names one, or with --allow-private.\n"
      "Exit status: 0 it was answered, 1 it was not or with a status from 400 on, 2 the file or the URL is wrong, 3 the database cannot be read.\n"
      "Example: argiope project try shop.toml https://example.org/item/1");
  // clang-format on
  return [arguments] { return run_project_try(*arguments); };
}

}  // namespace argiope
