// `argiope serve`: its options and its file; what then happens is daemon_run.hpp's.
#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argiope/web/detail/tls.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/authorities_option.hpp"
#include "cli/commands.hpp"
#include "cli/file_kind.hpp"
#include "cli/job_store.hpp"
#include "cli/project/run_arguments.hpp"
#include "cli/serve/configured.hpp"
#include "cli/serve/daemon_places.hpp"
#include "cli/serve/daemon_run.hpp"
#include "config/internal/configuration.hpp"
#include "serve/gate/internal/token_file.hpp"
#include "store/internal/store_url.hpp"

namespace argiope {
namespace {

struct ServeArguments {
  std::string file;
  std::string store;
  std::vector<std::string> listen;
  std::vector<std::string> beanstalkd;
  std::string tokens;
  std::string tls_certificate;
  std::string tls_key;
  bool insecure = false;
  bool check = false;
  bool standby = false;
  bool quiet = false;
  bool allow_private = false;
  std::string pages;
  std::string sandbox = "strict";
  RenderArguments render;
  std::string log = "text";
  std::string user_agent = "argiope";
  std::string ca_file;
};

// clang-format off
void add_options(CLI::App& command, ServeArguments& serve) {
  command.add_option("FILE", serve.file, "A configuration: [serve], [[queue]], [[schedule]], [[notify]], [[project]], [projects] (docs/configuration.md)");
  command.add_option("--store", serve.store, "The jobs: sqlite:FILE, postgresql://…, redis://… or memory: (default sqlite:argiope-jobs.db)")->type_name("STORE");
  command.add_option("--pages", serve.pages, "The database of projects (default: none; pages.db where the configuration has a [[project]])")->type_name("FILE");
  command.add_option("--sandbox", serve.sandbox, "How projects' scripts are confined: strict (no network, nothing to write), basic (bounds), none")
      ->check(CLI::IsMember({"strict", "basic", "none"}))->capture_default_str();
  command.add_option("--listen", serve.listen, "HTTP at HOST:PORT, [IPV6]:PORT or unix:PATH; may be repeated (default 127.0.0.1:7733)")->type_name("ADDRESS")->allow_extra_args(false);
  command.add_option("--beanstalkd", serve.beanstalkd, "Speak the beanstalkd protocol, at 127.0.0.1:11300 or ADDRESS; may be repeated")
      ->type_name("ADDRESS")->expected(0, 1)->allow_extra_args(false)->default_str(fmt::format("127.0.0.1:{}", kBeanstalkdPort));
  command.add_option("--tokens", serve.tokens, "Rights of callers: a file that `argiope token` writes")->type_name("FILE");
  command.add_option("--tls-certificate", serve.tls_certificate, "Speak HTTPS with the certificate, and those that vouch for it, in this PEM file")->type_name("FILE");
  command.add_option("--tls-key", serve.tls_key, "Its private key, in PEM")->type_name("FILE");
  command.add_flag("--insecure", serve.insecure, "Listen beyond this machine without TLS: something that speaks it stands before it");
  command.add_flag("--standby", serve.standby, "Wait for as long as another process owns the store, and take over when it has ended or its lease is over");
  command.add_flag("--check", serve.check, "Read the configuration, say what is wrong with it, and end");
  command.add_option("--log", serve.log, "How the log is written")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  command.add_flag("--quiet", serve.quiet, "Log errors only");
  command.add_flag("--allow-private", serve.allow_private, "Let requests of schedules and queues, and visits of projects, connect to private addresses");
  command.add_option("--user-agent", serve.user_agent, "The User-Agent of requests")->type_name("TEXT")->capture_default_str();
  command.add_option("--ca-file", serve.ca_file, "Trust the authorities in this PEM file, too")->check(authorities_file())->type_name("FILE");
  (void)serve.render.add_browser_to(command, kRenderGroup);
  command.footer(
      "Jobs, schedules and projects for every language: an HTTP API (docs/http-api.md), the beanstalkd protocol, and a page to look at.\n"
      "The file and the options win over what the API is asked to change.\n"
      "SIGHUP reads file, tokens and certificate again: what is wrong is told, and then nothing changes. SIGTERM or Ctrl-C lets\n"
      "jobs and requests end (10 s unless the file says otherwise), twice stops them; stopped jobs are run again. SIGUSR1 refuses puts\n"
      "by the beanstalkd protocol.\n"
      "Examples:\n"
      "  argiope serve\n"
      "  curl -d '{\"queue\":\"mail\",\"payload\":\"hello\"}' http://127.0.0.1:7733/v1/jobs\n"
      "  argiope serve argiope.toml --beanstalkd --tokens tokens");
}
// clang-format on

// One JSON object a line.
class JsonLog final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    std::string line = json_object([&](JsonWriter& json) {
      json.member("at", WallTime{std::chrono::floor<std::chrono::milliseconds>(message.time.time_since_epoch())});
      const auto level = spdlog::level::to_string_view(message.level);
      json.member("level", std::string_view(level.data(), level.size()));
      json.member("text", std::string_view(message.payload.data(), message.payload.size()));
    });
    line += '\n';
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonLog>(); }
};

Result<std::vector<ListenAddress>> parse_addresses(const std::vector<std::string>& texts, std::string_view option,
                                                   std::uint16_t port) {
  std::vector<ListenAddress> addresses;
  for (const std::string& text : texts) {
    auto address = parse_listen_address(text, port);
    if (!address) return fail(Errc::invalid_input, fmt::format("{}: {}", option, address.error().message));
    addresses.push_back(*std::move(address));
  }
  return addresses;
}

// Options of `argiope project run` that say nothing of a daemon, are [serve]'s, or go by the starts of one run
// (--header).
constexpr const char* kOfOneRun[] = {"--header",     "FILE",    "--database", "--sync",  "--results", "--once",
                                     "--retry-wait", "--quiet", "--summary",  "--debug", "--config"};

class ServeCommand {
 public:
  // `command`: which options were given.
  ServeCommand(const ServeArguments& arguments, const CLI::App& command) : arguments_(arguments), command_(command) {}

  int run() const {
    if (arguments_.log == "json") spdlog::set_formatter(std::make_unique<JsonLog>());
    if (arguments_.quiet) spdlog::set_level(spdlog::level::err);
    auto settings = read(true);
    if (!settings) return complain(settings.error());
    if (arguments_.check) return say_good(*settings);
    const DaemonRunOptions options{.read_again = [this] { return read(false); },
                                   .notes = notes(*settings),
                                   .inherited_speak = {},
                                   .stands_by = arguments_.standby,
                                   .allow_private = arguments_.allow_private,
                                   .user_agent = arguments_.user_agent,
                                   .ca_file = arguments_.ca_file};
    return run_daemon(*std::move(settings), options);
  }

 private:
  // `starts`: the daemon does, or it would with this.
  Result<DaemonSettings> read(bool starts) const {
    const FileReading reading = starts ? FileReading::first : FileReading::again;
    auto configuration = read_configuration(reading);
    if (!configuration) return std::unexpected(std::move(configuration.error()));
    auto tokens = read_tokens(configuration->serve, starts);
    if (!tokens) return std::unexpected(std::move(tokens.error()));
    auto identity = read_identity(configuration->serve, starts);
    if (!identity) return std::unexpected(std::move(identity.error()));
    auto projects = read_projects(*configuration, reading);
    if (!projects) return std::unexpected(std::move(projects.error()));
    // Places that a reload changes are taken at the next start.
    const auto places = starts ? check_places(configuration->serve, *projects, place_names()) : Result<void>{};
    if (!places) return std::unexpected(places.error());
    auto visits = read_visits(configuration->visits);
    if (!visits) return std::unexpected(std::move(visits.error()));
    return DaemonSettings{*std::move(configuration), *std::move(tokens), *std::move(identity), *std::move(projects),
                          *std::move(visits)};
  }
  PlaceNames place_names() const {
    const auto said = [this](bool is_option, std::string_view option, std::string_view member) {
      if (is_option || arguments_.file.empty()) return std::string(option);
      return fmt::format("{}: serve.{}", printable(arguments_.file), member);
    };
    return {.file = arguments_.file,
            .store = said(!arguments_.store.empty(), "--store", "store"),
            .pages = said(!arguments_.pages.empty(), "--pages", "pages"),
            .tokens = said(!arguments_.tokens.empty(), "--tokens", "tokens"),
            .certificate = said(!arguments_.tls_certificate.empty(), "--tls-certificate", "tls.certificate"),
            .key = said(!arguments_.tls_key.empty(), "--tls-key", "tls.key"),
            .audit = said(false, "audit", "audit"),
            .listen = said(!arguments_.listen.empty(), "--listen", "listen"),
            .beanstalkd = said(!arguments_.beanstalkd.empty(), "--beanstalkd", "beanstalkd")};
  }
  // The configuration's options under [projects], in the words of `argiope project run`, behind our own options.
  Result<ProjectRunArguments> read_visits(const ConfiguredVisits& said) const {
    ProjectRunArguments visits;
    visits.requests.user_agent = arguments_.user_agent;
    visits.requests.ca_file = arguments_.ca_file;
    visits.requests.allow_private = arguments_.allow_private;
    visits.sandbox = arguments_.sandbox;
    visits.render = arguments_.render;
    CLI::App run;
    visits.add_to(run);
    for (const char* name : kOfOneRun) run.remove_option(run.get_option(name));
    const auto is_given = [this](const CLI::Option& option) {
      const CLI::Option* const ours = command_.get_option_no_throw("--" + option.get_lnames().front());
      return ours != nullptr && ours->count() > 0;
    };
    if (auto given =
            give_options(run, said.options, {arguments_.file, "projects", "argiope project run --help"}, is_given);
        !given) {
      return std::unexpected(std::move(given.error()));
    }
    visits.hosts.hosts = said.hosts;
    CrawlOptions hosts;
    CrawlSetup setup;
    if (auto good = visits.apply(hosts, setup, environment_variable); !good)
      return std::unexpected(std::move(good.error()));
    return visits;
  }
  Result<Configuration> read_configuration(FileReading reading) const {
    Configuration configuration;
    if (!arguments_.file.empty()) {
      auto from_file = or_other_kind(argiope::read_configuration(arguments_.file, reading), arguments_.file,
                                     FileKind::configuration);
      if (!from_file) return from_file;
      configuration = *std::move(from_file);
    }
    if (auto done = override_by_options(configuration.serve); !done) return std::unexpected(std::move(done.error()));
    if (auto good = argiope::check(configuration.serve); !good) return std::unexpected(std::move(good.error()));
    if (auto good = check_targets(configuration); !good) return std::unexpected(std::move(good.error()));
    const auto executors = executors_of(configuration, !configuration.serve.beanstalkd.empty());
    const auto executes = [&](std::string_view queue) { return executors.contains(std::string(queue)); };
    if (auto good = check_calls(configuration, executes); !good) return std::unexpected(std::move(good.error()));
    for (const std::string& call : calls_without_workers(configuration, executes)) spdlog::warn("{}", call);
    if (!arguments_.allow_private) {
      for (const std::string& push : private_pushes(configuration)) {
        spdlog::warn("{}; its jobs wait until it has allow_private = true", push);
      }
      for (const std::string& call : private_calls(configuration)) {
        spdlog::warn("{}; its jobs wait until [serve] has allow_private = true", call);
      }
    }
    return configuration;
  }
  // Reads their files, whose names count from the configuration's folder.
  Result<std::vector<RunProject>> read_projects(Configuration& configuration, FileReading reading) const {
    std::vector<std::string> files;
    const std::filesystem::path folder = std::filesystem::path(arguments_.file).parent_path();
    for (const ConfiguredProject& project : configuration.projects) files.push_back((folder / project.file).string());
    auto projects = read_run_projects(files, reading);
    if (!projects) return projects;
    for (std::size_t i = 0; i < files.size(); ++i) {
      const PageEngine::Draft& draft = *(*projects)[i].draft;
      configuration.projects[i].text = draft.source + draft.script;
    }
    if (!files.empty() && configuration.serve.pages.empty()) configuration.serve.pages = kPagesDatabase;
    return projects;
  }
  Result<void> override_by_options(ServeOptions& options) const {
    if (!arguments_.store.empty()) options.store = arguments_.store;
    if (!arguments_.pages.empty()) options.pages = arguments_.pages;
    if (!arguments_.tokens.empty()) options.token_file = arguments_.tokens;
    if (!arguments_.tls_certificate.empty()) options.tls.certificate = arguments_.tls_certificate;
    if (!arguments_.tls_key.empty()) options.tls.key = arguments_.tls_key;
    if (arguments_.insecure) options.insecure = true;
    auto http = parse_addresses(arguments_.listen, "--listen", kHttpPort);
    if (!http) return std::unexpected(std::move(http.error()));
    if (!http->empty()) options.http = *std::move(http);
    auto beanstalkd = parse_addresses(arguments_.beanstalkd, "--beanstalkd", kBeanstalkdPort);
    if (!beanstalkd) return std::unexpected(std::move(beanstalkd.error()));
    if (!beanstalkd->empty()) options.beanstalkd = *std::move(beanstalkd);
    return {};
  }
  Result<std::vector<Token>> read_tokens(const ServeOptions& options, bool starts) const {
    std::vector<Token> tokens;
    if (options.token_file.empty()) return tokens;
    auto kept = read_token_file(options.token_file);
    if (!kept) return std::unexpected(std::move(kept.error()));
    if (kept->empty()) {
      const std::string advice = fmt::format("{} has no tokens; make one: argiope token add --file {}",
                                             in_quotes(options.token_file), printable(options.token_file));
      if (starts) return fail(Errc::invalid_input, fmt::format("{}: {}", place_names().tokens, advice));
      // The last one was taken away from who had it, and that is done at once.
      spdlog::warn("nobody is let in any more: {}", advice);
    }
    for (KeptToken& one : *kept) tokens.push_back(std::move(one.token));
    return tokens;
  }
  // Null where TLS is not spoken.
  Result<std::shared_ptr<TlsIdentity>> read_identity(const ServeOptions& options, bool starts) const {
    if (options.tls.certificate.empty()) return nullptr;
    auto identity = starts ? TlsIdentity::load(options.tls) : TlsIdentity::load_again(options.tls);
    if (!identity) {
      const PlaceNames names = place_names();
      const bool is_key = identity.error().message.starts_with(in_quotes(options.tls.key));
      return fail(identity.error().code,
                  fmt::format("{}: {}", is_key ? names.key : names.certificate, identity.error().message));
    }
    if ((*identity)->expires_at() <= SystemClock().wall_now()) {
      spdlog::warn("the certificate {} expired at {}", in_quotes(options.tls.certificate),
                   to_rfc3339((*identity)->expires_at()));
    }
    return identity;
  }
  std::vector<std::string> notes(const DaemonSettings& settings) const {
    std::vector<std::string> notes;
    if (arguments_.file.empty())
      notes.push_back(fmt::format("jobs are kept in {}", shown_store(settings.configuration.serve.store)));
    if (settings.tokens.empty()) notes.emplace_back("no tokens: whoever reaches it may do everything");
    return notes;
  }
  int say_good(const DaemonSettings& settings) const {
    for (const std::string& address : addresses_not_free(settings.configuration.serve, place_names())) {
      spdlog::warn("{}: a start would not get it now; where the daemon runs, it is the one that has it", address);
    }
    const std::string projects = settings.projects.empty() ? "" : ", " + counted(settings.projects.size(), "project");
    fmt::print("{}: {}, {}{}, {}: no errors\n", arguments_.file.empty() ? "no file" : printable(arguments_.file),
               counted(settings.configuration.queues.size(), "queue"),
               counted(settings.configuration.schedules.size(), "schedule"), projects,
               counted(settings.tokens.size(), "token"));
    return kExitFinished;
  }

  const ServeArguments& arguments_;
  const CLI::App& command_;
};

}  // namespace

std::function<int()> add_serve_command(CLI::App& app) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* command =
      app.add_subcommand("serve", "The daemon: jobs, schedules and projects over HTTP, and beanstalkd's protocol");
  add_options(*command, *arguments);
  return [arguments, command] { return ServeCommand(*arguments, *command).run(); };
}

}  // namespace argiope
