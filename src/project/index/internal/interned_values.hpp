// Values that many rows share, each kept once under a code of 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace argiope {

// A code is good as long as it has been taken more often than given back; then it is given to another value.
//
// Memory:  of the values that are in use at once, at most 65,535.
// Threads: one at a time. Cost: O(1).
template <class Value, class Hash = std::hash<Value>>
class InternedValues {
 public:
  using Code = std::uint16_t;

  // The value's code, once more. nullopt: all codes are in use.
  std::optional<Code> take(const Value& value) {
    if (const auto known = codes_.find(value); known != codes_.end()) {
      ++entries_[known->second].uses;
      return known->second;
    }
    if (free_.empty() && entries_.size() >= kMostValues) return std::nullopt;
    const bool is_used_again = !free_.empty();
    const Code code = is_used_again ? free_.back() : static_cast<Code>(entries_.size());
    if (is_used_again) {
      entries_[code] = {value, 1};
    } else {
      entries_.push_back({value, 1});
    }
    codes_.emplace(value, code);
    if (is_used_again) free_.pop_back();
    return code;
  }
  void give_back(Code code) {
    if (--entries_[code].uses > 0) return;
    codes_.erase(entries_[code].value);
    free_.push_back(code);
  }
  const Value& operator[](Code code) const noexcept { return entries_[code].value; }
  std::size_t size() const noexcept { return codes_.size(); }

  std::size_t memory_bytes() const noexcept {
    constexpr std::size_t kNode = sizeof(std::pair<const Value, Code>) + 3 * sizeof(void*);
    return entries_.capacity() * sizeof(Entry) + free_.capacity() * sizeof(Code) + codes_.size() * kNode +
           codes_.bucket_count() * sizeof(void*);
  }

 private:
  static constexpr std::size_t kMostValues = 65'535;
  struct Entry {
    Value value;
    std::uint32_t uses = 0;
  };

  std::vector<Entry> entries_;
  std::vector<Code> free_;
  std::unordered_map<Value, Code, Hash> codes_;
};

}  // namespace argiope
