#include "serve/notify/notifier.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "argiope/async/executor.hpp"
#include "argiope/async/or_return.hpp"
#include "argiope/base/duration.hpp"
#include "async/internal/background.hpp"
#include "async/internal/ticker.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/set_while.hpp"
#include "serve/base/plain_file.hpp"
#include "serve/base/scheduler_of.hpp"
#include "serve/notify/notice.hpp"
#include "serve/notify/notify_memory.hpp"
#include "serve/watch/oldest_ready.hpp"
#include "serve/watch/queue_waits.hpp"

namespace argiope {

namespace {

using StateKey = std::pair<Trouble, std::string>;

constexpr Duration kWriteInterval = std::chrono::seconds{1};
constexpr std::size_t kMostMemoryBytes = 64 * 1024 * 1024;

constexpr std::uint32_t kHeardOfJobs = static_cast<std::uint32_t>(JobEventKind::buried) |
                                       static_cast<std::uint32_t>(JobEventKind::expired) |
                                       static_cast<std::uint32_t>(JobEventKind::leased) |
                                       static_cast<std::uint32_t>(JobEventKind::done);
constexpr std::uint32_t kHeardOfSchedules = static_cast<std::uint32_t>(ScheduleEventKind::job_missed) |
                                            static_cast<std::uint32_t>(ScheduleEventKind::job_error) |
                                            static_cast<std::uint32_t>(ScheduleEventKind::job_executed) |
                                            static_cast<std::uint32_t>(ScheduleEventKind::schedule_marked) |
                                            static_cast<std::uint32_t>(ScheduleEventKind::schedule_unmarked);

// A message is tried for some eight hours. What could not be delivered stays for a week, to be looked at.
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
    LastingTroubles lasting;
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

  bool is_watched(Trouble trouble) const {
    return std::ranges::any_of(
        receivers, [&](const ReceiverRef& to) { return (to->rule.on & 1u << static_cast<int>(trouble)) != 0; });
  }

  // --- what happens
  void hear(const JobEvent& event) {
    if (event.queue.starts_with(kNotifyQueues)) return hear_of_message(event);
    if (event.kind == JobEventKind::done) return hear_of_end(event);
    if (event.kind == JobEventKind::leased) return watches_age ? waits.leased(event) : void();
    const Trouble trouble = event.kind == JobEventKind::buried ? Trouble::buried : Trouble::expired;
    note(
        {.trouble = trouble, .subject = std::string(event.queue), .text = std::string(event.text), .jobs = {event.id}});
  }
  // Of a run of a schedule the scheduler tells.
  void hear_of_end(const JobEvent& event) {
    if (event.text.empty() || event.schedule != 0) return;
    note({.trouble = Trouble::findings, .subject = std::string(event.queue), .text = std::string(event.text), .jobs = {event.id}});
  }
  void hear(const ScheduleEvent& event) {
    const std::string name(event.name), text(event.text);
    switch (event.kind) {
      case ScheduleEventKind::job_missed:
        return note({.trouble = Trouble::missed, .subject = name, .count = event.count, .text = text, .jobs = {}});
      case ScheduleEventKind::job_error:
        if (event.queue.starts_with(kNotifyQueues)) return;
        return note({.trouble = Trouble::failed, .subject = name, .text = text, .jobs = {event.job}});
      case ScheduleEventKind::job_executed:
        if (event.text.empty()) return;
        return note({.trouble = Trouble::findings, .subject = name, .text = text, .jobs = {event.job}});
      case ScheduleEventKind::schedule_marked: return begin(Trouble::failed, name, text);
      case ScheduleEventKind::schedule_unmarked: return forget_untold(name);
      default: return;
    }
  }
  // To tell of it by another message would go the same way.
  static void hear_of_message(const JobEvent& event) {
    if (event.kind != JobEventKind::buried) return;
    spdlog::error("{}: a message could not be delivered, and is kept as job {}: {}", event.queue, event.id, event.text);
  }

  // --- gathering
  void note(Notice notice) {
    for (const ReceiverRef& to : receivers) {
      if (to->rule.wants(notice.trouble, notice.subject)) gather(*to, notice);
    }
  }
  void gather(Receiver& to, Notice notice) {
    notice.first_at = notice.last_at = engine.calendar_now();
    to.gathered.add(std::move(notice));
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
      if (to->rule.wants(trouble, subject)) begin_for(*to, trouble, subject, text);
    }
  }
  void begin_for(Receiver& to, Trouble trouble, const std::string& subject, const std::string& text) {
    if (const Notice* there = to.gathered.find(trouble, subject)) {
      if (there->is_over) to.gathered.erase(trouble, subject);  // it was told that it is, and it is so again
      return;
    }
    const auto told = to.lasting.find({trouble, subject});
    if (told == to.lasting.end()) return gather(to, {.trouble = trouble, .subject = subject, .text = text, .jobs = {}});
    // Of the others it is said at each look.
    if (trouble != Trouble::failed) return;
    told->second = engine.calendar_now();
    remember();
  }
  void end(Trouble trouble, const std::string& subject, const std::string& text = {}) {
    for (const ReceiverRef& to : receivers) end_for(*to, trouble, subject, text);
  }
  void end_for(Receiver& to, Trouble trouble, const std::string& subject, const std::string& text) {
    const StateKey key(trouble, subject);
    if (erase_untold(to, trouble, subject)) return;
    if (to.gathered.find(trouble, subject) != nullptr || !to.lasting.contains(key)) return;
    if (!to.rule.resolved) {
      remember();
      return void(to.lasting.erase(key));
    }
    gather(to, {.trouble = trouble, .subject = subject, .is_over = true, .text = text, .jobs = {}});
  }
  // What nobody has heard of. (Runs of a schedule that have failed did so, whether it can run or not.) Whether there was any.
  bool erase_untold(Receiver& to, Trouble trouble, const std::string& subject) {
    const Notice* there = to.gathered.find(trouble, subject);
    const bool is_untold =
        there != nullptr && !there->is_over && there->jobs.empty() && !to.lasting.contains({trouble, subject});
    if (!is_untold) return false;
    remember();
    to.gathered.erase(trouble, subject);
    return true;
  }
  // The schedule can run again. Those who were told that it cannot hear of that when a run of it has gone well.
  void forget_untold(const std::string& schedule) {
    for (const ReceiverRef& to : receivers) erase_untold(*to, Trouble::failed, schedule);
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
    if (to->gathered.empty()) co_return;
    const Notices told = std::exchange(to->gathered, {});
    to->next_at = saturating_add(loop.time(), to->rule.interval);
    const auto put = co_await put_message(to, told, false);
    remember();
    if (put) {
      note_told(*to, told);
    } else {
      spdlog::error("notify {}: a message cannot be put: {}", in_quotes(to->rule.name), put.error().message);
      for (const auto& [key, notice] : told) to->gathered.add(notice);
      to->gathered.leave_out(told.left_out());
      send_soon(*to);
    }
  }
  static void note_told(Receiver& to, const Notices& told) {
    for (const auto& [key, notice] : told) {
      if (notice.is_over) to.lasting.erase(key);
      const bool is_state = notice.trouble == Trouble::depth || notice.trouble == Trouble::age ||
                            notice.trouble == Trouble::daemon || notice.trouble == Trouble::paused ||
                            (notice.trouble == Trouble::failed && notice.jobs.empty());
      if (is_state && !notice.is_over) to.lasting.insert_or_assign(key, notice.last_at);
    }
  }
  Coro<Result<JobId>> put_message(ReceiverRef to, const Notices& notices, bool is_test) {
    const MessageHead head{.from = options.from, .at = engine.calendar_now(), .is_test = is_test};
    NewJob job;
    job.queue = to->rule.queue();
    job.payload = write_message(to->rule, head, notices);
    const auto reply = co_await or_return(engine.book().put(std::move(job)));
    ++to->messages;
    to->last_at = head.at;
    co_return reply.id;
  }

  // --- states
  Coro<void> look() {
    const struct Looking {
      bool& is_looking;
      ~Looking() { is_looking = false; }
    } looking{is_looking};
    look_at_state(Trouble::daemon, options.unwell, unwell);
    look_at_state(Trouble::paused, options.halted, halted);
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
  void look_for(Receiver& to, const std::vector<QueueBacklog>& backlogs) {
    const NotifyRule& rule = to.rule;
    std::set<std::string> seen;
    for (const QueueBacklog& queue : backlogs) {
      seen.insert(queue.name);
      if (rule.wants(Trouble::depth, queue.name)) {
        set_state(to, Trouble::depth, queue.name, queue.ready > rule.depth,
                  fmt::format("{} ready, the limit is {}", counted(queue.ready, "job is", "jobs are"), rule.depth));
      }
      if (rule.wants(Trouble::age, queue.name)) {
        set_state(
            to, Trouble::age, queue.name, queue.waits > rule.age,
            fmt::format("jobs wait for {}, the limit is {}", format_roughly(queue.waits), format_duration(rule.age)));
      }
    }
    for (const auto& [trouble, subject] : states_of(to)) {
      const bool is_of_queue = trouble == Trouble::depth || trouble == Trouble::age;
      if (is_of_queue && !seen.contains(subject)) end_for(to, trouble, subject, "it is gone");
    }
  }
  void set_state(Receiver& to, Trouble trouble, const std::string& subject, bool is_so, const std::string& text) {
    is_so ? begin_for(to, trouble, subject, text) : end_for(to, trouble, subject, text);
  }
  // `before`: the parts that were so when that was last looked at.
  void look_at_state(Trouble kind, const std::function<std::vector<NotifierOptions::Unwell>()>& ask, std::set<std::string>& before) {
    if (!ask) return;
    std::set<std::string> now;
    for (const auto& [part, text] : ask()) {
      now.insert(part);
      begin(kind, part, text);
    }
    // The process before may have told of parts that are well now.
    for (const ReceiverRef& to : receivers) {
      for (const auto& [trouble, part] : states_of(*to)) {
        if (trouble == kind && !now.contains(part)) end_for(*to, trouble, part, {});
      }
    }
    for (const std::string& part : before) {
      if (!now.contains(part)) end(kind, part);
    }
    before = std::move(now);
  }
  static std::set<StateKey> states_of(const Receiver& to) {
    std::set<StateKey> states;
    for (const auto& [state, since] : to.lasting) states.insert(state);
    return states;
  }
  // Of those that could not run the history says whether they can: that nothing keeps them now, in a process that has just
  // begun, or after an edit, is only because none of their times has come.
  Coro<void> look_at_schedules() {
    std::set<std::string> unable;
    for (const ReceiverRef& to : receivers) {
      for (const auto& [trouble, subject] : states_of(*to)) {
        if (trouble == Trouble::failed) unable.insert(subject);
      }
    }
    for (const std::string& name : unable) {
      const auto runs = co_await engine.book().schedules().history(name, kRunsKept);
      for (const ReceiverRef& to : receivers) judge(*to, name, runs);
    }
  }
  void judge(Receiver& to, const std::string& schedule, const Result<std::vector<ScheduleRun>>& runs) {
    const auto told = to.lasting.find({Trouble::failed, schedule});
    if (told == to.lasting.end()) return;
    if (!runs && runs.error().code == Errc::not_found) return end_for(to, Trouble::failed, schedule, "it is gone");
    const bool goes_well = runs && std::ranges::any_of(*runs, [since = told->second](const ScheduleRun& run) {
      return run.outcome == RunOutcome::done && run.fired_at >= since;
    });
    if (goes_well) end_for(to, Trouble::failed, schedule, {});
  }

  // --- memory
  void open() {
    if (options.file.empty()) return;
    const auto text = read_file_text(options.file, kMostMemoryBytes, FileReading::again);
    if (!text && text.error().code == Errc::not_found) return;
    if (!text) return spdlog::error("what was told of trouble is not known: {}: {}", printable(options.file), text.error().message);
    memories = read_notify_memories(*text);
  }
  // Of a rule that was not there until now.
  void recall(Receiver& to) {
    const auto found = memories.find(to.rule.name);
    if (found == memories.end()) return;
    NotifyMemory memory = std::move(found->second);
    memories.erase(found);
    to.lasting = std::move(memory.lasting);
    for (auto& [state, since] : to.lasting) {
      if (since == WallTime{}) since = engine.calendar_now();  // it is not said
    }
    for (Notice& notice : memory.gathered) to.gathered.add(std::move(notice));
    to.gathered.leave_out(memory.left_out);
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
      NotifyMemory memory{.lasting = to->lasting, .gathered = {}, .left_out = to->gathered.left_out()};
      for (const auto& [key, notice] : to->gathered) memory.gathered.push_back(notice);
      if (memory.lasting.empty() && to->gathered.empty()) continue;
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
  std::set<std::string> unwell;  // parts of the daemon, when it was last looked at
  std::set<std::string> halted;  // and projects
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
  state->receivers = std::move(receivers);
  state->watches_age = state->is_watched(Trouble::age);
  state->receivers.empty() ? state->stop_listening() : state->listen();
  co_return Result<void>{};
}

Coro<Result<JobId>> Notifier::test(std::string name) {
  const auto state = state_;
  const auto receiver = state->find(name);
  if (!receiver) co_return fail(Errc::not_found, fmt::format("notify {}: the configuration has none", in_quotes(name)));
  co_return co_await state->put_message(receiver, {}, true);
}

void Notifier::tell_alarms(const std::string& project, const std::vector<std::string>& alarms) {
  if (alarms.empty()) return;
  std::string text;
  for (const std::string& alarm : alarms) text += (text.empty() ? "" : "; ") + alarm;
  state_->note({.trouble = Trouble::alarm, .subject = project, .count = alarms.size(), .text = std::move(text), .jobs = {}});
}

Coro<void> Notifier::stop() {
  const auto state = state_;
  state->stop_listening();
  state->ticker.stop();
  co_await state->background.quiet();
  for (const auto& receiver : std::vector(state->receivers)) co_await state->send(receiver);
  state->write_last();
}

void Notifier::open() { state_->open(); }

std::vector<Notifier::Status> Notifier::statuses() const {
  std::vector<Status> all;
  for (const auto& to : state_->receivers) {
    all.push_back({.name = to->rule.name,
                   .gathered = to->gathered.size(),
                   .lasting = to->lasting.size(),
                   .messages = to->messages,
                   .last_at = to->last_at});
  }
  return all;
}

}  // namespace argiope
