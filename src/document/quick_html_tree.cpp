// The tokens of a plain page: its tags with their attributes, comments, doctype and texts (HTML standard, 13.2.5).
#include "document/quick_html_tree.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "document/quick_html_reader.hpp"
#include "web/html/internal/html_entities.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/byte_search.hpp"

namespace argiope {
namespace {

// Most of what one token adds.
constexpr std::size_t kRowsOfToken = 16;
constexpr std::size_t kAttributesOfTag = 200;
constexpr std::size_t kMostOtherNames = 64;
// The parser may look at all that is open for each token, and gives up where that is more than 100 million looks.
constexpr std::uint64_t kMostQuickLooks = 40'000'000;

// The characters that may be in a name for us: of elements no punctuation but these, of attributes a few more.
constexpr std::uint8_t kInTagName = 1;
constexpr std::uint8_t kInAttributeName = 2;
constexpr std::uint8_t kCapital = 4;
constexpr std::uint8_t kNotInUnquoted = 8;  // what the standard calls an error there, and references
constexpr std::array<std::uint8_t, 256> kNameClass = [] {
  std::array<std::uint8_t, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = kInTagName | kInAttributeName;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = kInTagName | kInAttributeName | kCapital;
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = kInTagName | kInAttributeName;
  for (const char c : {'-', '_', ':', '.'}) table[static_cast<unsigned char>(c)] = kInTagName | kInAttributeName;
  for (const char c : {'@', '#', '$', '*', '(', ')', '[', ']'}) table[static_cast<unsigned char>(c)] = kInAttributeName;
  for (const char c : {'"', '\'', '<', '`', '&', '\0'}) table[static_cast<unsigned char>(c)] = kNotInUnquoted;
  return table;
}();
constexpr bool is_name_char(char c, std::uint8_t what) noexcept {
  return (kNameClass[static_cast<unsigned char>(c)] & what) != 0;
}

constexpr std::string_view kSvgShapes[] = {"path", "g", "circle", "rect", "line", "polyline", "polygon", "ellipse"};
constexpr std::string_view kSvgAttributes[] = {
    "class", "id", "d",  "width", "height", "xmlns", "fill",   "stroke", "x",    "y",       "x1",        "y1",     "x2",
    "y2",    "cx", "cy", "r",     "rx",     "ry",    "points", "style",  "role", "opacity", "transform", "version"};

// White space as text that may be between elements. A carriage return is nothing for us.
constexpr bool is_text_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\t' || c == '\f'; }

}  // namespace

bool QuickHtmlReader::is_within_limits() noexcept {
  looks_ += 2 * open_.size();
  return tree_.nodes.size() + kRowsOfToken < limits_.most_nodes &&
         tree_.attributes.size() + kAttributesOfTag < limits_.most_attributes &&
         2 * open_.size() + kRowsOfToken < std::min<std::size_t>(limits_.most_depth, 512) && looks_ < kMostQuickLooks &&
         other_names_.size() < kMostOtherNames;
}

bool QuickHtmlReader::run() {
  if (std::string_view(begin_, end_of_text_).contains('\0')) return false;
  if (std::find(end_, end_of_text_, '<') != end_of_text_) return false;
  const char* from = begin_;  // of the text
  bool has_references = false;
  for (const char* p = begin_;;) {
    p = find_byte(p, end_of_text_, '<', '&', '\r');
    if (p == end_of_text_) break;
    if (*p == '\r') return false;
    if (*p == '&') {
      has_references = true;
      ++p;
      continue;
    }
    const char next = p[1];
    if (!is_alpha(next) && next != '/' && next != '!') {
      if (next == '?') return false;
      ++p;
      continue;
    }
    if (!text(from, p, has_references) || !is_within_limits()) return false;
    p = next == '/' ? end_tag(p + 2) : next == '!' ? declaration(p + 2) : start_tag(p + 1);
    if (p == nullptr) return false;
    from = p;
    has_references = false;
  }
  return text(from, end_of_text_, has_references) && finish();
}

// --- tags -----------------------------------------------------------------------------------------------------------

const char* QuickHtmlReader::tag_name(const char* p, Tag& tag) const noexcept {
  const char* const name = p;
  std::uint64_t packed = 0;
  for (; is_name_char(*p, kInTagName); ++p) packed = packed << 8 | static_cast<unsigned char>(to_lower(*p));
  tag.name = {name, p};
  tag.id = find_html_tag(packed, tag.name);
  return is_tag_char(*p, kEndsTagName) ? p : nullptr;
}

const char* QuickHtmlReader::start_tag(const char* p) {
  Tag tag{.position = position_of(p - 1)};
  p = tag_name(p, tag);
  if (p == nullptr || tag.rules().rule == TagRule::never) return nullptr;
  const Then then = open(tag);
  if (then == Then::give_up) return nullptr;
  if (then == Then::read_svg) return svg_element(p);
  p = *p == '>' ? p + 1 : attributes(p);
  if (p == nullptr || then == Then::stay) return p;
  if (then == Then::read_raw) p = raw_text(p, tag);
  pop();
  return p;
}

const char* QuickHtmlReader::end_tag(const char* p) {
  if (!is_alpha(*p)) return nullptr;
  Tag tag{.position = position_of(p - 2)};
  p = tag_name(p, tag);
  if (p == nullptr || tag.rules().rule == TagRule::never) return nullptr;
  while (is_tag_char(*p, kTagSpace)) ++p;
  return *p == '>' && close(tag) ? p + 1 : nullptr;
}

// From behind a name to behind the tag.
const char* QuickHtmlReader::attributes(const char* p) {
  const std::size_t first = tree_.attributes.size();
  while (true) {
    while (is_tag_char(*p, kTagSpace)) ++p;
    if (*p == '>') return p + 1;
    if (*p == '/') return p[1] == '>' ? p + 2 : nullptr;
    const char* const name = p;
    std::uint8_t seen = 0;
    for (; is_name_char(*p, kInAttributeName); ++p) seen |= kNameClass[static_cast<unsigned char>(*p)];
    std::string_view key(name, p);
    if (key.empty() || !is_tag_char(*p, kEndsAttribute) || tree_.attributes.size() - first >= kAttributesOfTag) {
      return nullptr;
    }
    if ((seen & kCapital) != 0) key = made_lower(key);
    while (is_tag_char(*p, kTagSpace)) ++p;
    std::string_view value;
    if (*p == '=') {
      p = attribute_value(p + 1, value);
      if (p == nullptr) return nullptr;
    }
    builder_.attribute(key, value);
  }
}

const char* QuickHtmlReader::attribute_value(const char* p, std::string_view& value) {
  while (is_tag_char(*p, kTagSpace)) ++p;
  if (*p != '"' && *p != '\'') {
    const char* const start = p;
    for (; !is_tag_char(*p, kEndsUnquoted); ++p) {
      if (is_name_char(*p, kNotInUnquoted)) return nullptr;
    }
    value = {start, p};
    return value.empty() ? nullptr : p;
  }
  const char quote = *p++;
  const char* const start = p;
  p = find_byte(p, end_, quote, '&', '\r');
  if (p == end_ || *p == '\r') return nullptr;
  if (*p == '&') {
    p = find_byte(p, end_, quote, '\r');
    if (p == end_ || *p == '\r') return nullptr;
    scratch_.clear();
    if (!append_plain_references({start, p}, scratch_)) return nullptr;
    value = made({scratch_.data(), scratch_.size()});
  } else {
    value = {start, p};
  }
  ++p;
  return is_tag_char(*p, kEndsTagName) ? p : nullptr;
}

std::string_view QuickHtmlReader::made_lower(std::string_view name) {
  scratch_.assign(name.begin(), name.end());
  std::ranges::transform(scratch_, scratch_.begin(), to_lower);
  return made({scratch_.data(), scratch_.size()});
}

// From behind the name of an svg element, which is open, to behind its end tag. There are drawings in it and nothing
// else, whose names are in lower case, and each has its end tag or is written as empty.
const char* QuickHtmlReader::svg_element(const char* p) {
  const std::size_t outside = open_.size() - 1;
  if ((p = svg_attributes(p)) == nullptr) return nullptr;
  while (open_.size() > outside) {
    const char* const from = p;
    p = find_byte(p, end_, '<', '&', '\r');
    if (p == end_ || *p != '<' || !add_text(from, p, false) || !is_within_limits()) return nullptr;
    Tag tag{.position = position_of(p)};
    if (p[1] == '!') {
      p = p[2] == '-' && p[3] == '-' ? comment(p + 4) : nullptr;
    } else if (p[1] == '/') {
      p = tag_name(p + 2, tag);
      if (p == nullptr || *p++ != '>' || tag.name != tree_.names[open_.back().name]) return nullptr;
      pop();
    } else {
      p = tag_name(p + 1, tag);
      if (p == nullptr || std::ranges::find(kSvgShapes, tag.name) == std::end(kSvgShapes)) return nullptr;
      push(tag);
      p = svg_attributes(p);
    }
    if (p == nullptr) return nullptr;
  }
  return p;
}

// The attributes of the element that was opened last, which they close where its tag is written as empty. None is one
// that the parser would write in another way, but `viewBox`.
const char* QuickHtmlReader::svg_attributes(const char* p) {
  const std::size_t first = tree_.attributes.size();
  p = *p == '>' ? p + 1 : attributes(p);
  if (p == nullptr) return nullptr;
  bool has_view_box = false;
  for (std::size_t i = first; i < tree_.attributes.size(); ++i) {
    std::string_view& name = tree_.attributes[i].name;
    if (name == "viewbox" && !has_view_box) {
      has_view_box = true;
      name = "viewBox";
    } else if (std::ranges::find(kSvgAttributes, name) == std::end(kSvgAttributes) &&
               (!name.contains('-') || name.contains(':'))) {
      return nullptr;
    }
  }
  // An unquoted value goes to the '>'.
  const std::string_view last = tree_.attributes.size() > first ? tree_.attributes.back().value : std::string_view{};
  const bool ends_in_value = !last.empty() && last.data() + last.size() == p - 1;
  if (p[-2] == '/' && !ends_in_value) pop();
  return p;
}

// From behind the start tag of an element whose text has no tags to behind its end tag.
const char* QuickHtmlReader::raw_text(const char* p, const Tag& tag) {
  const bool is_script = tag.id == TagId::script;
  const bool takes_references = tag.id == TagId::title || tag.id == TagId::textarea;
  const bool drops_newline = tag.id == TagId::textarea;
  const char* const start = p;
  bool has_references = false;
  for (;; ++p) {
    p = find_byte(p, end_, '<', '&', '\r');
    if (p == end_ || *p == '\r') return nullptr;
    if (*p == '&') {
      has_references = takes_references;
    } else if (is_script && p[1] == '!') {
      return nullptr;
    } else if (p[1] == '/' && is_alpha(p[2])) {
      Tag other;
      const char* const behind = tag_name(p + 2, other);
      if (other.id == tag.id && behind != nullptr && *behind == '>') {
        drops_newline_ = drops_newline;
        return add_text(start, p, has_references) ? behind + 1 : nullptr;
      }
      if (!is_script || other.id == tag.id) return nullptr;
    }
  }
}

const char* QuickHtmlReader::declaration(const char* p) {
  return p[0] == '-' && p[1] == '-' ? comment(p + 2) : doctype(p);
}

const char* QuickHtmlReader::comment(const char* p) {
  if (p[0] == '>' || (p[0] == '-' && p[1] == '>')) return nullptr;
  const char* const start = p;
  for (; (p = find_byte(p, end_, '>', '\r')) != end_; ++p) {
    if (*p == '\r') return nullptr;
    if (p - start < 2 || p[-1] != '-' || p[-2] != '-') continue;
    const std::string_view text(start, p - 2);
    if (text.find("--!") != std::string_view::npos) return nullptr;
    if (mode_ == Mode::after_body) {
      behind_body_.emplace_back(text, position_of(start));
    } else if (mode_ == Mode::after_after_body) {
      behind_html_.emplace_back(text, position_of(start));
    } else {
      builder_.add(TreeNode::Kind::comment, text, position_of(start));
    }
    return p + 1;
  }
  return nullptr;
}

// `<!DOCTYPE html>`, and with what older versions have behind that.
const char* QuickHtmlReader::doctype(const char* p) {
  if (mode_ != Mode::initial || !starts_with_lower({p, end_}, "doctype")) return nullptr;
  p += 7;
  if (!is_tag_char(*p, kTagSpace)) return nullptr;
  while (is_tag_char(*p, kTagSpace)) ++p;
  if (!starts_with_lower({p, end_}, "html")) return nullptr;
  p += 4;
  const char* const close = find_byte(p, end_, '>');
  const std::string_view rest(p, close);
  has_plain_doctype_ = trim_space(rest).empty();
  if (!has_plain_doctype_) {
    const std::string_view ids = trim_space(rest);
    const auto quotes = std::ranges::count(ids, '"');
    if (!is_tag_char(*p, kTagSpace) || !(starts_with_lower(ids, "public \"") || starts_with_lower(ids, "system \"")) ||
        !ids.ends_with('"') || (quotes != 2 && quotes != 4) || ids.find_first_of("'<=\r") != std::string_view::npos) {
      return nullptr;
    }
  }
  mode_ = Mode::before_html;
  return close + 1;
}

// --- texts ----------------------------------------------------------------------------------------------------------

bool QuickHtmlReader::text(const char* from, const char* to, bool has_references) {
  if (from == to) {
    drops_newline_ = false;
    return true;
  }
  if (mode_ == Mode::in_body || mode_ == Mode::in_cell || mode_ == Mode::in_caption || mode_ == Mode::in_select) {
    return add_text(from, to, has_references);
  }
  const bool is_white = std::all_of(from, to, is_text_space);
  switch (mode_) {
    case Mode::initial:
    case Mode::before_html:
    case Mode::before_head:
    case Mode::in_head:
    case Mode::after_head:
      if (is_white) return mode_ < Mode::in_head || add_text(from, to, false);
      if (is_text_space(*from) || *from == '&') return false;
      open_body();
      return add_text(from, to, has_references);
    default: return is_white && add_text(from, to, false);
  }
}

bool QuickHtmlReader::add_text(const char* from, const char* to, bool has_references) {
  const std::uint32_t position = position_of(from);
  if (std::exchange(drops_newline_, false) && from != to) {
    if (*from == '&') return false;
    if (*from == '\n') ++from;
  }
  if (from == to) return true;
  std::string_view text(from, to);
  if (has_references) {
    scratch_.clear();
    if (!append_plain_references(text, scratch_)) return false;
    text = {scratch_.data(), scratch_.size()};
  }
  if (TreeNode* const last = builder_.last_text()) {
    is_made_ = true;
    last->text = made_.join(last->text, text);
    last->position = 0;  // as the parser has it
  } else {
    builder_.add(TreeNode::Kind::text, has_references ? made(text) : text, position);
  }
  return true;
}

std::optional<DocumentTree> build_quick_html_tree(std::string_view html, const DocumentLimits& limits) {
  if (html.size() > limits.most_bytes) return std::nullopt;
  DocumentTree tree;
  tree.nodes.reserve(html.size() / 16 + 16);
  tree.attributes.reserve(html.size() / 32 + 16);
  QuickHtmlReader reader(html, limits, tree);
  if (!reader.run()) return std::nullopt;
  tree.storage = std::move(reader).texts();
  return tree;
}

}  // namespace argiope
