#include "cli/project/project_ask.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/internal/json_reader.hpp"
#include "base/internal/json_told.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/number_option.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_place.hpp"
#include "cli/span_option.hpp"
#include "project/process/internal/asked_pages.hpp"
#include "project/rules/internal/ask_words.hpp"
#include "project/run/internal/page_engine.hpp"

namespace argiope {
namespace {

struct ProjectAskArguments {
  std::string name;
  ProjectPlace place;
  std::string url, rule, page_name;
  std::string message = "null", message_url;
  std::optional<std::int32_t> priority;
  std::optional<Duration> delay;
  bool force = false, cancel = false, json = false;
};

// The engine of a database that nobody runs: what it is told is in the database when `use` is over, and no page is
// visited.
// Errors: those of the database, of not_found, and of `use`.
using UseEngine = std::function<Result<void>(PageEngine& engine)>;
int with_resting_engine(const ProjectAskArguments& arguments, const UseEngine& use) {
  auto store = change_pages(arguments.place.database);
  if (!store) return complain_of_project(store.error(), kExitNothing);
  if (const auto project = find_project(**store, arguments.name); !project)
    return complain_of_project(project.error(), status_for(project.error()));
  {
    PageEngineOptions options;
    options.is_wanted = [&](std::string_view name) { return name == arguments.name; };
    options.make_processor = [](const ProjectDefinition&, const ProcessorWatch&) -> Result<std::unique_ptr<Processor>> {
      return fail(Errc::unsupported, "its pages are not visited here");
    };
    PageEngine engine(std::move(options), **store);
    if (auto opened = engine.open(calendar_now()); !opened) return complain_of_project(opened.error(), kExitNothing);
    if (auto used = use(engine); !used) return complain_of_project(used.error(), status_for(used.error()));
  }
  if (auto closed = (*store)->close(); !closed) return complain_of_project(closed.error(), kExitNothing);
  return kExitFinished;
}

// As the API takes it, so that both hold to the same rules.
std::string asked_json(const ProjectAskArguments& arguments) {
  return json_object([&](JsonWriter& out) {
    out.member("url", arguments.url);
    if (!arguments.rule.empty()) out.member("rule", arguments.rule);
    if (!arguments.page_name.empty()) out.member("name", arguments.page_name);
    if (arguments.priority) out.member("priority", *arguments.priority);
    if (arguments.delay) out.member("delay_ms", std::chrono::ceil<std::chrono::milliseconds>(*arguments.delay).count());
    if (arguments.force) out.member("force", true);
    if (arguments.cancel) out.member("cancel", true);
  });
}

void show_decision(const ProjectAskArguments& arguments, const AskDecision& decision) {
  if (!arguments.json) return fmt::print("{}: {}\n", printable(arguments.url), in_words(decision));
  fmt::print("{}\n", json_object([&](JsonWriter& out) {
               out.member("page", arguments.url);
               out.member("verdict", to_string(decision.verdict));
               out.member("reason", to_string(decision.reason));
               out.member("words", in_words(decision));
             }));
}

AskDecision read_told_decision(const JsonValue& told) {
  ToldMembers in(told);
  AskDecision decision{.until = WallTime::max()};
  in.read_word("verdict", decision.verdict, AskVerdict::cancel);
  in.read_word("reason", decision.reason, AskReason::was_cancelled);
  in.read("until", decision.until);
  return decision;
}

int ask_by_daemon(const ProjectAskArguments& arguments) {
  auto daemon = ProjectDaemon::open(arguments.place.daemon);
  if (!daemon) return complain_of_daemon(daemon.error());
  const auto body = (*daemon)->ask(HttpMethod::post, path_of_project(arguments.name, "pages"), asked_json(arguments));
  if (!body) return complain_of_daemon(body.error());
  const auto decision = read_answer(*body, read_told_decision);
  if (!decision) return complain_of_daemon(decision.error());
  show_decision(arguments, *decision);
  return kExitFinished;
}

int run_project_ask(const ProjectAskArguments& arguments) {
  if (!arguments.place.daemon.empty()) return ask_by_daemon(arguments);
  return with_resting_engine(arguments, [&](PageEngine& engine) -> Result<void> {
    auto page = read_asked_page(asked_json(arguments));
    if (!page) return fail(Errc::invalid_input, page.error().message);
    const auto decision = engine.ask(arguments.name, std::move(*page));
    if (!decision) return fail(Errc::invalid_input, decision.error().message);
    show_decision(arguments, *decision);
    return {};
  });
}

int run_project_resume(const ProjectAskArguments& arguments) {
  const std::string said = fmt::format("{} is not paused.", printable(arguments.name));
  if (!arguments.place.daemon.empty())
    return ask_daemon(arguments.place.daemon, HttpMethod::post, path_of_project(arguments.name, "resume"), "{}", said);
  return with_resting_engine(arguments, [&](PageEngine& engine) -> Result<void> {
    if (auto resumed = engine.resume(arguments.name); !resumed) return resumed;
    fmt::print("{}\n", said);
    return {};
  });
}

// As the API takes it.
std::string message_json(const ProjectAskArguments& arguments) {
  return json_object([&](JsonWriter& out) {
    out.key("message");
    out.raw(arguments.message);
    if (!arguments.message_url.empty()) out.member("url", arguments.message_url);
  });
}

int run_project_message(const ProjectAskArguments& arguments) {
  if (const auto content = JsonText::parse(arguments.message); !content) {
    const std::string advice = fmt::format("JSON {}: {}; a text has quotes of its own: '\"hello\"'",
                                           in_quotes(arguments.message), content.error().message);
    return complain_of_project({Errc::invalid_input, advice}, kExitUsage);
  }
  if (!arguments.place.daemon.empty()) {
    return ask_daemon(arguments.place.daemon, HttpMethod::post, path_of_project(arguments.name, "messages"),
                      message_json(arguments),
                      fmt::format("Sent to {}, whose script reads it.", printable(arguments.name)));
  }
  return with_resting_engine(arguments, [&](PageEngine& engine) -> Result<void> {
    const auto text = JsonText::parse(message_json(arguments));
    if (!text) return std::unexpected(text.error());
    JsonErrors errors;
    PageMessage message = read_outside_message(text->root(errors), arguments.name);
    if (errors) return std::unexpected(errors.error());
    if (auto sent = engine.send_message(kSentFromOutside, std::move(message)); !sent)
      return fail(Errc::invalid_input, sent.error().message);
    fmt::print("Sent to {}, whose next run reads it.\n", printable(arguments.name));
    return {};
  });
}

CLI::App* add_command(CLI::App& project, const char* name, const char* description, ProjectAskArguments& arguments) {
  CLI::App* const command = project.add_subcommand(name, description);
  command->add_option("NAME", arguments.name, "The project")->required()->type_name("");
  return command;
}

constexpr const char* kNobodyRuns =
    "Only while nobody runs the database; a daemon is asked by --store http://HOST:7733.\n";

}  // namespace

std::function<int()> add_project_ask(CLI::App& project) {
  auto arguments = std::make_shared<ProjectAskArguments>();
  CLI::App* command =
      add_command(project, "ask", "Ask for one page: the next run visits it, unless it is fresh.", *arguments);
  command->add_option("URL", arguments->url, "The page")->required()->type_name("");
  arguments->place.add_to(*command);
  command
      ->add_option("--rule", arguments->rule,
                   "The rule that reads it; else the first of the file that matches, or, where the file has none, the "
                   "one that the page has")
      ->type_name("RULE");
  command
      ->add_option("--name", arguments->page_name,
                   "The name that makes it this page; else the URL without its fragment")
      ->type_name("TEXT");
  command->add_option("--priority", arguments->priority, "Higher first")
      ->check(whole_number(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()))
      ->type_name("N");
  add_span(*command, "--delay", arguments->delay, "Not before that time has passed");
  command->add_flag("--force", arguments->force, "Visit it though it is fresh");
  command->add_flag("--cancel", arguments->cancel, "Forget that it waits");
  command->add_flag("--json", arguments->json, "JSON instead of text");
  command->footer(std::string(kNobodyRuns) +
                  "Exit status: 0, 2 there is no such project or the page is wrong, 3 the database cannot be used.\n"
                  "Example: argiope project ask shop https://example.org/item/1 --force");
  return [arguments] { return run_project_ask(*arguments); };
}

std::function<int()> add_project_message(CLI::App& project) {
  auto arguments = std::make_shared<ProjectAskArguments>();
  CLI::App* command =
      add_command(project, "message",
                  "Send a message to a project's script: its on_message() gets it with the next run.", *arguments);
  command->add_option("JSON", arguments->message, "The message; a text has quotes of its own")
      ->type_name("")
      ->capture_default_str();
  arguments->place.add_to(*command);
  command
      ->add_option(
          "--url", arguments->message_url,
          "The name of its result; of those with one name that wait, the last counts (default data:,on_message)")
      ->type_name("TEXT");
  command->footer(std::string(kNobodyRuns) +
                  "Exit status: 0, 2 there is no such project, its script takes no messages, or the message is no "
                  "JSON, 3 the database cannot be used.\n"
                  "Example: argiope project message shop '{\"again\": [\"lamps\"]}'");
  return [arguments] { return run_project_message(*arguments); };
}

std::function<int()> add_project_resume(CLI::App& project) {
  auto arguments = std::make_shared<ProjectAskArguments>();
  CLI::App* command =
      add_command(project, "resume", "End a pause after failures: the next run visits its pages at once.", *arguments);
  arguments->place.add_to(*command);
  command->footer(std::string(kNobodyRuns) +
                  "Exit status: 0, 2 there is no such project, 3 the database cannot be used.\n"
                  "Example: argiope project resume shop");
  return [arguments] { return run_project_resume(*arguments); };
}

}  // namespace argiope
