#include <fmt/format.h>

#include <string>
#include <string_view>

#include "cli/help/completion.hpp"

namespace argiope {
namespace {

// Within single quotes.
std::string zsh_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

// `special` characters get a backslash, as _arguments and _describe want it.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.contains(c)) out += '\\';
    out += c;
  }
  return out;
}

// ":message:action" of a value.
std::string zsh_value(const OptionHelp& option, std::string_view message) {
  const std::string said = escaped(message, ":\\");
  switch (option.kind) {
    case ValueKind::choice: return fmt::format(":{}:({})", said, fmt::join(option.choices, " "));
    case ValueKind::file: return fmt::format(":{}:_files", said);
    case ValueKind::directory: return fmt::format(":{}:_files -/", said);
    default: return fmt::format(":{}: ", said);
  }
}

// Options of two values, as --http METHOD URL, have two messages.
std::string zsh_values(const OptionHelp& option) {
  if (option.kind == ValueKind::none) return "";
  const std::size_t space =
      option.kind == ValueKind::text && !option.value.contains('\'') ? option.value.find(' ') : std::string::npos;
  if (space == std::string::npos) return (option.value_is_optional ? ":" : "") + zsh_value(option, option.value);
  return zsh_value(option, option.value.substr(0, space)) + zsh_value(option, option.value.substr(space + 1));
}

std::string zsh_option(const OptionHelp& option) {
  std::string specs;
  for (const std::string& name : option.names) {
    // As another word, or in the same: "--count=3", "-c3".
    const char* const joined = option.kind == ValueKind::none ? "" : name.starts_with("--") ? "=" : "+";
    const std::string once = option.repeats            ? "*"
                             : option.names.size() > 1 ? fmt::format("({})", fmt::join(option.names, " "))
                                                       : "";
    const std::string spec =
        fmt::format("{}{}{}[{}]{}", once, name, joined, escaped(option.description, "[]:\\"), zsh_values(option));
    specs += fmt::format(" \\\n    {}", zsh_quoted(spec));
  }
  return specs;
}

std::string zsh_positional(const OptionHelp& positional) {
  const std::string place = positional.repeats ? "*" : positional.is_required ? "" : ":";
  return fmt::format(" \\\n    {}", zsh_quoted(place + zsh_value(positional, positional.names.front())));
}

std::string zsh_function(const CommandHelp& command) {
  std::string specs;
  for (const OptionHelp& option : command.options) specs += zsh_option(option);
  if (command.commands.empty()) {
    for (const OptionHelp& positional : command.positionals) specs += zsh_positional(positional);
    return fmt::format("_{}() {{\n  _arguments -S{}\n}}\n\n", command.full_name("_"), specs);
  }
  std::string described, cases;
  for (const CommandHelp& below : command.commands) {
    described += fmt::format("\n        {}", zsh_quoted(below.name() + ":" + escaped(below.description, ":\\")));
    cases += fmt::format("        {}) _{} ;;\n", below.name(), below.full_name("_"));
  }
  return fmt::format(R"(_{0}() {{
  local context state state_descr line
  typeset -A opt_args
  _arguments -C{1} \
    '1: :->command' '*:: :->words'
  case $state in
    command)
      local -a commands=({2}
      )
      _describe command commands ;;
    words)
      case $words[1] in
{3}      esac ;;
  esac
}}

)",
                     command.full_name("_"), specs, described, cases);
}

}  // namespace

std::string zsh_completion(const CommandHelp& program) {
  std::string script = fmt::format("#compdef {}\n# Made of its help texts.\n\n", program.name());
  visit_commands(program, [&](const CommandHelp& command) { script += zsh_function(command); });
  return script + fmt::format("_{} \"$@\"\n", program.name());
}

}  // namespace argiope
