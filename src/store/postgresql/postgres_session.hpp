// PostgresSession: statements that are sent to a server together, and answered together (libpq's pipeline mode). What
// one of them does not like undoes them all.
//
// Numbers are bigint, texts bytea, both in binary: no text of ours is ever a statement's or a character set's business.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "store/postgresql/internal/postgres_link.hpp"

namespace argiope {

// The connection is gone; nobody knows what has become of what was sent and not answered.
struct PostgresLost {
  std::string why;
};
// The server has refused a statement, and with it all that were sent since the answer before.
struct PostgresRefused {
  std::string code;  // SQLSTATE
  std::string why;
};

// One column of several rows.
class PostgresColumn {
 public:
  void add(std::string_view bytes);
  template <class Number>
  requires(std::is_integral_v<Number> || std::is_enum_v<Number>) void add(Number number) {
    add_number(static_cast<std::int64_t>(number));
  }
  bool empty() const noexcept { return count_ == 0; }
  std::size_t bytes() const noexcept { return values_.size(); }
  std::string array() const;

 private:
  void add_number(std::int64_t number);
  std::string values_;
  std::uint32_t count_ = 0;
  bool is_numbers_ = true;
};

// The parameters of a statement, by their numbers.
class PostgresValues {
 public:
  template <class... Values>
  explicit PostgresValues(const Values&... values) {
    (add(values), ...);
  }
  const std::vector<std::string>& all() const noexcept { return values_; }
  std::size_t bytes() const noexcept;

 private:
  void add(std::string_view bytes) { values_.emplace_back(bytes); }
  void add(const PostgresColumn& column) { values_.push_back(column.array()); }
  template <std::size_t kCount>
  void add(const std::array<PostgresColumn, kCount>& columns) {
    for (const PostgresColumn& column : columns) add(column);
  }
  template <class Number>
  requires(std::is_integral_v<Number> || std::is_enum_v<Number>) void add(Number number) {
    add_number(static_cast<std::int64_t>(number));
  }
  void add_number(std::int64_t number);
  std::vector<std::string> values_;
};

class PostgresRows {
 public:
  explicit PostgresRows(PostgresResult result) noexcept : result_(std::move(result)) {}
  int size() const { return PQntuples(result_.get()); }
  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  std::int64_t number(int row, int column) const;  // NULL: 0
  std::string_view text(int row, int column) const {
    return {PQgetvalue(result_.get(), row, column), static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
  }

 private:
  PostgresResult result_;
};

// Whatever fails throws PostgresLost, after which it is not connected any more, or PostgresRefused.
//
// Threads: as PostgresLink.
class PostgresSession {
 public:
  // `wait`: lives longer.
  PostgresSession(std::string connection, PostgresLink::Server wanted, ServerWait& wait)
      : link_(std::move(connection), wanted, wait) {}

  // Errors: as PostgresLink's.
  Result<void> connect();
  bool is_connected() const noexcept { return link_.get() != nullptr; }
  void disconnect() noexcept;

  // To be answered with the next sync(). A statement that comes often is prepared once.
  void send(const std::string& statement, const PostgresValues& values = PostgresValues());
  // The answers of all that was sent, in order.
  std::vector<PostgresRows> sync();
  // Outside of a pipeline: several statements without parameters, in one transaction.
  void run(const std::string& statements);
  bool is_in_transaction() const noexcept;
  bool is_in_failed_transaction() const noexcept;
  // Whether somebody has notified since it was asked last. Never waits.
  bool was_notified();

 private:
  [[noreturn]] void lost();
  PostgresResult next();

  PostgresLink link_;
  std::map<std::string, std::string, std::less<>> prepared_;  // their names
  std::vector<bool> sent_;                                    // each: whether it prepares
};

}  // namespace argiope
