// The URLs of a style sheet, or of a `style` attribute: url(…), url("…"), @import "…", image-set("…"), each with its
// place in the text, so that one can be replaced and every other byte stays.
//
// The functions here follow the tokeniser of CSS Syntax 3 (section 4): a `url(` in a comment, in a string or in a
// longer name is none. No grammar: whether a browser would drop the rule around a URL is not looked at.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace argiope {

struct CssReference {
  // Of the URL as written: between the quotes, or within url( and ) without the space around it.
  std::size_t begin = 0;
  std::size_t size = 0;
  char quote = 0;  // '"', '\'', or 0: unquoted
  // After @import: another style sheet.
  bool is_import = false;

  friend bool operator==(const CssReference&, const CssReference&) = default;
};

// Replaces what `urls` held, in the text's order. `css` is UTF-8, or any bytes whose ASCII is ASCII. A URL that
// @namespace names is none to be fetched, nor is a fragment alone, and both are left out.
//
// Cost: linear in the text, whatever it holds; memory for the result alone.
void find_css_references(std::string_view css, std::vector<CssReference>& urls);

// The text that a string or an unquoted url() written as `raw` stands for: escapes undone (section 4.3.7).
std::string unescape_css(std::string_view raw);
// Appends `text` as it is written between such quotes, or unquoted.
void append_css_escaped(std::string_view text, char quote, std::string& out);

}  // namespace argiope
