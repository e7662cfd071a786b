#include "crawl/extract/internal/extraction_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/internal/json_members.hpp"
#include "base/internal/json_texts.hpp"
#include "base/internal/printable.hpp"

namespace argiope {
namespace {

constexpr std::string_view kSchemes[] = {"css", "xpath", "meta", "og", "twitter", "jsonld", "json", "readable", "page"};

void read_sources(const JsonValue& value, std::string_view prefix, std::vector<std::string>& out) {
  for (const std::string& text : read_texts(value)) out.push_back(std::string(prefix) + text);
}

std::string text_of_default(const JsonValue& value) {
  if (value.is_list() || value.is_object()) value.complain("a string, a number, true or false");
  return value.shown();
}

void read_kind(JsonMembers& in, FieldRule& rule) {
  const JsonValue* const type = in.find("type");
  if (type == nullptr) return;
  const auto name = type->if_text();
  const auto known = name ? field_type_named(*name) : std::nullopt;
  if (!known) return type->complain("text, lines, raw, html, inner_html, number, integer, boolean, date, url or json");
  rule.type = *known;
}

// { css = ".price", type = "number", required = true }
void read_field_form(const JsonValue& form, FieldRule& rule) {
  JsonMembers in(form);
  // Several sources are asked in the order in which they are written.
  form.for_each_member([&](std::string_view name, const JsonValue& value) {
    if (name == "from") {
      read_sources(value, {}, rule.sources);
    } else if (std::ranges::find(kSchemes, name) != std::end(kSchemes)) {
      read_sources(value, fmt::format("{}:", name), rule.sources);
    }
  });
  (void)in.find("from");
  for (const std::string_view scheme : kSchemes) (void)in.find(scheme);
  rule.re = in.text("re");
  if (rule.sources.empty() && !rule.re.empty()) rule.sources.push_back("re:" + std::exchange(rule.re, {}));
  read_kind(in, rule);
  rule.attribute = in.text("attribute");
  rule.all = in.flag("all", false);
  rule.required = in.flag("required", false);
  if (const JsonValue* const fallback = in.find("default")) rule.fallback = text_of_default(*fallback);
  const std::string decimal = in.text("decimal");
  if (decimal.size() > 1) form.refuse("decimal is \".\" or \",\"");
  if (decimal.size() == 1) rule.decimal = decimal[0];
  if (in.has("day_first")) rule.day_first = in.flag("day_first", false);
  in.finish("a field has none");
}

}  // namespace

std::vector<FieldRule> read_fields(const JsonValue& form) {
  std::vector<FieldRule> fields;
  if (!form.is_object()) {
    form.complain("a table: fields = { title = \"css:h1\" }");
    return fields;
  }
  form.for_each_member([&](std::string_view name, const JsonValue& value) {
    FieldRule& rule = fields.emplace_back();
    rule.name = name;
    if (value.is_object()) {
      read_field_form(value, rule);
    } else {
      read_sources(value, {}, rule.sources);
    }
  });
  return fields;
}

void read_extraction_rule(JsonMembers& in, ExtractionRule& rule) {
  rule.name = in.text("name");
  rule.each = in.text("each");
  if (const JsonValue* const match = in.find("match")) rule.match = read_texts(*match);
  if (const JsonValue* const fields = in.find("fields")) rule.fields = read_fields(*fields);
}

ExtractionRules read_extraction_rules(const JsonValue& form) {
  ExtractionRules rules;
  JsonMembers in(form);
  const JsonValue* const list = in.find("rule");
  in.finish("rules are under [[rule]]");
  if (list == nullptr || !list->is_list()) {
    form.refuse("rules are under [[rule]]");
    return rules;
  }
  list->for_each([&](const JsonValue& entry) {
    ExtractionRule& rule = rules.rules.emplace_back();
    if (!entry.is_object()) return entry.complain("a table, under [[rule]]");
    JsonMembers members(entry);
    read_extraction_rule(members, rule);
    if (!members.has("fields")) entry.refuse("a rule needs fields");
    members.finish("a rule has none");
  });
  return rules;
}

void write_record(JsonWriter& json, const Extractor& extractor, std::size_t rule, const ExtractedRecord& record) {
  for (std::size_t i = 0; i < record.values.size(); ++i) {
    if (!extractor.has_field(rule, i)) continue;
    json.key(extractor.columns()[i]);
    write_field_value(json, record.values[i]);
  }
}

void write_field_value(JsonWriter& json, const FieldValue& value) {
  switch (value.kind) {
    case FieldValue::Kind::none: return json.null();
    case FieldValue::Kind::text: return json.value(value.text);
    case FieldValue::Kind::number:
    case FieldValue::Kind::boolean:
    case FieldValue::Kind::json: return json.raw(value.text);
    case FieldValue::Kind::list:
      return json.array([&] {
        for (const FieldValue& entry : value.list) write_field_value(json, entry);
      });
  }
}

}  // namespace argiope
