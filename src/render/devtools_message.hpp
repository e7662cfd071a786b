// Messages of a browser's debugging protocol (Chrome DevTools Protocol): JSON objects, answers to our calls by their
// id, and events by their name.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

// One message of the browser. The text it refers to lives as long as it does.
class DevToolsMessage {
 public:
  // Halves of surrogate pairs, which scripts may put into any text, are read as U+FFFD.
  // Errors: invalid_input for what is no such message.
  static Result<DevToolsMessage> parse(std::string_view json);

  std::uint64_t id = 0;              // of the call it answers; 0: an event
  std::string_view method;           // of an event
  std::string_view session;          // empty: of the browser itself
  std::optional<std::string> error;  // of a call that was refused

  // Of the result, or of the event's parameters, by JSON pointer ("/frame/id"); empty, 0 or false for what is not there
  // or is something else.
  std::string_view text(std::string_view pointer) const;
  double number(std::string_view pointer) const;
  bool flag(std::string_view pointer) const;
  bool has(std::string_view pointer) const;
  // each(simdjson::dom::element) for the entries of a list.
  template <class Each>
  void for_each(std::string_view pointer, Each each) const {
    simdjson::dom::array list;
    if (body_.at_pointer(pointer).get(list) != simdjson::SUCCESS) return;
    for (const simdjson::dom::element entry : list) each(entry);
  }
  // each(name, simdjson::dom::element) for the members of an object.
  template <class Each>
  void for_each_member(std::string_view pointer, Each each) const {
    simdjson::dom::object object;
    if (body_.at_pointer(pointer).get(object) != simdjson::SUCCESS) return;
    for (const auto [name, value] : object) each(name, value);
  }

 private:
  std::shared_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::element body_;
};

// A request of a page that waits for what we say (Fetch.requestPaused).
struct PausedRequest {
  std::string id;
  std::string url;  // without its fragment
  std::string method;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string type;   // "Document", "Script", "XHR", …
  std::string frame;  // that asks
};
// Errors: invalid_input where there is no id or URL, or the body cannot be had; the id is told where there is one.
Result<PausedRequest> paused_request_of(const DevToolsMessage& event);

}  // namespace argiope
