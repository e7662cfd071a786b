// The questions that handlers ask a request, the answers they give in one word, and the head of an answer.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "argiope/web/http_client.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "web/server/http_response_head.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

std::string decode_query(std::string_view text) {
  std::string spaced(text);
  std::ranges::replace(spaced, '+', ' ');
  return percent_decode(spaced);
}

void append_number(std::string& out, std::uint64_t number) {
  char digits[20];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end);
}

void require_sendable(const ServerResponse& response) {
  if (response.status < 200 || response.status > 599) {
    throw std::invalid_argument(fmt::format("a handler answered with the status {}", response.status));
  }
  for (const auto& [name, value] : response.headers) {
    if (!is_token(name) || !is_header_safe(value)) {
      throw std::invalid_argument(fmt::format("a handler answered with a header field that is none: {}: {}",
                                              in_quotes(name), in_quotes(value)));
    }
    if (equals_lower(name, "content-length") || equals_lower(name, "transfer-encoding")) {
      throw std::invalid_argument(fmt::format("a handler answered with a {} of its own", name));
    }
  }
}

}  // namespace

// --- ServerRequest

std::string_view ServerRequest::header(std::string_view name) const noexcept {
  for (const auto& [its_name, value] : headers) {
    if (equals_ignoring_case(its_name, name)) return value;
  }
  return {};
}

std::optional<std::string> ServerRequest::query_value(std::string_view name) const {
  std::optional<std::string> found;
  for_each_token(
      query, [](char c) { return c == '&'; },
      [&](std::string_view pair) {
        const std::size_t equals = std::min(pair.find('='), pair.size());
        if (found || decode_query(pair.substr(0, equals)) != name) return;
        found = decode_query(pair.substr(std::min(equals + 1, pair.size())));
      });
  return found;
}

std::string_view ServerRequest::path_value(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find(path_values, name, [](const auto& one) -> std::string_view { return one.first; });
  return found == path_values.end() ? std::string_view() : found->second;
}

std::optional<std::uint64_t> ServerRequest::path_number(std::string_view name) const noexcept {
  const std::string_view digits = path_value(name);
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

void ServerRequest::set_target(std::string_view sent) noexcept {
  const std::size_t question = std::min(sent.find('?'), sent.size());
  target = sent.empty() ? "/" : sent;
  path = question == 0 ? "/" : sent.substr(0, question);
  query = sent.substr(std::min(question + 1, sent.size()));
}

// --- ServerResponse

ServerResponse ServerResponse::text(int status, std::string body) {
  return {.status = status, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = std::move(body)};
}

ServerResponse ServerResponse::json(int status, std::string body) {
  return {.status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

ServerResponse ServerResponse::problem(int status, std::string_view detail,
                                       std::vector<std::pair<std::string, std::string>> more_headers) {
  ServerResponse response{.status = status, .headers = std::move(more_headers)};
  response.headers.emplace(response.headers.begin(), "Content-Type", "application/problem+json");
  response.body = json_object([&](JsonWriter& json) {
    json.member("type", "about:blank");
    json.member("title", reason_phrase(status));
    json.member("status", status);
    json.member("detail", detail);
  });
  response.body += '\n';
  return response;
}

ServerResponse ServerResponse::streamed(int status, std::string content_type,
                                        std::function<Coro<void>(BodyWriter&)> stream) {
  return {.status = status, .headers = {{"Content-Type", std::move(content_type)}}, .stream = std::move(stream)};
}

// --- the head of an answer

void append_response_head(std::string& out, const ServerResponse& response, const HttpFraming& framing,
                          std::string_view date) {
  require_sendable(response);
  out.append("HTTP/1.1 ");
  append_number(out, static_cast<std::uint64_t>(response.status));
  out.append(" ").append(reason_phrase(response.status)).append("\r\n");
  bool dated = false;
  for (const auto& [name, value] : response.headers) {
    if (equals_lower(name, "connection")) continue;
    dated = dated || equals_lower(name, "date");
    append_field(out, name, value);
  }
  if (!dated) append_field(out, "Date", date);
  if (!framing.connection.empty()) append_field(out, "Connection", framing.connection);
  if (framing.chunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  } else if (framing.length) {
    out.append("Content-Length: ");
    append_number(out, *framing.length);
    out.append("\r\n");
  }
  out.append("\r\n");
}

}  // namespace argiope
