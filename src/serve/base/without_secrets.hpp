// Possible passwords in a project or in what is said of a page: values of headers and cookies, bodies, proxies, scripts
// of rendered pages, where databases are, users and passwords in starts, and all of a webhook's URL but its scheme and
// host. They are for those who may change these; others see "…" in place, and so does the audit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/internal/json_reader.hpp"

namespace argiope {

// Of a project's definition as JSON. The same text where it has none; null for what is no JSON.
std::string definition_without_secrets(const std::string& json);
// Of PageSettings as they are stored.
std::string settings_without_secrets(const std::string& json);
// A text's stand-in for a member, or for an entry of its list, that is a secret anywhere in the two; nullopt: nothing.
std::optional<std::string> in_place_of_secret(std::string_view name, const JsonValue& value);

}  // namespace argiope
