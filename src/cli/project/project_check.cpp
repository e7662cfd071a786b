#include "cli/project/project_check.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/file_kind.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_place.hpp"
#include "cli/project/stored_urls.hpp"
#include "cli/table.hpp"
#include "config/internal/project_file.hpp"
#include "project/process/internal/sandbox.hpp"
#include "project/rules/internal/project_map.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostExamples = 3;
constexpr std::size_t kMostOfMatch = 60;

struct ProjectCheckArguments {
  std::string file;
  std::string database;  // empty: none
  bool json = false;
};

// Known URLs that have one place in the project.
struct FoundUrls {
  std::uint64_t count = 0;
  std::vector<std::string> examples;

  void add(std::string_view url) {
    ++count;
    if (examples.size() < kMostExamples) examples.emplace_back(url);
  }
};

struct RuleMatches {
  std::uint64_t known = 0;
  std::string known_to;
  std::vector<FoundUrls> rules;
  FoundUrls no_rule, off_scope;
};

Result<RuleMatches> match_known(const ProjectDefinition& project, const ProjectMap& map, const std::string& database) {
  RuleMatches found;
  found.rules.resize(project.rules.size());
  auto scanned = scan_stored_urls(database, project.name, [&](const StoredUrl& stored) {
    if (!stored.may_be_page) return;
    ++found.known;
    const ProjectMap::Answer answer = map.find(stored.url);
    if (answer.place == ProjectMap::Place::off_scope) found.off_scope.add(stored.url);
    if (answer.place == ProjectMap::Place::no_rule) found.no_rule.add(stored.url);
    if (answer.rule) found.rules[*answer.rule].add(stored.url);
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  found.known_to = std::move(*scanned);
  return found;
}

// --- for people

std::string in_one_cell(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : " ") + text;
  return one_line(all, kMostOfMatch);
}

std::string age_of(const ProjectRule& rule) {
  if (const auto& bounds = rule.terms.adaptive)
    return fmt::format("{}..{}", format_duration(bounds->least), format_duration(bounds->most));
  return rule.terms.age < Duration::zero() ? "never" : format_duration(rule.terms.age);
}

std::string follows_of(const ProjectRule& rule) {
  if (!rule.follow_only.empty()) return in_one_cell(rule.follow_only);
  return rule.follow ? "all" : "no";
}

std::string example_in(const FoundUrls& urls) {
  return urls.examples.empty() ? "" : printable(urls.examples[0], kMostOfName);
}

void print_checked(const ProjectCheckArguments& arguments, const ProjectDefinition& project, const RuleMatches* found) {
  fmt::print("{}: project {}, {}\n", printable(arguments.file), printable(project.name),
             counted(project.rules.size(), "rule"));
  if (!project.rules.empty()) {
    std::vector<std::string> heading = {"RULE", "MATCH", "FOLLOWS", "OLD AFTER", "AGAIN", "FIELDS"};
    if (found != nullptr) heading.insert(heading.end(), {"PAGES", "EXAMPLE"});
    Table table(std::move(heading));
    for (std::size_t i = 0; i < project.rules.size(); ++i) {
      const ProjectRule& rule = project.rules[i];
      std::vector<std::string> row = {one_line(rule.name(), kMostOfName),
                                      rule.extraction.match.empty() ? "all" : in_one_cell(rule.extraction.match),
                                      follows_of(rule),
                                      age_of(rule),
                                      rule.terms.auto_recrawl ? "by itself" : "when asked",
                                      fmt::to_string(rule.extraction.fields.size())};
      if (found != nullptr) row.insert(row.end(), {fmt::to_string(found->rules[i].count), example_in(found->rules[i])});
      table.add(std::move(row));
    }
    table.print();
  }
  if (found == nullptr) return;
  fmt::print("{} known to {}", counted(found->known, "URL"), found->known_to);
  const auto tell = [](const FoundUrls& urls, std::string_view what) {
    if (urls.count > 0) fmt::print("; {} {}, such as {}", urls.count, what, example_in(urls));
  };
  tell(found->no_rule, "that no rule matches");
  tell(found->off_scope, "out of scope");
  fmt::print("\n");
}

// --- for programs

void write_found(JsonWriter& out, const FoundUrls& urls) {
  out.member("pages", urls.count);
  out.list("examples", urls.examples);
}

std::string checked_json(const ProjectDefinition& project, const RuleMatches* found) {
  return json_object([&](JsonWriter& out) {
    out.member("project", project.name);
    out.array("rules", [&] {
      for (std::size_t i = 0; i < project.rules.size(); ++i) {
        const ProjectRule& rule = project.rules[i];
        out.object([&] {
          out.member("name", rule.name());
          out.list("match", rule.extraction.match);
          out.array("fields", [&] {
            for (const FieldRule& field : rule.extraction.fields) out.value(field.name);
          });
          if (found != nullptr) write_found(out, found->rules[i]);
        });
      }
    });
    if (found == nullptr) return;
    out.member("known", found->known);
    out.object("no_rule", [&] { write_found(out, found->no_rule); });
    out.object("off_scope", [&] { write_found(out, found->off_scope); });
  });
}

// A project whose script is not there would stand still.
Result<void> find_scripts(const ProjectDefinition& project, const std::string& file) {
  std::error_code ignored;
  const std::string folder = std::filesystem::absolute(file, ignored).parent_path();
  const std::vector<std::string> missing = missing_scripts(project.processor.command, folder);
  if (missing.empty()) return {};
  return fail(Errc::not_found, fmt::format("{}: processor: there is no file {} in {}, the folder of the project's file",
                                           file, in_quotes(missing.front()), folder));
}

int run_project_check(const ProjectCheckArguments& arguments) {
  const auto project = or_other_kind(read_project_file(arguments.file), arguments.file, FileKind::project);
  if (!project) return complain_of_project(project.error(), kExitUsage);
  if (const auto found = find_scripts(*project, arguments.file); !found)
    return complain_of_project(found.error(), kExitUsage);
  const auto map = ProjectMap::make(*project);
  if (!map) return complain_of_project(map.error(), kExitUsage);
  std::optional<RuleMatches> found;
  if (!arguments.database.empty()) {
    auto matches = match_known(*project, *map, arguments.database);
    if (!matches) return complain_of_project(matches.error(), kExitNothing);
    found = std::move(*matches);
  }
  if (arguments.json) {
    fmt::print("{}\n", checked_json(*project, found ? &*found : nullptr));
  } else {
    print_checked(arguments, *project, found ? &*found : nullptr);
  }
  return kExitFinished;
}

}  // namespace

std::function<int()> add_project_check(CLI::App& project) {
  auto arguments = std::make_shared<ProjectCheckArguments>();
  CLI::App* command =
      project.add_subcommand("check", "Say whether a project's file is right, and which known pages its rules match.");
  command->add_option("FILE", arguments->file, "The project, in TOML")->required()->type_name("");
  command
      ->add_option(
          "-d,--db,--database", arguments->database,
          "Database of a crawl, or of projects: tell of its URLs which rule they get; nothing is changed or fetched")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "JSON instead of text");
  refuse_daemon(*command,
                "this command reads the file itself; a daemon checks one when it is put to it (docs/http-api.md)");
  command->footer(
      "Exit status: 0 the file is right, 2 it is not (the error names the line) or its script is not there, 3 the "
      "database cannot be read.\n"
      "Example: argiope project check shop.toml -d site.db");
  return [arguments] { return run_project_check(*arguments); };
}

}  // namespace argiope
