// Rows and orders of a store on Redis, as the present transaction has them.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

#include "store/redis/redis_rows.hpp"

namespace argiope {

// --- rows ------------------------------------------------------------------------------------------------------------

void RedisRows::want(RedisTable table, std::string_view field) {
  if (!cells(table).contains(std::string(field))) wanted_.emplace_back(table, field);
}

void RedisRows::fetch() {
  if (wanted_.empty()) return;
  const auto wanted = std::exchange(wanted_, {});
  std::array<std::vector<std::string_view>, kRedisTables> fields;
  for (const auto& [table, field] : wanted) fields[static_cast<std::size_t>(table)].push_back(field);
  RedisCommands commands;
  for (std::size_t i = 0; i < kRedisTables; ++i) {
    if (fields[i].empty()) continue;
    commands.begin(2 + fields[i].size());
    commands.argument("HMGET");
    commands.argument(key(static_cast<RedisTable>(i)));
    for (const std::string_view field : fields[i]) commands.argument(field);
  }
  const RedisReplies replies = look(commands);
  std::size_t reply = 0;
  for (std::size_t i = 0; i < kRedisTables; ++i) {
    if (fields[i].empty()) continue;
    const RedisValue values = replies[reply++];
    for (std::size_t n = 0; n < fields[i].size(); ++n) {
      std::optional<std::string> value;
      if (!values[n].is_null()) value = values[n].text();
      cells_[i].try_emplace(std::string(fields[i][n]), Cell{std::move(value), false});
    }
  }
}

const std::string* RedisRows::get(RedisTable table, std::string_view field) {
  const std::string name(field);
  auto found = cells(table).find(name);
  if (found == cells(table).end()) {
    wanted_.emplace_back(table, name);
    fetch();
    found = cells(table).find(name);
  }
  return found->second.value ? &*found->second.value : nullptr;
}

RedisRows::Cell& RedisRows::writing(RedisTable table, std::string_view field) {
  const auto [at, is_new] = cells(table).try_emplace(std::string(field));
  if (is_marked_) {
    cells_before_.push_back({table, at->first, is_new ? std::nullopt : std::optional(at->second)});
  }
  at->second.is_written = true;
  return at->second;
}

void RedisRows::set(RedisTable table, std::string_view field, std::string value) {
  writing(table, field).value = std::move(value);
}

void RedisRows::erase(RedisTable table, std::string_view field) { writing(table, field).value.reset(); }

std::vector<std::pair<std::string, std::string>> RedisRows::all(RedisTable table) {
  RedisCommands commands;
  commands.add("HGETALL", key(table));
  const RedisReplies replies = look(commands);
  std::map<std::string, std::string> found;
  for (std::size_t i = 0; i + 1 < replies[0].size(); i += 2)
    found.emplace(replies[0][i].text(), replies[0][i + 1].text());
  for (const auto& [field, cell] : cells(table)) {
    if (!cell.is_written) continue;
    if (cell.value) {
      found[field] = *cell.value;
    } else {
      found.erase(field);
    }
  }
  return {std::make_move_iterator(found.begin()), std::make_move_iterator(found.end())};
}

RedisRows::Fields RedisRows::some(RedisTable table, std::size_t most) {
  Fields fields;
  std::string cursor = "0";
  do {
    RedisCommands commands;
    commands.add("HSCAN", key(table), cursor, "COUNT", std::to_string(most));
    const RedisReplies replies = look(commands);
    cursor = replies[0][0].text();
    const RedisValue found = replies[0][1];
    for (std::size_t i = 0; i < found.size(); i += 2) fields.names.emplace_back(found[i].text());
    fields.more = cursor != "0" && !cursor.empty();
  } while (fields.names.empty() && fields.more);
  return fields;
}

bool RedisRows::exists(RedisTable table) {
  RedisCommands commands;
  commands.add("EXISTS", key(table));
  return connection_.ask(commands)[0].number() != 0;
}

void RedisRows::increment(RedisTable table, std::string_view field, std::int64_t by) {
  increments_[{table, std::string(field)}] += by;
  if (is_marked_) numbers_before_.push_back({table, std::string(field), by});
}

std::int64_t RedisRows::number(RedisTable table, std::string_view field) {
  const std::string* const kept = get(table, field);
  const auto added = increments_.find({table, std::string(field)});
  return (kept == nullptr ? 0 : std::strtoll(kept->c_str(), nullptr, 10)) +
         (added == increments_.end() ? 0 : added->second);
}

// --- orders ----------------------------------------------------------------------------------------------------------

void RedisRows::add(const std::string& order, std::string member) { place(order, std::move(member), true); }
void RedisRows::remove(const std::string& order, std::string member) { place(order, std::move(member), false); }

void RedisRows::place(const std::string& order, std::string member, bool is_there) {
  const auto [at, is_new] = orders_[order].try_emplace(std::move(member), is_there);
  if (is_marked_) {
    members_before_.push_back({order, at->first, is_new ? std::nullopt : std::optional(at->second)});
  }
  at->second = is_there;
}

std::vector<std::string> RedisRows::range(const std::string& order, const RedisRange& range) {
  const auto changed = orders_.find(order);
  const bool is_changed = changed != orders_.end();
  constexpr std::size_t kAll = std::numeric_limits<std::uint32_t>::max();
  std::size_t limit = std::min(range.limit, kAll);
  if (is_changed && limit < kAll) limit += changed->second.size();
  const std::string from = range.after.empty() ? "-" : '(' + range.after;
  const std::string to = range.before.empty() ? "+" : '(' + range.before;
  RedisCommands commands;
  if (range.backwards) {
    commands.add("ZRANGE", key(order), to, from, "BYLEX", "REV", "LIMIT", "0", std::to_string(limit));
  } else {
    commands.add("ZRANGE", key(order), from, to, "BYLEX", "LIMIT", "0", std::to_string(limit));
  }
  const RedisReplies replies = look(commands);
  std::vector<std::string> found;
  found.reserve(replies[0].size());
  for (std::size_t i = 0; i < replies[0].size(); ++i) {
    std::string member(replies[0][i].text());
    if (!is_changed || !changed->second.contains(member)) found.push_back(std::move(member));
  }
  if (is_changed) {
    for (const auto& [member, is_there] : changed->second) {
      const bool is_within = member > range.after && (range.before.empty() || member < range.before);
      if (is_there && is_within) found.push_back(member);
    }
    range.backwards ? std::ranges::sort(found, std::greater{}) : std::ranges::sort(found);
  }
  if (found.size() > range.limit) found.resize(range.limit);
  return found;
}

// Members that were added are looked for on the server, where they were not before: each is added once, and removed
// only where it is.
std::uint64_t RedisRows::count(const std::string& order, const RedisRange& range) {
  RedisCommands commands;
  commands.add("ZLEXCOUNT", key(order), range.after.empty() ? "-" : '(' + range.after,
               range.before.empty() ? "+" : '(' + range.before);
  const auto changed = orders_.find(order);
  std::vector<std::string_view> within;
  if (changed != orders_.end()) {
    for (const auto& [member, is_there] : changed->second) {
      if (member <= range.after || (!range.before.empty() && member >= range.before)) continue;
      within.push_back(member);
      commands.add("ZSCORE", key(order), member);
    }
  }
  const RedisReplies replies = look(commands);
  auto count = static_cast<std::uint64_t>(replies[0].number());
  for (std::size_t i = 0; i < within.size(); ++i) {
    const bool was_there = !replies[i + 1].is_null();
    const bool is_there = changed->second.at(std::string(within[i]));
    count = count + (is_there ? 1 : 0) - (was_there ? 1 : 0);
  }
  return count;
}

}  // namespace argiope
