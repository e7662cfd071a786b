#include "serve/without_secrets.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {
namespace {

constexpr std::string_view kHiddenText = "…";
constexpr std::string_view kSecretsOfRequests[] = {"body", "body_base64", "proxy"};

// What a value belongs to: a name such as "body" is a secret in a request alone, for fields may have any name.
enum class Part : std::uint8_t { whole, with_request, request, render, texts, sink, other };

Part part_of_member(Part part, std::string_view name) {
  if (part == Part::whole)
    return name == "project" || name == "rule" ? Part::with_request : name == "sink" ? Part::sink : Part::other;
  if (part == Part::with_request && name == "request") return Part::request;
  if (part == Part::request && (name == "headers" || name == "cookies")) return Part::texts;
  if (part == Part::request && name == "render") return Part::render;
  return Part::other;
}

bool is_secret(Part part, std::string_view name, std::string_view text) {
  if (text.empty()) return false;
  if (part == Part::request) return std::ranges::find(kSecretsOfRequests, name) != std::end(kSecretsOfRequests);
  if (part == Part::render) return name == "script";  // that may log in
  if (part == Part::sink) return name == "postgresql" || (name == "webhook" && text.find_first_of("@?") != std::string_view::npos);
  return part == Part::texts;
}

// Whether anything was hidden.
bool write_hiding_secrets(JsonWriter& out, const JsonValue& value, Part part) {
  bool has_hidden = false;
  if (value.is_object()) {
    out.object([&] {
      value.for_each_name([&](std::string_view name, const JsonValue& member) {
        out.key(name);
        const auto text = member.if_text();
        const bool hides = text && is_secret(part, name, *text);
        if (hides) out.value(kHiddenText);
        has_hidden = has_hidden || hides;
        if (!hides && write_hiding_secrets(out, member, part_of_member(part, name))) has_hidden = true;
      });
    });
  } else if (value.is_list()) {
    out.array([&] {
      value.for_each(
          [&](const JsonValue& entry) { has_hidden = write_hiding_secrets(out, entry, part) || has_hidden; });
    });
  } else {
    out.raw(value.json());
  }
  return has_hidden;
}

std::string hiding(const std::string& json, Part whole) {
  if (json.empty()) return json;
  const auto text = JsonText::parse(json);
  if (!text) return "null";
  JsonErrors errors;
  std::string shown;
  JsonWriter out(shown);
  return write_hiding_secrets(out, text->root(errors), whole) ? shown : json;
}

}  // namespace

std::string definition_without_secrets(const std::string& json) { return hiding(json, Part::whole); }

std::string settings_without_secrets(const std::string& json) { return hiding(json, Part::with_request); }

}  // namespace argiope
