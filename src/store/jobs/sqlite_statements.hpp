// SqliteStatements: the statements of a file of jobs on its one connection, and rows that wait to be written together:
// before the next statement of another kind, whatever it is.
//
// A statement that fails throws DatabaseFailed, so that nothing goes on after it; GroupCommit catches.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "store/jobs/gathered_rows.hpp"
#include "store/jobs/sqlite_queries.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

class SqliteUse;

class SqliteStatements {
 public:
  // Of the connection that `database` has when they are used, which must outlive them.
  explicit SqliteStatements(SqliteDatabase& database) noexcept : database_(database) {}
  SqliteStatements(const SqliteStatements&) = delete;

  SqliteUse use(Query query);
  // One that is used once.
  SqliteStatement prepare(const std::string& sql);
  void execute(const char* sql);
  // Whether the last statement has changed a row.
  bool has_changed() const noexcept { return sqlite3_changes(database_.handle()) > 0; }
  [[noreturn]] void failed(int code) const;
  std::optional<std::int64_t> meta(std::string_view name);
  void set_meta(std::string_view name, std::int64_t value);

  void gather(const JobRow& row, const NewJob& job, WallTime now);
  void gather_done(JobId id);
  void gather_kept(const GatheredRows::Kept& job);
  void flush() {
    if (has_gathered_) write_gathered();
  }
  void drop_gathered() noexcept;
  // Ends the uses that there are.
  void reset() noexcept;

 private:
  void forestall(JobId id);
  void write_gathered();
  void insert_gathered();
  void delete_gathered();
  void keep_gathered();

  SqliteDatabase& database_;
  std::array<SqliteStatement, kQueries> statements_;
  GatheredRows gathered_;
  bool has_gathered_ = false;
};

// One use of a prepared statement: bind in order, step, and it is reset at the end.
class SqliteUse {
 public:
  SqliteUse(const SqliteStatements& all, SqliteStatement& statement) noexcept : all_(all), statement_(statement) {}
  SqliteUse(const SqliteUse&) = delete;
  SqliteUse& operator=(const SqliteUse&) = delete;
  ~SqliteUse() { statement_.reset(); }

  // Binds the next parameters; texts must outlive the use.
  template <class... Values>
  SqliteUse& with(const Values&... values) {
    (bind(values), ...);
    return *this;
  }
  // NULL for 0 or an empty text.
  template <class... Values>
  SqliteUse& with_or_null(const Values&... values) {
    (bind_or_null(values), ...);
    return *this;
  }

  // True while there is a row.
  bool next() {
    const int code = statement_.step();
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) all_.failed(code);
    return false;
  }
  void run() {
    while (next()) {
    }
  }
  const SqliteStatement& row() const noexcept { return statement_; }
  std::int64_t number(int column) const noexcept { return statement_.number(column); }
  std::string_view text(int column) const noexcept { return statement_.text(column); }

 private:
  template <class T>
  void bind(const T& value) {
    if constexpr (std::is_convertible_v<T, std::string_view>) {
      statement_.bind(++index_, std::string_view{value});
    } else {
      statement_.bind(++index_, static_cast<std::int64_t>(value));
    }
  }
  template <class T>
  void bind_or_null(const T& value) {
    if constexpr (std::is_convertible_v<T, std::string_view>) {
      statement_.bind_or_null(++index_, std::string_view{value});
    } else {
      statement_.bind_or_null(++index_, static_cast<std::int64_t>(value));
    }
  }

  const SqliteStatements& all_;
  SqliteStatement& statement_;
  int index_ = 0;
};

inline SqliteUse SqliteStatements::use(Query query) {
  flush();
  SqliteStatement& statement = statements_[static_cast<std::size_t>(query)];
  if (!statement) [[unlikely]] {
    auto prepared = database_.prepare(text_of(query));
    if (!prepared) throw DatabaseFailed{std::move(prepared.error())};
    statement = std::move(*prepared);
  }
  return SqliteUse(*this, statement);
}

}  // namespace argiope
