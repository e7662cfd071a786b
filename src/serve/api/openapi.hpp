// The OpenAPI document of the API, src/serve/api/openapi.json, as the program carries it.
#pragma once

#include <string_view>

namespace argiope {

extern const std::string_view kOpenApi;

}  // namespace argiope
