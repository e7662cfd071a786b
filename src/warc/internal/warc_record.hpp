// One record of a WARC file (ISO 28500, WARC 1.1): its head as fields, and the head of an HTTP message in its block.
//
//   WARC/1.1                                      ┐
//   WARC-Type: response                           │ head
//   Content-Length: 1234                          │
//                                                 ┘
//   … 1234 bytes …                                  block: of a response the HTTP head and the payload
//   (two line ends)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/base/random.hpp"

namespace argiope {

enum class WarcType : std::uint8_t {
  warcinfo,
  response,
  request,
  revisit,
  metadata,
  resource,
  conversion,
  continuation,
  other,
};
// "response"; empty for `other`.
std::string_view to_string(WarcType type) noexcept;

// The profile that a revisit names instead of its payload.
inline constexpr std::string_view kSamePayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
inline constexpr std::string_view kNotModified = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";
// Whether a WARC-Profile is that of a revisit with the payload of another record: of either version of the standard,
// for one URL or for any, of a writer's own, or none at all; but not that of a page that had not changed.
bool is_same_payload(std::string_view profile) noexcept;

inline constexpr std::string_view kRecordEnd = "\r\n\r\n";

// The fields of a record's head, in their order.
class WarcHead {
 public:
  // `text` ends with the blank line. Lines may end without CR, and may be folded.
  // `is_lenient`: lines that are no fields are passed over, and it may have no length, or one that is no number.
  // Errors: corrupt, saying what is wrong: it begins otherwise, or has no type or no length.
  static Result<WarcHead> parse(std::string_view text, bool is_lenient = false);

  WarcType type() const noexcept { return type_; }
  // Whether it says how long its block is; else who reads it has to find out.
  bool has_length() const noexcept { return has_length_; }
  std::uint64_t content_length() const noexcept { return content_length_; }
  void set_content_length(std::uint64_t length) noexcept { content_length_ = length; }
  // No writer writes them: a power cut has, or a damaged disk.
  bool has_zeros() const noexcept { return has_zeros_; }
  // Of the first field of that name, in any case, without the angle brackets that some put around a URI. Empty: none.
  std::string_view field(std::string_view name) const noexcept;

 private:
  WarcType type_ = WarcType::other;
  std::uint64_t content_length_ = 0;
  bool has_length_ = true;
  bool has_zeros_ = false;
  std::vector<std::pair<std::string, std::string>> fields_;
};

// "<urn:uuid:…>", drawn from `random` (RFC 9562, 5.4).
std::string new_record_id(Random& random);

// A head as it is written: begin(), add() for each field, end().
class WarcHeadWriter {
 public:
  void begin(WarcType type, std::string_view id, WallTime date);
  // Nothing for an empty value. Control characters in it become spaces, so that no value begins a line of its own.
  void add(std::string_view name, std::string_view value);
  // With the length of the block. The view is valid until the next begin().
  std::string_view end(std::uint64_t content_length);

 private:
  std::string text_;
};

// --- the head of an HTTP message

// Its length, with the blank line that ends it. nullopt: it does not end.
std::optional<std::size_t> http_head_size(std::string_view message) noexcept;

// A line of it: a field, with all lines it is folded over. A line that has no colon has no name; so has the first line.
struct HttpHeadLine {
  std::string_view name;
  std::string_view value;  // of a folded field, of its first line: see unfolded()
  std::string_view whole;  // as it is, with its end
};
// Its value, of all lines it is folded over, with a space between two.
std::string unfolded(const HttpHeadLine& line);
// Takes the next line off the front; false at the blank line, and at the end. `first`: it is the first line.
bool take_http_line(std::string_view& head, HttpHeadLine& line, bool first);

struct HttpHeadFacts {
  int status = 0;  // 0: it has none
  std::string_view content_type;
};
HttpHeadFacts facts_of_response(std::string_view head);

// An answer in the block of a record.
struct HttpParts {
  std::string_view head;  // with its blank line, if it has one; empty: the block is a payload without a head
  std::string_view payload;
};
// Interim answers (1xx) before it are left out, and that of a proxy which says that it has connected.
HttpParts http_parts(std::string_view block);

// "text/html" of "text/html; charset=utf-8"; "unk" of nothing, as indexes have it.
std::string_view mime_of(std::string_view content_type) noexcept;

}  // namespace argiope
