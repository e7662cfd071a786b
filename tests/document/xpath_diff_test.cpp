// Our XPath beside libxml2's: the same made-up expressions on the same made-up trees find the same nodes.
#include <gtest/gtest.h>
#include <libxml/parserInternals.h>
#include <libxml/xpath.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/document/document.hpp"

namespace argiope {
namespace {

// A tree both sides read as XML, so that they agree on it: elements a to d in elements, with texts, ids and classes.
class XmlMaker {
 public:
  explicit XmlMaker(Random& random) : random_(random) {}
  std::string make() {
    out_ = "<r>";
    fill(0);
    return out_ + "</r>";
  }

 private:
  void fill(int depth) {
    for (std::uint64_t left = random_.below(5); left > 0; --left) {
      if (depth > 3 || random_.chance(0.3)) {
        out_ += random_.chance(0.5) ? "k" : std::to_string(random_.below(12));
        continue;
      }
      const char name = static_cast<char>('a' + random_.below(4));
      out_ += std::string("<") + name;
      if (random_.chance(0.4)) out_ += " x='" + std::to_string(random_.below(6)) + "'";
      if (random_.chance(0.2)) out_ += " y='q'";
      out_ += '>';
      fill(depth + 1);
      out_ += std::string("</") + name + ">";
    }
  }
  Random& random_;
  std::string out_;
};

class ExpressionMaker {
 public:
  explicit ExpressionMaker(Random& random) : random_(random) {}

  std::string path(int depth) {
    std::string text = one_of({"//", "/", ".//", "", "//"});
    for (std::uint64_t steps = 1 + random_.below(3); steps > 0; --steps) {
      // What follows an attribute differs: libxml2 leaves out what is in its element.
      const bool is_last = steps == 1;
      text += is_last && random_.chance(0.1) ? one_of({"@x", "@*"}) : step(depth);
      if (!is_last) text += one_of({"/", "//"});
    }
    return text;
  }
  std::string value(int depth) {
    if (depth > 2) return one_of({"1", "'3'", "@x", ".", "position()", "last()", "text()"});
    switch (random_.below(12)) {
      case 0: return path(depth + 1);
      case 1: return "count(" + path(depth + 1) + ")";
      case 2: return "sum(" + path(depth + 1) + ")";
      case 3: return "string(" + value(depth + 1) + ")";
      case 4: return "not(" + value(depth + 1) + ")";
      case 5:
        return "(" + value(depth + 1) + one_of({" = ", " != ", " < ", " <= ", " > ", " >= "}) + value(depth + 1) + ")";
      case 6: return "(" + value(depth + 1) + one_of({" and ", " or "}) + value(depth + 1) + ")";
      case 7: return "(" + value(depth + 1) + one_of({" + ", " - ", " * ", " mod "}) + value(depth + 1) + ")";
      case 8: return one_of({"contains(", "starts-with("}) + value(depth + 1) + ", " + value(depth + 1) + ")";
      case 9:
        return one_of({"string-length(", "normalize-space(", "number(", "boolean(", "floor("}) + value(depth + 1) + ")";
      case 10: return one_of({"position()", "last()", "name()", "true()", "2", "'1'"});
      default: return one_of({"@x", "@*", ".", "..", "text()", "*"});
    }
  }

 private:
  std::string step(int depth) {
    if (random_.chance(0.1)) return one_of({".", "..", "text()"});
    std::string text =
        one_of({"", "", "", "", "descendant::", "ancestor::", "ancestor-or-self::", "following::", "preceding::",
                "following-sibling::", "preceding-sibling::", "parent::", "self::", "descendant-or-self::"});
    text += one_of({"a", "b", "c", "d", "*", "*", "node()", "text()"});
    if (depth < 3 && random_.chance(0.4)) text += "[" + value(depth + 1) + "]";
    if (depth < 3 && random_.chance(0.1)) text += "[" + one_of({"1", "2", "last()"}) + "]";
    return text;
  }
  std::string one_of(std::vector<std::string> words) { return words[random_.below(words.size())]; }
  Random& random_;
};

// What libxml2 finds: of each node its text.
class Libxml2 {
 public:
  explicit Libxml2(const std::string& xml)
      : document_(xmlReadMemory(xml.data(), static_cast<int>(xml.size()), nullptr, "UTF-8", XML_PARSE_NONET)),
        context_(xmlXPathNewContext(document_)) {
    context_->error = [](void*, xmlErrorPtr) {};
    context_->node = reinterpret_cast<xmlNodePtr>(document_);
    context_->contextSize = context_->proximityPosition = 1;
  }
  ~Libxml2() {
    xmlXPathFreeContext(context_);
    xmlFreeDoc(document_);
  }
  std::vector<std::string> find(const std::string& expression) {
    xmlXPathObjectPtr object = xmlXPathEval(reinterpret_cast<const xmlChar*>(expression.c_str()), context_);
    if (object == nullptr) return {"libxml2 does not understand it"};
    std::vector<std::string> found;
    if (object->type == XPATH_NODESET) {
      for (int i = 0; object->nodesetval != nullptr && i < object->nodesetval->nodeNr; ++i) {
        const xmlNode& node = *object->nodesetval->nodeTab[i];
        found.push_back(std::string(node.name == nullptr ? "" : reinterpret_cast<const char*>(node.name)) + "=" +
                        text(xmlXPathCastNodeToString(object->nodesetval->nodeTab[i])));
        if (node.type == XML_TEXT_NODE) found.back().erase(0, 4);
      }
    } else {
      found.push_back(text(xmlXPathCastToString(object)));
    }
    xmlXPathFreeObject(object);
    return found;
  }

 private:
  static std::string text(xmlChar* given) {
    std::string copy(reinterpret_cast<const char*>(given));
    xmlFree(given);
    return copy;
  }
  xmlDocPtr document_;
  xmlXPathContextPtr context_;
};

constexpr const char* kTooLong = "too long";

std::vector<std::string> find_by_ours(const Document& document, const std::string& expression) {
  const auto selector = Selector::xpath(expression);
  if (!selector) return {selector.error().message};
  const auto matches = document.select(*selector);
  if (!matches) return {kTooLong};
  std::vector<std::string> found;
  for (const Match& match : *matches) {
    const bool is_value = match.kind() == Match::Kind::value;
    found.push_back((is_value ? "" : std::string(match.name()) + "=") + match.raw());
  }
  return found;
}

// libxml2 writes large and small numbers in another way than the standard, and ours.
bool is_other_spelling(const std::vector<std::string>& found) {
  return found.size() == 1 && found[0].find_first_not_of("0123456789.e+-") == std::string::npos &&
         (found[0].contains('e') || found[0].size() > 12);
}

// libxml2 leaves the document itself out of some results ("//.", ".//..").
std::vector<std::string> without_document(std::vector<std::string> found, const Document& document) {
  std::erase(found, "=" + document.root().raw());
  return found;
}

TEST(XPathDifference, ToLibxml2IsNone) {
  Random random(14);
  int found_something = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string xml = XmlMaker(random).make();
    const Document document = std::move(Document::parse_xml(xml).value());
    Libxml2 libxml2(xml);
    for (int i = 0; i < 40; ++i) {
      ExpressionMaker maker(random);
      const std::string expression = random.chance(0.8) ? maker.path(0) : maker.value(0);
      const auto expected = without_document(libxml2.find(expression), document);
      const auto found = without_document(find_by_ours(document, expression), document);
      if (is_other_spelling(expected) || found == std::vector<std::string>{kTooLong}) continue;
      found_something += expected.empty() ? 0 : 1;
      ASSERT_EQ(found, expected) << expression << "\n" << xml;
    }
  }
  EXPECT_GT(found_something, 3000);
}

}  // namespace
}  // namespace argiope
