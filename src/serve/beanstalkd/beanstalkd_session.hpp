// One connection of a Beanstalkd: reads its commands, starts them in their order, and answers them in that order.
//
// Most commands are started as soon as they are read: puts and settlements go to the engine in runs, while those before
// them are being committed. The others wait for what was started before them, and hold back what comes after them.
// Replies that are ready together are sent together.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/detail/intrusive_list.hpp"
#include "serve/beanstalkd/beanstalkd_core.hpp"
#include "serve/beanstalkd/beanstalkd_parser.hpp"

namespace argiope {

class BeanstalkdSession : public ListHook, public std::enable_shared_from_this<BeanstalkdSession> {
 public:
  // `stream` outlives serve().
  BeanstalkdSession(std::shared_ptr<BeanstalkdCore> core, Stream& stream);
  ~BeanstalkdSession();
  BeanstalkdSession(const BeanstalkdSession&) = delete;
  BeanstalkdSession& operator=(const BeanstalkdSession&) = delete;

  // Until the client leaves or stop(). Gives back what it has reserved.
  Coro<void> serve();
  // Starts nothing more; what was started is answered.
  void stop() noexcept;

  // Counts in BeanstalkdOptions::room the replies that the client has not taken.
  void count_unsent() noexcept;
  std::size_t unsent() const noexcept {
    return stream_ == nullptr || stream_->is_closing() ? 0 : stream_->write_buffer_size();
  }
  // Drops what is unsent, and ends.
  void let_go() noexcept;
  const std::string& peer() const noexcept { return peer_; }

 private:
  using Leased = Result<std::vector<LeasedJob>>;
  using Number = std::uint64_t;  // of a command that was started, in order
  // A job that it has reserved.
  struct Held {
    std::uint64_t token = 0;
    TimePoint until{};
    Duration ttr{};
    std::string tube;
  };
  // The reply to a command that was started, once it is known.
  struct Reply {
    bool is_known = false;
    std::string text;
  };
  // The facts that the reply to a settlement needs.
  struct Settling {
    BeanstalkdVerb verb{};
    JobId id = 0;
  };

  // --- reading
  Coro<void> converse();
  // Agrees on TLS, where it is wanted. False: the connection is to be closed.
  Coro<bool> secure();
  Coro<void> run_what_came();
  // Waits where too much is unanswered or unsent.
  Coro<void> make_room();
  bool has_room() const;
  bool is_ending() const noexcept { return quitting_ || stopping_; }
  void count(const BeanstalkdCommand& command) noexcept;

  // --- commands that are started at once
  // False: it is for run_alone().
  bool start(const BeanstalkdCommand& command);
  bool start_put(const BeanstalkdCommand& command);
  bool start_settling(const BeanstalkdCommand& command);
  void touch(JobId id);
  void use(std::string_view name);
  void watch(std::string_view name);
  void ignore(std::string_view name);
  void list_watched();
  // Sends what has been gathered to the engine.
  void send_gathered();
  static Coro<void> put_all(std::shared_ptr<BeanstalkdSession> self, Number first, std::vector<NewJob> jobs,
                            std::size_t bytes);
  static Coro<void> settle_all(std::shared_ptr<BeanstalkdSession> self, Number first, std::vector<RunEnd> calls,
                               std::vector<Settling> settlings);

  // --- commands that wait for those before them
  Coro<void> run_alone(const BeanstalkdCommand& command);
  Coro<std::string> answer_alone(const BeanstalkdCommand& command);
  // Tells the audit what an operator's command has changed. Not of deletes, which programs say all the time.
  Coro<void> note_change(const BeanstalkdCommand& command, std::string_view answer);
  Coro<std::string> reserve_job(JobId id);

  // --- reserving
  // False: it is no reserve, or of another kind than those gathered.
  bool gather_reserve(const BeanstalkdCommand& command);
  Coro<void> reserve_gathered();
  Coro<void> reserve_some();
  // Makes the queues that are missing.
  Coro<LeaseCall> lease_call();
  // Nothing: until `deadline` there was none, or nobody waits any more.
  Coro<Leased> wait_for_jobs(LeaseCall call, TimePoint deadline);
  void end_wait() noexcept;
  void hold(const LeasedJob& leased);
  // When its leases come near their ends: from then on no reserve waits.
  TimePoint deadline_soon();
  Coro<void> give_back();

  // --- answering
  Number next_number() const noexcept { return first_number_ + replies_.size(); }
  // The command that is answered later.
  void expect_reply() {
    replies_.emplace_back();
    ++unanswered_;
  }
  void reply(std::string_view text);
  void answer(Number number, std::string_view text);
  // Finds room for what is unsent now.
  void find_room() noexcept;
  // Sends what can be sent, and wakes who waits for answers.
  void flush() noexcept;
  Coro<void> next_answer();
  Coro<void> all_answered();

  const std::shared_ptr<BeanstalkdCore> core_;
  Engine& engine_;
  Stream* stream_;  // null when served
  BeanstalkdParser parser_;
  const std::string peer_;
  const std::string worker_;

  BeanstalkdTube* used_;
  std::vector<BeanstalkdTube*> watched_;
  std::unordered_map<JobId, Held> held_;
  TimePoint first_until_ = kNever;  // no lease of held_ ends before

  std::vector<NewJob> puts_;
  std::vector<RunEnd> settles_;
  std::vector<Settling> settlings_;
  std::size_t gathered_bytes_ = 0;
  std::size_t reserves_ = 0;
  std::int64_t reserve_timeout_ = -1;  // of those; seconds, negative: for ever

  std::deque<Reply> replies_;
  Number first_number_ = 0;  // of replies_
  std::size_t unanswered_ = 0;
  std::size_t unanswered_deletes_ = 0;
  std::size_t unanswered_bytes_ = 0;  // of puts
  Event answered_;
  std::string out_;
  AnswerRoom::Held counted_;  // what is unsent, as it was counted last
  std::size_t counted_bytes_ = 0;

  Task<Leased> waiting_;
  bool wait_is_over_ = false;
  bool is_reading_ = false;
  bool quitting_ = false;
  bool stopping_;
  bool is_producer_ = false;
  bool is_worker_ = false;
};

}  // namespace argiope
