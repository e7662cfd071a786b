#include "engine/job_news.hpp"

#include "argiope/async/event_loop.hpp"
#include "engine/broker.hpp"

namespace argiope {
namespace {

// The events that may change a job's output, or whether more of it may come.
constexpr std::uint32_t kNewsOfRuns = [] {
  using enum JobEventKind;
  std::uint32_t mask = 0;
  for (const JobEventKind kind : {leased, done, retrying, buried, cancelled, released, expired, progress, erased}) {
    mask |= static_cast<std::uint32_t>(kind);
  }
  return mask;
}();

}  // namespace

void JobNews::add(Follower& follower) {
  if (listener_ == 0) {
    listener_ = owner_->listeners().add(kNewsOfRuns, [this](const JobEvent& event) { wake(event.id); });
  }
  followers_[follower.id_].push_back(follower);
}

void JobNews::remove(Follower& follower) noexcept {
  follower.unlink();
  const auto place = followers_.find(follower.id_);
  if (place->second.empty()) followers_.erase(place);
  if (followers_.empty()) stop_listening();
}

void JobNews::stop_listening() noexcept {
  if (listener_ != 0) owner_->listeners().remove(std::exchange(listener_, 0));
}

// They run on when their turn comes, so the list stays as it is meanwhile.
void JobNews::wake(JobId id) noexcept {
  const auto place = followers_.find(id);
  if (place != followers_.end()) place->second.for_each([](Follower& follower) { follower.heard_.set(); });
}

void JobNews::wake_all() noexcept {
  for (auto& [id, of_job] : followers_) of_job.for_each([](Follower& follower) { follower.heard_.set(); });
}

Coro<void> JobNews::Follower::wait(TimePoint limit) {
  try {
    co_await Timeout(limit).run([](Event& heard) -> Coro<void> { co_await heard.wait(); }(heard_));
  } catch (const TimeoutError&) {
  }
  heard_.clear();
}

}  // namespace argiope
