// `argiope site`: a synthetic web on loopback.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <string>

#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "cli/command_files.hpp"
#include "cli/commands.hpp"
#include "cli/end_signals.hpp"
#include "cli/number_option.hpp"
#include "site/internal/site_server.hpp"

namespace argiope {
namespace {

struct SiteArguments {
  SyntheticWebOptions web;
  SiteServerOptions server;
  double latency_ms = 0;
  std::string features = "friendly";
  std::string hostile;
  std::string log_file;
};

// One descriptor a connection: as many as the system lets us have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run_site(SiteArguments& arguments) {
  const auto complain = [](const std::string& message, int status) {
    fmt::print(stderr, "argiope: {}\n", printable_lines(message));
    return status;
  };
  const auto features = parse_web_features(arguments.features);
  if (!features) return complain("--features: " + features.error().message, kExitUsage);
  const auto hostile = parse_web_features(arguments.hostile);
  if (!hostile) return complain("--hostile: " + hostile.error().message, kExitUsage);
  arguments.web.features = *features | *hostile;
  arguments.web.latency = from_seconds(arguments.latency_ms / 1000);
  CommandFiles files;
  files.reads("--tls-certificate", arguments.server.certificate);
  files.reads("--tls-key", arguments.server.key);
  files.keeps("--log", arguments.log_file);
  if (const auto good = files.check(); !good) return complain(good.error().message, kExitUsage);
  if (!arguments.log_file.empty()) {
    arguments.server.log = std::fopen(arguments.log_file.c_str(), "a");
    if (arguments.server.log == nullptr) {
      return complain(fmt::format("--log {}: {}", arguments.log_file, std::strerror(errno)), kExitUsage);
    }
  }
  raise_descriptor_limit();
  SystemClock clock;
  AsioBackend backend(clock);
  auto server = SiteServer::listen(backend, arguments.web, arguments.server);
  if (!server) return complain(server.error().message, kExitNothing);
  EventLoop loop(backend);
  fmt::print("site: {}, {} pages each, {}/ …\n", counted(arguments.web.hosts, "host"), arguments.web.pages,
             (*server)->origins().front());
  for (const std::string& origin : (*server)->origins()) fmt::print("  {}/\n", origin);
  fmt::print("Ctrl-C ends it.\n");
  std::fflush(stdout);
  Task<void> serving = loop.create_task((*server)->serve(), "site");
  EndSignals signals;
  signals.listen(loop, [&] {
    serving.cancel();
    loop.stop();
  });
  loop.run_forever();
  signals.forget(loop);
  fmt::print("{} answered\n", counted((*server)->requests(), "request"));
  if (arguments.server.log != nullptr) std::fclose(arguments.server.log);
  return kExitFinished;
}

}  // namespace

std::function<int()> add_site_command(CLI::App& app) {
  auto arguments = std::make_shared<SiteArguments>();
  CLI::App* command = app.add_subcommand(
      "site", "Serve a synthetic web on loopback, the same for the same seed, for trying and measuring.");
  SyntheticWebOptions& web = arguments->web;
  command->add_option("--hosts", web.hosts, "Hosts")->check(whole_number(1, 10'000))->capture_default_str();
  command->add_option("--pages", web.pages, "Pages of each host")
      ->check(whole_number(1, 100'000'000))
      ->capture_default_str();
  command->add_option("--links", web.links, "Links on a page")->check(whole_number(1, 10'000))->capture_default_str();
  command->add_option("--size", web.size, "Bytes of a page, roughly")
      ->check(whole_number(0, 100'000'000))
      ->capture_default_str();
  command->add_option("--latency-ms", arguments->latency_ms, "Wait before each page is answered")
      ->check(any_number(0.0, 1e6))
      ->capture_default_str();
  command->add_option("--errors", web.errors, "Part of the links that are broken, 0 to 1")
      ->check(any_number(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--seed", web.seed, "The same seed gives the same web")
      ->check(whole_number(0))
      ->capture_default_str();
  command->add_option("--port", arguments->server.port, "Port of the first host, the others follow; 0: free ones")
      ->check(whole_number(0, 65'535))
      ->capture_default_str();
  CLI::Option* const certificate =
      command
          ->add_option("--tls-certificate", arguments->server.certificate,
                       "Speak TLS, and HTTP/2 to who offers it, with this certificate (PEM)")
          ->check(CLI::ExistingFile)
          ->type_name("FILE");
  CLI::Option* const key = command->add_option("--tls-key", arguments->server.key, "Its private key (PEM)")
                               ->check(CLI::ExistingFile)
                               ->type_name("FILE")
                               ->needs(certificate);
  certificate->needs(key);
  command->add_flag("--by-address", arguments->server.by_address, "Hosts at 127.0.0.1, 127.0.0.2 … on one port");
  command
      ->add_option("--features", arguments->features,
                   "Features of the hosts: robots, redirects, broken, flaky, compressed, encodings, nofollow,\n"
                   "resources, duplicates, offsite, phantoms, base, chain; or friendly (all of these), none;\n"
                   "and cookies, members, basic, digest, or guarded (all four): pages for who sends cookies back,\n"
                   "has logged in at /login, or says who he is: ann, \"silk & dew\"; copies, sessions, traps,\n"
                   "or repeated (all three): the same under many URLs; and sitemaps, feeds, or listed (both):\n"
                   "pages to which nothing else leads; and scripts: pages below /scripts/ that need a browser")
      ->capture_default_str();
  command
      ->add_option("--hostile", arguments->hostile,
                   "Mischief of the last host: loops, endless, drip, reset, lengths, silent, garbage, bomb,\n"
                   "flood, closed, throttling, failing, headers, odd; or all; and what makes it useless: slow,\n"
                   "robots-500, robots-silent, robots-reset")
      ->type_name("LIST");
  command->add_option("--evil-hosts", web.evil_hosts, "How many of the last hosts are hostile")
      ->check(whole_number(0, 10'000))
      ->capture_default_str();
  command
      ->add_option("--log", arguments->log_file,
                   "Append a line for each request: microseconds, host, method, target, status")
      ->type_name("FILE");
  return [arguments] { return run_site(*arguments); };
}

}  // namespace argiope
