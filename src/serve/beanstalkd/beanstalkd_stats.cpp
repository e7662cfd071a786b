// beanstalkd's statistics: the same members in the same order, as 1.12 writes them.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "serve/beanstalkd/beanstalkd_core.hpp"

namespace argiope {
namespace {

using std::chrono::seconds;

std::int64_t whole_seconds(Duration time) noexcept { return std::chrono::duration_cast<seconds>(time).count(); }

class Members {
 public:
  template <class Value>
  void add(std::string_view name, const Value& value) {
    fmt::format_to(std::back_inserter(text_), "{}: {}\n", name, value);
  }
  std::string answer() const { return beanstalkd_text(text_); }

 private:
  std::string text_ = "---\n";
};

std::string_view beanstalkd_state(JobState state) noexcept {
  return state == JobState::running ? "reserved" : to_string(state);
}

std::string cpu_seconds(const timeval& time) {
  return fmt::format("{}.{:06}", static_cast<std::int64_t>(time.tv_sec), static_cast<std::int64_t>(time.tv_usec));
}

void add_counts(Members& members, const StateCounts& counts, std::uint64_t urgent) {
  members.add("current-jobs-urgent", urgent);
  members.add("current-jobs-ready", counts.ready);
  members.add("current-jobs-reserved", counts.running);
  members.add("current-jobs-delayed", counts.delayed);
  members.add("current-jobs-buried", counts.buried);
}

// Of the delay that a job was last put or released with no more is known than when it ends.
std::int64_t delay_of(const JobRecord& job, WallTime now) {
  if (job.due_at <= job.created_at) return 0;
  if (job.tally.releases == 0) return std::chrono::round<seconds>(job.due_at - job.created_at).count();
  return job.state == JobState::delayed ? std::chrono::ceil<seconds>(job.due_at - now).count() : 0;
}

}  // namespace

Coro<std::string> BeanstalkdCore::stats() {
  const auto counted = co_await count_tubes();
  if (!counted) co_return std::string(kInternalError);
  std::uint64_t urgent = 0;
  for (const auto& [tube, counts] : *counted) urgent += co_await count_urgent(tube);
  co_return stats_text(*counted, urgent);
}

std::string BeanstalkdCore::stats_text(const std::map<std::string, StateCounts>& counted, std::uint64_t urgent) const {
  StateCounts all;
  for (const auto& [tube, counts] : counted) {
    for (const JobState state : {JobState::ready, JobState::running, JobState::delayed, JobState::buried}) {
      StateCounts of_tube = counts;
      all.of(state) += of_tube.of(state);
    }
  }
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  utsname machine{};
  ::uname(&machine);
  Members members;
  add_counts(members, all, urgent);
  using enum BeanstalkdVerb;
  constexpr std::pair<std::string_view, BeanstalkdVerb> kCounted[] = {
      {"cmd-put", put},
      {"cmd-peek", BeanstalkdVerb::peek},
      {"cmd-peek-ready", BeanstalkdVerb::peek_ready},
      {"cmd-peek-delayed", BeanstalkdVerb::peek_delayed},
      {"cmd-peek-buried", BeanstalkdVerb::peek_buried},
      {"cmd-reserve", reserve},
      {"cmd-reserve-with-timeout", reserve_with_timeout},
      {"cmd-delete", BeanstalkdVerb::delete_job},
      {"cmd-release", release},
      {"cmd-use", use},
      {"cmd-watch", watch},
      {"cmd-ignore", ignore},
      {"cmd-bury", bury},
      {"cmd-kick", BeanstalkdVerb::kick},
      {"cmd-touch", touch},
      {"cmd-stats", BeanstalkdVerb::stats},
      {"cmd-stats-job", BeanstalkdVerb::stats_job},
      {"cmd-stats-tube", BeanstalkdVerb::stats_tube},
      {"cmd-list-tubes", BeanstalkdVerb::list_tubes},
      {"cmd-list-tube-used", list_tube_used},
      {"cmd-list-tubes-watched", list_tubes_watched},
      {"cmd-pause-tube", BeanstalkdVerb::pause_tube},
  };
  for (const auto& [name, verb] : kCounted) members.add(name, commands_of(verb));
  members.add("job-timeouts", timeouts_);
  members.add("total-jobs", jobs_put);
  members.add("max-job-size", options.max_job_bytes);
  members.add("current-tubes", tubes.size());
  members.add("current-connections", connections);
  members.add("current-producers", producers);
  members.add("current-workers", workers);
  members.add("current-waiting", waiting);
  members.add("total-connections", connections_so_far);
  members.add("pid", ::getpid());
  members.add("version", "\"1.12\"");
  members.add("rusage-utime", cpu_seconds(used.ru_utime));
  members.add("rusage-stime", cpu_seconds(used.ru_stime));
  members.add("uptime", whole_seconds(loop.time() - started_at));
  // Its log is the store's affair.
  members.add("binlog-oldest-index", 0);
  members.add("binlog-current-index", 0);
  members.add("binlog-records-migrated", 0);
  members.add("binlog-records-written", 0);
  members.add("binlog-max-size", 10'485'760);
  members.add("draining", is_draining);
  members.add("id", fmt::format("{:016x}", options.instance_id));
  members.add("hostname", std::string_view(machine.nodename));
  members.add("os", std::string_view(machine.version));
  members.add("platform", std::string_view(machine.machine));
  return members.answer();
}

Coro<std::string> BeanstalkdCore::stats_tube(std::string name) {
  const auto counted = co_await count_tubes();
  if (!counted) co_return std::string(kInternalError);
  if (tubes.find(name) == nullptr) co_return std::string(kNotFound);
  const std::uint64_t urgent = co_await count_urgent(name);
  const BeanstalkdTube* const tube = tubes.find(name);
  if (tube == nullptr) co_return std::string(kNotFound);
  const auto counts = counted->find(name);
  const Duration pause_left = std::max(tube->unpause_at - loop.time(), Duration::zero());
  Members members;
  members.add("name", name);
  add_counts(members, counts == counted->end() ? StateCounts{} : counts->second, urgent);
  members.add("total-jobs", tube->puts);
  members.add("current-using", tube->using_it);
  members.add("current-watching", tube->watching);
  members.add("current-waiting", tube->waiting);
  members.add("cmd-delete", tube->deletes);
  members.add("cmd-pause-tube", tube->pauses);
  members.add("pause", pause_left > Duration::zero() ? whole_seconds(tube->pause) : 0);
  members.add("pause-time-left", whole_seconds(pause_left));
  co_return members.answer();
}

Coro<std::string> BeanstalkdCore::stats_job(JobId id) {
  const auto job = co_await job_of(id);
  if (!job || job->state == JobState::done || job->state == JobState::cancelled) co_return std::string(kNotFound);
  const WallTime now = engine.calendar_now();
  const auto run = engine.running(job->token);
  const bool runs = job->state == JobState::running && run;
  const Duration left = runs                              ? run->until - loop.time()
                        : job->state == JobState::delayed ? job->due_at - now
                                                          : Duration::zero();
  const auto config = engine.config(job->queue);
  const Duration of_queue = config ? config->lease_time : Duration::zero();
  Members members;
  members.add("id", id);
  members.add("tube", job->queue);
  members.add("state", beanstalkd_state(job->state));
  members.add("pri", beanstalkd_pri(job->priority));
  members.add("age", std::max<std::int64_t>(whole_seconds(now - job->created_at), 0));
  members.add("delay", delay_of(*job, now));
  members.add("ttr", whole_seconds(job->lease_time > Duration::zero() ? job->lease_time : of_queue));
  members.add("time-left", whole_seconds(left));
  members.add("file", 0);
  members.add("reserves", job->tally.runs);
  members.add("timeouts", job->tally.timeouts);
  members.add("releases", job->tally.releases);
  members.add("buries", job->tally.buries);
  members.add("kicks", job->tally.kicks);
  co_return members.answer();
}

}  // namespace argiope
