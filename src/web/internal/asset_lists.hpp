// Lists of URLs inside attributes and style sheets: `srcset`, url() and @import. By the survey of pages, and by whoever reads
// a style sheet for what it needs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace argiope {

struct CssUrl {
  std::string value;  // escapes undone; neither trimmed nor resolved
  std::size_t at;     // the byte of the sheet where the reference begins
  bool is_import;     // of another style sheet
};

// The first `most` references of a style sheet, or of a `style` attribute (CSS Syntax Module Level 3, 4.3). A url( that is
// not closed, or has quotes, brackets or space within, is none; neither is a string of several lines.
//
// Cost: linear. Threads: any.
std::vector<CssUrl> css_urls(std::string_view css, std::size_t most);

// The first `most` URLs of a `srcset` (HTML standard, 4.8.4.2.2), also those whose descriptors make no sense. The views are
// into it.
std::vector<std::string_view> srcset_urls(std::string_view srcset, std::size_t most);

}  // namespace argiope
