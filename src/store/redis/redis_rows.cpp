#include "store/redis/redis_rows.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <ranges>

#include "base/internal/fingerprint.hpp"
#include "base/internal/printable.hpp"
#include "store/redis/redis_keys.hpp"
#include "store/redis/redis_scripts.hpp"
#include "store/sqlite/internal/group_commit.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

using namespace std::chrono_literals;

namespace {

constexpr std::array<const char*, kRedisTables> kRedisTableNames = {
    "meta",           "queues",   "counts",  "jobs",     "leases",   "payloads",  "results",
    "errors",         "attempts", "names",   "uniques",  "failures", "schedules", "places",
    "schedule_names", "runs",     "outputs", "requests", "touched"};

constexpr std::int64_t kLeastLeaseMs = 7'000;  // it is renewed from here on
constexpr int kMostOutdated = 1'000;           // in a row
// Who only reads asks for the lock when it was overtaken so often in a row.
constexpr int kMostOvertaken = 8;
// One who holds the lock and is gone keeps others from it for so long.
constexpr const char* kLockMs = "5000";
constexpr const char* kReadersLockMs = "1000";
constexpr Duration kLongestPauseForLock = 16ms, kLongestPauseForOwner = 250ms;
constexpr double kLeastNoted = 3'600;  // seconds
constexpr std::string_view kOthersWrite = "other processes keep writing to it";
constexpr std::string_view kBatchesAreLost = "the server has lost batches that it had acknowledged";
constexpr std::string_view kWasWritten = "what was told to have failed has been written after all";
constexpr std::string_view kNotKnown = "; whether the last batch was written is not known";
constexpr std::string_view kKeysAreGone = "its keys are gone from the server";
// Lua can take some 8,000 values from a table at once. Even, for pairs.
constexpr std::size_t kMostArguments = 4'000;

// How long a lease goes on, in milliseconds by the server's clock.
std::int64_t left_of(RedisValue until, RedisValue time) {
  const auto number = [](RedisValue value) { return static_cast<std::int64_t>(redis_keys::number_in(value.text())); };
  return number(until) - number(time[0]) * 1'000 - number(time[1]) / 1'000;
}

}  // namespace

RedisRows::RedisRows(RedisConnection& connection, StoreAccess access, Duration lease)
    : connection_(connection),
      access_(access),
      lease_(lease),
      lease_ms_(std::to_string(lease / 1ms)),
      keys_('{' + connection.address().prefix + ":0}:") {}

std::string RedisRows::key(RedisTable table) const { return key(kRedisTableNames[static_cast<std::size_t>(table)]); }

// --- whose store it is -----------------------------------------------------------------------------------------------

Result<void> RedisRows::open(const std::string& holder) {
  const std::vector<std::string> scripts = {std::string(redis_scripts::kNeedsMemory) + redis_scripts::kCommit,
                                            std::string(redis_scripts::kNeedsNoMemory) + redis_scripts::kCommit,
                                            redis_scripts::kRenew};
  RedisCommands looks;
  looks.add("HGET", key(RedisTable::meta), "format");
  looks.add("TIME");
  const RedisReplies looked = connection_.ask(looks);
  const std::string shown = connection_.address().shown();
  const auto check_format = [&](std::string_view format) -> Result<void> {
    if (format == "1") return {};
    return fail(Errc::newer_version, fmt::format("{}: keys {}* are of format {}, which this argiope does not know",
                                                 shown, keys_, in_quotes(format)));
  };
  client_ = new_client(holder, looked[1]);
  if (access_ == StoreAccess::read) {
    if (!looked[0].is_null()) return check_format(looked[0].text());
    return fail(Errc::not_found,
                fmt::format("{}: there is no store with prefix {}", shown, in_quotes(connection_.address().prefix)));
  }
  RedisCommands loads;
  for (const std::string& script : scripts) loads.add("SCRIPT", "LOAD", script);
  const RedisReplies loaded = connection_.ask(loads);
  // An owner that lives renews its lease. One that has died is followed when that is over by the server's clock, which
  // may have been set back, or another server's by now: or was not renewed for as long by this machine's.
  std::string until;
  bool is_stale = false;
  Alarm lease;
  const auto is_settled = [&](const RedisReplies& got) {
    if (got[0][0].text() != "held") return true;
    const std::string before = std::exchange(until, std::string(got[0][2].text()));
    if (before == until) return is_stale = lease.has_gone_off();
    lease.set(lease_);
    return !before.empty();
  };
  const auto claim = [&](const std::string& passed_over) {
    RedisCommands commands;
    commands.add("EVAL", redis_scripts::kOpen, "2", key(RedisTable::meta), key(RedisTable::touched),
                 owns() ? holder : std::string(), lease_ms_, client_, passed_over);
    return connection_.ask_until(commands, is_settled,
                                 {.why = "another process owns this store, whose lease is not over yet",
                                  .longest_pause = kLongestPauseForOwner});
  };
  RedisReplies replies = claim("");
  if (is_stale) replies = claim(std::string(until));
  const RedisValue opened = replies[0];
  if (opened[0].text() == "format") return check_format(opened[1].text());
  if (opened[0].text() == "held") {
    return fail(Errc::busy, fmt::format("{}: {} owns this store", shown, printable(opened[1].text())));
  }
  commit_script_ = loaded[0].text();
  lean_commit_script_ = loaded[1].text();
  renew_script_ = loaded[2].text();
  if (owns()) epoch_ = client_;
  last_batch_ = opened[1].text();
  connection_.set_scripts(scripts);
  return {};
}

// 60 bits that no other client has had. The server cannot count them: after a failover it may have forgotten some, who
// go on.
std::string RedisRows::new_client(std::string_view holder, RedisValue time) const {
  const std::string unique =
      fmt::format("{} {} {} {}", holder, static_cast<const void*>(this), time[0].text(), time[1].text());
  return fmt::format("{:015x}", fingerprint(unique) >> 4);
}

bool RedisRows::has_owner() {
  RedisCommands commands;
  commands.add("HGET", key(RedisTable::meta), "until");
  commands.add("TIME");
  const RedisReplies replies = connection_.ask(commands);
  return left_of(replies[0], replies[1]) > 0;
}

void RedisRows::renew() {
  if (!owns() || is_over_) return;
  RedisCommands commands;
  commands.add("EVALSHA", renew_script_, "1", key(RedisTable::meta), epoch_, lease_ms_);
  const RedisReplies replies = connection_.ask(commands);
  const std::string_view answer = replies[0].text();
  if (answer == "done") return;
  is_over_ = true;
  spdlog::error("{}: {}; nothing more is written", connection_.address().shown(),
                answer == "lost" ? "another process has become its owner" : "its keys are gone from the server");
}

// Of one that shares the store its last batch is noted; with its end nobody asks for that any more.
void RedisRows::release() noexcept {
  if (is_over_ || (!owns() && (batches_ == 0 || !connection_.is_up()))) return;
  RedisCommands commands;
  if (owns()) {
    commands.add("EVALSHA", renew_script_, "1", key(RedisTable::meta), epoch_, "0");
  } else {
    commands.add("DEL", batch_key());
  }
  try {
    (void)connection_.ask(commands);
  } catch (const DatabaseFailed&) {
    // Both end by themselves.
  }
}

// --- transactions ----------------------------------------------------------------------------------------------------

bool RedisRows::begin(bool to_write) {
  if (is_over_ && to_write) end("this process does not own it any more");
  writes_ = to_write;
  const bool locks = to_write ? !owns() || outdated_ > 0 : outdated_ >= kMostOvertaken;
  if (!locks && to_write && is_known_) return false;
  auto version = locks ? lock() : version_there();
  if (!version) end(kKeysAreGone);
  const bool is_new = !is_known_ || *version != version_;
  version_ = std::move(*version);
  is_known_ = true;
  return is_new;
}

std::optional<std::string> RedisRows::version_there() {
  RedisCommands commands;
  commands.add("HMGET", key(RedisTable::meta), "version", "until", "epoch");
  commands.add("TIME");
  const RedisReplies replies = connection_.ask(commands);
  const RedisValue meta = replies[0];
  // Commits renew the lease by themselves.
  if (owns() && (meta[2].text() != epoch_ || left_of(meta[1], replies[1]) < kLeastLeaseMs)) renew();
  return meta[0].is_null() ? std::nullopt : std::optional<std::string>(meta[0].text());
}

// The replies to `commands`, as of the moment of the transaction: nobody has written since, as the last one says.
RedisReplies RedisRows::look(RedisCommands& commands) {
  commands.add("HGET", key(RedisTable::meta), "version");
  RedisReplies replies = connection_.ask(commands);
  const RedisValue version = replies.back();
  if (version.is_null()) end(kKeysAreGone);
  if (version.text() != version_) outdated();
  return replies;
}

void RedisRows::outdated() {
  is_known_ = in_doubt_ = false;
  if (++outdated_ <= kMostOutdated) throw TransactionOutdated{};
  outdated_ = 0;
  throw DatabaseFailed{{Errc::busy, fmt::format("{}: {}", connection_.address().shown(), kOthersWrite)}};
}

// The version at that moment. Who may only read goes on without.
std::optional<std::string> RedisRows::lock() try {
  const bool reads = access_ == StoreAccess::read;
  RedisCommands commands;
  commands.add("EVAL", redis_scripts::kLock, "2", key("lock"), key(RedisTable::meta), client_,
               reads ? kReadersLockMs : kLockMs);
  const RedisReplies replies =
      connection_.ask_until(commands, [](const RedisReplies& got) { return got[0][0].text() == "locked"; },
                            {.why = kOthersWrite, .longest_pause = kLongestPauseForLock, .tells_forbidden = reads});
  is_locked_ = true;
  const RedisValue version = replies[0][1];
  return version.is_null() ? std::nullopt : std::optional<std::string>(version.text());
} catch (const RedisForbidden&) {
  return version_there();
}

void RedisRows::unlock() noexcept {
  // A server that is away is not waited for: the lock ends by itself.
  if (!std::exchange(is_locked_, false) || !connection_.is_up()) return;
  try {
    RedisCommands commands;
    commands.add("EVAL", redis_scripts::kUnlock, "1", key("lock"), client_);
    (void)connection_.ask(commands);
  } catch (const DatabaseFailed&) {
    // It ends by itself.
  }
}

// An owner cannot go on from what may or may not have been written: it asks until it knows.
std::string RedisRows::sent_batch(const std::string& id, const RedisCommands& commands) {
  in_doubt_ = false;
  for (;;) {
    bool is_sent = false;
    try {
      std::string answer(connection_.ask(commands)[0].text());
      in_doubt_ = in_doubt_ || connection_.may_be_done();
      if (answer != "locked") return answer;
      // The batch may be large: it is sent again when the others have ended. Where it is in doubt, what has been
      // written meanwhile may be the batch itself, whose first sending was late: the server says so.
      is_sent = true;
      if (lock() != version_ && !in_doubt_) outdated();
    } catch (const DatabaseFailed& failed) {
      in_doubt_ = in_doubt_ || (!is_sent && connection_.may_be_done());
      if (!in_doubt_) throw;
      if (owns() && redis_trouble_passes(failed.error) && !connection_.has_given_up()) {
        if (overdue_) overdue_(failed.error);
        continue;
      }
      if (owns()) doubtful_ = id;
      throw DatabaseFailed{{failed.error.code, failed.error.message + std::string(kNotKnown)}};
    }
  }
}

void RedisRows::commit(Numbers given) {
  if (!writes_ || !has_written()) {
    unlock();
    outdated_ = 0;
    forget();
    return;
  }
  const std::string id = fmt::format("{}.{}", client_, ++batches_);
  const RedisCommands commands = batch(id);
  const std::string answer = sent_batch(id, commands);
  if (answer == "changed") outdated();
  if (answer == "gone") end(kKeysAreGone);
  if (answer == "lost") end("another process has become its owner");
  if (answer == "back") {
    raise(given);
    end(doubtful_.empty() ? kBatchesAreLost : kWasWritten);
  }
  if (answer != "done") end("a key or a number is of another kind than a store's: " + printable(answer));
  version_ = id;
  last_batch_ = id;
  doubtful_.clear();
  // The script has given the lock back, but for one that was had after an earlier sending was done.
  if (std::exchange(in_doubt_, false)) unlock();
  is_locked_ = false;
  outdated_ = 0;
  forget();
}

// The next owner, and who shares the store, give none of them again: others may still know ids and tokens that the
// server has lost.
void RedisRows::raise(Numbers numbers) noexcept {
  RedisCommands commands;
  commands.begin(5 + 2 * numbers.size());
  for (const std::string_view text : {"EVAL", redis_scripts::kRaise, "1"}) commands.argument(text);
  commands.argument(key(RedisTable::meta));
  commands.argument(epoch_);
  for (const auto& [name, number] : numbers) {
    commands.argument(name);
    commands.argument(std::to_string(number));
  }
  try {
    (void)connection_.ask(commands);
  } catch (const DatabaseFailed& failed) {
    spdlog::warn("{}: the next owner may give ids and tokens again", failed.error.message);
  }
}

void RedisRows::roll_back() noexcept {
  unlock();
  is_known_ = in_doubt_ = false;
  forget();
}

void RedisRows::end(std::string_view why) {
  const bool ends_all = owns();
  is_over_ = is_over_ || ends_all;
  throw DatabaseFailed{
      {Errc::io, fmt::format("{}: {}{}{}", connection_.address().shown(), why,
                             std::exchange(in_doubt_, false) ? kNotKnown : std::string_view(),
                             ends_all ? "; nothing more is written. Start again to use what is there" : "")}};
}

void RedisRows::forget() noexcept {
  for (Cells& known : cells_) known.clear();
  wanted_.clear();
  orders_.clear();
  increments_.clear();
  keep();
}

bool RedisRows::has_written() const noexcept {
  const auto is_written = [](const auto& cell) { return cell.second.is_written; };
  return !orders_.empty() || !increments_.empty() ||
         std::ranges::any_of(cells_, [&](const Cells& known) { return std::ranges::any_of(known, is_written); });
}

// What brings new jobs or schedules, or other payloads, waits for a server that has no memory left; leases, ends of
// runs and what is erased do not, nor does a schedule's step, behind which they would wait: they are how it gets some
// back.
bool RedisRows::needs_memory() const noexcept {
  const auto sets = [this](RedisTable table) {
    return std::ranges::any_of(cells_[static_cast<std::size_t>(table)],
                               [](const auto& cell) { return cell.second.is_written && cell.second.value; });
  };
  const auto ids = orders_.find("ids");
  const bool adds_jobs =
      ids != orders_.end() && std::ranges::any_of(ids->second, [](const auto& id) { return id.second; });
  if (sets(RedisTable::schedules)) return true;
  return !sets(RedisTable::places) && (adds_jobs || sets(RedisTable::payloads));
}

// All that is written, as the script takes it.
RedisCommands RedisRows::batch(std::string_view id) {
  std::vector<std::string> keys = {key(RedisTable::meta), key("lock"), batch_key()};
  std::deque<std::string> own_texts;
  std::vector<std::string_view> arguments;
  const auto write = [&](std::string_view command, const std::vector<std::string_view>& of) {
    for (std::size_t from = 0; from < of.size(); from += kMostArguments) {
      const std::size_t count = std::min(kMostArguments, of.size() - from);
      arguments.insert(arguments.end(), {command, own_texts.emplace_back(std::to_string(keys.size())),
                                         own_texts.emplace_back(std::to_string(count))});
      arguments.insert(arguments.end(), of.begin() + static_cast<std::ptrdiff_t>(from),
                       of.begin() + static_cast<std::ptrdiff_t>(from + count));
    }
  };
  for (std::size_t i = 0; i < kRedisTables; ++i) {
    const auto table = static_cast<RedisTable>(i);
    std::vector<std::string_view> set, erased;
    for (const auto& [field, cell] : cells_[i]) {
      if (!cell.is_written) continue;
      if (!cell.value) {
        erased.push_back(field);
      } else {
        set.insert(set.end(), {field, *cell.value});
      }
    }
    const auto first = increments_.lower_bound({table, ""});
    const bool counts = first != increments_.end() && first->first.first == table;
    if (set.empty() && erased.empty() && !counts) continue;
    keys.push_back(key(table));
    write("HSET", set);
    write("HDEL", erased);
    for (auto at = first; at != increments_.end() && at->first.first == table; ++at) {
      if (at->second != 0) write("HINCRBY", {at->first.second, own_texts.emplace_back(std::to_string(at->second))});
    }
  }
  const std::string hashes = std::to_string(keys.size() - 3);
  for (const auto& [order, members] : orders_) {
    std::vector<std::string_view> added, removed;
    for (const auto& [member, is_there] : members) {
      if (is_there) {
        added.insert(added.end(), {"0", member});
      } else {
        removed.push_back(member);
      }
    }
    keys.push_back(key(order));
    write("ZADD", added);
    write("ZREM", removed);
  }
  RedisCommands commands;
  commands.begin(3 + keys.size() + 8 + arguments.size());
  commands.argument("EVALSHA");
  commands.argument(needs_memory() ? commit_script_ : lean_commit_script_);
  commands.argument(std::to_string(keys.size()));
  for (const std::string& name : keys) commands.argument(name);
  // It may be sent again for as long as a call waits.
  const std::string noted_s =
      fmt::format("{:.0f}", std::max(kLeastNoted, 2 * to_seconds(connection_.address().store_timeout)));
  for (const std::string_view text :
       {std::string_view(client_), std::string_view(epoch_), std::string_view(last_batch_), id,
        std::string_view(version_), std::string_view(lease_ms_), std::string_view(hashes), std::string_view(noted_s)}) {
    commands.argument(text);
  }
  for (const std::string_view argument : arguments) commands.argument(argument);
  return commands;
}

// --- requests that may be refused ------------------------------------------------------------------------------------

void RedisRows::mark() {
  keep();
  is_marked_ = true;
}

void RedisRows::keep() {
  is_marked_ = false;
  cells_before_.clear();
  members_before_.clear();
  numbers_before_.clear();
}

void RedisRows::take_back() {
  is_marked_ = false;
  for (CellBefore& before : cells_before_ | std::views::reverse) {
    if (before.cell) {
      cells(before.table)[before.field] = std::move(*before.cell);
    } else {
      cells(before.table).erase(before.field);
    }
  }
  for (const MemberBefore& before : members_before_ | std::views::reverse) {
    if (before.is_there) {
      orders_[before.order][before.member] = *before.is_there;
    } else {
      orders_[before.order].erase(before.member);
    }
  }
  std::erase_if(orders_, [](const auto& order) { return order.second.empty(); });
  for (const NumberBefore& before : numbers_before_) increments_[{before.table, before.field}] -= before.by;
  keep();
}

}  // namespace argiope
