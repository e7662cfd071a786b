// Reads a plain HTML page into rows (quick_html_tree.hpp): the HTML standard's tokeniser and tree construction (13.2.5
// and 13.2.6) in one pass, as far as plain pages need them. Private to quick_html_tree.cpp, which has the tokens, and
// quick_html_elements.cpp, which has the elements.
//
// This holds throughout: every element of the list of active formatting elements is open. So nothing is ever opened
// anew, and what the end tag of a formatting element closes is what is in it. Where a page is not like that, or needs
// anything else that is not here, a function gives up, and all that was made is dropped.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "document/document_tree.hpp"
#include "document/quick_html_tags.hpp"

namespace argiope {

// Texts that are not as they are written.
class MadeTexts {
 public:
  std::string_view keep(std::string_view text) { return join({}, text); }
  // One behind the other. Where `first` was made last it is made longer.
  std::string_view join(std::string_view first, std::string_view second) {
    const bool goes_on = !first.empty() && first.data() + first.size() == free_;
    if (!goes_on || free() < second.size()) {
      if (free() < first.size() + second.size()) add_chunk(first.size() + second.size());
      first = append(first);
    }
    append(second);
    return {first.data(), first.size() + second.size()};
  }

 private:
  std::size_t free() const noexcept { return static_cast<std::size_t>(end_ - free_); }
  std::string_view append(std::string_view text) {
    char* const at = free_;
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    free_ += text.size();
    return {at, text.size()};
  }
  void add_chunk(std::size_t least) {
    constexpr std::size_t kChunk = 4096;
    const std::size_t size = std::max(kChunk, 2 * least);
    free_ = chunks_.emplace_back(std::make_unique_for_overwrite<char[]>(size)).get();
    end_ = free_ + size;
  }

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  char* end_ = nullptr;
};

// One pass over one page.
class QuickHtmlReader {
 public:
  QuickHtmlReader(std::string_view html, const DocumentLimits& limits, DocumentTree& tree)
      : begin_(html.data()),
        end_(begin_ + (html.rfind('>') + 1)),
        end_of_text_(begin_ + html.size()),
        limits_(limits),
        tree_(tree),
        builder_(tree) {
    open_.reserve(64);
  }

  bool run();
  std::shared_ptr<const void> texts() && { return is_made_ ? std::make_shared<MadeTexts>(std::move(made_)) : nullptr; }

 private:
  // "Insertion modes" (13.2.4.1).
  enum class Mode : std::uint8_t {
    initial,
    before_html,
    before_head,
    in_head,
    in_head_noscript,
    after_head,
    in_body,
    in_table,
    in_caption,
    in_column_group,
    in_table_body,
    in_row,
    in_cell,
    in_select,
    after_body,
    after_after_body,
  };
  // The work that is left with the element that a start tag has opened; `again`: none yet, but the mode is another.
  enum class Then : std::uint8_t { give_up, again, stay, close, read_raw, read_svg };
  struct Tag {
    TagId id = TagId::other;
    std::uint32_t position = 0;
    std::string_view name;  // as written
    const HtmlTag& rules() const noexcept { return html_tag(id); }
    bool is(std::uint16_t list) const noexcept { return (rules().lists & list) != 0; }
  };
  struct Open {
    TagId id;
    bool p_in_scope;           // p is in button scope
    std::uint8_t formattings;  // of them, how many are open, from the last marker on
    std::uint16_t lists;
    std::uint32_t name;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::uint32_t position_of(const char* p) const noexcept { return static_cast<std::uint32_t>(p - begin_); }
  bool is_within_limits() noexcept;

  // Tokens. Functions that take a pointer return the place behind the token, null to give up.
  const char* tag_name(const char* p, Tag& tag) const noexcept;
  const char* start_tag(const char* p);
  const char* end_tag(const char* p);
  const char* attributes(const char* p);
  const char* attribute_value(const char* p, std::string_view& value);
  const char* raw_text(const char* p, const Tag& tag);
  const char* svg_element(const char* p);
  const char* svg_attributes(const char* p);
  const char* declaration(const char* p);
  const char* comment(const char* p);
  const char* doctype(const char* p);

  // Texts.
  bool text(const char* from, const char* to, bool has_references);
  bool add_text(const char* from, const char* to, bool has_references);
  std::string_view made(std::string_view text) {
    is_made_ = true;
    return made_.keep(text);
  }
  std::string_view made_lower(std::string_view name);

  // Elements.
  std::uint32_t name_of(TagId id);
  std::uint32_t name_of(const Tag& tag);
  void push(TagId id, std::uint32_t name, std::uint32_t position);
  Then push(const Tag& tag, Then then = Then::stay) {
    push(tag.id, name_of(tag), tag.position);
    return then;
  }
  void push_implied(TagId id) { push(id, name_of(id), kNoPosition); }
  void pop() {
    builder_.close();
    open_.pop_back();
  }
  TagId current() const noexcept { return open_.back().id; }
  bool close_to(std::size_t place);
  bool close_p() { return !open_.back().p_in_scope || close_to(find_in_scope(TagId::p, kScope)); }
  void close_implied(TagId but);
  std::size_t find_in_scope(TagId id, std::uint16_t scope) const noexcept;
  bool leave_select_or_table();

  Then open(const Tag& tag);
  Then open_in_mode(const Tag& tag);
  void open_body();
  Then open_in_head(const Tag& tag);
  Then open_in_table(const Tag& tag);
  Then open_in_select(const Tag& tag);
  Then open_in_body(const Tag& tag);
  Then open_formatting(const Tag& tag);
  bool close_items(TagRule rule);
  bool close_cell_or_caption();
  void close_table_part();
  bool close(const Tag& tag);
  bool close_in_select(const Tag& tag);
  bool close_in_body(const Tag& tag);
  bool close_formatting(const Tag& tag);
  bool close_other(const Tag& tag);
  bool close_form();
  bool finish();

  const char* const begin_;
  const char* const end_;  // behind the last '>', so that wherever a tag is read there is one ahead
  const char* const end_of_text_;
  const DocumentLimits& limits_;
  DocumentTree& tree_;
  TreeBuilder builder_;
  std::vector<Open> open_;
  std::array<std::uint32_t, kHtmlTagCount> names_{};  // the place in DocumentTree::names, plus one
  std::vector<std::uint32_t> other_names_;            // the places of names that are not in the table
  MadeTexts made_;
  std::vector<char> scratch_;
  // Comments behind the body, with their positions: of the html element, and of the document.
  std::vector<std::pair<std::string_view, std::uint32_t>> behind_body_, behind_html_;
  std::uint64_t looks_ = 0;
  std::size_t form_ = 0;  // the place of the form that was opened last and not closed by its end tag; 0: none
  Mode mode_ = Mode::initial;
  bool is_made_ = false;
  bool has_plain_doctype_ = false;
  bool drops_newline_ = false;  // at the beginning of the next text
};

}  // namespace argiope
