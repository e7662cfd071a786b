#include "serve/beanstalkd/beanstalkd_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "async/internal/stream_layer.hpp"

namespace argiope {
namespace {

using std::chrono::seconds;

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr Duration kHandshakeTimeout = seconds{10};
constexpr std::size_t kMostUnanswered = 1024;
constexpr std::size_t kMostUnansweredBytes = 4 * 1024 * 1024;
constexpr std::size_t kMostUnsent = StreamOptions{}.high_water;
constexpr std::size_t kMostGathered = 256;

std::string_view done_word(BeanstalkdVerb verb) noexcept {
  switch (verb) {
    case BeanstalkdVerb::delete_job: return "DELETED\r\n";
    case BeanstalkdVerb::release: return "RELEASED\r\n";
    default: return "BURIED\r\n";
  }
}

std::string_view refusal_word(const Error& error) noexcept {
  switch (error.code) {
    case Errc::too_large: return "JOB_TOO_BIG\r\n";
    case Errc::refused: return "OUT_OF_MEMORY\r\n";  // its queue is full: the client tries again later
    default: return kInternalError;
  }
}

Verdict verdict_of(const BeanstalkdCommand& command) {
  Verdict verdict;
  if (command.verb == BeanstalkdVerb::delete_job) return verdict;
  verdict.outcome = command.verb == BeanstalkdVerb::release ? Outcome::release : Outcome::bury;
  verdict.priority = job_priority(command.priority);
  if (command.delay > 0) verdict.delay = seconds{command.delay};
  return verdict;
}

}  // namespace

BeanstalkdSession::BeanstalkdSession(std::shared_ptr<BeanstalkdCore> core, Stream& stream)
    : core_(std::move(core)),
      engine_(core_->engine),
      stream_(&stream),
      parser_(core_->options.max_job_bytes),
      peer_(stream.peer_name()),
      worker_(fmt::format("beanstalkd client {} {}", ++core_->connections_so_far, peer_)),
      used_(&core_->tubes.find_or_make("default")),
      watched_{used_},
      stopping_(core_->is_stopping) {
  ++used_->using_it;
  ++used_->watching;
  ++core_->connections;
  core_->sessions.push_back(*this);
}

BeanstalkdSession::~BeanstalkdSession() {
  --core_->connections;
  if (is_producer_) --core_->producers;
  if (is_worker_) --core_->workers;
  --used_->using_it;
  core_->let_go(*used_);
  for (BeanstalkdTube* tube : watched_) {
    --tube->watching;
    core_->let_go(*tube);
  }
}

// --- reading ---------------------------------------------------------------------------------------------------------

Coro<void> BeanstalkdSession::serve() {
  struct Served {
    BeanstalkdSession& session;
    ~Served() {
      session.stream_->when_ended({});
      session.stream_ = nullptr;
      session.unlink();
    }
  } const served{*this};
  try {
    const bool may_talk = co_await secure();
    if (may_talk) co_await converse();
  } catch (const std::system_error&) {
    // The client has gone.
  }
  co_await all_answered();
  co_await give_back();
}

Coro<bool> BeanstalkdSession::secure() {
  const auto& tls = core_->options.tls;
  if (tls == nullptr || stream_->local_name().starts_with("unix:")) co_return true;
  Timeout limit(saturating_add(core_->loop.time(), kHandshakeTimeout));
  is_reading_ = true;
  try {
    co_await limit.run(stream_->start_layer(tls->new_layer()));
  } catch (const TimeoutError&) {
    stream_->abort();
    co_return false;
  }
  is_reading_ = false;
  co_return true;
}

Coro<void> BeanstalkdSession::converse() {
  for (;;) {
    co_await run_what_came();
    if (is_ending()) co_return;
    parser_.drop_used();
    is_reading_ = true;
    const bool more = co_await stream_->read_onto(parser_.input(), kReadBytes);
    is_reading_ = false;
    if (!more) co_return;
  }
}

Coro<void> BeanstalkdSession::run_what_came() {
  while (!is_ending()) {
    if (!has_room()) co_await make_room();
    const BeanstalkdCommand* const command = parser_.next();
    if (command == nullptr) break;
    count(*command);
    if (gather_reserve(*command)) continue;
    co_await reserve_gathered();
    if (is_ending()) break;
    if (gather_reserve(*command)) continue;  // of another kind than those before it
    if (!start(*command)) co_await run_alone(*command);
  }
  send_gathered();
  co_await reserve_gathered();
  flush();
}

bool BeanstalkdSession::has_room() const {
  return unanswered_ < kMostUnanswered && unanswered_bytes_ < kMostUnansweredBytes && out_.size() < kMostUnsent &&
         stream_->write_buffer_size() < kMostUnsent;
}

Coro<void> BeanstalkdSession::make_room() {
  send_gathered();
  flush();
  while (unanswered_ >= kMostUnanswered || unanswered_bytes_ >= kMostUnansweredBytes) co_await next_answer();
  co_await stream_->drain();
}

void BeanstalkdSession::count(const BeanstalkdCommand& command) noexcept {
  if (!command.counts) return;
  using enum BeanstalkdVerb;
  ++core_->commands[static_cast<std::size_t>(command.verb)];
  const bool puts = command.verb == put && command.refusal != BeanstalkdRefusal::job_too_big;
  if (puts && !std::exchange(is_producer_, true)) ++core_->producers;
  const bool reserves = command.verb == reserve || command.verb == reserve_with_timeout;
  if (reserves && !std::exchange(is_worker_, true)) ++core_->workers;
}

void BeanstalkdSession::stop() noexcept {
  stopping_ = true;
  if (waiting_) waiting_.cancel();
  if (is_reading_ && unanswered_ == 0) stream_->close();
}

// --- commands that are started at once -------------------------------------------------------------------------------

bool BeanstalkdSession::start(const BeanstalkdCommand& command) {
  if (command.refusal != BeanstalkdRefusal::none) {
    reply(fmt::format("{}\r\n", to_string(command.refusal)));
    quitting_ = quitting_ || command.is_foreign;
    return true;
  }
  switch (command.verb) {
    case BeanstalkdVerb::put: return start_put(command);
    case BeanstalkdVerb::delete_job:
    case BeanstalkdVerb::release:
    case BeanstalkdVerb::bury: return start_settling(command);
    case BeanstalkdVerb::touch: touch(command.id); return true;
    case BeanstalkdVerb::use: use(command.tube); return true;
    case BeanstalkdVerb::watch: watch(command.tube); return true;
    case BeanstalkdVerb::ignore: ignore(command.tube); return true;
    case BeanstalkdVerb::list_tube_used: reply(fmt::format("USING {}\r\n", used_->name)); return true;
    case BeanstalkdVerb::list_tubes_watched: list_watched(); return true;
    case BeanstalkdVerb::quit: quitting_ = true; return true;
    default: return false;
  }
}

bool BeanstalkdSession::start_put(const BeanstalkdCommand& command) {
  if (core_->is_draining) {
    reply("DRAINING\r\n");
    return true;
  }
  if (!core_->has_queue(*used_)) return false;
  if (!settles_.empty() || puts_.size() >= kMostGathered) send_gathered();
  NewJob& job = puts_.emplace_back();
  job.queue = used_->name;
  job.priority = job_priority(command.priority);
  if (command.delay > 0) job.due_at = engine_.calendar_now() + seconds{command.delay};
  job.lease_time = std::min<Duration>(seconds{std::max(command.ttr, std::uint32_t{1})}, kLongestLease);
  job.payload = command.body;
  gathered_bytes_ += command.body.size();
  unanswered_bytes_ += command.body.size();
  ++core_->jobs_put;
  ++used_->puts;
  expect_reply();
  return true;
}

bool BeanstalkdSession::start_settling(const BeanstalkdCommand& command) {
  const auto held = held_.find(command.id);
  if (held == held_.end() && command.verb == BeanstalkdVerb::delete_job) return false;
  if (held == held_.end()) {
    reply(kNotFound);
    return true;
  }
  if (!puts_.empty() || settles_.size() >= kMostGathered) send_gathered();
  settles_.push_back({held->second.token, verdict_of(command)});
  settlings_.push_back({command.verb, command.id});
  if (command.verb == BeanstalkdVerb::delete_job) {
    core_->note_delete(held->second.tube);
    ++unanswered_deletes_;
  }
  held_.erase(held);
  expect_reply();
  return true;
}

void BeanstalkdSession::touch(JobId id) {
  const auto held = held_.find(id);
  if (held == held_.end()) return reply(kNotFound);
  if (!engine_.renew(held->second.token)) {
    held_.erase(held);
    return reply(kNotFound);
  }
  held->second.until = saturating_add(core_->loop.time(), held->second.ttr);
  first_until_ = std::min(first_until_, held->second.until);
  reply("TOUCHED\r\n");
}

void BeanstalkdSession::use(std::string_view name) {
  BeanstalkdTube& tube = core_->tubes.find_or_make(name);
  ++tube.using_it;
  --used_->using_it;
  core_->let_go(*std::exchange(used_, &tube));
  reply(fmt::format("USING {}\r\n", used_->name));
}

void BeanstalkdSession::watch(std::string_view name) {
  BeanstalkdTube& tube = core_->tubes.find_or_make(name);
  if (std::ranges::find(watched_, &tube) == watched_.end()) {
    watched_.push_back(&tube);
    ++tube.watching;
  }
  reply(fmt::format("WATCHING {}\r\n", watched_.size()));
}

// The last one takes its place, as in beanstalkd.
void BeanstalkdSession::ignore(std::string_view name) {
  const auto found = std::ranges::find(watched_, name, &BeanstalkdTube::name);
  if (found != watched_.end()) {
    if (watched_.size() == 1) return reply("NOT_IGNORED\r\n");
    BeanstalkdTube& tube = **found;
    *found = watched_.back();
    watched_.pop_back();
    --tube.watching;
    core_->let_go(tube);
  }
  reply(fmt::format("WATCHING {}\r\n", watched_.size()));
}

void BeanstalkdSession::list_watched() {
  std::vector<std::string_view> names;
  for (const BeanstalkdTube* tube : watched_) names.push_back(tube->name);
  reply(beanstalkd_list(names));
}

// --- what goes to the engine in runs ---------------------------------------------------------------------------------

void BeanstalkdSession::send_gathered() {
  EventLoop& loop = core_->loop;
  if (!puts_.empty()) {
    const Number first = next_number() - puts_.size();
    const std::size_t bytes = std::exchange(gathered_bytes_, 0);
    loop.create_task(put_all(shared_from_this(), first, std::exchange(puts_, {}), bytes), {}, Start::eagerly);
  }
  if (!settles_.empty()) {
    const Number first = next_number() - settles_.size();
    loop.create_task(settle_all(shared_from_this(), first, std::exchange(settles_, {}), std::exchange(settlings_, {})),
                     {}, Start::eagerly);
  }
}

Coro<void> BeanstalkdSession::put_all(std::shared_ptr<BeanstalkdSession> self, Number first, std::vector<NewJob> jobs,
                                      std::size_t bytes) {
  const std::size_t count = jobs.size();
  const auto replies = co_await self->engine_.book().put_each(std::move(jobs));
  self->unanswered_bytes_ -= bytes;
  fmt::memory_buffer text;
  for (std::size_t i = 0; i < count; ++i) {
    if (!replies || !(*replies)[i]) {
      self->answer(first + i, refusal_word(replies ? (*replies)[i].error() : replies.error()));
      continue;
    }
    text.clear();
    fmt::format_to(std::back_inserter(text), "INSERTED {}\r\n", (*replies)[i]->id);
    self->answer(first + i, {text.data(), text.size()});
  }
  self->flush();
}

Coro<void> BeanstalkdSession::settle_all(std::shared_ptr<BeanstalkdSession> self, Number first,
                                         std::vector<RunEnd> calls, std::vector<Settling> settlings) {
  const auto settled = co_await self->engine_.settle_each(std::move(calls));
  for (std::size_t i = 0; i < settlings.size(); ++i) {
    const auto [verb, id] = settlings[i];
    if (!settled || (*settled)[i].refused) {
      self->answer(first + i, kInternalError);
    } else if ((*settled)[i].settled) {
      self->answer(first + i, done_word(verb));
    } else if (verb == BeanstalkdVerb::delete_job) {
      // Its lease has run out, so it waits again, unless another has it.
      self->answer(first + i, co_await self->core_->delete_job(id));
    } else {
      self->answer(first + i, kNotFound);
    }
    if (verb == BeanstalkdVerb::delete_job) --self->unanswered_deletes_;
  }
  self->flush();
}

// --- commands that wait for those before them ------------------------------------------------------------------------

Coro<void> BeanstalkdSession::run_alone(const BeanstalkdCommand& command) {
  send_gathered();
  co_await all_answered();
  if (command.verb != BeanstalkdVerb::put) {
    const std::string answer = co_await answer_alone(command);
    co_await note_change(command, answer);
    reply(answer);
  } else if (auto made = co_await core_->make_queue(used_->name); !made) {
    reply(kInternalError);
  } else {
    start_put(command);
  }
}

Coro<std::string> BeanstalkdSession::answer_alone(const BeanstalkdCommand& command) {
  BeanstalkdCore& core = *core_;
  switch (command.verb) {
    case BeanstalkdVerb::peek: return core.peek(command.id);
    case BeanstalkdVerb::peek_ready: return core.peek_ready(used_->name);
    case BeanstalkdVerb::peek_delayed: return core.peek_delayed(used_->name);
    case BeanstalkdVerb::peek_buried: return core.peek_buried(used_->name);
    case BeanstalkdVerb::reserve_job: return reserve_job(command.id);
    case BeanstalkdVerb::delete_job: return core.delete_job(command.id);
    case BeanstalkdVerb::kick: return core.kick(used_->name, command.bound);
    case BeanstalkdVerb::kick_job: return core.kick_job(command.id);
    case BeanstalkdVerb::pause_tube: return core.pause_tube(std::string(command.tube), command.delay);
    case BeanstalkdVerb::list_tubes: return core.list_tubes();
    case BeanstalkdVerb::stats_job: return core.stats_job(command.id);
    case BeanstalkdVerb::stats_tube: return core.stats_tube(std::string(command.tube));
    default: return core.stats();
  }
}

Coro<void> BeanstalkdSession::note_change(const BeanstalkdCommand& command, std::string_view answer) {
  const bool is_pause = command.verb == BeanstalkdVerb::pause_tube && answer.starts_with("PAUSED");
  const bool is_kick = command.verb == BeanstalkdVerb::kick && answer.starts_with("KICKED") && answer != "KICKED 0\r\n";
  if (!is_pause && !is_kick) co_return;
  AuditEntry change{.who = peer_.empty() ? "beanstalkd" : "beanstalkd " + peer_, .from = peer_};
  change.method = is_pause ? "pause-tube" : "kick";
  change.path = fmt::format("/v1/queues/{}", is_pause ? command.tube : std::string_view(used_->name));
  change.request =
      is_pause ? fmt::format(R"({{"delay":{}}})", command.delay) : fmt::format(R"({{"bound":{}}})", command.bound);
  co_await core_->note_change(std::move(change));
}

Coro<std::string> BeanstalkdSession::reserve_job(JobId id) {
  const auto job = co_await core_->job_of(id);
  if (!job && job.error().code == Errc::not_found) co_return std::string(kNotFound);
  auto leased = co_await engine_.lease_job(id, {.worker = worker_});
  const bool there_is_none =
      !leased && (leased.error().code == Errc::not_found || leased.error().code == Errc::invalid_input);
  if (!leased && !there_is_none) co_return std::string(kInternalError);
  if (there_is_none || !*leased) co_return std::string(kNotFound);
  if (!std::exchange(is_worker_, true)) ++core_->workers;
  hold(**leased);
  std::string answer;
  append_job(answer, "RESERVED", id, (*leased)->job.payload);
  co_return answer;
}

// --- answering -------------------------------------------------------------------------------------------------------

// A run of puts or settlements has numbers without a gap.
void BeanstalkdSession::reply(std::string_view text) {
  send_gathered();
  if (replies_.empty()) {
    ++first_number_;
    out_ += text;
  } else {
    replies_.push_back({true, std::string(text)});
  }
}

void BeanstalkdSession::answer(Number number, std::string_view text) {
  --unanswered_;
  if (number != first_number_) {
    Reply& its = replies_[number - first_number_];
    its.text = text;
    its.is_known = true;
    return;
  }
  out_ += text;
  do {
    replies_.pop_front();
    ++first_number_;
    if (replies_.empty() || !replies_.front().is_known) return;
    out_ += replies_.front().text;
  } while (true);
}

void BeanstalkdSession::flush() noexcept {
  answered_.set();
  if (stream_ == nullptr || stream_->is_closing()) return;
  try {
    if (!out_.empty()) stream_->write(out_);
  } catch (const std::exception&) {
    stream_->abort();  // more than it may hold
  }
  out_.clear();
  find_room();
  if (stopping_ && is_reading_ && unanswered_ == 0) stream_->close();
}

// Small ones are not counted: a connection costs as much.
void BeanstalkdSession::count_unsent() noexcept {
  if (core_->options.room == nullptr) return;
  const std::size_t bytes = unsent() <= AnswerRoom::kSmall ? 0 : unsent();
  if (bytes == counted_bytes_) return;
  counted_.reset();
  counted_ = bytes == 0 ? nullptr : core_->options.room->take_anyway(kAnswersOf, bytes);
  counted_bytes_ = bytes;
}

void BeanstalkdSession::find_room() noexcept {
  if (core_->options.room == nullptr || unsent() <= AnswerRoom::kSmall) return count_unsent();
  counted_.reset();
  counted_bytes_ = 0;
  if (core_->options.room->take(kAnswersOf, unsent()) == nullptr) core_->make_answer_room(*this);
  count_unsent();
}

void BeanstalkdSession::let_go() noexcept {
  stream_->abort();
  count_unsent();
}

Coro<void> BeanstalkdSession::next_answer() {
  answered_.clear();
  co_await answered_.wait();
}

Coro<void> BeanstalkdSession::all_answered() {
  while (unanswered_ > 0) co_await next_answer();
}

}  // namespace argiope
