#include "cli/help/command_help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

namespace argiope {
namespace {

constexpr std::string_view kUsualGroup = "Options";
constexpr std::string_view kRange = " in [";
constexpr std::string_view kExample = "Example: ", kExamples = "Examples: ";

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (const auto part : text | std::views::split(at)) parts.emplace_back(part.begin(), part.end());
  return parts;
}

std::string without_margin(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return std::string(text.substr(std::min(first, text.size())));
}

// CLI11 writes a type and what is checked of it as "N:INT in [1 - 256]", "WHICH:{a,b}" or "FILE:FILE".
void read_type(std::string_view type, OptionHelp& option) {
  const std::size_t choices = type.find(":{");
  const std::size_t range = type.find(kRange);
  const std::size_t end = choices != std::string_view::npos ? choices
                          : type.contains('\'')             ? type.size()
                                                            : std::min(type.find(':'), type.size());
  option.value = type.substr(0, end);
  option.kind = ValueKind::text;
  if (choices != std::string_view::npos) {
    option.kind = ValueKind::choice;
    option.choices = split(type.substr(choices + 2, type.find('}', choices) - choices - 2), ',');
  } else if (range != std::string_view::npos) {
    const std::size_t from = range + kRange.size();
    option.range = type.substr(from, type.find(']', from) - from);
  }
}

// By the words that all commands use for values.
ValueKind kind_of(const OptionHelp& option) {
  if (option.kind == ValueKind::choice) return option.kind;
  const std::string_view word = option.is_positional ? option.names.front() : option.value;
  if (word == "FILE" || word == "STORE") return ValueKind::file;
  return word == "DIR" ? ValueKind::directory : ValueKind::text;
}

std::vector<std::string> names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);
  return names;
}

std::string in_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

OptionHelp help_of(const CLI::Option& from) {
  OptionHelp option;
  option.is_positional = from.get_positional();
  for (const std::string& name : from.get_snames()) option.names.push_back("-" + name);
  for (const std::string& name : from.get_lnames()) option.names.push_back("--" + name);
  if (option.is_positional) option.names = {from.get_name(true)};
  option.is_required = from.get_required();
  if (from.get_items_expected_max() > 0) {
    read_type(from.get_type_name(), option);
    option.kind = kind_of(option);
    option.value_is_optional = from.get_items_expected_min() == 0;
    option.repeats = from.get_expected_max() > 1;
    option.usual = from.get_default_str();
  }
  option.description = in_one_line(from.get_description());
  option.environment = from.get_envname();
  if (from.get_group() != kUsualGroup) option.group = from.get_group();
  option.needs = names_of(from.get_needs());
  option.excludes = names_of(from.get_excludes());
  return option;
}

// Lines without a margin are prose; those with one belong to what is shown, as does what follows the word "Example:".
void read_footer(std::string_view footer, CommandHelp& command) {
  std::string paragraph;
  const auto say = [&](std::string_view text) { paragraph.append(paragraph.empty() ? "" : " ").append(text); };
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) command.prose.push_back(std::exchange(paragraph, {}));
  };
  for (const std::string& line : split(footer, '\n')) {
    if (line.starts_with(' ')) {
      command.examples.push_back(without_margin(line));
      continue;
    }
    const bool is_heading = line.ends_with("Examples:") || line == "Try:";
    const std::string_view mark = line.contains(kExamples) ? kExamples : kExample;
    const std::size_t at = is_heading ? line.rfind(line == "Try:" ? "Try:" : "Examples:") : line.find(mark);
    const std::string before = line.substr(0, std::min(at, line.size()));
    if (before.find_first_not_of(' ') != std::string::npos) say(before.substr(0, before.find_last_not_of(' ') + 1));
    if (line.empty()) end_paragraph();
    if (!is_heading && at != std::string::npos) command.examples.push_back(line.substr(at + mark.size()));
  }
  end_paragraph();
}

CommandHelp help_of(const CLI::App& from, std::vector<std::string> words) {
  CommandHelp command;
  words.push_back(from.get_name());
  command.words = words;
  command.description = in_one_line(from.get_description());
  for (const CLI::Option* option : from.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? command.positionals : command.options).push_back(help_of(*option));
  }
  read_footer(from.get_footer(), command);
  for (const CLI::App* below : from.get_subcommands({})) command.commands.push_back(help_of(*below, words));
  return command;
}

}  // namespace

std::string CommandHelp::full_name(std::string_view between) const {
  return fmt::format("{}", fmt::join(words, between));
}

std::string CommandHelp::usage() const {
  std::string usage = full_name() + " [OPTIONS]";
  for (const OptionHelp& one : positionals) {
    const std::string word = one.names.front() + (one.repeats ? "..." : "");
    usage += one.is_required ? " " + word : " [" + word + "]";
  }
  if (!commands.empty()) usage += " COMMAND";
  return usage;
}

CommandHelp help_of(const CLI::App& command) { return help_of(command, {}); }

void visit_commands(const CommandHelp& command, const std::function<void(const CommandHelp&)>& visit) {
  visit(command);
  for (const CommandHelp& below : command.commands) visit_commands(below, visit);
}

}  // namespace argiope
