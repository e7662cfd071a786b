// A message of a browser's debugging protocol, which holds what scripts of any page have written.
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "render/devtools_message.hpp"

using namespace argiope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto message = DevToolsMessage::parse(text);
  if (!message) {
    require(!message.error().message.empty());
    return 0;
  }
  require((message->id == 0) != message->method.empty());
  for (const std::string_view pointer : {"", "/frame/id", "/requestId", "/0", "/~", "//"}) {
    (void)message->text(pointer);
    (void)message->number(pointer);
    (void)message->flag(pointer);
    (void)message->has(pointer);
  }
  std::size_t entries = 0;
  message->for_each("/cookies", [&](simdjson::dom::element) { ++entries; });
  require(entries <= size);
  if (const auto request = paused_request_of(*message)) {
    require(!request->id.empty() && !request->url.empty());
    require(request->body.size() <= size);
  }
  return 0;
}
