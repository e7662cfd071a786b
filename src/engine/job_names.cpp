#include "engine/internal/job_names.hpp"

#include <fmt/format.h>

#include "engine/book_rules.hpp"

namespace argiope {

namespace {

// A caller that may not see it is told the same as where there is none.
Coro<Result<JobId>> find_within(Book& book, const std::string& name, const NewJob& job) {
  auto id = co_await book.find(name);
  if (job.within == nullptr || (!id && id.error().code != Errc::not_found)) co_return id;
  if (id) {
    const auto record = co_await book.get(*id);
    if (record && (*job.within)(record->queue)) co_return id;
  }
  co_return no_job_named(name);
}

}  // namespace

Coro<Result<void>> find_names(Book& book, JobNames names, NewJob& job) {
  for (const std::string& name : names.waits_for) {
    auto id = co_await find_within(book, name, job);
    if (!id) co_return fail(id.error().code, fmt::format("waits_for: {}", id.error().message));
    job.waits_for.push_back(*id);
  }
  if (!names.batch.empty()) {
    auto id = co_await find_within(book, names.batch, job);
    if (!id) co_return fail(id.error().code, fmt::format("batch: {}", id.error().message));
    job.batch = *id;
  }
  co_return Result<void>{};
}

}  // namespace argiope
