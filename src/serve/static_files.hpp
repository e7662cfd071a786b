// Files that the binary carries for browsers: the dashboard. They are answered as a careful web server answers files.
#pragma once

#include <span>
#include <string_view>

#include "argiope/web/http_server.hpp"

namespace argiope {

// Lifetime: the views are of the program itself.
struct StaticFile {
  std::string_view path;  // of its URL: "/ui/main.js"
  std::string_view type;  // Content-Type
  std::string_view etag;  // changes with its bytes; in its quotes
  std::string_view bytes;
};

// The dashboard; or, where this binary was built without it, a page at "/" that says so and what to do.
std::span<const StaticFile> dashboard_files() noexcept;

// 200 with the file, or 304 for who has it already (If-None-Match). Browsers are told to ask each time, so that pages
// of two versions never meet; to run nothing but these files (Content-Security-Policy), to show them in no frame, and
// to take them as the type they have.
ServerResponse answer(const StaticFile& file, const ServerRequest& request);

// GET and HEAD of each file.
// Lifetime: `files` outlive the router.
// Errors:   std::invalid_argument for a path that is there already.
void add_static_files(HttpRouter& router, std::span<const StaticFile> files);

}  // namespace argiope
