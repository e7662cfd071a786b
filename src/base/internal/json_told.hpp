// Reading what another process of ours has told in JSON: types are checked, a member that is missing or null leaves
// what is there as it is, and one that is not known is passed over, because a newer process tells more.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/base/clock.hpp"
#include "base/internal/base64.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/rfc3339.hpp"

namespace argiope {

// Mistakes go to the errors of the object.
//
// Lifetime: the object's value outlives it.
class ToldMembers {
 public:
  explicit ToldMembers(const JsonValue& object) : in_(object) {
    if (!object.is_object()) object.wrong("an object");
  }

  // Null where it is missing or null.
  const JsonValue* find(std::string_view name) {
    const JsonValue* const value = in_.find(name);
    return value == nullptr || is_null(*value) ? nullptr : value;
  }

  void read(std::string_view name, std::string& into) {
    const JsonValue* const value = find(name);
    if (value == nullptr) return;
    const auto text = value->if_text();
    text ? void(into = *text) : value->wrong("a string");
  }
  void read(std::string_view name, bool& into) {
    if (const JsonValue* value = find(name)) into = value->flag();
  }
  void read(std::string_view name, double& into) {
    const JsonValue* const value = find(name);
    if (value == nullptr) return;
    const auto number = value->if_number();
    number ? void(into = *number) : value->wrong("a number");
  }
  template <std::integral Number>
  void read(std::string_view name, Number& into) {
    constexpr auto kMost = std::numeric_limits<Number>::max();
    constexpr auto kMostRead = std::in_range<std::int64_t>(kMost) ? static_cast<std::int64_t>(kMost)
                                                                  : std::numeric_limits<std::int64_t>::max();
    constexpr auto kLeast = static_cast<std::int64_t>(std::numeric_limits<Number>::min());
    if (const JsonValue* value = find(name)) into = static_cast<Number>(value->whole(kLeast, kMostRead));
  }
  void read(std::string_view name, WallTime& into) {
    const JsonValue* const value = find(name);
    if (value == nullptr) return;
    const auto text = value->if_text();
    const auto time = text ? parse_rfc3339(*text) : std::nullopt;
    time ? void(into = *time) : value->wrong("a time");
  }
  template <class Value>
  void read(std::string_view name, std::optional<Value>& into) {
    if (find(name) != nullptr) read(name, into.emplace());
  }
  // A span in a member that ends in _ms.
  void read_ms(std::string_view name, Duration& into) {
    constexpr std::int64_t kMostMs = std::numeric_limits<Duration::rep>::max() / 1'000'000;
    if (const JsonValue* value = find(name)) into = std::chrono::milliseconds{value->whole(0, kMostMs)};
  }
  // As JsonWriter::bytes() has written them.
  void read_bytes(const std::string& name, std::string& into) {
    const JsonValue* const coded = find(name + "_base64");
    if (coded == nullptr) return read(name, into);
    const auto text = coded->if_text();
    auto bytes = text ? from_base64(*text) : std::nullopt;
    bytes ? void(into = std::move(*bytes)) : coded->wrong("a string of base64");
  }
  // Each value of a list.
  template <class Each>
  void for_each(std::string_view name, Each each) {
    if (const JsonValue* list = find(name)) list->for_each(each);
  }
  // The value of an enum up to `last`, by its name.
  template <class Enum>
  void read_word(std::string_view name, Enum& into, Enum last) {
    const JsonValue* const value = find(name);
    if (value != nullptr) into = word_of(*value, last, into);
  }
  template <class Enum>
  static Enum word_of(const JsonValue& value, Enum last, Enum usual) {
    const auto text = value.if_text();
    for (int i = 0; text && i <= static_cast<int>(last); ++i) {
      if (to_string(static_cast<Enum>(i)) == *text) return static_cast<Enum>(i);
    }
    value.wrong("a word that is known here");
    return usual;
  }

 private:
  // A large value is no null, and it is not written out to see that.
  static bool is_null(const JsonValue& value) {
    return !value.if_text() && !value.is_list() && !value.is_object() && value.json() == "null";
  }

  JsonMembers in_;
};

}  // namespace argiope
