// The data that are taken from pages: rules with fields, and Extractor, which applies them to a page. No crawl and no
// file is in here: what crawls, projects and programs share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// The type that a field makes of what its source finds. docs/extraction.md has examples.
enum class FieldType : std::uint8_t {
  text,        // what a reader sees of it, in one line
  lines,       // the same with its lines
  raw,         // its characters as they are
  html,        // the element with its tags
  inner_html,  // what is between them
  number,      // the first number in it
  integer,
  boolean,
  date,  // as RFC 3339 has it
  url,   // absolute
  json,
};
// "inner_html", as rules write it.
std::string_view to_string(FieldType type) noexcept;
std::optional<FieldType> field_type_named(std::string_view name) noexcept;

struct FieldRule {
  std::string name;  // of the member or column
  // Where its value comes from; of several the first that has one. Each begins with one of
  //   css:SELECTOR, xpath:EXPRESSION     see Selector
  //   re:PATTERN                         in the page's text as it came: the first group, or all that matches
  //   meta:NAME, og:NAME, twitter:NAME   the content of meta elements
  //   jsonld:[TYPE]$PATH                 in the page's JSON-LD
  //   json:POINTER                       in a page that is JSON: /items/0/price (RFC 6901); "*" is each entry of a list
  //   readable:PART                      of the page's article: text, html, title, author, date or excerpt
  //   page:PART                          url, status, depth, content_type, size, fetched_at, title, canonical,
  //                                      language, description, headings, text or html
  std::vector<std::string> sources;
  FieldType type = FieldType::text;
  // Of what css or xpath finds: this attribute, instead of the text.
  std::string attribute;
  // RE2, on the text before it is converted: the first group, or all that matches, is the value; without a match there
  // is none.
  std::string re;
  bool all = false;                     // a list of all values; else the first
  bool required = false;                // a record without it is dropped
  std::optional<std::string> fallback;  // the value where there is none, as a page would write it
  char decimal = '\0';                  // of numbers: '.' or ','; else told by the number
  std::optional<bool> day_first;        // of dates such as 03/12/2026
};

struct ExtractionRule {
  std::string name;
  // Which pages: globs of URLs, or "re:" and a regular expression; none: all.
  std::vector<std::string> match;
  // "css:…" or "xpath:…": each element it finds is a record of its own, and selectors of fields look within it.
  // "json:…": each entry of the lists it leads to, and each object, and pointers of fields begin there. Empty: a page
  // is one record.
  std::string each;
  std::vector<FieldRule> fields;
  // There is a record whatever is found, and `required` counts for nothing.
  bool keeps_empty = false;
};

// Of several rules the first that matches a page is its rule.
struct ExtractionRules {
  std::vector<ExtractionRule> rules;

  static constexpr std::size_t kMostRules = 1'000;
  static constexpr std::size_t kMostFields = 500;  // of a rule
};

// "title=css:h1", "price:number=css:.price", "links:url[]=css:a::attr(href)": as `argiope crawl --field` has it.
// Errors: invalid_input, quoting the text.
Result<FieldRule> parse_field(std::string_view text);

class PageView;

// One page, as it is given to an Extractor. Lifetime: what it refers to outlives the call.
struct ExtractedPage {
  const Url& url;
  std::string_view body;  // decoded, in the charset it came in
  std::string_view content_type;
  int status = 200;
  std::uint32_t depth = 0;
  WallTime fetched_at{};
  // For the project's own use: the page as all others read it, so that it is read once. Null: it is read by itself.
  PageView* view = nullptr;
};

// A value of a record.
struct FieldValue {
  enum class Kind : std::uint8_t { none, text, number, boolean, json, list };
  Kind kind = Kind::none;
  std::string text;  // as JSON writes it, but of text, which stands without quotes
  std::vector<FieldValue> list;

  friend bool operator==(const FieldValue&, const FieldValue&) = default;
};

// A fault in a field of a page, and which field it is.
struct FieldTrouble {
  std::size_t field = 0;  // its place among the columns
  std::string why;        // "\"free\": there is no number in it"
};

struct ExtractedRecord {
  std::vector<FieldValue> values;  // one for each of Extractor::columns()
};

struct ExtractedRecords {
  std::optional<std::size_t> rule;  // nullopt: no rule matches the page
  std::vector<ExtractedRecord> records;
  std::vector<FieldTrouble> troubles;
  std::size_t dropped = 0;  // records that lack a required field
  // Of each column, in how many records something was found, also of those that were dropped; default values do not
  // count.
  std::vector<std::uint32_t> found;
};

// Rules, ready for use.
//
// Threads: any may extract at a time.
class Extractor {
 public:
  // Errors: invalid_input and too_large, naming the rule and the field: `rule "shop": field "price": css "h1 >": …`.
  static Result<Extractor> compile(const ExtractionRules& rules);

  // The names of all fields of all rules, each once, in the order of the rules.
  const std::vector<std::string>& columns() const noexcept;
  // Of a rule, by its place; "1" and so on for those without a name.
  const std::string& rule_name(std::size_t rule) const noexcept;
  std::size_t rules() const noexcept;
  // Whether a rule has the field of a column.
  bool has_field(std::size_t rule, std::size_t column) const noexcept;
  // Whether a rule matches the URL, as Url spells it.
  bool matches(std::string_view href) const;
  // The same, and the page is something that its rule reads: HTML or XML, or JSON for a rule that has pointers into it.
  bool reads(std::string_view href, std::string_view content_type, std::string_view body) const;

  // A record of which no field has a value is none; default values do not count.
  // Errors: those of Document::parse, and too_large where a selector takes too long on this page, or its values are too
  //         large together; invalid_input for JSON that is none.
  //         The page has no records then.
  Result<ExtractedRecords> extract(const ExtractedPage& page) const;

  static constexpr std::size_t kMostRecords = 100'000;  // of a page
  static constexpr std::size_t kMostValues = 10'000;    // of a list
  static constexpr std::size_t kMostValueBytes = 4 * 1024 * 1024;
  static constexpr std::size_t kMostPageBytes = 64 * 1024 * 1024;  // of all values of a page

 private:
  struct Compiled;
  explicit Extractor(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace argiope
