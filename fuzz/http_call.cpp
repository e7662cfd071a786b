// What schedules call, as JSON: any bytes. What is accepted keeps to its bounds and cannot split a request; what is
// refused says so in one line.
#include <cstdint>
#include <string_view>

#include "argiope/calls/calls.hpp"
#include "argiope/web/http_client.hpp"
#include "fuzz/require.hpp"

using namespace argiope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto command = parse_command_call(input)) {
    require(!command->args.empty() && command->timeout > Duration::zero());
  }
  const auto call = parse_http_call(input);
  if (!call) {
    require(!call.error().message.empty() && call.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const HttpRequest& request = call->request;
  require(request.url.scheme() == "http" || request.url.scheme() == "https");
  require(request.headers.size() <= HttpCall::kMostHeaders + 1 && request.timeout > Duration::zero());
  for (const auto& [name, value] : request.headers) {
    require(!name.empty() && is_header_safe(name) && is_header_safe(value));
    require(name.find_first_of(": \t") == std::string::npos);
  }
  require(!call->expect.empty());
  for (const auto& [from, to] : call->expect) require(from >= 100 && from <= to && to <= 599);
  return 0;
}
