// Document: an HTML page or XML text as a tree, and what selectors find in it. HTML is read as browsers read it; CSS
// and XPath see one tree, so that a path copied from a browser's inspector means the same here.
//
//   const auto titles = Selector::css("h1::text");
//   const auto page = Document::parse(response.body, response.headers.content_type);
//   if (titles && page) {
//     for (const Match& title : page->select(*titles).value_or(std::vector<Match>{})) std::puts(title.text().c_str());
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

class Document;

// The limits of a document. Beyond them there is an error and no tree, because time and memory are spent before anyone
// asks what a page is worth.
struct DocumentLimits {
  std::size_t most_bytes = 10 * 1024 * 1024;
  std::size_t most_nodes = 300'000;
  std::size_t most_attributes = 300'000;
  std::size_t most_depth = 512;  // of elements in elements; in XML 250
};

// A CSS selector or an XPath expression, ready for use.
//
// CSS is Selectors Level 3 and of Level 4 :is(), :where(), :not(), :has() and "[a=b i]"; and as parsel and Scrapy have
// it `::text` and `::attr(name)` behind a selector, [a!=b] and :contains("text"). Classes and ids are compared as
// written, names of HTML's elements and attributes in lower case. In XML "media|thumbnail" is the element that is
// written <media:thumbnail>.
//
// XPath is version 1.0, with has-class("a", "b") and re:test(text, pattern) beside. There are no namespaces: a name in
// XML is what is written, its prefix included, and in HTML names are in lower case.
//
// Threads: any may use one at a time.
class Selector {
 public:
  static constexpr std::size_t kMostBytes = 8 * 1024;

  // Errors: invalid_input, with the selector, what is wrong and from which character on; too_large.
  static Result<Selector> css(std::string_view text);
  static Result<Selector> xpath(std::string_view text);

  // As it was given.
  const std::string& text() const noexcept;

 private:
  friend class Document;
  struct Compiled;
  explicit Selector(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

// Something that a selector has found: a part of a document, or what an XPath expression has computed.
//
// Lifetime: the document's.
class Match {
 public:
  enum class Kind : std::uint8_t { element, text, attribute, value };

  Kind kind() const noexcept { return kind_; }
  // Of an element or attribute, else empty.
  std::string_view name() const noexcept;

  // Its text as a reader sees it, in one line: without what is not shown (script, style, template …), with space
  // between blocks and cells, and with no more than one space anywhere.
  std::string text() const;
  // The same with a line for each block, and an empty one between paragraphs; white space of `pre` stays.
  std::string lines() const;
  // text() for reading numbers from it: "10<sup>2</sup>" is "10^2", and "<s>15</s><b>12</b>" is "15 12".
  std::string figures() const;
  // All characters in it, as they are: the string-value of XPath, the textContent of browsers.
  std::string raw() const;
  // Of an element. nullopt where it has none of that name, which is in lower case for HTML.
  std::optional<std::string_view> attribute(std::string_view name) const noexcept;
  // Of an element, all of them in their order.
  std::vector<std::pair<std::string_view, std::string_view>> attributes() const;
  // Of an element, what it is called elsewhere: below Document::most_number(), for an element always the same, and no
  // other's.
  std::optional<std::uint32_t> number() const noexcept;
  // The element with its tags, or what is between them, as the HTML standard writes it (13.3), as XML for XML. Of what
  // is no element its characters.
  std::string outer_html() const;
  std::string inner_html() const;
  // Where it begins: the byte of the document's text. nullopt for what is not in the text, such as a tbody that the
  // parser has added, and for attributes and values.
  std::optional<std::size_t> position() const noexcept;

 private:
  friend class Document;
  Match(const Document& document, Kind kind, std::uint32_t node, std::uint32_t attribute = 0) noexcept;
  explicit Match(std::string value) : kind_(Kind::value), value_(std::move(value)) {}
  std::string_view characters() const noexcept;

  const void* tree_ = nullptr;
  std::uint32_t node_ = 0;
  std::uint32_t attribute_ = 0;  // as TreePlace's
  Kind kind_;
  std::string value_;
};

// Threads: one at a time, its matches included.
class Document {
 public:
  // `content_type` and the bytes themselves tell what they are: HTML unless it says XML, in the encoding that
  // detect_charset() finds.
  // Errors: too_large, naming the limit; invalid_input for XML without an element. Whatever else is wrong with a text,
  //         there is a tree of it.
  static Result<Document> parse(std::string_view bytes, std::string_view content_type,
                                const DocumentLimits& limits = {});
  // The same of a text in UTF-8, without byte order mark. `encoding` is the one that it came in, by its name.
  static Result<Document> parse_text(std::string text, std::string_view content_type, std::string_view encoding,
                                     const DocumentLimits& limits = {});
  // UTF-8; what is not becomes U+FFFD.
  static Result<Document> parse_html(std::string_view text, const DocumentLimits& limits = {});
  static Result<Document> parse_xml(std::string_view text, const DocumentLimits& limits = {});

  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  bool is_xml() const noexcept;
  // In UTF-8, without byte order mark: what positions are in.
  const std::string& text() const noexcept;
  // From 1, of a byte of the text.
  std::size_t line_of(std::size_t position) const noexcept;
  // All of it. Its number is 0.
  Match root() const noexcept;
  // The element with this number; nullopt: there is none.
  std::optional<Match> element(std::uint32_t number) const noexcept;
  std::uint32_t most_number() const noexcept;

  // Makes the addresses in it absolute, before anything is selected: `href` of a, area and link, `src` of img, script,
  // iframe, source, audio and video, `action` of form. They are against its `base`, and that is against `page`, which
  // may be null. Addresses that cannot be resolved stay as they are. How many bytes they have now.
  // Errors: too_large where these would be more than kMostLinkBytes; then some are absolute, and some are not.
  Result<std::size_t> make_links_absolute(const Url* page);
  static constexpr std::size_t kMostLinkBytes = 64 * 1024 * 1024;

  // In the order of the text. `within` is an element of this document: then what a CSS selector finds is that element
  // or in it, as if there were nothing else, and an XPath expression begins at it ("//a" is everywhere, ".//a" in it).
  // Errors: too_large when the selector would take too long on this page (kMostSteps).
  Result<std::vector<Match>> select(const Selector& selector, const Match* within = nullptr) const;
  // The same within several, which must be elements of this document: what is found in any of them, each once, and of
  // it the first `most`. Values that an expression computes are there once for each of them, behind one another.
  Result<std::vector<Match>> select(const Selector& selector, std::span<const Match> within,
                                    std::size_t most = static_cast<std::size_t>(-1)) const;
  // The same as of one, but only the first.
  Result<std::optional<Match>> select_first(const Selector& selector, const Match* within = nullptr) const;

  // The steps that one select() may take: comparisons of nodes, and bytes of text by the dozen.
  static constexpr std::uint64_t kMostSteps = 30'000'000;
  // The cost, in the same steps, of making a text or HTML of a match.
  std::uint64_t cost_of(const Match& match) const;

 private:
  friend class Match;
  friend struct DocumentAccess;
  struct State;
  explicit Document(std::unique_ptr<State> state);
  static Result<Document> make(std::string text, bool is_xml, const DocumentLimits& limits);

  std::unique_ptr<State> state_;
};

}  // namespace argiope
