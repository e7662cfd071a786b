#include "cli/daemon_store.hpp"

#include <cstdlib>

#include "argiope/async/event_loop.hpp"
#include "cli/error_advice.hpp"
#include "cli/job_store.hpp"
#include "cli/random_number.hpp"

namespace argiope {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

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
