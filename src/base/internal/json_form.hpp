// Reading the members of a JSON object strictly: what is unknown, of the wrong type or out of range is named. Whoever
// includes it links Boost::json.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "base/internal/field_error.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/printable.hpp"

namespace argiope::detail {

inline constexpr std::size_t kMostJsonDepth = 64;

// The object that `text` is. `what` is for the message.
inline Result<boost::json::object> read_object(std::string_view what, std::string_view text, std::size_t most_bytes) {
  if (text.size() > most_bytes) {
    return fail(Errc::invalid_input, fmt::format("a {} of {} bytes: at most {}", what, text.size(), most_bytes));
  }
  boost::system::error_code error;
  boost::json::parse_options limits;
  limits.max_depth = kMostJsonDepth;
  boost::json::value form = boost::json::parse(text, error, {}, limits);
  if (error || !form.is_object()) {
    return fail(Errc::invalid_input, fmt::format("{} {}: no JSON object ({})", what, in_quotes(text),
                                                 error ? error.message() : "another value"));
  }
  return std::move(form.as_object());
}

// Where in a form an error is.
using MemberPath = JsonPath;
inline MemberPath below(std::string_view name, MemberPath path) {
  path.emplace(path.begin(), std::string(name));
  return path;
}

// Reads members and keeps the first error; whatever it gives after one is not used.
class Reader {
 public:
  explicit Reader(const boost::json::object& form) : form_(form) {}

  bool has(std::string_view name) const { return form_.contains(name); }
  std::string text(std::string_view name, std::string_view usual = {}) {
    const boost::json::value* value = find(name);
    if (value == nullptr) return std::string(usual);
    if (!value->is_string()) complain(name, boost::json::serialize(*value), "a string");
    return value->is_string() ? std::string(value->as_string()) : std::string();
  }
  std::int64_t number(std::string_view name, std::int64_t most, std::int64_t least = 0, std::int64_t usual = 0) {
    const boost::json::value* value = find(name);
    if (value == nullptr) return usual;
    boost::system::error_code error;
    const bool is_whole = value->is_int64() || value->is_uint64();
    const auto whole = is_whole ? value->to_number<std::int64_t>(error) : 0;
    if (is_whole && !error && whole >= least && whole <= most) return whole;
    complain(name, boost::json::serialize(*value), fmt::format("a whole number, {} to {}", least, most));
    return usual;
  }
  bool flag(std::string_view name, bool usual) {
    const boost::json::value* value = find(name);
    if (value == nullptr) return usual;
    if (!value->is_bool()) complain(name, boost::json::serialize(*value), "true or false");
    return value->is_bool() && value->as_bool();
  }
  // What `parse` makes of a string member; where a span of time is wanted, of a number, too.
  template <class Value, class Parse>
  void parsed(std::string_view name, Value& out, Parse parse) {
    if (!has(name)) return;
    constexpr bool kIsSpan = std::is_same_v<Value, Duration> || std::is_same_v<Value, std::optional<Duration>>;
    const boost::json::value* given = find(name);
    const auto value = parse(kIsSpan && given->is_number() ? boost::json::serialize(*given) : text(name));
    if (value) {
      out = *value;
    } else if (!error_) {
      error_ = value.error();
      path_ = {{std::string(name)}};
    }
  }
  template <class Value, std::size_t N>
  void choice(std::string_view name, Value& out, const std::string_view (&names)[N]) {
    if (!has(name)) return;
    const std::string given = text(name);
    for (std::size_t i = 0; i < N; ++i) {
      if (names[i] == given) return void(out = static_cast<Value>(i));
    }
    complain(name, given, fmt::format("{}", fmt::join(names, ", ")));
  }
  const boost::json::value* find(std::string_view name) {
    known_.emplace_back(name);
    return form_.if_contains(name);
  }
  void complain(std::string_view name, std::string_view given, std::string_view why) {
    if (error_) return;
    error_ = bad_field(name, given, why).error();
    path_ = {{std::string(name)}};
  }
  // The first error, or a member that nobody has asked for, of which `why` says what is wrong.
  std::optional<Error> finish(std::string_view why) {
    if (error_) return error_;
    for (const auto& member : form_) {
      if (std::ranges::find(known_, std::string_view(member.key())) == known_.end()) {
        path_ = {{std::string(member.key())}};
        return bad_field("member", member.key(), why).error();
      }
    }
    return std::nullopt;
  }

  // Of what finish() has given.
  const MemberPath& path() const noexcept { return path_; }

 private:
  const boost::json::object& form_;
  MemberPath path_;
  std::optional<Error> error_;
  std::vector<std::string> known_;
};

}  // namespace argiope::detail
