#include "argiope/calls/http_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/duration.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "web/internal/ascii.hpp"
#include "web/internal/http_date.hpp"

namespace argiope {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostCallBytes = 1024 * 1024;
constexpr std::size_t kMostJsonDepth = 64;
constexpr HttpMethod kMethods[] = {HttpMethod::get,   HttpMethod::head,    HttpMethod::post,   HttpMethod::put,
                                   HttpMethod::patch, HttpMethod::delete_, HttpMethod::options};
// What frames the message or says whom it is for is the client's business.
constexpr std::string_view kOwnFields[] = {"host",    "connection", "content-length", "transfer-encoding", "te",
                                           "trailer", "upgrade",    "expect",         "keep-alive"};

// What a member was given as: a string without its quotes, or JSON.
std::string given_as(const json::value& value) {
  return value.is_string() ? std::string(value.as_string()) : json::serialize(value);
}

std::unexpected<Error> bad(std::string_view member, std::string_view given, std::string_view why) {
  return fail(Errc::invalid_input, fmt::format("{} {}: {}", member, in_quotes(given), why));
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_alnum(c) || std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

Result<void> read_url(const json::value& value, HttpRequest& request) {
  const auto url =
      value.is_string() ? Url::parse(value.as_string()) : Result<Url>(fail(Errc::invalid_input, "a string"));
  if (!url) return bad("url", without_credentials(given_as(value)), url.error().message);
  if (url->scheme() != "http" && url->scheme() != "https")
    return bad("url", without_credentials(given_as(value)), "http:// or https://");
  request.url = *url;
  request.url.strip_fragment();
  return {};
}

Result<void> read_method(const json::value& value, HttpRequest& request) {
  for (const HttpMethod method : kMethods) {
    if (value.is_string() && value.as_string() == to_string(method)) {
      request.method = method;
      return {};
    }
  }
  return bad("method", given_as(value), "GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
}

Result<void> read_headers(const json::value& value, HttpRequest& request) {
  if (!value.is_object()) return bad("headers", given_as(value), "an object of names and values");
  if (value.as_object().size() > HttpCall::kMostHeaders) {
    return bad("headers", fmt::to_string(value.as_object().size()), fmt::format("at most {}", HttpCall::kMostHeaders));
  }
  for (const auto& member : value.as_object()) {
    const std::string_view name = member.key();
    if (!is_token(name)) return bad("headers", name, "no name of a header");
    if (std::ranges::any_of(kOwnFields, [&](std::string_view own) { return equals_lower(name, own); })) {
      return bad("headers", name, "is set by the client itself");
    }
    if (!member.value().is_string() || !is_header_safe(member.value().as_string())) {
      return bad(fmt::format("headers {}", name), given_as(member.value()), "a string without control characters");
    }
    request.headers.emplace_back(name, member.value().as_string());
  }
  return {};
}

std::optional<std::pair<int, int>> read_status(const json::value& value) {
  if (value.is_int64() && value.as_int64() >= 100 && value.as_int64() <= 599) {
    const int status = static_cast<int>(value.as_int64());
    return std::pair{status, status};
  }
  const std::string_view text = value.is_string() ? std::string_view(value.as_string()) : std::string_view();
  if (text.size() != 3 || text[0] < '1' || text[0] > '5') return std::nullopt;
  const int hundreds = (text[0] - '0') * 100;
  if (text.substr(1) == "xx") return std::pair{hundreds, hundreds + 99};
  if (!is_digit(text[1]) || !is_digit(text[2])) return std::nullopt;
  const int status = hundreds + (text[1] - '0') * 10 + (text[2] - '0');
  return std::pair{status, status};
}

Result<void> read_expect(const json::value& value, HttpCall& call) {
  call.expect.clear();
  const json::array one{value};
  for (const json::value& item : value.is_array() ? value.as_array() : one) {
    const auto status = read_status(item);
    if (!status) return bad("expect", given_as(item), "a status, 100 to 599, or a class of them, as 2xx");
    call.expect.push_back(*status);
  }
  if (call.expect.empty()) return bad("expect", "[]", "at least one status");
  return {};
}

Result<void> read_timeout(const json::value& value, HttpRequest& request) {
  Result<Duration> timeout = fail(Errc::invalid_input, "a span, as 30s, or a number of seconds");
  if (value.is_string()) timeout = parse_duration(value.as_string());
  if (value.is_number()) timeout = parse_duration(json::serialize(value));
  if (!timeout) return bad("timeout", given_as(value), timeout.error().message);
  request.timeout = *timeout;
  return {};
}

void read_body(const json::value& value, HttpRequest& request) {
  if (value.is_string()) {
    request.body = value.as_string();
    return;
  }
  request.body = json::serialize(value);
  const bool said =
      std::ranges::any_of(request.headers, [](const auto& field) { return equals_lower(field.first, "content-type"); });
  if (!said) request.headers.emplace_back("Content-Type", "application/json");
}

std::string expected(const HttpCall& call) {
  std::string out;
  for (const auto& [from, to] : call.expect) {
    if (!out.empty()) out += " or ";
    out += from == to ? fmt::to_string(from) : fmt::format("{}xx", from / 100);
  }
  return out;
}

std::string result_of(const HttpResponse& response) {
  return json_object([&](JsonWriter& json) {
    json.member("status", response.status);
    json.member("content_type", response.headers.content_type);
    json.member("body", response.body);
    if (response.truncated) json.member("truncated", true);
  });
}

Coro<void> run_call(JobContext& context, HttpTransport& transport, HttpCallOptions options) {
  auto call = parse_http_call(context.payload());
  if (!call) throw BuryJob(call.error().message);
  call->request.body_limit = options.most_kept;
  HttpResponse response;
  const auto sent = co_await transport.send(call->request, response);
  const std::string what = fmt::format("{} {}", to_string(call->request.method), call->request.url.href());
  if (!sent) {
    const std::string why = fmt::format("{}: {}", what, sent.error().message);
    if (sent.error().code == Errc::refused) throw BuryJob(why);
    throw std::runtime_error(why);
  }
  if (!response.damage.empty()) throw std::runtime_error(fmt::format("{}: {}", what, response.damage));
  const bool good = std::ranges::any_of(call->expect, [&](const auto& range) {
    return response.status >= range.first && response.status <= range.second;
  });
  if (good) {
    context.set_result(result_of(response));
    co_return;
  }
  std::string why = fmt::format("{}: status {} instead of {}", what, response.status, expected(*call));
  if (!response.headers.location.empty()) why += ", to " + printable(response.headers.location, kMostQuoted);
  if (!response.body.empty()) why += ": " + printable(response.body, kMostQuoted);
  const auto wait = parse_retry_after(response.headers.retry_after, EventLoop::current().clock().wall_now());
  if (wait) throw RetryJob(why, *wait);
  throw std::runtime_error(why);
}

}  // namespace

Result<HttpCall> parse_http_call(std::string_view text) {
  if (text.size() > kMostCallBytes) {
    return fail(Errc::invalid_input, fmt::format("an HTTP call of {} bytes: at most {}", text.size(), kMostCallBytes));
  }
  boost::system::error_code error;
  json::parse_options limits;
  limits.max_depth = kMostJsonDepth;
  const json::value form = json::parse(text, error, {}, limits);
  if (error || !form.is_object()) {
    return bad("HTTP call", text, error ? "no JSON object (" + error.message() + ")" : "no JSON object");
  }
  HttpCall call;
  bool has_url = false;
  Result<void> read;
  for (const auto& member : form.as_object()) {
    if (member.key() == "url") {
      read = read_url(member.value(), call.request);
      has_url = true;
    } else if (member.key() == "method") {
      read = read_method(member.value(), call.request);
    } else if (member.key() == "headers") {
      read = read_headers(member.value(), call.request);
    } else if (member.key() == "expect") {
      read = read_expect(member.value(), call);
    } else if (member.key() == "timeout") {
      read = read_timeout(member.value(), call.request);
    } else if (member.key() != "body") {
      read = bad("member", member.key(), "an HTTP call has none");
    }
    if (!read) return std::unexpected(std::move(read.error()));
  }
  if (!has_url) return fail(Errc::invalid_input, "an HTTP call needs a url");
  const bool authorized = std::ranges::any_of(
      call.request.headers, [](const auto& field) { return equals_lower(field.first, "authorization"); });
  if (std::string value = take_credentials(call.request.url); !value.empty() && !authorized) {
    call.request.headers.emplace_back("Authorization", std::move(value));
  }
  if (const json::value* body = form.as_object().if_contains("body")) read_body(*body, call.request);
  return call;
}

JobFunction as_http_call(HttpTransport& transport, HttpCallOptions options) {
  return [&transport, options](JobContext& context) { return run_call(context, transport, options); };
}

}  // namespace argiope
