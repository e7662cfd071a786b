#include "serve/static_files.hpp"

#include <string>

namespace argiope {

namespace {

constexpr std::string_view kSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri "
    "'none'; "
    "frame-ancestors 'none'; form-action 'self'";

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Whether `list`, the value of If-None-Match, names the file: by the weak comparison (RFC 9110, 13.1.2). Our tags have
// no commas.
bool names(std::string_view list, std::string_view etag) noexcept {
  if (trimmed(list) == "*") return true;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view given = trimmed(list.substr(0, comma));
    if (given.starts_with("W/")) given.remove_prefix(2);
    if (given == etag) return true;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return false;
}

}  // namespace

ServerResponse answer(const StaticFile& file, const ServerRequest& request) {
  ServerResponse response;
  response.headers = {{"ETag", std::string(file.etag)},
                      {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", std::string(kSecurityPolicy)},
                      {"X-Content-Type-Options", "nosniff"},
                      {"X-Frame-Options", "DENY"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"}};
  if (names(request.header("If-None-Match"), file.etag)) {
    response.status = 304;
    return response;
  }
  response.headers.emplace_back("Content-Type", file.type);
  response.body = file.bytes;
  return response;
}

void add_static_files(HttpRouter& router, std::span<const StaticFile> files) {
  for (const StaticFile& file : files) {
    router.get(file.path, [&file](ServerRequest& request) -> Coro<ServerResponse> { co_return answer(file, request); });
  }
}

}  // namespace argiope
