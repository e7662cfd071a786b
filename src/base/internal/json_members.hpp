// Reading the members of a JSON object by their names: each is asked for once, and what nobody has asked for is refused
// at the end, so that a misspelt policy is not a policy silently lost.
//
//   JsonMembers in(object);
//   call.directory = in.text("directory");
//   in.parsed("timeout", call.timeout, parse_duration);
//   in.finish("a command has none");
//   if (object.errors()) return std::unexpected(object.errors().error());
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope {

// Mistakes go to the errors of the object; the first counts, and what is given after it stands for nothing. A name
// that is there twice is refused by finish().
//
// Lifetime: the object's value outlives it.
class JsonMembers {
 public:
  // The meaning of a null: itself, or that the member is not there (RFC 7396).
  enum class Nulls : std::uint8_t { are_values, are_missing };

  // A value that is no object has no members.
  explicit JsonMembers(const JsonValue& object, Nulls nulls = Nulls::are_values);

  const JsonValue& object() const noexcept { return object_; }
  Nulls nulls() const noexcept { return nulls_; }
  bool has(std::string_view name) const;
  // Null where there is none.
  const JsonValue* find(std::string_view name);

  std::string text(std::string_view name, std::string_view usual = {});
  std::int64_t whole(std::string_view name, std::int64_t most, std::int64_t least = 0, std::int64_t usual = 0);
  bool flag(std::string_view name, bool usual);
  // The value that `parse(const std::string&)` makes of a string, and where a span of time is wanted, of a number.
  template <class Value, class Parse>
  void parsed(std::string_view name, Value& out, Parse parse);
  // The place of the string among `words`, as a Value.
  template <class Value, std::size_t N>
  void choice(std::string_view name, Value& out, const std::string_view (&words)[N]) {
    if (const auto place = place_among(name, words, N)) out = static_cast<Value>(*place);
  }

  // Tells of the first name that is there again. For objects whose members are not all asked for here.
  void refuse_repeated() const;
  // Refuses a name that is there twice, and the first that nobody has asked for: `member "NAME": WHY`.
  void finish(std::string_view why) const;

 private:
  struct Member {
    std::string_view name;
    JsonValue value;
    bool asked = false;
  };
  std::optional<std::size_t> place_among(std::string_view name, const std::string_view* words, std::size_t count);

  const JsonValue& object_;
  const Nulls nulls_;
  std::vector<Member> members_;
};

// A member whose value is for others to read, or is read and refused by itself: `name` in the value of the member `in`,
// or in an entry of its list. Empty `in`: of the whole.
struct JsonLeftAlone {
  std::string_view in;
  std::string_view name;
};

// Tells of the first name that is there again, in `whole` or anywhere in it but in what is left alone.
void refuse_repeated_within(const JsonValue& whole, std::span<const JsonLeftAlone> left_alone);

template <class Value, class Parse>
void JsonMembers::parsed(std::string_view name, Value& out, Parse parse) {
  const JsonValue* given = find(name);
  if (given == nullptr) return;
  constexpr bool kIsSpan = std::is_same_v<Value, Duration> || std::is_same_v<Value, std::optional<Duration>>;
  if (!given->if_text() && !(kIsSpan && given->if_number())) return given->complain("a string");
  if (auto value = parse(given->shown())) {
    out = *std::move(value);
  } else {
    given->refuse(value.error());
  }
}

}  // namespace argiope
