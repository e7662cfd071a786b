// The files of a mirror in their places, made of what the log has: the last step, and now and then before.
#pragma once

#include <cstdint>

#include "crawl/save/mirror_folder.hpp"
#include "crawl/save/mirror_log.hpp"

namespace argiope {

struct MirrorTotals {
  std::uint64_t files = 0;    // in the mirror
  std::uint64_t pages = 0;    // HTML pages among them
  std::uint64_t written = 0;  // that were new or different
  std::uint64_t removed = 0;
};

// `running`: others still add records to the log. The files are those of the records that it has by now, and what the
// log no longer needs stays in it until the end.
enum class MirrorMoment : std::uint8_t { running, end };

// Brings the files in order with the log. Those that are right already stay untouched, whatever was done before and by
// whom; so a process that is killed here begins again. A file that is gone from the log is removed. A file that is not
// the mirror's own stays: in the way of one that is, it is an error.
// Errors: io, disk_full, corrupt, wrong_format (a file in the way).
// `sync`: the list of what may be its files is on the disk before they are made. They are not brought there themselves:
// the next run on another start of the machine compares all with the log.
// Cost:    pages are made anew when they are, or when the place of any file has changed; by as many threads as there
//          are processors, four at most.
Result<MirrorTotals> build_mirror(const MirrorFolder& folder, MirrorLog& log, bool sync, MirrorMoment moment);

}  // namespace argiope
