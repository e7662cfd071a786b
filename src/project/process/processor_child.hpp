// One process of a project's script, from its start to its end: its pipes, the pages that it has, and its bounds. Which
// child gets a page, and when there is another one, is ChildProcessor's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/detail/future.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "async/internal/background.hpp"
#include "project/process/internal/child_processor.hpp"
#include "project/process/internal/page_selector.hpp"
#include "project/process/internal/processor_messages.hpp"

namespace argiope {

// How a child has ended.
struct ChildEnd {
  std::string why;               // as a clause: "ended with status 1"
  std::optional<Error> refused;  // `described` with an error, or wrong: not to be tried again
  bool is_described = false;
  bool was_asked = false;  // its input had been closed
  bool had_pages = false;  // when it ended
  bool is_killed = false;
  bool is_success = false;     // ended by itself, with status 0
  std::uint64_t answered = 0;  // pages
};

// Threads:  the loop's.
// Lifetime: its tasks keep it; ended() is the last that its owner hears.
class ProcessorChild : public std::enable_shared_from_this<ProcessorChild> {
 public:
  enum class State : std::uint8_t { starting, ready, draining, ended };

  // Calls that tell its owner of it. All are made from the child's own tasks.
  struct Told {
    std::function<void(ProcessorChild&)> described;
    std::function<void(ProcessorChild&)> has_room;
    std::function<void(ProcessorChild&, const ChildEnd&)> ended;
    std::function<void(PageLog)> log;
    std::function<void(const std::vector<std::string>&)> notes;  // of its sandbox
  };

  // `is_low`: at a low priority.
  ProcessorChild(EventLoop& loop, std::shared_ptr<const ChildProcessorOptions> options, std::uint64_t version,
                 bool is_low, Told told);
  ~ProcessorChild();

  // Once, of a child that is shared.
  void start();

  State state() const noexcept { return state_; }
  // Of the script's files, as its owner counts them.
  std::uint64_t version() const noexcept { return version_; }
  bool is_low() const noexcept { return is_low_; }
  const ProcessorDescription& description() const noexcept { return description_; }
  std::size_t pages() const noexcept { return pages_.size(); }
  bool has_room() const noexcept {
    return state_ == State::ready && pages_.size() + reserved_ < description_.concurrency;
  }
  std::size_t load() const noexcept { return pages_.size() + reserved_; }
  pid_t pid() const { return process_ ? process_->pid() : 0; }

  // Room for a page that is about to come, or does not come after all.
  void reserve() noexcept;
  void give_back() noexcept;

  // Takes the place that was reserved for it. `id`: larger than any before.
  // nullopt: the child has ended and had not begun with it, so another one may have it; where it `may_be_repeated`,
  // also when the child ended with status 0, or closed its input, before it had written anything about it: it may not
  // have seen the page.
  // Cancel: throws CancelledError; the page stays under way until its answer, which is dropped.
  static Coro<std::optional<VisitAnswer>> visit(std::shared_ptr<ProcessorChild> self, const PageCall& call,
                                                std::uint64_t id, bool may_be_repeated);

  // No more pages; its input is closed when it has answered.
  void drain();
  // Its input is closed now.
  void end_input();
  void kill(std::string why);
  // Kills one that is still starting and that nobody waits for.
  void dismiss();
  // Its owner has gone: it hears nothing more.
  void abandon();

 private:
  struct Page;
  struct Outgoing;
  struct Asked;
  using Shared = std::shared_ptr<ProcessorChild>;
  using SharedPage = std::shared_ptr<Page>;

  static Coro<void> live(Shared self);
  bool start_process();
  static Coro<void> wait_for_end(Shared self);
  void finish();
  std::string how_it_ended() const;
  void fail_pages(const ChildEnd& end);

  SharedPage find_page(std::uint64_t id) const;
  void leave(const SharedPage& page);
  void out_of_time(std::uint64_t id, Duration limit);
  void finish_page(const SharedPage& page);
  void page_has_gone();
  void rest();
  // Kills it later.
  void end_within(std::string why);

  void send(std::string line);
  static Coro<void> write_out(Shared self);
  static Coro<void> write_one(Shared self, Outgoing next);

  static Coro<void> read_lines(Shared self);
  std::size_t longest_line() const noexcept;
  void line_is_too_long(std::string_view line);
  // False: it has no page and has written too much, and was killed for it.
  bool may_say_more(std::size_t bytes);
  void take_line(std::string_view line);
  static Coro<void> take_long_line(Shared self, std::string line);
  void take(Result<ScriptMessage> message);
  void take_message(DescribedMessage message);
  void take_message(AnswerPart part);
  void take_message(LogMessage message);
  void take_message(SelectQuery query);
  static Coro<void> answer_queries(Shared self);
  template <class Function>
  static Future<void> on_thread(ProcessorChild& self, Function function);

  // `page`: null where it is the project's.
  void log(PageLog line, const SharedPage& page);
  static Coro<void> read_errors(Shared self);
  void take_what_is_there();
  void take_errors(std::string_view bytes);
  void leave_out_errors(std::string_view bytes);
  void take_error_line(std::string_view line);

  EventLoop& loop_;
  const std::shared_ptr<const ChildProcessorOptions> options_;
  const std::uint64_t version_;
  const bool is_low_;
  Told told_;
  Background life_;
  Background pipes_;  // what writes to it and reads its errors

  State state_ = State::starting;
  std::optional<Process> process_;
  ProcessorDescription description_;
  std::map<std::uint64_t, SharedPage> pages_;
  std::size_t reserved_ = 0;
  std::uint64_t answered_ = 0;
  std::size_t unasked_bytes_ = 0;  // of lines since the last page

  std::deque<Outgoing> outgoing_;
  std::size_t outgoing_bytes_ = 0;
  Event has_outgoing_;
  bool input_ends_ = false;
  bool input_is_broken_ = false;
  bool has_ended_ = false;  // the process; nothing is written any more

  std::deque<Asked> queries_;
  std::size_t query_bytes_ = 0;
  bool is_selecting_ = false;

  std::string error_line_;       // begun
  std::size_t error_bytes_ = 0;  // since a page came or went
  std::string last_error_;       // the last line of standard error

  std::optional<std::string> killed_for_;
  std::optional<Error> refused_;
  std::string cannot_start_;
  Handle describe_timer_, end_timer_, idle_timer_;
};

}  // namespace argiope
