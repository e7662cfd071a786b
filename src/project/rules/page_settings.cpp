#include "project/rules/internal/page_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/base64.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "web/http/internal/http_method_names.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

using std::chrono::milliseconds;

// A century: what is longer is as good as for ever, and sums with it stay times.
constexpr std::int64_t kLongestSettingMs = std::int64_t{36'525} * 24 * 3'600'000;
constexpr std::size_t kMostTagBytes = 1'000;
constexpr std::int64_t kMostRetries = 1'000;
constexpr std::int64_t kMostRedirects = 20;
constexpr std::int64_t kMostPixels = 100'000;
constexpr std::size_t kMostTextBytes = 2 * 1024 * 1024;

Duration span_of(const JsonValue& value, std::int64_t least) {
  const std::int64_t span = value.whole(least, std::numeric_limits<std::int64_t>::max());
  return milliseconds{std::min(span, kLongestSettingMs)};
}

// `read` makes a value of what is no null.
template <class Value, class Read>
void take_said(Said<Value>& said, const JsonValue& value, Read read) {
  said.is_said = true;
  said.value.reset();
  if (!value.is_null()) said.value = read(value);
}

void take_flag(Said<bool>& said, const JsonValue& value) {
  take_said(said, value, [](const JsonValue& given) { return given.flag(); });
}
void take_span(Said<Duration>& said, const JsonValue& value, std::int64_t least) {
  take_said(said, value, [&](const JsonValue& given) { return span_of(given, least); });
}
void take_natural(Said<std::uint32_t>& said, const JsonValue& value, std::int64_t most) {
  take_said(said, value, [&](const JsonValue& given) { return static_cast<std::uint32_t>(given.whole(0, most)); });
}

// --- requests -------------------------------------------------------------------------------------------------------

bool is_header_name(std::string_view name) noexcept {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return is_alnum(c) || std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

bool is_cookie_name(std::string_view name) noexcept {
  return !name.empty() && is_header_safe(name) && name.find_first_of("=;") == std::string_view::npos;
}

bool is_cookie_value(std::string_view value) noexcept { return is_header_safe(value) && !value.contains(';'); }

bool is_same_header(std::string_view a, std::string_view b) noexcept { return equals_ignoring_case(a, b); }
bool is_same_cookie(std::string_view a, std::string_view b) noexcept { return a == b; }
using IsSameName = bool (*)(std::string_view, std::string_view) noexcept;

// Of a name that is there already the later value counts.
void set_named(RequestSettings::Named& all, std::string_view name, Said<std::string> value, IsSameName is_same) {
  const auto known = std::ranges::find_if(all, [&](const auto& entry) { return is_same(entry.first, name); });
  if (known != all.end()) all.erase(known);
  all.emplace_back(name, std::move(value));
}

struct NamedForm {
  IsSameName is_same;
  bool (*is_name)(std::string_view) noexcept;
  bool (*is_value)(std::string_view) noexcept;
  std::string_view no_name, no_value;
};
constexpr NamedForm kHeaderForm = {is_same_header, is_header_name, is_header_safe, "no name of a header",
                                   "a string without control characters is wanted"};
constexpr NamedForm kCookieForm = {is_same_cookie, is_cookie_name, is_cookie_value, "no name of a cookie",
                                   "a string without control characters and semicolons is wanted"};

// Messages never repeat a value: it may be a password.
void take_named(RequestSettings::Named& all, bool& none_behind, const JsonValue& value, const NamedForm& form) {
  all.clear();
  none_behind = value.is_null();
  if (none_behind) return;
  if (!value.is_object()) return value.wrong("an object of names and values");
  if (value.size() > RequestSettings::kMostNamed) {
    return value.complain_of(fmt::to_string(value.size()), fmt::format("at most {}", RequestSettings::kMostNamed));
  }
  value.for_each_member([&](std::string_view name, const JsonValue& given) {
    if (!form.is_name(name)) return given.refuse_name(form.no_name);
    Said<std::string> said;
    take_said(said, given, [&](const JsonValue& text) {
      const auto content = text.if_text();
      if (!content || !form.is_value(*content)) text.refuse(form.no_value);
      return std::string(content.value_or(""));
    });
    set_named(all, name, std::move(said), form.is_same);
  });
}

std::string method_of(const JsonValue& value) {
  const auto method = http_method_in_any_case(value.if_text().value_or(""));
  if (method) return std::string(to_string(*method));
  value.wrong("GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
  return {};
}

std::string decoded_body_of(const JsonValue& value) {
  auto bytes = from_base64(value.if_text().value_or("?"));
  if (!bytes) value.wrong("base64 with its padding");
  return std::move(bytes).value_or("");
}

// Messages never repeat what is given: a password may be in it.
std::string proxy_of(const JsonValue& value) {
  if (value.if_flag() == false || value.if_text() == "") return {};
  const auto text = value.if_text();
  if (!text) {
    value.wrong("an address such as http://127.0.0.1:8080, or false");
    return {};
  }
  if (auto proxy = Proxy::parse(*text); !proxy) value.refuse(proxy.error().message);
  return std::string(*text);
}

RequestSettings::Validator validator_of(const JsonValue& value) {
  if (const auto flag = value.if_flag()) return {.sent = *flag, .text = {}};
  const auto text = value.if_text();
  if (!text || !is_header_safe(*text)) value.wrong("true, false, or a string without control characters");
  return {.sent = text && !text->empty(), .text = std::string(text.value_or(""))};
}

RequestSettings::Render render_of(const JsonValue& value) {
  RequestSettings::Render render;
  if (!value.is_object()) value.wrong("an object");
  value.for_each_member([&](std::string_view name, const JsonValue& given) {
    if (given.is_null()) return;
    if (name == "script") render.script = given.text(0, kMostTextBytes);
    if (name == "run_at") render.at_start = given.one_of({"end", "start"}) == 1;
    if (name == "width") render.width = static_cast<std::uint32_t>(given.whole(0, kMostPixels));
    if (name == "height") render.height = static_cast<std::uint32_t>(given.whole(0, kMostPixels));
    if (name == "images") render.images = given.flag();
  });
  return render;
}

// --- all members that are no names, each by the same function

template <class Settings, class Each>
void for_each_said(Settings& settings, Each each) {
  each(settings.priority), each(settings.age), each(settings.tag), each(settings.retries), each(settings.recrawl);
  each(settings.time_limit);
  auto& request = settings.request;
  each(request.method), each(request.body), each(request.timeout), each(request.connect_timeout),
      each(request.redirects);
  each(request.verify_certificate), each(request.proxy), each(request.etag), each(request.last_modified);
  each(request.robots), each(request.render);
}

// Members that are given after it replace it.
void take_back_request(PageSettings& settings) {
  const PageSettings kept = settings;
  for_each_said(settings, []<class Value>(Said<Value>& said) { said = {.is_said = true, .value = {}}; });
  RequestSettings nothing = std::move(settings.request);
  nothing.headers.clear();
  nothing.cookies.clear();
  nothing.no_headers_behind = nothing.no_cookies_behind = true;
  settings = kept;
  settings.request = std::move(nothing);
}

void take_request(PageSettings& settings, const JsonValue& value) {
  if (value.is_null()) return take_back_request(settings);
  if (!value.is_object()) return value.wrong("an object");
  RequestSettings& request = settings.request;
  int bodies = 0;
  value.for_each_name([&](std::string_view name, const JsonValue& given) {
    if (name == "method") return take_said(request.method, given, method_of);
    if (name == "headers") return take_named(request.headers, request.no_headers_behind, given, kHeaderForm);
    if (name == "cookies") return take_named(request.cookies, request.no_cookies_behind, given, kCookieForm);
    if (name == "timeout_ms") return take_span(request.timeout, given, 1);
    if (name == "connect_timeout_ms") return take_span(request.connect_timeout, given, 1);
    if (name == "redirects") return take_natural(request.redirects, given, kMostRedirects);
    if (name == "verify_certificate") return take_flag(request.verify_certificate, given);
    if (name == "proxy") return take_said(request.proxy, given, proxy_of);
    if (name == "etag") return take_said(request.etag, given, validator_of);
    if (name == "last_modified") return take_said(request.last_modified, given, validator_of);
    if (name == "robots") return take_flag(request.robots, given);
    if (name == "render") return take_said(request.render, given, render_of);
    if (name != "body" && name != "body_base64") return;
    if (!given.is_null() && ++bodies > 1) return given.refuse("body and body_base64 are two bodies: one is wanted");
    if (given.is_null() && bodies > 0) return;  // the other one is said
    if (name == "body_base64") return take_said(request.body, given, decoded_body_of);
    take_said(request.body, given, [](const JsonValue& text) { return text.text(0, kMostTextBytes); });
  });
}

// --- writing --------------------------------------------------------------------------------------------------------

// `write(value)` writes what is no null.
template <class Value, class Write>
void put_said(JsonWriter& out, std::string_view name, const Said<Value>& said, Write write) {
  if (!said.is_said) return;
  out.key(name);
  if (said.value) {
    write(*said.value);
  } else {
    out.null();
  }
}
template <class Value>
void put_said(JsonWriter& out, std::string_view name, const Said<Value>& said) {
  put_said(out, name, said, [&](const Value& value) { out.value(value); });
}
void put_span(JsonWriter& out, std::string_view name, const Said<Duration>& said) {
  put_said(out, name, said, [&](Duration span) { out.value(std::chrono::floor<milliseconds>(span).count()); });
}

void put_named(JsonWriter& out, std::string_view name, const RequestSettings::Named& all, bool none_behind) {
  if (all.empty() && !none_behind) return;
  out.key(name);
  if (all.empty()) return out.null();
  out.object([&] {
    for (const auto& [each, said] : all) put_said(out, each, said);
  });
}

void put_validator(JsonWriter& out, std::string_view name, const Said<RequestSettings::Validator>& said) {
  put_said(out, name, said, [&](const RequestSettings::Validator& validator) {
    if (validator.sent && !validator.text.empty()) {
      out.value(validator.text);
    } else {
      out.value(validator.sent);
    }
  });
}

void put_render(JsonWriter& out, const RequestSettings::Render& render) {
  out.object([&] {
    if (!render.script.empty()) out.member("script", render.script);
    if (render.at_start) out.member("run_at", "start");
    if (render.width > 0) out.member("width", render.width);
    if (render.height > 0) out.member("height", render.height);
    if (render.images) out.member("images", true);
  });
}

void put_request(JsonWriter& out, const RequestSettings& request) {
  put_said(out, "method", request.method);
  put_named(out, "headers", request.headers, request.no_headers_behind);
  put_named(out, "cookies", request.cookies, request.no_cookies_behind);
  const bool is_text = !request.body.value || is_utf8(*request.body.value);
  put_said(out, is_text ? "body" : "body_base64", request.body,
           [&](const std::string& body) { out.value(is_text ? body : to_base64(body)); });
  put_span(out, "timeout_ms", request.timeout);
  put_span(out, "connect_timeout_ms", request.connect_timeout);
  put_said(out, "redirects", request.redirects);
  put_said(out, "verify_certificate", request.verify_certificate);
  put_said(out, "proxy", request.proxy, [&](const std::string& proxy) {
    if (proxy.empty()) {
      out.value(false);
    } else {
      out.value(proxy);
    }
  });
  put_validator(out, "etag", request.etag);
  put_validator(out, "last_modified", request.last_modified);
  put_said(out, "robots", request.robots);
  put_said(out, "render", request.render, [&](const RequestSettings::Render& render) { put_render(out, render); });
}

// --- who goes before whom -------------------------------------------------------------------------------------------

void put_behind(RequestSettings::Named& front, bool& none_behind, const RequestSettings::Named& behind,
                bool none_behind_those, IsSameName is_same) {
  if (none_behind) return;
  const auto said = static_cast<std::ptrdiff_t>(front.size());
  for (const auto& entry : behind) {
    const auto is_it = [&](const auto& known) { return is_same(known.first, entry.first); };
    if (std::none_of(front.begin(), front.begin() + said, is_it)) front.push_back(entry);
  }
  none_behind = none_behind_those;
}

PageSettings before(PageSettings front, const PageSettings& behind) {
  front.priority = front.priority.or_else(behind.priority);
  front.age = front.age.or_else(behind.age);
  front.tag = front.tag.or_else(behind.tag);
  front.retries = front.retries.or_else(behind.retries);
  front.recrawl = front.recrawl.or_else(behind.recrawl);
  front.time_limit = front.time_limit.or_else(behind.time_limit);
  RequestSettings& request = front.request;
  const RequestSettings& other = behind.request;
  put_behind(request.headers, request.no_headers_behind, other.headers, other.no_headers_behind, is_same_header);
  put_behind(request.cookies, request.no_cookies_behind, other.cookies, other.no_cookies_behind, is_same_cookie);
  request.method = request.method.or_else(other.method);
  request.body = request.body.or_else(other.body);
  request.timeout = request.timeout.or_else(other.timeout);
  request.connect_timeout = request.connect_timeout.or_else(other.connect_timeout);
  request.redirects = request.redirects.or_else(other.redirects);
  request.verify_certificate = request.verify_certificate.or_else(other.verify_certificate);
  request.proxy = request.proxy.or_else(other.proxy);
  request.etag = request.etag.or_else(other.etag);
  request.last_modified = request.last_modified.or_else(other.last_modified);
  request.robots = request.robots.or_else(other.robots);
  request.render = request.render.or_else(other.render);
  return front;
}

template <class Value, class Usual>
Usual said_or(const Said<Value>& said, const Usual& usual, const Usual& taken_back) {
  if (!said.is_said) return usual;
  return said.value ? static_cast<Usual>(*said.value) : taken_back;
}
template <class Value, class Usual>
std::optional<Usual> own(const Said<Value>& said, const Usual& taken_back) {
  if (!said.is_said) return std::nullopt;
  return said.value ? static_cast<Usual>(*said.value) : taken_back;
}

}  // namespace

bool read_setting(PageSettings& settings, std::string_view name, const JsonValue& value) {
  if (name == "priority") {
    using Limits = std::numeric_limits<std::int32_t>;
    take_said(settings.priority, value, [](const JsonValue& given) {
      return static_cast<std::int32_t>(given.whole(Limits::min(), Limits::max()));
    });
  } else if (name == "age_ms") {
    take_span(settings.age, value, 0);
  } else if (name == "tag") {
    take_said(settings.tag, value, [](const JsonValue& given) { return given.text(0, kMostTagBytes); });
  } else if (name == "retries") {
    take_natural(settings.retries, value, kMostRetries);
  } else if (name == "recrawl") {
    take_flag(settings.recrawl, value);
  } else if (name == "time_limit_ms") {
    take_span(settings.time_limit, value, 1);
  } else if (name == "request") {
    take_request(settings, value);
  } else {
    return false;
  }
  return true;
}

const std::vector<std::string>& request_member_names() {
  static const std::vector<std::string> kNames = {"method",
                                                  "headers",
                                                  "cookies",
                                                  "body",
                                                  "body_base64",
                                                  "timeout_ms",
                                                  "connect_timeout_ms",
                                                  "redirects",
                                                  "verify_certificate",
                                                  "proxy",
                                                  "etag",
                                                  "last_modified",
                                                  "robots",
                                                  "render"};
  return kNames;
}

const std::vector<std::string>& render_member_names() {
  static const std::vector<std::string> kNames = {"script", "run_at", "width", "height", "images"};
  return kNames;
}

void write_settings(JsonWriter& out, const PageSettings& settings) {
  put_said(out, "priority", settings.priority);
  put_span(out, "age_ms", settings.age);
  put_said(out, "tag", settings.tag);
  put_said(out, "retries", settings.retries);
  put_said(out, "recrawl", settings.recrawl);
  put_span(out, "time_limit_ms", settings.time_limit);
  if (settings.request == RequestSettings{}) return;
  out.object("request", [&] { put_request(out, settings.request); });
}

std::string stored(const PageSettings& settings) {
  return json_object([&](JsonWriter& out) { write_settings(out, settings); });
}

Result<PageSettings> read_settings(std::string_view stored) {
  const auto text = JsonText::parse_object("settings", stored, 2 * kMostTextBytes);
  if (!text) return std::unexpected(text.error());
  PageSettings settings;
  JsonErrors errors;
  text->root(errors).for_each_name(
      [&](std::string_view name, const JsonValue& value) { (void)read_setting(settings, name, value); });
  if (errors) return std::unexpected(errors.error());
  return settings;
}

PageSettings merged(const PageSettings& page, const PageSettings& rule, const PageSettings& defaults) {
  return before(before(page, rule), defaults);
}

PageSettings settled(PageSettings settings) {
  for_each_said(settings, []<class Value>(Said<Value>& said) { said.is_said = said.value.has_value(); });
  const auto is_taken_back = [](const auto& entry) { return !entry.second.value; };
  std::erase_if(settings.request.headers, is_taken_back);
  std::erase_if(settings.request.cookies, is_taken_back);
  settings.request.no_headers_behind = settings.request.no_cookies_behind = false;
  return settings;
}

std::vector<std::string> take_out_clients_headers(RequestSettings& request) {
  std::vector<std::string> names;
  std::erase_if(request.headers, [&](const auto& entry) {
    const bool is_own = is_clients_own(entry.first);
    if (is_own) names.push_back(entry.first);
    return is_own;
  });
  return names;
}

PageSettings file_settings(const RequestSettings& rule, const RequestSettings& project) {
  PageSettings front, behind;
  front.request = rule;
  behind.request = project;
  return before(std::move(front), behind);
}

PageTerms terms_of(const PageSettings& rule_and_defaults, const PageTerms& usual) {
  static const PageTerms kTakenBack;
  PageTerms terms = usual;
  const PageSettings& said = rule_and_defaults;
  terms.priority = said_or(said.priority, usual.priority, kTakenBack.priority);
  terms.age = said_or(said.age, usual.age, kTakenBack.age);
  terms.retries = said_or(said.retries, usual.retries, kTakenBack.retries);
  terms.auto_recrawl = said_or(said.recrawl, usual.auto_recrawl, kTakenBack.auto_recrawl);
  if (said.tag.is_said) terms.tag = said.tag.value ? page_tag(*said.tag.value) : kTakenBack.tag;
  return terms;
}

OwnTerms own_terms_of(const PageSettings& page) {
  static const PageTerms kTakenBack;
  return {.priority = own(page.priority, kTakenBack.priority),
          .age = own(page.age, kTakenBack.age),
          .retries = own(page.retries, kTakenBack.retries),
          .auto_recrawl = own(page.recrawl, kTakenBack.auto_recrawl)};
}

}  // namespace argiope
