// TroubleLog: which troubles one rule has told of, and whose all-clear it owes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/job.hpp"
#include "argiope/jobs/schedule.hpp"
#include "serve/notify/internal/notify_rule.hpp"

namespace argiope {

// How it is known that a trouble is over.
enum class OverBy : std::uint8_t {
  nothing,  // it is an event, and has no end
  look,     // it is a state: a look finds it gone
  run,      // a later run of its schedule has gone well; or the schedule is gone
  round,    // a round of its project has ended without an alarm; or the project is gone
};
OverBy over_by(Trouble trouble) noexcept;

struct TroubleStart {
  WallTime at{};
  bool is_event = true;   // that is told even where it is over by then; false: a state, which is not
  std::uint64_t run = 0;  // the number of the schedule's run; 0: it was none
  JobId job = 0;          // of that run
};

struct TroubleEnd {
  std::string text;       // may be empty
  std::uint64_t run = 0;  // the number of the schedule's run that has gone well; 0: it was none
};

struct OpenTrouble {
  TroubleStart start;              // when it began last
  bool is_told = false;            // no notice of it waits for its message
  JobId message = 0;               // the last one that told of it; 0: none, or not known
  std::optional<TroubleEnd> over;  // it is over, and that is not told yet
};

// Of one trouble:
//
//              began()             told()
//      (none) ─────────► untold ──────────► told
//         ▲              │    ▲             │  ▲ still()
//         │              │    │ began(),    ▼  │
//         │         ended()   │ still()   ended()
//         │              ▼    │             │
//         │         over, untold ─told()──► over, told
//         │                                 │
//         └───────────── closed() ──────────┘
//
// So an all-clear follows the message that told of the trouble, goes to nobody else, and is told once. began() leads
// from each of them to `untold`, because one more failure is told as well; and what is over once more is told to be
// over once.
class TroubleLog {
 public:
  // It has begun, or happened once more, and a notice of it waits.
  void began(const TroubleKey& key, const TroubleStart& start);
  // A state lasts, or is there again; no notice of it is needed.
  void still(const TroubleKey& key, WallTime at);
  // True: that it is over is to be told now, unless it is known already. False: nothing is to be told yet.
  bool ended(const TroubleKey& key, TroubleEnd how);
  // `message` has told of it. True: it is over, and that is to be told now.
  bool told(const TroubleKey& key, JobId message);
  // A message has told that it is over.
  void closed(const TroubleKey& key);
  void erase(const TroubleKey& key);
  // As the process before has left it.
  void recall(TroubleKey key, OpenTrouble trouble);
  // The calendar says `now`: what is known by its times alone has not begun later.
  void keep_up_to(WallTime now);

  const OpenTrouble* find(const TroubleKey& key) const;
  const std::map<TroubleKey, OpenTrouble>& all() const noexcept { return troubles_; }
  std::vector<TroubleKey> keys() const;
  // Schedules whose run that has failed was this job. Cost: O(log n), since each job that ends is looked for.
  std::vector<TroubleKey> failed_as(JobId job) const;
  bool empty() const noexcept { return troubles_.empty(); }
  // Those that were told, and are not told to be over.
  std::size_t lasting() const noexcept;

 private:
  void forget_job(const TroubleKey& key);
  void note_job(const TroubleKey& key);

  std::map<TroubleKey, OpenTrouble> troubles_;
  std::multimap<JobId, std::string> failed_;  // schedules by the jobs of the runs that have failed
};

// Whether a run of its schedule ends a trouble: it has gone well, and has ended since that began; and it is that run or
// a later one, or began since, too. Findings are over when a run has none. One that still runs, or is tried again, ends
// nothing. A trouble that began later than `now`, as the calendar has it, began before that was set back: then the
// numbers of the runs alone say which is later.
bool is_ended_by(const ScheduleRun& run, Trouble trouble, const TroubleStart& start, WallTime now) noexcept;

}  // namespace argiope
