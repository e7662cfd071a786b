// The lines of HTTP/1 messages, and the bodies that are made of lines: what clients read of responses, servers of
// requests. Here is what they say. Whether what is wrong in them is noted or refused is the policy of the reader
// (http_response_reader.hpp, http_request_reader.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace argiope {

// Without its end.
struct HttpLine {
  std::string_view text;
  std::size_t size = 0;  // with its end
  bool is_bare = false;  // ended by a line feed alone
};

// Finds the line at the front of bytes that come in pieces. What has no end yet is not searched again.
class HttpLineFinder {
 public:
  enum class Found : std::uint8_t { whole, not_yet, too_long };

  // `limit` is for this line with all that were used since start_over().
  Found find(std::string_view bytes, std::size_t limit, HttpLine& line) noexcept;
  // The next call gets what is behind the line.
  void use(const HttpLine& line) noexcept {
    used_ += line.size;
    searched_ = 0;
  }
  // The next call gets the same front, in which no line ends before `searched`.
  void search_from(std::size_t searched) noexcept { searched_ = searched; }
  // Counts bytes that are no line against the limit, and gives their sum with the lines.
  std::size_t count(std::size_t bytes) noexcept { return used_ += bytes; }
  void start_over() noexcept { used_ = 0; }

 private:
  std::size_t searched_ = 0;
  std::size_t used_ = 0;
};

struct HttpField {
  enum class Fault : std::uint8_t { none, name, carriage_return, control };
  std::string_view name;
  std::string_view value;
  Fault fault = Fault::none;  // the first of them; `name`: there is none before a colon
  bool is_spaced = false;     // there are blanks before the colon, which are not part of `name`
};
HttpField http_field_in(std::string_view line) noexcept;

// --- lists: several fields of a name are one (RFC 9110, 5.3)

void append_to_list(std::string& list, std::string_view value);
// Whether the connection lasts beyond this message of HTTP/1.`minor_version` (RFC 9112, 9.3); `connection` is its list.
bool keeps_connection(int minor_version, std::string_view connection);
// The length that a list of lengths agrees on. `is_repeated` becomes true where there are several.
std::optional<std::uint64_t> agreed_length(std::string_view list, bool& is_repeated);

// --- chunks (RFC 9112, 7.1)

// Whether it is nothing or extensions, as the grammar has them (RFC 9112, 7.1.1).
bool are_chunk_extensions(std::string_view text) noexcept;

// A chunked body, step by step.
class HttpChunkReader {
 public:
  enum class Step : std::uint8_t {
    needs_more,
    size,      // of the chunk that begins: left(); `line` has it
    data,      // of the body: `line.text`
    end,       // of a chunk; `line` has nothing but how it ended
    trailer,   // `line`; the body is over when it is empty
    too_long,  // the lines are longer than `limit`
    bad_size,  // or there is something else behind it than extensions
    bad_end,   // the chunk goes on beyond its size
  };
  // Takes `line.size` bytes off the front of `bytes`, which is not empty. `limit` is for a chunk's line, and for the
  // last one with all trailers.
  Step take(std::string_view bytes, std::size_t limit, HttpLine& line) noexcept;
  // Bytes of the chunk that have not come.
  std::uint64_t left() const noexcept { return left_; }
  bool is_in_trailers() const noexcept { return place_ == Place::trailers; }
  // Of the line whose size was given; blanks and a semicolon, or nothing, before anything else.
  std::string_view extensions() const noexcept { return extensions_; }

 private:
  enum class Place : std::uint8_t { size, data, end, trailers };
  Step take_line(std::string_view bytes, std::size_t limit, HttpLine& line) noexcept;

  Place place_ = Place::size;
  std::uint64_t left_ = 0;
  HttpLineFinder lines_;
  std::string_view extensions_;
};

}  // namespace argiope
