// Where a file of records ends as far as a database knows it: a note that each commit takes along. All that is behind
// it after a crash belongs to pages that are fetched again. Private to Extraction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/store/detail/url_record.hpp"

namespace argiope {

struct OutputMark {
  static constexpr std::size_t kTailBytes = 4096;

  std::string identity;    // of the file, as file_identity_of()
  std::uint64_t size = 0;  // so much of it are records of whole pages, on the disk as the commit is
  std::string tail;        // content_digest() of its last kTailBytes
  // Before this byte are pages that were done when the run began. Their later state is no matter of these bytes.
  std::uint64_t done_before = 0;
  // The run has ended in order: what is behind was written by others.
  bool is_ended = false;

  // As the text of a note.
  std::string text() const;
  // nullopt: it is none.
  static std::optional<OutputMark> parse(const std::string& text);
};

// A note's name is this and the path of its file.
inline constexpr std::string_view kOutputNotes = "records/";

}  // namespace argiope
