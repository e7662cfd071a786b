#include "argiope/crawl/extraction_rules.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "argiope/web/document.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "base/internal/utf8.hpp"
#include "crawl/field_value.hpp"
#include "web/internal/ascii.hpp"
#include "web/internal/linked_data.hpp"
#include "web/internal/page_parts.hpp"
#include "web/internal/readable.hpp"
#include "web/internal/url_patterns.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostFieldNameBytes = 200;

constexpr std::string_view kTypeNames[] = {"text",   "lines",   "raw",     "html", "inner_html", "number",
                                           "integer", "boolean", "date", "url",  "json"};

// Where a value comes from.
enum class SourceKind : std::uint8_t { selector, pattern, meta, linked_data, readable, page };

enum class PagePart : std::uint8_t {
  url, status, depth, content_type, size, fetched_at, title, canonical, language, description, headings, text, html
};
constexpr std::string_view kPageParts[] = {"url",   "status",    "depth",    "content_type", "size",     "fetched_at", "title",
                                           "canonical", "language", "description", "headings", "text", "html"};
enum class ReadablePart : std::uint8_t { text, html, title, author, date, excerpt };
constexpr std::string_view kReadableParts[] = {"text", "html", "title", "author", "date", "excerpt"};

struct FieldSource {
  SourceKind kind = SourceKind::page;
  std::optional<Selector> selector;
  std::shared_ptr<const RE2> pattern;
  std::string meta;
  LinkedDataPath path;
  PagePart part = PagePart::url;
  ReadablePart readable = ReadablePart::text;
};

struct CompiledField {
  FieldRule rule;
  std::size_t column = 0;
  std::vector<FieldSource> sources;
  std::shared_ptr<const RE2> re;
  FieldValue fallback;
};

struct CompiledRule {
  std::string name;
  std::optional<UrlPatterns> match;  // nullopt: all
  std::optional<Selector> each;
  std::vector<CompiledField> fields;
  bool needs_document = false;
};

template <class Value, std::size_t N>
std::optional<Value> among(std::string_view name, const std::string_view (&names)[N]) {
  const auto* const found = std::ranges::find(names, name);
  return found == std::end(names) ? std::nullopt : std::optional(static_cast<Value>(found - std::begin(names)));
}

template <std::size_t N>
std::string listed(const std::string_view (&names)[N]) {
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

// --- compiling -----------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<const RE2>> compile_pattern(std::string_view text) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(16 << 20);
  auto pattern = std::make_shared<const RE2>(text, options);
  if (!pattern->ok()) return fail(Errc::invalid_input, fmt::format("re {}: {}", in_quotes(text), printable(pattern->error())));
  return pattern;
}

Result<Selector> compile_selector(std::string_view notation) {
  if (notation.starts_with("css:")) return Selector::css(notation.substr(4));
  if (notation.starts_with("xpath:")) return Selector::xpath(notation.substr(6));
  return fail(Errc::invalid_input, fmt::format("{}: begin it with css: or xpath:", in_quotes(notation)));
}

Result<FieldSource> compile_source(std::string_view notation) {
  const std::size_t colon = notation.find(':');
  const std::string_view scheme = notation.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? std::string_view{} : notation.substr(colon + 1);
  const auto unknown = [&](std::string_view known) {
    return fail(Errc::invalid_input, fmt::format("{}: there is {}", in_quotes(notation), known));
  };
  FieldSource source;
  if (scheme == "css" || scheme == "xpath") {
    auto selector = compile_selector(notation);
    if (!selector) return std::unexpected(std::move(selector.error()));
    source.kind = SourceKind::selector;
    source.selector = std::move(*selector);
  } else if (scheme == "re") {
    auto pattern = compile_pattern(rest);
    if (!pattern) return std::unexpected(std::move(pattern.error()));
    source.kind = SourceKind::pattern;
    source.pattern = std::move(*pattern);
  } else if (scheme == "meta" || scheme == "og" || scheme == "twitter") {
    if (rest.empty()) return fail(Errc::invalid_input, fmt::format("{}: a name is missing", in_quotes(notation)));
    source.kind = SourceKind::meta;
    source.meta = scheme == "meta" ? rest : notation;
  } else if (scheme == "jsonld") {
    auto path = LinkedDataPath::parse(rest);
    if (!path) return std::unexpected(std::move(path.error()));
    source.kind = SourceKind::linked_data;
    source.path = std::move(*path);
  } else if (scheme == "readable") {
    const auto part = among<ReadablePart>(rest, kReadableParts);
    if (!part) return unknown(listed(kReadableParts));
    source.kind = SourceKind::readable;
    source.readable = *part;
  } else if (scheme == "page") {
    const auto part = among<PagePart>(rest, kPageParts);
    if (!part) return unknown(listed(kPageParts));
    source.part = *part;
  } else {
    return fail(Errc::invalid_input,
                fmt::format("{}: begin it with css:, xpath:, re:, meta:, og:, twitter:, jsonld:, readable: or page:", in_quotes(notation)));
  }
  return source;
}

// Whether a source asks nothing of the page's tree.
bool is_known_without_tree(const FieldSource& source) {
  if (source.kind != SourceKind::page) return false;
  switch (source.part) {
    case PagePart::url:
    case PagePart::status:
    case PagePart::depth:
    case PagePart::content_type:
    case PagePart::size:
    case PagePart::fetched_at: return true;
    default: return false;
  }
}

// --- one value -----------------------------------------------------------------------------------------------------------

// What a source has found, before the field says what it wants of it.
struct FoundPiece {
  std::optional<Match> match;
  std::string text;  // of what is no match
  bool is_json = false;
};

// What of an element is its value where it has no text of its own, as microdata takes it (HTML standard, 5.2.4).
std::optional<std::string_view> machine_value(const Match& match, FieldType type) {
  const std::string_view name = match.name();
  if (name == "meta") return match.attribute("content");
  if (type == FieldType::date && name == "time") return match.attribute("datetime");
  if (name == "data" || name == "meter") return match.attribute("value");
  if (type != FieldType::url) return std::nullopt;
  if (name == "object") return match.attribute("data");
  const auto target = match.attribute("href");
  return target ? target : match.attribute("src");
}

std::string text_of_match(const Match& match, const FieldRule& rule) {
  if (!rule.attribute.empty()) return std::string(match.attribute(rule.attribute).value_or(std::string_view{}));
  if (match.kind() == Match::Kind::element) {
    if (const auto value = machine_value(match, rule.type); value && rule.type != FieldType::html) return std::string(*value);
  }
  switch (rule.type) {
    case FieldType::lines: return match.lines();
    case FieldType::raw:
    case FieldType::json: return match.raw();
    case FieldType::html: return match.outer_html();
    case FieldType::inner_html: return match.inner_html();
    default: return match.text();
  }
}

bool keeps_space(FieldType type) {
  return type == FieldType::raw || type == FieldType::html || type == FieldType::inner_html || type == FieldType::lines;
}

Result<FieldValue> convert(std::string text, const FieldRule& rule, const Url& base) {
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::invalid_input, fmt::format("{}: {}", in_quotes(text, 60), why));
  };
  using Kind = FieldValue::Kind;
  switch (rule.type) {
    case FieldType::number:
    case FieldType::integer: {
      const bool whole = rule.type == FieldType::integer;
      auto number = whole ? integer_in(text, rule.decimal) : number_in(text, rule.decimal);
      if (!number) return wrong(whole ? "there is no whole number in it" : "there is no number in it");
      return FieldValue{Kind::number, std::move(*number), {}};
    }
    case FieldType::boolean: {
      const auto truth = truth_in(text);
      if (!truth) return wrong("neither yes nor no");
      return FieldValue{Kind::boolean, *truth ? "true" : "false", {}};
    }
    case FieldType::date: {
      auto date = date_in(text, rule.day_first);
      if (!date) return std::unexpected(std::move(date.error()));
      return FieldValue{Kind::text, std::move(*date), {}};
    }
    case FieldType::url: {
      Url url;
      const UrlStatus status = parse_into(url, trim_space(text), &base);
      if (status == UrlStatus::unsupported) return FieldValue{Kind::text, std::string(trim_space(text)), {}};
      if (status != UrlStatus::ok) return wrong("this is no URL");
      return FieldValue{Kind::text, url.href(), {}};
    }
    case FieldType::json: {
      const auto json = JsonText::parse(text);
      if (!json) return wrong("this is no JSON");
      JsonErrors errors;
      return FieldValue{Kind::json, json->root(errors).json(), {}};
    }
    default: return FieldValue{Kind::text, std::move(text), {}};
  }
}

std::string headings_json(const Document& document) {
  std::string out;
  JsonWriter json(out);
  json.array([&] {
    for (const Heading& heading : headings(document)) {
      json.object([&] {
        json.member("level", heading.level);
        json.member("text", heading.text);
      });
    }
  });
  return out;
}

// --- one page ------------------------------------------------------------------------------------------------------------

// Applies a rule to a page. What several fields may ask is found once.
class PageExtraction {
 public:
  PageExtraction(const CompiledRule& rule, std::size_t columns, const ExtractedPage& page)
      : rule_(rule), columns_(columns), page_(page), base_(page.url) {}

  Result<ExtractedRecords> run() {
    if (rule_.needs_document) {
      auto document = Document::parse(page_.body, page_.content_type);
      if (!document) return std::unexpected(std::move(document.error()));
      document_ = std::move(*document);
      base_ = base_url(*document_, page_.url);
    }
    if (!rule_.each) {
      add_record(nullptr);
    } else {
      auto elements = document_->select(*rule_.each);
      if (!elements) return std::unexpected(std::move(elements.error()));
      for (const Match& element : *elements) {
        if (element.kind() == Match::Kind::element) add_record(&element);
        if (out_.records.size() >= Extractor::kMostRecords || too_long_) break;
      }
    }
    if (too_long_) return std::unexpected(std::move(*too_long_));
    return std::move(out_);
  }

 private:
  void add_record(const Match* within) {
    ExtractedRecord record;
    record.values.resize(columns_);
    bool has_value = false;
    bool lacks_required = false;
    for (const CompiledField& field : rule_.fields) {
      FieldValue value = value_of(field, within);
      if (too_long_) return;
      const bool found = value.kind != FieldValue::Kind::none;
      has_value = has_value || found;
      if (!found) value = field.fallback;
      if (field.rule.required && value.kind == FieldValue::Kind::none) {
        lacks_required = true;
        missing_.push_back({field.column, "it is required, and not there"});
      }
      record.values[field.column] = std::move(value);
    }
    if (lacks_required && has_value) {
      ++out_.dropped;
      std::ranges::move(missing_, std::back_inserter(out_.troubles));
    } else if (has_value) {
      out_.records.push_back(std::move(record));
    }
    missing_.clear();
  }

  FieldValue value_of(const CompiledField& field, const Match* within) {
    FieldValue all;
    for (const FieldSource& source : field.sources) {
      for (FoundPiece& piece : find(source, field.rule, within)) {
        auto value = value_of_piece(std::move(piece), field);
        if (!value) continue;
        if (!field.rule.all) return std::move(*value);
        all.kind = FieldValue::Kind::list;
        all.list.push_back(std::move(*value));
        if (all.list.size() >= Extractor::kMostValues) break;
      }
      if (too_long_ || all.kind != FieldValue::Kind::none) break;
    }
    return all;
  }

  std::optional<FieldValue> value_of_piece(FoundPiece piece, const CompiledField& field) {
    const FieldRule& rule = field.rule;
    if (piece.is_json && !field.re && (rule.type == FieldType::text || rule.type == FieldType::raw || rule.type == FieldType::lines)) {
      return FieldValue{FieldValue::Kind::json, std::move(piece.text), {}};
    }
    std::string text = piece.match ? text_of_match(*piece.match, rule) : std::move(piece.text);
    if (field.re) {
      std::string part;
      const bool has_group = field.re->NumberOfCapturingGroups() > 0;
      const bool matches = has_group ? RE2::PartialMatch(text, *field.re, &part) : match_whole(*field.re, text, part);
      if (!matches) return std::nullopt;
      text = std::move(part);
    }
    if (trim_space(text).empty()) return std::nullopt;
    if (!keeps_space(rule.type)) text = std::string(trim_space(text));
    if (text.size() > Extractor::kMostValueBytes) text.resize(cut_between_characters(text, Extractor::kMostValueBytes).size());
    auto value = convert(std::move(text), rule, base_);
    if (value) return std::move(*value);
    out_.troubles.push_back({field.column, std::move(value.error().message)});
    return std::nullopt;
  }
  static bool match_whole(const RE2& pattern, std::string_view text, std::string& part) {
    re2::StringPiece found;
    if (!pattern.Match(text, 0, text.size(), RE2::UNANCHORED, &found, 1)) return false;
    part.assign(found.data(), found.size());
    return true;
  }

  std::vector<FoundPiece> find(const FieldSource& source, const FieldRule& rule, const Match* within) {
    switch (source.kind) {
      case SourceKind::selector: return select(*source.selector, rule, within);
      case SourceKind::pattern: return search(*source.pattern, rule);
      case SourceKind::meta: return pieces(meta_values(*document_, source.meta));
      case SourceKind::linked_data: return find_linked(source.path);
      case SourceKind::readable: return pieces({part_of_article(source.readable)});
      case SourceKind::page: return pieces({part_of_page(source.part)}, source.part == PagePart::headings);
    }
    __builtin_unreachable();
  }
  static std::vector<FoundPiece> pieces(std::vector<std::string> texts, bool is_json = false) {
    std::vector<FoundPiece> found;
    for (std::string& text : texts) found.push_back({std::nullopt, std::move(text), is_json});
    return found;
  }

  std::vector<FoundPiece> select(const Selector& selector, const FieldRule&, const Match* within) {
    auto matches = document_->select(selector, within);
    if (!matches) {
      too_long_ = std::move(matches.error());
      return {};
    }
    std::vector<FoundPiece> found;
    found.reserve(matches->size());
    for (Match& match : *matches) found.push_back({std::move(match), {}, false});
    return found;
  }
  std::vector<FoundPiece> search(const RE2& pattern, const FieldRule& rule) {
    std::vector<FoundPiece> found;
    const std::string_view text = document_->text();
    const int group = pattern.NumberOfCapturingGroups() > 0 ? 1 : 0;
    re2::StringPiece parts[2];
    for (std::size_t at = 0; at <= text.size() && pattern.Match(text, at, text.size(), RE2::UNANCHORED, parts, group + 1);) {
      if (parts[group].data() != nullptr) found.push_back({std::nullopt, std::string(parts[group]), false});
      if (!rule.all || found.size() >= Extractor::kMostValues) break;
      const auto end = static_cast<std::size_t>(parts[0].data() + parts[0].size() - text.data());
      at = parts[0].empty() ? end + 1 : end;
    }
    return found;
  }
  std::vector<FoundPiece> find_linked(const LinkedDataPath& path) {
    if (!linked_) linked_.emplace(*document_);
    std::vector<FoundPiece> found;
    for (LinkedValue& value : linked_->find(path)) found.push_back({std::nullopt, std::move(value.text), value.is_json});
    return found;
  }

  std::string part_of_article(ReadablePart part) {
    if (!article_) article_ = find_article(*document_).value_or(ReadableArticle{});
    switch (part) {
      case ReadablePart::text: return article_->text;
      case ReadablePart::html: return article_->html;
      case ReadablePart::title: return article_->title;
      case ReadablePart::author: return article_->author;
      case ReadablePart::date: return article_->date;
      case ReadablePart::excerpt: return article_->excerpt;
    }
    __builtin_unreachable();
  }

  std::string part_of_page(PagePart part) const {
    switch (part) {
      case PagePart::url: return page_.url.href();
      case PagePart::status: return std::to_string(page_.status);
      case PagePart::depth: return std::to_string(page_.depth);
      case PagePart::content_type: return std::string(page_.content_type);
      case PagePart::size: return std::to_string(page_.body.size());
      case PagePart::fetched_at: return to_rfc3339_ms(page_.fetched_at);
      case PagePart::title: return page_title(*document_);
      case PagePart::canonical: {
        const auto canonical = canonical_url(*document_, page_.url);
        return canonical ? canonical->href() : std::string{};
      }
      case PagePart::language: return page_language(*document_);
      case PagePart::description: {
        auto values = meta_values(*document_, "description");
        if (values.empty()) values = meta_values(*document_, "og:description");
        return values.empty() ? std::string{} : std::move(values.front());
      }
      case PagePart::headings: return headings_json(*document_);
      case PagePart::text: return document_->root().lines();
      case PagePart::html: return document_->text();
    }
    __builtin_unreachable();
  }

  const CompiledRule& rule_;
  const std::size_t columns_;
  const ExtractedPage& page_;
  Url base_;
  std::optional<Document> document_;
  std::optional<LinkedData> linked_;
  std::optional<ReadableArticle> article_;
  std::vector<FieldTrouble> missing_;
  std::optional<Error> too_long_;
  ExtractedRecords out_;
};

Error of_field(std::string_view rule, std::string_view field, const Error& why) {
  std::string where = rule.empty() ? std::string{} : fmt::format("rule {}: ", in_quotes(rule));
  if (!field.empty()) where += fmt::format("field {}: ", in_quotes(field));
  return {why.code, where + why.message};
}

}  // namespace

std::string_view to_string(FieldType type) noexcept { return kTypeNames[static_cast<std::size_t>(type)]; }
std::optional<FieldType> field_type_named(std::string_view name) noexcept { return among<FieldType>(name, kTypeNames); }

Result<FieldRule> parse_field(std::string_view text) {
  const auto wrong = [&](std::string_view why) { return fail(Errc::invalid_input, fmt::format("{}: {}", in_quotes(text), why)); };
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos || sign == 0) return wrong("write it as NAME=css:SELECTOR, NAME:TYPE=… or NAME[]=…");
  FieldRule rule;
  std::string_view name = text.substr(0, sign);
  if (name.ends_with("[]")) {
    rule.all = true;
    name.remove_suffix(2);
  }
  if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos) {
    const auto type = field_type_named(name.substr(colon + 1));
    if (!type) return wrong(fmt::format("the types are {}", listed(kTypeNames)));
    rule.type = *type;
    name = name.substr(0, colon);
  }
  rule.name = name;
  rule.sources.emplace_back(text.substr(sign + 1));
  return rule;
}

// --- Extractor -----------------------------------------------------------------------------------------------------------

struct Extractor::Compiled {
  std::vector<CompiledRule> rules;
  std::vector<std::string> columns;

  std::size_t column(const std::string& name) {
    const auto found = std::ranges::find(columns, name);
    if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
    columns.push_back(name);
    return columns.size() - 1;
  }
  Result<CompiledField> compile(const FieldRule& rule);
  Result<CompiledRule> compile(const ExtractionRule& rule, std::size_t place);
  const CompiledRule* rule_of(std::string_view href) const {
    const auto found = std::ranges::find_if(rules, [&](const CompiledRule& rule) { return !rule.match || rule.match->match(href); });
    return found == rules.end() ? nullptr : &*found;
  }
};

Result<CompiledField> Extractor::Compiled::compile(const FieldRule& rule) {
  const auto wrong = [](std::string why) { return fail(Errc::invalid_input, std::move(why)); };
  if (rule.name.empty() || rule.name.size() > kMostFieldNameBytes || !is_utf8(rule.name)) {
    return wrong(fmt::format("a field's name has 1 to {} bytes of UTF-8", kMostFieldNameBytes));
  }
  if (rule.name == "url" || rule.name == "fetched_at" || rule.name == "rule") {
    return wrong("every record has a member of this name; call the field something else");
  }
  if (rule.sources.empty()) return wrong("where does it come from? Give css, xpath, re, meta, og, twitter, jsonld, readable or page");
  CompiledField field;
  field.rule = rule;
  for (const std::string& notation : rule.sources) {
    auto source = compile_source(notation);
    if (!source) return std::unexpected(std::move(source.error()));
    if (!rule.attribute.empty() && source->kind != SourceKind::selector) return wrong("attribute is for css and xpath alone");
    field.sources.push_back(std::move(*source));
  }
  if (!rule.re.empty()) {
    auto pattern = compile_pattern(rule.re);
    if (!pattern) return std::unexpected(std::move(pattern.error()));
    field.re = std::move(*pattern);
  }
  if (rule.decimal != '\0' && rule.decimal != '.' && rule.decimal != ',') return wrong("decimal is \".\" or \",\"");
  if (rule.fallback) {
    auto value = convert(*rule.fallback, rule, Url::parse("http://invalid/").value());
    if (!value) return std::unexpected(of_field({}, {}, {Errc::invalid_input, "default " + value.error().message}));
    field.fallback = std::move(*value);
    if (rule.all) field.fallback = FieldValue{FieldValue::Kind::list, {}, {field.fallback}};
  }
  field.column = column(rule.name);
  return field;
}

Result<CompiledRule> Extractor::Compiled::compile(const ExtractionRule& rule, std::size_t place) {
  CompiledRule compiled;
  compiled.name = rule.name.empty() ? std::to_string(place + 1) : rule.name;
  const auto in_rule = [&](std::string_view field, const Error& why) {
    return std::unexpected(of_field(rule.name, field, why));
  };
  if (rule.fields.empty()) return in_rule({}, {Errc::invalid_input, "it has no fields"});
  if (rule.fields.size() > ExtractionRules::kMostFields) {
    return in_rule({}, {Errc::too_large, fmt::format("at most {} fields", ExtractionRules::kMostFields)});
  }
  if (!rule.match.empty()) {
    auto patterns = UrlPatterns::compile(rule.match);
    if (!patterns) return in_rule({}, {patterns.error().code, "match " + patterns.error().message});
    compiled.match = std::move(*patterns);
  }
  if (!rule.each.empty()) {
    auto selector = compile_selector(rule.each);
    if (!selector) return in_rule({}, {selector.error().code, "each: " + selector.error().message});
    compiled.each = std::move(*selector);
    compiled.needs_document = true;
  }
  for (const FieldRule& field_rule : rule.fields) {
    const auto same = [&](const CompiledField& other) { return other.rule.name == field_rule.name; };
    if (std::ranges::any_of(compiled.fields, same)) return in_rule(field_rule.name, {Errc::invalid_input, "it is there twice"});
    auto field = compile(field_rule);
    if (!field) return in_rule(field_rule.name, field.error());
    compiled.needs_document = compiled.needs_document || !std::ranges::all_of(field->sources, is_known_without_tree);
    compiled.fields.push_back(std::move(*field));
  }
  return compiled;
}

Result<Extractor> Extractor::compile(const ExtractionRules& rules) {
  if (rules.rules.empty()) return fail(Errc::invalid_input, "extraction needs a rule");
  if (rules.rules.size() > ExtractionRules::kMostRules) {
    return fail(Errc::too_large, fmt::format("at most {} rules", ExtractionRules::kMostRules));
  }
  auto compiled = std::make_shared<Compiled>();
  for (const ExtractionRule& rule : rules.rules) {
    auto ready = compiled->compile(rule, compiled->rules.size());
    if (!ready) return std::unexpected(std::move(ready.error()));
    compiled->rules.push_back(std::move(*ready));
  }
  return Extractor(std::move(compiled));
}

const std::vector<std::string>& Extractor::columns() const noexcept { return compiled_->columns; }
const std::string& Extractor::rule_name(std::size_t rule) const noexcept { return compiled_->rules[rule].name; }
std::size_t Extractor::rules() const noexcept { return compiled_->rules.size(); }
bool Extractor::has_field(std::size_t rule, std::size_t column) const noexcept {
  return std::ranges::any_of(compiled_->rules[rule].fields, [&](const CompiledField& field) { return field.column == column; });
}
bool Extractor::matches(std::string_view href) const { return compiled_->rule_of(href) != nullptr; }

Result<ExtractedRecords> Extractor::extract(const ExtractedPage& page) const {
  const CompiledRule* const rule = compiled_->rule_of(page.url.href());
  if (rule == nullptr) return ExtractedRecords{};
  auto records = PageExtraction(*rule, compiled_->columns.size(), page).run();
  if (records) records->rule = static_cast<std::size_t>(rule - compiled_->rules.data());
  return records;
}

}  // namespace argiope
