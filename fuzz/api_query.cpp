// What a request of the API says beside its body: any bytes as its query, with cursors, and as its Idempotency-Key. A
// cursor keeps to its bounds and says what its digits say; two requests have one key only if they are the same.
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "serve/api/api_call.hpp"

using namespace argiope;

namespace {

constexpr std::uint64_t kMostInPage = 1'000, kUsualPage = 100;
constexpr std::size_t kMostKey = 255;

// A call whose query is `text`.
struct QueryCall {
  explicit QueryCall(std::string_view text) : request(request_of(text)) {}

  static ServerRequest request_of(std::string_view text) {
    ServerRequest request;
    request.query = text;
    return request;
  }

  ServerRequest request;
  ApiCall call{request, {}};
  ApiQuery query{call};
};

void read_query(std::string_view input) {
  QueryCall asked(input);
  ApiQuery& query = asked.query;
  const std::uint64_t after = query.whole("after", 0, kMostJobId, 0);
  const std::uint64_t limit = query.whole("limit", 1, kMostInPage, kUsualPage);
  const auto state = query.one_of("state", {"ready", "done"});
  (void)query.text("queue");
  (void)query.flag("payloads");
  require(after <= kMostJobId && limit >= 1 && limit <= kMostInPage && (!state || *state < 2));
  const auto finished = query.finish();
  if (!finished) {
    require(!finished.error().message.empty() && finished.error().message.find('\n') == std::string::npos);
    return;
  }
  // What it has said is what a page's `next` would say, and is read as the same.
  const std::string next = "after=" + std::to_string(after) + "&limit=" + std::to_string(limit);
  QueryCall second(next);
  ApiQuery& again = second.query;
  require(again.whole("after", 0, kMostJobId, 0) == after && again.whole("limit", 1, kMostInPage, kUsualPage) == limit);
  require(again.finish().has_value());
  // The same parameter once more is none.
  if (input.find("after=") != std::string_view::npos) {
    const std::string doubled = std::string(input) + "&after=1&after=2";
    QueryCall third(doubled);
    (void)third.query.whole("after", 0, kMostJobId, 0);
    require(!third.query.finish());
  }
}

struct Asked {
  std::string_view caller, key, target, body;
};

std::optional<RequestKey> key_of(const Asked& asked) {
  ServerRequest request;
  request.method = HttpMethod::post;
  request.set_target(asked.target);
  request.headers.emplace_back("Idempotency-Key", asked.key);
  request.body = asked.body;
  ApiCall call(request, {.name = std::string(asked.caller), .prefixes = {}});
  const auto key = call.request_key();
  if (asked.key.empty()) require(key && !*key);
  if (!key || !*key) {
    if (!key) require(call.problem_for(key.error()).type == ProblemType::invalid_input);
    return std::nullopt;
  }
  const std::string_view given = asked.key;
  require(given.size() <= kMostKey && given.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos);
  require((*key)->key.size() <= 512 && (*key)->digest.size() <= 64 && !(*key)->digest.empty());
  require((*key)->key.ends_with(given) && (*key)->key.starts_with(asked.caller));
  return **key;
}

// As the request has it: an empty one is "/", and an authority is left out.
std::string target_of(const Asked& asked) {
  ServerRequest request;
  request.set_target(asked.target);
  return std::string(request.target);
}

// Pieces between line feeds: names, targets and keys have none.
std::string_view next_piece(std::string_view& rest) {
  const std::string_view piece = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(piece.size() + 1, rest.size()));
  return piece;
}

void read_keys(std::string_view input) {
  Asked one, other;
  for (Asked* asked : {&one, &other}) {
    asked->caller = next_piece(input).substr(0, 64);
    asked->key = next_piece(input);
    asked->target = next_piece(input);
  }
  one.body = input.substr(0, input.size() / 2);
  other.body = input.substr(input.size() / 2);
  const auto first = key_of(one), second = key_of(other);
  if (!first || !second) return;
  require((first->key == second->key) == (one.caller == other.caller && one.key == other.key));
  require((first->digest == second->digest) == (target_of(one) == target_of(other) && one.body == other.body));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  read_query(input);
  read_keys(input);
  return 0;
}
