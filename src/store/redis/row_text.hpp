// RowText: the fields of a row as one text, one behind the other, as a server keeps it: numbers in digits, texts behind
// their lengths ("4:mail"), times in milliseconds since 1970. It can be read with any client of the server.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "jobs/internal/job_row.hpp"
#include "jobs/internal/stored_time.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

// Structures say which fields they have: fields(io), or fields_of(io, structure).
// Errors: reading throws DatabaseFailed (corrupt) for a text that was not written so.
template <bool kWrites>
class RowText {
 public:
  RowText() = default;
  // Read from; must live as long.
  explicit RowText(std::string_view text) noexcept : rest_(text) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (field(fields), ...);
  }
  std::string take() { return std::move(text_); }
  bool at_end() const noexcept { return rest_.empty(); }

 private:
  [[noreturn]] static void damaged() { throw DatabaseFailed{{Errc::corrupt, "redis: a row is damaged"}}; }

  template <class Number>
  void number(Number& value, char end) {
    if constexpr (kWrites) {
      char digits[24];
      const auto written = std::to_chars(std::begin(digits), std::end(digits), value);
      text_.append(digits, written.ptr);
      text_ += end;
    } else {
      const char* const last = rest_.data() + rest_.size();
      const auto read = std::from_chars(rest_.data(), last, value);
      if (read.ec != std::errc{} || read.ptr == last || *read.ptr != end) damaged();
      rest_.remove_prefix(static_cast<std::size_t>(read.ptr - rest_.data()) + 1);
    }
  }
  template <class Field>
  void field(Field& value) {
    if constexpr (std::is_same_v<Field, bool> || std::is_enum_v<Field>) {
      auto as_number = static_cast<std::uint32_t>(value);
      number(as_number, ' ');
      value = static_cast<Field>(as_number);
    } else if constexpr (std::is_integral_v<Field>) {
      number(value, ' ');
    } else if constexpr (std::is_same_v<Field, WallTime>) {
      auto ms = stored_time::to_ms(value);
      number(ms, ' ');
      if constexpr (!kWrites) value = stored_time::from_ms(ms);
    } else if constexpr (std::is_same_v<Field, std::string>) {
      std::size_t size = value.size();
      number(size, ':');
      if constexpr (kWrites) {
        text_ += value;
        text_ += ' ';
      } else {
        if (rest_.size() <= size || rest_[size] != ' ') damaged();
        value.assign(rest_.substr(0, size));
        rest_.remove_prefix(size + 1);
      }
    } else if constexpr (requires { value.fields(*this); }) {
      value.fields(*this);
    } else {
      fields_of(*this, value);
    }
  }

  std::string text_;
  std::string_view rest_;
};

void fields_of(auto& io, Attempt& attempt) {
  io(attempt.number, attempt.ended_at, attempt.outcome, attempt.error, attempt.worker);
}
// Where it stands; its texts are a row of their own.
void fields_of(auto& io, StoredSchedule& stored) {
  SchedulePlace& place = stored.place;
  io(stored.version, place.next, place.last, place.fired, place.missed, place.entries, place.paused, stored.active);
}
void fields_of(auto& io, ScheduleRun& run) {
  io(run.number, run.planned, run.last_planned, run.count, run.fired_at, run.ended_at, run.outcome, run.job, run.error);
}
void fields_of(auto& io, ScheduleOutput& output) {
  io(output.run, output.job, output.ended_at, output.outcome, output.error, output.output);
}

template <class... Values>
std::string row_text(Values... values) {
  RowText<true> io;
  io(values...);
  return io.take();
}

}  // namespace argiope
