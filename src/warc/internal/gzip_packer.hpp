// Packing with gzip, fast: for archives, where each record is a member of its own and a crawl writes hundreds of
// megabytes a second. Unpacking is zlib's (content_decoder.hpp, warc_reader.hpp).
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace argiope {

// Memory:  some 700 kB.
// Threads: one at a time.
class GzipPacker {
 public:
  GzipPacker();
  ~GzipPacker();
  // Appends one gzip member (RFC 1952) that holds the parts, one after the other..
  void append_member(std::string& out, std::initializer_list<std::string_view> parts);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace argiope
