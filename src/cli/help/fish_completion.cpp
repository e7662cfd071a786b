#include <fmt/format.h>

#include <string>
#include <string_view>

#include "cli/help/completion.hpp"

namespace argiope {
namespace {

constexpr std::string_view kFishHead = R"(# Completes the words of {0} in fish. Made of its help texts.

# Whether the line begins with these words; with --only, whether nothing stands between them and the cursor.
function __{0}_at
    set -l only false
    if test "$argv[1]" = --only
        set only true
        set -e argv[1]
    end
    set -l said (commandline -opc)
    set -e said[1]
    contains -- -- $said; and return 1
    test (count $said) -ge (count $argv); or return 1
    if $only; and test (count $said) -ne (count $argv)
        return 1
    end
    for i in (seq (count $argv))
        test "$said[$i]" = "$argv[$i]"; or return 1
    end
end

complete -c {0} -f
# After -- comes a command with its arguments.
complete -c {0} -n 'contains -- -- (commandline -opc)' -F
)";

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string condition(const CommandHelp& command, std::string_view flag) {
  std::string words = fmt::format("__{}_at{}", command.words.front(), flag);
  for (std::size_t i = 1; i < command.words.size(); ++i) words += " " + command.words[i];
  return fish_quoted(words);
}

std::string fish_value(const OptionHelp& option) {
  if (option.kind == ValueKind::none || option.value_is_optional) return "";
  switch (option.kind) {
    case ValueKind::choice:
      return fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    case ValueKind::file: return " -r -F";
    case ValueKind::directory: return " -x -a '(__fish_complete_directories)'";
    default: return " -x";
  }
}

std::string fish_option(const OptionHelp& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  return fmt::format("{}{} -d {}", names, fish_value(option), fish_quoted(option.description));
}

}  // namespace

std::string fish_completion(const CommandHelp& program) {
  std::string script = fmt::format(kFishHead, program.name());
  visit_commands(program, [&](const CommandHelp& command) {
    script += '\n';
    for (const CommandHelp& below : command.commands) {
      script += fmt::format("complete -c {} -n {} -a {} -d {}\n", program.name(), condition(command, " --only"),
                            below.name(), fish_quoted(below.description));
    }
    const std::string_view flag = command.commands.empty() ? "" : " --only";
    for (const OptionHelp& option : command.options) {
      script += fmt::format("complete -c {} -n {}{}\n", program.name(), condition(command, flag), fish_option(option));
    }
    for (const OptionHelp& positional : command.positionals) {
      if (positional.kind == ValueKind::file) {
        script += fmt::format("complete -c {} -n {} -F\n", program.name(), condition(command, ""));
      }
    }
  });
  return script;
}

}  // namespace argiope
