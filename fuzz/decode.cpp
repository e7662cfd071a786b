// Content codings: any body under any stack of them. The first byte chooses the codings, the second the size of the
// pieces; however they are cut, what comes out is the same.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "web/text/internal/content_decoder.hpp"

namespace {

constexpr std::string_view kCodings[] = {"gzip",       "deflate",    "br",          "zstd",
                                         "gzip, zstd", "gzip, gzip", "br, deflate", "zstd, br"};
constexpr std::size_t kLimit = 256 * 1024;

struct Outcome {
  std::string body;
  bool fine = true;
  bool truncated = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome decode(argiope::ContentDecoder& decoder, std::string_view codings, std::string_view bytes, std::size_t piece) {
  Outcome outcome;
  if (!decoder.start(codings, kLimit)) std::abort();
  while (outcome.fine && !bytes.empty()) {
    outcome.fine = decoder.feed(bytes.substr(0, piece), outcome.body).has_value();
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  outcome.fine = outcome.fine && decoder.finish();
  outcome.truncated = decoder.truncated();
  if (outcome.body.size() > kLimit) std::abort();
  // How much of a damaged body was decoded before the damage was seen is nobody's promise.
  if (!outcome.fine) outcome = {{}, false, false};
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static argiope::ContentDecoder decoder;
  const std::string_view codings = kCodings[data[0] % std::size(kCodings)];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Outcome whole = decode(decoder, codings, bytes, bytes.size() + 1);
  const Outcome pieces = decode(decoder, codings, bytes, data[1] % 32 + 1);
  // A ratio judged piece by piece may find a bomb where the whole has none; nothing else may differ.
  if (whole.fine && pieces.fine && whole != pieces) std::abort();
  return 0;
}
