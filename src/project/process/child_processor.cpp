#include "project/process/internal/child_processor.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <list>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "project/process/bounded_log.hpp"
#include "project/process/processor_child.hpp"

namespace argiope {
namespace {

// A file as far as a change of it shows.
struct FileStamp {
  std::string path;
  std::uint64_t inode = 0, size = 0;
  std::int64_t seconds = 0, nanoseconds = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

std::vector<FileStamp> stamps_of(const std::vector<std::string>& command, const std::string& directory) {
  std::vector<FileStamp> stamps;
  for (std::string& path : files_of_command(command, directory)) {
    struct stat status {};
    FileStamp stamp;
    if (::stat(path.c_str(), &status) == 0) {
      stamp.inode = status.st_ino;
      stamp.size = static_cast<std::uint64_t>(status.st_size);
      stamp.seconds = status.st_mtim.tv_sec;
      stamp.nanoseconds = status.st_mtim.tv_nsec;
    }
    stamp.path = std::move(path);
    stamps.push_back(std::move(stamp));
  }
  return stamps;
}

using SharedChild = std::shared_ptr<ProcessorChild>;

// A page that waits its turn.
struct RoomWaiter {
  Event served;
  SharedChild child;  // with room that is reserved
  std::optional<ProcessorFailure> refusal;
};

}  // namespace

// The children, who waits for one, and when the next may be started.
class ChildProcessor::Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(EventLoop& loop, ChildProcessorOptions options)
      : loop_(loop),
        options_(std::make_shared<const ChildProcessorOptions>(std::move(options))),
        log_(loop, options_->limits.log_bytes, options_->on_log) {}

  static Coro<Result<ProcessorDescription>> describe(std::shared_ptr<Pool> self);
  static Coro<void> rest(std::shared_ptr<Pool> self);
  static Coro<VisitAnswer> process(std::shared_ptr<Pool> self, const PageCall& call);
  static Coro<void> close(std::shared_ptr<Pool> self);
  static Coro<void> when_changed(std::shared_ptr<Pool> self);
  void abandon();

  std::size_t capacity() const;
  Counts counts() const;
  std::vector<pid_t> pids() const;
  const std::string& trouble() const noexcept { return trouble_; }

 private:
  static Coro<SharedChild> room(std::shared_ptr<Pool> self, std::optional<ProcessorFailure>& refusal);
  void serve();
  SharedChild with_room() const;
  bool is_current(const ProcessorChild& child) const noexcept { return child.version() == version_; }
  std::size_t count_of(ProcessorChild::State state) const;
  // Starts children for those who wait. Why none comes, where none can.
  std::optional<ProcessorFailure> start_some();
  void start_one();
  void look_at_files();
  bool have_files_changed() const {
    return has_started_ && stamps_of(options_->command, options_->directory) != stamps_;
  }
  void note(const std::vector<std::string>& notes);
  void child_described(ProcessorChild& child);
  void child_ended(ProcessorChild& child, const ChildEnd& end);
  void could_not_start(std::string why);
  void set_trouble(std::string why);

  EventLoop& loop_;
  const std::shared_ptr<const ChildProcessorOptions> options_;
  BoundedLog log_;
  std::list<SharedChild> children_;
  std::list<RoomWaiter*> waiting_;
  std::uint64_t next_id_ = 1;
  std::uint64_t started_ = 0, killed_ = 0;
  std::vector<std::string> noted_;
  bool is_closed_ = false;
  Event changed_;  // a child was described, or has ended

  // The script, as its files were when it was last started.
  std::uint64_t version_ = 0;
  bool has_started_ = false;
  std::vector<FileStamp> stamps_;
  TimePoint looked_at_ = TimePoint::min();
  std::optional<ProcessorDescription> description_;  // of this version
  bool was_described_ = false;                       // in any version
  std::optional<Error> refused_;                     // this version
  bool is_low_ = false;  // one of it was killed, and no child that was started at a low priority since has answered

  std::string trouble_;
  Duration wait_{};  // of the last start that failed; 0: none did
  TimePoint next_start_ = TimePoint::min();
};

ChildProcessor::ChildProcessor(EventLoop& loop, ChildProcessorOptions options)
    : pool_(std::make_shared<Pool>(loop, std::move(options))) {}
ChildProcessor::~ChildProcessor() { pool_->abandon(); }
Coro<Result<ProcessorDescription>> ChildProcessor::describe() { return Pool::describe(pool_); }
Coro<void> ChildProcessor::rest() { return Pool::rest(pool_); }
Coro<VisitAnswer> ChildProcessor::process(const PageCall& call) { return Pool::process(pool_, call); }
std::size_t ChildProcessor::capacity() const { return pool_->capacity(); }
Coro<void> ChildProcessor::close() { return Pool::close(pool_); }
Coro<void> ChildProcessor::when_changed() { return Pool::when_changed(pool_); }
ChildProcessor::Counts ChildProcessor::counts() const { return pool_->counts(); }
std::vector<pid_t> ChildProcessor::pids() const { return pool_->pids(); }
const std::string& ChildProcessor::trouble() const { return pool_->trouble(); }

// --- describe

Coro<Result<ProcessorDescription>> ChildProcessor::Pool::describe(std::shared_ptr<Pool> self) {
  self->looked_at_ = TimePoint::min();
  self->look_at_files();
  if (self->next_start_ > self->loop_.time() && !self->description_) co_await sleep_until(self->next_start_);
  try {
    for (;;) {
      if (self->is_closed_) co_return fail(Errc::cancelled, "the project is being stopped");
      if (self->description_) co_return *self->description_;
      if (self->refused_) co_return std::unexpected(*self->refused_);
      if (self->count_of(ProcessorChild::State::starting) == 0) {
        if (self->next_start_ > self->loop_.time()) co_return fail(Errc::protocol, "the processor " + self->trouble_);
        self->start_one();
      }
      self->changed_.clear();
      co_await self->changed_.wait();
    }
  } catch (const CancelledError&) {
    // Children that were started for nobody else.
    if (self->waiting_.empty()) {
      for (const SharedChild& child : std::list(self->children_)) {
        if (child->state() == ProcessorChild::State::starting) child->dismiss();
      }
    }
    throw;
  }
}

Coro<void> ChildProcessor::Pool::when_changed(std::shared_ptr<Pool> self) {
  while (!self->have_files_changed()) co_await sleep(self->options_->look_every);
}

Coro<void> ChildProcessor::Pool::rest(std::shared_ptr<Pool> self) {
  for (const SharedChild& child : std::list(self->children_)) {
    if (child->load() == 0) child->drain();
  }
  const auto is_ending = [](const SharedChild& child) {
    return child->state() == ProcessorChild::State::draining && child->load() == 0;
  };
  while (!self->is_closed_ && std::ranges::any_of(self->children_, is_ending)) {
    self->changed_.clear();
    co_await self->changed_.wait();
  }
}

// --- pages

Coro<VisitAnswer> ChildProcessor::Pool::process(std::shared_ptr<Pool> self, const PageCall& call) {
  for (bool may_be_repeated = true;; may_be_repeated = false) {
    self->look_at_files();
    std::optional<ProcessorFailure> refusal;
    const SharedChild child = co_await room(self, refusal);
    if (child == nullptr) {
      VisitAnswer answer;
      answer.failure = std::move(refusal);
      co_return answer;
    }
    std::optional<VisitAnswer> answer = co_await ProcessorChild::visit(child, call, self->next_id_++, may_be_repeated);
    if (answer && child->is_low() && child->state() != ProcessorChild::State::ended) self->is_low_ = false;
    if (answer) co_return std::move(*answer);
  }
}

Coro<SharedChild> ChildProcessor::Pool::room(std::shared_ptr<Pool> self, std::optional<ProcessorFailure>& refusal) {
  RoomWaiter waiter;
  const auto place = self->waiting_.insert(self->waiting_.end(), &waiter);
  self->serve();
  try {
    if (!waiter.served.is_set()) co_await waiter.served.wait();
  } catch (...) {
    if (!waiter.served.is_set()) self->waiting_.erase(place);
    if (waiter.child != nullptr) waiter.child->give_back();
    throw;
  }
  refusal = std::move(waiter.refusal);
  co_return std::move(waiter.child);
}

// Gives room to those who wait, in their order; then starts children for the others, or says why there are none.
void ChildProcessor::Pool::serve() {
  while (!waiting_.empty()) {
    SharedChild child = with_room();
    if (child == nullptr) break;
    RoomWaiter& waiter = *waiting_.front();
    waiting_.pop_front();
    child->reserve();
    waiter.child = std::move(child);
    waiter.served.set();
  }
  if (waiting_.empty()) return;
  const std::optional<ProcessorFailure> refusal = start_some();
  if (!refusal) return;
  for (RoomWaiter* const waiter : std::exchange(waiting_, {})) {
    waiter->refusal = *refusal;
    waiter->served.set();
  }
}

// The one with the least to do.
SharedChild ChildProcessor::Pool::with_room() const {
  SharedChild best;
  for (const SharedChild& child : children_) {
    if (is_current(*child) && child->has_room() && (best == nullptr || child->load() < best->load())) best = child;
  }
  return best;
}

std::size_t ChildProcessor::Pool::count_of(ProcessorChild::State state) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      children_, [&](const SharedChild& child) { return is_current(*child) && child->state() == state; }));
}

std::optional<ProcessorFailure> ChildProcessor::Pool::start_some() {
  if (is_closed_) return ProcessorFailure{.text = "the project is being stopped", .not_now = true};
  const TimePoint now = loop_.time();
  if (refused_) return ProcessorFailure{.text = refused_->message, .delay = options_->longest_wait, .not_now = true};
  const std::size_t starting = count_of(ProcessorChild::State::starting);
  const std::size_t ready = count_of(ProcessorChild::State::ready);
  if (now < next_start_) {
    if (starting + ready > 0) return std::nullopt;
    return ProcessorFailure{.text = "the processor " + trouble_, .delay = next_start_ - now, .not_now = true};
  }
  const std::size_t room_of_one = description_ ? description_->concurrency : 1;
  const std::size_t wanted = (waiting_.size() + room_of_one - 1) / room_of_one;
  const std::size_t most = std::max<std::size_t>(options_->workers, 1) -
                           std::min(starting + ready, std::max<std::size_t>(options_->workers, 1));
  for (std::size_t i = starting; i < wanted && i < starting + most; ++i) start_one();
  return std::nullopt;
}

void ChildProcessor::Pool::start_one() {
  if (!std::exchange(has_started_, true)) {
    stamps_ = stamps_of(options_->command, options_->directory);
    if (options_->on_changed) options_->on_changed();
  }
  const std::weak_ptr<Pool> weak = weak_from_this();
  const auto child =
      std::make_shared<ProcessorChild>(loop_, options_, version_, is_low_,
                                       ProcessorChild::Told{.described =
                                                                [weak](ProcessorChild& its) {
                                                                  if (const auto pool = weak.lock())
                                                                    pool->child_described(its);
                                                                },
                                                            .has_room =
                                                                [weak](ProcessorChild&) {
                                                                  if (const auto pool = weak.lock()) pool->serve();
                                                                },
                                                            .ended =
                                                                [weak](ProcessorChild& its, const ChildEnd& end) {
                                                                  if (const auto pool = weak.lock())
                                                                    pool->child_ended(its, end);
                                                                },
                                                            .log =
                                                                [weak](PageLog line) {
                                                                  if (const auto pool = weak.lock())
                                                                    pool->log_.add(std::move(line));
                                                                },
                                                            .notes =
                                                                [weak](const std::vector<std::string>& notes) {
                                                                  if (const auto pool = weak.lock()) pool->note(notes);
                                                                }});
  children_.push_back(child);
  ++started_;
  child->start();
}

void ChildProcessor::Pool::look_at_files() {
  const TimePoint now = loop_.time();
  if (!has_started_ || now < saturating_add(looked_at_, options_->look_every)) return;
  looked_at_ = now;
  std::vector<FileStamp> found = stamps_of(options_->command, options_->directory);
  if (found == stamps_) return;
  stamps_ = std::move(found);
  ++version_;
  description_.reset();
  refused_.reset();
  is_low_ = false;
  wait_ = Duration{};
  next_start_ = TimePoint::min();
  if (options_->on_changed) options_->on_changed();
  log_.add({"info", "the script has changed: a processor of its new version is started"});
  for (const SharedChild& child : std::list(children_)) child->drain();
}

// --- children

// Each child's sandbox has the same: once is enough.
void ChildProcessor::Pool::note(const std::vector<std::string>& notes) {
  if (noted_ == notes) return;
  noted_ = notes;
  for (const std::string& its : notes) log_.add({"info", its});
}

void ChildProcessor::Pool::child_described(ProcessorChild& child) {
  if (is_current(child)) {
    const bool is_first = !description_;
    description_ = child.description();
    set_trouble({});
    if (is_first && was_described_ && options_->on_described) options_->on_described(*description_);
    was_described_ = true;
  }
  changed_.set();
  serve();
}

void ChildProcessor::Pool::child_ended(ProcessorChild& child, const ChildEnd& end) {
  std::erase_if(children_, [&](const SharedChild& other) { return other.get() == &child; });
  if (end.is_killed) ++killed_;
  if (end.is_killed && !end.was_asked && is_current(child)) is_low_ = true;
  if (end.answered > 0) wait_ = Duration{};
  if (is_current(child) && !is_closed_ && !end.was_asked) {
    if (end.refused) {
      refused_ = end.refused;
      description_.reset();
      set_trouble(end.refused->message);
    } else if (!end.is_described || (!end.had_pages && !(end.is_success && end.answered > 0))) {
      could_not_start(end.why);
    }
  }
  changed_.set();
  serve();
}

void ChildProcessor::Pool::could_not_start(std::string why) {
  wait_ = wait_ == Duration{} ? options_->first_wait : std::min(2 * wait_, options_->longest_wait);
  next_start_ = saturating_add(loop_.time(), wait_);
  log_.add({"error", "the processor " + why});
  set_trouble(std::move(why));
}

void ChildProcessor::Pool::set_trouble(std::string why) {
  if (why == trouble_) return;
  trouble_ = std::move(why);
  if (options_->on_trouble) options_->on_trouble(trouble_);
}

// --- end

Coro<void> ChildProcessor::Pool::close(std::shared_ptr<Pool> self) {
  self->is_closed_ = true;
  self->serve();
  for (const SharedChild& child : std::list(self->children_)) {
    child->state() == ProcessorChild::State::starting ? child->dismiss() : child->end_input();
  }
  self->changed_.set();
  while (!self->children_.empty()) {
    self->changed_.clear();
    co_await self->changed_.wait();
  }
  self->log_.tell_dropped();
}

void ChildProcessor::Pool::abandon() {
  is_closed_ = true;
  serve();
  for (const SharedChild& child : std::exchange(children_, {})) child->abandon();
  changed_.set();
}

std::size_t ChildProcessor::Pool::capacity() const {
  return std::max<std::size_t>(options_->workers, 1) * (description_ ? description_->concurrency : 1);
}

ChildProcessor::Counts ChildProcessor::Pool::counts() const {
  Counts counts{
      .children = children_.size(), .pages = 0, .waiting = waiting_.size(), .started = started_, .killed = killed_};
  for (const SharedChild& child : children_) counts.pages += child->pages();
  return counts;
}

std::vector<pid_t> ChildProcessor::Pool::pids() const {
  std::vector<pid_t> found;
  for (const SharedChild& child : children_) {
    if (const pid_t pid = child->pid(); pid != 0) found.push_back(pid);
  }
  return found;
}

}  // namespace argiope
