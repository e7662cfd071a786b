// ServeOptions: what `[serve]` of a configuration says, and what the daemon does where nothing is said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/web/detail/tls.hpp"
#include "base/internal/json_reader.hpp"
#include "serve/base/internal/usual_daemon.hpp"

namespace argiope {

inline constexpr std::uint16_t kBeanstalkdPort = 11300;

struct ListenAddress {
  std::string host;  // a name or an address; empty: all of this machine
  std::uint16_t port = 0;
  std::string unix_path;  // instead of both

  bool is_unix() const noexcept { return !unix_path.empty(); }
  // Nobody but this machine reaches it.
  bool is_local() const noexcept;
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};
// "127.0.0.1:7733", "[::1]:7733", "localhost", ":80" (every address of this machine), "unix:/run/argiope.sock".
// Errors: invalid_input.
Result<ListenAddress> parse_listen_address(std::string_view text, std::uint16_t usual_port);
std::string to_string(const ListenAddress& address);

// The policy of queues that a put makes: what is done can be asked about for a day, what was cancelled for a week.
QueueConfig default_new_queue();

struct ServeOptions {
  std::string store = "sqlite:" + std::string(kUsualJobs);
  std::vector<ListenAddress> http{{"127.0.0.1", kHttpPort, {}}};
  std::vector<ListenAddress> beanstalkd;  // none: not spoken
  std::size_t beanstalkd_max_job_bytes = 65'535;
  std::string token_file;            // empty: none; everyone who reaches the daemon may do everything
  std::vector<std::string> hosts;    // by which it may be asked for, besides loopback's
  std::vector<std::string> origins;  // whose pages may read and change something, besides its own
  TlsFiles tls;                      // empty: clients speak plain HTTP
  bool tls_for_beanstalkd = false;   // its clients speak TLS, too
  bool insecure = false;             // listen beyond this machine without TLS, which a proxy speaks
  bool allow_private = false;        // requests of schedules and queues may connect to private addresses
  bool create_queues = true;         // false: a put into a queue that is not there, or a lease of it, is an error
  QueueConfig new_queue = default_new_queue();      // the policy of those
  std::size_t max_connections = 10'000;             // HTTP: of each address
  std::size_t beanstalkd_max_connections = 10'000;  // of each address, too
  std::size_t max_body_bytes = 16 * 1024 * 1024;
  std::size_t max_batch_bytes = 64 * 1024 * 1024;    // of requests that may say much: POST /v1/jobs and its like
  std::size_t max_bodies_bytes = 512 * 1024 * 1024;  // of all requests that are under way
  std::size_t max_answers_bytes = 64 * 1024 * 1024;  // of all answers that wait for their clients to take them
  std::size_t max_queues = 10'000;                   // that puts and requests may make
  std::size_t max_streams = 256;                     // GET /v1/events
  Duration drain_limit = std::chrono::seconds{10};   // how long jobs and requests may go on after SIGTERM
  // The database of projects. Empty: there are none.
  std::string pages;
  std::optional<std::string> audit;  // the file of /v1/audit; none: beside the store
  Duration keep_audit = std::chrono::days{90};

  // Empty: who changed what ends with the process, as the store does.
  std::string audit_file() const;
  // The file of counts, for plots; empty: in memory alone.
  std::string history_file() const { return beside_store("-history.jsonl"); }
  // Of whom trouble has been told; empty: in memory alone.
  std::string notify_file() const { return beside_store("-notify.jsonl"); }

 private:
  std::string beside_store(std::string_view ending) const;
};

// Members that are missing keep their values. Mistakes go to the errors of `table`.
void read_serve_options(const JsonValue& table, ServeOptions& options);
// Whether the whole may be: beyond loopback only with tokens, and with TLS or `insecure`.
// Errors: invalid_input.
Result<void> check(const ServeOptions& options);
// The same of one address that HTTP, or the beanstalkd protocol, is spoken at.
Result<void> check_http_address(const ListenAddress& address, const ServeOptions& options);
Result<void> check_beanstalkd_address(const ListenAddress& address, const ServeOptions& options);
// At how many addresses each is spoken.
struct SpokenAt {
  std::size_t http = 0, beanstalkd = 0;
};
// Lowers the limits of connections where the process may have fewer descriptors than all of them would take, so that
// neither protocol takes those of the other, and some are left for files and commands. `descriptors`: 0: there is no
// limit. Whether it did.
bool fit_connections(ServeOptions& options, SpokenAt spoken, std::size_t descriptors);
// The differing options that are taken when the daemon starts, not while it runs: by their names in `[serve]`.
std::vector<std::string_view> taken_at_start(const ServeOptions& now, const ServeOptions& asked);

}  // namespace argiope
