#include "web/http/http_request_head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "base/internal/base64.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

bool is_field_safe(std::string_view name, std::string_view value) noexcept {
  return !name.empty() && is_header_safe(name) && is_header_safe(value) &&
         name.find_first_of(": \t") == std::string_view::npos;
}

bool has_field(const std::vector<std::pair<std::string, std::string>>& fields, std::string_view name) {
  return std::ranges::any_of(fields, [&](const auto& field) { return equals_ignoring_case(field.first, name); });
}

}  // namespace

bool goes_to(const HeaderFor& field, const Url& url) {
  const std::string_view where = field.where;
  if (where == "*") return true;
  if (where.contains("://")) return where == url.site_key();
  if (where.starts_with("*.")) return url.host().size() >= where.size() && url.host().ends_with(where.substr(1));
  return where == url.host() || where == url.host_and_port();
}

bool is_header_safe(std::string_view text) noexcept { return !has_controls(text); }

bool is_clients_own(std::string_view name) noexcept {
  constexpr std::string_view kOwnFields[] = {"host",    "connection", "content-length", "transfer-encoding", "te",
                                             "trailer", "upgrade",    "expect",         "keep-alive"};
  return std::ranges::any_of(kOwnFields, [&](std::string_view own) { return equals_lower(name, own); });
}

std::string take_credentials(Url& url) {
  if (url.username().empty() && url.password().empty()) return {};
  std::string value = "Basic " + to_base64(percent_decode(url.username()) + ':' + percent_decode(url.password()));
  url.strip_credentials();
  return value;
}

HttpRequestHead::HttpRequestHead(const HttpClientOptions& options) : options_(options) {
  bool safe = true;
  common_ = {
      {"User-Agent", options.user_agent}, {"Accept", options.accept}, {"Accept-Encoding", "gzip, br, zstd, deflate"}};
  common_.insert(common_.end(), options.headers.begin(), options.headers.end());
  for (const auto& [name, value] : common_) {
    safe = safe && is_field_safe(name, value);
    append_field(common_lines_, name, value);
  }
  for (const HeaderFor& field : options.headers_for) safe = safe && is_field_safe(field.name, field.value);
  if (!safe) throw std::invalid_argument("a request header has a control character or a malformed name");
}

void HttpRequestHead::write(const HttpRequest& request, std::string& out, const Proxy* asked) const {
  const Url& url = request.url;
  out += to_string(request.method);
  out += ' ';
  if (asked != nullptr) out += url.site_key();
  out += url.path_and_query();
  out += " HTTP/1.1\r\nHost: ";
  out += url.host_and_port();
  out += "\r\n";
  if (asked != nullptr) {
    if (const std::string login = asked->authorization(); !login.empty())
      append_field(out, "Proxy-Authorization", login);
  }
  const auto goes_here = [&](const HeaderFor& field) {
    return goes_to(field, url) && (!request.is_anonymous || field.where == "*");
  };
  const auto replaced = [&](const std::string& name) {
    return has_field(request.headers, name) || std::ranges::any_of(options_.headers_for, [&](const HeaderFor& field) {
             return equals_ignoring_case(field.name, name) && goes_here(field);
           });
  };
  if (std::ranges::any_of(common_, [&](const auto& field) { return replaced(field.first); })) {
    for (const auto& [name, value] : common_) {
      if (!replaced(name)) append_field(out, name, value);
    }
  } else {
    out += common_lines_;
  }
  for (const HeaderFor& field : options_.headers_for) {
    if (!has_field(request.headers, field.name) && goes_here(field)) append_field(out, field.name, field.value);
  }
  for (const auto& [name, value] : request.headers) {
    if (is_header_safe(name) && is_header_safe(value)) append_field(out, name, value);
  }
  const bool has_body = !request.body.empty() || request.method == HttpMethod::post ||
                        request.method == HttpMethod::put || request.method == HttpMethod::patch;
  if (has_body) append_field(out, "Content-Length", fmt::to_string(request.body.size()));
  out += "\r\n";
  out += request.body;
}

}  // namespace argiope
