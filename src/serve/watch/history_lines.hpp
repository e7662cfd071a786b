// The points of a History as lines of a file, so that they outlive the process.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/watch/history.hpp"

namespace argiope {

struct HistoryLine {
  std::string queue;  // empty: of all together
  bool is_fine = true;
  HistoryPoint point;
};

// One line of JSON, with its end.
std::string to_line(std::string_view queue, bool is_fine, const HistoryPoint& point);
// nullopt: it is none.
std::optional<HistoryLine> read_history_line(std::string_view line);

}  // namespace argiope
