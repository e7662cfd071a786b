#include "base/internal/json_members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_set>

#include "base/internal/printable.hpp"

namespace argiope {
namespace {

// As deep as the text, which is parsed. `in`: the member that the value is of, or is in the list of.
void refuse_repeated_in(const JsonValue& value, std::string_view in, std::span<const JsonLeftAlone> left_alone) {
  if (value.is_list()) {
    return value.for_each([&](const JsonValue& entry) { refuse_repeated_in(entry, in, left_alone); });
  }
  if (!value.is_object()) return;
  JsonMembers(value).refuse_repeated();
  if (value.errors()) return;
  value.for_each_member([&](std::string_view name, const JsonValue& member) {
    const auto is_it = [&](const JsonLeftAlone& left) { return left.in == in && left.name == name; };
    if (std::ranges::none_of(left_alone, is_it)) refuse_repeated_in(member, name, left_alone);
  });
}

}  // namespace

JsonMembers::JsonMembers(const JsonValue& object, Nulls nulls) : object_(object), nulls_(nulls) {
  members_.reserve(object.size());
  object.for_each_member([&](std::string_view name, const JsonValue& value) { members_.push_back({name, value}); });
}

bool JsonMembers::has(std::string_view name) const {
  return std::ranges::find(members_, name, &Member::name) != members_.end();
}

const JsonValue* JsonMembers::find(std::string_view name) {
  const JsonValue* found = nullptr;
  for (Member& member : members_) {
    if (member.name != name) continue;
    member.asked = true;
    found = nulls_ == Nulls::are_missing && member.value.is_null() ? nullptr : &member.value;
  }
  return found;
}

std::string JsonMembers::text(std::string_view name, std::string_view usual) {
  const JsonValue* given = find(name);
  if (given == nullptr) return std::string(usual);
  const auto text = given->if_text();
  if (!text) given->complain("a string");
  return std::string(text.value_or(usual));
}

std::int64_t JsonMembers::whole(std::string_view name, std::int64_t most, std::int64_t least, std::int64_t usual) {
  const JsonValue* given = find(name);
  if (given == nullptr) return usual;
  const auto number = given->if_whole();
  if (number && *number >= least && *number <= most) return *number;
  given->complain(fmt::format("a whole number, {} to {}", least, most));
  return usual;
}

bool JsonMembers::flag(std::string_view name, bool usual) {
  const JsonValue* given = find(name);
  if (given == nullptr) return usual;
  const auto flag = given->if_flag();
  if (!flag) given->complain("true or false");
  return flag.value_or(usual);
}

std::optional<std::size_t> JsonMembers::place_among(std::string_view name, const std::string_view* words,
                                                    std::size_t count) {
  const JsonValue* given = find(name);
  if (given == nullptr) return std::nullopt;
  const std::span all(words, count);
  const auto text = given->if_text();
  const auto place = text ? std::ranges::find(all, *text) : all.end();
  if (place != all.end()) return static_cast<std::size_t>(place - all.begin());
  given->complain(text ? fmt::format("{}", fmt::join(all, ", ")) : "a string");
  return std::nullopt;
}

void JsonMembers::refuse_repeated() const {
  constexpr std::size_t kFew = 16;  // are compared with each other without memory of their own
  std::unordered_set<std::string_view> names;
  for (auto member = members_.begin(); member != members_.end(); ++member) {
    const bool is_new = members_.size() <= kFew
                            ? std::ranges::find(members_.begin(), member, member->name, &Member::name) == member
                            : names.insert(member->name).second;
    if (is_new) continue;
    return member->value.refuse_member(fmt::format("member {} is there twice", in_quotes(member->name)));
  }
}

void JsonMembers::finish(std::string_view why) const {
  refuse_repeated();
  const auto unknown = std::ranges::find(members_, false, &Member::asked);
  if (unknown == members_.end()) return;
  unknown->value.refuse_member(fmt::format("member {}: {}", in_quotes(unknown->name), why));
}

void refuse_repeated_within(const JsonValue& whole, std::span<const JsonLeftAlone> left_alone) {
  refuse_repeated_in(whole, {}, left_alone);
}

}  // namespace argiope
