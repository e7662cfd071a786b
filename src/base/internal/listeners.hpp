// The listeners that are told of events: functions that a user has added, each with a mask of the kinds it wants.
//
// A listener may do to the list what it likes while it is told: remove itself or others, add some, which hear the next
// event, or clear it. An exception of it is logged and counted, and reaches neither the others nor the teller.
#pragma once

#include <spdlog/spdlog.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <string_view>
#include <utility>

namespace argiope {

// Threads: one at a time.
template <class Event>
class Listeners {
 public:
  using Function = std::function<void(const Event&)>;

  std::uint64_t add(std::uint32_t mask, Function function) {
    entries_.push_back({++last_id_, mask, std::move(function)});
    listened_ |= mask;
    return last_id_;
  }
  // Nothing happens where there is none of that id.
  void remove(std::uint64_t id) {
    for (Entry& entry : entries_) {
      if (entry.id == id) entry.id = 0;
    }
    clean();
  }
  void clear() {
    for (Entry& entry : entries_) entry.id = 0;
    clean();
  }

  // How many there are, those included that were removed while they are told.
  std::size_t size() const noexcept { return entries_.size(); }
  bool listens(std::uint32_t kind) const noexcept { return (listened_ & kind) != 0; }
  // How often one has thrown.
  std::uint64_t errors() const noexcept { return errors_; }

  void tell(std::uint32_t kind, const Event& event) {
    if (!listens(kind)) return;
    const std::uint64_t last = last_id_;
    ++telling_;
    for (auto entry = entries_.begin(); entry != entries_.end() && entry->id <= last; ++entry) {
      if (entry->id == 0 || (entry->mask & kind) == 0) continue;
      try {
        entry->function(event);
      } catch (const std::exception& error) {
        note(error.what());
      } catch (...) {
        note("an exception of an unknown type");
      }
    }
    --telling_;
    clean();
  }

 private:
  struct Entry {
    std::uint64_t id;  // 0: removed
    std::uint32_t mask;
    Function function;
  };

  // Frees what was removed, unless it may be running.
  void clean() {
    if (telling_ > 0) return;
    std::erase_if(entries_, [](const Entry& entry) { return entry.id == 0; });
    listened_ = 0;
    for (const Entry& entry : entries_) listened_ |= entry.mask;
  }
  // One that throws at each of a million events is said twenty times.
  void note(std::string_view what) {
    if (std::has_single_bit(++errors_)) spdlog::error("a listener has thrown ({} times so far): {}", errors_, what);
  }

  std::list<Entry> entries_;  // stays in place while one of them runs
  std::uint64_t last_id_ = 0;
  std::uint32_t listened_ = 0;
  std::uint64_t errors_ = 0;
  int telling_ = 0;
};

}  // namespace argiope
