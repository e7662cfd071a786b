// The texts of values inside a JSON text, as they were written: for what is kept word by word and not by its meaning.
//
//   RawJson whole(text), jobs(whole, 0), job(jobs, 3);   // costs nothing
//   job.text();                                          // walks over the text as far as the fourth job
#pragma once

#include <cstddef>
#include <string_view>

namespace argiope {

// Where the string of JSON ends whose first byte behind the quote is at `begin`: the place of its other quote, or npos.
// Long strings are searched as fast as memory is read.
std::size_t end_of_json_string(std::string_view text, std::size_t begin) noexcept;

// A value of a text that JsonText has parsed. Its text is looked for when it is asked for, and not before.
//
// Lifetime: the text, and the value it is in, outlive it.
// Cost:     asking for the values in a list or an object in their order walks over it once; one before the last again.
class RawJson {
 public:
  // The whole text.
  explicit RawJson(std::string_view text) noexcept;
  // The value at `place`, from 0, of a list, or of the member at that place of an object. It must be there.
  RawJson(RawJson& parent, std::size_t place) noexcept : parent_(&parent), place_(place) {}

  // From its first byte to its last.
  std::string_view text();

 private:
  std::string_view value_at(std::size_t place);

  RawJson* parent_ = nullptr;
  std::size_t place_ = 0;
  std::string_view text_;  // empty: not looked for yet
  // The text behind the last value that was asked for, and its place.
  std::string_view rest_;
  std::string_view last_;
  std::size_t next_ = 0;
};

}  // namespace argiope
