#include "serve/watch/event_feed.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/base/detail/intrusive_list.hpp"
#include "async/internal/as_error.hpp"
#include "async/internal/background.hpp"
#include "async/internal/ticker.hpp"
#include "serve/base/problem.hpp"
#include "serve/base/scheduler_of.hpp"
#include "serve/bounds/caller_counts.hpp"
#include "serve/watch/event_record.hpp"

namespace argiope {

namespace {

// Of one write to a stream.
constexpr std::size_t kMostPieceBytes = 64 * 1024;
// How soon a client that lost the connection tries again.
constexpr int kRetryMs = 2000;
// Counting many queues takes long, and then comes less often: one part in so many of the time goes into it.
constexpr int kCountShare = 10;
// Events of jobs, remembered while there is no stream: what a person asks for in the morning, and what happens seldom.
constexpr std::uint32_t kUnwatchedJobEvents =
    static_cast<std::uint32_t>(JobEventKind::retrying) | static_cast<std::uint32_t>(JobEventKind::buried) |
    static_cast<std::uint32_t>(JobEventKind::cancelled) | static_cast<std::uint32_t>(JobEventKind::expired) |
    static_cast<std::uint32_t>(JobEventKind::queue_changed);

// The last events of those kinds, and which of them are in the record that streams read, too.
class UnwatchedEvents {
 public:
  // `number`: its number in that record; 0: it is not there.
  template <class Event>
  void add(const Event& event, std::uint64_t number) {
    numbers_[record_.next() % numbers_.size()] = number;
    record_.add(event);
  }
  // The last `most` that `wants` is true of and that are not in the record from `first` on, the oldest first.
  template <class Wants>
  void write(std::string& out, std::size_t most, std::uint64_t first, Wants wants) {
    std::vector<std::uint64_t> found;
    for (std::uint64_t number = record_.next(); number > record_.first() && found.size() < most;) {
      --number;
      if (numbers_[number % numbers_.size()] < first && wants(record_.at(number))) found.push_back(number);
    }
    for (const std::uint64_t number : found | std::views::reverse) out += record_.written(number);
  }

 private:
  EventRecord record_{EventFeed::kMostUnwatched};
  std::array<std::uint64_t, EventFeed::kMostUnwatched> numbers_{};
};

}  // namespace

struct EventFeed::State : std::enable_shared_from_this<State> {
  class Stream;
  // Counts a stream from when it is promised until its answer has gone.
  class Place;

  State(Engine& its_engine, EventFeedOptions its_options, std::uint64_t run_id)
      : engine(its_engine),
        options(std::move(its_options)),
        run(run_id),
        loop(EventLoop::current()),
        tally(engine),
        counters(engine, tally, options.daemon_counters),
        record(options.kept) {
    listen_unwatched();
  }

  void stop();
  // Why there may be no more streams of this one; nullopt where there may.
  std::optional<Problem> why_not_stream(const Wanted& wanted) const;
  void listen_unwatched();
  void stop_listening(std::uint64_t& jobs, std::uint64_t& schedules);
  // While there are streams, and for a while afterwards.
  void begin_recording();
  void end_recording();
  void note_change();
  void wake_all();
  void look();
  Coro<void> count();
  // Until the client leaves, its right ends or stop().
  static Coro<void> serve(std::shared_ptr<State> self, std::shared_ptr<Place> place, Wanted wanted, Send send);
  static Coro<void> follow(std::shared_ptr<State> self, std::shared_ptr<Place> place, Wanted wanted, Send send);

  Engine& engine;
  const EventFeedOptions options;
  const std::uint64_t run;
  EventLoop& loop;
  Tally tally;
  Counters counters;
  EventRecord record;
  UnwatchedEvents unwatched;
  std::uint64_t unwatched_listener = 0;
  std::uint64_t unwatched_schedule_listener = 0;
  bool stopped = false;
  std::uint64_t resets = 0;
  std::size_t places = 0;
  CallerCounts places_of;   // by Wanted::who
  std::size_t lookers = 0;  // places that want counters
  IntrusiveList<Stream> streams;
  bool recording = false;
  std::uint64_t listener = 0;
  std::uint64_t schedule_listener = 0;
  bool told = false;  // something, since the streams were last woken
  TimePoint woken_at = TimePoint::min();
  Background background{loop, "counters"};
  Ticker waker{loop, [this] { wake_all(); }};
  Ticker looker{loop, [this] { look(); }};
  Ticker forgetter{loop, [this] { end_recording(); }};
};

class EventFeed::State::Place {
 public:
  Place(std::shared_ptr<State> state, const Wanted& wanted)
      : state_(std::move(state)), looks_(wanted.counters), who_(wanted.who), first_(state_->record.next()) {
    ++state_->places;
    if (!who_.empty()) state_->places_of.add(who_);
    state_->forgetter.forget_time();
    state_->begin_recording();
    if (!looks_) return;
    ++state_->lookers;
    state_->looker.soon();
  }
  ~Place() {
    if (looks_) --state_->lookers;
    if (!who_.empty()) state_->places_of.drop(who_);
    if (--state_->places > 0 || state_->stopped) return;
    state_->forgetter.at(saturating_add(state_->loop.time(), state_->options.keep_for));
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  // Events from this number on are for it.
  std::uint64_t first() const noexcept { return first_; }

 private:
  const std::shared_ptr<State> state_;
  const bool looks_;
  const std::string who_;
  const std::uint64_t first_;
};

// How far one client has read.
class EventFeed::State::Stream : public ListHook {
 public:
  Stream(State& state, std::uint64_t first, Wanted wanted)
      : state_(state), wanted_(std::move(wanted)), next_(first), sent_at_(state.loop.time()) {
    // A snapshot from when others looked is no news; another is on its way.
    if (sent_at_ - state.counters.taken_at() > 2 * state.options.snapshot_interval) snapshot_ = state.counters.number();
    state.streams.push_back(*this);
  }
  ~Stream() { unlink(); }

  // Writes the text that a client gets first.
  void greet(std::string& out);
  // Adds the events that it has not been sent; up to one piece. Empty: nothing, and the last piece is not long ago.
  void gather(std::string& out);
  // What gather() has added was taken: nothing of it waits any more.
  void sent(std::string& out);
  bool has_more() const noexcept { return next_ != state_.record.next(); }
  bool is_still_let_in() const noexcept { return holds(wanted_.right); }
  // Until something happens, or a client should not be left without a word any longer.
  Coro<void> wait();
  void wake() noexcept { woken_.set(); }

 private:
  bool wants(const KeptEvent& event) const;
  bool sees(const KeptEvent& event) const;
  void reset(std::string& out, std::string_view why);
  void take_up(std::string& out, std::string_view last_event_id);
  void go_back(std::string& out);
  void add_snapshot(std::string& out);
  void append_id(std::string& out, std::uint64_t number) const {
    fmt::format_to(std::back_inserter(out), "id: {}\n", to_string(EventId{state_.run, number}));
  }

  State& state_;
  const Wanted wanted_;
  std::uint64_t next_;
  TimePoint sent_at_;
  std::uint64_t snapshot_ = 0;
  AnswerRoom::Held held_;        // of a snapshot that waits to be taken
  std::size_t no_room_for_ = 0;  // bytes of a snapshot that was left out; 0: none waits for room
  Event woken_;
};

// --- one stream

void EventFeed::State::Stream::greet(std::string& out) {
  fmt::format_to(std::back_inserter(out), "retry: {}\n", kRetryMs);
  if (wanted_.last_event_id) {
    take_up(out, *wanted_.last_event_id);
  } else {
    go_back(out);
  }
  // An id without an event: who loses the connection before the first event knows where it was.
  append_id(out, next_ - 1);
  out += '\n';
}

// The id is that of the last event that the client has had.
void EventFeed::State::Stream::take_up(std::string& out, std::string_view last_event_id) {
  const auto id = parse_event_id(last_event_id);
  if (!id || id->run != state_.run) return reset(out, "another run");
  const std::uint64_t next = id->number + 1;
  if (next < state_.record.first() || next > state_.record.next()) return reset(out, "too old");
  next_ = next;
}

// To the last events that it wants and sees.
void EventFeed::State::Stream::go_back(std::string& out) {
  const auto is_told = [this](const KeptEvent& event) { return wants(event) && sees(event); };
  std::size_t left = wanted_.last;
  while (left > 0 && next_ > state_.record.first()) {
    if (is_told(state_.record.at(--next_))) --left;
  }
  state_.unwatched.write(out, left, state_.record.first(), is_told);
}

void EventFeed::State::Stream::reset(std::string& out, std::string_view why) {
  ++state_.resets;
  next_ = state_.record.next();
  append_id(out, next_ - 1);
  append_event(out, "reset", fmt::format("{{\"why\":\"{}\"}}", why));
}

bool EventFeed::State::Stream::wants(const KeptEvent& event) const {
  switch (event.kind) {
    case KeptEvent::Kind::job: return wanted_.jobs;
    case KeptEvent::Kind::schedule: return wanted_.schedules;
    case KeptEvent::Kind::queue: return wanted_.queues;
    case KeptEvent::Kind::project: return wanted_.projects;
    case KeptEvent::Kind::other: return wanted_.workers;
  }
  return false;
}

bool EventFeed::State::Stream::sees(const KeptEvent& event) const {
  if (wanted_.may_see) {
    if (event.owner.empty() || !wanted_.may_see(event.owner)) return false;
    // A schedule is its own only if the queue of its jobs is, too. One whose queue is not known is not.
    if (event.kind == KeptEvent::Kind::schedule && (event.queue.empty() || !wanted_.may_see(event.queue))) return false;
  }
  if (wanted_.queue.empty() || event.kind == KeptEvent::Kind::project || event.kind == KeptEvent::Kind::other)
    return true;
  return (event.kind == KeptEvent::Kind::schedule ? event.queue : event.owner) == wanted_.queue;
}

void EventFeed::State::Stream::gather(std::string& out) {
  if (wanted_.counters && snapshot_ != state_.counters.number()) add_snapshot(out);
  if (next_ < state_.record.first()) reset(out, "too slow");
  for (; has_more() && out.size() < kMostPieceBytes; ++next_) {
    const KeptEvent& event = state_.record.at(next_);
    if (!wants(event) || !sees(event)) continue;
    append_id(out, next_);
    out += state_.record.written(next_);
  }
  const TimePoint now = state_.loop.time();
  if (out.empty() && now >= saturating_add(sent_at_, state_.options.heartbeat_interval)) {
    // With an id: what it does not want to hear of does not make it too old.
    out = ": nothing happened\n";
    append_id(out, next_ - 1);
    out += '\n';
  }
  if (!out.empty()) sent_at_ = now;
}

// One of many queues is as long as a large answer, and waits in memory for who does not take it.
void EventFeed::State::Stream::add_snapshot(std::string& out) {
  AnswerRoom* const room = state_.options.room.get();
  if (no_room_for_ > 0 && !room->fits(wanted_.who, no_room_for_)) return;
  const std::string json = state_.counters.json(wanted_.may_see);
  no_room_for_ = 0;
  if (room != nullptr && json.size() > AnswerRoom::kSmall) {
    held_ = room->take(wanted_.who, json.size());
    if (held_ == nullptr) no_room_for_ = json.size();
  }
  if (no_room_for_ > 0) return;
  snapshot_ = state_.counters.number();
  append_event(out, "counters", json);
}

void EventFeed::State::Stream::sent(std::string& out) {
  held_.reset();
  if (out.capacity() > 2 * kMostPieceBytes) out = std::string();
  out.clear();
}

Coro<void> EventFeed::State::Stream::wait() {
  try {
    const TimePoint room_at = saturating_add(state_.loop.time(), state_.options.gather_interval);
    const TimePoint word_at = saturating_add(sent_at_, state_.options.heartbeat_interval);
    co_await timeout_at(no_room_for_ > 0 ? std::min(room_at, word_at) : word_at).run(woken_.wait());
  } catch (const TimeoutError&) {
    // gather() says a word
  }
  woken_.clear();
}

Coro<void> EventFeed::State::follow(std::shared_ptr<State> self, std::shared_ptr<Place> place, Wanted wanted,
                                    Send send) {
  Stream stream(*self, place->first(), std::move(wanted));
  std::string piece;
  stream.greet(piece);
  while (!self->stopped && stream.is_still_let_in()) {
    stream.gather(piece);
    if (!piece.empty()) {
      const bool goes_on = co_await send(piece);
      if (!goes_on) co_return;
      stream.sent(piece);
    }
    if (!stream.has_more()) co_await stream.wait();
  }
}

Coro<void> EventFeed::State::serve(std::shared_ptr<State> self, std::shared_ptr<Place> place, Wanted wanted,
                                   Send send) {
  const std::shared_ptr<AccessRight> right = wanted.right;
  try {
    co_await while_it_holds(right, follow(std::move(self), std::move(place), std::move(wanted), std::move(send)));
  } catch (const AccessEnded&) {
    // so does the stream
  }
}

// --- what all streams share

std::optional<Problem> EventFeed::State::why_not_stream(const Wanted& wanted) const {
  if (stopped) return problem(ProblemType::draining, "the daemon is stopping");
  if (!wanted.who.empty() && places_of.of(wanted.who) >= options.most_streams_of_one) {
    return problem(ProblemType::too_many, "too many streams of events are open for your token");
  }
  if (places >= options.most_streams) return problem(ProblemType::too_many, "too many streams of events are open");
  return std::nullopt;
}

// Listens before the record does, which has the event next.
void EventFeed::State::listen_unwatched() {
  const auto number = [this] { return recording ? record.next() : 0; };
  unwatched_listener = engine.add_listener(kUnwatchedJobEvents,
                                           [this, number](const JobEvent& event) { unwatched.add(event, number()); });
  Scheduler* scheduler = scheduler_of(engine);
  if (scheduler == nullptr) return;
  unwatched_schedule_listener = scheduler->add_listener(
      kAllScheduleEvents, [this, number](const ScheduleEvent& event) { unwatched.add(event, number()); });
}

void EventFeed::State::stop_listening(std::uint64_t& jobs, std::uint64_t& schedules) {
  engine.remove_listener(std::exchange(jobs, 0));
  if (schedules != 0) scheduler_of(engine)->remove_listener(std::exchange(schedules, 0));
}

void EventFeed::State::begin_recording() {
  if (std::exchange(recording, true)) return;
  listener = engine.add_listener(kAllJobEvents, [this](const JobEvent& event) {
    record.add(event);
    note_change();
  });
  Scheduler* scheduler = scheduler_of(engine);
  if (scheduler == nullptr) return;
  schedule_listener = scheduler->add_listener(kAllScheduleEvents, [this](const ScheduleEvent& event) {
    record.add(event);
    note_change();
  });
}

void EventFeed::State::end_recording() {
  if (!std::exchange(recording, false)) return;
  stop_listening(listener, schedule_listener);
  record.forget();
}

void EventFeed::State::note_change() {
  if (streams.empty() || std::exchange(told, true)) return;
  waker.at(std::max(loop.time(), saturating_add(woken_at, options.gather_interval)));
}

void EventFeed::State::wake_all() {
  told = false;
  woken_at = loop.time();
  streams.for_each([](Stream& stream) { stream.wake(); });
}

void EventFeed::State::look() {
  if (lookers > 0 && !stopped) background.run(shared_from_this(), count());
}

Coro<void> EventFeed::State::count() {
  if (stopped) co_return;
  const std::uint64_t before = counters.number();
  const TimePoint began = loop.time();
  // Nobody awaits this: what is thrown is told now, and it is counted again.
  const auto counted = co_await as_error(counters.refresh(options.snapshot_interval / 2));
  if (!counted) spdlog::warn("the jobs of the queues could not be counted: {}", counted.error().message);
  if (counters.number() != before) wake_all();
  const TimePoint now = loop.time();
  looker.at(saturating_add(now, std::max(options.snapshot_interval, kCountShare * (now - began))));
}

void EventFeed::State::stop() {
  if (std::exchange(stopped, true)) return;
  end_recording();
  stop_listening(unwatched_listener, unwatched_schedule_listener);
  for (Ticker* ticker : {&waker, &looker, &forgetter}) ticker->stop();
  wake_all();
}

// --- the feed

EventFeed::EventFeed(Engine& engine, EventFeedOptions options, std::uint64_t run_id)
    : state_(std::make_shared<State>(engine, std::move(options), run_id)) {}

EventFeed::~EventFeed() {
  stop();
  state_->tally.close();
  state_->counters.close();
}

ServerResponse EventFeed::stream(Wanted wanted) {
  if (const auto why_not = state_->why_not_stream(wanted)) return answer(*why_not);
  const auto write = [state = state_, place = std::make_shared<State::Place>(state_, wanted), wanted](BodyWriter& out) {
    return State::serve(state, place, wanted, [&out](std::string_view piece) -> Coro<bool> {
      co_await out.write(piece);
      co_return !out.server_stops();
    });
  };
  auto response = ServerResponse::streamed(200, "text/event-stream", write);
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("X-Accel-Buffering", "no");  // nginx would keep events back
  return response;
}

Coro<void> EventFeed::follow(Wanted wanted, Send send) {
  auto place = std::make_shared<State::Place>(state_, wanted);
  return State::serve(state_, std::move(place), std::move(wanted), std::move(send));
}

Coro<Result<std::string>> EventFeed::counters(MaySee may_see) {
  const std::shared_ptr<State> state = state_;
  co_await or_return(state->counters.refresh(state->options.snapshot_interval));
  co_return state->counters.json(may_see);
}

Coro<Result<void>> EventFeed::count(Duration age) {
  const std::shared_ptr<State> state = state_;
  co_return co_await state->counters.refresh(age);
}

const Counters& EventFeed::snapshot() const noexcept { return state_->counters; }

void EventFeed::tell(std::string_view kind, std::string_view json, std::string_view owner) {
  if (!state_->recording) return;
  state_->record.add(kind, json, owner);
  state_->note_change();
}

bool EventFeed::is_recording() const noexcept { return state_->recording; }

void EventFeed::stop() { state_->stop(); }

std::size_t EventFeed::streams() const noexcept { return state_->places; }

std::uint64_t EventFeed::resets() const noexcept { return state_->resets; }

const Tally& EventFeed::tally() const noexcept { return state_->tally; }

std::function<std::uint64_t()> EventFeed::changes() const {
  return [state = state_] { return state->tally.heard(); };
}

}  // namespace argiope
