// Notices: what went wrong, or is well again, gathered into one message.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/job.hpp"
#include "serve/notify/internal/notify_rule.hpp"

namespace argiope {

struct Notice {
  Trouble trouble{};
  std::string subject;  // of which queue, schedule or project, or part of the daemon
  bool is_over = false;
  std::uint64_t count = 1;  // times
  std::uint64_t run = 0;    // of the schedule, the last one; where it is over: that has gone well; 0: it was none
  WallTime first_at{}, last_at{};
  std::string text;         // of the last one
  std::vector<JobId> jobs;  // the first of them

  TroubleKey key() const { return {trouble, subject}; }
};

// The text of a trouble that is over because its queue, schedule or project is not there any more.
inline constexpr std::string_view kGone = "it is gone";

// Those of one message: one for each trouble and subject, however often it comes.
class Notices {
 public:
  static constexpr std::size_t kMost = 100;
  static constexpr std::size_t kMostJobs = 10;

  // False: there is no room, and it is left out.
  bool add(Notice notice);
  // Whether that is among them, and what it says.
  const Notice* find(const TroubleKey& key) const;
  void erase(const TroubleKey& key) { notices_.erase(key); }
  bool is_full() const noexcept { return notices_.size() >= kMost; }
  bool empty() const noexcept { return notices_.empty() && left_out_ == 0; }
  std::uint64_t left_out() const noexcept { return left_out_; }
  void leave_out(std::uint64_t more) noexcept { left_out_ += more; }
  auto begin() const noexcept { return notices_.begin(); }
  auto end() const noexcept { return notices_.end(); }
  std::size_t size() const noexcept { return notices_.size(); }

 private:
  std::map<TroubleKey, Notice> notices_;
  std::uint64_t left_out_ = 0;  // that there was no room for
};

// A sentence for people, on one line.
std::string to_sentence(const Notice& notice);

struct MessageHead {
  std::string from;  // which daemon
  WallTime at{};
  bool is_test = false;
  std::string daemon;  // "http://127.0.0.1:7733": where commands find the daemon; empty: not known
};
// In the rule's format. Of what others have written into it, nothing is a command to who receives it.
std::string write_message(const NotifyRule& rule, const MessageHead& head, const Notices& notices);

}  // namespace argiope
