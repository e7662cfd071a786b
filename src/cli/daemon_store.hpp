// The way to a daemon, for commands whose --store names one.
#pragma once

#include <functional>
#include <string>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/coro.hpp"
#include "argiope/web/detail/dns.hpp"
#include "argiope/web/http_client.hpp"
#include "remote/internal/api_client.hpp"

namespace argiope {

// Its token is in ARGIOPE_TOKEN; ARGIOPE_CA_FILE may name a file of certificate authorities for https://.
struct DaemonAddress {
  Url base;
  std::string token;
  std::string ca_file;
};
// Errors: invalid_input, for a `where` or a token that none can be.
Result<DaemonAddress> daemon_address(const std::string& where);

// Where the jobs are when neither --store nor ARGIOPE_STORE says it: in argiope-jobs.db of this folder; where that is
// not there, with the daemon of this machine, if one answers. Standard error says which of them it is, the first time.
// Errors: invalid_input: there is neither; it names both ways out.
Result<std::string> usual_store();
// The same, without a daemon. Empty: there is none.
std::string usual_store_file();

// Lifetime: `backend` is the loop's, and outlives it. Destroy it when no call is under way.
class DaemonStore {
 public:
  DaemonStore(const DaemonAddress& address, AsioBackend& backend);
  DaemonStore(const DaemonStore&) = delete;

  ApiClient& client() noexcept { return client_; }

 private:
  const AddressGuard guard_{true};  // whom the user names may be reached, wherever that is
  CaresResolver resolver_;
  HttpClient http_;
  ApiClient client_;
};

// Runs `act` on a loop of its own. Its value is the exit status, an error is said.
using DaemonAction = std::function<Coro<Result<int>>(ApiClient& client)>;
int run_on_daemon(const std::string& where, const DaemonAction& act);

}  // namespace argiope
