#include "store/jobs/sqlite_news.hpp"

#include <utility>

#include "store/sqlite/internal/sqlite_file.hpp"

namespace argiope {
namespace {

// The changes left for an owner are counted, and dropped where there is none, once there are so many.
constexpr std::int64_t kMostTouched = 10'000;

}  // namespace

void SqliteNews::touch(JobId id) {
  if (access_ != StoreAccess::share) return;
  sql_.use(Query::touched_add).with(id).run();
  has_touched_ = true;
}

void SqliteNews::touch_schedule(ScheduleId id) {
  if (access_ != StoreAccess::share) return;
  sql_.use(Query::touched_schedule_add).with(id).run();
  has_touched_ = true;
}

void SqliteNews::flush() {
  if (std::exchange(has_touched_, false)) bound();
}

// An owner deletes the changes that it has read. Without an owner they may be dropped: the next one reads the store
// from the start, after this transaction.
void SqliteNews::bound() {
  const auto length = [this](Query query) {
    SqliteUse last = sql_.use(query);
    return last.next() ? last.number(0) : 0;
  };
  if (length(Query::touched_last) <= kMostTouched && length(Query::touched_schedules_last) <= kMostTouched) return;
  if (is_locked(path_)) return;
  sql_.use(Query::touched_delete).run();
  sql_.use(Query::touched_schedules_delete).run();
}

ChangedElsewhere SqliteNews::take() {
  ChangedElsewhere changed;
  {
    SqliteUse rows = sql_.use(Query::touched);
    while (rows.next()) changed.jobs.push_back(static_cast<JobId>(rows.number(0)));
  }
  if (!changed.jobs.empty()) sql_.use(Query::touched_delete).run();
  {
    SqliteUse rows = sql_.use(Query::touched_schedules);
    while (rows.next()) changed.schedules.push_back(static_cast<ScheduleId>(rows.number(0)));
  }
  if (!changed.schedules.empty()) sql_.use(Query::touched_schedules_delete).run();
  is_there_ = false;
  return changed;
}

void SqliteNews::forget() {
  sql_.use(Query::touched_delete).run();
  sql_.use(Query::touched_schedules_delete).run();
}

}  // namespace argiope
