// Reads answers of webhook processors: the lines that scripts would print (docs/processors.md). Bytes in, meanings out.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "project/process/internal/processor_messages.hpp"

namespace argiope {

// Of a page: logs, `more`, and `done` as the last. Any other line fails the attempt; its first 200 bytes are told.
//
// Memory: some times the content.
VisitAnswer read_page_answer(std::string_view content, std::uint64_t id, OpenVisit visit);

// Of `describe`: logs, which go to `logs`, and `described` as the last.
// Errors: protocol for what is no such message, invalid_input for a description that is wrong.
Result<DescribedMessage> read_describe_answer(std::string_view content, const ProcessorLimits& limits,
                                              std::vector<PageLog>& logs);

}  // namespace argiope
