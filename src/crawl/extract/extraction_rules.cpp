#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "argiope/crawl/sinks.hpp"
#include "argiope/document/document.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "base/internal/utf8.hpp"
#include "crawl/extract/field_value.hpp"
#include "crawl/extract/json_pointer.hpp"
#include "crawl/page/internal/page_text.hpp"
#include "document/internal/linked_data.hpp"
#include "document/internal/one_line.hpp"
#include "document/internal/page_parts.hpp"
#include "document/internal/readable.hpp"
#include "web/html/internal/lenient_json.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"
#include "web/text/internal/lower_case.hpp"
#include "web/url/internal/url_patterns.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostFieldNameBytes = 200;
// Members and entries that all pointers together look at on one page.
constexpr std::size_t kMostPointerSteps = 50'000'000;

constexpr std::string_view kTypeNames[] = {"text",    "lines",   "raw",  "html", "inner_html", "number",
                                           "integer", "boolean", "date", "url",  "json"};

// Where a value comes from.
enum class SourceKind : std::uint8_t { selector, pattern, meta, linked_data, json, readable, page };

enum class PagePart : std::uint8_t {
  url,
  status,
  depth,
  content_type,
  size,
  fetched_at,
  title,
  canonical,
  language,
  description,
  headings,
  text,
  html
};
constexpr std::string_view kPageParts[] = {"url",        "status", "depth",     "content_type", "size",
                                           "fetched_at", "title",  "canonical", "language",     "description",
                                           "headings",   "text",   "html"};
enum class ReadablePart : std::uint8_t { text, html, title, author, date, excerpt };
constexpr std::string_view kReadableParts[] = {"text", "html", "title", "author", "date", "excerpt"};

struct FieldSource {
  SourceKind kind = SourceKind::page;
  std::optional<Selector> selector;
  bool finds_first_sooner = false;  // than all that it selects
  std::shared_ptr<const RE2> pattern;
  std::string meta;
  LinkedDataPath path;
  JsonPointer pointer;
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
  std::optional<JsonPointer> each_json;
  std::vector<CompiledField> fields;
  bool needs_document = false;  // of pages that are no JSON
  bool reads_json = false;
  bool keeps_empty = false;
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

// --- compiling
// -----------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<const RE2>> compile_pattern(std::string_view text) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(16 << 20);
  auto pattern = std::make_shared<const RE2>(text, options);
  if (!pattern->ok())
    return fail(Errc::invalid_input, fmt::format("re {}: {}", in_quotes(text), printable(pattern->error())));
  return pattern;
}

Result<Selector> compile_selector(std::string_view notation) {
  if (notation.starts_with("css:")) return Selector::css(notation.substr(4));
  if (notation.starts_with("xpath:")) return Selector::xpath(notation.substr(6));
  return fail(Errc::invalid_input, fmt::format("{}: begin it with css:, xpath: or json:", in_quotes(notation)));
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
    source.finds_first_sooner = scheme == "css";
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
  } else if (scheme == "json") {
    auto pointer = JsonPointer::parse(rest);
    if (!pointer) return std::unexpected(std::move(pointer.error()));
    source.kind = SourceKind::json;
    source.pointer = std::move(*pointer);
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
    return fail(
        Errc::invalid_input,
        fmt::format("{}: begin it with css:, xpath:, re:, meta:, og:, twitter:, jsonld:, json:, readable: or page:",
                    in_quotes(notation)));
  }
  return source;
}

// Whether a source asks nothing of the page's tree.
bool is_known_without_tree(const FieldSource& source) {
  if (source.kind == SourceKind::json) return true;
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

// Whether a source finds anything in a page that is JSON.
bool is_found_in_json(const FieldSource& source) {
  return source.kind == SourceKind::pattern || is_known_without_tree(source);
}

bool has_tree(std::string_view content_type, std::string_view body) {
  if (is_html_page(content_type, body)) return true;
  const std::string type = in_lower_case(parse_content_type(content_type).type);
  return type == "text/xml" || type == "application/xml" || type.ends_with("+xml");
}

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

// By its type; what is neither that nor a page with a tree, by its first character.
bool is_json_body(std::string_view content_type, std::string_view body) {
  const std::string type = in_lower_case(parse_content_type(content_type).type);
  if (type == "application/json" || type == "text/json" || type.ends_with("+json")) return true;
  if (has_tree(content_type, body)) return false;
  if (body.starts_with(kUtf8Mark)) body.remove_prefix(kUtf8Mark.size());
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (body[first] == '{' || body[first] == '[');
}

// --- one value
// -----------------------------------------------------------------------------------------------------------

// The find of a source that is no selector, before the field says what it wants of it.
struct FoundPiece {
  std::string text;
  bool is_json = false;
  std::optional<FieldValue> value{};  // where it is known already
  bool has_lines = false;             // its lines are what was asked for
};

// The value of an element where it has no text of its own, as microdata takes it (HTML standard, 5.2.4).
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
    if (const auto value = machine_value(match, rule.type); value && rule.type != FieldType::html)
      return std::string(*value);
  }
  switch (rule.type) {
    case FieldType::lines: return match.lines();
    case FieldType::raw:
    case FieldType::json: return match.raw();
    case FieldType::html: return match.outer_html();
    case FieldType::inner_html: return match.inner_html();
    case FieldType::number:
    case FieldType::integer: return match.figures();
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
      // A price in the other notation: the text is well, and the rule is not.
      if (!number && !number_in(text, rule.decimal) && number_in(text))
        return wrong(fmt::format("no number whose decimal sign is \"{}\"", rule.decimal));
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
      const auto json = parse_lenient_json(text);
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

// --- one page
// ------------------------------------------------------------------------------------------------------------

// Applies a rule to a page. Data that several fields may ask for are found once.
class PageExtraction {
 public:
  PageExtraction(const CompiledRule& rule, std::size_t columns, const ExtractedPage& page)
      : rule_(rule),
        columns_(columns),
        page_(page),
        text_(page.text != nullptr ? *page.text : own_text_),
        base_(page.url) {
    own_text_.begin(page.body, page.content_type);
  }

  Result<ExtractedRecords> run() {
    out_.found.resize(columns_);
    auto ready = rule_.reads_json && is_json_body(page_.content_type, page_.body) ? read_json() : read_tree();
    if (!ready) return std::unexpected(std::move(ready.error()));
    if (rule_.each_json) {
      if (json_) add_entries();
    } else if (rule_.each) {
      if (auto added = add_elements(); !added) return std::unexpected(std::move(added.error()));
    } else {
      add_record({.element = nullptr, .json = json_root_ ? &*json_root_ : nullptr});
    }
    if (too_long_) return std::unexpected(std::move(*too_long_));
    return std::move(out_);
  }

 private:
  // The place within which the fields of a record look; null: in the whole page.
  struct Within {
    const Match* element = nullptr;
    const JsonValue* json = nullptr;
  };

  Result<void> read_tree() {
    if (!rule_.needs_document) return {};
    auto document = parse_document();
    if (!document) return std::unexpected(std::move(document.error()));
    document_ = std::move(*document);
    base_ = base_url(*document_, page_.url);
    return {};
  }
  Result<Document> parse_document() {
    // A page that is too large is refused as it came.
    if (page_.body.size() > DocumentLimits{}.most_bytes) return Document::parse(page_.body, page_.content_type);
    return Document::parse_text(std::string(text_.utf8()), page_.content_type, text_.charset().name);
  }
  Result<void> read_json() {
    constexpr std::size_t kMost = DocumentLimits{}.most_bytes;
    if (page_.body.size() > kMost) {
      return fail(Errc::too_large,
                  fmt::format("a page of {} bytes: at most {} are read as JSON", page_.body.size(), kMost));
    }
    // JSON is in UTF-8 (RFC 8259, 8.1), whatever its type says; what is not may still be what that says.
    json_text_ = page_.body;
    if (json_text_.starts_with(kUtf8Mark)) json_text_.remove_prefix(kUtf8Mark.size());
    if (!is_utf8(json_text_)) json_text_ = text_.utf8();
    auto json = parse_lenient_json(json_text_);
    if (!json) return std::unexpected(std::move(json.error()));
    json_.emplace(std::move(*json));
    json_root_.emplace(json_->root(json_errors_));
    return {};
  }

  Result<void> add_elements() {
    if (!document_) return {};
    auto elements = document_->select(*rule_.each);
    if (!elements) return std::unexpected(std::move(elements.error()));
    for (const Match& element : *elements) {
      if (element.kind() == Match::Kind::element) add_record({.element = &element});
      if (!wants_more()) break;
    }
    return {};
  }
  void add_entries() {
    follow(*rule_.each_json, *json_root_, [&](const JsonValue& value) {
      const auto add = [&](const JsonValue& entry) {
        if (wants_more()) add_record({.json = &entry});
      };
      if (value.is_list()) value.for_each(add);
      if (value.is_object()) add(value);
      return wants_more();
    });
  }
  bool wants_more() const noexcept { return out_.records.size() < Extractor::kMostRecords && !too_long_; }
  void follow(const JsonPointer& pointer, const JsonValue& from, const std::function<bool(const JsonValue&)>& visit) {
    if (!pointer.find(from, steps_left_, visit))
      too_long_ = Error{Errc::too_large, "json: the pointers take too long on this page"};
  }

  void add_record(const Within& within) {
    ExtractedRecord record;
    record.values.resize(columns_);
    bool has_value = false;
    bool lacks_required = false;
    for (const CompiledField& field : rule_.fields) {
      FieldValue value = value_of(field, within);
      if (too_long_) return;
      const bool found = value.kind != FieldValue::Kind::none;
      has_value = has_value || found;
      if (found) found_.push_back(field.column);
      if (!found) value = field.fallback;
      if (field.rule.required && value.kind == FieldValue::Kind::none) {
        lacks_required = true;
        missing_.push_back({field.column, "it is required, and not there"});
      }
      record.values[field.column] = std::move(value);
    }
    if (has_value) {
      for (const std::size_t column : found_) ++out_.found[column];
    }
    if (rule_.keeps_empty) {
      out_.records.push_back(std::move(record));
    } else if (lacks_required && has_value) {
      ++out_.dropped;
      std::ranges::move(missing_, std::back_inserter(out_.troubles));
    } else if (has_value) {
      out_.records.push_back(std::move(record));
    }
    missing_.clear();
    found_.clear();
  }

  FieldValue value_of(const CompiledField& field, const Within& within) {
    FieldValue all;
    for (const FieldSource& source : field.sources) {
      if (source.kind == SourceKind::selector) {
        if (document_) add_selected(source, field, within.element, all);
      } else {
        for (FoundPiece& piece : find(source, field.rule, within)) {
          if (!add_value(value_of_piece(std::move(piece), field), field, all)) break;
        }
      }
      if (too_long_) return {};
      if (all.kind != FieldValue::Kind::none) break;
    }
    return all;
  }
  // Whether more are wanted.
  bool add_value(std::optional<FieldValue> value, const CompiledField& field, FieldValue& all) {
    if (!value) return true;
    bytes_ += value->text.size();
    if (bytes_ > Extractor::kMostPageBytes) {
      too_long_ =
          Error{Errc::too_large, fmt::format("its values have more than {} bytes together", Extractor::kMostPageBytes)};
      return false;
    }
    if (!field.rule.all) {
      all = std::move(*value);
      return false;
    }
    all.kind = FieldValue::Kind::list;
    all.list.push_back(std::move(*value));
    return all.list.size() < Extractor::kMostValues;
  }
  void add_selected(const FieldSource& source, const CompiledField& field, const Match* within, FieldValue& all) {
    const auto add = [&](const Match& match) {
      return add_value(value_of_text(text_of_match(match, field.rule), field), field, all);
    };
    // The first is nearly always the one, and found sooner than all.
    std::size_t tried = 0;
    if (!field.rule.all && source.finds_first_sooner) {
      const auto first = document_->select_first(*source.selector, within);
      if (!first) too_long_ = first.error();
      if (!first || !*first || !add(**first)) return;
      tried = 1;
    }
    const auto matches = document_->select(*source.selector, within);
    if (!matches) {
      too_long_ = matches.error();
      return;
    }
    if (field.rule.all) all.list.reserve(std::min(matches->size(), Extractor::kMostValues));
    for (std::size_t i = tried; i < matches->size() && add((*matches)[i]); ++i) {
    }
  }

  std::optional<FieldValue> value_of_piece(FoundPiece piece, const CompiledField& field) {
    const FieldRule& rule = field.rule;
    if (piece.value && !field.re) return std::move(piece.value);
    if (piece.is_json && !field.re && stays_json(rule.type)) {
      if (piece.text.size() <= Extractor::kMostValueBytes)
        return FieldValue{FieldValue::Kind::json, std::move(piece.text), {}};
      out_.troubles.push_back({field.column, fmt::format("JSON of {} bytes is too long", piece.text.size())});
      return std::nullopt;
    }
    return value_of_text(std::move(piece.text), field, piece.has_lines);
  }
  std::optional<FieldValue> value_of_text(std::string text, const CompiledField& field, bool has_lines = false) {
    const FieldRule& rule = field.rule;
    if (field.re) {
      std::string part;
      const bool has_group = field.re->NumberOfCapturingGroups() > 0;
      const bool matches = has_group ? RE2::PartialMatch(text, *field.re, &part) : match_whole(*field.re, text, part);
      if (!matches) return std::nullopt;
      text = std::move(part);
    }
    const std::string_view trimmed = trim_space(text);
    if (trimmed.empty()) return std::nullopt;
    if (rule.type == FieldType::text && !has_lines) {
      text = collapse_space(text);
      if (text.empty()) return std::nullopt;
    } else if (trimmed.size() < text.size() && !keeps_space(rule.type)) {
      text = std::string(trimmed);
    }
    if (text.size() > Extractor::kMostValueBytes)
      text.resize(cut_between_characters(text, Extractor::kMostValueBytes).size());
    auto value = convert(std::move(text), rule, base_);
    if (value) return std::move(*value);
    out_.troubles.push_back({field.column, std::move(value.error().message)});
    return std::nullopt;
  }
  static bool stays_json(FieldType type) {
    return type == FieldType::text || type == FieldType::raw || type == FieldType::lines || type == FieldType::json;
  }
  static bool match_whole(const RE2& pattern, std::string_view text, std::string& part) {
    re2::StringPiece found;
    if (!pattern.Match(text, 0, text.size(), RE2::UNANCHORED, &found, 1)) return false;
    part.assign(found.data(), found.size());
    return true;
  }

  std::vector<FoundPiece> find(const FieldSource& source, const FieldRule& rule, const Within& within) {
    if (!document_ && !is_known_without_tree(source) && !(json_ && is_found_in_json(source))) return {};
    switch (source.kind) {
      case SourceKind::selector: break;  // add_selected()
      case SourceKind::pattern: return search(*source.pattern, rule);
      case SourceKind::meta: return pieces(meta_values(*document_, source.meta));
      case SourceKind::linked_data: return find_linked(source.path);
      case SourceKind::json: return find_json(source.pointer, rule, within.json);
      case SourceKind::readable:
        if (source.readable == ReadablePart::text || source.readable == ReadablePart::html)
          return lines_of(part_of_article(source.readable));
        return pieces({part_of_article(source.readable)});
      case SourceKind::page:
        if (source.part == PagePart::text || source.part == PagePart::html) return lines_of(part_of_page(source.part));
        return pieces({part_of_page(source.part)}, source.part == PagePart::headings);
    }
    __builtin_unreachable();
  }
  static std::vector<FoundPiece> lines_of(std::string text) {
    std::vector<FoundPiece> found;
    found.push_back({.text = std::move(text), .has_lines = true});
    return found;
  }
  static std::vector<FoundPiece> pieces(std::vector<std::string> texts, bool is_json = false) {
    std::vector<FoundPiece> found;
    for (std::string& text : texts) found.push_back({std::move(text), is_json});
    return found;
  }

  std::vector<FoundPiece> search(const RE2& pattern, const FieldRule& rule) {
    std::vector<FoundPiece> found;
    const std::string_view text = document_ ? std::string_view(document_->text()) : json_text_;
    const int group = pattern.NumberOfCapturingGroups() > 0 ? 1 : 0;
    re2::StringPiece parts[2];
    for (std::size_t at = 0;
         at <= text.size() && pattern.Match(text, at, text.size(), RE2::UNANCHORED, parts, group + 1);) {
      if (parts[group].data() != nullptr) found.push_back({std::string(parts[group]), false});
      if (!rule.all || found.size() >= Extractor::kMostValues) break;
      const auto end = static_cast<std::size_t>(parts[0].data() + parts[0].size() - text.data());
      at = parts[0].empty() ? end + 1 : end;
    }
    return found;
  }
  std::vector<FoundPiece> find_linked(const LinkedDataPath& path) {
    if (!linked_) linked_.emplace(*document_);
    std::vector<FoundPiece> found;
    for (LinkedValue& value : linked_->find(path)) found.push_back({std::move(value.text), value.is_json});
    return found;
  }

  std::vector<FoundPiece> find_json(const JsonPointer& pointer, const FieldRule& rule, const JsonValue* within) {
    std::vector<FoundPiece> found;
    if (within == nullptr) return found;
    follow(pointer, *within, [&](const JsonValue& value) {
      const auto add = [&](const JsonValue& one) {
        if (found.size() < Extractor::kMostValues) add_json(one, rule, found);
      };
      if (rule.all && value.is_list()) {
        value.for_each(add);
      } else {
        add(value);
      }
      return rule.all ? found.size() < Extractor::kMostValues : found.empty();
    });
    return found;
  }
  // Numbers, true and false stay what they are unless the field wants something else of them.
  static void add_json(const JsonValue& value, const FieldRule& rule, std::vector<FoundPiece>& found) {
    if (value.is_list() || value.is_object()) return found.push_back({value.json(), true});
    if (const auto text = value.if_text()) {
      const bool stays = rule.type == FieldType::json;
      return found.push_back({stays ? value.json() : std::string(*text), stays});
    }
    const bool is_flag = value.if_flag().has_value();
    if (!is_flag && !value.if_number() && !value.if_natural()) return;  // null
    FoundPiece& piece = found.emplace_back(FoundPiece{value.json(), false});
    if (rule.type != FieldType::text && rule.type != FieldType::json) return;
    piece.value = FieldValue{is_flag ? FieldValue::Kind::boolean : FieldValue::Kind::number, piece.text, {}};
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
  PageText own_text_;
  PageText& text_;  // as others read it, too, or its own
  Url base_;
  std::optional<Document> document_;  // of this extraction alone: a tree is read on one thread
  // Of a page that is JSON.
  std::string_view json_text_;
  JsonErrors json_errors_;
  std::optional<JsonText> json_;
  std::optional<JsonValue> json_root_;
  std::size_t steps_left_ = kMostPointerSteps;
  std::size_t bytes_ = 0;  // of values so far
  std::optional<LinkedData> linked_;
  std::optional<ReadableArticle> article_;
  // Of the record that is being made.
  std::vector<FieldTrouble> missing_;
  std::vector<std::size_t> found_;
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
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::invalid_input, fmt::format("{}: {}", in_quotes(text), why));
  };
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos || sign == 0)
    return wrong("write it as NAME=css:SELECTOR, NAME:TYPE=… or NAME[]=…");
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

// --- Extractor
// -----------------------------------------------------------------------------------------------------------

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
    const auto found =
        std::ranges::find_if(rules, [&](const CompiledRule& rule) { return !rule.match || rule.match->match(href); });
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
  if (rule.sources.empty())
    return wrong("where does it come from? Give css, xpath, re, meta, og, twitter, jsonld, json, readable or page");
  CompiledField field;
  field.rule = rule;
  for (const std::string& notation : rule.sources) {
    auto source = compile_source(notation);
    if (!source) return std::unexpected(std::move(source.error()));
    if (!rule.attribute.empty() && source->kind != SourceKind::selector)
      return wrong("attribute is for css and xpath alone");
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
  compiled.keeps_empty = rule.keeps_empty;
  if (rule.each.starts_with("json:")) {
    auto pointer = JsonPointer::parse(std::string_view(rule.each).substr(5));
    if (!pointer) return in_rule({}, {pointer.error().code, "each: " + pointer.error().message});
    compiled.each_json = std::move(*pointer);
    compiled.reads_json = true;
  } else if (!rule.each.empty()) {
    auto selector = compile_selector(rule.each);
    if (!selector) return in_rule({}, {selector.error().code, "each: " + selector.error().message});
    compiled.each = std::move(*selector);
    compiled.needs_document = true;
  }
  for (const FieldRule& field_rule : rule.fields) {
    const auto same = [&](const CompiledField& other) { return other.rule.name == field_rule.name; };
    if (std::ranges::any_of(compiled.fields, same))
      return in_rule(field_rule.name, {Errc::invalid_input, "it is there twice"});
    auto field = compile(field_rule);
    if (!field) return in_rule(field_rule.name, field.error());
    for (std::size_t i = 0; i < field->sources.size(); ++i) {
      const FieldSource& source = field->sources[i];
      if (compiled.each_json ? !is_found_in_json(source) : compiled.each && source.kind == SourceKind::json) {
        return in_rule(field_rule.name,
                       {Errc::invalid_input, fmt::format("{}: there is no such thing within each record, which is {}",
                                                         in_quotes(field_rule.sources[i]),
                                                         compiled.each_json ? "JSON" : "an element of a page")});
      }
      compiled.reads_json = compiled.reads_json || source.kind == SourceKind::json;
    }
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
  return std::ranges::any_of(compiled_->rules[rule].fields,
                             [&](const CompiledField& field) { return field.column == column; });
}
bool Extractor::matches(std::string_view href) const { return compiled_->rule_of(href) != nullptr; }
bool Extractor::reads(std::string_view href, std::string_view content_type, std::string_view body) const {
  const CompiledRule* const rule = compiled_->rule_of(href);
  return rule != nullptr && (has_tree(content_type, body) || (rule->reads_json && is_json_body(content_type, body)));
}

Result<ExtractedRecords> Extractor::extract(const ExtractedPage& page) const {
  const CompiledRule* const rule = compiled_->rule_of(page.url.href());
  if (rule == nullptr) return ExtractedRecords{};
  auto records = PageExtraction(*rule, compiled_->columns.size(), page).run();
  if (records) records->rule = static_cast<std::size_t>(rule - compiled_->rules.data());
  return records;
}

}  // namespace argiope
