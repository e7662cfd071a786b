#include "render/devtools_message.hpp"

#include <fmt/format.h>

#include "base/internal/base64.hpp"
#include "base/internal/printable.hpp"
#include "web/text/internal/json_escapes.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostMessageDepth = 256;

// The same text with U+FFFD for halves of surrogate pairs.
std::string with_whole_pairs(std::string_view json) {
  std::string mended;
  mended.reserve(json.size());
  for (std::size_t at = 0; at < json.size();) {
    if (json[at] != '\\') {
      mended += json[at++];
      continue;
    }
    const auto unit = unit_at_front(json.substr(at));
    const std::size_t size = unit ? kUnitEscapeBytes : 2;
    if (unit && is_high_half(*unit)) {
      if (const auto next = unit_at_front(json.substr(at + kUnitEscapeBytes)); next && is_low_half(*next)) {
        mended += json.substr(at, 2 * kUnitEscapeBytes);
        at += 2 * kUnitEscapeBytes;
        continue;
      }
    }
    if (unit && (is_high_half(*unit) || is_low_half(*unit))) {
      mended += kReplacementEscape;
    } else {
      mended += json.substr(at, size);
    }
    at += size;
  }
  return mended;
}

std::string_view text_of(simdjson::dom::element element) {
  std::string_view text;
  return element.get(text) == simdjson::SUCCESS ? text : std::string_view{};
}

}  // namespace

Result<DevToolsMessage> DevToolsMessage::parse(std::string_view json) {
  DevToolsMessage message;
  message.parser_ = std::make_shared<simdjson::dom::parser>();
  (void)message.parser_->allocate(json.size(), kMostMessageDepth);
  simdjson::dom::element root;
  auto error = message.parser_->parse(json.data(), json.size()).get(root);
  if (error == simdjson::STRING_ERROR) {
    const std::string mended = with_whole_pairs(json);
    error = message.parser_->parse(mended).get(root);
  }
  if (error != simdjson::SUCCESS || !root.is_object()) {
    return fail(Errc::invalid_input, fmt::format("{}: no message of the debugging protocol", in_quotes(json)));
  }
  simdjson::dom::element part;
  if (root["sessionId"].get(part) == simdjson::SUCCESS) message.session = text_of(part);
  if (root["id"].get(message.id) == simdjson::SUCCESS && message.id != 0) {
    if (root["error"].get(part) == simdjson::SUCCESS) {
      simdjson::dom::element why;
      message.error =
          part["message"].get(why) == simdjson::SUCCESS ? std::string(text_of(why)) : "an error without words";
    }
    if (root["result"].get(message.body_) != simdjson::SUCCESS) message.body_ = root;
    return message;
  }
  message.id = 0;
  if (root["method"].get(message.method) != simdjson::SUCCESS || message.method.empty()) {
    return fail(Errc::invalid_input, fmt::format("{}: neither an answer nor an event", in_quotes(json)));
  }
  if (root["params"].get(message.body_) != simdjson::SUCCESS) message.body_ = root;
  return message;
}

std::string_view DevToolsMessage::text(std::string_view pointer) const {
  simdjson::dom::element found;
  return body_.at_pointer(pointer).get(found) == simdjson::SUCCESS ? text_of(found) : std::string_view{};
}

double DevToolsMessage::number(std::string_view pointer) const {
  double number = 0;
  return body_.at_pointer(pointer).get(number) == simdjson::SUCCESS ? number : 0;
}

bool DevToolsMessage::flag(std::string_view pointer) const {
  bool flag = false;
  return body_.at_pointer(pointer).get(flag) == simdjson::SUCCESS && flag;
}

bool DevToolsMessage::has(std::string_view pointer) const {
  simdjson::dom::element found;
  return body_.at_pointer(pointer).get(found) == simdjson::SUCCESS;
}

Result<PausedRequest> paused_request_of(const DevToolsMessage& event) {
  PausedRequest request;
  request.id = event.text("/requestId");
  request.url = event.text("/request/url");
  request.method = event.text("/request/method");
  request.type = event.text("/resourceType");
  request.frame = event.text("/frameId");
  if (request.id.empty() || request.url.empty()) return fail(Errc::invalid_input, "a request without its id or URL");
  event.for_each_member("/request/headers", [&](std::string_view name, simdjson::dom::element value) {
    request.headers.emplace_back(name, text_of(value));
  });
  bool whole = true;
  event.for_each("/request/postDataEntries", [&](simdjson::dom::element entry) {
    simdjson::dom::element bytes;
    const auto piece = entry["bytes"].get(bytes) == simdjson::SUCCESS ? from_base64(text_of(bytes)) : std::nullopt;
    if (piece) request.body += *piece;
    whole &= piece.has_value();
  });
  if (!whole || (event.flag("/request/hasPostData") && request.body.empty())) {
    return fail(Errc::invalid_input, fmt::format("{}: a body that is no text", request.url));
  }
  return request;
}

}  // namespace argiope
