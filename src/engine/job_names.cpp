#include "engine/internal/job_names.hpp"

#include <fmt/format.h>

namespace argiope {

Coro<Result<void>> find_names(Book& book, JobNames names, NewJob& job) {
  for (const std::string& name : names.waits_for) {
    auto id = co_await book.find(name);
    if (!id) co_return fail(id.error().code, fmt::format("waits_for: {}", id.error().message));
    job.waits_for.push_back(*id);
  }
  if (!names.batch.empty()) {
    auto id = co_await book.find(names.batch);
    if (!id) co_return fail(id.error().code, fmt::format("batch: {}", id.error().message));
    job.batch = *id;
  }
  co_return Result<void>{};
}

}  // namespace argiope
