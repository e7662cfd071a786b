// One use of a prepared statement: bind in order, step, and it is reset at the end.
#pragma once

#include "jobs/internal/job_rules.hpp"
#include "store/jobs/sqlite_jobs.hpp"

namespace argiope {

class SqliteJobs::Use {
 public:
  Use(SqliteJobs& jobs, SqliteStatement& statement) noexcept : jobs_(jobs), statement_(statement) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() { statement_.reset(); }

  // Binds the next parameters; texts must outlive the use.
  template <class... Values>
  Use& with(const Values&... values) {
    (bind(values), ...);
    return *this;
  }
  // NULL for 0 or an empty text.
  template <class... Values>
  Use& with_or_null(const Values&... values) {
    (bind_or_null(values), ...);
    return *this;
  }

  // True while there is a row.
  bool next() {
    const int code = statement_.step();
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) jobs_.failed(code);
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

  SqliteJobs& jobs_;
  SqliteStatement& statement_;
  int index_ = 0;
};

inline SqliteJobs::Use SqliteJobs::use(Query query) {
  if (has_gathered_) write_gathered();
  SqliteStatement& statement = statements_[static_cast<std::size_t>(query)];
  if (!statement) [[unlikely]] {
    auto prepared = database_.prepare(text_of(query));
    if (!prepared) throw DatabaseFailed{std::move(prepared.error())};
    statement = std::move(*prepared);
  }
  return Use(*this, statement);
}

}  // namespace argiope
