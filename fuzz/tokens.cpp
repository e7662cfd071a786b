// What the daemon is given to read besides requests: any bytes as its file of tokens, as a Last-Event-ID, and as the
// fields that say where a request comes from. A file that is taken is written so that it is read as the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "serve/gate/bad_tokens.hpp"
#include "serve/gate/internal/token_file.hpp"
#include "serve/gate/request_source.hpp"
#include "serve/watch/event_record.hpp"
#include "serve/watch/process_stats.hpp"

using namespace argiope;

namespace {

void read_file(std::string_view input) {
  const auto tokens = parse_tokens(input, "tokens.jsonl");
  if (!tokens) {
    require(!tokens.error().message.empty() && tokens.error().message.find('\n') == std::string::npos);
    return;
  }
  require(tokens->size() <= kMostTokens);
  const std::string written = to_text(*tokens);
  const auto again = parse_tokens(written, "tokens.jsonl");
  require(again && to_text(*again) == written);
}

void read_fields(std::string_view input) {
  ServerRequest request;
  request.method = HttpMethod::post;
  request.host = input.substr(0, input.find('\n'));
  request.headers.emplace_back("Origin", input.substr(std::min(request.host.size() + 1, input.size())));
  const std::vector<std::string> ours{"jobs.example", "other.example:8080"};
  const bool asks = asks_for_us(request, ours);
  // A host below another's name is not ours.
  if (request.host.ends_with(".evil.example")) require(!asks);
  (void)is_of_foreign_page(request, ours);
  (void)source_of(input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto id = parse_event_id(input)) {
    const auto again = parse_event_id(to_string(*id));
    require(again && again->run == id->run && again->number == id->number);
  }
  (void)parse_process_stat(input, 100, 4096);
  read_fields(input);
  read_file(input);
  return 0;
}
