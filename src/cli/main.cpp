// The command `argiope`: finds the subcommand, runs it, and turns whatever goes wrong into a sentence and an exit
// status.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/stream.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/did_you_mean.hpp"
#include "cli/flag_option.hpp"
#include "cli/help/help_files.hpp"
#include "cli/standard_output.hpp"
#include "cli/subcommands.hpp"
#include "cli/version.hpp"

namespace {

// A log line's text, whatever a server or a file has put into it.
class PrintableText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text = argiope::printable({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PrintableText>(); }
};

void log_to_standard_error() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableText>('v').set_pattern("%H:%M:%S %^%l%$ %v");
  spdlog::set_default_logger(spdlog::stderr_color_mt("argiope"));
  spdlog::set_formatter(std::move(formatter));
}

// The words after "--" are a command that jobs or schedules run; its options are not ours.
std::vector<std::string> take_command(int& argc, char** argv) {
  using namespace std::string_view_literals;
  if (argc < 3) return {};
  const bool takes_command = (argv[1] == "job"sv && argv[2] == "work"sv) ||
                             (argv[1] == "schedule"sv && (argv[2] == "add"sv || argv[2] == "run"sv));
  if (!takes_command) return {};
  char** const end = argv + argc;
  char** const dashes = std::find(argv, end, "--"sv);
  if (dashes == end) return {};
  argc = static_cast<int>(dashes - argv);
  return {dashes + 1, end};
}

int run_argiope(int argc, char** argv) {
  using namespace argiope;
  const std::vector<std::string> command = take_command(argc, argv);
  keep_standard_descriptors();
  let_writes_fail(SIGXFSZ);  // with a limit on the size of files (ulimit -f): the error names the file
  raise_open_files_limit();
  // Standard output belongs to results; everything said on the way goes to standard error.
  log_to_standard_error();

  CLI::App app{
      "Argiope runs jobs when they are due, most important first and no faster than their target can take,\n"
      "and crawls the web on the same engine.",
      "argiope"};
  app.set_version_flag("-V,--version", fmt::format("argiope {}", kVersion));
  app.require_subcommand(1);
  app.footer(
      "argiope COMMAND --help says more. Try: argiope site, and in another terminal argiope crawl "
      "http://127.0.0.1:8080/");
  Subcommands commands(app);
  commands.add(add_crawl_command(app));
  commands.add(add_project_command(app));
  commands.add(add_serve_command(app));
  commands.add(add_beanstalkd_command(app));
  commands.add(add_site_command(app));
  commands.add(add_next_command(app));
  commands.add(add_simulate_command(app));

  commands.add(add_job_command(app, command));
  commands.add(add_schedule_command(app, command));
  commands.add(add_explain_command(app));
  commands.add(add_token_command(app));
  commands.add(add_notify_command(app));

  add_help_files_option(app);
  refuse_values_of_flags(app);

  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const std::string wrong = wrong_command(app, words); !wrong.empty()) {
    fmt::print(stderr, "{}\n", wrong);
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for) {
    app.exit(asked_for);
    return after_output(kExitFinished);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}\n", sentence_of(error, app, words));
    return kExitUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "argiope: {}\n", printable_lines(error.what()));
    return kExitNothing;
  }
  try {
    return after_output(commands.run());
  } catch (const std::exception& error) {
    fmt::print(stderr, "argiope: {}\n", printable_lines(error.what()));
    return kExitNothing;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_argiope(argc, argv);
  } catch (const std::exception&) {
    // The error could not be said: standard error is full.
    return argiope::kExitNothing;
  }
}
