// XML by libxml2's parser, event by event: its own tree would drop without a word what is nested deeper than 256, and
// keep entities that grow when they are read.
#include <fmt/format.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>

#include <algorithm>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "document/document_tree.hpp"
#include "web/html/internal/html_entities.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// libxml2 gives up by itself at 256.
constexpr std::size_t kMostXmlDepth = 250;
// Of one tag: libxml2 compares each with all before it.
constexpr std::size_t kMostXmlAttributes = 2'000;

// Whether a tag has so many attributes that they should not be given to the parser. Counts what looks like one between
// a tag's "<" and the next, which stands in no attribute.
bool has_endless_tag(std::string_view xml) {
  for (std::size_t at = xml.find('<'); at != std::string_view::npos;) {
    const std::size_t next = std::min(xml.find('<', at + 1), xml.size());
    const std::string_view part = xml.substr(at + 1, next - at - 1);
    at = next == xml.size() ? std::string_view::npos : next;
    if (part.size() < kMostXmlAttributes || part.front() == '!' || part.front() == '?') continue;
    std::size_t count = 0;
    for (std::size_t sign = part.find('='); sign != std::string_view::npos; sign = part.find('=', sign + 1)) {
      const std::size_t behind = part.find_first_not_of(" \t\r\n", sign + 1);
      if (behind != std::string_view::npos && (part[behind] == '"' || part[behind] == '\'')) ++count;
    }
    if (count > kMostXmlAttributes) return true;
  }
  return false;
}

std::string_view view_of(const xmlChar* text) noexcept {
  return text == nullptr ? std::string_view{} : std::string_view(reinterpret_cast<const char*>(text));
}

// Turns libxml2's reports on a text into rows.
class XmlRows {
 public:
  XmlRows(DocumentTree& tree, const DocumentLimits& limits)
      : tree_(tree), limits_(limits), texts_(std::make_shared<std::deque<std::string>>()), builder_(tree) {
    tree_.storage = texts_;
  }

  Result<void> read(std::string_view xml) {
    xmlInitParser();
    xml_ = xml;
    parser_ = xmlCreateMemoryParserCtxt(xml.data(), static_cast<int>(xml.size()));
    if (parser_ == nullptr) return fail(Errc::invalid_input, "XML without an element");
    listen();
    xmlParseDocument(parser_);
    xmlFreeParserCtxt(parser_);
    flush_text();
    builder_.finish();
    if (trouble_) return std::unexpected(std::move(*trouble_));
    return {};
  }

 private:
  void listen() {
    // No entity, no DTD, no net, and the encoding is UTF-8 whatever the declaration says.
    xmlCtxtUseOptions(
        parser_, XML_PARSE_RECOVER | XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_IGNORE_ENC);
    xmlSAXHandler& on = *parser_->sax;
    on = xmlSAXHandler{};
    on.initialized = XML_SAX2_MAGIC;
    on.startElementNs = [](void* self, const xmlChar* name, const xmlChar* prefix, const xmlChar*, int, const xmlChar**,
                           int count, int, const xmlChar** attributes) {
      static_cast<XmlRows*>(self)->on_start(name, prefix, count, attributes);
    };
    on.endElementNs = [](void* self, const xmlChar*, const xmlChar*, const xmlChar*) {
      static_cast<XmlRows*>(self)->on_end();
    };
    on.characters = [](void* self, const xmlChar* text, int length) {
      static_cast<XmlRows*>(self)->on_text({reinterpret_cast<const char*>(text), static_cast<std::size_t>(length)});
    };
    on.ignorableWhitespace = on.characters;
    on.cdataBlock = on.characters;
    on.getEntity = [](void* self, const xmlChar* name) { return static_cast<XmlRows*>(self)->entity(view_of(name)); };
    on.serror = [](void*, xmlErrorPtr) {};
    parser_->userData = this;
  }

  void on_start(const xmlChar* name, const xmlChar* prefix, int count, const xmlChar** attributes) {
    if (trouble_) return;
    flush_text();
    if (builder_.depth() >= std::min(limits_.most_depth, kMostXmlDepth)) {
      return stop(fmt::format("elements are nested deeper than {}", std::min(limits_.most_depth, kMostXmlDepth)));
    }
    if (tree_.nodes.size() > limits_.most_nodes)
      return stop(fmt::format("a text of more than {} nodes", limits_.most_nodes));
    builder_.open(place_of(qualified(view_of(name), view_of(prefix))), position_of_tag());
    for (int i = 0; i < count; ++i) {
      // Local name, prefix, namespace, and where the value begins and ends.
      const xmlChar* const* const a = attributes + 5 * i;
      const std::string_view value(reinterpret_cast<const char*>(a[3]), static_cast<std::size_t>(a[4] - a[3]));
      builder_.attribute(kept(qualified(view_of(a[0]), view_of(a[1]))), kept(std::string(value)));
    }
    if (tree_.attributes.size() > limits_.most_attributes) {
      stop(fmt::format("a text of more than {} attributes", limits_.most_attributes));
    }
  }
  void on_end() {
    if (trouble_) return;
    flush_text();
    if (builder_.depth() > 0) builder_.close();
  }
  void on_text(std::string_view text) {
    if (builder_.depth() > 0) text_ += text;
  }
  // One that XML does not know, but HTML does. Not in attributes, of which libxml2 would take the first byte.
  xmlEntityPtr entity(std::string_view name) {
    if (parser_->instate == XML_PARSER_ATTRIBUTE_VALUE) return nullptr;
    parser_->wellFormed = 1;  // else it would not look at what it gets
    std::vector<char> value;
    const std::string reference = fmt::format("&{};", name);
    append_attribute_value(reference, value);
    if (std::string_view(value.data(), value.size()) == reference) return nullptr;
    entity_text_.assign(value.data(), value.size());
    entity_.type = XML_ENTITY_DECL;
    entity_.etype = XML_INTERNAL_PREDEFINED_ENTITY;
    entity_.content = reinterpret_cast<xmlChar*>(entity_text_.data());
    entity_.length = static_cast<int>(entity_text_.size());
    return &entity_;
  }

  void flush_text() {
    if (text_.empty() || trouble_) return;
    builder_.add(TreeNode::Kind::text, kept(std::exchange(text_, {})), kNoPosition);
  }
  void stop(std::string why) {
    trouble_ = Error{Errc::too_large, std::move(why)};
    xmlStopParser(parser_);
  }
  static std::string qualified(std::string_view name, std::string_view prefix) {
    return prefix.empty() ? std::string(name) : fmt::format("{}:{}", prefix, name);
  }
  std::string_view kept(std::string text) { return texts_->emplace_back(std::move(text)); }
  std::uint32_t place_of(std::string name) {
    const auto [found, is_new] = places_.try_emplace(std::move(name), static_cast<std::uint32_t>(tree_.names.size()));
    if (is_new) tree_.names.push_back(kept(found->first));
    return found->second;
  }
  // The parser stands behind the attributes of a tag, none of which may hold a "<".
  std::uint32_t position_of_tag() const {
    const xmlParserInput& input = *parser_->input;
    const std::size_t behind = input.consumed + static_cast<std::size_t>(input.cur - input.base);
    const std::size_t found = xml_.rfind('<', std::min(behind, xml_.size()));
    return found == std::string_view::npos ? kNoPosition : static_cast<std::uint32_t>(found);
  }

  DocumentTree& tree_;
  const DocumentLimits& limits_;
  const std::shared_ptr<std::deque<std::string>> texts_;
  TreeBuilder builder_;
  std::string_view xml_;
  xmlParserCtxtPtr parser_ = nullptr;
  std::unordered_map<std::string, std::uint32_t> places_;
  std::string text_;  // what has come of a text node
  xmlEntity entity_{};
  std::string entity_text_;
  std::optional<Error> trouble_;
};

}  // namespace

Result<DocumentTree> build_xml_tree(std::string_view xml, const DocumentLimits& limits) {
  if (xml.size() > limits.most_bytes) {
    return fail(Errc::too_large,
                fmt::format("a text of {} bytes: at most {} are read as a tree", xml.size(), limits.most_bytes));
  }
  if (has_endless_tag(xml)) {
    return fail(Errc::too_large, fmt::format("a tag of more than {} attributes", kMostXmlAttributes));
  }
  DocumentTree tree;
  tree.is_xml = true;
  if (auto read = XmlRows(tree, limits).read(xml); !read) return std::unexpected(std::move(read.error()));
  if (tree.nodes.size() < 2) return fail(Errc::invalid_input, "XML without an element");
  return tree;
}

}  // namespace argiope
