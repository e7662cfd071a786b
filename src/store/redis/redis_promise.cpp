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
  commands.add("CONFIG", "GET", "appendonly", "appendfsync", "save", "maxmemory", "maxmemory-policy");
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

}  // namespace

Result<RedisPromise> promise_of(RedisConnection& connection) {
  const std::string shown = connection.address().shown();
  RedisCommands commands;
  commands.add("INFO", "server");
  RedisPromise promise;
  {
    const RedisReplies replies = connection.ask(commands);
    promise.version = told_in(replies[0].text(), "redis_version");
  }
  int major = 0;
  std::from_chars(promise.version.data(), promise.version.data() + promise.version.size(), major);
  if (major < kOldestRedis) {
    return fail(Errc::unsupported,
                fmt::format("{}: its version is {}; a store needs 7.0 or later", shown, in_quotes(promise.version)));
  }
  auto settings = settings_of(connection);
  if (!settings) {
    promise.durability = "unknown: the server does not let CONFIG be asked";
    return promise;
  }
  auto& of = *settings;
  if (of["appendonly"] == "yes") {
    const std::string& sync = of["appendfsync"];
    promise.durability =
        fmt::format("appendonly yes, appendfsync {}: {}", sync,
                    sync == "always"     ? "each write is on the disk before it is acknowledged"
                    : sync == "everysec" ? "a crash of the machine may lose the last second"
                                         : "a crash of the machine may lose what the system had not written");
  } else if (!of["save"].empty()) {
    promise.durability =
        fmt::format("appendonly no, save {}: an end of the server may lose all since its last snapshot", of["save"]);
  } else {
    promise.keeps_nothing = true;
    promise.durability = "none: appendonly no, save \"\": all is lost when the server ends";
    if (!connection.address().keeps_nothing) {
      return fail(Errc::refused,
                  shown +
                      ": the server keeps nothing when it ends (appendonly no, no save); set appendonly yes, or say "
                      "durability=none in the store's URL");
    }
  }
  const std::string& policy = of["maxmemory-policy"];
  if (of["maxmemory"] != "0" && policy != "noeviction") {
    promise.warning = fmt::format(
        "maxmemory-policy is {}: the server may delete jobs when its memory is full; set "
        "noeviction",
        policy);
  }
  return promise;
}

}  // namespace argiope
