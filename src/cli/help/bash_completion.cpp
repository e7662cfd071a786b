#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "cli/help/completion.hpp"

namespace argiope {
namespace {

constexpr std::string_view kHead = R"(# Completes the words of {0} in bash. Made of its help texts.
_{0}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command={0} word words= i
  COMPREPLY=()
  # bash takes --option=value for three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    if [[ $word == -- ]]; then
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return
    fi
    case "$command $word" in
      {1}) command="$command $word" ;;
    esac
  done
)";

constexpr std::string_view kTail = R"(  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}}
complete -F _{0} {0}
)";

constexpr std::string_view kFiles =
    "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen {} -- \"$cur\"); return";

std::string bash_quoted(std::string_view text) { return fmt::format("'{}'", text); }

// The shell command that completes the option's value.
std::string value_action(const OptionHelp& option) {
  switch (option.kind) {
    case ValueKind::choice:
      return fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\"); return",
                         fmt::join(option.choices, " "));
    case ValueKind::file: return fmt::format(kFiles, "-f");
    case ValueKind::directory: return fmt::format(kFiles, "-d");
    default: return "return";
  }
}

std::string value_cases(const CommandHelp& program) {
  std::string cases;
  visit_commands(program, [&](const CommandHelp& command) {
    for (const OptionHelp& option : command.options) {
      // One that may do without a value may be followed by anything.
      if (option.kind == ValueKind::none || option.value_is_optional) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(bash_quoted(command.full_name() + " " + name));
      cases += fmt::format("    {}) {} ;;\n", fmt::join(patterns, "|"), value_action(option));
    }
  });
  return cases;
}

bool takes_files(const CommandHelp& command) {
  for (const OptionHelp& one : command.positionals) {
    if (one.kind == ValueKind::file) return true;
  }
  return false;
}

std::string word_cases(const CommandHelp& program) {
  std::string cases;
  visit_commands(program, [&](const CommandHelp& command) {
    std::vector<std::string> options, commands;
    for (const OptionHelp& option : command.options) {
      options.insert(options.end(), option.names.begin(), option.names.end());
    }
    for (const CommandHelp& below : command.commands) commands.push_back(below.name());
    const std::string otherwise =
        takes_files(command) ? fmt::format(kFiles, "-f") : fmt::format("words='{}'", fmt::join(commands, " "));
    cases += fmt::format("    {}) if [[ $cur == -* ]]; then words='{}'; else {}; fi ;;\n",
                         bash_quoted(command.full_name()), fmt::join(options, " "), otherwise);
  });
  return cases;
}

}  // namespace

std::string bash_completion(const CommandHelp& program) {
  std::vector<std::string> names;
  visit_commands(program, [&](const CommandHelp& command) {
    if (command.words.size() > 1) names.push_back(bash_quoted(command.full_name()));
  });
  std::string script = fmt::format(kHead, program.name(), fmt::join(names, "|"));
  script += fmt::format("  case \"$command $prev\" in\n{}  esac\n", value_cases(program));
  script += fmt::format("  case $command in\n{}  esac\n", word_cases(program));
  script += fmt::format(kTail, program.name());
  return script;
}

}  // namespace argiope
