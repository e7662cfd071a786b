#include <algorithm>
#include <unordered_set>

#include "argiope/async/coro.hpp"
#include "engine/store_book.hpp"

namespace argiope {
namespace {

constexpr std::size_t kChangesTogether = 256;

}  // namespace

void OwnerJobBook::let_go() noexcept {
  StoreJobBook::let_go();
  news_.wake_all();
}

Coro<Result<void>> OwnerJobBook::set_clock() { co_return Result<void>{}; }

// Those of different jobs go to the store together.
Coro<Result<std::vector<ChangeReply>>> OwnerJobBook::change(std::vector<Change> changes) {
  std::vector<ChangeReply> replies;
  replies.reserve(changes.size());
  std::vector<Task<Result<ChangeReply>>> under_way;
  std::unordered_set<JobId> changing;
  for (auto change = changes.begin(); change != changes.end();) {
    for (; change != changes.end() && changing.size() < kChangesTogether && changing.insert(change->id).second;
         ++change) {
      under_way.push_back(EventLoop::current().create_task(owner_->ends.change(std::move(*change))));
    }
    for (auto& one : under_way) replies.push_back(co_await or_return(co_await one));
    under_way.clear();
    changing.clear();
  }
  co_return replies;
}

Coro<Result<JobOutput>> OwnerJobBook::output(JobId id, OutputLook look) {
  EventLoop& loop = EventLoop::current();
  const TimePoint limit = saturating_add(loop.time(), look.wait);
  std::optional<JobNews::Follower> follower;
  if (look.wait > Duration{}) follower.emplace(news_, id);
  for (;;) {
    // The output there is of the run before, until this one has left something. Asked before the row is read: what it
    // leaves meanwhile may come too late for the row.
    const std::uint64_t run_with_output = owner_->runs.with_output(id);
    JobRecord record = co_await or_return(get(id));
    if (record.state == JobState::running && record.token != run_with_output) record.result.clear();
    JobOutput output = output_of(std::move(record), look);
    if (output.is_news(look) || loop.time() >= limit) co_return output;
    co_await follower->wait(limit);
  }
}

Coro<Result<StoredQueue>> OwnerJobBook::queue(std::string name) {
  if (const StoredQueue* found = owner_->queues.find(name)) co_return as_of_now(*found);
  co_return co_await StoreJobBook::queue(std::move(name));
}

// The owner's memory has spoken before, so that nothing but a pause keeps a job of his, and that there is no worker.
Coro<Result<std::optional<WaitReason>>> OwnerJobBook::held_by(const JobRecord& record, const StoredQueue& queue,
                                                              JobExplanation&) {
  using Held = std::optional<WaitReason>;
  if (queue.config.limits.paused) co_return Held(WaitReason::queue_paused);
  co_return owner_->leases.is_worked_on(record.queue) ? Held() : Held(WaitReason::no_worker);
}

}  // namespace argiope
