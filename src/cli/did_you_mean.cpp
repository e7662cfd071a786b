#include "cli/did_you_mean.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/internal/printable.hpp"
#include "cli/human.hpp"

namespace argiope {
namespace {

// The command that the words name, as deep as they do.
const CLI::App* deepest(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return command;
}

std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : full_name(*command.get_parent()) + " " + command.get_name();
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> names_of_commands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

// The words that are left over, in the order they were typed.
std::vector<std::string> extras_of(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> left = app.remaining(true);
  std::vector<std::string> extras;
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    const auto found = std::ranges::find_if(left, [&](const std::string& one) { return one == word || one == name; });
    if (found == left.end()) continue;
    left.erase(found);
    extras.push_back(word);
  }
  return extras;
}

// Names of options in other programs: wget, httrack, Scrapy, Heritrix, linkchecker, cron, Celery.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {{"--depth", "--max-depth"},
                                                                         {"--level", "--max-depth"},
                                                                         {"--recursion-level", "--max-depth"},
                                                                         {"--max-requests", "--max-pages"},
                                                                         {"--pages", "--max-pages"},
                                                                         {"--limit", "--max-pages"},
                                                                         {"--workers", "--concurrency"},
                                                                         {"--jobs", "--concurrency"},
                                                                         {"--parallel", "--concurrency"},
                                                                         {"--connections", "--per-host"},
                                                                         {"--wait", "--delay"},
                                                                         {"--download-delay", "--delay"},
                                                                         {"--tries", "--retries"},
                                                                         {"--retry", "--retries"},
                                                                         {"--agent", "--user-agent"},
                                                                         {"--ignore-robots", "--no-robots"},
                                                                         {"--accept", "--include"},
                                                                         {"--allow", "--include"},
                                                                         {"--reject", "--exclude"},
                                                                         {"--deny", "--exclude"},
                                                                         {"--ignore", "--exclude"},
                                                                         {"--domains", "--whitelist"},
                                                                         {"--allowed-domains", "--whitelist"},
                                                                         {"--mirror", "--save"},
                                                                         {"--directory-prefix", "--save"},
                                                                         {"--warc-file", "--warc"},
                                                                         {"--requisites", "--page-requisites"},
                                                                         {"--warc-max-size", "--warc-size"},
                                                                         {"--cookies", "--load-cookies"},
                                                                         {"--cookie-jar", "--save-cookies"},
                                                                         {"--http-user", "--user"},
                                                                         {"--certificate", "--client-cert"},
                                                                         {"--private-key", "--client-key"},
                                                                         {"--ca-certificate", "--ca-file"},
                                                                         {"--cacert", "--ca-file"},
                                                                         {"--out", "--output"},
                                                                         {"--output-file", "--output"},
                                                                         {"--outfile", "--output"},
                                                                         {"--database", "--db"},
                                                                         {"--verbose", "--debug"},
                                                                         {"--silent", "--quiet"},
                                                                         {"--report", "--html"},
                                                                         {"--max-retries", "--max-attempts"}};

// Options of other programs that need none here.
constexpr std::pair<std::string_view, std::string_view> kWithoutOption[] = {
    {"--resume", "the same command goes on where the last run stopped"},
    {"--continue", "the same command goes on where the last run stopped"},
    {"--recursive", "links are followed without it; --max-depth says how far"},
    {"--spider", "nothing is kept without --save or --warc; --check-links looks at links alone"},
    {"--convert-links", "--save does it"}};

// Our name of another program's option; empty: it is not known.
std::string meant_by_another_name(std::string_view given, const std::vector<std::string>& names) {
  const bool is_crawl = std::ranges::find(names, "--max-depth") != names.end();
  for (const auto& [other, why] : kWithoutOption) {
    if (is_crawl && other == given) return fmt::format("; {}", why);
  }
  for (const auto& [other, ours] : kOtherNames) {
    if (other == given && std::ranges::find(names, ours) != names.end()) return fmt::format("; did you mean {}?", ours);
  }
  return {};
}

// A line for each.
std::string list_of_commands(const CLI::App& command) {
  std::size_t width = 0;
  for (const std::string& name : names_of_commands(command)) width = std::max(width, name.size());
  std::string list;
  for (const CLI::App* sub : command.get_subcommands({})) {
    list += fmt::format("  {:{}}  {}\n", sub->get_name(), width, first_sentence(sub->get_description()));
  }
  return list;
}

std::string sentence_of_extras(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& command = *deepest(app);
  const std::string name = full_name(command);
  const std::vector<std::string> extras = extras_of(app, words);
  if (extras.empty()) return name + ": there is an argument too many";
  const auto option =
      std::ranges::find_if(extras, [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); });
  const bool is_option = option != extras.end();
  const bool takes_command =
      name == "argiope job work" || name == "argiope schedule add" || name == "argiope schedule run";
  // Where a program's own options are left over, so is the program.
  if (takes_command && option != extras.begin()) {
    std::string line;
    for (const std::string& word : extras) line += " " + word;
    return fmt::format("{}: {} is one argument too many; write a command after --, as in: {} … --{}", name,
                       in_quotes(extras.front()), name, printable(line, kMostQuoted));
  }
  if (!is_option) return fmt::format("{}: {} is one argument too many", name, in_quotes(extras.front()));
  const std::string given = option->substr(0, option->find('='));
  const std::vector<std::string> names = names_of_options(command);
  const std::string meant = meant_by_another_name(given, names);
  return fmt::format("{} has no option {}{}", name, printable(given, kMostQuoted),
                     meant.empty() ? did_you_mean(given, names) : meant);
}

}  // namespace

std::string wrong_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const auto commands = command->get_subcommands({});
    if (commands.empty() || command->get_require_subcommand_min() == 0 || word.starts_with('-')) return {};
    const auto found = std::ranges::find_if(commands, [&](const CLI::App* sub) { return sub->get_name() == word; });
    if (found == commands.end()) {
      const std::string name = full_name(*command);
      return fmt::format("{}: there is no command {}{}{} {} --help lists them", name, in_quotes(word),
                         did_you_mean(word, names_of_commands(*command)),
                         nearest(word, names_of_commands(*command)).empty() ? ";" : "", name);
    }
    command = *found;
  }
  return {};
}

std::string sentence_of(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& command = *deepest(app);
  const std::string name = full_name(command);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && command.get_require_subcommand_min() > 0) {
    return fmt::format("{}\n{}: name one of these commands; {} COMMAND --help says more", list_of_commands(command),
                       name, name);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    return fmt::format("{}; {} --help lists what there is", sentence_of_extras(app, words), name);
  }
  std::string message = error.what();
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return fmt::format("{}: {}; {} --help says more", name, printable(message), name);
}

}  // namespace argiope
