// PostgresLink: a connection to a server of PostgreSQL, made when it is asked for and within a time. How to connect,
// what a failure is called, and that no password is told, is here for all who use libpq.
#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/base/error.hpp"
#include "store/jobs/internal/server_wait.hpp"

namespace argiope {

struct ClearPostgresResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PostgresResult = std::unique_ptr<PGresult, ClearPostgresResult>;

struct FreePostgresOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using PostgresOptions = std::unique_ptr<PQconninfoOption, FreePostgresOptions>;
// Null: it is no URL, and no other text for libpq. Why, nobody is told: libpq's words may repeat all of it.
PostgresOptions parse_postgres_options(const std::string& connection);

// What libpq has said, on one line; where it has said nothing: that the connection was lost.
std::string postgres_words(const char* said);

// Its functions block, as long as `wait` has it. Names of hosts are looked up besides, as long as the system's resolver
// takes.
//
// Threads: one at a time, but give_up(), which any may call: what is under way ends with an error, and all that follows
//          does.
class PostgresLink {
 public:
  enum class Server : std::uint8_t {
    any,
    writable,  // one that is no standby and not read-only, unless the connection says otherwise
  };
  // `connection`: a URL, or as libpq's conninfo. Of several hosts each is asked in turn, for connect_timeout, which is
  // 5 s where it is not said, and no longer than its part of what is left of the wait. `wait`: lives longer.
  PostgresLink(std::string connection, Server wanted, ServerWait& wait)
      : connection_(std::move(connection)), wanted_(wanted), wait_(wait) {}
  ~PostgresLink() { disconnect(); }
  PostgresLink(const PostgresLink&) = delete;

  // `password`: instead of the connection's own; empty: that. Errors: network, with libpq's words.
  Result<void> connect(const std::string& password = {});
  void disconnect() noexcept;
  void give_up() noexcept;
  bool has_given_up() const noexcept { return has_given_up_; }
  PGconn* get() const noexcept { return postgres_; }  // null: not connected
  // What is said from now on has the wait's time from now on.
  void begin_wait() noexcept { wait_.begin(); }
  // Waits for the server, and sends what is still to be sent. False: the connection is lost, or was given up; or
  // nothing came in time.
  bool await_input();
  // Waits until all is sent, and hears meanwhile. False: as above.
  bool send_all();

 private:
  Result<void> connect_to(const std::map<std::string, std::string>& host, const Alarm* sooner);
  Result<void> await_connection(const Alarm* sooner);
  bool await(int events);

  const std::string connection_;
  const Server wanted_;
  ServerWait& wait_;
  std::atomic<bool> has_given_up_ = false;
  PGconn* postgres_ = nullptr;
  std::mutex mutex_;  // of `socket_`
  int socket_ = -1;   // the connection's, by a descriptor of our own: libpq may close its own at any moment
};

}  // namespace argiope
