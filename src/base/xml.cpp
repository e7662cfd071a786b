#include "base/internal/xml.hpp"

#include "base/internal/utf8.hpp"

namespace argiope {

std::string xml_escaped(std::string_view text) {
  constexpr std::string_view kNone = "\xef\xbf\xbd";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(character.size());
    const auto first = static_cast<unsigned char>(character[0]);
    const bool is_control = (first < 0x20 && first != '\t' && first != '\n' && first != '\r') || first == 0x7f;
    if (length == 0 || is_control || character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf") {
      out += kNone;
    } else if (first == '&') {
      out += "&amp;";
    } else if (first == '<') {
      out += "&lt;";
    } else if (first == '>') {
      out += "&gt;";
    } else if (first == '"') {
      out += "&quot;";
    } else if (first == '\r') {
      out += "&#13;";
    } else {
      out += character;
    }
  }
  return out;
}

}  // namespace argiope
