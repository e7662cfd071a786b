// `argiope beanstalkd`: beanstalkd's own flags, for those who put this in its place. Its help and
// docs/from-beanstalkd.md say what each of them means here.
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/job_store.hpp"
#include "cli/number_option.hpp"
#include "cli/serve/daemon_places.hpp"
#include "cli/serve/daemon_run.hpp"
#include "cli/version.hpp"
#include "serve/internal/serve_options.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostJobBytes = std::size_t{1} << 30;  // as beanstalkd has it
constexpr std::string_view kStoreFile = "argiope-jobs.db";
constexpr std::string_view kUnixAddress = "unix:";

struct BeanstalkdArguments {
  std::string directory;
  std::string listen = "127.0.0.1";
  std::uint16_t port = kBeanstalkdPort;
  std::string user;
  std::size_t max_job_bytes = ServeOptions{}.beanstalkd_max_job_bytes;
  // Taken for the sake of old command lines.
  std::uint64_t sync_ms = 0, log_file_bytes = 0;
  bool never_sync = false, compact = false, no_compact = false;
  int verbosity = 0;
};

// clang-format off
void add_options(CLI::App& command, BeanstalkdArguments& beanstalkd) {
  command.add_option("-b", beanstalkd.directory, "Keep jobs in argiope-jobs.db in this directory (default: in memory, until the process ends)")->type_name("DIR");
  command.add_option("-l", beanstalkd.listen, "Listen at this address, or at unix:PATH; beanstalkd's own default is 0.0.0.0")->type_name("ADDR")->capture_default_str();
  command.add_option("-p", beanstalkd.port, "Listen at this port; 0: any that is free")->check(whole_number(0, 65'535))->type_name("PORT")->capture_default_str();
  command.add_option("-z", beanstalkd.max_job_bytes, "The largest job; at most 1073741824")->check(whole_number(0))->type_name("BYTES")->capture_default_str();
  command.add_option("-u", beanstalkd.user, "Become this user and its groups first, before anything is opened")->type_name("USER");
  command.add_option("-f", beanstalkd.sync_ms, "No effect: with -b a change is answered once it is synced, which is beanstalkd's -f 0")->type_name("MS");
  command.add_flag("-F", beanstalkd.never_sync, "No effect: with -b a change is answered once it is synced");
  command.add_option("-s", beanstalkd.log_file_bytes, "No effect: there are no log files of a fixed size")->type_name("BYTES");
  command.add_flag("-c", beanstalkd.compact, "No effect, as in beanstalkd");
  command.add_flag("-n", beanstalkd.no_compact, "No effect, as in beanstalkd");
  command.add_flag("-V", beanstalkd.verbosity, "No effect: the log says what there is to say without it");
  command.set_version_flag("-v", fmt::format("argiope {}, for beanstalkd 1.12", kVersion), "Print the version and exit");
  command.footer(
      "Clients of beanstalkd work unchanged (docs/beanstalkd.md). docs/from-beanstalkd.md has the differences.\n"
      "Jobs of a beanstalkd's own binlog in DIR are not read.\n"
      "SIGUSR1 refuses puts (DRAINING). SIGTERM or Ctrl-C takes no more clients and gives back what they have reserved.\n"
      "Sockets that systemd hands over (LISTEN_FDS) take the place of -l and -p.\n"
      "argiope serve --beanstalkd speaks the protocol beside HTTP, with schedules and a page to look at.\n"
      "Examples:\n"
      "  argiope beanstalkd\n"
      "  argiope beanstalkd -l 127.0.0.1 -p 11300 -b /var/lib/beanstalkd -u nobody -z 1048576");
}
// clang-format on

const PlaceNames kPlaces{.file = {},
                         .store = "-b",
                         .pages = {},
                         .tokens = {},
                         .certificate = {},
                         .key = {},
                         .audit = "-b",
                         .listen = {},
                         .beanstalkd = "-l"};

bool is_binlog(std::string_view name) {
  constexpr std::string_view kPrefix = "binlog.";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         std::ranges::all_of(name.substr(kPrefix.size()), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Jobs that are left behind unnoticed are jobs lost.
Result<void> refuse_binlogs(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (!is_binlog(name)) continue;
    return fail(
        Errc::invalid_input,
        fmt::format("-b {}: {} is beanstalkd's, and its jobs are not read here. Let workers empty that beanstalkd "
                    "first, and then move the file away",
                    in_quotes(directory), in_quotes(name)));
  }
  if (error) return fail(Errc::invalid_input, fmt::format("-b {}: {}", in_quotes(directory), error.message()));
  return {};
}

Result<void> become(const std::string& user) {
  errno = 0;
  const passwd* const entry = ::getpwnam(user.c_str());
  if (entry == nullptr) {
    const std::string why = errno == 0 ? "there is no such user" : std::generic_category().message(errno);
    return fail(Errc::invalid_input, fmt::format("-u {}: {}", in_quotes(user), why));
  }
  if (::geteuid() == entry->pw_uid && ::getegid() == entry->pw_gid) return {};
  if (::initgroups(entry->pw_name, entry->pw_gid) == 0 && ::setgid(entry->pw_gid) == 0 &&
      ::setuid(entry->pw_uid) == 0) {
    return {};
  }
  return fail(Errc::invalid_input, fmt::format("-u {}: {}", in_quotes(user), std::generic_category().message(errno)));
}

class BeanstalkdCommand {
 public:
  BeanstalkdCommand(const BeanstalkdArguments& arguments, const CLI::App& command)
      : arguments_(arguments), command_(command) {}

  int run() const {
    if (!arguments_.user.empty()) {
      if (const auto done = become(arguments_.user); !done) return complain(done.error());
    }
    auto options = serve_options();
    if (!options) return complain(options.error());
    if (const auto good = check_places(*options, {}, kPlaces); !good) return complain(good.error());
    say_what_differs(*options);
    DaemonSettings settings;
    const DaemonRunOptions run{.read_again = {},
                               .notes = {where_jobs_are(*options)},
                               .inherited_speak = "beanstalkd",
                               .allow_private = false,
                               .user_agent = "argiope",
                               .ca_file = {}};
    settings.configuration.serve = *std::move(options);
    return run_daemon(std::move(settings), run);
  }

 private:
  Result<ServeOptions> serve_options() const {
    ServeOptions options;
    options.http.clear();
    options.insecure = true;  // as beanstalkd: who gives the address guards it, and is warned
    options.store = "memory:";
    if (!arguments_.directory.empty()) {
      if (auto good = refuse_binlogs(arguments_.directory); !good) return std::unexpected(std::move(good.error()));
      options.store = fmt::format("sqlite:{}", (std::filesystem::path(arguments_.directory) / kStoreFile).string());
    }
    auto address = listen_address();
    if (!address) return std::unexpected(std::move(address.error()));
    options.beanstalkd = {*std::move(address)};
    options.beanstalkd_max_job_bytes = std::min(arguments_.max_job_bytes, kMostJobBytes);
    return options;
  }
  // An IPv6 address may stand without brackets: the port is an option of its own.
  Result<ListenAddress> listen_address() const {
    if (arguments_.listen.starts_with(kUnixAddress)) return parse_listen_address(arguments_.listen, arguments_.port);
    return ListenAddress{.host = arguments_.listen, .port = arguments_.port, .unix_path = {}};
  }

  void say_what_differs(const ServeOptions& options) const {
    for (const char* flag : {"-f", "-F"}) {
      if (command_.count(flag) > 0)
        spdlog::info("{} has no effect: every change is synced before it is answered", flag);
    }
    for (const char* flag : {"-s", "-c", "-n"}) {
      if (command_.count(flag) > 0) spdlog::info("{} has no effect", flag);
    }
    if (arguments_.max_job_bytes > kMostJobBytes) spdlog::warn("-z: jobs have at most {} bytes", kMostJobBytes);
    const bool is_handed_over = std::getenv("LISTEN_FDS") != nullptr;
    if (is_handed_over || options.beanstalkd.front().is_local()) return;
    spdlog::warn("others reach {}, and the protocol knows neither tokens nor TLS",
                 to_string(options.beanstalkd.front()));
  }
  std::string where_jobs_are(const ServeOptions& options) const {
    if (arguments_.directory.empty()) return "jobs are kept in memory, and end with this process; -b DIR keeps them";
    return fmt::format("jobs are kept in {}", options.store);
  }

  const BeanstalkdArguments& arguments_;
  const CLI::App& command_;
};

}  // namespace

std::function<int()> add_beanstalkd_command(CLI::App& app) {
  auto arguments = std::make_shared<BeanstalkdArguments>();
  CLI::App* command = app.add_subcommand("beanstalkd", "In beanstalkd's place: its protocol and its flags, alone");
  add_options(*command, *arguments);
  return [arguments, command] { return BeanstalkdCommand(*arguments, *command).run(); };
}

}  // namespace argiope
