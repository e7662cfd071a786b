#include "serve/gate/internal/token_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_set>

#include "base/internal/base64.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "serve/base/plain_file.hpp"
#include "serve/gate/internal/token_digest.hpp"

namespace argiope {

namespace {

constexpr std::size_t kMostTokenNameBytes = 64;
constexpr std::size_t kMostPrefixBytes = 512;

// --- one line

std::optional<WallTime> read_time(const JsonValue& value) {
  const auto time = parse_rfc3339(value.text(1, 64));
  if (!time) value.wrong("a time in RFC 3339");
  return time;
}

TokenScope read_scope(const JsonValue& value) {
  return static_cast<TokenScope>(1 + value.one_of({"read", "work", "admin"}));
}

void read_prefixes(const JsonValue& value, Token& token) {
  if (!value.is_list() || value.size() > kMostTokenPrefixes) {
    return value.wrong(fmt::format("a list of up to {} beginnings of names", kMostTokenPrefixes));
  }
  value.for_each([&](const JsonValue& prefix) { token.prefixes.push_back(prefix.text(1, kMostPrefixBytes)); });
}

void read_member(std::string_view name, const JsonValue& value, KeptToken& kept) {
  if (name == "name") {
    kept.token.name = value.text(1, kMostTokenNameBytes);
  } else if (name == "digest") {
    kept.token.digest = value.text(64, 64);
    if (!parse_token_digest(kept.token.digest)) value.wrong("a SHA-256 in 64 hex digits");
  } else if (name == "scope") {
    kept.token.scope = read_scope(value);
  } else if (name == "prefixes") {
    read_prefixes(value, kept.token);
  } else if (name == "expires_at") {
    kept.token.expires_at = read_time(value);
  } else if (name == "created_at") {
    kept.created_at = read_time(value);
  } else {
    value.refuse_name("no such member of a token");
  }
}

Result<KeptToken> read_line(std::string_view line) {
  const auto text = JsonText::parse_object("token", line, kMostTokenFileBytes);
  if (!text) return std::unexpected(text.error());
  JsonErrors errors;
  KeptToken kept;
  std::vector<std::string> seen;
  text->root(errors).for_each_member([&](std::string_view name, const JsonValue& value) {
    if (std::ranges::find(seen, name) != seen.end()) return value.refuse_name("there twice");
    seen.emplace_back(name);
    read_member(name, value, kept);
  });
  if (errors) return std::unexpected(errors.error());
  for (const std::string_view needed : {"name", "digest", "scope"}) {
    if (std::ranges::find(seen, needed) == seen.end()) {
      return fail(Errc::invalid_input, fmt::format("a token needs the member `{}`", needed));
    }
  }
  return kept;
}

void write_line(std::string& out, const KeptToken& kept) {
  JsonWriter json(out);
  json.object([&] {
    json.member("name", kept.token.name);
    json.member("digest", kept.token.digest);
    json.member("scope", to_string(kept.token.scope));
    if (!kept.token.prefixes.empty()) json.list("prefixes", kept.token.prefixes);
    if (kept.token.expires_at) json.member("expires_at", *kept.token.expires_at);
    if (kept.created_at) json.member("created_at", *kept.created_at);
  });
  out += '\n';
}

Result<void> check(const Token& token) {
  if (token.name.empty() || token.name.size() > kMostTokenNameBytes || printable(token.name) != token.name) {
    return fail(Errc::invalid_input, fmt::format("token {}: a name has 1 to {} bytes and only what can be printed",
                                                 in_quotes(token.name), kMostTokenNameBytes));
  }
  const auto good = [](const std::string& prefix) { return !prefix.empty() && prefix.size() <= kMostPrefixBytes; };
  if (token.prefixes.size() > kMostTokenPrefixes || !std::ranges::all_of(token.prefixes, good)) {
    return fail(Errc::invalid_input, fmt::format("token {}: up to {} prefixes of 1 to {} bytes", in_quotes(token.name),
                                                 kMostTokenPrefixes, kMostPrefixBytes));
  }
  return {};
}

// --- the file

Result<void> check_owner(const InputFile& file, const std::string& path) {
  struct ::stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return io_error(path, "cannot be looked at");
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return fail(Errc::refused, fmt::format("{}: belongs to another user, who could add tokens", printable(path)));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(Errc::refused, fmt::format("{}: others may write it; chmod 600 it", printable(path)));
  }
  return {};
}

}  // namespace

std::string token_words(const std::array<std::uint8_t, 32>& chance) {
  std::string words = to_base64({reinterpret_cast<const char*>(chance.data()), chance.size()});
  std::ranges::replace(words, '+', '-');
  std::ranges::replace(words, '/', '_');
  std::erase(words, '=');
  return "argiope_" + words;
}

Result<std::vector<KeptToken>> parse_tokens(std::string_view text, std::string_view source) {
  if (text.size() > kMostTokenFileBytes) return fail(Errc::too_large, fmt::format("{}: too large", printable(source)));
  std::vector<KeptToken> tokens;
  std::unordered_set<std::string> names;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto kept = read_line(line);
    Result<void> good = kept ? check(kept->token) : std::unexpected(kept.error());
    if (good && !names.insert(kept->token.name).second) {
      good = fail(Errc::invalid_input, fmt::format("name {}: there twice", in_quotes(kept->token.name)));
    }
    if (good && tokens.size() == kMostTokens)
      good = fail(Errc::too_large, fmt::format("more than {} tokens", kMostTokens));
    if (!good)
      return fail(good.error().code, fmt::format("{}:{}: {}", printable(source), number, good.error().message));
    tokens.push_back(std::move(*kept));
  }
  return tokens;
}

std::string to_text(const std::vector<KeptToken>& tokens) {
  std::string text;
  for (const KeptToken& kept : tokens) write_line(text, kept);
  return text;
}

Result<std::vector<KeptToken>> read_token_file(const std::string& path) {
  const auto file = InputFile::open(path, FileReading::again);
  if (!file && file.error().code == Errc::not_found) return std::vector<KeptToken>{};
  if (!file) return fail(file.error().code, fmt::format("{}: {}", printable(path), file.error().message));
  if (auto good = check_owner(*file, path); !good) return std::unexpected(std::move(good.error()));
  const auto text = file->read_text(kMostTokenFileBytes);
  if (!text) return fail(text.error().code, fmt::format("{}: {}", printable(path), text.error().message));
  return parse_tokens(*text, path);
}

Result<void> edit_token_file(const std::string& path,
                             const std::function<Result<void>(std::vector<KeptToken>& tokens)>& edit) {
  // A refused edit leaves no file: neither a lock nor an empty list.
  auto before = read_token_file(path);
  if (!before) return std::unexpected(std::move(before.error()));
  if (auto edited = edit(*before); !edited) return edited;
  const std::string lock_path = path + ".lock";
  const Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return io_error(lock_path, "cannot be made");
  while (::flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return io_error(lock_path, "cannot be locked");
  }
  auto tokens = read_token_file(path);
  if (!tokens) return std::unexpected(std::move(tokens.error()));
  if (auto edited = edit(*tokens); !edited) return edited;
  return replace_file(path, to_text(*tokens));
}

Result<void> add_token(std::vector<KeptToken>& tokens, KeptToken token) {
  if (auto good = check(token.token); !good) return good;
  if (tokens.size() >= kMostTokens) return fail(Errc::invalid_input, fmt::format("there are {} tokens", kMostTokens));
  const auto same = [&](const KeptToken& kept) { return kept.token.name == token.token.name; };
  if (std::ranges::any_of(tokens, same)) {
    return fail(Errc::refused, fmt::format("token {}: there is one of that name", in_quotes(token.token.name)));
  }
  tokens.push_back(std::move(token));
  return {};
}

Result<void> remove_token(std::vector<KeptToken>& tokens, std::string_view name) {
  if (std::erase_if(tokens, [&](const KeptToken& kept) { return kept.token.name == name; }) == 0) {
    return fail(Errc::not_found, fmt::format("there is no token {}", in_quotes(name)));
  }
  return {};
}

}  // namespace argiope
