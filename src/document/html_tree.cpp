// HTML by myhtml, the parser of libmodest. All that Argiope uses of that library is in this file.
//
// Its tree is taken while it is built: a callback looks at each node and token, and leaves the parser by longjmp()
// where the page is beyond a limit. Between there and here is only C, and what was left is destroyed as a whole.
#include <fmt/format.h>
#include <myhtml/callback.h>
#include <myhtml/data_process.h>
#include <myhtml/myhtml.h>
#include <myhtml/parser.h>
#include <myhtml/tree.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "document/document_tree.hpp"
#include "document/quick_html_tree.hpp"
#include "web/text/internal/byte_search.hpp"

namespace argiope {
namespace {

// A parser that has read a page larger than this has more memory than the next page needs.
constexpr std::size_t kMostBytesOfKept = 512 * 1024;
constexpr std::size_t kMostKept = 16;
// Every tag may look at all elements that are open, which a page can have done as often as it has tags. Of real pages
// the largest need a hundredth.
constexpr std::uint64_t kMostTagWork = 100'000'000;
constexpr std::uint32_t kMostAttributesOfElement = 1'000;

// With this bit alone the parser leaves the texts of tokens to its callback, and builds the tree as ever.
constexpr auto kWithoutTexts = static_cast<myhtml_tree_parse_flags_t>(MyHTML_TREE_PARSE_FLAGS_WITHOUT_PROCESS_TOKEN &
                                                                      ~MyHTML_TREE_PARSE_FLAGS_WITHOUT_BUILD_TREE);

// Bytes that an attribute's name has as they are written: no capital letters, no NUL, no CR, and nothing beyond ASCII.
constexpr std::array<bool, 256> kStaysInName = [] {
  std::array<bool, 256> table{};
  for (std::size_t byte = 1; byte < 0x80; ++byte) table[byte] = byte != '\r' && (byte < 'A' || byte > 'Z');
  return table;
}();

// Makes the texts of tokens in the parser's place. It has a state machine for each, and nine in ten are what is
// written; of the others each is left to its functions.
class TokenTextMaker {
 public:
  TokenTextMaker(myhtml_tree_t* tree, std::string_view html) noexcept : tree_(tree), html_(html) {}

  void make(myhtml_token_node_t& token) const noexcept {
    if (token.tag_id == MyHTML_TAG__TEXT || token.tag_id == MyHTML_TAG__COMMENT) {
      token.attr_first = token.attr_last = nullptr;
      return make_text(token);
    }
    token.str = {};
    for (myhtml_token_attr_t* attribute = token.attr_first; attribute != nullptr; attribute = attribute->next) {
      make_name(*attribute);
      make_value(*attribute);
    }
  }

 private:
  void make_text(myhtml_token_node_t& token) const noexcept {
    const std::string_view raw = written(token.raw_begin, token.raw_length);
    if (!raw.empty() && is_plain(raw)) return copy(raw, token.str);
    mycore_string_init(tree_->mchar, tree_->mchar_node_id, &token.str, token.raw_length + 1);
    auto process = new_process();
    process.emit_null_char = (token.type & MyHTML_TOKEN_TYPE_DATA) != 0;
    const bool has_references =
        (token.type & (MyHTML_TOKEN_TYPE_DATA | MyHTML_TOKEN_TYPE_RCDATA | MyHTML_TOKEN_TYPE_CDATA)) != 0;
    const auto append = has_references ? myhtml_parser_token_data_to_string_charef : myhtml_parser_token_data_to_string;
    append(tree_, &token.str, &process, token.raw_begin, token.raw_length);
  }
  void make_name(myhtml_token_attr_t& attribute) const noexcept {
    attribute.key = {};
    const std::string_view raw = written(attribute.raw_key_begin, attribute.raw_key_length);
    if (raw.empty()) return;
    if (std::ranges::all_of(raw, [](char c) { return kStaysInName[static_cast<unsigned char>(c)]; }))
      return copy(raw, attribute.key);
    mycore_string_init(tree_->mchar, tree_->mchar_node_id, &attribute.key, raw.size() + 1);
    auto process = new_process();
    myhtml_parser_token_data_to_string_lowercase(tree_, &attribute.key, &process, attribute.raw_key_begin, raw.size());
  }
  void make_value(myhtml_token_attr_t& attribute) const noexcept {
    attribute.value = {};
    const std::string_view raw = written(attribute.raw_value_begin, attribute.raw_value_length);
    if (raw.empty()) return;
    if (is_plain(raw)) return copy(raw, attribute.value);
    mycore_string_init(tree_->mchar, tree_->mchar_node_id, &attribute.value, raw.size() + 1);
    auto process = new_process();
    process.is_attributes = true;
    myhtml_parser_token_data_to_string_charef(tree_, &attribute.value, &process, attribute.raw_value_begin, raw.size());
  }
  myhtml_data_process_entry_t new_process() const noexcept {
    myhtml_data_process_entry_t process;
    myhtml_data_process_entry_clean(&process);
    process.encoding = tree_->encoding;
    return process;
  }

  std::string_view written(std::size_t begin, std::size_t length) const noexcept {
    return begin < html_.size() ? html_.substr(begin, length) : std::string_view{};
  }
  // Whether it has no character references and no line ends to be changed. Reads on behind a short text, as far as the
  // page goes.
  bool is_plain(std::string_view raw) const noexcept {
    const char* const end = raw.data() + raw.size();
    const char* const end_of_page = html_.data() + html_.size();
    const char* p = raw.data();
    for (; p < end && end_of_page - p >= kSearchStep; p += kSearchStep) {
      std::uint32_t hits = ByteBlock(p).equal('&', '\0', '\r');
      if (end - p < kSearchStep) hits &= (1u << (end - p)) - 1;
      if (hits != 0) return false;
    }
    return p >= end || find_byte(p, end, '&', '\0', '\r') == end;
  }

  // A text of the parser's: in its memory, with its size before it and a NUL behind it.
  void copy(std::string_view raw, mycore_string_t& text) const noexcept {
    text = {.data = allot(raw.size() + 1),
            .size = raw.size() + 1,
            .length = raw.size(),
            .mchar = tree_->mchar,
            .node_idx = tree_->mchar_node_id};
    std::memcpy(text.data, raw.data(), raw.size());
    text.data[raw.size()] = '\0';
  }
  // As mchar_async_malloc(), which looks for memory that was given back first.
  char* allot(std::size_t size) const noexcept {
    mchar_async_chunk_t& chunk = *tree_->mchar->nodes[tree_->mchar_node_id].chunk;
    if (chunk.size - chunk.length < sizeof size + size)
      return mchar_async_malloc(tree_->mchar, tree_->mchar_node_id, size);
    char* const begin = chunk.begin + chunk.length;
    std::memcpy(begin, &size, sizeof size);
    chunk.length += sizeof size + size;
    return begin + sizeof size;
  }

  myhtml_tree_t* tree_;
  std::string_view html_;
};

// A myhtml parser and its tree.
class HtmlParser {
 public:
  HtmlParser() : myhtml_(myhtml_create()), tree_(myhtml_tree_create()) {
    if (myhtml_ == nullptr || tree_ == nullptr || myhtml_init(myhtml_, MyHTML_OPTIONS_PARSE_MODE_SINGLE, 1, 0) != 0 ||
        myhtml_tree_init(tree_, myhtml_) != 0) {
      throw std::bad_alloc();
    }
  }
  ~HtmlParser() {
    myhtml_tree_destroy(tree_);
    myhtml_destroy(myhtml_);
  }
  HtmlParser(const HtmlParser&) = delete;

  enum class Outcome : std::uint8_t { read, too_deep, too_many_nodes, too_much_work, failed };
  Outcome read(std::string_view html, const DocumentLimits& limits, TokenTexts texts) noexcept;

  myhtml_tree_t* tree() noexcept { return tree_; }
  // Whether it can read another page.
  bool is_reusable = true;

 private:
  static void on_node(myhtml_tree_t* tree, myhtml_tree_node_t*, void* self) noexcept {
    HtmlParser& parser = *static_cast<HtmlParser*>(self);
    if (++parser.nodes_ > parser.limits_.most_nodes) parser.leave(Outcome::too_many_nodes);
    if (tree->open_elements->length > parser.limits_.most_depth ||
        tree->active_formatting->length > parser.limits_.most_depth) {
      parser.leave(Outcome::too_deep);
    }
  }
  static void* on_token(myhtml_tree_t* tree, myhtml_token_node_t* token, void* self) noexcept {
    HtmlParser& parser = *static_cast<HtmlParser*>(self);
    parser.work_ += tree->open_elements->length + tree->active_formatting->length;
    if (parser.work_ > kMostTagWork) parser.leave(Outcome::too_much_work);
    if (parser.makes_texts_) TokenTextMaker(tree, parser.html_).make(*token);
    return self;
  }
  [[noreturn]] void leave(Outcome why) noexcept {
    left_ = why;
    std::longjmp(way_out_, 1);
  }

  myhtml_t* myhtml_;
  myhtml_tree_t* tree_;
  std::string_view html_;
  DocumentLimits limits_;
  bool makes_texts_ = true;
  std::size_t nodes_ = 0;
  std::uint64_t work_ = 0;
  Outcome left_ = Outcome::read;
  std::jmp_buf way_out_;
};

HtmlParser::Outcome HtmlParser::read(std::string_view html, const DocumentLimits& limits, TokenTexts texts) noexcept {
  html_ = html;
  limits_ = limits;
  makes_texts_ = texts == TokenTexts::ours;
  nodes_ = 0;
  work_ = 0;
  is_reusable = false;
  myhtml_tree_clean(tree_);
  myhtml_callback_tree_node_insert_set(tree_, on_node, this);
  myhtml_callback_before_token_done_set(tree_, on_token, this);
  myhtml_tree_parse_flags_set(tree_, makes_texts_ ? kWithoutTexts : MyHTML_TREE_PARSE_FLAGS_CLEAN);
  // Nothing in this function or below it has a destructor.
  if (setjmp(way_out_) != 0) return left_;
  if (myhtml_parse(tree_, MyENCODING_UTF_8, html.data(), html.size()) != MyHTML_STATUS_OK) return Outcome::failed;
  is_reusable = html.size() <= kMostBytesOfKept;
  return Outcome::read;
}

// Parsers that nobody uses, because to make one takes as long as to read a page. Never destroyed: documents may outlive
// main().
class IdleParsers {
 public:
  static IdleParsers& instance() {
    static auto* const parsers = new IdleParsers;
    return *parsers;
  }
  std::shared_ptr<HtmlParser> take() {
    std::unique_ptr<HtmlParser> parser;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        parser = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!parser) parser = std::make_unique<HtmlParser>();
    return {parser.release(), [this](HtmlParser* used) { give_back(std::unique_ptr<HtmlParser>(used)); }};
  }

 private:
  void give_back(std::unique_ptr<HtmlParser> parser) {
    if (!parser->is_reusable) return;
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMostKept) idle_.push_back(std::move(parser));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<HtmlParser>> idle_;
};

std::string_view view_of(const mycore_string_t& text) noexcept {
  return text.data == nullptr ? std::string_view{} : std::string_view(text.data, text.length);
}

// SVG's and MathML's attributes with a prefix, which the parser takes off (HTML standard, 13.2.6.3).
std::string_view written_name(const myhtml_token_attr_t& attribute) noexcept {
  const std::string_view local = view_of(attribute.key);
  if (attribute.ns != MyHTML_NAMESPACE_XLINK && attribute.ns != MyHTML_NAMESPACE_XML) return local;
  constexpr std::string_view kPrefixed[] = {"xlink:actuate", "xlink:arcrole", "xlink:href", "xlink:role", "xlink:show",
                                            "xlink:title",   "xlink:type",    "xml:lang",   "xml:space",  "xml:base"};
  for (const std::string_view name : kPrefixed) {
    if (name.substr(name.find(':') + 1) == local) return name;
  }
  return local;
}

// From myhtml's tree to rows.
class HtmlRows {
 public:
  HtmlRows(DocumentTree& tree, const DocumentLimits& limits) : tree_(tree), limits_(limits), builder_(tree) {}

  bool take(myhtml_tree_t* source) {
    source_ = source;
    const myhtml_tree_node_t* const root = source->document;
    for (const myhtml_tree_node_t* node = root->child; node != nullptr;) {
      const bool opened = take_node(*node);
      if (tree_.attributes.size() > limits_.most_attributes) return false;
      if (opened && node->child != nullptr) {
        node = node->child;
        continue;
      }
      if (opened) builder_.close();
      while (node != root && node->next == nullptr) {
        node = node->parent;
        if (node != root) builder_.close();
      }
      if (node == root) break;
      node = node->next;
    }
    builder_.finish();
    return true;
  }

 private:
  // Whether it is an element, which then is open.
  bool take_node(const myhtml_tree_node_t& node) {
    const myhtml_token_node_t* const token = node.token;
    switch (node.tag_id) {
      case MyHTML_TAG__TEXT:
      case MyHTML_TAG__COMMENT: {
        if (token == nullptr) return false;
        const bool is_text = node.tag_id == MyHTML_TAG__TEXT;
        builder_.add(is_text ? TreeNode::Kind::text : TreeNode::Kind::comment, view_of(token->str),
                     static_cast<std::uint32_t>(token->raw_begin));
        return false;
      }
      case MyHTML_TAG__UNDEF:
      case MyHTML_TAG__DOCTYPE:
      case MyHTML_TAG__END_OF_FILE: return false;
      default: break;
    }
    // An element that no tag is written for has a token without length.
    const bool is_written = token != nullptr && token->element_length > 0;
    builder_.open(name_of(node.tag_id), is_written ? static_cast<std::uint32_t>(token->element_begin) : kNoPosition);
    if (token == nullptr) return true;
    std::uint32_t count = 0;
    for (const myhtml_token_attr_t* attribute = token->attr_first; attribute != nullptr; attribute = attribute->next) {
      if (attribute->key.length == 0) continue;
      if (++count > kMostAttributesOfElement) break;
      builder_.attribute(written_name(*attribute), view_of(attribute->value));
    }
    return true;
  }

  std::uint32_t name_of(myhtml_tag_id_t tag) {
    if (tag < known_.size()) {
      if (known_[tag] == 0) known_[tag] = new_name(tag) + 1;
      return known_[tag] - 1;
    }
    const auto [found, is_new] = others_.try_emplace(tag, 0);
    if (is_new) found->second = new_name(tag);
    return found->second;
  }
  std::uint32_t new_name(myhtml_tag_id_t tag) {
    const myhtml_tag_context_t* const context = myhtml_tag_get_by_id(source_->tags, tag);
    tree_.names.emplace_back(context->name, context->name_length);
    return static_cast<std::uint32_t>(tree_.names.size() - 1);
  }

  DocumentTree& tree_;
  const DocumentLimits& limits_;
  TreeBuilder builder_;
  myhtml_tree_t* source_ = nullptr;
  std::array<std::uint32_t, MyHTML_TAG_LAST_ENTRY> known_{};  // the place in `names`, plus one
  std::unordered_map<myhtml_tag_id_t, std::uint32_t> others_;
};

}  // namespace

Result<DocumentTree> build_html_tree(std::string_view html, const DocumentLimits& limits) {
  if (auto tree = build_quick_html_tree(html, limits)) return std::move(*tree);
  return build_html_tree_by_parser(html, limits);
}

Result<DocumentTree> build_html_tree_by_parser(std::string_view html, const DocumentLimits& limits, TokenTexts texts) {
  if (html.size() > limits.most_bytes) {
    return fail(Errc::too_large,
                fmt::format("a page of {} bytes: at most {} are read as a tree", html.size(), limits.most_bytes));
  }
  const std::shared_ptr<HtmlParser> parser = IdleParsers::instance().take();
  switch (parser->read(html, limits, texts)) {
    case HtmlParser::Outcome::read: break;
    case HtmlParser::Outcome::too_deep:
      return fail(Errc::too_large, fmt::format("elements are nested deeper than {}", limits.most_depth));
    case HtmlParser::Outcome::too_many_nodes:
      return fail(Errc::too_large, fmt::format("a page of more than {} nodes", limits.most_nodes));
    case HtmlParser::Outcome::too_much_work:
      return fail(Errc::too_large, "a page whose tags would take too long to put in order");
    case HtmlParser::Outcome::failed: return fail(Errc::internal, "the HTML parser has failed");
  }
  DocumentTree tree;
  tree.nodes.reserve(html.size() / 16 + 16);
  tree.attributes.reserve(html.size() / 32 + 16);
  if (!HtmlRows(tree, limits).take(parser->tree())) {
    return fail(Errc::too_large, fmt::format("a page of more than {} attributes", limits.most_attributes));
  }
  tree.storage = parser;
  return tree;
}

}  // namespace argiope
