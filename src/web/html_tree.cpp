// HTML by myhtml, the parser of libmodest. All that Argiope uses of that library is in this file.
//
// Its tree is taken while it is built: a callback looks at each node and token, and leaves the parser by longjmp() where the page
// is beyond a limit. Between there and here is only C, and what was left is destroyed as a whole.
#include <fmt/format.h>
#include <myhtml/callback.h>
#include <myhtml/myhtml.h>
#include <myhtml/tree.h>

#include <array>
#include <csetjmp>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "web/document_tree.hpp"

namespace argiope {
namespace {

// A parser that has read a page larger than this has more memory than the next page needs.
constexpr std::size_t kMostBytesOfKept = 512 * 1024;
constexpr std::size_t kMostKept = 16;
// Every tag may look at all elements that are open, which a page can have done as often as it has tags. Of real pages the
// largest need a hundredth.
constexpr std::uint64_t kMostTagWork = 100'000'000;
constexpr std::uint32_t kMostAttributesOfElement = 1'000;

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
  Outcome read(std::string_view html, const DocumentLimits& limits) noexcept;

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
  static void* on_token(myhtml_tree_t* tree, myhtml_token_node_t*, void* self) noexcept {
    HtmlParser& parser = *static_cast<HtmlParser*>(self);
    parser.work_ += tree->open_elements->length + tree->active_formatting->length;
    if (parser.work_ > kMostTagWork) parser.leave(Outcome::too_much_work);
    return self;
  }
  [[noreturn]] void leave(Outcome why) noexcept {
    left_ = why;
    std::longjmp(way_out_, 1);
  }

  myhtml_t* myhtml_;
  myhtml_tree_t* tree_;
  DocumentLimits limits_;
  std::size_t nodes_ = 0;
  std::uint64_t work_ = 0;
  Outcome left_ = Outcome::read;
  std::jmp_buf way_out_;
};

HtmlParser::Outcome HtmlParser::read(std::string_view html, const DocumentLimits& limits) noexcept {
  limits_ = limits;
  nodes_ = 0;
  work_ = 0;
  is_reusable = false;
  myhtml_tree_clean(tree_);
  myhtml_callback_tree_node_insert_set(tree_, on_node, this);
  myhtml_callback_before_token_done_set(tree_, on_token, this);
  // Nothing in this function or below it has a destructor.
  if (setjmp(way_out_) != 0) return left_;
  if (myhtml_parse(tree_, MyENCODING_UTF_8, html.data(), html.size()) != MyHTML_STATUS_OK) return Outcome::failed;
  is_reusable = html.size() <= kMostBytesOfKept;
  return Outcome::read;
}

// Parsers that nobody uses, because to make one takes as long as to read a page. Never destroyed: documents may outlive main().
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
                                            "xlink:title",   "xlink:type",    "xml:lang",   "xml:space", "xml:base"};
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
  if (html.size() > limits.most_bytes) {
    return fail(Errc::too_large, fmt::format("a page of {} bytes: at most {} are read as a tree", html.size(), limits.most_bytes));
  }
  const std::shared_ptr<HtmlParser> parser = IdleParsers::instance().take();
  switch (parser->read(html, limits)) {
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
  if (!HtmlRows(tree, limits).take(parser->tree())) {
    return fail(Errc::too_large, fmt::format("a page of more than {} attributes", limits.most_attributes));
  }
  tree.storage = parser;
  return tree;
}

}  // namespace argiope
