#include "store/jobs/sqlite_keys.hpp"

#include <algorithm>

#include "jobs/internal/job_rules.hpp"

namespace argiope {

using namespace job_rules;

std::optional<KeptRequest> SqliteKeys::find(const std::string& key) {
  SqliteUse found = sql_.use(Query::request_find);
  if (!found.with(key).next()) return std::nullopt;
  return KeptRequest{std::string(found.text(0)), std::string(found.text(1))};
}

void SqliteKeys::write(const RequestKey& key, WallTime at, const std::string& reply) {
  sql_.use(Query::request_add).with(key.key, to_ms(at), key.digest, reply).run();
}

std::size_t SqliteKeys::prune(WallTime before, std::size_t most, std::size_t limit) {
  std::int64_t last = 0;
  {
    SqliteUse found = sql_.use(Query::requests_last);
    found.next();
    last = found.number(0);
  }
  std::int64_t up_to = 0;
  std::size_t count = 0;
  {
    SqliteUse oldest = sql_.use(Query::requests_oldest);
    oldest.with(static_cast<std::int64_t>(std::min<std::size_t>(limit, kMostJobId)));
    while (oldest.next()) {
      const std::int64_t n = oldest.number(0);
      const bool too_many = last - n >= static_cast<std::int64_t>(std::min<std::size_t>(most, kMostJobId));
      if (!too_many && oldest.number(1) >= to_ms(before)) break;
      up_to = n;
      ++count;
    }
  }
  if (count > 0) sql_.use(Query::requests_delete).with(up_to).run();
  return count;
}

}  // namespace argiope
