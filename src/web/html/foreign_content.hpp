// Whether the scanner stands in SVG or MathML, where `style`, `script` and `title` hold markup, may close themselves
// (`<style/>`), and CDATA sections exist. Private to the link scanner.
//
// This is the part of the HTML standard's tree construction (13.2.6.5) that a self-closed `<title/>` in an inline
// picture makes necessary; of the tree it keeps only the nesting of SVG/MathML and of HTML inside them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "web/text/internal/ascii.hpp"

namespace argiope {

class ForeignContent {
 public:
  // Within any svg or math element, be it in HTML inside one.
  bool entered() const noexcept { return depth_ != 0; }
  // Tags here are SVG's or MathML's, not HTML's.
  bool active() const noexcept { return (kinds_ & 1) != 0; }

  // To be told of each start tag while entered(), and of each `svg` and `math`. True: the element is not HTML's.
  bool start_tag(std::string_view name, bool self_closing) noexcept {
    if (active() && is_one_of(name, kBreakOut)) {
      while (active()) pop();
    }
    const bool root = is_one_of(name, kRoots);
    const bool foreign = root || active();
    if (self_closing) return foreign;
    if (root) {
      push(1);
    } else if (foreign && is_one_of(name, kIntegrationPoints)) {
      push(0);
    }
    return foreign;
  }

  // To be told of each end tag while entered().
  void end_tag(std::string_view name) noexcept {
    if (active()) {
      if (is_one_of(name, kRoots)) return pop();
      // Of an HTML element around us, which closes with all that is in it.
      if (is_one_of(name, kBreakOut)) {
        while (active()) pop();
      }
    } else if (is_one_of(name, kIntegrationPoints)) {
      pop();
    }
  }

 private:
  static constexpr std::string_view kRoots[] = {"svg", "math"};
  // Elements whose content is HTML again.
  static constexpr std::string_view kIntegrationPoints[] = {
      "foreignobject", "desc", "title", "mi", "mo", "mn", "ms", "mtext", "annotation-xml"};
  // Start tags that close what is foreign.
  static constexpr std::string_view kBreakOut[] = {
      "b",     "big",   "blockquote", "body",   "br",   "center", "code",  "dd", "div",  "dl",   "dt",
      "em",    "embed", "h1",         "h2",     "h3",   "h4",     "h5",    "h6", "head", "hr",   "i",
      "img",   "li",    "listing",    "menu",   "meta", "nobr",   "ol",    "p",  "pre",  "ruby", "s",
      "small", "span",  "strong",     "strike", "sub",  "sup",    "table", "tt", "u",    "ul",   "var"};

  template <std::size_t N>
  static bool is_one_of(std::string_view name, const std::string_view (&names)[N]) noexcept {
    return std::ranges::any_of(names, [name](std::string_view one) { return equals_lower(name, one); });
  }

  // Nesting deeper than the word is forgotten from the outside.
  void push(std::uint64_t kind) noexcept {
    kinds_ = kinds_ << 1 | kind;
    depth_ = std::min(depth_ + 1, 64);
  }
  void pop() noexcept {
    kinds_ >>= 1;
    depth_ = std::max(depth_ - 1, 0);
  }

  std::uint64_t kinds_ = 0;  // bit 0 is the innermost: 1 foreign, 0 HTML within it
  int depth_ = 0;
};

}  // namespace argiope
