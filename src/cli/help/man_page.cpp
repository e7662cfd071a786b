#include "cli/help/man_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <vector>

#include "cli/human.hpp"

namespace argiope {
namespace {

constexpr std::string_view kExitStatuses[][2] = {
    {"0", "Finished."},
    {"1",
     "Finished, and what was asked about is broken: links (--fail-on-broken), jobs (--fail-on-buried), runs "
     "(--fail-on-failed)."},
    {"2", "Bad usage."},
    {"3", "Nothing could be fetched, or nothing stored."},
    {"129", "Ended because its terminal was closed (SIGHUP)."},
    {"130", "Interrupted by Ctrl-C, or ended by SIGTERM."},
    {"141", "Ended because nobody reads its output any more (SIGPIPE)."},
};

std::string_view roff_character(char c) {
  switch (c) {
    case '\\': return "\\e";
    case '-': return "\\-";
    case '\'': return "\\(aq";
    case '`': return "\\(ga";
    case '^': return "\\(ha";
    case '~': return "\\(ti";
    default: return {};
  }
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", roff_text(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", roff_text(text)); }

// An argument of a macro.
std::string macro_argument(std::string_view text) {
  std::string escaped = roff_text(text);
  for (std::size_t at = 0; (at = escaped.find('"', at)) != std::string::npos; at += 4) escaped.replace(at, 1, "\\(dq");
  return fmt::format("\"{}\"", escaped);
}

// Text between backquotes is bold.
std::string prose(std::string_view text) {
  std::string out;
  if (std::ranges::count(text, '`') % 2 != 0) return roff_text(text);
  for (bool is_code = false; !text.empty(); is_code = !is_code) {
    const std::size_t end = std::min(text.find('`'), text.size());
    const std::string_view part = text.substr(0, end);
    // Only the first part is at the beginning of a line, where a dot means something.
    const std::string escaped = roff_text(part);
    out += is_code ? fmt::format("\\fB{}\\fR", escaped) : escaped;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

class Roff {
 public:
  template <class... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  void section(std::string_view name) { line(".SH {}", name.contains(' ') ? macro_argument(name) : roff_text(name)); }
  void paragraphs(const std::vector<std::string>& all) {
    for (const std::string& one : all) line(".PP\n{}", prose(one));
  }
  void shown(const std::vector<std::string>& lines) {
    line(".nf\n.RS 4");
    for (const std::string& one : lines) line("{}", roff_text(one));
    line(".RE\n.fi");
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

std::string head_of(const OptionHelp& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(option.is_positional ? italic(name) : bold(name));
  std::string head = fmt::format("{}", fmt::join(names, ", "));
  if (option.is_positional || option.kind == ValueKind::none) return head + (option.repeats ? " ..." : "");
  return head + (option.value_is_optional ? fmt::format(" [{}]", italic(option.value)) : " " + italic(option.value));
}

std::string facts_of(const OptionHelp& option) {
  std::vector<std::string> facts;
  if (!option.choices.empty()) facts.push_back(fmt::format("One of {}.", fmt::join(option.choices, ", ")));
  if (!option.range.empty()) facts.push_back(fmt::format("In the range {}.", option.range));
  if (!option.usual.empty()) facts.push_back(fmt::format("Default: {}.", option.usual));
  if (!option.environment.empty()) facts.push_back(fmt::format("May be given by the variable {}.", option.environment));
  if (!option.needs.empty()) facts.push_back(fmt::format("Needs {}.", fmt::join(option.needs, ", ")));
  if (!option.excludes.empty()) facts.push_back(fmt::format("Not with {}.", fmt::join(option.excludes, ", ")));
  return fmt::format("{}", fmt::join(facts, " "));
}

std::string with_full_stop(std::string text) {
  if (!text.empty() && !std::string_view(".?!:").contains(text.back())) text += '.';
  return text;
}

void add_options(Roff& page, const std::vector<OptionHelp>& options) {
  for (const OptionHelp& option : options) {
    page.line(".TP\n{}", head_of(option));
    page.line("{}", prose(with_full_stop(option.description)));
    if (const std::string facts = facts_of(option); !facts.empty()) page.line("{}", roff_text(facts));
  }
}

bool is_for_help(const OptionHelp& option) { return std::ranges::find(option.names, "--help") != option.names.end(); }

// Those of each heading together, in the order in which the headings come.
std::vector<std::pair<std::string, std::vector<OptionHelp>>> by_group(const CommandHelp& command) {
  std::vector<std::pair<std::string, std::vector<OptionHelp>>> groups;
  for (const OptionHelp& option : command.options) {
    auto found = std::ranges::find(groups, option.group, [](const auto& group) { return group.first; });
    if (found == groups.end()) found = groups.insert(found, {option.group, {}});
    found->second.push_back(option);
  }
  return groups;
}

void add_page_options(Roff& page, const CommandHelp& command) {
  page.section("OPTIONS");
  add_options(page, command.positionals);
  for (const auto& [group, options] : by_group(command)) {
    if (!group.empty()) page.line(".SS {}", macro_argument(group));
    add_options(page, options);
  }
}

// One of the commands of a family.
void add_command(Roff& page, const CommandHelp& command) {
  page.line(".SS {}", macro_argument(command.usage()));
  page.line("{}", prose(with_full_stop(command.description)));
  add_options(page, command.positionals);
  for (const OptionHelp& option : command.options) {
    if (!is_for_help(option)) add_options(page, {option});
  }
  page.paragraphs(command.prose);
  if (command.examples.empty()) return;
  page.line(".PP");
  page.shown(command.examples);
}

void add_pages_of(Roff& page, const CommandHelp& program) {
  page.section("COMMANDS");
  for (const CommandHelp& command : program.commands) {
    page.line(".TP\n{}(1)", bold(command.full_name("-")));
    page.line("{}", prose(with_full_stop(command.description)));
  }
}

std::map<std::string, std::string> variables_of(const CommandHelp& command) {
  std::map<std::string, std::string> variables;
  visit_commands(command, [&](const CommandHelp& one) {
    for (const OptionHelp& option : one.options) {
      if (!option.environment.empty()) variables.try_emplace(option.environment, option.names.back());
    }
  });
  return variables;
}

void add_environment(Roff& page, const CommandHelp& command) {
  const auto variables = variables_of(command);
  if (variables.empty()) return;
  page.section("ENVIRONMENT");
  for (const auto& [variable, option] : variables) {
    page.line(".TP\n{}", bold(variable));
    page.line("Its value holds where {} is not given.", bold(option));
  }
}

void add_exit_status(Roff& page) {
  page.section("EXIT STATUS");
  for (const auto& [status, meaning] : kExitStatuses) page.line(".TP\n{}\n{}", bold(status), roff_text(meaning));
}

void add_see_also(Roff& page, const CommandHelp& command, const CommandHelp& program) {
  std::vector<std::string> others;
  if (command.words != program.words) others.push_back(bold(program.name()) + "(1)");
  for (const CommandHelp& other : program.commands) {
    if (other.words != command.words) others.push_back(bold(other.full_name("-")) + "(1)");
  }
  page.section("SEE ALSO");
  page.line("{}", fmt::join(others, ",\n"));
  page.line(".PP\nWhat is named docs/ here is in {} where the package is installed.",
            italic("/usr/share/doc/" + program.name()));
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

std::string roff_text(std::string_view text) {
  std::string out;
  if (text.starts_with('.')) out += "\\&";
  for (const char c : text) {
    const std::string_view escaped = roff_character(c);
    escaped.empty() ? out += c : out += escaped;
  }
  return out;
}

std::string man_page(const CommandHelp& command, const CommandHelp& program, const ManPageOptions& options) {
  const bool is_program = command.words == program.words;
  Roff page;
  page.line(R"(.TH "{}" 1 "{}" "{}")", upper(command.full_name("-")), options.date, options.source);
  page.section("NAME");
  page.line("{} \\- {}", roff_text(command.full_name("-")), roff_text(first_sentence(command.description)));
  page.section("SYNOPSIS");
  page.line("{}{}", bold(command.full_name()), roff_text(command.usage().substr(command.full_name().size())));
  page.section("DESCRIPTION");
  page.line("{}", prose(with_full_stop(command.description)));
  page.paragraphs(command.prose);
  add_page_options(page, command);
  if (is_program) {
    add_pages_of(page, program);
  } else if (!command.commands.empty()) {
    page.section("COMMANDS");
    for (const CommandHelp& below : command.commands) add_command(page, below);
  }
  if (!command.examples.empty()) {
    page.section("EXAMPLES");
    page.shown(command.examples);
  }
  add_exit_status(page);
  add_environment(page, command);
  add_see_also(page, command, program);
  return std::move(page).text();
}

}  // namespace argiope
