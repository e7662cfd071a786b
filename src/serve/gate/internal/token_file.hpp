// The file of tokens: a line of JSON for each, without their words. `argiope token` writes it, the daemon reads it.
//
//   {"name":"ci","digest":"ba78…","scope":"work","prefixes":["mail"],"expires_at":"2027-01-01T00:00:00Z",
//    "created_at":"…"}
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "serve/gate/gate.hpp"

namespace argiope {

inline constexpr std::size_t kMostTokens = 10'000;
inline constexpr std::size_t kMostTokenFileBytes = 16 * 1024 * 1024;
inline constexpr std::size_t kMostTokenPrefixes = 100;

// A token and what is told of it besides.
struct KeptToken {
  Token token;
  std::optional<WallTime> created_at;
};

// `argiope_` and 32 bytes in base64url: what a client is given, once. `chance` comes from the system's source for
// secrets.
std::string token_words(const std::array<std::uint8_t, 32>& chance);

// Blank lines are passed over. `source` is told in errors: `tokens.jsonl:3: scope "root": …`.
// Errors: invalid_input for what is not as above: a member that is unknown or there twice, a name that is empty, longer
//         than 64 bytes, not printable or there twice, a digest that is none; too_large.
Result<std::vector<KeptToken>> parse_tokens(std::string_view text, std::string_view source);
// The text that parse_tokens() reads back.
std::string to_text(const std::vector<KeptToken>& tokens);

// Blocks. A file that is not there has no tokens.
// Errors: io; those of parse_tokens(); refused where others than its owner may write it, or its owner is neither this
//         user nor root: they could give themselves a token.
Result<std::vector<KeptToken>> read_token_file(const std::string& path);
// Lets `edit` change what is in the file, and puts the new file (mode 0600) in the old one's place, so that a reader
// sees the one or the other; nothing is written if `edit` fails, which is asked twice: at first on what is there,
// without the lock. Blocks while another does the same: PATH.lock stands for that.
// Errors: those of read_token_file() and of `edit`; io, disk_full.
Result<void> edit_token_file(const std::string& path,
                             const std::function<Result<void>(std::vector<KeptToken>& tokens)>& edit);

// Errors: invalid_input for a name, prefixes or number of tokens that parse_tokens() would refuse; refused where there
//         is one of that name.
Result<void> add_token(std::vector<KeptToken>& tokens, KeptToken token);
// Errors: not_found.
Result<void> remove_token(std::vector<KeptToken>& tokens, std::string_view name);

}  // namespace argiope
