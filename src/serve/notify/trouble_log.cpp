#include "serve/notify/trouble_log.hpp"

#include <algorithm>

namespace argiope {

OverBy over_by(Trouble trouble) noexcept {
  switch (trouble) {
    case Trouble::buried:
    case Trouble::expired: return OverBy::nothing;
    case Trouble::depth:
    case Trouble::age:
    case Trouble::daemon:
    case Trouble::paused: return OverBy::look;
    case Trouble::missed:
    case Trouble::failed:
    case Trouble::findings: return OverBy::run;
    case Trouble::alarm: return OverBy::round;
  }
  return OverBy::nothing;
}

void TroubleLog::forget_job(const TroubleKey& key) {
  const OpenTrouble* const trouble = find(key);
  if (trouble == nullptr || key.first != Trouble::failed) return;
  const auto [first, last] = failed_.equal_range(trouble->start.job);
  const auto its = std::find_if(first, last, [&](const auto& one) { return one.second == key.second; });
  if (its != last) failed_.erase(its);
}

void TroubleLog::note_job(const TroubleKey& key) {
  const JobId job = troubles_.at(key).start.job;
  if (key.first == Trouble::failed && job != 0) failed_.emplace(job, key.second);
}

void TroubleLog::erase(const TroubleKey& key) {
  forget_job(key);
  troubles_.erase(key);
}

void TroubleLog::recall(TroubleKey key, OpenTrouble trouble) {
  forget_job(key);
  troubles_.insert_or_assign(key, std::move(trouble));
  note_job(key);
}

void TroubleLog::keep_up_to(WallTime now) {
  for (auto& [key, trouble] : troubles_) {
    if (trouble.start.run == 0) trouble.start.at = std::min(trouble.start.at, now);
  }
}

void TroubleLog::began(const TroubleKey& key, const TroubleStart& start) {
  forget_job(key);
  const auto [found, is_new] = troubles_.try_emplace(key);
  OpenTrouble& trouble = found->second;
  const bool had_event = !is_new && !trouble.is_told && trouble.start.is_event;
  trouble.start = start;
  trouble.start.is_event |= had_event;
  trouble.is_told = false;
  trouble.over.reset();
  note_job(key);
}

void TroubleLog::still(const TroubleKey& key, WallTime at) {
  const auto found = troubles_.find(key);
  if (found == troubles_.end()) return;
  found->second.start.at = at;
  found->second.start.run = 0;
  found->second.over.reset();
}

bool TroubleLog::ended(const TroubleKey& key, TroubleEnd how) {
  const auto found = troubles_.find(key);
  if (found == troubles_.end() || found->second.over) return false;
  found->second.over = std::move(how);
  return found->second.is_told;
}

bool TroubleLog::told(const TroubleKey& key, JobId message) {
  const auto found = troubles_.find(key);
  if (found == troubles_.end()) return false;
  found->second.is_told = true;
  found->second.message = message;
  return found->second.over.has_value();
}

void TroubleLog::closed(const TroubleKey& key) {
  const auto found = troubles_.find(key);
  if (found != troubles_.end() && found->second.is_told && found->second.over) erase(TroubleKey(found->first));
}

const OpenTrouble* TroubleLog::find(const TroubleKey& key) const {
  const auto found = troubles_.find(key);
  return found == troubles_.end() ? nullptr : &found->second;
}

std::vector<TroubleKey> TroubleLog::keys() const {
  std::vector<TroubleKey> keys;
  keys.reserve(troubles_.size());
  for (const auto& [key, trouble] : troubles_) keys.push_back(key);
  return keys;
}

std::vector<TroubleKey> TroubleLog::failed_as(JobId job) const {
  std::vector<TroubleKey> found;
  const auto [first, last] = failed_.equal_range(job);
  for (auto one = first; one != last; ++one) found.emplace_back(Trouble::failed, one->second);
  return found;
}

std::size_t TroubleLog::lasting() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      troubles_, [](const auto& entry) { return entry.second.is_told || entry.second.message != 0; }));
}

bool is_ended_by(const ScheduleRun& run, Trouble trouble, const TroubleStart& start, WallTime now) noexcept {
  if (run.outcome != RunOutcome::done || (trouble == Trouble::findings && !run.error.empty())) return false;
  const bool is_later_run = start.run != 0 && run.number >= start.run;
  if (start.run != 0 && start.at > now) return is_later_run;
  return run.ended_at >= start.at && (run.fired_at >= start.at || is_later_run);
}

}  // namespace argiope
