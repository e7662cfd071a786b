// A response off the wire, in pieces: framing, header limits, decoding. The first byte says how large the pieces are
// and which method was asked.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "web/http/internal/http_response_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  if (size == 0) return 0;
  const std::size_t piece = data[0] % 64 + 1;
  const HttpMethod method = data[0] >= 192 ? HttpMethod::head : HttpMethod::get;
  const HttpReaderLimits limits{4096, 32, 64 * 1024};
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  static ContentDecoder decoder;
  HttpResponse response;
  HttpResponseReader reader(response, decoder, limits, method);
  std::string pending;
  while (!reader.done()) {
    if (bytes.empty()) {
      (void)reader.feed_end();
      break;
    }
    pending += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    const auto used = reader.feed(pending);
    if (!used) break;
    if (*used > pending.size()) std::abort();
    pending.erase(0, *used);
  }
  if (response.body.size() > limits.body_bytes) std::abort();
  return 0;
}
