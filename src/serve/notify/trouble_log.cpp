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

void TroubleLog::began(const TroubleKey& key, const TroubleStart& start) {
  const auto [found, is_new] = troubles_.try_emplace(key);
  OpenTrouble& trouble = found->second;
  const bool had_event = !is_new && !trouble.is_told && trouble.start.is_event;
  trouble.start = start;
  trouble.start.is_event |= had_event;
  trouble.is_told = false;
  trouble.over.reset();
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
  if (found != troubles_.end() && found->second.is_told && found->second.over) troubles_.erase(found);
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
  for (const auto& [key, trouble] : troubles_) {
    if (key.first == Trouble::failed && trouble.start.job == job) found.push_back(key);
  }
  return found;
}

std::size_t TroubleLog::lasting() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      troubles_, [](const auto& entry) { return entry.second.is_told || entry.second.message != 0; }));
}

bool is_ended_by(const ScheduleRun& run, Trouble trouble, const TroubleStart& start) noexcept {
  if (run.outcome != RunOutcome::done || run.ended_at < start.at) return false;
  if (trouble == Trouble::findings && !run.error.empty()) return false;
  return run.fired_at >= start.at || (start.run != 0 && run.number >= start.run);
}

}  // namespace argiope
