#include "cli/crawl/host_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/internal/nearest.hpp"
#include "base/internal/printable.hpp"
#include "cli/file_kind.hpp"
#include "cli/number_option.hpp"

namespace argiope {
namespace {

constexpr std::string_view kNotInFiles[] = {"config", "help", "help-all", "version"};

// "max_depth" is --max-depth; "urls" are the arguments.
CLI::Option* option_named(CLI::App& command, std::string_view name) {
  if (name == "urls") {
    CLI::Option* const argument = command.get_option_no_throw("URL");
    return argument != nullptr ? argument : command.get_option_no_throw("--url");
  }
  std::string option(name);
  std::ranges::replace(option, '_', '-');
  if (std::ranges::find(kNotInFiles, option) != std::end(kNotInFiles)) return nullptr;
  return option.size() > 1 ? command.get_option_no_throw("--" + option) : nullptr;
}

std::vector<std::string> names_in_files(const CLI::App& command) {
  std::vector<std::string> names = {"urls"};
  for (const CLI::Option* option : command.get_options()) {
    for (std::string name : option->get_lnames()) {
      if (std::ranges::find(kNotInFiles, name) != std::end(kNotInFiles)) continue;
      std::ranges::replace(name, '-', '_');
      names.push_back(std::move(name));
    }
  }
  return names;
}

// Gives the option the member's values; returns the mistake in them, or nothing.
std::string give(CLI::Option& option, const CrawlFileOption& member) {
  using Kind = CrawlFileOption::Kind;
  const bool is_flag = option.get_items_expected_max() == 0;
  if (is_flag != (member.kind == Kind::flag)) return is_flag ? "true or false" : "a string, a number or a list of them";
  if (is_flag && member.values.front() == "false") return {};
  if (member.kind == Kind::list && option.get_items_expected_max() < static_cast<int>(member.values.size()))
    return "one value";
  if (member.values.empty()) return {};
  try {
    option.add_result(member.values);
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

Result<void> give_options(CLI::App& command, const std::vector<CrawlFileOption>& members, const OptionTable& where,
                          const std::function<bool(const CLI::Option& option)>& is_given) {
  for (const CrawlFileOption& member : members) {
    const auto wrong = [&](std::string_view what) {
      return fail(Errc::invalid_input,
                  fmt::format("{}:{}: {}", printable(where.file), member.line, printable_lines(what)));
    };
    CLI::Option* const option = option_named(command, member.name);
    if (option == nullptr) {
      return wrong(fmt::format("member {}: [{}] has none{}; {} has all options", in_quotes(member.name), where.table,
                               did_you_mean(member.name, names_in_files(command)), where.help));
    }
    if (is_given(*option)) continue;
    if (const std::string why = give(*option, member); !why.empty())
      return wrong(fmt::format("{}.{}: {}", where.table, printable(member.name), why));
  }
  return {};
}

// clang-format off
void HostArguments::add_to(CLI::App& command, const char* run_group, const char* pace_group) {
  command.add_option("--config", file, "TOML file: settings for some hosts under [[host]], options as on the command line under [crawl]; those that are given count more (docs/crawl.md)")
      ->group(run_group)->type_name("FILE");
  CLI::Option* const off = command.add_flag("--no-autothrottle", no_autothrottle, "Keep to the rate however slowly a host answers")
      ->group(pace_group);
  command.add_option("--autothrottle-target", autothrottle_target, "Requests under way at a public host on average: the pace follows what answers take (default: 0.5, where neither --rate nor --delay is given)")
      ->check(any_number(0.01, 1000))->excludes(off)->group(pace_group)->type_name("N");
}
// clang-format on

Result<void> HostArguments::read_file(CLI::App& command, const ReadFile& read) {
  if (file.empty()) return {};
  auto read_in = or_other_kind(read(file), file, FileKind::crawl_settings);
  if (!read_in) return fail(read_in.error().code, fmt::format("--config {}", read_in.error().message));
  hosts = std::move(read_in->hosts);
  return give_options(command, read_in->options, {"--config " + read_in->name, "crawl", "argiope crawl --help"},
                      [](const CLI::Option& option) { return option.count() > 0; });
}

void HostArguments::apply(CrawlOptions& options) const {
  options.hosts = hosts;
  if (no_autothrottle) options.autothrottle = false;
  if (autothrottle_target > 0) {
    options.autothrottle = true;
    options.autothrottle_target = autothrottle_target;
  }
}

}  // namespace argiope
