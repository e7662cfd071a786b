// What the scheduler and the book of schedules answer to whoever adds a single schedule.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/engine/schedule_book.hpp"
#include "base/internal/printable.hpp"

namespace argiope {

// Of an add_all() of one: refused where there is one of its name, which add_all() only reports.
inline Result<AddReply> reply_of_one(Result<std::vector<AddReply>> replies, std::string_view name) {
  if (!replies) return std::unexpected(std::move(replies.error()));
  if (replies->front().outcome == AddOutcome::exists) {
    return fail(Errc::refused, fmt::format("schedule {}: there is one of that name", in_quotes(name)));
  }
  return replies->front();
}

}  // namespace argiope
