// A project as a file or a request says it: docs/projects.md has the form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/sinks.hpp"
#include "argiope/time/trigger.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/json_reader.hpp"
#include "project/rules/internal/page_settings.hpp"
#include "project/rules/internal/page_terms.hpp"

namespace argiope {

// A rule, and the treatment of the pages that carry it. Of several rules the first that matches a URL is its rule.
struct ProjectRule {
  ExtractionRule extraction;  // name, match, and what is taken from its pages: nothing, where it has no fields
  // Of several records of a page (`each`): the field that tells them apart, and is the part of each. Empty: their
  // places do.
  std::string part;
  PageTerms terms;
  RequestSettings request;               // without what only Argiope can say
  bool follow = true;                    // links of its pages that a rule matches become pages
  std::vector<std::string> follow_only;  // patterns: of these links alone; empty: of all
  bool call = true;                      // the processor, if there is one, gets its pages, by the rule's name

  const std::string& name() const noexcept { return extraction.name; }
};

// The limits whose breach the owner is told of.
struct ProjectAlarm {
  struct Coverage {
    std::string field;  // empty: every one
    double least = 0;   // share of the results that have it
  };
  std::vector<Coverage> coverage;
  std::uint64_t least_results = 0;      // of a round
  std::optional<double> most_failures;  // share of the visits of a round
};

// A receiver of the news of results (ResultSinks).
struct ProjectSink {
  enum class Kind : std::uint8_t { file, webhook, command, queue, postgresql };
  enum class Format : std::uint8_t { jsonl, csv };
  static constexpr std::uint64_t kLeastRotateBytes = 1'000;
  static constexpr Duration kLeastRotateSpan = std::chrono::minutes{1};

  Kind kind = Kind::file;
  std::string name;                  // its own in the project; unless it says one, by its target: "file prices.jsonl"
  std::string target;                // path, URL, queue, or connection as libpq has it
  std::vector<std::string> command;  // program and arguments
  std::vector<std::string> rules;    // only results of these; empty: of all
  // Of a file. Begun anew when it would be longer, and at the multiples of a span since 1970 in UTC; nullopt: never.
  Format format = Format::jsonl;
  std::optional<std::uint64_t> rotate_bytes;
  std::optional<Duration> rotate_span;
  // A secret for a webhook's signatures, or a server's password, is in this file, or variable of the environment.
  std::string secret_file, secret_variable;
  std::string table;                   // of PostgreSQL: "results", "shop.results"
  std::optional<Duration> time_limit;  // of one delivery; nullopt: as the kind has it
};

// A sink's name as it is told: of a webhook's URL, which is its name where it has none of its own, scheme and host,
// since paths of webhooks are secrets.
std::string shown_sink_name(std::string_view name);

// A variable that a script gets in its environment, and nobody else gets to see.
struct ProjectSecret {
  std::string name;  // of the variable
  std::string file;  // what has the value, from the project's file on; empty: Argiope's own variable of that name
  friend bool operator==(const ProjectSecret&, const ProjectSecret&) = default;
};

// The reader of pages beside the rules: a program or a webhook; with neither the rules are all there is.
struct ProjectProcessor {
  static constexpr std::size_t kMostSecrets = 100;

  std::vector<std::string> command;    // program and arguments
  std::vector<ProjectSecret> secrets;  // of a program
  // Paths that a program sees in the strict sandbox besides the system and its own folder; from the project's file on.
  std::vector<std::string> readable;
  std::string webhook;  // URL, without credentials and fragment
  // The secret for the webhook's signatures is in this file, or variable of the environment; neither: none is signed.
  std::string secret_file, secret_variable;

  bool empty() const noexcept { return command.empty() && webhook.empty(); }
  friend bool operator==(const ProjectProcessor&, const ProjectProcessor&) = default;
};

// pyspider's.
enum class ProjectStatus : std::uint8_t { todo, stop, checking, debug, running };
std::string_view to_string(ProjectStatus status) noexcept;  // "TODO"

struct ProjectDefinition {
  std::string name;
  std::string group;
  ProjectStatus status = ProjectStatus::running;
  std::vector<Url> start;          // without fragments
  std::vector<std::string> scope;  // hosts as HostSettings::match has them; empty: those of `start`
  // When it starts: each `every`, or by the schedule; neither: when it is told to.
  std::optional<Duration> every;
  std::optional<Trigger> schedule;
  std::optional<double> rate;  // visits a second, over all hosts; nullopt: as the hosts allow
  std::uint32_t burst = 1;
  std::optional<std::uint32_t> pause_after;  // failures in a row; 0: it never pauses; nullopt: PauseRules'
  std::uint32_t weight = 1;  // 1 to kMostWeight: how many visits in a row it may begin when projects take turns
  RequestSettings request;   // of all pages, behind their rule's; without what only Argiope can say
  std::string version;       // the tag of all pages, where their rule has none
  ProjectProcessor processor;
  std::vector<ProjectRule> rules;
  ProjectAlarm alarm;
  std::vector<ProjectSink> sinks;

  static constexpr std::uint32_t kMostWeight = 100;
  static constexpr std::size_t kMostRules = 1'000;
  static constexpr std::size_t kMostStarts = 100'000;
  static constexpr std::size_t kMostSinks = 100;
};

// Mistakes go to the errors of `form`: members that are unknown, of the wrong type or out of range, patterns that are
// none, names that nothing has, starts that no rule matches. Selectors are looked at by Extractor::compile() alone.
ProjectDefinition read_project(const JsonValue& form);
// The same of a text. Errors: invalid_input, too_large.
Result<ProjectDefinition> parse_project_json(std::string_view json);

}  // namespace argiope
