// The outcome of a page that was tried, as JSON: docs/http-api.md, "Trying a page".
#pragma once

#include <string_view>

#include "base/internal/json_writer.hpp"
#include "project/run/internal/page_engine.hpp"

namespace argiope {

// As it came; empty: none.
std::string_view content_type_of(const TriedPage& tried) noexcept;
// As members of the object that is open. Values are written up to 8 MiB of each kind.
void write_tried_page(JsonWriter& json, std::string_view asked, const TriedPage& tried);

}  // namespace argiope
