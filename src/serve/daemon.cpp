#include "serve/internal/daemon.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/http_server.hpp"
#include "async/internal/ticker.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "serve/api/api.hpp"
#include "serve/base/internal/daemon_projects.hpp"
#include "serve/beanstalkd/beanstalkd.hpp"
#include "serve/bounds/answer_room.hpp"
#include "serve/bounds/read_turns.hpp"
#include "serve/gate/audit_log.hpp"
#include "serve/gate/cross_origin.hpp"
#include "serve/gate/gate.hpp"
#include "serve/gate/request_source.hpp"
#include "serve/notify/notifier.hpp"
#include "serve/notify/project_news.hpp"
#include "serve/static_files.hpp"
#include "serve/watch/event_feed.hpp"
#include "serve/watch/health.hpp"
#include "serve/watch/history.hpp"
#include "serve/watch/metrics.hpp"
#include "serve/watch/request_counts.hpp"
#include "serve/watch/watchdog.hpp"
#include "store/internal/store_url.hpp"

namespace argiope {

namespace {

constexpr Duration kPruneInterval = std::chrono::hours{1};
constexpr std::string_view kBatchPaths[] = {"/v1/jobs", "/v1/jobs/change", "/v1/leases", "/v1/leases/settle",
                                            "/v1/schedules"};

// Questions that those who may only look can ask. To read 14 MiB of JSON holds up all others for half a second; 5,000
// schedules of a what-if fit.
constexpr std::string_view kQuestionPaths[] = {"/v1/next", "/v1/simulate"};
constexpr std::size_t kMostQuestionBytes = 4 * 1024 * 1024;

// Where the token belongs into the body.
constexpr std::string_view kSessionPath = "/v1/session";
constexpr std::size_t kMostSessionBytes = 4 * 1024;

// A stranger, who may not ask at all, gets no room for what he sends.
std::optional<ServerResponse> refuse_stranger(Gate& gate, Api& api, const ServerRequest& request) {
  if (request.path == kSessionPath) return std::nullopt;
  auto caller = gate.admit(request, TokenScope::read);
  if (caller) return std::nullopt;
  return api.refuse(request, caller.error());
}

HttpServerOptions server_options(Gate& gate, Api& api, const ServeOptions& options,
                                 std::shared_ptr<const TlsIdentity> tls) {
  HttpServerOptions http;
  http.tls = std::move(tls);
  http.max_connections = options.max_connections;
  http.max_body_bytes = options.max_body_bytes;
  http.max_bodies_bytes = options.max_bodies_bytes;
  http.answer_early = [&gate, &api](const ServerRequest& request) { return refuse_stranger(gate, api, request); };
  http.refusal = [&api](const ServerRequest& request, int status, std::string_view detail) {
    return api.refuse(request, status, detail);
  };
  http.before_sending = [&api](const ServerRequest& request, ServerResponse& response) {
    api.identify(request, response);
  };
  http.body_limit = [usual = options.max_body_bytes, batch = options.max_batch_bytes](const ServerRequest& request) {
    const auto is_one_of = [&](const auto& paths) { return std::ranges::find(paths, request.path) != std::end(paths); };
    if (request.path == kSessionPath) return kMostSessionBytes;
    if (is_one_of(kQuestionPaths)) return std::min(usual, kMostQuestionBytes);
    return is_one_of(kBatchPaths) ? batch : usual;
  };
  // A long poll waits for a minute, and a stream of events as long as its client does.
  http.request_timeout = std::chrono::minutes{5};
  return http;
}

// Of what there is a bounded number of: what one token may have, so that others get some, too.
std::size_t share_of_one(std::size_t all) { return std::max<std::size_t>(all / 4, 1); }

GateOptions gate_options(const ServeOptions& options, std::vector<Token> tokens) {
  GateOptions gate;
  gate.tokens = std::move(tokens);
  gate.needs_token = !options.token_file.empty();
  gate.hosts = options.hosts;
  gate.origins = options.origins;
  gate.users = {::getuid(), 0};
  return gate;
}

ApiOptions api_options(const ServeOptions& options, const DaemonContext& context, Notifier& notifier,
                       const History& history, std::shared_ptr<AnswerRoom> room,
                       std::shared_ptr<ReadTurns> read_turns) {
  ApiOptions api;
  api.room = std::move(room);
  api.read_turns = std::move(read_turns);
  api.notifier = &notifier;
  api.history = &history;
  api.run_id = context.run_id;
  api.session_secret = context.session_secret;
  api.version = context.version;
  api.store = shown_store(options.store);
  api.started_at = EventLoop::current().clock().wall_now();
  api.queue_is_locked = context.queue_is_locked;
  api.schedule_is_locked = context.schedule_is_locked;
  api.queue_line = context.queue_line;
  api.schedule_line = context.schedule_line;
  api.audit = {.file = options.audit_file(), .keep = options.keep_audit};
  api.what_if = context.what_if;
  api.workers_of = context.workers_of;
  api.projects = context.projects;
  return api;
}

HealthOptions health_options(DaemonProjects* projects) {
  HealthOptions health;
  if (projects != nullptr) health.projects_failure = projects->failure;
  return health;
}

std::function<std::vector<NotifierOptions::Unwell>()> halted_of(const DaemonProjects* projects) {
  if (projects == nullptr) return {};
  return [projects] { return halted_projects(*projects); };
}

std::function<std::optional<std::vector<std::string>>(const std::string&)> alarms_of(const DaemonProjects* projects) {
  if (projects == nullptr) return {};
  return [projects](const std::string& name) { return alarms_of_project(*projects, name); };
}

// Has the answers of `handler` counted that have not been yet: pages, files and numbers, which are for everybody.
HttpHandler counted_in(std::shared_ptr<AnswerRoom> room, HttpHandler handler) {
  return [room = std::move(room), handler = std::move(handler)](ServerRequest& request) -> Coro<ServerResponse> {
    ServerResponse response = co_await handler(request);
    room->hold({}, response, true);
    co_return response;
  };
}
Coro<ServerResponse> at_once(ServerResponse response) { co_return response; }

// Who asks, where the request only looks.
std::optional<std::string> reader_of(const Gate& gate, const ServerRequest& request) {
  // Balancers take a daemon that answers these late for one that is ill.
  if (request.path == "/healthz" || request.path == "/readyz") return std::nullopt;
  const bool only_looks =
      changes_nothing(request.method) || std::ranges::find(kQuestionPaths, request.path) != std::end(kQuestionPaths);
  if (!only_looks) return std::nullopt;
  std::string who = gate.name_of(request);
  // Strangers get refusals and the dashboard's files, which cost little, and do not stand in line for them.
  return who.empty() ? std::nullopt : std::optional(std::move(who));
}

// `handler` answers the requests that the gate lets through.
template <class Handler>
HttpHandler admitted(Gate& gate, Api& api, TokenScope scope, Handler handler) {
  return [&gate, &api, scope, handler = std::move(handler)](ServerRequest& request) -> Coro<ServerResponse> {
    const auto caller = gate.admit(request, scope);
    return caller ? handler(*caller) : at_once(api.refuse(request, caller.error()));
  };
}

// Where a socket listens that was handed over.
Result<ListenAddress> address_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(fd, address, &size) != 0) {
    return fail(Errc::io,
                fmt::format("cannot listen at descriptor {}: {}", fd, std::generic_category().message(errno)));
  }
  if (storage.ss_family == AF_UNIX) return ListenAddress{.unix_path = fmt::format("descriptor {}", fd)};
  char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "0";
  ::getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  return ListenAddress{.host = host, .port = static_cast<std::uint16_t>(std::atoi(port)), .unix_path = {}};
}

bool is_for_beanstalkd(const InheritedSocket& socket) { return socket.name == "beanstalkd"; }

// Listens by `listen`; what it throws, as an error that names `what`.
template <class Listen>
Result<void> try_to_listen(const std::string& what, Listen listen) {
  try {
    listen();
    return {};
  } catch (const std::system_error& error) {
    return fail(Errc::io, fmt::format("cannot listen at {}: {}", in_quotes(what), error.code().message()));
  } catch (const std::exception& error) {
    return fail(Errc::invalid_input, fmt::format("cannot listen at {}: {}", in_quotes(what), error.what()));
  }
}

}  // namespace

struct Daemon::State {
  State(Engine& engine, ServeOptions given, DaemonContext context)
      : options(std::move(given)),
        gate(gate_options(options, std::move(context.tokens)), EventLoop::current().clock(), context.session_secret),
        events(engine,
               {.most_streams = options.max_streams,
                .most_streams_of_one = share_of_one(options.max_streams),
                .room = room},
               context.run_id),
        watchdog(EventLoop::current(), EventLoop::current().clock(), {.loop = "the daemon's loop"}),
        health(engine, &watchdog, health_options(context.projects)),
        metrics({.engine = engine,
                 .events = events,
                 .requests = &requests,
                 .gate = &gate,
                 .watchdog = &watchdog,
                 .projects = context.projects,
                 .version = context.version,
                 .started_at = EventLoop::current().clock().wall_now()}),
        history(engine, events, options.history_file()),
        notifier(engine, events,
                 {.from = context.worker_name,
                  .unwell = [this] { return unwell(); },
                  .halted = halted_of(context.projects),
                  .alarms = alarms_of(context.projects),
                  .daemon = [this] { return address_for_commands(); },
                  .file = options.notify_file()}),
        api(engine, gate, events, api_options(options, context, notifier, history, room, read_turns)),
        http(with_origins(behind_writes(
                              read_turns, [this](const ServerRequest& asked) { return reader_of(gate, asked); },
                              counted_in(room, routes())),
                          options.origins),
             server_options(gate, api, options, context.tls)),
        beanstalkd(engine, {.max_job_bytes = options.beanstalkd_max_job_bytes,
                            .max_connections = options.beanstalkd_max_connections,
                            .instance_id = context.run_id,
                            .tls = options.tls_for_beanstalkd ? context.tls : nullptr,
                            .audit = &api.audit(),
                            .room = room}),
        targets(engine, context.worker_name, options.drain_limit) {
    notifier.add_to(metrics);
    metrics.add(Metrics::Kind::counter, "argiope_read_waits_total",
                "How often requests that only look have waited for those that change something", {},
                [this] { return static_cast<double>(read_turns->waits()); });
    projects = context.projects;
    if (projects != nullptr) project_news.emplace(*projects, events, notifier);
    keep_borders();
  }

  // Between tenants, also where scripts cross them.
  void keep_borders() {
    if (projects != nullptr) projects->may_send = gate.messages();
  }

  HttpRouter routes() {
    HttpRouter router;
    api.add_to(router, &requests);
    const auto add = [&](std::string_view path, TokenScope scope, auto handler) {
      router.get(path, requests.counted(std::string(path), admitted(gate, api, scope, std::move(handler))));
    };
    add("/healthz", TokenScope::none, [this](const Caller&) { return at_once(health.healthz()); });
    add("/readyz", TokenScope::none, [this](const Caller&) { return at_once(health.readyz()); });
    add("/metrics", TokenScope::read,
        [this](const Caller& caller) { return answer_metrics(caller.name, caller.sight()); });
    add_static_files(router, dashboard_files());
    return router;
  }

  Coro<ServerResponse> answer_metrics(std::string who, MaySee may_see) {
    const auto turn = co_await read_turns->next(std::move(who));
    co_return co_await metrics.answer(std::move(may_see));
  }

  void prune() {
    pruning.at(saturating_add(EventLoop::current().time(), kPruneInterval));
    if (const std::size_t entries = api.prune_audit(); entries > 0) {
      spdlog::info("audit: forgot {} older than is kept", counted(entries, "entry", "entries"));
    }
  }

  // The troubles that the daemon's operators are told of.
  std::vector<NotifierOptions::Unwell> unwell() const {
    std::vector<NotifierOptions::Unwell> found;
    if (const auto why = health.why_not_ready()) found.push_back({"the daemon", why->detail});
    for (const auto& [queue, text] : targets.troubles()) {
      found.push_back({fmt::format("the target of queue {}", in_quotes(queue)), text});
    }
    return found;
  }

  // `Server`: HttpServer or Beanstalkd.
  template <class Server>
  Result<void> listen_at(Server& server, ListenAddress address, std::string_view shown_as) {
    auto done = try_to_listen(to_string(address), [&] {
      if (address.is_unix()) {
        server.listen_unix(address.unix_path);
      } else {
        address.port = server.listen(address.host.empty() ? "::" : address.host, address.port);
      }
    });
    if (done) where.push_back(fmt::format("{}{}", shown_as, to_string(address)));
    if constexpr (std::is_same_v<Server, HttpServer>) http_at.push_back(std::move(address));
    return done;
  }
  std::string_view scheme() const { return options.tls.certificate.empty() ? "http://" : "https://"; }
  // As --store takes it, on this machine. Empty: no command finds it.
  std::string address_for_commands() const {
    const auto found = std::ranges::find_if(http_at, [](const ListenAddress& address) { return !address.is_unix(); });
    if (found == http_at.end()) return {};
    ListenAddress address = *found;
    if (address.host.empty() || address.host == "0.0.0.0" || address.host == "::") address.host = "127.0.0.1";
    return fmt::format("{}{}", scheme(), to_string(address));
  }
  // A socket that was handed over is judged as an address that is bound here.
  Result<void> judge(const InheritedSocket& socket) {
    const auto address = address_of(socket.fd);
    if (!address) return std::unexpected(address.error());
    if (!is_for_beanstalkd(socket)) {
      http_at.push_back(*address);
      return check_http_address(*address, options);
    }
    auto good = check_beanstalkd_address(*address, options);
    if (good && !address->is_local()) {
      spdlog::warn("others reach {}, and the protocol knows neither tokens nor TLS", to_string(*address));
    }
    return good;
  }
  Result<void> take(const InheritedSocket& socket) {
    const bool is_beanstalkd = is_for_beanstalkd(socket);
    auto done = try_to_listen(fmt::format("descriptor {}", socket.fd),
                              [&] { is_beanstalkd ? beanstalkd.listen_at(socket.fd) : http.listen_at(socket.fd); });
    if (done) where.push_back(fmt::format("{} at descriptor {}", is_beanstalkd ? "beanstalkd" : "http", socket.fd));
    return done;
  }

  ServeOptions options;
  const std::shared_ptr<AnswerRoom> room = std::make_shared<AnswerRoom>(options.max_answers_bytes);
  Gate gate;
  EventFeed events;
  const std::shared_ptr<ReadTurns> read_turns = std::make_shared<ReadTurns>(events.changes());
  RequestCounts requests;
  Watchdog watchdog;
  Health health;
  Metrics metrics;
  History history;
  Notifier notifier;
  Api api;
  HttpServer http;
  Beanstalkd beanstalkd;
  QueueTargets targets;
  DaemonProjects* projects = nullptr;
  std::optional<ProjectNews> project_news;  // nullopt: there are no projects
  std::vector<std::string> where;
  std::vector<ListenAddress> http_at;  // where HTTP is spoken
  Ticker pruning{EventLoop::current(), [this] { prune(); }};
};

Daemon::Daemon(Engine& engine, ServeOptions options, DaemonContext context)
    : state_(std::make_unique<State>(engine, std::move(options), std::move(context))) {
  state_->notifier.open();
}

Daemon::~Daemon() = default;

Result<void> Daemon::listen(std::vector<InheritedSocket> inherited) {
  if (auto opened = state_->api.open(); !opened) return opened;
  state_->history.open();
  state_->prune();
  for (const InheritedSocket& socket : inherited) {
    if (auto good = state_->judge(socket); !good) return good;
  }
  for (const InheritedSocket& socket : inherited) {
    if (auto taken = state_->take(socket); !taken) return taken;
  }
  const auto beanstalkd_sockets = std::ranges::count_if(inherited, is_for_beanstalkd);
  if (std::ssize(inherited) == beanstalkd_sockets) {
    for (const ListenAddress& address : state_->options.http) {
      if (auto done = state_->listen_at(state_->http, address, address.is_unix() ? "" : state_->scheme()); !done)
        return done;
    }
  }
  if (beanstalkd_sockets > 0) return {};
  for (const ListenAddress& address : state_->options.beanstalkd) {
    if (auto done = state_->listen_at(state_->beanstalkd, address, "beanstalkd at "); !done) return done;
  }
  return {};
}

std::vector<std::string> Daemon::where() const { return state_->where; }

QueueTargets& Daemon::targets() noexcept { return state_->targets; }

Result<void> Daemon::check_access(const ServeOptions& asked) const {
  ServeOptions options = state_->options;
  options.token_file = asked.token_file;
  for (const ListenAddress& address : state_->http_at) {
    if (auto good = check_http_address(address, options); !good) return good;
  }
  if (asked.token_file.empty() && !state_->options.token_file.empty()) {
    return fail(Errc::invalid_input, fmt::format("tokens: there is no file of them any more (it was {}), and without "
                                                 "one everybody who reaches the daemon may "
                                                 "do everything: that takes a restart",
                                                 in_quotes(state_->options.token_file)));
  }
  return {};
}

void Daemon::set_access(std::vector<Token> tokens, const ServeOptions& asked) {
  state_->options.hosts = asked.hosts;
  state_->options.token_file = asked.token_file;
  state_->gate.set(gate_options(state_->options, std::move(tokens)));
  state_->keep_borders();
}

Coro<Result<void>> Daemon::set_notify(std::vector<NotifyRule> rules) { return state_->notifier.set(std::move(rules)); }

void Daemon::note_reload(std::string_view changes, bool is_whole) {
  state_->api.audit().add({.at = EventLoop::current().clock().wall_now(),
                           .who = "operator",
                           .from = "this machine",
                           .method = "SIGHUP",
                           .path = "/v1/config",
                           .request = audited_text(changes),
                           .status = is_whole ? std::optional(200) : std::nullopt});
}

void Daemon::drain_puts() { state_->beanstalkd.drain(); }

Coro<bool> Daemon::stop() {
  state_->health.drain();
  state_->api.stop();
  state_->events.stop();
  state_->history.stop();
  state_->pruning.stop();
  const Duration limit = state_->options.drain_limit;
  EventLoop& loop = EventLoop::current();
  state_->project_news.reset();
  co_await state_->notifier.stop();
  auto targets = loop.create_task(state_->targets.stop(), "stop targets");
  auto beanstalkd = loop.create_task(state_->beanstalkd.stop(limit), "stop beanstalkd");
  const bool http_ended = co_await state_->http.stop(limit);
  const bool beanstalkd_ended = co_await beanstalkd;
  co_await targets;
  co_return http_ended&& beanstalkd_ended;
}

void Daemon::hurry() { state_->targets.hurry(); }

}  // namespace argiope
