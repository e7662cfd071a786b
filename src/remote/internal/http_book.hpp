// HttpBook: the jobs and schedules of a daemon, by its HTTP API (docs/http-api.md).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/internal/remote_book.hpp"
#include "remote/internal/api_client.hpp"

namespace argiope {

// Puts and changes are sent in batches of what one request may hold. All but a run now are sent again where an answer
// was lost: their requests have keys, or do no more twice than once.
//
// Lifetime: `client` outlives it and its calls.
// Threads:  the loop's own.
class HttpBook final : public RemoteBook {
 public:
  explicit HttpBook(ApiClient& client) : client_(client) {}

  Coro<Result<std::vector<Result<PutReply>>>> put_each(std::vector<NewJob> jobs) override;
  Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs, bool last_completes) override;
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes) override;
  Coro<Result<JobId>> find(std::string id_or_name) override;
  Coro<Result<JobRecord>> get(JobId id) override;
  Coro<Result<JobOutput>> output(JobId id, OutputLook look) override;
  Coro<Result<std::vector<Attempt>>> history(JobId id) override;
  Coro<Result<std::vector<JobRecord>>> list(JobFilter filter) override;
  Coro<Result<JobExplanation>> explain(JobId id) override;

  Coro<Result<std::vector<NamedCounts>>> counts(std::string only) override;
  Coro<Result<StoredQueue>> queue(std::string name) override;
  Coro<Result<std::vector<StoredQueue>>> queues() override;
  Coro<Result<void>> configure(std::string queue, QueueConfig config, JobReachRef asker) override;
  Coro<Result<void>> set_paused(std::string queue, bool paused, WallTime until) override;
  Coro<Result<void>> erase_queue(std::string queue) override;

  Coro<Result<std::vector<AddReply>>> add_schedules(std::vector<Schedule> schedules, ConflictPolicy conflict) override;
  Coro<Result<ScheduleStatus>> get_schedule(std::string name) override;
  Coro<Result<std::vector<ScheduleStatus>>> list_schedules(ScheduleId after, std::size_t limit) override;
  Coro<Result<ScheduleStatus>> change_schedule(Schedule before, Schedule after) override;
  Coro<Result<ScheduleStatus>> pause_schedule(std::string name, std::string by) override;
  Coro<Result<ScheduleStatus>> resume_schedule(std::string name, ResumeFrom from) override;
  Coro<Result<void>> remove_schedule(std::string name) override;
  Coro<Result<JobId>> run_schedule_now(std::string name) override;
  Coro<Result<std::vector<ScheduleRun>>> schedule_history(std::string name, std::size_t limit) override;
  Coro<Result<std::optional<ScheduleOutput>>> schedule_output(std::string name) override;
  Coro<Result<ScheduleExplanation>> explain_schedule(std::string name) override;

 private:
  using Replies = std::vector<Result<PutReply>>;
  Coro<Result<Replies>> put_some(std::span<const std::string> jobs);
  Coro<bool> waits_for_room(std::string name);
  Coro<Result<PutReply>> put_when_there_is_room(std::string job);
  Coro<Result<Replies>> put_halves(std::span<const std::string> jobs);
  Coro<Result<std::vector<ChangeReply>>> change_alike(std::span<const Change> changes);
  Coro<Result<ChangeOutcome>> why_not_changed(JobId id);
  Coro<Result<std::string>> get_part(std::string_view kind, std::string name, std::string_view what);
  Coro<Result<ScheduleStatus>> post_to_schedule(std::string name, std::string_view what, std::string body);
  Coro<Result<AddReply>> add_schedule(std::string schedule, std::string name, ConflictPolicy conflict);

  ApiClient& client_;
};

}  // namespace argiope
