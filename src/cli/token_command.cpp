// `argiope token`: who may ask the daemon for what. The daemon reads the file again when it is told to (SIGHUP).
#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "argiope/base/clock.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/commands.hpp"
#include "cli/job_store.hpp"
#include "cli/span_option.hpp"
#include "cli/table.hpp"
#include "serve/gate/internal/token_digest.hpp"
#include "serve/gate/internal/token_file.hpp"

namespace argiope {
namespace {

struct TokenArguments {
  std::string file = "argiope-tokens.jsonl";
  std::string name;
  std::string scope = "work";
  std::vector<std::string> prefixes;
  std::optional<Duration> expires_in;
  bool json = false;
};

Result<std::string> new_words() {
  std::array<std::uint8_t, 32> chance;
  if (::getrandom(chance.data(), chance.size(), 0) != static_cast<ssize_t>(chance.size())) {
    return fail(Errc::io, fmt::format("no random numbers: {}", std::generic_category().message(errno)));
  }
  return token_words(chance);
}

int add(const TokenArguments& arguments) {
  const auto words = new_words();
  if (!words) return complain(words.error());
  const WallTime now = std::chrono::floor<std::chrono::seconds>(SystemClock().wall_now());
  KeptToken kept{.token = {.name = arguments.name,
                           .digest = to_hex(digest_of_token(*words)),
                           .scope = parse_scope(arguments.scope).value(),
                           .prefixes = arguments.prefixes,
                           .expires_at = {}},
                 .created_at = now};
  if (arguments.expires_in) kept.token.expires_at = now + *arguments.expires_in;
  const auto added =
      edit_token_file(arguments.file, [&](std::vector<KeptToken>& tokens) { return add_token(tokens, kept); });
  if (!added) return complain(added.error());
  fmt::print("{}\n", *words);
  fmt::print(stderr, "This is shown once. {} keeps its SHA-256 alone.\n", printable(arguments.file));
  return kExitFinished;
}

int remove(const TokenArguments& arguments) {
  const auto removed = edit_token_file(
      arguments.file, [&](std::vector<KeptToken>& tokens) { return remove_token(tokens, arguments.name); });
  return removed ? kExitFinished : complain(removed.error());
}

std::string until(const Token& token, WallTime now) {
  if (!token.expires_at) return "";
  return to_rfc3339(*token.expires_at) + (*token.expires_at <= now ? " (over)" : "");
}

std::string joined(const std::vector<std::string>& prefixes) {
  std::string all;
  for (const std::string& prefix : prefixes) all += (all.empty() ? "" : " ") + prefix;
  return one_line(all, kMostOfName);
}

void print_json(const KeptToken& kept) {
  fmt::print("{}\n", json_object([&](JsonWriter& json) {
               json.member("name", kept.token.name);
               json.member("scope", to_string(kept.token.scope));
               json.list("prefixes", kept.token.prefixes);
               json.member("expires_at", kept.token.expires_at);
               json.member("created_at", kept.created_at);
             }));
}

int list(const TokenArguments& arguments) {
  const auto tokens = read_token_file(arguments.file);
  if (!tokens) return complain(tokens.error());
  if (arguments.json) {
    for (const KeptToken& kept : *tokens) print_json(kept);
    return kExitFinished;
  }
  const WallTime now = SystemClock().wall_now();
  Table table({"NAME", "SCOPE", "PREFIXES", "MADE", "EXPIRES"});
  for (const KeptToken& kept : *tokens) {
    table.add({one_line(kept.token.name, kMostOfName), std::string(to_string(kept.token.scope)),
               joined(kept.token.prefixes), kept.created_at ? to_rfc3339(*kept.created_at) : "",
               until(kept.token, now)});
  }
  table.print();
  return kExitFinished;
}

CLI::App* add_subcommand(CLI::App& token, const char* name, const char* description, TokenArguments& arguments) {
  CLI::App* command = token.add_subcommand(name, description);
  command->add_option("--file", arguments.file, "The file of tokens")->type_name("FILE")->capture_default_str();
  return command;
}

}  // namespace

std::function<int()> add_token_command(CLI::App& app) {
  auto arguments = std::make_shared<TokenArguments>();
  CLI::App* token = app.add_subcommand("token", "Say who may ask the daemon for what.");
  token->require_subcommand(1);
  CLI::App* adds = add_subcommand(*token, "add", "Make a token, and print it: this once.", *arguments);
  adds->add_option("NAME", arguments->name, "Whose it is, as the audit log says it")->required();
  adds->add_option("--scope", arguments->scope, "read looks, work puts and runs jobs besides, admin does everything")
      ->check(CLI::IsMember({"read", "work", "admin"}))
      ->capture_default_str();
  adds->add_option("--prefix", arguments->prefixes,
                   "Only queues and schedules whose names begin so; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  add_span(*adds, "--expires-in", arguments->expires_in, "It ends after this time", {.least = std::chrono::seconds{1}});
  CLI::App* lists = add_subcommand(*token, "list", "Show the tokens there are.", *arguments);
  lists->add_flag("--json", arguments->json, "A line of JSON for each");
  CLI::App* removes = add_subcommand(*token, "remove", "Take a token back.", *arguments);
  removes->add_option("NAME", arguments->name, "Which")->required();
  return [arguments, adds, lists] {
    if (adds->parsed()) return add(*arguments);
    return lists->parsed() ? list(*arguments) : remove(*arguments);
  };
}

}  // namespace argiope
