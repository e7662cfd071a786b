// The shared state of a Beanstalkd's connections, and the commands that need nothing of the connection that gives them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/base/detail/intrusive_list.hpp"
#include "async/internal/background.hpp"
#include "async/internal/server_set.hpp"
#include "async/internal/ticker.hpp"
#include "serve/beanstalkd/beanstalkd.hpp"
#include "serve/beanstalkd/beanstalkd_parser.hpp"
#include "serve/beanstalkd/beanstalkd_tubes.hpp"
#include "serve/gate/audit_log.hpp"

namespace argiope {

class BeanstalkdSession;

// By whom answers are held in an AnswerRoom: these clients have no names.
inline constexpr std::string_view kAnswersOf = "beanstalkd";

// The least urgent is 2^32 - 1, and the most urgent 0; a job's priority is the other way round.
constexpr std::int32_t job_priority(std::uint32_t pri) noexcept {
  return static_cast<std::int32_t>(std::int64_t{0x7fffffff} - pri);
}
constexpr std::uint32_t beanstalkd_pri(std::int32_t priority) noexcept {
  return static_cast<std::uint32_t>(std::int64_t{0x7fffffff} - priority);
}

// Each command returns the bytes to send, "\r\n" included. Names are those of tubes that may be there or not.
//
// Threads: the loop's own.
class BeanstalkdCore : public std::enable_shared_from_this<BeanstalkdCore> {
 public:
  BeanstalkdCore(Engine& engine, BeanstalkdOptions options);
  ~BeanstalkdCore();
  BeanstalkdCore(const BeanstalkdCore&) = delete;
  BeanstalkdCore& operator=(const BeanstalkdCore&) = delete;

  // From now on it leaves the engine alone: the last connection may end after it.
  void part() noexcept;

  // --- queues of tubes
  bool has_queue(BeanstalkdTube& tube) const {
    return tube.has_queue || (tube.has_queue = engine.config(tube.name).has_value());
  }
  // Makes it, with a policy under which neither timeouts nor releases bury a job.
  Coro<Result<void>> make_queue(std::string tube);

  // As Book::get. Errors: not_found also for jobs of the daemon's own queues, which no tube shows.
  Coro<Result<JobRecord>> job_of(JobId id);

  // --- commands
  Coro<std::string> peek(JobId id);
  Coro<std::string> peek_ready(std::string tube);
  Coro<std::string> peek_delayed(std::string tube);
  Coro<std::string> peek_buried(std::string tube);
  // Of a job that the connection has not reserved.
  Coro<std::string> delete_job(JobId id);
  Coro<std::string> kick(std::string tube, std::uint32_t bound);
  Coro<std::string> kick_job(JobId id);
  Coro<std::string> pause_tube(std::string tube, std::uint32_t seconds);
  Coro<std::string> list_tubes();
  Coro<std::string> stats();
  Coro<std::string> stats_tube(std::string tube);
  Coro<std::string> stats_job(JobId id);

  void note_delete(std::string_view tube) noexcept;
  // A command by `who` has changed a tube. Suspends until the audit has it on the disk.
  Coro<void> note_change(AuditEntry change);
  // Forgets a tube that a connection has let go of, if that was the last. Its queue goes soon, or with
  // erase_unused_queues().
  void let_go(BeanstalkdTube& tube) noexcept;
  // Looks from now on, at once and then now and then, for empty queues of tubes that nobody refers to: those that
  // another program has emptied, or that a daemon before this one has left.
  void tidy_from_now_on() { tidier_.at(loop.time()); }
  // Counts what is unsent of all anew; while that leaves no room for what `asker` was answered, the connection goes
  // that has the most unsent, which may be itself.
  void make_answer_room(const BeanstalkdSession& asker) noexcept;
  // Until no queue is being erased.
  Coro<void> quiet() { return tidying_.quiet(); }
  // Erases queues of tubes that were let go, if make_queue() has made them and nothing is in them.
  Coro<void> erase_unused_queues();

  Engine& engine;
  EventLoop& loop;
  const BeanstalkdOptions options;
  const TimePoint started_at;
  BeanstalkdTubes tubes;
  detail::ServerSet servers;
  IntrusiveList<BeanstalkdSession> sessions;
  std::array<std::uint64_t, kBeanstalkdVerbs> commands{};  // by verb
  std::uint64_t jobs_put = 0;
  std::uint64_t connections_so_far = 0;
  std::size_t connections = 0, producers = 0, workers = 0, waiting = 0;
  bool is_draining = false;
  bool is_stopping = false;

 private:
  // The connection with the most unsent; null: all have taken their answers.
  BeanstalkdSession* slowest() noexcept;
  Book& book() const { return engine.book(); }
  Coro<std::string> found(JobId id);
  Coro<std::string> kick_all(std::vector<JobId> ids);
  // Jobs of the tube's queue that are buried, at most `limit` of them: the first that were.
  Coro<Result<std::vector<JobId>>> first_buried(std::string tube, std::size_t limit);
  Coro<Result<std::vector<JobId>>> first_delayed(std::string tube, std::size_t limit);
  // Of all tubes that are there, by name; drops those that are not any more.
  Coro<Result<std::map<std::string, StateCounts>>> count_tubes();
  // Ready jobs with a pri below 1024.
  Coro<std::uint64_t> count_urgent(std::string tube);
  std::uint64_t commands_of(BeanstalkdVerb verb) const { return commands[static_cast<std::size_t>(verb)]; }
  std::string stats_text(const std::map<std::string, StateCounts>& counted, std::uint64_t urgent) const;

  void hear(const JobEvent& event) noexcept;
  bool was_made_by_us(std::string_view queue) const;
  // No connection refers to its tube.
  bool is_let_go(std::string_view queue) const;
  void note_unused(std::string_view queue);
  void tidy();
  Coro<void> look_for_unused();

  const std::string own_policy_;  // of queues that make_queue() makes
  Engine::ListenerId listener_;
  bool has_parted_ = false;
  std::set<std::string, std::less<>> unused_queues_;  // perhaps
  TimePoint look_at_ = TimePoint::min();              // for others
  Background tidying_{loop, "beanstalkd queues"};
  Ticker tidier_{loop, [this] { tidy(); }};
  std::uint64_t timeouts_ = 0;
};

inline constexpr std::string_view kNotFound = "NOT_FOUND\r\n";
inline constexpr std::string_view kInternalError = "INTERNAL_ERROR\r\n";
// "OK <bytes>\r\n<text>\r\n"
std::string beanstalkd_text(std::string_view text);
// "<word> <id> <bytes>\r\n<body>\r\n", at the end of `out`.
void append_job(std::string& out, std::string_view word, JobId id, std::string_view body);
std::string beanstalkd_list(const std::vector<std::string_view>& names);

}  // namespace argiope
