// What may be a password in a project or in what is said of a page: values of headers and cookies, bodies, proxies, and where databases are.
// It is for those who may change them; others see "…" in its place.
#pragma once

#include <string>

namespace argiope {

// Of a project's definition as JSON. The same text where it has none; null for what is no JSON.
std::string definition_without_secrets(const std::string& json);
// Of PageSettings as they are stored.
std::string settings_without_secrets(const std::string& json);

}  // namespace argiope
