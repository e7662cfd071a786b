#include "cli/serve/daemon_run.hpp"

#include <fmt/ranges.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/web/detail/dns.hpp"
#include "argiope/web/http_client.hpp"
#include "async/internal/as_error.hpp"
#include "cli/commands.hpp"
#include "cli/error_advice.hpp"
#include "cli/owner.hpp"
#include "cli/random_number.hpp"
#include "cli/serve/configured.hpp"
#include "cli/serve/muted_thread.hpp"
#include "cli/serve/served_projects.hpp"
#include "cli/serve/supervised.hpp"
#include "cli/standard_output.hpp"
#include "cli/version.hpp"
#include "config/internal/settings_changes.hpp"
#include "serve/base/internal/own_queues.hpp"
#include "serve/internal/daemon.hpp"
#include "simulate/internal/simulation.hpp"

namespace argiope {
namespace {

SessionSecret random_secret() {
  SessionSecret secret;
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
    throw std::system_error(errno, std::generic_category(), "random numbers");
  }
  return secret;
}

class DaemonRun {
 public:
  DaemonRun(DaemonSettings settings, const DaemonRunOptions& options)
      : options_(options),
        configuration_(std::move(settings.configuration)),
        tokens_(std::move(settings.tokens)),
        hosts_(configuration_.serve.hosts),
        tls_(std::move(settings.tls)),
        project_files_(std::move(settings.projects)),
        visits_(std::move(settings.visits)) {}

  int run() {
    let_threads_be_muted();
    let_writes_fail(SIGPIPE);  // a log that nobody reads any more is no reason to end
    AsioBackend backend(clock_);
    EventLoop loop(backend);
    const AddressGuard guard(options_.allow_private || configuration_.serve.allow_private,
                             "allow_private = true of the push or of [serve], or --allow-private would connect to it");
    const AddressGuard no_guard(true);
    CaresResolver resolver({}, backend);
    const HttpClientOptions asked_as{
        .user_agent = options_.user_agent, .accept = "*/*", .extra_ca_file = options_.ca_file};
    HttpClient client(asked_as, backend, resolver, guard);
    HttpClient private_too(asked_as, backend, resolver, no_guard);
    EngineOptions options = owner_options();
    options.new_queue = configuration_.serve.new_queue;
    options.create_queues = configuration_.serve.create_queues;
    options.most_queues = configuration_.serve.max_queues;
    if (options_.stands_by) options.owner_limit = Duration::max();
    note_queues(configuration_);
    options.is_free_queue = [this](std::string_view name) { return is_own_queue(name) || file_queues_.contains(name); };
    const int status =
        run_as_owner(loop, configuration_.serve.store,
                     "one process at a time owns a store. Stop that one, or wait for it with --standby; other "
                     "commands can use it beside its owner",
                     std::move(options), [&](Engine& engine) {
                       return work(engine, {client, private_too}, backend);
                     });
    client.close_idle();
    private_too.close_idle();
    if (status != kExitFinished) return status;
    return interrupted_ ? kExitInterrupted : kExitFinished;
  }

 private:
  struct Transports {
    HttpTransport& guarded;
    HttpTransport& private_too;
  };

  Coro<Result<void>> work(Engine& engine, Transports transports, AsioBackend& backend) {
    if (!configuration_.serve.pages.empty()) {
      projects_ = co_await or_return(ServedProjects::open(projects_options(), backend, engine));
      projects_->expect(project_files_);
      projects_->begin();
    }
    auto worked = co_await work_beside_projects(engine, transports);
    if (projects_ == nullptr) co_return worked;
    // A failure of theirs was told when it came, and is not the daemon's.
    (void)co_await projects_->stop();
    projects_.reset();
    co_return worked;
  }

  Coro<Result<void>> work_beside_projects(Engine& engine, Transports transports) {
    std::vector<InheritedSocket> sockets = inherited_sockets();
    Configured configured(engine, transports.guarded, transports.private_too, speaks_beanstalkd(sockets));
    std::vector<QueueTarget> targets = co_await or_return(configured.targets(configuration_));
    Daemon daemon(engine, fitted(sockets), context(configured));
    co_await or_return(configured.apply(configuration_));
    co_await or_return(daemon.set_notify(configuration_.notify));
    if (projects_ != nullptr) co_await or_return(projects_->apply(std::move(project_files_)));
    co_await or_return(daemon.listen(std::move(sockets)));
    daemon.targets().set(std::move(targets));
    engine.scheduler().start();
    handle_signals(daemon);
    say_where(daemon);
    tell_supervisor("READY=1");
    EventLoop& loop = EventLoop::current();
    Task<void> watch = loop.create_task(watch_over(engine), "watch");
    Task<void> reload = loop.create_task(reload_when_asked(configured, daemon), "reload");
    co_await stop_.wait();

    tell_supervisor("STOPPING=1");
    reload.cancel();
    watch.cancel();
    // Together: a job that runs may still have something to say to the API.
    Task<bool> stopping = loop.create_task(daemon.stop(), "stop");
    if (projects_ != nullptr) projects_->stop_soon();
    const Result<void> ended = co_await engine.scheduler().shutdown(!hurried_);
    co_await stopping;
    for (const int number : kSignals) loop.remove_signal_handler(number);
    if (failure_) co_return std::unexpected(*failure_);
    co_return ended;
  }

  ServedProjectsOptions projects_options() const {
    const ServeOptions& serve = configuration_.serve;
    ServedProjectsOptions options{.pages = serve.pages, .visits = visits_, .hidden = {}};
    if (constexpr std::string_view kSqlite = "sqlite:"; serve.store.starts_with(kSqlite))
      options.hidden.push_back(serve.store.substr(kSqlite.size()));
    for (const std::string& file : {serve.token_file, serve.tls.certificate, serve.tls.key, serve.audit_file()}) {
      if (!file.empty()) options.hidden.push_back(file);
    }
    return options;
  }

  void note_queues(const Configuration& configuration) {
    for (const ConfiguredQueue& queue : configuration.queues) file_queues_.insert(queue.name);
    for (const Schedule& schedule : configuration.schedules) file_queues_.insert(schedule.job.queue);
  }

  // As many connections as there are descriptors for.
  ServeOptions fitted(const std::vector<InheritedSocket>& sockets) const {
    ServeOptions options = configuration_.serve;
    const auto beanstalkd = static_cast<std::size_t>(std::ranges::count(sockets, "beanstalkd", &InheritedSocket::name));
    const SpokenAt spoken{.http = std::max(options.http.size(), sockets.size() - beanstalkd),
                          .beanstalkd = std::max(options.beanstalkd.size(), beanstalkd)};
    const std::size_t descriptors = raise_open_files_limit();
    if (fit_connections(options, spoken, descriptors)) {
      spdlog::warn("{} descriptors (ulimit -n): at most {} HTTP and {} beanstalkd connections of each address",
                   descriptors, options.max_connections, options.beanstalkd_max_connections);
    }
    return options;
  }

  std::vector<InheritedSocket> inherited_sockets() const {
    std::vector<InheritedSocket> sockets = take_inherited_sockets();
    if (options_.inherited_speak.empty()) return sockets;
    for (InheritedSocket& socket : sockets) socket.name = options_.inherited_speak;
    return sockets;
  }

  bool speaks_beanstalkd(const std::vector<InheritedSocket>& sockets) const {
    return !configuration_.serve.beanstalkd.empty() ||
           std::ranges::find(sockets, "beanstalkd", &InheritedSocket::name) != sockets.end();
  }

  DaemonContext context(const Configured& configured) {
    return {.run_id = random_number(),
            .version = kVersion,
            .worker_name = default_worker_name(),
            .tokens = tokens_,
            .session_secret = random_secret(),
            .tls = tls_,
            .queue_is_locked = [&configured](std::string_view name) { return configured.names_queue(name); },
            .schedule_is_locked = [&configured](std::string_view name) { return configured.names_schedule(name); },
            .queue_line = [&configured](std::string_view name) { return configured.line_of_queue(name); },
            .schedule_line = [&configured](std::string_view name) { return configured.line_of_schedule(name); },
            .what_if = [this](const WhatIf& question) { return answer_what_if(question); },
            .workers_of = [&configured](std::string_view name) { return configured.workers_of(name); },
            .projects = projects_ == nullptr ? nullptr : &projects_->for_daemon()};
  }

  // On a thread of its own, whose log is of times that are not now.
  Result<std::string> answer_what_if(const WhatIf& question) const {
    const MutedThread muted;
    return answer(question, clock_, kWhatIfLimit);
  }

  void say_where(const Daemon& daemon) const {
    for (const std::string& where : daemon.where()) spdlog::info("listening: {}", where);
    for (const std::string& note : options_.notes) spdlog::info("{}", note);
  }

  // A store that cannot be written any more ends the daemon: what is started again looks anew.
  Coro<void> watch_over(Engine& engine) {
    if (const auto looked = co_await as_error(look_for_failure(engine)); !looked) failure_ = looked.error();
    stop_.set();
  }
  Coro<Result<void>> look_for_failure(Engine& engine) {
    const EventLoop& loop = EventLoop::current();
    const std::optional<Duration> tells_every = watchdog_interval();
    const Duration interval = std::min(tells_every.value_or(kLookInterval), kLookInterval);
    TimePoint tell_at = tells_every ? loop.time() : kNever;
    while (!failure_) {
      if (loop.time() >= tell_at) {
        tell_supervisor("WATCHDOG=1");
        tell_at = saturating_add(loop.time(), *tells_every);
      }
      co_await sleep(interval);
      failure_ = engine.failure();
      if (!failure_) failure_ = engine.scheduler().failure();
    }
    co_return Result<void>{};
  }

  // --- signals

  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

  void handle_signals(Daemon& daemon) {
    EventLoop& loop = EventLoop::current();
    loop.add_signal_handler(SIGINT, [&] { interrupt(daemon, SIGINT); });
    loop.add_signal_handler(SIGTERM, [&] { interrupt(daemon, SIGTERM); });
    loop.add_signal_handler(SIGHUP, [&] { reload_.set(); });
    loop.add_signal_handler(SIGUSR1, [&] { daemon.drain_puts(); });
  }

  void interrupt(Daemon& daemon, int number) {
    if (number == SIGINT) interrupted_ = true;
    if (!stop_.is_set()) {
      spdlog::info("stopping: what runs may end (again: at once)");
      return stop_.set();
    }
    spdlog::info("stopping at once");
    hurried_ = true;
    if (projects_ != nullptr) projects_->hurry();
    daemon.hurry();
    EventLoop::current().call_later(2 * kTellAgain, kill_commands);
  }

  Coro<void> reload_when_asked(Configured& configured, Daemon& daemon) {
    for (;;) {
      co_await reload_.wait();
      reload_.clear();
      if (!options_.read_again) {
        spdlog::info("there is no configuration to read again");
        continue;
      }
      tell_supervisor("RELOADING=1");
      if (auto done = co_await as_error(reload(configured, daemon)); !done) {
        spdlog::error("the configuration stays as it was: {}", done.error().message);
      } else {
        spdlog::info("the configuration was read again");
      }
      tell_supervisor("READY=1");
    }
  }
  Coro<Result<void>> reload(Configured& configured, Daemon& daemon) {
    auto settings = options_.read_again();
    if (!settings) co_return std::unexpected(std::move(settings.error()));
    Configuration& configuration = settings->configuration;
    co_await or_return(daemon.check_access(configuration.serve));
    if (projects_ == nullptr && !settings->projects.empty()) {
      co_return fail(Errc::invalid_input, "project: the daemon was started without any; its first one needs a restart");
    }
    const ServeOptions asked = std::exchange(configuration.serve, configuration_.serve);
    const std::string changes = changes_by(*settings, asked.hosts);
    std::vector<QueueTarget> targets = co_await or_return(configured.targets(configuration));
    const auto applied = co_await as_error(apply(configured, daemon, configuration, std::move(settings->projects)));
    if (!applied) co_return co_await put_back(configured, daemon, applied.error(), changes);
    daemon.targets().set(std::move(targets));
    daemon.set_access(tokens_ = std::move(settings->tokens), asked);
    hosts_ = asked.hosts;
    if (tls_ != nullptr && settings->tls != nullptr) *tls_ = std::move(*settings->tls);
    tell_taken_at_start(asked);
    if (configuration.visits.text != configuration_.visits.text)
      spdlog::warn("needs a restart, and stays as it was: [projects]");
    configuration.visits = configuration_.visits;
    configuration_ = std::move(configuration);
    daemon.note_reload(changes, true);
    co_return Result<void>{};
  }
  Coro<Result<void>> apply(Configured& configured, Daemon& daemon, const Configuration& configuration,
                           std::vector<RunProject> projects) {
    note_queues(configuration);
    co_await or_return(configured.apply(configuration));
    co_await or_return(daemon.set_notify(configuration.notify));
    co_return projects_ == nullptr ? Result<void>{} : projects_->apply(std::move(projects));
  }
  std::string changes_by(const DaemonSettings& settings, const std::vector<std::string>& hosts) const {
    const auto expiry = [](const std::shared_ptr<TlsIdentity>& tls) { return tls ? tls->expires_at() : WallTime{}; };
    const bool takes_certificate = tls_ != nullptr && settings.tls != nullptr;
    return changes_between(
        {configuration_, tokens_, hosts_, expiry(tls_)},
        {settings.configuration, settings.tokens, hosts, expiry(takes_certificate ? settings.tls : tls_)});
  }
  // After a reload that the store has ended in its middle.
  Coro<Result<void>> put_back(Configured& configured, Daemon& daemon, Error why, const std::string& changes) {
    auto undone = co_await as_error(configured.put_back(configuration_));
    if (undone) undone = co_await daemon.set_notify(configuration_.notify);
    if (!undone) {
      daemon.note_reload(changes, false);
      why.message += fmt::format("; and what was applied of it could not be put back ({}): send SIGHUP again",
                                 undone.error().message);
    }
    co_return std::unexpected(std::move(why));
  }
  void tell_taken_at_start(const ServeOptions& asked) const {
    const auto names = taken_at_start(configuration_.serve, asked);
    if (!names.empty()) spdlog::warn("needs a restart, and stays as it was: {}", fmt::join(names, ", "));
  }

  static constexpr Duration kLookInterval = std::chrono::milliseconds{100};
  static constexpr Duration kWhatIfLimit = std::chrono::seconds{10};

  const DaemonRunOptions& options_;
  SystemClock clock_;
  Configuration configuration_;
  std::vector<Token> tokens_;
  std::set<std::string, std::less<>> file_queues_;  // that a configuration of this run names, or puts jobs into
  std::vector<std::string> hosts_;                  // by which it may be asked for
  std::shared_ptr<TlsIdentity> tls_;
  std::vector<RunProject> project_files_;  // as read, until they are in force
  const ProjectRunArguments visits_;
  std::unique_ptr<ServedProjects> projects_;  // null: there are none
  Event stop_, reload_;
  bool interrupted_ = false;
  bool hurried_ = false;
  std::optional<Error> failure_;
};

}  // namespace

int run_daemon(DaemonSettings settings, const DaemonRunOptions& options) {
  return DaemonRun(std::move(settings), options).run();
}

}  // namespace argiope
