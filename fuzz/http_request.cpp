// One connection's bytes as a server reads them: whole, and in pieces, which must give the same requests.
// The first byte says how large the pieces are.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "web/server/http_request_reader.hpp"

namespace {

using namespace argiope;

bool is_part(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// The requests that were read.
std::string story_of(std::string_view bytes, std::size_t piece) {
  HttpServerOptions options;
  options.max_header_bytes = 1024;
  options.max_header_fields = 16;
  options.max_body_bytes = 4096;
  ServerRequest request;
  HttpRequestReader reader(options, request);
  std::string story;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.input() += bytes.substr(0, piece);
    while (reader.read() == HttpRequestReader::State::complete) {
      require(request.headers.size() <= options.max_header_fields);
      require(request.body.size() <= options.max_body_bytes);
      require(is_part(request.target, reader.input()) || request.target == "/");
      require(is_part(request.host, reader.input()));
      story.append(to_string(request.method)).append(" ").append(request.path).append("?").append(request.query);
      story.append("@").append(request.host).append(reader.keep_alive() ? "+" : "-");
      for (const auto& [name, value] : request.headers) {
        require(is_part(name, reader.input()) && is_part(value, reader.input()));
        story.append(name).append(":").append(value).append("\n");
        (void)request.query_value(name);
      }
      story.append(request.body).append("\n\n");
      reader.next();
    }
    if (reader.state() == HttpRequestReader::State::refused) {
      require(reader.refusal().status >= 400 && !reader.refusal().detail.empty());
      return story;
    }
    (void)reader.take_wish_to_continue();
    require(reader.input().size() <= options.max_header_bytes * 5 + piece);
  }
  return story;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  require_same_in_pieces(data, size, story_of);
  return 0;
}
