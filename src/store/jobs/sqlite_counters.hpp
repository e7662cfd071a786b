// SqliteCounters: the numbers that a file of jobs has given, as the present transaction leaves them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "store/jobs/sqlite_statements.hpp"

namespace argiope {

class SqliteCounters {
 public:
  explicit SqliteCounters(SqliteStatements& sql) : sql_(sql) {}

  JobCounters& now() noexcept { return now_; }
  void give_token(std::uint64_t token) noexcept {
    now_.last_token = token;
    note_token();
  }
  // No lease has had a greater one; from any thread, and for longer than this lives.
  std::shared_ptr<const std::atomic<std::uint64_t>> most_token() const noexcept { return most_token_; }
  // Tokens go on from the last one, though there have been greater ones.
  void go_on_from_last() noexcept { *most_token_ = now_.last_token; }

  // As they are in the file. Only an owner gives tokens, and may have refused some that were never written.
  void load(bool owns) {
    const auto stored = [&](std::string_view name) { return static_cast<std::uint64_t>(sql_.meta(name).value_or(0)); };
    const std::uint64_t token_before = now_.last_token;
    stored_ = {
        .last_id = stored("last_id"), .last_chosen_id = stored("last_chosen_id"), .last_token = stored("last_token")};
    now_ = stored_;
    if (owns) now_.last_token = std::max(now_.last_token, token_before);
    note_token();
  }
  void mark() noexcept { marked_ = now_; }
  void take_back() noexcept { now_ = marked_; }
  void flush() {
    const auto set = [&](std::string_view name, std::uint64_t now, std::uint64_t before) {
      if (now != before) sql_.set_meta(name, static_cast<std::int64_t>(now));
    };
    set("last_id", now_.last_id, stored_.last_id);
    set("last_chosen_id", now_.last_chosen_id, stored_.last_chosen_id);
    set("last_token", now_.last_token, stored_.last_token);
    stored_ = now_;
  }
  void drop() noexcept { now_.last_token = 0; }

 private:
  void note_token() noexcept {
    if (now_.last_token > *most_token_) *most_token_ = now_.last_token;
  }

  SqliteStatements& sql_;
  JobCounters now_, stored_, marked_;
  const std::shared_ptr<std::atomic<std::uint64_t>> most_token_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace argiope
