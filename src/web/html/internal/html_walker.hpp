// A pass over the tags of an HTML page: what the link scanner and the references of pages to be saved have in common.
// Private to the web module.
//
// It follows the HTML standard's tokeniser (section 13.2.5) where it matters to who looks at start tags: comments,
// raw-text elements, attribute quoting. Of trees it knows SVG and MathML (foreign_content.hpp), and templates.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "web/html/foreign_content.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/byte_search.hpp"

namespace argiope {

// Names of up to eight letters as one number, lower case.
constexpr std::uint64_t pack_name(std::string_view name) noexcept {
  std::uint64_t key = 0;
  for (const char c : name) key = key << 8 | static_cast<unsigned char>(to_lower(c));
  return key;
}

// Character classes of a tag's inside.
inline constexpr std::uint8_t kTagSpace = 1;
inline constexpr std::uint8_t kEndsTagName = 2;    // space, '/', '>'
inline constexpr std::uint8_t kEndsAttribute = 4;  // space, '/', '>', '='
inline constexpr std::uint8_t kEndsUnquoted = 8;   // space, '>'
inline constexpr std::array<std::uint8_t, 256> kTagClass = [] {
  std::array<std::uint8_t, 256> table{};
  for (const char c : {' ', '\t', '\n', '\f', '\r'}) {
    table[static_cast<unsigned char>(c)] = kTagSpace | kEndsTagName | kEndsAttribute | kEndsUnquoted;
  }
  table['>'] = kEndsTagName | kEndsAttribute | kEndsUnquoted;
  table['/'] = kEndsTagName | kEndsAttribute;
  table['='] = kEndsAttribute;
  return table;
}();
constexpr bool is_tag_char(char c, std::uint8_t what) noexcept {
  return (kTagClass[static_cast<unsigned char>(c)] & what) != 0;
}

// A quick no for nine tags in ten, from the first two bytes of a name: bit c1 % 32 of entry c0 % 32 is set where a name
// that begins with c0, c1 may be one of some. Letters of both cases share a bit, and so do some letters with what may
// follow the `a` of `<a>`.
class TagBeginnings {
 public:
  constexpr TagBeginnings(std::initializer_list<std::string_view> names) noexcept {
    for (const std::string_view name : names) add(name);
  }
  constexpr void add(std::string_view name) noexcept {
    const std::string_view seconds = name.size() > 1 ? name.substr(1, 1) : std::string_view(" \t\n\f\r/>");
    for (const char second : seconds) table_[name[0] % 32] |= 1u << (second % 32);
  }
  // `name` has a second byte.
  constexpr bool may_be(const char* name) const noexcept {
    return (table_[static_cast<unsigned char>(name[0]) % 32] >> (static_cast<unsigned char>(name[1]) % 32) & 1) != 0;
  }

 private:
  std::array<std::uint32_t, 32> table_{};
};

// One pass. Positions are pointers into the page; a null pointer says that the page ended inside a tag, which then is
// no tag (HTML standard, "eof-in-tag").
//
// The page is cut behind its last '>': nothing after that can complete anything. So wherever the walker stands inside
// a tag there is a '>' ahead: loops over names and spaces need no other bound, and what is not '>' has a next byte.
//
// `Handler` derives from it, and has
//   bool wants(const char* name) const         whether a start tag whose name begins there is looked at
//   const char* start_tag(const char* name)    from a start tag's name to behind what belongs to it, as
//                                              attributes() and raw_text() find it
// and may have an end_tag() of its own, which calls the walker's.
template <class Handler>
class HtmlWalker {
 public:
  explicit HtmlWalker(std::string_view html) noexcept : begin_(html.data()), end_(begin_ + (html.rfind('>') + 1)) {}

  void run() {
    Handler& handler = static_cast<Handler&>(*this);
    const char* p = begin_;
    while (p != nullptr) {
      p = find_byte(p, end_, '<');
      if (p == end_) return;
      ++p;
      if (is_alpha(*p)) {
        p = handler.wants(p) || foreign_.entered() ? handler.start_tag(p) : skip_tag(p);
      } else if (*p == '/') {
        p = handler.end_tag(p + 1);
      } else if (*p == '!') {
        p = declaration(p + 1);
      } else if (*p == '?') {
        p = past_bracket(p);
      }
    }
  }

 protected:
  std::string_view rest(const char* p) const noexcept { return {p, end_}; }
  const char* past_bracket(const char* p) const noexcept { return find_byte(p, end_, '>') + 1; }

  // Behind "</".
  const char* end_tag(const char* p) {
    if (foreign_.entered() && is_alpha(*p)) foreign_.end_tag({p, behind_name(p)});
    if (templates_ > 0 && begins_with_name(p, "template")) --templates_;
    return is_alpha(*p) ? skip_tag(p) : past_bracket(p);
  }

  // Behind "<!". All but comments and true CDATA sections, doctypes too, end at the first '>' wherever it is.
  const char* declaration(const char* p) {
    if (foreign_.active() && rest(p).starts_with("[CDATA[")) return behind(p, {"]]"});
    if (p[0] != '-' || p[1] != '-') return past_bracket(p);
    p += 2;
    if (p[0] == '>') return p + 1;                 // <!-->
    if (p[0] == '-' && p[1] == '>') return p + 2;  // <!--->
    return behind(p, {"--", "--!"});
  }

  // Behind the first '>' that has one of `endings` before it, in the text that begins at `text`.
  const char* behind(const char* text, std::initializer_list<std::string_view> endings) const {
    for (const char* p = text; (p = find_byte(p, end_, '>')) != end_; ++p) {
      const std::string_view before(text, p);
      if (std::ranges::any_of(endings, [before](std::string_view e) { return before.ends_with(e); })) return p + 1;
    }
    return nullptr;
  }

  // From the name of a tag that says nothing to behind its '>'.
  //
  // Nearly all such tags are `name>` or `name attribute="value"…>`, which is told from one or two blocks: without a
  // quote in the way the first '>' ends the tag, and a quote opens a value for certain when the one '=' before it
  // stands right before it, behind a character of an attribute's name. Anything else is read step by step.
  const char* skip_tag(const char* p) {
    bool in_name = true;
    while (end_ - p >= kSearchStep) {
      const ByteBlock block(p);
      const std::uint32_t stops = block.equal('>', '"', '\'');
      if (stops == 0) break;
      const int at = __builtin_ctz(stops);
      if (p[at] == '>') return p + at + 1;
      const std::uint32_t before = (1u << at) - 1;
      if (at < 2 || (block.equal('=') & before) != 1u << (at - 1) || is_tag_char(p[at - 2], kEndsAttribute)) break;
      if (in_name && (block.equal(' ', '\n') & before) == 0) break;
      const char* const close = find_byte(p + at + 1, end_, p[at]);
      if (close == end_) return nullptr;
      p = close + 1;
      if (*p == '>') return p + 1;
      in_name = false;
    }
    return no_attributes(in_name ? behind_name(p) : p);
  }

  static const char* behind_name(const char* p) noexcept {
    while (!is_tag_char(*p, kEndsTagName)) ++p;
    return p;
  }

  // Reads attributes from behind the tag's name to behind its '>': `visit(name, raw)` for each, whose value is written
  // as `raw`; of those of one name the first counts. Sets self_closing_.
  template <class Visit>
  const char* attributes(const char* p, Visit visit) {
    while (true) {
      const char* const gap = p;
      while (is_tag_char(*p, kTagSpace) || *p == '/') ++p;
      if (*p == '>') {
        self_closing_ = p != gap && p[-1] == '/';
        return p + 1;
      }
      const char* const name = p++;  // may begin with '='
      while (!is_tag_char(*p, kEndsAttribute)) ++p;
      const std::string_view found(name, static_cast<std::size_t>(p - name));
      while (is_tag_char(*p, kTagSpace)) ++p;
      std::string_view raw;
      if (*p == '=') {
        ++p;
        while (is_tag_char(*p, kTagSpace)) ++p;
        if (*p == '"' || *p == '\'') {
          const char* const close = find_byte(p + 1, end_, *p);
          if (close == end_) return nullptr;
          raw = {p + 1, close};
          p = close + 1;
        } else {
          const char* const start = p;
          while (!is_tag_char(*p, kEndsUnquoted)) ++p;
          raw = {start, p};
        }
      }
      visit(found, raw);
    }
  }
  const char* no_attributes(const char* p) {
    return attributes(p, [](std::string_view, std::string_view) {});
  }

  // From behind the start tag `name` (null stays null) to behind its end tag.
  const char* raw_text(const char* p, std::string_view name) {
    const char* const end = raw_text_end(p, name);
    return end == nullptr ? nullptr : skip_tag(end + 2);
  }
  // The same to the '<' of its end tag.
  const char* raw_text_end(const char* p, std::string_view name) const {
    if (p == nullptr) return nullptr;
    while ((p = find_byte(p, end_, '<')) != end_) {
      if (is_end_tag(++p, name)) return p - 1;
    }
    return nullptr;
  }

  // Whether `p`, which is behind a '<', begins the end tag `name`.
  bool is_end_tag(const char* p, std::string_view name) const { return *p == '/' && begins_with_name(p + 1, name); }
  bool begins_with_name(const char* p, std::string_view name) const {
    if (static_cast<std::size_t>(end_ - p) <= name.size() || !is_tag_char(p[name.size()], kEndsTagName)) return false;
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (to_lower(p[i]) != to_lower(name[i])) return false;
    }
    return true;
  }

  // As raw_text(), with the states that `<!--` brings (13.2.5.15 to 31): inside such a comment a `<script>` makes the
  // next `</script>` not the end of the element but of that inner one.
  const char* script(const char* p) {
    if (p == nullptr) return nullptr;
    const char* dashes = nullptr;  // of the "<!--" we are in
    bool doubly = false;
    while ((p = dashes == nullptr ? find_byte(p, end_, '<') : find_byte(p, end_, '<', '>')) != end_) {
      if (*p++ == '>') {
        if (p - dashes >= 3 && p[-2] == '-' && p[-3] == '-') {
          dashes = nullptr;
          doubly = false;
        }
      } else if (dashes == nullptr && p[0] == '!' && p[1] == '-' && p[2] == '-') {
        dashes = p + 1;
        p += 3;
      } else if (is_end_tag(p, "script")) {
        if (!doubly) return skip_tag(p + 1);
        doubly = false;
        p += 7;
      } else if (dashes != nullptr && begins_with_name(p, "script")) {
        doubly = true;
        p += 6;
      }
    }
    return nullptr;
  }

  // To be told of each start tag `template` of HTML. The content of one is no part of the page until a script takes it
  // out: what it says of the page as a whole (its base, whether it may be kept) does not count.
  void open_template() noexcept { ++templates_; }
  bool in_template() const noexcept { return templates_ > 0; }

  const char* begin_;
  const char* end_;
  ForeignContent foreign_;
  std::size_t templates_ = 0;
  bool self_closing_ = false;  // the tag that attributes() read last
};

}  // namespace argiope
