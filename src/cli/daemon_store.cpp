#include "cli/daemon_store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "argiope/async/event_loop.hpp"
#include "cli/error_advice.hpp"
#include "cli/job_store.hpp"
#include "cli/random_number.hpp"
#include "serve/base/internal/usual_daemon.hpp"

namespace argiope {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// One that listens answers at once, whatever the caller may do there.
bool is_daemon_there() {
  constexpr Duration kPatience = std::chrono::seconds{2};
  const auto base = ApiClient::parse_base(kUsualDaemon);
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  DaemonStore daemon({*base, {}, {}}, backend);
  const auto answer =
      loop.run_until_complete(daemon.client().ask({.path = "/healthz", .waits = false, .timeout = kPatience}));
  return answer && answer->status == 200 && JsonText::parse(answer->body).has_value();
}

Result<std::string> look_for_store() {
  if (const std::string file = usual_store_file(); !file.empty()) {
    fmt::print(stderr, "argiope: using {} of this folder; --store names another\n", file);
    return "sqlite:" + file;
  }
  if (is_daemon_there()) {
    fmt::print(stderr, "argiope: using the daemon at {}; --store names another\n", kUsualDaemon);
    return std::string(kUsualDaemon);
  }
  return fail(
      Errc::invalid_input,
      fmt::format(
          "which store? There is no {} in this folder, and no daemon answers at {}. Give --store sqlite:FILE or "
          "http://HOST:{}, or set ARGIOPE_STORE; argiope serve starts a daemon",
          kUsualJobs, kUsualDaemon, kHttpPort));
}

}  // namespace

std::string usual_store_file() {
  std::string file(kUsualJobs);
  return ::access(file.c_str(), F_OK) == 0 ? file : std::string();
}

Result<std::string> usual_store() {
  static const Result<std::string> found = look_for_store();
  return found;
}

Result<DaemonAddress> daemon_address(const std::string& where) {
  auto base = ApiClient::parse_base(where);
  if (!base) return std::unexpected(std::move(base.error()));
  DaemonAddress address{*base, variable("ARGIOPE_TOKEN"), variable("ARGIOPE_CA_FILE")};
  if (!is_header_safe(address.token)) {
    return fail(Errc::invalid_input, "ARGIOPE_TOKEN: there are no control characters in a token");
  }
  return address;
}

DaemonStore::DaemonStore(const DaemonAddress& address, AsioBackend& backend)
    : resolver_({}, backend),
      http_({.accept = "application/json", .extra_ca_file = address.ca_file}, backend, resolver_, guard_),
      client_(http_, address.base, {.token = address.token, .seed = random_number()}) {}

int run_on_daemon(const std::string& where, const DaemonAction& act) {
  const auto address = daemon_address(where);
  if (!address) return complain(with_store_option(address.error()));
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  DaemonStore daemon(*address, backend);
  const auto done = loop.run_until_complete(act(daemon.client()));
  return done ? *done : complain(with_store_option(done.error()));
}

}  // namespace argiope
