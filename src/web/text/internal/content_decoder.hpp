// Undoing Content-Encoding (RFC 9110, 8.4) as the bytes come: gzip, deflate, br, zstd, and stacks of them, within
// bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

// Whether a body that begins so may be what the coding makes: some servers and writers of archives name a coding that
// they have undone, or never made. Where the coding has a mark, the body must have it; where it has none, a body that
// reads as text or a picture is not coded. A short piece of coded data may look like text: of that only what cannot be
// decoded is known not to be coded.
bool may_be_coded(std::string_view coding, std::string_view begin) noexcept;

// start(), feed() in pieces, finish(); then start() again for the next body, with memory reused.
//
// Errors:  unsupported (an unknown coding, or more than three), protocol (damaged or cut-off data), too_large (a
//          decompression bomb: any of its codings gives more than kMostRatio times the body's size, once beyond
//          kRatioFloor).
// Memory:  some 50 kB of state for gzip and br, up to 8 MiB of window for zstd and br.
// Threads: one at a time.
class ContentDecoder {
 public:
  static constexpr std::size_t kMostCodings = 3;
  static constexpr std::uint64_t kMostRatio = 1000;
  static constexpr std::uint64_t kRatioFloor = 1024 * 1024;

  ContentDecoder();
  ~ContentDecoder();

  // `codings` as in the header: "gzip" or "gzip, br", in the order they were applied. Whatever was under way is
  // forgotten.
  Result<void> start(std::string_view codings, std::size_t output_limit);
  // Appends what `bytes` decode to; at the limit it stops, and truncated() is true.
  Result<void> feed(std::string_view bytes, std::string& out);
  // The body has ended: an error when the data has not. Bytes behind the end of a stream are ignored, as browsers do.
  Result<void> finish() const;
  bool truncated() const noexcept { return truncated_; }

  // One coding's state; defined in the .cpp.
  class Stage;

 private:
  Result<void> pump(std::size_t index, std::string_view bytes, std::string& out);

  std::vector<std::unique_ptr<Stage>> stages_;  // outermost coding first
  std::vector<std::unique_ptr<Stage>> spares_;
  std::size_t output_limit_ = 0;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
  bool truncated_ = false;
  std::string between_[kMostCodings - 1];  // output of one stage, input of the next
};

}  // namespace argiope
