#include "cli/help/help_files.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/help/command_help.hpp"
#include "cli/help/completion.hpp"
#include "cli/help/man_page.hpp"
#include "cli/version.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;

std::string page_date() {
  WallTime at = SystemClock().wall_now();
  if (const char* said = std::getenv("SOURCE_DATE_EPOCH")) {
    const std::string_view text = said;
    long long seconds = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), seconds).ec == std::errc{}) {
      at = WallTime{std::chrono::seconds{seconds}};
    }
  }
  return to_rfc3339(at).substr(0, std::string_view("2026-11-22").size());
}

void write_file(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  if (!file) throw std::runtime_error(fmt::format("{}: cannot be written", path.string()));
}

void write_help_files(const CLI::App& app, const fs::path& folder) {
  const CommandHelp program = help_of(app);
  const ManPageOptions options{.date = page_date(), .source = fmt::format("{} {}", program.name(), kVersion)};
  const auto write_page = [&](const CommandHelp& command) {
    write_file(folder / "man" / (command.full_name("-") + ".1"), man_page(command, program, options));
  };
  write_page(program);
  for (const CommandHelp& command : program.commands) write_page(command);
  write_file(folder / "bash" / program.name(), bash_completion(program));
  write_file(folder / "zsh" / ("_" + program.name()), zsh_completion(program));
  write_file(folder / "fish" / (program.name() + ".fish"), fish_completion(program));
}

}  // namespace

void add_help_files_option(CLI::App& program) {
  program
      .add_option_function<std::string>("--help-files",
                                        [&program](const std::string& folder) {
                                          write_help_files(program, folder);
                                          throw CLI::Success();
                                        })
      ->type_name("DIR")
      ->group("");
}

}  // namespace argiope
