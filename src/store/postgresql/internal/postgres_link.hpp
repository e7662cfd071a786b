// PostgresLink: a connection to a server of PostgreSQL, made when it is asked for and within a time. How to connect,
// what a failure is called, and that no password is told, is here for all who use libpq.
#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

struct ClearPostgresResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PostgresResult = std::unique_ptr<PGresult, ClearPostgresResult>;

// What libpq has said, on one line; where it has said nothing: that the connection was lost.
std::string postgres_words(const char* said);

// Its functions block.
//
// Threads: one at a time, but give_up(), which any may call: what is under way ends with an error, and all that follows
//          does.
class PostgresLink {
 public:
  // `connection`: a URL, or as libpq's conninfo. What is said to the server or heard from it takes at most `limit`.
  PostgresLink(std::string connection, Duration limit) : connection_(std::move(connection)), limit_(limit) {}
  ~PostgresLink() { disconnect(); }
  PostgresLink(const PostgresLink&) = delete;

  // `password`: instead of the connection's own; empty: that. Errors: network, with libpq's words.
  Result<void> connect(const std::string& password = {});
  void disconnect() noexcept;
  void give_up() noexcept;
  bool has_given_up() const noexcept { return has_given_up_; }
  PGconn* get() const noexcept { return postgres_; }  // null: not connected
  Duration limit() const noexcept { return limit_; }
  // Waits for the server, and sends what is still to be sent. False: the connection is lost, or was given up; or
  // nothing came in time.
  bool await_input();

 private:
  Result<void> await_connection();

  const std::string connection_;
  const Duration limit_;
  std::atomic<bool> has_given_up_ = false;
  PGconn* postgres_ = nullptr;
  std::mutex mutex_;  // of `socket_`
  int socket_ = -1;   // the connection's, by a descriptor of our own: libpq may close its own at any moment
};

}  // namespace argiope
