#include "serve/base/without_secrets.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "argiope/web/url.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {
namespace {

constexpr std::string_view kHiddenText = "…";

// The part that a value belongs to: a name such as "body" is a secret in a request alone, for fields may have any name.
enum class Part : std::uint8_t { whole, project, rule, request, render, texts, processor, sink, other };

struct PartOf {
  Part part;
  std::string_view name;
  Part member;
};
constexpr PartOf kParts[] = {
    {Part::whole, "project", Part::project}, {Part::whole, "rule", Part::rule},
    {Part::whole, "sink", Part::sink},       {Part::project, "request", Part::request},
    {Part::rule, "request", Part::request},  {Part::project, "processor", Part::processor},
    {Part::request, "headers", Part::texts}, {Part::request, "cookies", Part::texts},
    {Part::request, "render", Part::render},
};

// All that is hidden, of definitions and of bodies in the audit.
struct Secret {
  Part part;
  std::string_view name;
  enum class Shown : std::uint8_t {
    nothing,
    site,      // of an address its scheme and host: paths of webhooks are secrets, as those of pushes are
    but_user,  // an address without the user and the password in it
  };
  Shown shown = Shown::nothing;
};
constexpr Secret kSecrets[] = {
    {Part::request, "headers"},
    {Part::request, "cookies"},
    {Part::request, "body"},
    {Part::request, "body_base64"},
    {Part::request, "proxy"},
    {Part::render, "script"},
    {Part::sink, "postgresql"},
    {Part::sink, "webhook", Secret::Shown::site},
    {Part::processor, "webhook", Secret::Shown::site},
    {Part::project, "start", Secret::Shown::but_user},
};

Part part_of_member(Part part, std::string_view name) {
  const auto found =
      std::ranges::find_if(kParts, [&](const PartOf& known) { return known.part == part && known.name == name; });
  return found != std::end(kParts) ? found->member : Part::other;
}

// Of what has no host anything might be the secret.
std::string site_of_webhook(std::string_view text) {
  const auto url = Url::parse(text);
  return url && !url->host().empty() ? without_path(text) : std::string(kHiddenText);
}

const Secret* secret_of(Part part, std::string_view name) {
  const auto secret =
      std::ranges::find_if(kSecrets, [&](const Secret& known) { return known.part == part && known.name == name; });
  return secret == std::end(kSecrets) ? nullptr : &*secret;
}

// As it is read, which is more than what looks like an address: "http:ann:secret@host".
std::string shown_without_user(std::string_view text) {
  const auto url = Url::parse(text);
  return url && !(url->username().empty() && url->password().empty()) ? without_credentials(url->href())
                                                                      : std::string(text);
}

std::string shown_as(Secret::Shown shown, std::string_view text) {
  using enum Secret::Shown;
  switch (shown) {
    case nothing: return std::string(kHiddenText);
    case site: return site_of_webhook(text);
    case but_user: return shown_without_user(text);
  }
  std::unreachable();
}

// The part of a text that is shown; nullopt: all of it.
std::optional<std::string> shown_of(Part part, std::string_view name, std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (part == Part::texts) return std::string(kHiddenText);
  const Secret* const secret = secret_of(part, name);
  return secret == nullptr ? std::nullopt : std::optional(shown_as(secret->shown, text));
}

// A secret of many parts, of whose members nothing is known.
bool is_hidden_whole(Part part, std::string_view name) {
  const Secret* const secret = secret_of(part, name);
  return secret != nullptr && secret->shown == Secret::Shown::nothing && part_of_member(part, name) == Part::other;
}

// `name`: of the member of `part` that it is, or is an entry of; empty: it is `part` itself. Whether anything was
// hidden.
bool write_hiding_secrets(JsonWriter& out, const JsonValue& value, Part part, std::string_view name) {
  bool has_hidden = false;
  if (const auto text = value.if_text()) {
    const auto shown = shown_of(part, name, *text);
    out.value(shown ? std::string_view(*shown) : std::string_view(*text));
    has_hidden = shown && *shown != *text;
  } else if ((value.is_object() || value.is_list()) && is_hidden_whole(part, name)) {
    out.value(kHiddenText);
    has_hidden = true;
  } else if (value.is_object()) {
    const Part its = name.empty() ? part : part_of_member(part, name);
    out.object([&] {
      value.for_each_name([&](std::string_view its_name, const JsonValue& member) {
        out.key(its_name);
        has_hidden = write_hiding_secrets(out, member, its, its_name) || has_hidden;
      });
    });
  } else if (value.is_list()) {
    out.array([&] {
      value.for_each(
          [&](const JsonValue& entry) { has_hidden = write_hiding_secrets(out, entry, part, name) || has_hidden; });
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
  return write_hiding_secrets(out, text->root(errors), whole, {}) ? shown : json;
}

}  // namespace

std::string definition_without_secrets(const std::string& json) { return hiding(json, Part::whole); }

std::string settings_without_secrets(const std::string& json) { return hiding(json, Part::project); }

std::optional<std::string> in_place_of_secret(std::string_view name, const JsonValue& value) {
  const auto secret = std::ranges::find(kSecrets, name, &Secret::name);
  if (secret == std::end(kSecrets)) return std::nullopt;
  const auto text = value.if_text();
  if (secret->shown == Secret::Shown::nothing) return std::string(kHiddenText);
  if (text) return shown_as(secret->shown, *text);
  return secret->shown == Secret::Shown::but_user ? std::nullopt : std::optional(std::string(kHiddenText));
}

}  // namespace argiope
