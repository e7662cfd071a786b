#include "serve/without_secrets.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "argiope/web/url.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {
namespace {

constexpr std::string_view kHiddenText = "…";

// What a value belongs to: a name such as "body" is a secret in a request alone, for fields may have any name.
enum class Part : std::uint8_t { whole, project, rule, request, render, texts, processor, sink, other };

struct PartOf {
  Part part;
  std::string_view name;
  Part member;
};
constexpr PartOf kParts[] = {
    {Part::whole, "project", Part::project},   {Part::whole, "rule", Part::rule},
    {Part::whole, "sink", Part::sink},         {Part::project, "request", Part::request},
    {Part::rule, "request", Part::request},    {Part::project, "processor", Part::processor},
    {Part::request, "headers", Part::texts},   {Part::request, "cookies", Part::texts},
    {Part::request, "render", Part::render},
};

// All that is hidden, of definitions and of bodies in the audit.
struct Secret {
  Part part;
  std::string_view name;
  bool is_address = false;  // whose scheme and host are shown: paths of webhooks are secrets, as those of pushes are
};
constexpr Secret kSecrets[] = {
    {Part::request, "headers"}, {Part::request, "cookies"},       {Part::request, "body"},        {Part::request, "body_base64"},
    {Part::request, "proxy"},   {Part::render, "script"},         {Part::sink, "postgresql"},     {Part::sink, "webhook", true},
    {Part::processor, "webhook", true},
};

Part part_of_member(Part part, std::string_view name) {
  const auto found = std::ranges::find_if(kParts, [&](const PartOf& known) { return known.part == part && known.name == name; });
  return found != std::end(kParts) ? found->member : Part::other;
}

std::string shown_address(std::string_view text) {
  const auto url = Url::parse(text);
  if (!url) return std::string(kHiddenText);
  const std::string site = url->site_key();
  return url->href() == site + '/' ? std::string(text) : site + "/…";
}

// What is shown of a text; nullopt: all of it.
std::optional<std::string> shown_of(Part part, std::string_view name, std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (part == Part::texts) return std::string(kHiddenText);
  const auto secret = std::ranges::find_if(kSecrets, [&](const Secret& known) { return known.part == part && known.name == name; });
  if (secret == std::end(kSecrets)) return std::nullopt;
  return secret->is_address ? shown_address(text) : std::string(kHiddenText);
}

// Whether anything was hidden.
bool write_hiding_secrets(JsonWriter& out, const JsonValue& value, Part part) {
  bool has_hidden = false;
  if (value.is_object()) {
    out.object([&] {
      value.for_each_name([&](std::string_view name, const JsonValue& member) {
        out.key(name);
        const auto text = member.if_text();
        const auto shown = text ? shown_of(part, name, *text) : std::nullopt;
        if (shown) out.value(*shown);
        has_hidden = has_hidden || (shown && *shown != *text);
        if (!shown && write_hiding_secrets(out, member, part_of_member(part, name))) has_hidden = true;
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

std::string settings_without_secrets(const std::string& json) { return hiding(json, Part::project); }

std::optional<std::string> in_place_of_secret(std::string_view name, const JsonValue& value) {
  const auto secret = std::ranges::find(kSecrets, name, &Secret::name);
  if (secret == std::end(kSecrets)) return std::nullopt;
  const auto text = secret->is_address ? value.if_text() : std::nullopt;
  return text ? shown_address(*text) : std::string(kHiddenText);
}

}  // namespace argiope
