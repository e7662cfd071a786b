#include "document/document_text.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// How an element breaks the line before and behind it.
enum class Break : std::uint8_t { none, space, line, paragraph };

struct NamedBreak {
  std::string_view name;
  Break at;
};
// The elements that browsers show as blocks (HTML standard, 15.3), in the order of the names.
constexpr NamedBreak kBreaks[] = {
    {"address", Break::line},      {"article", Break::paragraph},
    {"aside", Break::paragraph},   {"blockquote", Break::paragraph},
    {"body", Break::paragraph},    {"br", Break::line},
    {"caption", Break::line},      {"center", Break::line},
    {"dd", Break::line},           {"details", Break::line},
    {"dialog", Break::line},       {"dir", Break::paragraph},
    {"div", Break::line},          {"dl", Break::paragraph},
    {"dt", Break::line},           {"fieldset", Break::line},
    {"figcaption", Break::line},   {"figure", Break::paragraph},
    {"footer", Break::paragraph},  {"form", Break::line},
    {"h1", Break::paragraph},      {"h2", Break::paragraph},
    {"h3", Break::paragraph},      {"h4", Break::paragraph},
    {"h5", Break::paragraph},      {"h6", Break::paragraph},
    {"header", Break::paragraph},  {"hgroup", Break::line},
    {"hr", Break::paragraph},      {"legend", Break::line},
    {"li", Break::line},           {"main", Break::paragraph},
    {"menu", Break::paragraph},    {"nav", Break::paragraph},
    {"ol", Break::paragraph},      {"optgroup", Break::line},
    {"option", Break::line},       {"p", Break::paragraph},
    {"pre", Break::paragraph},     {"search", Break::line},
    {"section", Break::paragraph}, {"summary", Break::line},
    {"table", Break::paragraph},   {"td", Break::space},
    {"th", Break::space},          {"title", Break::line},
    {"tr", Break::line},           {"ul", Break::paragraph},
};
static_assert(std::ranges::is_sorted(kBreaks, {}, &NamedBreak::name));

Break break_at(std::string_view name) noexcept {
  const auto* const found = std::ranges::lower_bound(kBreaks, name, {}, &NamedBreak::name);
  return found != std::end(kBreaks) && found->name == name ? found->at : Break::none;
}

// The elements whose digits are of another number than those beside them.
constexpr std::string_view kSetApart[] = {"del", "ins", "s", "strike", "sub", "sup"};

constexpr std::string_view kNotShown[] = {"audio", "canvas",  "datalist", "head",     "iframe",
                                          "math",  "noembed", "noframes", "noscript", "object",
                                          "rp",    "script",  "style",    "template", "video"};
static_assert(std::ranges::is_sorted(kNotShown));

// Of the declarations of an element the last counts.
bool is_not_displayed(std::string_view style) noexcept {
  bool is_none = false;
  while (!style.empty()) {
    const std::size_t end = std::min(style.find(';'), style.size());
    const std::string_view declaration = style.substr(0, end);
    style.remove_prefix(std::min(end + 1, style.size()));
    const std::size_t colon = std::min(declaration.find(':'), declaration.size());
    if (colon == declaration.size() || !equals_lower(trim_space(declaration.substr(0, colon)), "display")) continue;
    const std::string_view value = trim_space(declaration.substr(colon + 1));
    is_none = equals_lower(trim_space(value.substr(0, value.find('!'))), "none");
  }
  return is_none;
}

bool is_shown(std::string_view name) noexcept { return !std::ranges::binary_search(kNotShown, name); }

// By what it has of its own; style sheets are not read.
bool is_hidden(const DocumentTree& tree, NodeIndex node) noexcept {
  const TreeNode& row = tree.nodes[node];
  if (row.text == "dialog") return tree.find_attribute(node, "open") == nullptr;
  if (row.attributes == 0) return false;
  if (tree.find_attribute(node, "hidden") != nullptr) return true;
  const TreeAttribute* const style = tree.find_attribute(node, "style");
  return style != nullptr && is_not_displayed(style->value);
}

// Puts text behind text, with one kind of space between.
class TextWriter {
 public:
  explicit TextWriter(TextShape shape) : shape_(shape) {}

  void add(std::string_view text) {
    while (!text.empty()) {
      std::size_t words = 0;
      while (words < text.size() && space_at(text, words) == 0) ++words;
      if (words > 0) {
        flush();
        set_apart(text.front());
        out_ += text.substr(0, words);
        text.remove_prefix(words);
      }
      while (!text.empty()) {
        const std::size_t length = space_at(text, 0);
        if (length == 0) break;
        request(Break::space);
        text.remove_prefix(length);
      }
    }
  }
  void add_as_it_is(std::string_view text) {
    if (text.empty()) return;
    flush();
    out_ += text;
  }
  void request(Break what) { pending_ = std::max(pending_, what); }
  // Before the next digit, if it is right behind another one.
  void request_apart(char sign) { apart_ = sign; }
  std::string take() { return std::move(out_); }

 private:
  // The length of the white space at `at`, or 0.
  static std::size_t space_at(std::string_view text, std::size_t at) noexcept {
    if (is_space(text[at])) return 1;
    return text[at] == '\xc2' && at + 1 < text.size() && text[at + 1] == '\xa0' ? 2 : 0;
  }
  void set_apart(char next) {
    const char sign = std::exchange(apart_, '\0');
    if (sign != '\0' && is_digit(next) && !out_.empty() && is_digit(out_.back())) out_ += sign;
  }
  void flush() {
    const Break what = std::exchange(pending_, Break::none);
    if (what == Break::none || out_.empty()) return;
    if (shape_ != TextShape::lines || what == Break::space) {
      out_ += ' ';
    } else {
      out_ += what == Break::line ? "\n" : "\n\n";
    }
  }

  const TextShape shape_;
  std::string out_;
  Break pending_ = Break::none;
  char apart_ = '\0';
};

bool is_xhtml(const DocumentTree& tree) noexcept {
  const auto is_element = [](const TreeNode& node) { return node.kind == TreeNode::Kind::element; };
  const auto top = std::ranges::find_if(tree.nodes, is_element);
  return top != tree.nodes.end() && top->text == "html";
}

// Walks over what is shown.
class ShownText {
 public:
  ShownText(const DocumentTree& tree, TextShape shape, const LeftOut* left_out)
      : tree_(tree), shape_(shape), left_out_(left_out), writer_(shape) {}

  std::string of(NodeIndex top) {
    const NodeIndex end = tree_.nodes[top].end;
    for (NodeIndex node = top; node < end;) {
      close_until(node);
      const TreeNode& row = tree_.nodes[node];
      if (row.kind == TreeNode::Kind::text) add(row.text, node);
      const bool passes = row.kind == TreeNode::Kind::element && !enter(node, node == top);
      node = passes ? row.end : node + 1;
    }
    return writer_.take();
  }

 private:
  // Whether what is in it is shown.
  bool enter(NodeIndex node, bool is_top) {
    const TreeNode& row = tree_.nodes[node];
    if (!is_top && is_html_ && (!is_shown(row.text) || is_hidden(tree_, node))) return false;
    if (left_out_ != nullptr && (*left_out_)[node]) return false;
    if (shape_ == TextShape::figures && std::ranges::binary_search(kSetApart, row.text)) set_apart(row);
    const Break what = is_html_ ? break_at(row.text) : Break::none;
    if (what != Break::none) {
      writer_.request(what);
      if (row.text != "br") open_.push_back({row.end, what});
    }
    if (row.text == "pre" && pre_end_ <= node) pre_end_ = row.end;
    return true;
  }
  void set_apart(const TreeNode& row) {
    writer_.request_apart(row.text == "sup" ? '^' : ' ');
    apart_end_ = std::max(apart_end_, row.end);
  }
  void close_until(NodeIndex node) {
    if (apart_end_ != 0 && apart_end_ <= node) {
      writer_.request_apart(' ');
      apart_end_ = 0;
    }
    while (!open_.empty() && open_.back().first <= node) {
      writer_.request(open_.back().second);
      open_.pop_back();
    }
  }
  void add(std::string_view text, NodeIndex node) {
    if (node < pre_end_ && shape_ == TextShape::lines) return writer_.add_as_it_is(text);
    writer_.add(text);
  }

  const DocumentTree& tree_;
  const TextShape shape_;
  const LeftOut* const left_out_;
  const bool is_html_ = !tree_.is_xml || is_xhtml(tree_);
  TextWriter writer_;
  std::vector<std::pair<NodeIndex, Break>> open_;  // where it ends, and how
  NodeIndex pre_end_ = 0;
  NodeIndex apart_end_ = 0;  // 0: no such element is open
};

constexpr std::string_view kVoid[] = {"area",  "base",  "basefont", "bgsound", "br",    "col",
                                      "embed", "frame", "hr",       "img",     "input", "keygen",
                                      "link",  "meta",  "param",    "source",  "track", "wbr"};
constexpr std::string_view kRaw[] = {"iframe", "noembed", "noframes", "plaintext", "script", "style", "xmp"};
static_assert(std::ranges::is_sorted(kVoid) && std::ranges::is_sorted(kRaw));

void append_escaped(std::string_view text, bool in_attribute, bool is_xml, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '&') {
      out += "&amp;";
    } else if (c == '"' && in_attribute) {
      out += "&quot;";
    } else if (c == '<' && (!in_attribute || is_xml)) {
      out += "&lt;";
    } else if (c == '>' && (!in_attribute || is_xml)) {
      out += "&gt;";
    } else if (!is_xml && c == '\xc2' && i + 1 < text.size() && text[i + 1] == '\xa0') {
      out += "&nbsp;";
      ++i;
    } else {
      out += c;
    }
  }
}

// Walks over a part of a tree and writes it as HTML or XML.
class MarkupWriter {
 public:
  MarkupWriter(const DocumentTree& tree, std::string& out, const LeftOut* left_out)
      : tree_(tree), out_(out), left_out_(left_out) {}

  void write(NodeIndex first, NodeIndex end) {
    for (NodeIndex node = first; node < end;) {
      close_until(node);
      const bool passes = left_out_ != nullptr && (*left_out_)[node];
      if (!passes) write_one(node);
      node = passes ? tree_.nodes[node].end : node + 1;
    }
    close_until(kNoNode);
  }

 private:
  void write_one(NodeIndex node) {
    const TreeNode& row = tree_.nodes[node];
    switch (row.kind) {
      case TreeNode::Kind::root: return;
      case TreeNode::Kind::element: return open(node);
      case TreeNode::Kind::comment: out_.append("<!--").append(row.text).append("-->"); return;
      case TreeNode::Kind::text: {
        const NodeIndex parent = row.parent;
        const bool raw =
            !tree_.is_xml && parent != kNoNode && std::ranges::binary_search(kRaw, tree_.nodes[parent].text);
        if (raw) {
          out_ += row.text;
        } else {
          append_escaped(row.text, false, tree_.is_xml, out_);
        }
      }
    }
  }
  void open(NodeIndex node) {
    const TreeNode& row = tree_.nodes[node];
    out_.append("<").append(row.text);
    for (std::uint32_t i = 0; i < row.attributes; ++i) {
      const TreeAttribute& attribute = tree_.attributes[row.first_attribute + i];
      out_.append(" ").append(attribute.name).append("=\"");
      append_escaped(attribute.value, true, tree_.is_xml, out_);
      out_ += '"';
    }
    const bool is_empty = row.end == node + 1;
    if (tree_.is_xml && is_empty) {
      out_ += "/>";
      return;
    }
    out_ += '>';
    const bool is_void = !tree_.is_xml && std::ranges::binary_search(kVoid, row.text);
    if (!is_void) open_.push_back(node);
  }
  void close_until(NodeIndex node) {
    while (!open_.empty() && tree_.nodes[open_.back()].end <= node) {
      out_.append("</").append(tree_.nodes[open_.back()].text).append(">");
      open_.pop_back();
    }
  }

  const DocumentTree& tree_;
  std::string& out_;
  const LeftOut* const left_out_;
  std::vector<NodeIndex> open_;
};

// Whether words are all there is, with a space between them.
bool is_collapsed(std::string_view text) noexcept {
  bool behind_space = true;
  for (const char c : text) {
    if (c == '\xc2' || (is_space(c) && (c != ' ' || behind_space))) return false;
    behind_space = c == ' ';
  }
  return text.empty() || !behind_space;
}

}  // namespace

bool is_block(std::string_view name) noexcept { return break_at(name) != Break::none; }

std::string raw_text(const DocumentTree& tree, NodeIndex node) {
  const TreeNode& row = tree.nodes[node];
  std::string text;
  if (row.kind == TreeNode::Kind::comment) return text.assign(row.text);
  for (NodeIndex i = node; i < row.end; ++i) {
    if (tree.is_text(i)) text += tree.nodes[i].text;
  }
  return text;
}

std::string shown_text(const DocumentTree& tree, NodeIndex node, TextShape shape, const LeftOut* left_out) {
  return ShownText(tree, shape, left_out).of(node);
}

std::string collapse_space(std::string_view text) {
  if (is_collapsed(text)) return std::string(text);
  TextWriter writer(TextShape::one_line);
  writer.add(text);
  return writer.take();
}

void append_markup(const DocumentTree& tree, NodeIndex node, std::string& out, const LeftOut* left_out) {
  MarkupWriter(tree, out, left_out).write(node, tree.nodes[node].end);
}

void append_inner_markup(const DocumentTree& tree, NodeIndex node, std::string& out) {
  MarkupWriter(tree, out, nullptr).write(node + 1, tree.nodes[node].end);
}

}  // namespace argiope
