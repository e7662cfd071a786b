#include "project/process/internal/processor_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/internal/json_writer.hpp"
#include "web/http/internal/reason_phrase.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

double milliseconds_of(Duration span) noexcept { return std::chrono::duration<double, std::milli>(span).count(); }
std::int64_t whole_milliseconds_of(Duration span) noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(span).count();
}

std::string as_line(std::string json) { return std::move(json) + '\n'; }

// --- page -----------------------------------------------------------------------------------------------------------

void write_what_to_visit(JsonWriter& out, const PageCall& call) {
  out.member("name", call.name.empty() ? call.url : call.name);
  out.member("url", call.url);
  out.member("rule", call.rule);
  out.key("context");
  out.raw(call.context_json.empty() ? "null" : call.context_json);
  out.member("attempt", call.attempt);
  if (call.last_at) out.member("last_at", *call.last_at);
  write_settings(out, settled(call.settings));
}

// Of a name that is there twice the later value counts.
void write_cookies(JsonWriter& out, const std::vector<std::pair<std::string, std::string>>& cookies) {
  std::map<std::string_view, std::string_view> by_name;
  for (const auto& [name, value] : cookies) by_name[name] = value;
  out.object("cookies", [&] {
    for (const auto& [name, value] : by_name) out.member(name, value);
  });
}

bool is_success(int status) noexcept { return status >= 200 && status < 400 && status != 304; }

void write_trouble(JsonWriter& out, const PageResponse& response) {
  if (response.error_kind.empty() && is_success(response.status)) return;
  out.object("error", [&] {
    out.member("kind", response.error_kind.empty() ? "status" : response.error_kind);
    const bool is_told = !response.error_text.empty() || !response.error_kind.empty();
    out.member("text", is_told ? response.error_text
                               : fmt::format("HTTP {}: {}", response.status, reason_phrase(response.status)));
  });
}

void write_response(JsonWriter& out, const PageResponse& response) {
  out.member("url", response.url);
  out.member("status", response.status);
  out.array("headers", [&] {
    for (const auto& [name, value] : response.headers) {
      out.array([&] {
        out.value(name);
        out.value(value);
      });
    }
  });
  write_cookies(out, response.cookies);
  out.key("encoding");
  if (response.encoding.empty()) {
    out.null();
  } else {
    out.value(response.encoding);
  }
  out.member("time_ms", milliseconds_of(response.took));
  write_trouble(out, response);
  if (response.script_result_json.empty()) return;
  out.key("script_result");
  out.raw(response.script_result_json);
}

}  // namespace

std::string_view header_of(const PageResponse& response, std::string_view name) noexcept {
  const auto found =
      std::ranges::find_if(response.headers, [name](const auto& header) { return equals_lower(header.first, name); });
  return found == response.headers.end() ? std::string_view{} : found->second;
}

std::string_view content_type_of(const PageResponse& response) noexcept { return header_of(response, "content-type"); }

std::string_view to_string(PageEvent event) noexcept {
  constexpr std::string_view kNames[] = {"fetch", "start", "tick", "message", "finished"};
  return kNames[static_cast<std::size_t>(event)];
}

std::string write_describe(std::string_view project, std::string_view argiope, ProcessorUse use,
                           const ProcessorLimits& limits) {
  return as_line(json_object([&](JsonWriter& out) {
    out.member("type", "describe");
    out.member("protocol", kProcessorProtocol);
    out.member("project", project);
    out.member("argiope", argiope);
    out.member("debug", use.is_debug || use.is_try);
    out.member("try", use.is_try);
    out.object("limits", [&] {
      out.member("line_bytes", limits.line_bytes);
      out.member("answer_bytes", limits.answer_bytes);
      out.member("log_bytes", limits.log_bytes);
      out.member("time_ms", whole_milliseconds_of(limits.time));
    });
  }));
}

std::string write_page(const PageCall& call, std::uint64_t id) {
  return as_line(json_object([&](JsonWriter& out) {
    // These five in this order: scripts without a JSON reader count on it.
    out.member("type", "page");
    out.member("id", id);
    out.member("body", call.response.body.size());
    out.member("event", to_string(call.event));
    out.member("rule", call.rule);
    out.member("project", call.project);
    out.member("time_limit_ms", whole_milliseconds_of(call.time_limit));
    out.object("page", [&] { write_what_to_visit(out, call); });
    out.object("response", [&] { write_response(out, call.response); });
    out.key("save");
    out.raw(call.save_json.empty() ? "null" : call.save_json);
    if (call.fields_json.empty()) return;
    out.key("fields");
    out.raw(call.fields_json);
  }));
}

std::string write_selected(std::uint64_t id, std::uint64_t query, const Result<std::string>& matches_json) {
  return as_line(json_object([&](JsonWriter& out) {
    out.member("type", "selected");
    out.member("id", id);
    out.member("query", query);
    if (matches_json) {
      out.key("matches");
      out.raw(*matches_json);
      return;
    }
    const Error& error = matches_json.error();
    out.object("error", [&] {
      out.member("kind", error.code == Errc::too_large ? "too_large" : "invalid_input");
      out.member("text", error.message);
    });
  }));
}

}  // namespace argiope
