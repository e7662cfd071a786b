// Writing JSON without a tree: values go, as they come, to the end of a string of the caller's.
//
//   const std::string line = json_object([&](JsonWriter& json) {
//     json.member("id", job.id);
//     json.member("queue", job.queue);
//     json.object("retry", [&] { json.member("max_attempts", 3); });
//     json.list("waits_for", job.waits_for);
//   });
//
// Commas, quotes and brackets are the writer's business; that a name stands once in an object is the caller's.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "argiope/base/clock.hpp"

namespace argiope {

// How control characters are written that have a letter: \u000a, or \n. Jobs and reports of crawls have numbers; what
// stores keep of schedules and what is told of them has letters.
enum class JsonEscapes : std::uint8_t { numbers, letters };

// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so the result is always
// valid.
void append_json_string(std::string& out, std::string_view text, JsonEscapes escapes = JsonEscapes::numbers);

// Appends one JSON value to a string, which may hold anything before it and has to live as long as the writer.
//
// Cost:    no allocation but for the string's growth: a caller that clears one string and uses it again has none.
// Threads: one at a time.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out, JsonEscapes escapes = JsonEscapes::numbers) noexcept
      : out_(out), begin_(out.size()), escapes_(escapes) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  // --- values: the whole one, the next of an array, or after key() that of a member

  // Text, with U+FFFD for what is not UTF-8. true and false. Whole numbers. Other numbers as short as they can be and
  // still be read as the same; null for those that are not finite. Times in UTC as RFC 3339, null for 1970's first
  // instant, which stands for "never". An optional: its value, or null.
  template <class T>
  void value(const T& value);
  void null();
  // So many digits after the point.
  void fixed(double number, int digits);
  // As short as it can be, too, but 5.0 and not 5: readers who tell kinds of numbers apart never take it for a whole
  // one.
  void real(double number);
  // A value that is JSON already, in one line.
  void raw(std::string_view json);

  // --- objects and arrays; `body` writes what is inside

  template <std::invocable Body>
  void object(Body&& body) {
    open('{');
    body();
    out_ += '}';
  }
  template <std::invocable Body>
  void array(Body&& body) {
    open('[');
    body();
    out_ += ']';
  }

  // --- members of an object

  // The name; its value comes next.
  void key(std::string_view name);
  template <class T>
  void member(std::string_view name, const T& value) {
    key(name);
    this->value(value);
  }
  template <std::invocable Body>
  void object(std::string_view name, Body&& body) {
    key(name);
    object(body);
  }
  template <std::invocable Body>
  void array(std::string_view name, Body&& body) {
    key(name);
    array(body);
  }
  // An array of the values of `range`.
  template <class Range>
  void list(std::string_view name, const Range& range) {
    array(name, [&] {
      for (const auto& entry : range) value(entry);
    });
  }
  // Bytes as text; where they are not UTF-8, they follow unharmed as base64 in a member NAME_base64.
  void bytes(std::string_view name, std::string_view bytes);

 private:
  void open(char bracket) {
    separate();
    out_ += bracket;
  }
  // A comma, except at the beginning, after a bracket and after a key. The last character tells: a string ends with a
  // quote.
  void separate() {
    if (out_.size() == begin_) return;
    const char last = out_.back();
    if (last != '{' && last != '[' && last != ':') out_ += ',';
  }
  void text(std::string_view text);
  void flag(bool flag);
  void integer(std::int64_t number);
  void natural(std::uint64_t number);
  void number(double number);
  void time(WallTime time);

  std::string& out_;
  const std::size_t begin_;
  const JsonEscapes escapes_;
};

template <class T>
void JsonWriter::value(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    flag(value);
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    integer(value);
  } else if constexpr (std::is_integral_v<T>) {
    natural(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    number(value);
  } else if constexpr (std::is_same_v<T, WallTime>) {
    time(value);
  } else if constexpr (requires { value.has_value(); }) {
    value.has_value() ? this->value(*value) : null();
  } else {
    text(std::string_view(value));
  }
}

// The object whose members `body` writes, as `body(JsonWriter&)`.
template <class Body>
std::string json_object(Body&& body, JsonEscapes escapes = JsonEscapes::numbers) {
  std::string out;
  JsonWriter json(out, escapes);
  json.object([&] { body(json); });
  return out;
}

}  // namespace argiope
