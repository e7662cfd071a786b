// Which elements the tags of a plain page open and close: the rules of each insertion mode (HTML standard, 13.2.6.4),
// as far as they are here.
#include <algorithm>

#include "document/quick_html_reader.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

// --- open elements --------------------------------------------------------------------------------------------------

std::uint32_t QuickHtmlReader::name_of(TagId id) {
  std::uint32_t& place = names_[static_cast<std::size_t>(id)];
  if (place == 0) {
    tree_.names.push_back(html_tag(id).name);
    place = static_cast<std::uint32_t>(tree_.names.size());
  }
  return place - 1;
}

// Of a name that is not in the table, where the page has few of them.
std::uint32_t QuickHtmlReader::name_of(const Tag& tag) {
  if (tag.id != TagId::other) return name_of(tag.id);
  for (const std::uint32_t place : other_names_) {
    if (equals_lower(tag.name, tree_.names[place])) return place;
  }
  const bool is_lower = std::ranges::all_of(tag.name, [](char c) { return c == to_lower(c); });
  tree_.names.push_back(is_lower ? tag.name : made_lower(tag.name));
  other_names_.push_back(static_cast<std::uint32_t>(tree_.names.size() - 1));
  return other_names_.back();
}

void QuickHtmlReader::push(TagId id, std::uint32_t name, std::uint32_t position) {
  builder_.open(name, position);
  const std::uint16_t lists = html_tag(id).lists;
  Open element{.id = id, .p_in_scope = false, .formattings = 0, .lists = lists, .name = name};
  if (!open_.empty()) {
    element.p_in_scope = id == TagId::p || ((lists & (kScope | kButtonScope)) == 0 && open_.back().p_in_scope);
    if ((lists & kMarker) == 0) element.formattings = open_.back().formattings + ((lists & kFormatting) != 0 ? 1 : 0);
  }
  open_.push_back(element);
}

// Closes the element at `place` and all in it. Gives up where that would leave formatting elements behind, which had to
// be opened again: it takes those that are since the last marker from the list where the element has put that marker
// there.
bool QuickHtmlReader::close_to(std::size_t place) {
  const std::uint16_t leaves = (open_[place].lists & kMarker) != 0 ? kMarker : kMarker | kFormatting;
  while (open_.size() > place + 1) {
    if ((open_.back().lists & leaves) != 0) return false;
    pop();
  }
  pop();
  return true;
}

void QuickHtmlReader::close_implied(TagId but) {
  while ((open_.back().lists & kImplied) != 0 && open_.back().id != but) pop();
}

std::size_t QuickHtmlReader::find_in_scope(TagId id, std::uint16_t scope) const noexcept {
  for (std::size_t i = open_.size(); i-- > 0;) {
    if (open_[i].id == id) return i;
    if ((open_[i].lists & scope) != 0) break;
  }
  return kNone;
}

// "Reset the insertion mode appropriately", for what is around a table or a select.
bool QuickHtmlReader::leave_select_or_table() {
  for (std::size_t i = open_.size(); i-- > 0;) {
    switch (open_[i].id) {
      case TagId::td:
      case TagId::th: mode_ = Mode::in_cell; return true;
      case TagId::caption: mode_ = Mode::in_caption; return true;
      case TagId::body: mode_ = Mode::in_body; return true;
      case TagId::tr:
      case TagId::tbody:
      case TagId::thead:
      case TagId::tfoot:
      case TagId::table:
      case TagId::colgroup:
      case TagId::select: return false;
      default: break;
    }
  }
  return false;
}

// --- start tags -----------------------------------------------------------------------------------------------------

QuickHtmlReader::Then QuickHtmlReader::open(const Tag& tag) {
  while (true) {
    if (const Then then = open_in_mode(tag); then != Then::again) return then;
  }
}

QuickHtmlReader::Then QuickHtmlReader::open_in_mode(const Tag& tag) {
  switch (mode_) {
    case Mode::initial: mode_ = Mode::before_html; return Then::again;
    case Mode::before_html:
      mode_ = Mode::before_head;
      if (tag.id == TagId::html) return push(tag);
      push_implied(TagId::html);
      return Then::again;
    case Mode::before_head:
      if (tag.id == TagId::html) return Then::give_up;
      mode_ = Mode::in_head;
      if (tag.id == TagId::head) return push(tag);
      push_implied(TagId::head);
      return Then::again;
    case Mode::in_head:
    case Mode::in_head_noscript:
    case Mode::after_head: return open_in_head(tag);
    case Mode::in_body: return open_in_body(tag);
    case Mode::in_caption:
    case Mode::in_cell:
      if (tag.rules().rule != TagRule::table_part) return open_in_body(tag);
      return close_cell_or_caption() ? Then::again : Then::give_up;
    case Mode::in_table:
    case Mode::in_column_group:
    case Mode::in_table_body:
    case Mode::in_row: return open_in_table(tag);
    case Mode::in_select: return open_in_select(tag);
    case Mode::after_body:
    case Mode::after_after_body: break;
  }
  return Then::give_up;
}

// Opens what is around a text or at the end of a page that has no tag for it.
void QuickHtmlReader::open_body() {
  constexpr Tag kOther;
  while (mode_ < Mode::in_body) (void)open_in_mode(kOther);
}

QuickHtmlReader::Then QuickHtmlReader::open_in_head(const Tag& tag) {
  const TagRule rule = tag.rules().rule;
  if (mode_ == Mode::in_head_noscript) {
    const bool may_be = (rule == TagRule::metadata && tag.id != TagId::base) || tag.id == TagId::style;
    return !may_be ? Then::give_up : push(tag, rule == TagRule::metadata ? Then::close : Then::read_raw);
  }
  if (mode_ == Mode::after_head) {
    if (rule == TagRule::metadata || rule == TagRule::raw || tag.id == TagId::head || tag.id == TagId::html) {
      return Then::give_up;
    }
    mode_ = Mode::in_body;
    if (tag.id == TagId::body) return push(tag);
    push_implied(TagId::body);
    return Then::again;
  }
  switch (rule) {
    case TagRule::metadata: return push(tag, Then::close);
    case TagRule::raw: return push(tag, Then::read_raw);
    case TagRule::noscript: mode_ = Mode::in_head_noscript; return push(tag);
    case TagRule::root:
      if (tag.id != TagId::body) return Then::give_up;
      [[fallthrough]];
    default:
      pop();
      mode_ = Mode::after_head;
      return Then::again;
  }
}

// In a table, but not in a cell or caption.
QuickHtmlReader::Then QuickHtmlReader::open_in_table(const Tag& tag) {
  const bool is_cell = tag.id == TagId::td || tag.id == TagId::th;
  if (mode_ == Mode::in_column_group && tag.id == TagId::col) return push(tag, Then::close);
  if (mode_ == Mode::in_row && is_cell) {
    mode_ = Mode::in_cell;
    return push(tag);
  }
  if (mode_ == Mode::in_table_body && tag.id == TagId::tr) {
    mode_ = Mode::in_row;
    return push(tag);
  }
  if (mode_ == Mode::in_table_body && is_cell) {
    push_implied(TagId::tr);
    mode_ = Mode::in_row;
    return Then::again;
  }
  if (mode_ != Mode::in_column_group && (tag.id == TagId::script || tag.id == TagId::style)) {
    return push(tag, Then::read_raw);
  }
  if (tag.rules().rule != TagRule::table_part) return Then::give_up;
  if (mode_ != Mode::in_table) {
    close_table_part();
    return Then::again;
  }
  switch (tag.id) {
    case TagId::caption: mode_ = Mode::in_caption; return push(tag);
    case TagId::colgroup: mode_ = Mode::in_column_group; return push(tag);
    case TagId::col:
      push_implied(TagId::colgroup);
      mode_ = Mode::in_column_group;
      return Then::again;
    case TagId::tbody:
    case TagId::thead:
    case TagId::tfoot: mode_ = Mode::in_table_body; return push(tag);
    default:
      push_implied(TagId::tbody);
      mode_ = Mode::in_table_body;
      return Then::again;
  }
}

QuickHtmlReader::Then QuickHtmlReader::open_in_select(const Tag& tag) {
  if (tag.id == TagId::script) return push(tag, Then::read_raw);
  if (tag.rules().rule != TagRule::option) return Then::give_up;
  if (current() == TagId::option) pop();
  if (tag.id == TagId::optgroup && current() == TagId::optgroup) pop();
  return push(tag);
}

QuickHtmlReader::Then QuickHtmlReader::open_in_body(const Tag& tag) {
  switch (tag.rules().rule) {
    case TagRule::other:
    case TagRule::noscript: return push(tag);
    case TagRule::never:
    case TagRule::root:
    case TagRule::table_part: return Then::give_up;
    case TagRule::metadata:
    case TagRule::empty: return push(tag, Then::close);
    case TagRule::raw:
    case TagRule::raw_block: return push(tag, Then::read_raw);
    case TagRule::svg: return push(tag, Then::read_svg);
    case TagRule::block: return close_p() ? push(tag) : Then::give_up;
    case TagRule::empty_block: return close_p() ? push(tag, Then::close) : Then::give_up;
    case TagRule::heading:
      if (!close_p()) return Then::give_up;
      if (html_tag(current()).rule == TagRule::heading) pop();
      return push(tag);
    case TagRule::preformatted:
      if (!close_p()) return Then::give_up;
      drops_newline_ = true;
      return push(tag);
    case TagRule::form:
      if (form_ != 0 || !close_p()) return Then::give_up;
      form_ = open_.size();
      return push(tag);
    case TagRule::item:
    case TagRule::definition: return close_items(tag.rules().rule) && close_p() ? push(tag) : Then::give_up;
    case TagRule::button: return find_in_scope(TagId::button, kScope) == kNone ? push(tag) : Then::give_up;
    case TagRule::formatting: return open_formatting(tag);
    case TagRule::object: return push(tag);
    case TagRule::table:
      // Where a p is open it depends on the doctype.
      if (open_.back().p_in_scope && (!has_plain_doctype_ || !close_p())) return Then::give_up;
      mode_ = Mode::in_table;
      return push(tag);
    case TagRule::select: mode_ = Mode::in_select; return push(tag);
    case TagRule::option:
      if (current() == TagId::option) pop();
      return push(tag);
    case TagRule::ruby_base:
    case TagRule::ruby_text:
      if (find_in_scope(TagId::ruby, kScope) != kNone) {
        close_implied(tag.rules().rule == TagRule::ruby_text ? TagId::rtc : TagId::other);
      }
      return push(tag);
  }
  return Then::give_up;
}

// Gives up where an `a` is in an `a`, and where the list may have three elements that are the same, which is the most
// it keeps.
QuickHtmlReader::Then QuickHtmlReader::open_formatting(const Tag& tag) {
  if (open_.back().formattings > 0) {
    int same = 0;
    for (std::size_t i = open_.size(); i-- > 0 && (open_[i].lists & kMarker) == 0;) {
      if (open_[i].id == tag.id && (tag.id == TagId::a || ++same == 3)) return Then::give_up;
    }
  }
  return push(tag);
}

// Before an li, or a dd or dt.
bool QuickHtmlReader::close_items(TagRule rule) {
  for (std::size_t i = open_.size(); i-- > 0;) {
    if (html_tag(open_[i].id).rule == rule) return close_to(i);
    const bool is_passed = open_[i].id == TagId::p || open_[i].id == TagId::div || open_[i].id == TagId::address;
    if ((open_[i].lists & kSpecial) != 0 && !is_passed) break;
  }
  return true;
}

// --- end tags -------------------------------------------------------------------------------------------------------

bool QuickHtmlReader::close_cell_or_caption() {
  std::size_t place = open_.size() - 1;
  while (place > 0 && html_tag(open_[place].id).rule != TagRule::table_part && open_[place].id != TagId::table) --place;
  const TagId id = open_[place].id;
  if (id != (mode_ == Mode::in_caption ? TagId::caption : id == TagId::th ? TagId::th : TagId::td)) return false;
  mode_ = mode_ == Mode::in_caption ? Mode::in_table : Mode::in_row;
  return close_to(place);
}

// The row, the group of rows or of columns that is open.
void QuickHtmlReader::close_table_part() {
  mode_ = mode_ == Mode::in_row ? Mode::in_table_body : Mode::in_table;
  pop();
}

bool QuickHtmlReader::close(const Tag& tag) {
  while (true) {
    switch (mode_) {
      case Mode::in_head:
        if (tag.id == TagId::body || tag.id == TagId::html || tag.id == TagId::br) return false;
        if (tag.id == TagId::head) {
          pop();
          mode_ = Mode::after_head;
        }
        return true;
      case Mode::in_head_noscript:
        if (tag.id != TagId::noscript) return false;
        pop();
        mode_ = Mode::in_head;
        return true;
      case Mode::in_caption:
      case Mode::in_cell:
        if (tag.rules().rule != TagRule::table_part && tag.rules().rule != TagRule::table &&
            tag.rules().rule != TagRule::root) {
          return close_in_body(tag);
        }
        if (find_in_scope(tag.id, kTableScope) == kNone || tag.rules().rule == TagRule::root) return false;
        if (!close_cell_or_caption()) return false;
        if (tag.id == TagId::caption || tag.id == TagId::td || tag.id == TagId::th) return true;
        break;
      case Mode::in_column_group:
      case Mode::in_table_body:
      case Mode::in_row: {
        const bool is_own = tag.id == current();
        if (!is_own && find_in_scope(tag.id, kTableScope) == kNone) return false;
        close_table_part();
        if (is_own) return true;
        break;
      }
      case Mode::in_table:
        if (tag.id != TagId::table || current() != TagId::table) return false;
        pop();
        return leave_select_or_table();
      case Mode::in_body: return close_in_body(tag);
      case Mode::in_select: return close_in_select(tag);
      case Mode::after_body:
        if (tag.id != TagId::html) return false;
        mode_ = Mode::after_after_body;
        return true;
      default: return false;
    }
  }
}

bool QuickHtmlReader::close_in_select(const Tag& tag) {
  if (tag.id == TagId::select) return close_to(find_in_scope(TagId::select, 0)) && leave_select_or_table();
  if (tag.rules().rule != TagRule::option) return false;
  if (tag.id == TagId::optgroup && current() == TagId::option && open_[open_.size() - 2].id == TagId::optgroup) pop();
  if (current() != tag.id) return false;
  pop();
  return true;
}

bool QuickHtmlReader::close_in_body(const Tag& tag) {
  const auto close_found = [this](std::size_t place) { return place == kNone || close_to(place); };
  const auto find_heading = [this] {
    for (std::size_t i = open_.size(); i-- > 0;) {
      if (html_tag(open_[i].id).rule == TagRule::heading) return i;
      if ((open_[i].lists & kScope) != 0) break;
    }
    return kNone;
  };
  if (tag.is(kBlockEnd)) return close_found(find_in_scope(tag.id, kScope));
  switch (tag.rules().rule) {
    case TagRule::root:
      if (tag.id == TagId::head || find_in_scope(TagId::body, kScope) == kNone) return false;
      mode_ = tag.id == TagId::html ? Mode::after_after_body : Mode::after_body;
      return true;
    case TagRule::block:  // the p alone
      if (!open_.back().p_in_scope) push_implied(TagId::p);
      return close_p();
    case TagRule::heading: return close_found(find_heading());
    case TagRule::item: return close_found(find_in_scope(TagId::li, kScope | kListScope));
    case TagRule::definition: return close_found(find_in_scope(tag.id, kScope));
    case TagRule::object: return close_found(find_in_scope(tag.id, kScope));
    case TagRule::form: return close_form();
    case TagRule::formatting: return close_formatting(tag);
    default: return tag.id != TagId::br && tag.rules().rule != TagRule::svg && close_other(tag);
  }
}

bool QuickHtmlReader::close_form() {
  const std::size_t place = std::exchange(form_, 0);
  if (place == 0 || place >= open_.size() || open_[place].id != TagId::form) return true;
  close_implied(TagId::other);
  return open_.size() == place + 1 && close_to(place);
}

// Where there is none of that name since the last marker the tag does nothing. Behind something special the elements
// overlap.
bool QuickHtmlReader::close_formatting(const Tag& tag) {
  bool overlaps = false;
  for (std::size_t i = open_.size(); i-- > 0 && (open_[i].lists & kMarker) == 0;) {
    if (open_[i].id == tag.id) return !overlaps && close_to(i);
    overlaps = overlaps || (open_[i].lists & kSpecial) != 0;
  }
  return true;
}

bool QuickHtmlReader::close_other(const Tag& tag) {
  for (std::size_t i = open_.size(); i-- > 0;) {
    if (open_[i].id == tag.id && (tag.id != TagId::other || equals_lower(tag.name, tree_.names[open_[i].name]))) {
      return close_to(i);
    }
    if ((open_[i].lists & kSpecial) != 0) break;
  }
  return true;
}

bool QuickHtmlReader::finish() {
  if (mode_ == Mode::in_head_noscript) return false;
  open_body();
  while (open_.size() > 1) pop();
  for (const auto& [text, position] : behind_body_) builder_.add(TreeNode::Kind::comment, text, position);
  pop();
  for (const auto& [text, position] : behind_html_) builder_.add(TreeNode::Kind::comment, text, position);
  builder_.finish();
  return true;
}

}  // namespace argiope
