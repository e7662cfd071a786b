// The help of a command, as facts: man pages and completions are made of them, so that all three say the same.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace argiope {

enum class ValueKind : std::uint8_t { none, text, choice, file, directory };

// An option, or what stands at its place in the line.
struct OptionHelp {
  std::vector<std::string> names;  // "-c", "--concurrency"; of a positional: "FILE"
  bool is_positional = false;
  bool is_required = false;
  bool repeats = false;
  ValueKind kind = ValueKind::none;  // none: a flag
  bool value_is_optional = false;
  std::string value;                 // "N"; may have a space in it, "METHOD URL"
  std::vector<std::string> choices;  // of kind choice
  std::string range;                 // "1 - 256"; empty: as its description says
  std::string description;           // in one line
  std::string usual;                 // what holds without it; empty: as its description says
  std::string environment;           // a variable that gives it
  std::string group;                 // the heading it is under; empty: none of its own
  std::vector<std::string> needs, excludes;
};

struct CommandHelp {
  std::vector<std::string> words;  // "argiope", "job", "work"
  std::string description;         // in one line
  std::vector<OptionHelp> positionals, options;
  std::vector<std::string> prose;     // what its help says at the end, in paragraphs
  std::vector<std::string> examples;  // lines
  std::vector<CommandHelp> commands;

  std::string name() const { return words.back(); }
  std::string full_name(std::string_view between = " ") const;
  std::string usage() const;  // "argiope job work [OPTIONS] QUEUE..."
};

// Of a command with all that is below it. Hidden options (CLI11's group "") are left out.
CommandHelp help_of(const CLI::App& command);

// Calls `visit` with the command and then with all below it, in the order of the help.
void visit_commands(const CommandHelp& command, const std::function<void(const CommandHelp&)>& visit);

}  // namespace argiope
