#include "store/redis/redis_driver.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "store/redis/redis_keys.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

using namespace std::chrono_literals;

namespace {

constexpr Duration kRenewInterval = 3s;
constexpr std::size_t kMostTold = 10'000;  // changes of others, at once

// How others are told who owns the store.
std::string this_process() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}:{}", host, ::getpid());
}

}  // namespace

// --- opening ---------------------------------------------------------------------------------------------------------

// What does not pass is told at once; later a server is waited for.
Result<std::unique_ptr<RedisDriver>> RedisDriver::open(std::string_view url, const StoreOptions& options) {
  auto address = parse_redis_url(url);
  if (!address) return std::unexpected(std::move(address.error()));
  std::unique_ptr<RedisDriver> driver(new RedisDriver(std::move(*address), options));
  try {
    auto promise = promise_of(driver->connection_);
    if (!promise) return std::unexpected(std::move(promise.error()));
    if (auto opened = driver->rows_.open(this_process()); !opened) return std::unexpected(std::move(opened.error()));
    driver->is_open_ = true;
    driver->connection_.be_patient();
    driver->read_first();
    driver->durability_ = std::move(promise->durability);
    if (driver->owns()) {
      spdlog::info("{}: version {}, durability {}", driver->name_, promise->version, driver->durability_);
      if (!promise->warning.empty()) spdlog::warn("{}: {}", driver->name_, promise->warning);
    }
  } catch (DatabaseFailed& failed) {
    return std::unexpected(std::move(failed.error));
  }
  return driver;
}

void RedisDriver::read_first() {
  for (;;) {
    try {
      begin(false);
      return commit();
    } catch (const TransactionOutdated&) {
      roll_back();
    }
  }
}

bool has_redis_owner(std::string_view url) {
  auto address = parse_redis_url(url);
  if (!address) return false;
  try {
    RedisConnection connection(std::move(*address));
    return RedisRows(connection, StoreAccess::read).has_owner();
  } catch (const DatabaseFailed&) {
    return false;
  }
}

RedisDriver::~RedisDriver() {
  if (is_open_) rows_.release();
}

// --- transactions ----------------------------------------------------------------------------------------------------

void RedisDriver::begin(bool to_write) {
  if (rows_.begin(to_write)) refresh();
}

// Others have written: all that is kept from one transaction to the next. What an owner has given it does not give
// again, whatever the server has lost.
void RedisDriver::refresh() {
  now_ = owns() ? stored_ : Counters{};
  for (const auto& [name, value] : rows_.all(RedisTable::meta)) {
    const auto read = [&](std::uint64_t& number) { number = std::max(number, redis_keys::number_in(value)); };
    if (name == "last_id") read(now_.jobs.last_id);
    if (name == "last_chosen_id") read(now_.jobs.last_chosen_id);
    if (name == "last_token") read(now_.jobs.last_token);
    if (name == "last_schedule") read(now_.last_schedule);
    if (name == "last_request") read(now_.last_request);
  }
  stored_ = now_;
  note_token();
  queues_.load();
}

void RedisDriver::note_token() noexcept {
  if (now_.jobs.last_token > *most_token_) *most_token_ = now_.jobs.last_token;
}

void RedisDriver::commit() {
  const auto now = now_.named(), before = stored_.named();
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto& [name, number] = now[i];
    if (number != before[i].second) rows_.set(RedisTable::meta, name, std::to_string(number));
  }
  rows_.commit(now);
  note_token();
  stored_ = now_;
}

// Its calls may be run again, under the same tokens. What was counted for it is read anew.
void RedisDriver::roll_back() noexcept { rows_.roll_back(); }

bool RedisDriver::passes(const Error& error) const noexcept { return !rows_.is_over() && redis_trouble_passes(error); }

bool RedisDriver::ends_all(const Error& error) const noexcept {
  return rows_.is_over() || (owns() && !redis_trouble_passes(error));
}

std::optional<Duration> RedisDriver::renew_interval() const noexcept {
  return owns() ? std::optional(kRenewInterval) : std::nullopt;
}

void RedisDriver::renew() noexcept {
  try {
    rows_.renew();
  } catch (const DatabaseFailed& failed) {
    spdlog::warn("{}", failed.error.message);
  }
}

// --- requests that may be refused ------------------------------------------------------------------------------------

void RedisDriver::mark() {
  rows_.mark();
  marked_ = now_;
  queues_.mark();
}

void RedisDriver::take_back() {
  rows_.take_back();
  now_ = marked_;
  queues_.take_back();
}

// --- the owner -------------------------------------------------------------------------------------------------------

std::vector<OldLease> RedisDriver::old_leases() { return owns() ? jobs_.old_leases() : std::vector<OldLease>{}; }

// One who has lost the store is to hear of it by the transaction that follows, also where it writes nothing else.
bool RedisDriver::others_changed_jobs() { return rows_.is_over() || rows_.exists(RedisTable::touched); }

ChangedElsewhere RedisDriver::changed_elsewhere() {
  ChangedElsewhere changed;
  if (!owns()) return changed;
  auto [fields, more] = rows_.some(RedisTable::touched, kMostTold);
  changed.more = more;
  for (const std::string& field : fields) {
    const bool is_job = field.starts_with('j');
    if (is_job || field.starts_with('s')) {
      (is_job ? changed.jobs : changed.schedules).push_back(redis_keys::number_in(std::string_view(field).substr(1)));
    }
    rows_.erase(RedisTable::touched, field);
  }
  std::ranges::sort(changed.jobs);
  std::ranges::sort(changed.schedules);
  return changed;
}

void RedisDriver::remember(const std::string& name, std::int64_t value) {
  rows_.set(RedisTable::meta, "owner." + name, std::to_string(value));
}

std::optional<std::int64_t> RedisDriver::recall(const std::string& name) {
  const std::string* const value = rows_.get(RedisTable::meta, "owner." + name);
  return value == nullptr ? std::nullopt : std::optional(std::strtoll(value->c_str(), nullptr, 10));
}

}  // namespace argiope
