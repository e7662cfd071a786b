#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/calls/calls.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "calls/http_call_form.hpp"
#include "calls/internal/call_functions.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/http/internal/http_method_names.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

constexpr Duration kUntilAllowed = std::chrono::minutes{5};

void read_url(const JsonValue& value, HttpRequest& request) {
  // Logs keep errors, and the path of a webhook is its secret.
  const auto bad = [&](std::string_view why) { value.complain_of(without_path(value.shown()), why); };
  const auto text = value.if_text();
  if (!text) return bad("a string");
  const auto url = Url::parse(*text);
  if (!url) return bad(url.error().message);
  if (url->scheme() != "http" && url->scheme() != "https") return bad("http:// or https://");
  request.url = *url;
  request.url.strip_fragment();
}

void read_method(const JsonValue& value, HttpRequest& request) {
  const auto method = http_method_named(value.if_text().value_or(""));
  if (!method) return value.complain("GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
  request.method = *method;
}

void read_headers(const JsonValue& value, HttpRequest& request) {
  if (!value.is_object()) return value.complain("an object of names and values");
  if (value.size() > HttpCall::kMostHeaders) {
    return value.complain_of(fmt::to_string(value.size()), fmt::format("at most {}", HttpCall::kMostHeaders));
  }
  value.for_each_name([&](std::string_view name, const JsonValue& header) {
    if (!is_token(name)) return header.refuse_name("no name of a header");
    if (is_clients_own(name)) return header.refuse_name("is set by the client itself");
    const auto text = header.if_text();
    if (!text || !is_header_safe(*text)) return header.complain("a string without control characters");
    request.headers.emplace_back(name, *text);
  });
}

std::optional<std::pair<int, int>> read_status(const JsonValue& value) {
  if (const auto number = value.if_whole(); number && *number >= 100 && *number <= 599) {
    const int status = static_cast<int>(*number);
    return std::pair{status, status};
  }
  const std::string_view text = value.if_text().value_or("");
  if (text.size() != 3 || text[0] < '1' || text[0] > '5') return std::nullopt;
  const int hundreds = (text[0] - '0') * 100;
  if (text.substr(1) == "xx") return std::pair{hundreds, hundreds + 99};
  if (!is_digit(text[1]) || !is_digit(text[2])) return std::nullopt;
  const int status = hundreds + (text[1] - '0') * 10 + (text[2] - '0');
  return std::pair{status, status};
}

void read_expect(const JsonValue& value, HttpCall& call) {
  call.expect.clear();
  const auto read_one = [&](const JsonValue& item) {
    const auto status = read_status(item);
    if (!status) return item.complain("a status, 100 to 599, or a class of them, as 2xx");
    call.expect.push_back(*status);
  };
  value.is_list() ? value.for_each(read_one) : read_one(value);
  if (call.expect.empty()) value.complain("at least one status");
}

void read_timeout(const JsonValue& value, HttpRequest& request) {
  if (!value.if_text() && !value.if_number()) return value.complain("a span, as 30s, or a number of seconds");
  const auto timeout = parse_duration(value.shown());
  if (!timeout) return value.complain(timeout.error().message);
  request.timeout = *timeout;
}

void read_body(const JsonValue& value, HttpRequest& request) {
  if (const auto text = value.if_text()) {
    request.body = *text;
    return;
  }
  request.body = value.kept_json();
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
    if (sent.error().code != Errc::refused || !options.refused_waits) throw std::runtime_error(why);
    // The configuration's trouble, and not this job's; others of the queue go elsewhere.
    spdlog::error("queue {}: job {}: {}; it is tried again in {}", in_quotes(context.job().queue), context.job().id,
                  printable(why), format_duration(kUntilAllowed));
    throw SnoozeJob(kUntilAllowed);
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

Result<HttpCall> detail::read_http_call(std::string_view text, HttpMethod usual,
                                        const std::function<void(JsonMembers& in, HttpCall& call)>& read_more) {
  const auto parsed = JsonText::parse_object("HTTP call", text, kMostCallBytes);
  if (!parsed) return std::unexpected(parsed.error());
  JsonErrors errors;
  const JsonValue form = parsed->root(errors);
  JsonMembers in(form);
  HttpCall call;
  call.request.method = usual;
  const auto member = [&](std::string_view name, auto read) {
    if (const JsonValue* value = in.find(name)) read(*value, call.request);
  };
  member("url", read_url);
  member("method", read_method);
  member("headers", read_headers);
  member("timeout", read_timeout);
  read_more(in, call);
  in.finish("an HTTP call has none");
  if (!in.has("url")) form.refuse("an HTTP call needs a url");
  if (errors) return std::unexpected(errors.error());
  const bool authorized = std::ranges::any_of(
      call.request.headers, [](const auto& field) { return equals_lower(field.first, "authorization"); });
  if (std::string value = take_credentials(call.request.url); !value.empty() && !authorized) {
    call.request.headers.emplace_back("Authorization", std::move(value));
  }
  return call;
}

Result<HttpCall> parse_http_call(std::string_view text) {
  return detail::read_http_call(text, HttpMethod::get, [](JsonMembers& in, HttpCall& call) {
    if (const JsonValue* expect = in.find("expect")) read_expect(*expect, call);
    if (const JsonValue* body = in.find("body")) read_body(*body, call.request);
  });
}

JobFunction as_http_call(HttpTransport& transport, HttpCallOptions options) {
  return [&transport, options](JobContext& context) { return run_call(context, transport, options); };
}

}  // namespace argiope
