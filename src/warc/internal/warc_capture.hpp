// The entry of an index for a record: the same whether it is written down as the record is made, or found in a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warc/internal/cdxj.hpp"
#include "warc/internal/warc_reader.hpp"

namespace argiope {

// A response, a resource, or a revisit with the payload of another record; nullopt: no index has the record. Those of what had not changed
// (304) are among these: without a digest nobody finds what they refer to, and who looks for the page finds the capture
// before.
std::optional<CdxjLine> capture_of(const WarcRecord& record, std::string_view filename);

// The head of an answer for a record that has a payload alone: a resource, or a response without one.
std::string head_for_payload(const WarcHead& head);

inline bool is_revisit(const CdxjLine& capture) noexcept { return capture.mime == kRevisitMime; }

}  // namespace argiope
