#include "store/jobs/sqlite_statements.hpp"

#include <algorithm>
#include <span>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_tally.hpp"

namespace argiope {

namespace {

constexpr std::size_t kMostGatheredBytes = 64 * 1024;
constexpr std::size_t kMostDone = 256;

// Calls act(first, last) for each row of neighbours.
template <class T, class Neighbours, class Act>
void for_each_run(const std::vector<T>& all, Neighbours neighbours, Act act) {
  for (auto first = all.begin(); first != all.end();) {
    auto last = first;
    while (std::next(last) != all.end() && neighbours(*last, *std::next(last))) ++last;
    act(first, last);
    first = std::next(last);
  }
}

}  // namespace

SqliteStatement SqliteStatements::prepare(const std::string& sql) {
  flush();
  auto statement = database_.prepare(sql);
  if (!statement) throw DatabaseFailed{std::move(statement.error())};
  return std::move(*statement);
}

void SqliteStatements::execute(const char* sql) {
  if (auto done = database_.execute(sql); !done) throw DatabaseFailed{std::move(done.error())};
}

void SqliteStatements::failed(int code) const { throw DatabaseFailed{database_.error(code)}; }

std::optional<std::int64_t> SqliteStatements::meta(std::string_view name) {
  SqliteUse found = use(Query::meta_get);
  if (!found.with(name).next()) return std::nullopt;
  return found.number(0);
}

void SqliteStatements::set_meta(std::string_view name, std::int64_t value) {
  use(Query::meta_set).with(name, value).run();
}

void SqliteStatements::reset() noexcept {
  for (SqliteStatement& statement : statements_) {
    if (statement) statement.reset();
  }
}

// --- rows that are written together ----------------------------------------------------------------------------------

// Rows are written together because a statement opens the table and its indexes, finds its place and closes
// them again, which for a row alone is a third of its cost.
void SqliteStatements::gather(const JobRow& row, const NewJob& job, WallTime now) {
  gathered_.add(row, job, job_rules::to_ms(now), job_rules::lease_ms(job.lease_time));
  has_gathered_ = true;
  if (gathered_.rows().size() == kRowsInserted || gathered_.text_bytes() >= kMostGatheredBytes) write_gathered();
}

// Changes of rows are written before new rows, so one that is still to be written goes first.
void SqliteStatements::forestall(JobId id) {
  const auto& rows = gathered_.rows();
  if (std::ranges::find(rows, id, &GatheredRows::NewRow::id) != rows.end()) write_gathered();
}

void SqliteStatements::gather_done(JobId id) {
  forestall(id);
  gathered_.add_done(id);
  has_gathered_ = true;
  if (gathered_.done().size() == kMostDone) write_gathered();
}

void SqliteStatements::gather_kept(const GatheredRows::Kept& job) {
  forestall(job.id);
  gathered_.add_kept(job);
  has_gathered_ = true;
  if (gathered_.kept().size() == kMostDone) write_gathered();
}

// A failing write is not forgotten, so that it fails the commit as well: the call that happened to have it written may
// be a read, which fails alone.
void SqliteStatements::write_gathered() {
  has_gathered_ = false;
  try {
    delete_gathered();
    keep_gathered();
    insert_gathered();
  } catch (...) {
    has_gathered_ = true;
    throw;
  }
  gathered_.clear();
}

void SqliteStatements::drop_gathered() noexcept {
  gathered_.clear();
  has_gathered_ = false;
}

void SqliteStatements::insert_gathered() {
  std::span<const GatheredRows::NewRow> left(gathered_.rows());
  while (!left.empty()) {
    const std::size_t count = left.size() >= kRowsInserted ? kRowsInserted : left.size() >= 4 ? 4 : 1;
    SqliteUse insert = use(count == 1 ? Query::job_insert : count == 4 ? Query::job_insert_4 : Query::job_insert_16);
    for (const GatheredRows::NewRow& row : left.first(count)) {
      const GatheredRows::Texts texts = gathered_.texts_of(row);
      insert.with(row.id, row.queue, row.state, row.rank, row.priority)
          .with_or_null(row.due_ms, row.max_attempts, row.pending, row.cancelled_with_others ? 0 : 1, row.flags,
                        row.fence)
          .with(row.created_ms, texts.key)
          .with_or_null(texts.unique, texts.name, texts.function, texts.payload, row.schedule, row.run, row.lease_ms);
    }
    insert.run();
    left = left.subspan(count);
  }
}

// Jobs that were leased together are neighbours, and mostly end together.
void SqliteStatements::delete_gathered() {
  std::vector<JobId>& ids = gathered_.done();
  std::ranges::sort(ids);
  for_each_run(
      ids, [](JobId id, JobId next) { return next == id + 1; },
      [&](auto first, auto last) {
        if (first == last) {
          use(Query::job_delete).with(*first).run();
        } else {
          use(Query::jobs_delete).with(*first, *last).run();
        }
      });
}

// No lease of any of them has a token above the greatest, so that one ends them all.
void SqliteStatements::keep_gathered() {
  using Kept = GatheredRows::Kept;
  std::vector<Kept>& jobs = gathered_.kept();
  std::ranges::sort(jobs, {}, &Kept::id);
  std::uint64_t tally = 0;
  job_tally::kOtherRuns.add(tally, 1);
  const auto together = [](const Kept& job, const Kept& next) {
    return next.id == job.id + 1 && next.ended_ms == job.ended_ms;
  };
  for_each_run(jobs, together, [&](auto first, auto last) {
    const std::uint64_t fence = std::ranges::max_element(first, std::next(last), {}, &Kept::token)->token;
    use(Query::jobs_keep_done).with(first->id, last->id, first->ended_ms, fence, tally).run();
    use(Query::ended_add_done).with(first->id, last->id).run();
  });
}

}  // namespace argiope
