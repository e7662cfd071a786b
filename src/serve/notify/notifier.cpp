#include "serve/notify/notifier.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "argiope/async/threads.hpp"
#include "argiope/base/clock.hpp"
#include "async/internal/background.hpp"
#include "async/internal/ticker.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/null_device.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/set_while.hpp"
#include "serve/base/plain_file.hpp"
#include "serve/base/scheduler_of.hpp"
#include "serve/notify/notice.hpp"
#include "serve/notify/notify_memory.hpp"
#include "serve/notify/trouble_log.hpp"
#include "serve/watch/metrics.hpp"
#include "serve/watch/oldest_ready.hpp"
#include "serve/watch/queue_waits.hpp"

namespace argiope {

namespace {

constexpr Duration kWriteInterval = std::chrono::seconds{1};
constexpr std::size_t kMostMemoryBytes = 64 * 1024 * 1024;
constexpr std::size_t kMostSchedulesALook = 100;
constexpr Trouble kTroublesOfRuns[] = {Trouble::missed, Trouble::failed, Trouble::findings};

constexpr std::uint32_t kHeardOfJobs =
    static_cast<std::uint32_t>(JobEventKind::buried) | static_cast<std::uint32_t>(JobEventKind::expired) |
    static_cast<std::uint32_t>(JobEventKind::leased) | static_cast<std::uint32_t>(JobEventKind::done);
constexpr std::uint32_t kHeardOfSchedules = static_cast<std::uint32_t>(ScheduleEventKind::job_missed) |
                                            static_cast<std::uint32_t>(ScheduleEventKind::job_error) |
                                            static_cast<std::uint32_t>(ScheduleEventKind::job_executed) |
                                            static_cast<std::uint32_t>(ScheduleEventKind::schedule_marked) |
                                            static_cast<std::uint32_t>(ScheduleEventKind::schedule_unmarked);

// A message is tried for some eight hours. An undelivered message stays for a week, to be looked at.
QueueConfig policy_of_messages() {
  QueueConfig config;
  config.retry.max_attempts = 15;
  config.retry.first = std::chrono::seconds{10};
  config.retry.factor = 2;
  config.retry.longest = std::chrono::hours{1};
  config.capacity = 1'000;
  config.keep_done = std::chrono::days{1};
  config.keep_buried = std::chrono::weeks{1};
  return config;
}

}  // namespace

struct Notifier::State : std::enable_shared_from_this<Notifier::State> {
  // One rule, and what it has to tell.
  struct Receiver {
    NotifyRule rule;
    Notices gathered;
    Notices sending;  // in the message that is being put
    bool is_sending = false;
    TroubleLog log;
    std::optional<TimePoint> send_at;
    TimePoint next_at = TimePoint::min();  // not sooner
    std::uint64_t messages = 0;
    std::optional<WallTime> last_at;
  };
  using ReceiverRef = std::shared_ptr<Receiver>;

  State(Engine& its_engine, EventFeed& its_events, NotifierOptions given)
      : engine(its_engine),
        events(its_events),
        options(std::move(given)),
        loop(EventLoop::current()),
        background(loop, "notify"),
        ticker(loop, [this] { tick(); }) {}

  // Whether a rule asks for it, or was told of one that is not over.
  bool is_watched(Trouble trouble) const {
    return std::ranges::any_of(receivers, [&](const ReceiverRef& to) {
      return (to->rule.on & 1u << static_cast<int>(trouble)) != 0 ||
             std::ranges::any_of(to->log.all(), [&](const auto& entry) { return entry.first.first == trouble; });
    });
  }

  // --- what happens
  void hear(const JobEvent& event) {
    if (event.queue.starts_with(kNotifyQueues)) return hear_of_message(event);
    if (event.kind == JobEventKind::done) return hear_of_end(event);
    if (event.kind == JobEventKind::leased) return watches_age ? waits.leased(event) : void();
    // With the failure of its run, so that both are told by one message.
    if (event.kind == JobEventKind::buried && event.schedule != 0 && schedule_listener != 0) return;
    const Trouble trouble = event.kind == JobEventKind::buried ? Trouble::buried : Trouble::expired;
    note(
        {.trouble = trouble, .subject = std::string(event.queue), .text = std::string(event.text), .jobs = {event.id}});
  }
  // Of a run of a schedule the scheduler tells. The job of one that has failed counts as a job of its own when it was
  // kicked, and may go well.
  void hear_of_end(const JobEvent& event) {
    if (event.schedule != 0) return;
    end_failure_of(event.id);
    if (event.text.empty()) return;
    note({.trouble = Trouble::findings,
          .subject = std::string(event.queue),
          .text = std::string(event.text),
          .jobs = {event.id}});
  }
  void end_failure_of(JobId job) {
    for (const ReceiverRef& to : receivers) {
      for (const TroubleKey& key : to->log.failed_as(job))
        end_for(*to, key, {.text = {}, .run = to->log.find(key)->start.run});
    }
  }
  void hear(const ScheduleEvent& event) {
    const std::string name(event.name), text(event.text);
    const TroubleStart start{.at = event.at, .run = event.run, .job = event.job};
    switch (event.kind) {
      case ScheduleEventKind::job_missed:
        return note({.trouble = Trouble::missed,
                     .subject = name,
                     .count = event.count,
                     .run = event.run,
                     .text = text,
                     .jobs = {}},
                    start);
      case ScheduleEventKind::job_error:
        if (event.queue.starts_with(kNotifyQueues)) return;
        note({.trouble = Trouble::buried, .subject = std::string(event.queue), .text = text, .jobs = {event.job}});
        return note({.trouble = Trouble::failed, .subject = name, .run = event.run, .text = text, .jobs = {event.job}},
                    start);
      case ScheduleEventKind::job_executed:
        if (!text.empty()) {
          note({.trouble = Trouble::findings, .subject = name, .run = event.run, .text = text, .jobs = {event.job}},
               start);
        }
        return hear_of_good_run(event);
      case ScheduleEventKind::schedule_marked: return begin(Trouble::failed, name, text);
      case ScheduleEventKind::schedule_unmarked: return forget_untold({Trouble::failed, name});
      default: return;
    }
  }
  // Here a remark is a finding. In the history it need not be one.
  void hear_of_good_run(const ScheduleEvent& event) {
    const ScheduleRun run{.number = event.run,
                          .ended_at = WallTime::max(),
                          .outcome = RunOutcome::done,
                          .error = std::string(event.text)};
    for (const ReceiverRef& to : receivers) end_by(*to, std::string(event.name), {&run, 1});
  }
  void end_by(Receiver& to, const std::string& schedule, std::span<const ScheduleRun> runs) {
    const WallTime now = engine.calendar_now();
    for (const Trouble trouble : kTroublesOfRuns) {
      const TroubleKey key(trouble, schedule);
      const OpenTrouble* const open = to.log.find(key);
      if (open == nullptr) continue;
      const auto good = std::ranges::find_if(
          runs, [&](const ScheduleRun& run) { return is_ended_by(run, trouble, open->start, now); });
      if (good != runs.end()) end_for(to, key, {.text = {}, .run = open->start.run == 0 ? 0 : good->number});
    }
  }
  // To tell of it by another message would go the same way.
  static void hear_of_message(const JobEvent& event) {
    if (event.kind != JobEventKind::buried) return;
    spdlog::error("{}: a message could not be delivered, and is kept as job {}: {}", event.queue, event.id, event.text);
  }

  // --- gathering
  // `start`: of a trouble that will be over.
  void note(const Notice& notice, const std::optional<TroubleStart>& start = {}) {
    for (const ReceiverRef& to : receivers) {
      if (to->rule.wants(notice.trouble, notice.subject)) gather(*to, notice, start);
    }
  }
  void gather(Receiver& to, Notice notice, const std::optional<TroubleStart>& start = {}) {
    const TroubleKey key = notice.key();
    if (const Notice* there = to.gathered.find(key); there != nullptr && there->is_over) to.gathered.erase(key);
    notice.first_at = notice.last_at = engine.calendar_now();
    if (to.gathered.add(std::move(notice)) && start) to.log.began(key, *start);
    remember();
    send_soon(to);
  }
  void send_soon(Receiver& to) {
    if (to.send_at) return;
    to.send_at = std::max(saturating_add(loop.time(), to.rule.wait), to.next_at);
    ticker.at(*to.send_at);
  }
  // A state that lasts is told once, and when it is over.
  void begin(Trouble trouble, const std::string& subject, const std::string& text) {
    for (const ReceiverRef& to : receivers) {
      if (to->rule.wants(trouble, subject)) begin_for(*to, {trouble, subject}, text);
    }
  }
  void begin_for(Receiver& to, const TroubleKey& key, const std::string& text) {
    const WallTime now = engine.calendar_now();
    const OpenTrouble* const open = to.log.find(key);
    const Notice* const leaving = to.sending.find(key);
    if (open == nullptr || (open->is_told && leaving != nullptr && leaving->is_over)) {
      return gather(to, {.trouble = key.first, .subject = key.second, .text = text, .jobs = {}},
                    TroubleStart{.at = now, .is_event = false});
    }
    // It was not told yet that it is over, and it is so again.
    if (const Notice* there = to.gathered.find(key); there != nullptr && there->is_over) to.gathered.erase(key);
    // Of the others it is said at each look.
    if (!open->over && key.first != Trouble::failed) return;
    to.log.still(key, now);
    remember();
  }
  void end_for(Receiver& to, const TroubleKey& key, TroubleEnd how) {
    if (erase_untold(to, key)) return;
    const OpenTrouble* const open = to.log.find(key);
    if (open == nullptr || open->over) return;
    remember();
    if (!to.rule.resolved) return to.log.erase(key);
    if (to.log.ended(key, std::move(how))) gather_end(to, key);
  }
  // That it is over. Where there is no room, the next message has it.
  void gather_end(Receiver& to, const TroubleKey& key) {
    const TroubleEnd& how = *to.log.find(key)->over;
    if (to.gathered.is_full()) return;
    gather(
        to,
        {.trouble = key.first, .subject = key.second, .is_over = true, .run = how.run, .text = how.text, .jobs = {}});
  }
  void gather_ends(Receiver& to) {
    for (const TroubleKey& key : to.log.keys()) {
      const OpenTrouble& open = *to.log.find(key);
      if (open.is_told && open.over && to.gathered.find(key) == nullptr) gather_end(to, key);
    }
  }
  // A state that nobody has heard of. (Runs of a schedule that have failed did so, whether it can run or not.) Whether
  // there was any.
  bool erase_untold(Receiver& to, const TroubleKey& key) {
    const OpenTrouble* const open = to.log.find(key);
    if (open == nullptr || open->is_told || open->start.is_event || to.gathered.find(key) == nullptr) return false;
    remember();
    to.gathered.erase(key);
    to.log.erase(key);
    return true;
  }
  // The schedule can run again. Those who were told that it cannot hear of that when a run of it has gone well.
  void forget_untold(const TroubleKey& key) {
    for (const ReceiverRef& to : receivers) erase_untold(*to, key);
  }

  // --- messages
  void tick() {
    const TimePoint now = loop.time();
    for (const ReceiverRef& to : receivers) {
      if (!to->send_at) continue;
      if (*to->send_at > now) {
        ticker.at(*to->send_at);
      } else {
        to->send_at.reset();
        background.run(shared_from_this(), send(to));
      }
    }
    if (now >= write_at) {
      write_at = kNever;
      background.run(shared_from_this(), write());
    } else if (write_at != kNever) {
      ticker.at(write_at);
    }
    if (now < look_at) return ticker.at(look_at);
    look_at = saturating_add(now, options.look_interval);
    ticker.at(look_at);
    if (!std::exchange(is_looking, true)) background.run(shared_from_this(), look());
  }
  Coro<void> send(ReceiverRef to) {
    if (to->is_sending || to->gathered.empty()) co_return;
    const SetWhile sending(to->is_sending);
    to->sending = std::exchange(to->gathered, {});
    to->next_at = saturating_add(loop.time(), to->rule.interval);
    const auto put = co_await put_message(to, to->sending, false);
    const Notices sent = std::exchange(to->sending, {});
    remember();
    if (put) {
      note_told(*to, sent, *put);
    } else {
      spdlog::error("notify {}: a message cannot be put: {}", in_quotes(to->rule.name), put.error().message);
      take_back(*to, sent);
    }
    if (!to->gathered.empty()) send_soon(*to);
  }
  void note_told(Receiver& to, const Notices& sent, JobId message) {
    for (const auto& [key, notice] : sent) notice.is_over ? to.log.closed(key) : void(to.log.told(key, message));
    gather_ends(to);
  }
  // Notices that have come meanwhile are newer: a trouble that is there again is not told to be over.
  static void take_back(Receiver& to, const Notices& sent) {
    Notices newer = std::exchange(to.gathered, {});
    for (const auto& [key, notice] : sent) {
      if (!notice.is_over || newer.find(key) == nullptr) to.gathered.add(notice);
    }
    for (const auto& [key, notice] : newer) to.gathered.add(notice);
    to.gathered.leave_out(sent.left_out() + newer.left_out());
  }
  Coro<Result<JobId>> put_message(ReceiverRef to, const Notices& notices, bool is_test) {
    const MessageHead head{.from = options.from,
                           .at = engine.calendar_now(),
                           .is_test = is_test,
                           .daemon = options.daemon ? options.daemon() : std::string()};
    NewJob job;
    job.queue = to->rule.queue();
    job.payload = write_message(to->rule, head, notices);
    job.waits_for = troubles_before(*to, notices);
    job.if_failed = DependencyPolicy::run;
    auto reply = co_await engine.book().put(job);
    if (!reply && reply.error().code == Errc::invalid_input && !job.waits_for.empty()) {
      // The store is another one, and has never had those.
      job.waits_for.clear();
      reply = co_await engine.book().put(std::move(job));
    }
    if (!reply) co_return std::unexpected(std::move(reply.error()));
    ++to->messages;
    to->last_at = head.at;
    co_return reply->id;
  }
  // The messages that told of what is over now. They come first, also where they could not be delivered for hours.
  static std::vector<JobId> troubles_before(const Receiver& to, const Notices& notices) {
    std::set<JobId> before;
    for (const auto& [key, notice] : notices) {
      const OpenTrouble* const open = notice.is_over ? to.log.find(key) : nullptr;
      if (open != nullptr && open->message != 0) before.insert(open->message);
    }
    return {before.begin(), before.end()};
  }

  // --- states
  Coro<void> look() {
    const struct Looking {
      bool& is_looking;
      ~Looking() { is_looking = false; }
    } looking{is_looking};
    look_at_state(Trouble::daemon, options.unwell);
    look_at_state(Trouble::paused, options.halted);
    look_at_alarms();
    co_await look_at_schedules();
    if (!is_watched(Trouble::depth) && !is_watched(Trouble::age)) co_return;
    const auto counted = co_await events.count(options.look_interval / 2);
    if (!counted) co_return;
    std::vector<QueueBacklog> backlogs;
    events.snapshot().for_each_queue([&](std::string_view name, const StateCounts& counts) {
      if (name.starts_with(kNotifyQueues)) return;
      backlogs.push_back({std::string(name), counts.ready, waits.look(name)});
    });
    waits.forget_others(backlogs);
    if (watches_age) co_await look_at_ages(backlogs);
    for (const ReceiverRef& to : receivers) look_for(*to, backlogs);
  }
  // Of those for whose age someone asks.
  Coro<void> look_at_ages(std::vector<QueueBacklog>& backlogs) {
    std::set<std::string> asked;
    for (QueueBacklog& queue : backlogs) {
      const bool is_asked = std::ranges::any_of(
          receivers, [&](const ReceiverRef& to) { return to->rule.wants(Trouble::age, queue.name); });
      if (!is_asked || queue.ready == 0) continue;
      asked.insert(queue.name);
      queue.waits = std::max(queue.waits, (co_await oldest.look(queue.name)).value_or(Duration::zero()));
    }
    oldest.forget_others(asked);
  }
  // A trouble that was told is looked at even if the rule does not ask for it any more.
  void look_for(Receiver& to, const std::vector<QueueBacklog>& backlogs) {
    const NotifyRule& rule = to.rule;
    const auto is_looked_at = [&](const TroubleKey& key) {
      return rule.wants(key.first, key.second) || to.log.find(key) != nullptr;
    };
    std::set<std::string> seen;
    for (const QueueBacklog& queue : backlogs) {
      seen.insert(queue.name);
      if (const TroubleKey key(Trouble::depth, queue.name); is_looked_at(key)) {
        set_state(to, key, queue.ready > rule.depth,
                  fmt::format("{} ready, the limit is {}", counted(queue.ready, "job is", "jobs are"), rule.depth));
      }
      if (const TroubleKey key(Trouble::age, queue.name); is_looked_at(key)) {
        set_state(
            to, key, queue.waits > rule.age,
            fmt::format("jobs wait for {}, the limit is {}", format_roughly(queue.waits), format_duration(rule.age)));
      }
    }
    for (const TroubleKey& key : to.log.keys()) {
      const bool is_of_queue = key.first == Trouble::depth || key.first == Trouble::age;
      if (is_of_queue && !seen.contains(key.second)) end_for(to, key, {.text = std::string(kGone)});
    }
  }
  void set_state(Receiver& to, const TroubleKey& key, bool is_so, const std::string& text) {
    is_so ? begin_for(to, key, text) : end_for(to, key, {.text = text});
  }
  void look_at_state(Trouble kind, const std::function<std::vector<NotifierOptions::Unwell>()>& ask) {
    if (!ask) return;
    std::set<std::string> now;
    for (const auto& [part, text] : ask()) {
      now.insert(part);
      begin(kind, part, text);
    }
    for (const ReceiverRef& to : receivers) {
      for (const TroubleKey& key : to->log.keys()) {
        if (key.first == kind && !now.contains(key.second)) end_for(*to, key, {});
      }
    }
  }
  // A round may have ended when nobody listened.
  void look_at_alarms() {
    if (!options.alarms) return;
    for (const ReceiverRef& to : receivers) {
      for (const TroubleKey& key : to->log.keys()) {
        if (over_by(key.first) != OverBy::round) continue;
        const auto alarms = options.alarms(key.second);
        if (!alarms) {
          end_for(*to, key, {.text = std::string(kGone)});
        } else if (alarms->empty()) {
          end_for(*to, key, {});
        }
      }
    }
  }
  void tell_alarms(const std::string& project, const std::vector<std::string>& alarms) {
    if (alarms.empty()) {
      for (const ReceiverRef& to : receivers) end_for(*to, {Trouble::alarm, project}, {});
      return;
    }
    note({.trouble = Trouble::alarm,
          .subject = project,
          .count = alarms.size(),
          .text = fmt::format("{}", fmt::join(alarms, "; ")),
          .jobs = {}},
         TroubleStart{.at = engine.calendar_now()});
  }
  // The history knows of runs that ended when nobody listened. That nothing keeps a schedule now, in a process that has
  // just begun, or after an edit, is only because none of its times has come.
  Coro<void> look_at_schedules() {
    for (const ReceiverRef& to : receivers) to->log.keep_up_to(engine.calendar_now());
    for (const std::string& name : schedules_to_look_at()) {
      const auto runs = co_await engine.book().schedules().history(name, kRunsKept);
      const bool is_gone = !runs && runs.error().code == Errc::not_found;
      for (const ReceiverRef& to : receivers) {
        if (runs) end_by(*to, name, *runs);
        for (const Trouble trouble : kTroublesOfRuns) {
          if (is_gone) end_for(*to, {trouble, name}, {.text = std::string(kGone)});
        }
      }
    }
  }
  // Some of them, and at the next look those that follow.
  std::vector<std::string> schedules_to_look_at() {
    std::set<std::string> open;
    for (const ReceiverRef& to : receivers) {
      for (const auto& [key, trouble] : to->log.all()) {
        if (over_by(key.first) == OverBy::run && !trouble.over) open.insert(key.second);
      }
    }
    std::vector<std::string> some(open.upper_bound(looked_at), open.end());
    some.insert(some.end(), open.begin(), open.upper_bound(looked_at));
    if (some.size() > kMostSchedulesALook) some.resize(kMostSchedulesALook);
    if (!some.empty()) looked_at = some.back();
    return some;
  }

  // --- memory
  void open() {
    if (options.file.empty() || is_null_device(options.file)) return;
    const auto text = read_file_text(options.file, kMostMemoryBytes, FileReading::again);
    if (!text && text.error().code == Errc::not_found) return;
    if (!text)
      return spdlog::error("what was told of trouble is not known: {}: {}", printable(options.file),
                           text.error().message);
    memories = read_notify_memories(*text);
  }
  // Of a rule that was not there until now.
  void recall(Receiver& to) {
    const auto found = memories.find(to.rule.name);
    if (found == memories.end()) return;
    NotifyMemory memory = std::move(found->second);
    memories.erase(found);
    for (auto& [key, open] : memory.open) {
      if (open.start.at == WallTime{}) open.start.at = engine.calendar_now();  // it is not said
      to.log.recall(key, std::move(open));
    }
    for (Notice& notice : memory.gathered) to.gathered.add(std::move(notice));
    to.gathered.leave_out(memory.left_out);
    gather_ends(to);
    if (!to.gathered.empty()) send_soon(to);
  }
  void remember() {
    if (options.file.empty() || write_at != kNever) return;
    write_at = saturating_add(loop.time(), kWriteInterval);
    ticker.at(write_at);
  }
  std::string memory_lines() const {
    std::string lines;
    for (const ReceiverRef& to : receivers) {
      NotifyMemory memory{
          .open = to->log.all(), .gathered = {}, .left_out = to->sending.left_out() + to->gathered.left_out()};
      for (const Notices* notices : {&to->sending, &to->gathered}) {
        for (const auto& [key, notice] : *notices) memory.gathered.push_back(notice);
      }
      if (memory.open.empty() && memory.gathered.empty() && memory.left_out == 0) continue;
      lines += to_line(to->rule.name, memory);
    }
    return lines;
  }
  Coro<void> write() {
    if (is_writing) co_return remember();
    const SetWhile writing(is_writing);
    if (!thread) thread.emplace(1);
    const auto lines = std::make_shared<const std::string>(memory_lines());
    note_written(co_await run_in_executor(*thread, [this, lines] { return replace_file(options.file, *lines); }));
  }
  void write_last() {
    if (thread) thread->shutdown();
    if (!options.file.empty()) note_written(replace_file(options.file, memory_lines()));
  }
  static void note_written(const Result<void>& done) {
    if (!done) spdlog::error("what was told of trouble is not kept: {}", done.error().message);
  }

  // --- rules
  std::vector<Left> left() const {
    std::vector<Left> all;
    events.snapshot().for_each_queue([&](std::string_view queue, const StateCounts& counts) {
      const std::uint64_t waiting = counts.ready + counts.delayed + counts.running;
      if (waiting == 0 || !queue.starts_with(kNotifyQueues)) return;
      const std::string_view name = queue.substr(kNotifyQueues.size());
      if (find(name) == nullptr) all.push_back({std::string(name), waiting});
    });
    return all;
  }
  Coro<void> tell_of_left_messages() {
    if (!co_await events.count(Duration::zero())) co_return;
    for (const auto& [name, messages] : left()) {
      spdlog::warn(
          "there is no notify {} any more, and {} of it will not be delivered: give one that name again, or see "
          "argiope job list {}{}",
          in_quotes(name), counted(messages, "message"), kNotifyQueues, printable(name));
    }
  }
  void listen() {
    if (job_listener != 0 || receivers.empty()) return;
    job_listener = engine.add_listener(kHeardOfJobs, [this](const JobEvent& event) { hear(event); });
    if (Scheduler* scheduler = scheduler_of(engine)) {
      schedule_listener =
          scheduler->add_listener(kHeardOfSchedules, [this](const ScheduleEvent& event) { hear(event); });
    }
    look_at = saturating_add(loop.time(), options.look_interval);
    ticker.at(look_at);
  }
  void stop_listening() {
    if (job_listener != 0) engine.remove_listener(std::exchange(job_listener, 0));
    if (schedule_listener == 0) return;
    if (Scheduler* scheduler = scheduler_of(engine)) scheduler->remove_listener(std::exchange(schedule_listener, 0));
  }
  ReceiverRef find(std::string_view name) const {
    const auto found = std::ranges::find_if(receivers, [&](const ReceiverRef& to) { return to->rule.name == name; });
    return found == receivers.end() ? nullptr : *found;
  }

  Engine& engine;
  EventFeed& events;
  const NotifierOptions options;
  EventLoop& loop;
  std::vector<ReceiverRef> receivers;
  QueueWaits waits;
  bool watches_age = false;
  std::string looked_at;  // the last schedule
  TimePoint look_at{};
  bool is_looking = false;
  OldestReady oldest{engine};
  std::map<std::string, NotifyMemory, std::less<>> memories;  // of rules that have not come yet
  TimePoint write_at = kNever;
  bool is_writing = false;
  std::optional<ThreadPoolExecutor> thread;
  std::uint64_t job_listener = 0, schedule_listener = 0;
  Background background;
  Ticker ticker;
};

Notifier::Notifier(Engine& engine, EventFeed& events, NotifierOptions options)
    : state_(std::make_shared<State>(engine, events, std::move(options))) {}

Notifier::~Notifier() {
  state_->ticker.stop();
  state_->stop_listening();
}

Coro<Result<void>> Notifier::set(std::vector<NotifyRule> rules) {
  const auto state = state_;
  std::vector<State::ReceiverRef> receivers;
  for (NotifyRule& rule : rules) {
    const std::string queue = rule.queue();
    if (!state->engine.config(queue)) {
      auto made = co_await state->engine.book().configure(queue, policy_of_messages());
      if (!made)
        co_return fail(made.error().code, fmt::format("notify {}: {}", in_quotes(rule.name), made.error().message));
    }
    auto receiver = state->find(rule.name);
    const bool is_new = receiver == nullptr;
    if (is_new) receiver = std::make_shared<State::Receiver>();
    receiver->rule = std::move(rule);
    if (is_new) state->recall(*receiver);
    receivers.push_back(std::move(receiver));
  }
  const bool are_all_kept = std::ranges::all_of(
      state->receivers, [&](const auto& to) { return std::ranges::find(receivers, to) != receivers.end(); });
  if (!are_all_kept) state->remember();
  state->receivers = std::move(receivers);
  if (!std::exchange(state->memories, {}).empty()) state->remember();  // they are of rules that are gone
  state->watches_age = state->is_watched(Trouble::age);
  state->receivers.empty() ? state->stop_listening() : state->listen();
  co_await state->tell_of_left_messages();
  co_return Result<void>{};
}

Coro<Result<JobId>> Notifier::test(std::string name) {
  const auto state = state_;
  const auto receiver = state->find(name);
  if (!receiver) co_return fail(Errc::not_found, fmt::format("notify {}: the configuration has none", in_quotes(name)));
  co_return co_await state->put_message(receiver, {}, true);
}

void Notifier::tell_alarms(const std::string& project, const std::vector<std::string>& alarms) {
  state_->tell_alarms(project, alarms);
}

Coro<void> Notifier::stop() {
  const auto state = state_;
  state->stop_listening();
  state->ticker.stop();
  co_await state->background.quiet();
  for (const auto& receiver : std::vector(state->receivers)) {
    co_await state->send(receiver);
    co_await state->send(receiver);  // what was over before it was told
  }
  state->write_last();
}

void Notifier::open() { state_->open(); }

std::vector<Notifier::Left> Notifier::left() const { return state_->left(); }

void Notifier::add_to(Metrics& metrics) const {
  metrics.add(Metrics::Kind::gauge, "argiope_notify_left_messages",
              "Messages that wait for a [[notify]] whose name the configuration has no more", {}, [state = state_] {
                std::uint64_t messages = 0;
                for (const Left& left : state->left()) messages += left.messages;
                return static_cast<double>(messages);
              });
}

std::vector<Notifier::Status> Notifier::statuses() const {
  std::vector<Status> all;
  for (const auto& to : state_->receivers) {
    all.push_back({.name = to->rule.name,
                   .gathered = to->gathered.size(),
                   .lasting = to->log.lasting(),
                   .messages = to->messages,
                   .last_at = to->last_at});
  }
  return all;
}

}  // namespace argiope
