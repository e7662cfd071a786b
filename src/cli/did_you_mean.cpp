#include "cli/did_you_mean.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/printable.hpp"

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

// What is left over, in the order it was typed.
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

std::string sentence_of_extras(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& command = *deepest(app);
  const std::string name = full_name(command);
  const std::vector<std::string> extras = extras_of(app, words);
  if (extras.empty()) return name + ": there is an argument too many";
  const auto option = std::ranges::find_if(extras, [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); });
  const bool is_option = option != extras.end();
  const bool takes_command = name == "argiope job work" || name == "argiope schedule add" || name == "argiope schedule run";
  // Where a program's own options are left over, so is the program.
  if (takes_command && option != extras.begin()) {
    std::string line;
    for (const std::string& word : extras) line += " " + word;
    return fmt::format("{}: {} is one argument too many; write a command after --, as in: {} … --{}", name,
                       in_quotes(extras.front()), name, printable(line, kMostQuoted));
  }
  if (!is_option) return fmt::format("{}: {} is one argument too many", name, in_quotes(extras.front()));
  const std::string given = option->substr(0, option->find('='));
  return fmt::format("{} has no option {}{}", name, printable(given, kMostQuoted), did_you_mean(given, names_of_options(command)));
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
  const std::string name = full_name(*deepest(app));
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    return fmt::format("{}; {} --help lists what there is", sentence_of_extras(app, words), name);
  }
  std::string message = error.what();
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return fmt::format("{}: {}; {} --help says more", name, printable(message), name);
}

}  // namespace argiope
