// Lines of files that users name: bounded, numbered, and told of by their place. All who read such a file line by line
// read it here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/base/error.hpp"
#include "base/internal/file_reading.hpp"

namespace argiope {

struct TextLine {
  std::uint64_t number = 0;  // from 1
  // Without its end; of one that is too long only so much as a line may have. Good during the call.
  std::string_view text;
  std::uint64_t size = 0;  // bytes in the file, with its end
  bool is_too_long = false;
  bool has_end = true;  // false: the last one, behind which the file ends without "\n"
};

// Cuts pieces of a file into lines. A byte order mark at its front belongs to no line's text.
// Memory:  at most one line of `most_bytes`.
// Threads: one at a time.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t most_bytes) : most_(most_bytes) {}

  // each(const TextLine&) -> bool for each line that ends in `bytes`; false ends it. False: it was ended.
  template <class Each>
  bool take(std::string_view bytes, Each&& each) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      if (end == std::string_view::npos) {
        keep(piece);
        return true;
      }
      bytes.remove_prefix(end + 1);
      if (!tell(piece, true, each)) return false;
    }
    return true;
  }
  // The file has ended: the line without an end, if there is one.
  template <class Each>
  bool end(Each&& each) {
    return size_ == 0 || tell({}, false, each);
  }

 private:
  void keep(std::string_view piece) {
    size_ += piece.size();
    partial_ += piece.substr(0, most_ + kMarkBytes - std::min(partial_.size(), most_ + kMarkBytes));
  }
  template <class Each>
  bool tell(std::string_view piece, bool has_end, Each& each) {
    TextLine line{.number = ++number_, .has_end = has_end};
    const bool is_whole = partial_.empty();
    if (is_whole) {
      size_ += piece.size();
      line.text = piece;
    } else {
      keep(piece);
      line.text = partial_;
    }
    line.size = size_ + (has_end ? 1 : 0);
    const bool has_mark = line.number == 1 && line.text.starts_with(kMark);
    if (has_mark) line.text.remove_prefix(kMarkBytes);
    line.is_too_long = size_ - (has_mark ? kMarkBytes : 0) > most_;
    line.text = line.text.substr(0, most_);
    const bool more = each(std::as_const(line));
    if (line.is_too_long) partial_ = {};
    partial_.clear();
    size_ = 0;
    return more;
  }

  static constexpr std::string_view kMark = "\xef\xbb\xbf";
  static constexpr std::size_t kMarkBytes = kMark.size();

  const std::size_t most_;
  std::string partial_;     // of a line whose end has not come
  std::uint64_t size_ = 0;  // of that
  std::uint64_t number_ = 0;
};

// The lines of a file until each() says false. Blocks.
// Errors: as read_file_text(), but for too_large: a line that is too long is told to each().
Result<void> read_lines(const std::string& path, std::size_t most_bytes, FileReading reading,
                        const std::function<bool(const TextLine&)>& each);

// "FILE:7", as it may be printed: in front of what is wrong there.
std::string place_of_line(std::string_view file, std::uint64_t number);

}  // namespace argiope
