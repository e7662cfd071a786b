#include "cli/flag_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/internal/printable.hpp"

namespace argiope {
namespace {

constexpr std::string_view kYesOrNo[] = {"true", "false", "yes", "no", "on", "off", "1", "0"};

std::string why_no_flag(const std::string& name, std::string& text) {
  if (std::ranges::find(kYesOrNo, std::string_view(text)) != std::end(kYesOrNo)) return {};
  return fmt::format("{}: it takes no value; write {} alone, or {}=false", in_quotes(text), name, name);
}

}  // namespace

void refuse_values_of_flags(CLI::App& command) {
  for (CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    const bool is_flag = option->get_items_expected_max() == 0 && option != command.get_help_ptr() &&
                         option != command.get_version_ptr();
    if (!is_flag) continue;
    option->check(CLI::Validator([name](std::string& text) { return why_no_flag(name, text); }, ""));
  }
  for (CLI::App* const sub : command.get_subcommands([](const CLI::App*) { return true; }))
    refuse_values_of_flags(*sub);
}

}  // namespace argiope
