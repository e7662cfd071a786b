// GatheredRows: new rows of jobs, and jobs that are done, until one statement can write several of them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/internal/job_row.hpp"

namespace argiope {

class GatheredRows {
 public:
  // A job as the table has it, but for its texts.
  struct NewRow {
    JobId id;
    QueueId queue;
    RowState state;
    std::int32_t rank, priority;
    std::int64_t due_ms;
    std::uint32_t max_attempts, pending;
    bool cancelled_with_others;
    std::int64_t flags;
    std::uint64_t fence;
    std::int64_t created_ms;
    ScheduleId schedule;
    std::uint64_t run;
    std::int64_t lease_ms;
    std::size_t texts;  // where they begin
    std::array<std::size_t, 5> sizes;
  };
  // They hold until the next row is added or all are dropped.
  struct Texts {
    std::string_view key, unique, name, function, payload;
  };

  void add(const JobRow& row, const NewJob& job, std::int64_t created_ms, std::int64_t lease_ms) {
    const std::array<std::string_view, 5> texts{job.key, job.unique, job.name, job.function, job.payload};
    NewRow& added = rows_.emplace_back(row.id, row.queue, row.state, row.rank, row.priority, row.due_ms,
                                       job.max_attempts, row.pending, row.cancelled_with_others, row.flags, row.fence,
                                       created_ms, row.schedule, row.run, lease_ms, texts_.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      added.sizes[i] = texts[i].size();
      texts_.append(texts[i]);
    }
  }
  Texts texts_of(const NewRow& row) const {
    std::string_view rest = std::string_view(texts_).substr(row.texts);
    const auto next = [&](std::size_t size) {
      const std::string_view text = rest.substr(0, size);
      rest.remove_prefix(size);
      return text;
    };
    const auto& [key, unique, name, function, payload] = row.sizes;
    return {next(key), next(unique), next(name), next(function), next(payload)};
  }
  // One that is done, and whose record goes.
  void add_done(JobId id) { done_.push_back(id); }
  // One that is done, and whose record stays.
  struct Kept {
    JobId id;
    std::uint64_t token;
    std::int64_t ended_ms;
  };
  void add_kept(const Kept& job) { kept_.push_back(job); }

  std::size_t text_bytes() const noexcept { return texts_.size(); }
  const std::vector<NewRow>& rows() const noexcept { return rows_; }
  std::vector<JobId>& done() noexcept { return done_; }
  std::vector<Kept>& kept() noexcept { return kept_; }
  void clear() noexcept {
    rows_.clear();
    done_.clear();
    kept_.clear();
    texts_.clear();
    if (texts_.capacity() > kMostKept) texts_.shrink_to_fit();
  }

 private:
  static constexpr std::size_t kMostKept = 1024 * 1024;
  std::vector<NewRow> rows_;
  std::vector<JobId> done_;
  std::vector<Kept> kept_;
  std::string texts_;
};

}  // namespace argiope
