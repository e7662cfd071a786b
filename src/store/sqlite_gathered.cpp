// Rows that one statement writes or deletes together. A statement opens the table and its indexes, finds its place and closes
// them again, which for a row alone is a third of its cost.
#include <algorithm>

#include "store/sqlite_jobs.hpp"
#include "store/sqlite_jobs_use.hpp"

namespace argiope {

namespace {

constexpr std::size_t kMostGatheredBytes = 64 * 1024;
constexpr std::size_t kMostDone = 256;

}  // namespace

void SqliteJobs::gather(const JobRow& row, const NewJob& job, WallTime now) {
  gathered_.add(row, job, job_rules::to_ms(now), job_rules::lease_ms(job.lease_time));
  has_gathered_ = true;
  if (gathered_.rows().size() == kRowsInserted || gathered_.text_bytes() >= kMostGatheredBytes) write_gathered();
}

// Rows are deleted before others are written, so one that is still to be written goes first.
void SqliteJobs::gather_done(JobId id) {
  if (std::ranges::find(gathered_.rows(), id, &GatheredRows::NewRow::id) != gathered_.rows().end()) write_gathered();
  gathered_.add_done(id);
  has_gathered_ = true;
  if (gathered_.done().size() == kMostDone) write_gathered();
}

// What fails is not forgotten, so that it fails the commit as well: the call that happened to have it written may be a read,
// which fails alone.
void SqliteJobs::write_gathered() {
  has_gathered_ = false;
  try {
    delete_gathered();
    insert_gathered();
  } catch (...) {
    has_gathered_ = true;
    throw;
  }
  gathered_.clear();
}

void SqliteJobs::drop_gathered() noexcept {
  gathered_.clear();
  has_gathered_ = false;
}

void SqliteJobs::insert_gathered() {
  std::span<const GatheredRows::NewRow> left(gathered_.rows());
  while (!left.empty()) {
    const std::size_t count = left.size() >= kRowsInserted ? kRowsInserted : left.size() >= 4 ? 4 : 1;
    Use insert = use(count == 1 ? Query::job_insert : count == 4 ? Query::job_insert_4 : Query::job_insert_16);
    for (const GatheredRows::NewRow& row : left.first(count)) {
      const GatheredRows::Texts texts = gathered_.texts_of(row);
      insert.with(row.id, row.queue, row.state, row.rank, row.priority)
          .with_or_null(row.due_ms, row.max_attempts, row.pending, row.cancelled_with_others ? 0 : 1, row.flags, row.fence)
          .with(row.created_ms, texts.key)
          .with_or_null(texts.unique, texts.name, texts.function, texts.payload, row.schedule, row.run, row.lease_ms);
    }
    insert.run();
    left = left.subspan(count);
  }
}

// Jobs that were leased together are neighbours, and mostly end together.
void SqliteJobs::delete_gathered() {
  std::vector<JobId>& ids = gathered_.done();
  if (!std::ranges::is_sorted(ids)) std::ranges::sort(ids);
  for (auto first = ids.begin(); first != ids.end();) {
    const auto last = std::ranges::adjacent_find(first, ids.end(), [](JobId id, JobId next) { return next != id + 1; });
    const auto end = last == ids.end() ? last : std::next(last);
    if (std::next(first) == end) {
      use(Query::job_delete).with(*first).run();
    } else {
      use(Query::jobs_delete).with(*first, *std::prev(end)).run();
    }
    first = end;
  }
}

}  // namespace argiope
