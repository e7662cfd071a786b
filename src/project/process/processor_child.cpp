#include "project/process/processor_child.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <simdjson.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/threads.hpp"
#include "argiope/base/clock.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"

namespace argiope {
namespace {

constexpr std::size_t kReadPiece = 64 * 1024;
constexpr std::size_t kWritePiece = 256 * 1024;
// Shorter bodies go out with their line.
constexpr std::size_t kShortBody = 128 * 1024;
// Longer ones are read on a thread.
constexpr std::size_t kLongScriptLine = 512 * 1024;
constexpr std::size_t kLongestErrorLine = 16 * 1024;
constexpr std::size_t kMostShown = 200;
// Of standard error, when a page is done.
constexpr std::size_t kMostErrorPieces = 16;
// Of a process that was killed, and of what it said last.
constexpr Duration kPatienceWithKilled = std::chrono::seconds{10};
constexpr Duration kPatienceWithErrors = std::chrono::seconds{1};
constexpr std::size_t kMostQueriesTogether = 16;
constexpr std::size_t kMostAnswersTogether = 1024 * 1024;     // bytes; one answer may be longer
constexpr std::size_t kMostWaitingQueries = 4 * 1024 * 1024;  // or a single one
constexpr std::size_t kMostUnreadAnswers = 4 * 1024 * 1024;
constexpr int kShellsSignals = 128;

// bubblewrap gives a signal as shells do.
std::string described_status(int status) {
  const int number = status < 0                                                 ? -status
                     : status > kShellsSignals && status <= kShellsSignals + 64 ? status - kShellsSignals
                                                                                : 0;
  if (number == 0) return fmt::format("ended with status {}", status);
  const char* const name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("was ended by SIG{}", name) : fmt::format("was ended by signal {}", number);
}

}  // namespace

struct ProcessorChild::Page {
  Page(std::uint64_t its_id, const PageCall& its_call, const ProcessorLimits& limits)
      : id(its_id), call(&its_call), visit(its_call.response.url, limits), body(its_call.response.body) {}

  const std::uint64_t id;
  const PageCall* call;  // null: nobody waits for it any more
  OpenVisit visit;
  std::string_view body;     // what is still to be sent; the call's
  std::string kept_body;     // or, when nobody waits any more, ours
  bool is_sent = false;      // at least begun
  bool is_answered = false;  // at least by one line
  bool may_be_repeated = false;
  Handle deadline;
  Event ended;
  std::optional<VisitAnswer> answer;
  std::unique_ptr<PageSelector> selector;  // from its first query on; the thread's while it answers
  std::atomic<bool> is_over = false;       // its queries need no answers any more
};

struct ProcessorChild::Asked {
  SharedPage page;
  SelectQuery query;
  std::size_t bytes;
};

struct ProcessorChild::Outgoing {
  std::string line;
  SharedPage page;  // whose body follows; null: none
};

ProcessorChild::ProcessorChild(EventLoop& loop, std::shared_ptr<const ChildProcessorOptions> options,
                               std::uint64_t version, bool is_low, Told told)
    : loop_(loop),
      options_(std::move(options)),
      version_(version),
      is_low_(is_low),
      told_(std::move(told)),
      life_(loop, "a processor"),
      pipes_(loop, "a processor's pipes") {}

ProcessorChild::~ProcessorChild() {
  for (Handle* const timer : {&describe_timer_, &end_timer_, &idle_timer_}) timer->cancel();
}

// --- life

void ProcessorChild::start() { life_.run(shared_from_this(), live(shared_from_this())); }

Coro<void> ProcessorChild::live(Shared self) {
  if (!self->killed_for_ && self->start_process()) {
    self->pipes_.run(self, write_out(self));
    self->pipes_.run(self, read_errors(self));
    self->send(
        write_describe(self->options_->project, self->options_->argiope, self->options_->use, self->options_->limits));
    self->describe_timer_ = self->loop_.call_later(self->options_->describe_time, [weak = self->weak_from_this()] {
      const Shared child = weak.lock();
      if (child != nullptr)
        child->kill(
            fmt::format("did not answer `describe` within {}", format_duration(child->options_->describe_time)));
    });
    try {
      co_await read_lines(self);
    } catch (const CancelledError&) {
      throw;
    } catch (const std::exception& error) {
      // Without memory, say. Its pages must not wait for ever.
      self->kill(fmt::format("could not be heard: {}", error.what()));
    }
    co_await wait_for_end(self);
  }
  self->finish();
}

bool ProcessorChild::start_process() {
  SandboxOptions sandbox = options_->sandbox;
  sandbox.is_low |= is_low_;
  const Result<SandboxedCommand> confined = confine(options_->command, options_->directory, sandbox);
  if (!confined) {
    cannot_start_ = confined.error().message;
    return false;
  }
  if (options_->mask) {
    for (const std::string& secret : confined->secrets) options_->mask->add(secret);
  }
  if (told_.notes && !confined->notes.empty()) told_.notes(confined->notes);
  SubprocessOptions how{.in = Stdio::pipe, .out = Stdio::pipe, .err = Stdio::pipe};
  how.environment = confined->environment;
  how.working_directory = confined->working_directory;
  how.supervised = true;
  how.stream.write_limit = std::size_t{1} << 40;  // what is unsent is counted here
  try {
    process_.emplace(create_subprocess_exec(confined->args, how));
  } catch (const std::exception& error) {
    cannot_start_ = error.what();
  }
  return process_.has_value();
}

// Its output has ended, or it was killed.
Coro<void> ProcessorChild::wait_for_end(Shared self) {
  if (!self->killed_for_) {
    try {
      co_await wait_for(self->process_->wait(), self->options_->end_time);
    } catch (const TimeoutError&) {
      self->kill("closed its standard output and went on");
    }
  }
  if (!self->process_->returncode()) {
    try {
      co_await wait_for(self->process_->wait(), kPatienceWithKilled);
    } catch (const TimeoutError&) {
    }
  }
  // The last words say why.
  self->has_ended_ = true;
  self->has_outgoing_.set();
  self->process_->in().abort();
  try {
    co_await wait_for(self->pipes_.quiet(), kPatienceWithErrors);
  } catch (const TimeoutError&) {
    // Another process holds the pipe open; or we were stopped for as long, and what was said has not been read.
    self->take_what_is_there();
    self->process_->err().abort();
  }
  co_await self->pipes_.quiet();
}

void ProcessorChild::finish() {
  for (Handle* const timer : {&describe_timer_, &end_timer_, &idle_timer_}) timer->cancel();
  ChildEnd end;
  end.why = how_it_ended();
  end.refused = refused_;
  end.is_described = state_ == State::ready || state_ == State::draining;
  end.was_asked = input_ends_;
  end.had_pages = std::ranges::any_of(pages_, [](const auto& page) { return page.second->is_sent; });
  end.is_killed = killed_for_.has_value();
  end.is_success = !end.is_killed && process_ && process_->returncode() == 0;
  end.answered = answered_;
  state_ = State::ended;
  process_.reset();
  outgoing_.clear();
  if (end.is_killed && !refused_ && !(end.was_asked && !end.is_described))
    log({"error", fmt::format("the processor was killed: it {}", *killed_for_)}, nullptr);
  fail_pages(end);
  if (told_.ended) told_.ended(*this, end);
}

std::string ProcessorChild::how_it_ended() const {
  if (!cannot_start_.empty()) return "cannot be started: " + cannot_start_;
  if (refused_) return refused_->message;
  if (killed_for_) return *killed_for_;
  const std::string how = process_ && process_->returncode() ? described_status(*process_->returncode()) : "ended";
  const std::string when = state_ == State::starting ? " before it answered `describe`" : "";
  const std::string words = last_error_.empty() ? "" : ": " + printable(last_error_, kMostShown);
  return how + when + words;
}

void ProcessorChild::fail_pages(const ChildEnd& end) {
  const bool is_alone = std::ranges::count_if(pages_, [](const auto& page) { return page.second->is_sent; }) == 1;
  for (const auto& [id, page] : std::exchange(pages_, {})) {
    page->deadline.cancel();
    page->is_over = true;
    const bool was_hardly_seen = end.is_success || (input_is_broken_ && end.is_killed);
    const bool is_another_s = !page->is_sent || (was_hardly_seen && page->may_be_repeated && !page->is_answered);
    if (end.was_asked) {
      page->answer = page->visit.take_failure({.text = "the project is being stopped", .not_now = true});
    } else if (!is_another_s) {
      page->answer = page->visit.take_failure(
          {.text = fmt::format("the processor {}{}", end.is_killed ? "was killed: it " : "", end.why),
           .is_crash = is_alone});
    }
    page->ended.set();
  }
}

void ProcessorChild::kill(std::string why) {
  if (killed_for_ || state_ == State::ended) return;
  killed_for_ = std::move(why);
  for (const auto& [id, page] : pages_) page->is_over = true;
  if (!process_) return;
  if (!process_->returncode()) process_->kill();
  // Nothing that it still says counts.
  process_->out().abort();
}

void ProcessorChild::abandon() {
  told_ = {};
  kill("has no owner any more");
}

void ProcessorChild::drain() {
  if (state_ == State::starting) return dismiss();
  if (state_ != State::ready) return;
  state_ = State::draining;
  idle_timer_.cancel();
  if (pages_.empty() && reserved_ == 0) end_input();
}

void ProcessorChild::end_input() {
  if (state_ == State::ended || std::exchange(input_ends_, true)) return;
  if (state_ == State::ready) state_ = State::draining;
  idle_timer_.cancel();
  has_outgoing_.set();
  end_within(fmt::format("did not end within {} of the end of its input", format_duration(options_->end_time)));
}

void ProcessorChild::end_within(std::string why) {
  end_timer_ = loop_.call_later(options_->end_time, [weak = weak_from_this(), why = std::move(why)] {
    if (const Shared child = weak.lock()) child->kill(why);
  });
}

void ProcessorChild::dismiss() {
  input_ends_ = true;
  kill("is not needed any more");
}

// --- pages

void ProcessorChild::reserve() noexcept { ++reserved_; }

void ProcessorChild::give_back() noexcept {
  --reserved_;
  page_has_gone();
}

Coro<std::optional<VisitAnswer>> ProcessorChild::visit(Shared self, const PageCall& call, std::uint64_t id,
                                                       bool may_be_repeated) {
  --self->reserved_;
  if (self->state_ == State::ended || self->input_ends_ || self->input_is_broken_ || self->killed_for_)
    co_return std::nullopt;
  const SharedPage page = std::make_shared<Page>(id, call, self->options_->limits);
  page->may_be_repeated = may_be_repeated;
  self->pages_.emplace(id, page);
  self->idle_timer_.cancel();
  self->unasked_bytes_ = self->error_bytes_ = 0;
  page->deadline =
      self->loop_.call_at(saturating_add(saturating_add(self->loop_.time(), call.time_limit), self->options_->grace),
                          [weak = self->weak_from_this(), id, limit = call.time_limit] {
                            if (const Shared child = weak.lock()) child->out_of_time(id, limit);
                          });
  self->outgoing_.push_back({argiope::write_page(call, id), page});
  self->has_outgoing_.set();
  try {
    co_await page->ended.wait();
  } catch (...) {
    self->leave(page);
    throw;
  }
  co_return std::move(page->answer);
}

// Nobody waits for it any more; what of it is on its way goes on.
void ProcessorChild::leave(const SharedPage& page) {
  page->call = nullptr;
  page->is_over = true;
  page->kept_body = page->is_sent ? std::string(page->body) : std::string();
  page->body = page->kept_body;
  if (page->is_sent || !pages_.contains(page->id)) return;
  std::erase_if(outgoing_, [&](const Outgoing& outgoing) { return outgoing.page == page; });
  page->deadline.cancel();
  pages_.erase(page->id);
  page_has_gone();
}

void ProcessorChild::out_of_time(std::uint64_t id, Duration limit) {
  if (pages_.contains(id)) kill(fmt::format("gave page {} no answer within {}", id, format_duration(limit)));
}

// All its lines have come.
void ProcessorChild::finish_page(const SharedPage& page) {
  take_what_is_there();
  page->deadline.cancel();
  page->is_over = true;
  page->answer = page->visit.take_answer();
  pages_.erase(page->id);
  error_bytes_ = 0;
  ++answered_;
  page->ended.set();
  page_has_gone();
}

void ProcessorChild::page_has_gone() {
  if (state_ == State::ended) return;
  if (pages_.empty() && reserved_ == 0) {
    if (state_ == State::draining) end_input();
    if (state_ == State::ready) rest();
  }
  if (told_.has_room) told_.has_room(*this);
}

void ProcessorChild::rest() {
  idle_timer_.cancel();
  const Duration limit = answered_ == 0 ? std::min(options_->described_time, options_->idle_time) : options_->idle_time;
  idle_timer_ = loop_.call_later(limit, [weak = weak_from_this()] {
    if (const Shared child = weak.lock()) child->drain();
  });
}

ProcessorChild::SharedPage ProcessorChild::find_page(std::uint64_t id) const {
  const auto found = pages_.find(id);
  return found == pages_.end() ? nullptr : found->second;
}

// --- its input

void ProcessorChild::send(std::string line) {
  outgoing_bytes_ += line.size();
  outgoing_.push_back({std::move(line), nullptr});
  has_outgoing_.set();
}

Coro<void> ProcessorChild::write_out(Shared self) {
  try {
    while (!self->has_ended_) {
      if (self->outgoing_.empty()) {
        if (self->input_ends_) break;
        self->has_outgoing_.clear();
        co_await self->has_outgoing_.wait();
        continue;
      }
      Outgoing next = std::move(self->outgoing_.front());
      self->outgoing_.pop_front();
      if (next.page == nullptr) self->outgoing_bytes_ -= next.line.size();
      if (next.page != nullptr) next.page->is_sent = true;
      co_await write_one(self, std::move(next));
    }
    self->process_->in().close();
  } catch (const std::system_error&) {
    // It reads no more: it has ended, or will be. Meanwhile it may answer what it has.
    self->input_is_broken_ = true;
    if (self->state_ == State::ready) self->state_ = State::draining;
    self->idle_timer_.cancel();
    self->process_->in().close();
    if (!self->input_ends_) self->end_within("closed its standard input, and went on");
  }
}

// The line is on its way in one piece with a short body. A body is looked at anew after each wait: its owner may have
// gone.
Coro<void> ProcessorChild::write_one(Shared self, Outgoing next) {
  Stream& in = self->process_->in();
  const SharedPage page = next.page;
  if (page != nullptr && page->body.size() <= kShortBody) {
    next.line += page->body;
    page->body = {};
  }
  in.write(next.line);
  next.line = {};
  co_await in.drain();
  while (page != nullptr && !page->body.empty()) {
    const std::string_view piece = page->body.substr(0, kWritePiece);
    page->body.remove_prefix(piece.size());
    in.write(piece);
    co_await in.drain();
  }
}

// --- its output

std::size_t ProcessorChild::longest_line() const noexcept {
  return state_ == State::starting ? ProcessorLimits::kMostDescribedBytes : options_->limits.line_bytes;
}

Coro<void> ProcessorChild::read_lines(Shared self) {
  std::string buffer;
  std::size_t looked_at = 0;
  try {
    while (!self->killed_for_ && co_await self->process_->out().read_onto(buffer, kReadPiece)) {
      std::size_t begin = 0;
      for (std::size_t end;
           !self->killed_for_ && (end = buffer.find('\n', std::max(begin, looked_at))) != std::string::npos;
           begin = end + 1) {
        const std::string_view line = std::string_view(buffer).substr(begin, end - begin);
        if (line.size() < kLongScriptLine) {
          self->take_line(line);
        } else if (line.size() <= self->longest_line()) {
          co_await take_long_line(self, std::string(line));
        } else {
          self->line_is_too_long(line);
        }
      }
      buffer.erase(0, begin);
      looked_at = buffer.size();
      if (buffer.size() > self->longest_line()) self->line_is_too_long(buffer);
      if (buffer.empty() && buffer.capacity() > 16 * kReadPiece) buffer.shrink_to_fit();
    }
  } catch (const std::system_error&) {
    // As if it had ended.
  }
}

void ProcessorChild::line_is_too_long(std::string_view line) {
  kill(fmt::format("wrote a line of more than {} bytes: {}", longest_line(), in_quotes(line, kMostShown)));
}

bool ProcessorChild::may_say_more(std::size_t bytes) {
  if (!pages_.empty()) return true;
  unasked_bytes_ += bytes;
  if (unasked_bytes_ <= options_->limits.answer_bytes) return true;
  kill(fmt::format("wrote more than {} bytes without having a page", options_->limits.answer_bytes));
  return false;
}

void ProcessorChild::take_line(std::string_view line) {
  if (!may_say_more(line.size() + 1) || is_empty_line(line)) return;
  if (line.size() > longest_line()) return line_is_too_long(line);
  take(read_script_message(
      line,
      [this](std::uint64_t id) {
        const SharedPage page = find_page(id);
        return page == nullptr ? nullptr : &page->visit;
      },
      options_->limits));
}

template <class Function>
Future<void> ProcessorChild::on_thread(ProcessorChild& self, Function function) {
  ThreadPoolExecutor* const executor = self.options_->executor;
  return executor != nullptr ? run_in_executor(*executor, std::move(function)) : to_thread(std::move(function));
}

// Meanwhile nothing else of its output is looked at, and nobody adds to the answers of its pages.
Coro<void> ProcessorChild::take_long_line(Shared self, std::string line) {
  if (!self->may_say_more(line.size() + 1)) co_return;
  std::map<std::uint64_t, SharedPage> pages = self->pages_;
  // The pages go back to this thread: what they hold must end here.
  struct Read {
    std::map<std::uint64_t, SharedPage> pages;
    std::optional<Result<ScriptMessage>> message;
  };
  const auto read = std::make_shared<Read>(std::move(pages));
  co_await on_thread(*self, [read, line = std::move(line), limits = self->options_->limits] {
    if (is_empty_line(line)) return;
    read->message = read_script_message(
        line,
        [&](std::uint64_t id) {
          const auto found = read->pages.find(id);
          return found == read->pages.end() ? nullptr : &found->second->visit;
        },
        limits);
  });
  if (read->message && !self->killed_for_) self->take(std::move(*read->message));
}

void ProcessorChild::take(Result<ScriptMessage> message) {
  if (!message) {
    if (state_ == State::starting && message.error().code == Errc::invalid_input) refused_ = message.error();
    return kill(fmt::format("wrote what is no message: {}", message.error().message));
  }
  std::visit([this](auto&& its) { take_message(std::move(its)); }, std::move(*message));
}

void ProcessorChild::take_message(DescribedMessage message) {
  if (state_ != State::starting) return kill("answered `describe` twice");
  for (PageLog& line : message.logs) log(std::move(line), nullptr);
  if (message.failure) {
    refused_ = Error{Errc::invalid_input, printable(message.failure->text, kMostShown)};
    if (!message.failure->where.empty())
      refused_->message += fmt::format(" ({})", printable(message.failure->where, kMostShown));
    if (!message.failure->trace.empty()) log({"error", message.failure->trace}, nullptr);
    return kill(refused_->message);
  }
  description_ = std::move(message.description);
  state_ = State::ready;
  describe_timer_.cancel();
  unasked_bytes_ = 0;
  rest();
  if (told_.described) told_.described(*this);
}

void ProcessorChild::take_message(AnswerPart part) {
  const SharedPage page = find_page(part.id);
  if (page == nullptr) return kill(fmt::format("answered page {}, which it has not", part.id));
  page->is_answered = true;
  const bool is_last = part.is_last;
  if (const Result<void> added = page->visit.add(std::move(part)); !added)
    return kill("wrote too much: " + added.error().message);
  if (is_last) finish_page(page);
}

void ProcessorChild::take_message(LogMessage message) {
  log(std::move(message.log), message.id ? find_page(*message.id) : nullptr);
}

void ProcessorChild::take_message(SelectQuery query) {
  const SharedPage page = find_page(query.id);
  if (page == nullptr) return kill(fmt::format("asked about page {}, which it has not", query.id));
  page->is_answered = true;
  const auto refuse = [&](Error error) {
    send(write_selected(query.id, query.query, std::unexpected(std::move(error))));
  };
  if (const Result<void> counted = page->visit.count_query(); !counted) return refuse(counted.error());
  if (query.wrong) return refuse(*query.wrong);
  if (page->call == nullptr) return refuse({Errc::cancelled, "the visit has been cancelled"});
  const std::size_t bytes = sizeof(Asked) + query.selector.size() + (query.html ? query.html->size() : 0);
  if (outgoing_bytes_ > kMostUnreadAnswers || (!queries_.empty() && query_bytes_ + bytes > kMostWaitingQueries)) {
    return refuse({Errc::too_large, "the answers to earlier queries have not been read"});
  }
  if (page->selector == nullptr) page->selector = std::make_unique<PageSelector>(page->call->response);
  query_bytes_ += bytes;
  queries_.push_back({page, std::move(query), bytes});
  if (!std::exchange(is_selecting_, true)) life_.run(shared_from_this(), answer_queries(shared_from_this()));
}

// A few together and one after the other, so that a child keeps one thread busy at most.
Coro<void> ProcessorChild::answer_queries(Shared self) {
  struct Work {
    std::vector<Asked> asked;
    std::vector<Result<std::string>> matches;  // of the first of them
  };
  while (!self->queries_.empty()) {
    const auto work = std::make_shared<Work>();
    for (; !self->queries_.empty() && work->asked.size() < kMostQueriesTogether; self->queries_.pop_front()) {
      self->query_bytes_ -= self->queries_.front().bytes;
      work->asked.push_back(std::move(self->queries_.front()));
    }
    co_await on_thread(*self, [work] {
      std::size_t bytes = 0;
      for (const Asked& asked : work->asked) {
        if (bytes > kMostAnswersTogether) break;
        work->matches.push_back(asked.page->is_over ? Result<std::string>()
                                                    : asked.page->selector->select(asked.query));
        if (work->matches.back()) bytes += work->matches.back()->size();
      }
    });
    for (std::size_t i = 0; i < work->matches.size(); ++i) {
      const auto& [page, query, bytes] = work->asked[i];
      if (self->pages_.contains(page->id))
        self->send(write_selected(query.id, query.query, std::exchange(work->matches[i], {})));
    }
    // Their turn comes first.
    for (; work->asked.size() > work->matches.size(); work->asked.pop_back()) {
      self->query_bytes_ += work->asked.back().bytes;
      self->queries_.push_front(std::move(work->asked.back()));
    }
  }
  self->is_selecting_ = false;
}

// --- its log

void ProcessorChild::log(PageLog line, const SharedPage& page) {
  if (page != nullptr) return page->visit.log(std::move(line));
  if (told_.log) told_.log(std::move(line));
}

Coro<void> ProcessorChild::read_errors(Shared self) {
  std::string piece;
  try {
    while (co_await self->process_->err().read_onto(piece, kReadPiece)) {
      self->take_errors(piece);
      piece.clear();
    }
  } catch (const std::system_error&) {
    // As if it had ended.
  }
  if (!self->error_line_.empty()) self->take_error_line(std::exchange(self->error_line_, {}));
}

// Between two reads of read_errors() all that has come is in the pipe.
void ProcessorChild::take_what_is_there() {
  char bytes[16 * 1024];
  for (std::size_t pieces = 0; pieces < kMostErrorPieces; ++pieces) {
    const ssize_t size = ::read(process_->err().native_handle(), bytes, sizeof bytes);
    if (size <= 0) break;
    take_errors(std::string_view(bytes, static_cast<std::size_t>(size)));
  }
  if (!error_line_.empty()) take_error_line(std::exchange(error_line_, {}));
}

void ProcessorChild::take_errors(std::string_view bytes) {
  if (!may_say_more(bytes.size())) return;
  if (error_bytes_ > options_->limits.log_bytes) return leave_out_errors(bytes);
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view more = bytes.substr(0, std::min(end, kLongestErrorLine - error_line_.size()));
    error_line_ += more;
    bytes.remove_prefix(more.size());
    if (!bytes.starts_with('\n') && error_line_.size() < kLongestErrorLine) return;
    if (bytes.starts_with('\n')) bytes.remove_prefix(1);
    take_error_line(std::exchange(error_line_, {}));
  }
}

// More than any log takes: as one piece, which is only counted, for single lines cost the time of others.
void ProcessorChild::leave_out_errors(std::string_view bytes) {
  error_line_.clear();
  std::string_view last = bytes;
  while (last.ends_with('\n')) last.remove_suffix(1);
  last.remove_prefix(last.rfind('\n') + 1);
  if (!last.empty()) last_error_ = to_valid_utf8(last.substr(0, 4 * kMostShown));
  const SharedPage page = pages_.size() == 1 ? pages_.begin()->second : nullptr;
  log({"stderr", page != nullptr ? std::string(bytes) : std::string(bytes.size(), ' ')}, page);
}

void ProcessorChild::take_error_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::string text = simdjson::validate_utf8(line.data(), line.size()) ? std::string(line) : to_valid_utf8(line);
  error_bytes_ += text.size() + 1;
  if (text.find_first_not_of(" \t") != std::string::npos) last_error_ = text.substr(0, 4 * kMostShown);
  log({"stderr", std::move(text)}, pages_.size() == 1 ? pages_.begin()->second : nullptr);
}

}  // namespace argiope
