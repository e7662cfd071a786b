// The methods of HTTP by their names.
#pragma once

#include <optional>
#include <string_view>

#include "argiope/web/http.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

inline constexpr HttpMethod kHttpMethods[] = {HttpMethod::get,    HttpMethod::head,  HttpMethod::post,
                                              HttpMethod::put,    HttpMethod::patch, HttpMethod::delete_,
                                              HttpMethod::options};

// nullopt: none that is known. On the wire "get" is another method than "GET" (RFC 9110, 9.1).
constexpr std::optional<HttpMethod> http_method_named(std::string_view name) noexcept {
  for (const HttpMethod method : kHttpMethods) {
    if (to_string(method) == name) return method;
  }
  return std::nullopt;
}

// The same for names that people write.
constexpr std::optional<HttpMethod> http_method_in_any_case(std::string_view name) noexcept {
  for (const HttpMethod method : kHttpMethods) {
    if (equals_ignoring_case(name, to_string(method))) return method;
  }
  return std::nullopt;
}

}  // namespace argiope
