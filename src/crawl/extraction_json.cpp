#include "crawl/internal/extraction_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/internal/json_members.hpp"
#include "base/internal/printable.hpp"

namespace argiope {
namespace {

constexpr std::string_view kSchemes[] = {"css", "xpath", "meta", "og", "twitter", "jsonld", "readable", "page"};

// A string, or a list of them; with `prefix` before each.
void read_texts(const JsonValue& value, std::string_view prefix, std::vector<std::string>& out) {
  const auto take = [&](const JsonValue& entry) {
    const auto text = entry.if_text();
    if (!text) return entry.complain("a string");
    out.push_back(std::string(prefix) + std::string(*text));
  };
  if (value.is_list()) {
    value.for_each(take);
  } else {
    take(value);
  }
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
      read_texts(value, {}, rule.sources);
    } else if (std::ranges::find(kSchemes, name) != std::end(kSchemes)) {
      read_texts(value, fmt::format("{}:", name), rule.sources);
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
      read_texts(value, {}, rule.sources);
    }
  });
  return fields;
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
    rule.name = members.text("name");
    rule.each = members.text("each");
    if (const JsonValue* const match = members.find("match")) read_texts(*match, {}, rule.match);
    if (const JsonValue* const fields = members.find("fields")) {
      rule.fields = read_fields(*fields);
    } else {
      entry.refuse("a rule needs fields");
    }
    members.finish("a rule has none");
  });
  return rules;
}

}  // namespace argiope
