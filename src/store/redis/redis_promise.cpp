#include "store/redis/redis_promise.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "base/internal/printable.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {
namespace {

constexpr int kOldestRedis = 7;

// The value of a line "name:value" of INFO.
std::string_view told_in(std::string_view info, std::string_view name) {
  for (std::size_t at = info.find(name); at != std::string_view::npos; at = info.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || info[at - 1] == '\n') && end < info.size() && info[end] == ':') {
      return info.substr(end + 1, info.find_first_of("\r\n", end) - end - 1);
    }
  }
  return {};
}

// nullopt: CONFIG is forbidden, or renamed, as hosted servers do.
std::optional<std::map<std::string, std::string>> settings_of(RedisConnection& connection) {
  RedisCommands commands;
  commands.add("CONFIG", "GET", "appendonly", "appendfsync", "save");
  try {
    const RedisReplies replies = connection.ask(commands);
    std::map<std::string, std::string> settings;
    for (std::size_t i = 0; i + 1 < replies[0].size(); i += 2) {
      settings.emplace(replies[0][i].text(), replies[0][i + 1].text());
    }
    return settings;
  } catch (const DatabaseFailed&) {
    return std::nullopt;
  }
}

// What is lost of what was acknowledged, and when.
std::string durability_of(std::map<std::string, std::string>& settings) {
  if (settings["appendonly"] == "yes") {
    const std::string& sync = settings["appendfsync"];
    return fmt::format("appendonly yes, appendfsync {}: {}", sync,
                       sync == "always"     ? "each write is on the disk before it is acknowledged"
                       : sync == "everysec" ? "a crash of the machine may lose the last second"
                                            : "a crash of the machine may lose what the system had not written");
  }
  if (!settings["save"].empty()) {
    return fmt::format("appendonly no, save {}: an end of the server may lose all since its last snapshot",
                       settings["save"]);
  }
  return "none: appendonly no, save \"\": all is lost when the server ends";
}

bool keeps_nothing(std::map<std::string, std::string>& settings) {
  return settings["appendonly"] != "yes" && settings["save"].empty();
}

// Only keys that end by themselves are deleted under volatile-…, and those are the lock and the notes of batches.
Result<std::string> warning_of(std::string_view info, const RedisAddress& address) {
  const std::string_view policy = told_in(info, "maxmemory_policy");
  if (policy.empty() || policy == "noeviction") return std::string();
  const bool has_limit = told_in(info, "maxmemory") != "0";
  if (has_limit && policy.starts_with("allkeys-") && !address.keeps_nothing) {
    return fail(Errc::refused,
                fmt::format("{}: the server deletes jobs when its memory is full (maxmemory-policy {}); set "
                            "maxmemory-policy noeviction, or say durability=none in the store's URL",
                            address.shown(), printable(policy)));
  }
  return fmt::format("maxmemory-policy is {}: the server {} when its memory is full; set noeviction", printable(policy),
                     policy.starts_with("allkeys-")
                         ? (has_limit ? "deletes jobs" : "would delete jobs, if it had a maxmemory,")
                         : "may do a batch twice");
}

}  // namespace

Result<RedisPromise> promise_of(RedisConnection& connection) {
  const RedisAddress& address = connection.address();
  RedisCommands commands;
  for (const std::string_view section : {"server", "memory", "replication"}) commands.add("INFO", section);
  const RedisReplies replies = connection.ask(commands);
  RedisPromise promise{.version = std::string(told_in(replies[0].text(), "redis_version"))};
  int major = 0;
  std::from_chars(promise.version.data(), promise.version.data() + promise.version.size(), major);
  if (major < kOldestRedis) {
    return fail(Errc::unsupported, fmt::format("{}: its version is {}; a store needs 7.0 or later", address.shown(),
                                               in_quotes(promise.version)));
  }
  auto warning = warning_of(replies[1].text(), address);
  if (!warning) return std::unexpected(std::move(warning.error()));
  promise.warning = std::move(*warning);
  auto settings = settings_of(connection);
  promise.durability = settings ? durability_of(*settings) : "unknown: the server does not let CONFIG be asked";
  if (settings && keeps_nothing(*settings) && !address.keeps_nothing) {
    return fail(Errc::refused,
                address.shown() +
                    ": the server keeps nothing when it ends (appendonly no, no save); set appendonly yes, or say "
                    "durability=none in the store's URL");
  }
  if (told_in(replies[2].text(), "connected_slaves") != "0")
    promise.durability += "; a failover to a replica may lose what that has not received yet";
  return promise;
}

}  // namespace argiope
