// A Notifier's memory over the end of its process: whom it has told what, and what they are still to be told.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "serve/notify/notice.hpp"
#include "serve/notify/trouble_log.hpp"

namespace argiope {

// Of one rule.
struct NotifyMemory {
  std::map<TroubleKey, OpenTrouble> open;  // of its TroubleLog
  std::vector<Notice> gathered;
  std::uint64_t left_out = 0;
};

// One line of JSON, with its end.
std::string to_line(std::string_view rule, const NotifyMemory& memory);
// Of each rule that has one. Other lines are passed over.
std::map<std::string, NotifyMemory, std::less<>> read_notify_memories(std::string_view lines);

}  // namespace argiope
