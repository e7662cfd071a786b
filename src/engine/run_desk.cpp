#include "engine/run_desk.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace argiope {

Duration RunDesk::lease_time_of(const Run& run) {
  return run.lease_time > Duration{} ? run.lease_time : run.queue->config().lease_time;
}

std::optional<Duration> RunDesk::renew(std::uint64_t token) {
  const Run* const run = runs_.find(token);
  if (run == nullptr || store_.is_gone()) return std::nullopt;
  const Duration lease_time = lease_time_of(*run);
  const bool renewed = run->queue->window.jobs().renew(run->queue_token, saturating_add(loop_.time(), lease_time));
  return renewed ? std::optional(lease_time) : std::nullopt;
}

RunningJob RunDesk::seen(std::uint64_t token, const Run& run) {
  const auto info = run.queue->window.jobs().find(run.id);
  return {.token = token,
          .id = run.id,
          .queue = run.queue->name(),
          .worker = run.call->worker,
          .attempt = run.attempt,
          .until = info ? info->until : TimePoint{},
          .lease_time = lease_time_of(run),
          .remote = run.call->remote,
          .cancel_asked = run.cancel_asked,
          .progress = run.progress,
          .progress_message = run.progress_message,
          .asked_by = run.call->asked_by};
}

std::optional<RunningJob> RunDesk::find(std::uint64_t token) const {
  const Run* const run = runs_.find(token);
  return run == nullptr ? std::nullopt : std::optional(seen(token, *run));
}

std::vector<RunningJob> RunDesk::all() const {
  std::vector<RunningJob> all;
  for (const auto& [token, run] : runs_) all.push_back(seen(token, run));
  std::ranges::sort(all, {}, &RunningJob::token);
  return all;
}

bool RunDesk::set_progress(std::uint64_t token, double fraction, std::string message) {
  Run* const found = runs_.find(token);
  if (found == nullptr) return false;
  Run& running = *found;
  running.progress = std::clamp(fraction, 0.0, 1.0);
  running.progress_message = std::move(message);
  tell_progress(running);
  return true;
}

void RunDesk::tell_progress(const Run& run) {
  tell(JobEventKind::progress, run.id, *run.queue, run.progress_message, run.attempt, {}, run.progress);
}

bool RunDesk::set_output(std::uint64_t token, std::string output) {
  Run* const running = runs_.find(token);
  if (running == nullptr) return false;
  running->has_output = true;
  running->next_output = std::move(output);
  if (!std::exchange(running->writes_output, true)) run_in_background(write_outputs(token), Start::eagerly);
  return true;
}

// One write at a time: of what comes while the store is busy the last is enough.
Coro<void> RunDesk::write_outputs(std::uint64_t token) {
  for (;;) {
    Run* running = runs_.find(token);
    if (running == nullptr) co_return;
    if (!running->next_output) {
      running->writes_output = false;
      co_return;
    }
    std::string output = *std::exchange(running->next_output, std::nullopt);
    const auto written = co_await store_(&Store::write_output, running->id, token, std::move(output));
    running = runs_.find(token);
    if (written && running != nullptr) tell_progress(*running);
  }
}

std::uint64_t RunDesk::with_output(JobId id) const {
  const std::uint64_t token = runs_.token_of(id);
  return token != 0 && runs_.at(token).has_output ? token : 0;
}

bool RunDesk::explain(JobId id, JobExplanation& why) const {
  const std::uint64_t token = runs_.token_of(id);
  if (token == 0) return false;
  const Run& running = runs_.at(token);
  why.state = JobState::running;
  why.reason = WaitReason::running;
  why.attempts = running.attempt;
  why.worker = running.call->worker;
  why.progress = running.progress;
  why.progress_message = running.progress_message;
  if (const auto info = running.queue->window.jobs().find(id)) {
    why.lease_until = why.until = clock_.to_calendar(clock_.to_job_time(info->until));
  }
  return true;
}

void RunDesk::ask_to_stop(std::uint64_t token, std::string why) {
  Run& running = *runs_.find(token);
  running.cancel_asked = true;
  running.cancel_why = std::move(why);
  const std::shared_ptr<const LeaseCall> call = running.call;
  tell_holder(*call, token);
}

void RunDesk::tell_holder(const LeaseCall& call, std::uint64_t token) noexcept {
  if (!call.on_cancel) return;
  try {
    call.on_cancel(token);
  } catch (const std::exception& error) {
    spdlog::error("on_cancel, asked to stop a job, has thrown: {}", error.what());
  } catch (...) {
    spdlog::error("on_cancel, asked to stop a job, has thrown");
  }
}

// The last output is written before whatever ends the run: the store keeps to the order of its calls.
void RunDesk::end(std::uint64_t token) {
  Run& running = *runs_.find(token);
  if (running.next_output) {
    run_in_background(
        [](StoreUse& store, JobId id, std::uint64_t its_token, std::string output) -> Coro<void> {
          (void)co_await store(&Store::write_output, id, its_token, std::move(output));
        }(store_, running.id, token, *std::exchange(running.next_output, std::nullopt)),
        Start::eagerly);
  }
  runs_.end(token);
}

}  // namespace argiope
