// Lines of comma-separated values (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// Appends one field and a comma.
inline void append_csv_field(std::string& out, std::string_view value) {
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += value;
  } else {
    out += '"';
    for (const char c : value) {
      if (c == '"') out += '"';
      out += c;
    }
    out += '"';
  }
  out += ',';
}

// The same for text from outside, which a spreadsheet shall not take for a formula: what begins like one gets an
// apostrophe before it, which spreadsheets take for "this is text".
inline void append_csv_text(std::string& out, std::string_view value) {
  if (value.empty() || std::string_view("=+-@\t\r\n").find(value.front()) == std::string_view::npos)
    return append_csv_field(out, value);
  std::string guarded = "'";
  append_csv_field(out, guarded.append(value));
}

// Ends a line that has a field.
inline void end_csv_line(std::string& out) {
  out.pop_back();
  out += "\r\n";
}

}  // namespace argiope
