// The names of HTML's elements as the quick tree builder (quick_html_tree.hpp) needs them: which one a tag is, and
// which rules of the HTML standard's tree construction (13.2.6) it has. Private to quick_html_tree.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "web/html/internal/html_walker.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

// The effect of a start tag in a body. `never`: what the quick builder leaves to the parser.
enum class TagRule : std::uint8_t {
  other,         // opens an element
  never,         //
  root,          // html, head, body
  metadata,      // has no content, and belongs into the head
  raw,           // its text has no tags
  raw_block,     // the same, in the body alone
  noscript,      // in the head: with metadata only
  block,         // closes a p
  heading,       //
  preformatted,  // a block whose first line end is not part of it
  form,          //
  item,          // li
  definition,    // dd, dt
  button,        //
  formatting,    //
  object,        // no end tag in it closes what is outside
  svg,
  table,        //
  table_part,   //
  empty,        // has no content
  empty_block,  // the same, and closes a p
  select,       //
  option,       // option, optgroup
  ruby_base,    // rb, rtc
  ruby_text,    // rp, rt
};

// Which of the standard's lists an element is in.
inline constexpr std::uint16_t kSpecial = 1;
inline constexpr std::uint16_t kScope = 2;        // ends "in scope", and then all other scopes but those of tables
inline constexpr std::uint16_t kButtonScope = 4;  // ends "in button scope"
inline constexpr std::uint16_t kListScope = 8;    // ends "in list item scope"
inline constexpr std::uint16_t kTableScope = 16;  // ends "in table scope"
inline constexpr std::uint16_t kFormatting = 32;  // is in the list of active formatting elements
inline constexpr std::uint16_t kMarker = 64;      // puts a marker into that list
inline constexpr std::uint16_t kImplied = 128;    // is closed where end tags are implied
inline constexpr std::uint16_t kBlockEnd = 256;   // its end tag closes all that is open in it

struct HtmlTag {
  std::string_view name;
  TagRule rule = TagRule::other;
  std::uint16_t lists = 0;
};

namespace detail {

inline constexpr std::uint16_t kAnyScope = kScope | kButtonScope | kListScope;
inline constexpr HtmlTag kHtmlTags[] = {
    {"", TagRule::other, 0},  // any other
    {"html", TagRule::root, kSpecial | kAnyScope | kTableScope},
    {"head", TagRule::root, kSpecial},
    {"body", TagRule::root, kSpecial},
    {"p", TagRule::block, kSpecial | kImplied},
    {"a", TagRule::formatting, kFormatting},
    {"td", TagRule::table_part, kSpecial | kAnyScope | kMarker},
    {"th", TagRule::table_part, kSpecial | kAnyScope | kMarker},
    {"tr", TagRule::table_part, kSpecial},
    {"tbody", TagRule::table_part, kSpecial},
    {"thead", TagRule::table_part, kSpecial},
    {"tfoot", TagRule::table_part, kSpecial},
    {"caption", TagRule::table_part, kSpecial | kAnyScope | kMarker},
    {"colgroup", TagRule::table_part, kSpecial},
    {"col", TagRule::table_part, kSpecial},
    {"table", TagRule::table, kSpecial | kAnyScope | kTableScope},
    {"script", TagRule::raw, kSpecial},
    {"style", TagRule::raw, kSpecial},
    {"title", TagRule::raw, kSpecial},
    {"textarea", TagRule::raw_block, kSpecial},
    {"iframe", TagRule::raw_block, kSpecial},
    {"noscript", TagRule::noscript, kSpecial},
    {"select", TagRule::select, kSpecial},
    {"option", TagRule::option, kImplied},
    {"optgroup", TagRule::option, kImplied},
    {"form", TagRule::form, kSpecial},
    {"li", TagRule::item, kSpecial | kImplied},
    {"dd", TagRule::definition, kSpecial | kImplied},
    {"dt", TagRule::definition, kSpecial | kImplied},
    {"button", TagRule::button, kSpecial | kButtonScope | kBlockEnd},
    {"br", TagRule::empty, kSpecial},
    {"link", TagRule::metadata, kSpecial},
    {"ruby", TagRule::other, 0},
    {"rtc", TagRule::ruby_base, kImplied},
    {"div", TagRule::block, kSpecial | kBlockEnd},
    {"address", TagRule::block, kSpecial | kBlockEnd},
    {"base", TagRule::metadata, kSpecial},
    // From here on a name is known by its rule and lists alone.
    {"meta", TagRule::metadata, kSpecial},
    {"basefont", TagRule::metadata, kSpecial},
    {"bgsound", TagRule::metadata, kSpecial},
    {"article", TagRule::block, kSpecial | kBlockEnd},
    {"aside", TagRule::block, kSpecial | kBlockEnd},
    {"blockquote", TagRule::block, kSpecial | kBlockEnd},
    {"center", TagRule::block, kSpecial | kBlockEnd},
    {"details", TagRule::block, kSpecial | kBlockEnd},
    {"dialog", TagRule::block, kBlockEnd},
    {"dir", TagRule::block, kSpecial | kBlockEnd},
    {"dl", TagRule::block, kSpecial | kBlockEnd},
    {"fieldset", TagRule::block, kSpecial | kBlockEnd},
    {"figcaption", TagRule::block, kSpecial | kBlockEnd},
    {"figure", TagRule::block, kSpecial | kBlockEnd},
    {"footer", TagRule::block, kSpecial | kBlockEnd},
    {"header", TagRule::block, kSpecial | kBlockEnd},
    {"hgroup", TagRule::block, kSpecial | kBlockEnd},
    {"main", TagRule::block, kSpecial | kBlockEnd},
    {"menu", TagRule::block, kSpecial | kBlockEnd},
    {"nav", TagRule::block, kSpecial | kBlockEnd},
    {"ol", TagRule::block, kSpecial | kListScope | kBlockEnd},
    {"section", TagRule::block, kSpecial | kBlockEnd},
    {"summary", TagRule::block, kSpecial | kBlockEnd},
    {"ul", TagRule::block, kSpecial | kListScope | kBlockEnd},
    {"h1", TagRule::heading, kSpecial},
    {"h2", TagRule::heading, kSpecial},
    {"h3", TagRule::heading, kSpecial},
    {"h4", TagRule::heading, kSpecial},
    {"h5", TagRule::heading, kSpecial},
    {"h6", TagRule::heading, kSpecial},
    {"pre", TagRule::preformatted, kSpecial | kBlockEnd},
    {"listing", TagRule::preformatted, kSpecial | kBlockEnd},
    {"b", TagRule::formatting, kFormatting},
    {"big", TagRule::formatting, kFormatting},
    {"code", TagRule::formatting, kFormatting},
    {"em", TagRule::formatting, kFormatting},
    {"font", TagRule::formatting, kFormatting},
    {"i", TagRule::formatting, kFormatting},
    {"s", TagRule::formatting, kFormatting},
    {"small", TagRule::formatting, kFormatting},
    {"strike", TagRule::formatting, kFormatting},
    {"strong", TagRule::formatting, kFormatting},
    {"tt", TagRule::formatting, kFormatting},
    {"u", TagRule::formatting, kFormatting},
    {"applet", TagRule::object, kSpecial | kAnyScope | kMarker},
    {"marquee", TagRule::object, kSpecial | kAnyScope | kMarker},
    {"object", TagRule::object, kSpecial | kAnyScope | kMarker},
    {"area", TagRule::empty, kSpecial},
    {"embed", TagRule::empty, kSpecial},
    {"img", TagRule::empty, kSpecial},
    {"input", TagRule::empty, kSpecial},
    {"keygen", TagRule::empty, 0},
    {"param", TagRule::empty, kSpecial},
    {"source", TagRule::empty, kSpecial},
    {"track", TagRule::empty, kSpecial},
    {"wbr", TagRule::empty, kSpecial},
    {"hr", TagRule::empty_block, kSpecial},
    {"rb", TagRule::ruby_base, kImplied},
    {"rp", TagRule::ruby_text, kImplied},
    {"rt", TagRule::ruby_text, kImplied},
    {"frame", TagRule::never, 0},
    {"frameset", TagRule::never, 0},
    {"image", TagRule::never, 0},
    {"isindex", TagRule::never, 0},
    {"math", TagRule::never, 0},
    {"menuitem", TagRule::never, 0},
    {"nobr", TagRule::never, 0},
    {"noembed", TagRule::never, 0},
    {"noframes", TagRule::never, 0},
    {"plaintext", TagRule::never, 0},
    {"svg", TagRule::svg, 0},
    {"template", TagRule::never, 0},
    {"xmp", TagRule::never, 0},
    // Of SVG, with capital letters there, which the parser writes wherever they are.
    {"altglyph", TagRule::never, 0},
    {"altglyphdef", TagRule::never, 0},
    {"altglyphitem", TagRule::never, 0},
    {"animatecolor", TagRule::never, 0},
    {"animatemotion", TagRule::never, 0},
    {"animatetransform", TagRule::never, 0},
    {"clippath", TagRule::never, 0},
    {"feblend", TagRule::never, 0},
    {"fecolormatrix", TagRule::never, 0},
    {"fecomponenttransfer", TagRule::never, 0},
    {"fecomposite", TagRule::never, 0},
    {"feconvolvematrix", TagRule::never, 0},
    {"fediffuselighting", TagRule::never, 0},
    {"fedisplacementmap", TagRule::never, 0},
    {"fedistantlight", TagRule::never, 0},
    {"fedropshadow", TagRule::never, 0},
    {"feflood", TagRule::never, 0},
    {"fefunca", TagRule::never, 0},
    {"fefuncb", TagRule::never, 0},
    {"fefuncg", TagRule::never, 0},
    {"fefuncr", TagRule::never, 0},
    {"fegaussianblur", TagRule::never, 0},
    {"feimage", TagRule::never, 0},
    {"femerge", TagRule::never, 0},
    {"femergenode", TagRule::never, 0},
    {"femorphology", TagRule::never, 0},
    {"feoffset", TagRule::never, 0},
    {"fepointlight", TagRule::never, 0},
    {"fespecularlighting", TagRule::never, 0},
    {"fespotlight", TagRule::never, 0},
    {"fetile", TagRule::never, 0},
    {"feturbulence", TagRule::never, 0},
    {"foreignobject", TagRule::never, 0},
    {"glyphref", TagRule::never, 0},
    {"lineargradient", TagRule::never, 0},
    {"radialgradient", TagRule::never, 0},
    {"textpath", TagRule::never, 0},
    {"abbr", TagRule::other, 0},
    {"audio", TagRule::other, 0},
    {"cite", TagRule::other, 0},
    {"del", TagRule::other, 0},
    {"dfn", TagRule::other, 0},
    {"ins", TagRule::other, 0},
    {"kbd", TagRule::other, 0},
    {"label", TagRule::other, 0},
    {"legend", TagRule::other, 0},
    {"mark", TagRule::other, 0},
    {"picture", TagRule::other, 0},
    {"q", TagRule::other, 0},
    {"samp", TagRule::other, 0},
    {"span", TagRule::other, 0},
    {"sub", TagRule::other, 0},
    {"sup", TagRule::other, 0},
    {"time", TagRule::other, 0},
    {"var", TagRule::other, 0},
    {"video", TagRule::other, 0},
};

}  // namespace detail

// The place of a name in the table. Those that a rule asks for by name are named here, in the table's order.
enum class TagId : std::uint8_t {
  other,
  html,
  head,
  body,
  p,
  a,
  td,
  th,
  tr,
  tbody,
  thead,
  tfoot,
  caption,
  colgroup,
  col,
  table,
  script,
  style,
  title,
  textarea,
  iframe,
  noscript,
  select,
  option,
  optgroup,
  form,
  li,
  dd,
  dt,
  button,
  br,
  link,
  ruby,
  rtc,
  div,
  address,
  base,
};
inline constexpr std::size_t kHtmlTagCount = std::size(detail::kHtmlTags);
static_assert(detail::kHtmlTags[static_cast<std::size_t>(TagId::base)].name == "base");

constexpr const HtmlTag& html_tag(TagId tag) noexcept { return detail::kHtmlTags[static_cast<std::size_t>(tag)]; }

namespace detail {

// Hash table with open addressing: places in kHtmlTags, 0 where there is none.
inline constexpr std::size_t kTagSlots = 512;
constexpr std::size_t tag_slot(std::uint64_t packed) noexcept { return packed * 0x9E3779B97F4A7C15u >> 55; }
inline constexpr std::array<std::uint8_t, kTagSlots> kTagTable = [] {
  std::array<std::uint8_t, kTagSlots> table{};
  for (std::size_t i = 1; i < kHtmlTagCount; ++i) {
    std::size_t slot = tag_slot(pack_name(kHtmlTags[i].name));
    while (table[slot] != 0) slot = (slot + 1) % kTagSlots;
    table[slot] = static_cast<std::uint8_t>(i);
  }
  return table;
}();
inline constexpr std::array<std::uint64_t, kHtmlTagCount> kPackedTags = [] {
  std::array<std::uint64_t, kHtmlTagCount> packed{};
  for (std::size_t i = 0; i < kHtmlTagCount; ++i) packed[i] = pack_name(kHtmlTags[i].name);
  return packed;
}();

}  // namespace detail

// Which element a name is, that pack_name() has made `packed`.
inline TagId find_html_tag(std::uint64_t packed, std::string_view name) noexcept {
  for (std::size_t slot = detail::tag_slot(packed);; slot = (slot + 1) % detail::kTagSlots) {
    const std::uint8_t place = detail::kTagTable[slot];
    if (place == 0) return TagId::other;
    if (detail::kPackedTags[place] != packed) continue;
    // Of a longer name only its last eight characters are packed.
    const std::string_view known = detail::kHtmlTags[place].name;
    if (name.size() == known.size() && (name.size() <= 8 || equals_lower(name, known))) {
      return static_cast<TagId>(place);
    }
  }
}

}  // namespace argiope
