#include "project/run/internal/tried_page_json.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostTriedShown = 8 * 1024 * 1024;  // of values; of results, leads and messages each

void write_or_null(JsonWriter& json, std::string_view name, std::string_view text) {
  json.member(name, text.empty() ? std::nullopt : std::optional(text));
}

void write_json_value(JsonWriter& json, std::string_view name, std::string_view value) {
  json.key(name);
  json.raw(value.empty() ? std::string_view("null") : value);
}

void write_fetched(JsonWriter& json, const TriedPage& tried) {
  json.member("url", tried.url);
  json.member("status", tried.status);
  json.key("took_ms");
  json.fixed(to_seconds(tried.took) * 1e3, 3);
  json.member("content_type", content_type_of(tried));
  json.array("headers", [&] {
    for (const auto& [name, value] : tried.headers) {
      json.array([&] {
        json.value(name);
        json.value(value);
      });
    }
  });
  json.member("body", tried.text);
  json.member("body_bytes", tried.body_bytes);
  json.member("is_cut", tried.is_cut);
  write_or_null(json, "error", tried.not_fetched);
}

// As many as there is room for, by what size(value) says. How many are left out.
template <class Value, class Size, class Write>
std::size_t write_some(JsonWriter& json, std::string_view name, const std::vector<Value>& values, Size size,
                       Write write) {
  std::size_t room = kMostTriedShown, shown = 0;
  json.array(name, [&] {
    for (const Value& value : values) {
      const std::size_t bytes = size(value);
      if (bytes > room) return;
      room -= bytes;
      ++shown;
      json.object([&] { write(value); });
    }
  });
  return values.size() - shown;
}

void write_lead(JsonWriter& json, const TriedPage::Lead& lead) {
  json.member("url", lead.url);
  write_or_null(json, "rule", lead.rule);
  json.member("becomes", lead.becomes);
  json.member("is_followed", lead.is_followed);
  if (!lead.context_json.empty()) write_json_value(json, "data", lead.context_json);
  if (lead.priority) json.member("priority", *lead.priority);
  if (!lead.page_json.empty()) write_json_value(json, "page", lead.page_json);
}

void write_what_it_gave(JsonWriter& json, const TriedPage& tried) {
  write_or_null(json, "rule", tried.rule);
  json.member("becomes", tried.becomes);
  json.list("columns", tried.columns);
  const std::size_t more_results = write_some(
      json, "results", tried.results, [](const PageResult& result) { return result.value_json.size(); },
      [&](const PageResult& result) {
        json.member("part", result.part);
        write_json_value(json, "value", result.value_json);
      });
  json.member("results_left_out", more_results);
  json.member("dropped", tried.dropped);
  write_or_null(json, "not_extracted", tried.not_extracted);
  // The context and settings of a lead may be as large as a page.
  const auto size_of_lead = [](const TriedPage::Lead& lead) {
    return lead.context_json.size() + lead.page_json.size();
  };
  const std::size_t more_leads = write_some(json, "follows", tried.leads, size_of_lead,
                                            [&](const TriedPage::Lead& lead) { write_lead(json, lead); });
  json.member("follows_left_out", tried.leads_left_out + more_leads);
  const std::size_t more_messages = write_some(
      json, "messages", tried.messages, [](const PageMessage& message) { return message.message_json.size(); },
      [&](const PageMessage& message) {
        json.member("project", message.project);
        write_json_value(json, "message", message.message_json);
        json.member("url", message.url);
      });
  json.member("messages_left_out", more_messages);
  if (tried.save_json) write_json_value(json, "save", *tried.save_json);
  json.array("logs", [&] {
    for (const PageLog& line : tried.logs) {
      json.object([&] {
        json.member("level", line.level);
        json.member("text", line.text);
      });
    }
  });
  json.key("failure");
  if (!tried.failure) return json.null();
  json.object([&] {
    json.member("text", tried.failure->text);
    json.member("kind", tried.failure->kind);
    json.member("where", tried.failure->where);
    json.member("trace", tried.failure->trace);
  });
}

}  // namespace

std::string_view content_type_of(const TriedPage& tried) noexcept {
  const auto type =
      std::ranges::find_if(tried.headers, [](const auto& field) { return equals_lower(field.first, "content-type"); });
  return type == tried.headers.end() ? std::string_view{} : std::string_view(type->second);
}

void write_tried_page(JsonWriter& json, std::string_view asked, const TriedPage& tried) {
  json.member("asked", asked);
  write_fetched(json, tried);
  write_what_it_gave(json, tried);
}

}  // namespace argiope
