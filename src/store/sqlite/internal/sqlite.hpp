// SQLite's C interface with owners for its handles and Errors for its codes. No policy of any store.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

// Thrown where a statement that fails must let nothing go on after it.
struct DatabaseFailed {
  Error error;
};

class SqliteStatement {
 public:
  SqliteStatement() = default;
  explicit SqliteStatement(sqlite3_stmt* statement) noexcept : statement_(statement) {}

  // Bound text must live until the next reset(). To SQLite a null pointer is NULL and no empty text.
  void bind(int index, std::string_view text) noexcept {
    sqlite3_bind_text(get(), index, text.data() == nullptr ? "" : text.data(), static_cast<int>(text.size()),
                      SQLITE_STATIC);
  }
  // NULL instead of an empty text.
  void bind_or_null(int index, std::string_view text) noexcept {
    if (text.empty()) {
      sqlite3_bind_null(get(), index);
    } else {
      bind(index, text);
    }
  }
  // A blob; lives as long as bound text must.
  void bind_bytes(int index, std::string_view bytes) noexcept {
    sqlite3_bind_blob64(get(), index, bytes.data() == nullptr ? "" : bytes.data(), bytes.size(), SQLITE_STATIC);
  }
  void bind_null(int index) noexcept { sqlite3_bind_null(get(), index); }
  void bind(int index, std::int64_t number) noexcept { sqlite3_bind_int64(get(), index, number); }
  void bind_or_null(int index, std::int64_t number) noexcept {
    if (number == 0) {
      sqlite3_bind_null(get(), index);
    } else {
      bind(index, number);
    }
  }
  void bind_real(int index, double number) noexcept { sqlite3_bind_double(get(), index, number); }
  explicit operator bool() const noexcept { return statement_ != nullptr; }
  int step() noexcept { return sqlite3_step(get()); }
  void reset() noexcept { sqlite3_reset(get()); }

  int columns() const noexcept { return sqlite3_column_count(get()); }
  bool is_null(int column) const noexcept { return sqlite3_column_type(get(), column) == SQLITE_NULL; }
  std::int64_t number(int column) const noexcept { return sqlite3_column_int64(get(), column); }
  double real(int column) const noexcept { return sqlite3_column_double(get(), column); }
  // Of a text or a blob, until the next step; quicker than text(), which puts a NUL behind it.
  std::string_view bytes(int column) const noexcept {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(get(), column));
    return bytes == nullptr ? std::string_view{}
                            : std::string_view(bytes, static_cast<std::size_t>(sqlite3_column_bytes(get(), column)));
  }
  std::string_view text(int column) const noexcept {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(get(), column));
    return bytes == nullptr ? std::string_view{}
                            : std::string_view(bytes, static_cast<std::size_t>(sqlite3_column_bytes(get(), column)));
  }

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  sqlite3_stmt* get() const noexcept { return statement_.get(); }
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

class SqliteDatabase {
 public:
  SqliteDatabase() = default;
  // `flags` are SQLITE_OPEN_…; every error names the file.
  static Result<SqliteDatabase> open(const std::string& path, int flags);

  Result<void> execute(const char* sql);
  Result<SqliteStatement> prepare(std::string_view sql);
  // Several, each into its place; up to the first that fails. `statements`: pairs of SqliteStatement& and text.
  Result<void> prepare_each(const auto& statements) {
    for (const auto& [statement, sql] : statements) {
      auto prepared = prepare(sql);
      if (!prepared) return std::unexpected(std::move(prepared.error()));
      statement = std::move(*prepared);
    }
    return {};
  }
  // The single number a query gives.
  Result<std::int64_t> query_number(const char* sql);
  // The meaning of `code` for this file, in words.
  Error error(int code) const;
  sqlite3* handle() const noexcept { return handle_.get(); }

 private:
  struct Closer {
    void operator()(sqlite3* handle) const noexcept { sqlite3_close_v2(handle); }
  };
  std::unique_ptr<sqlite3, Closer> handle_;
  std::string path_;
};

}  // namespace argiope
