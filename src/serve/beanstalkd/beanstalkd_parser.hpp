// The bytes that a beanstalkd client sends, as commands: pure, incremental and bounded. Their effects are
// beanstalkd_session.hpp's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace argiope {

// In the order in which beanstalkd tries them: the first whose word a line begins with is meant.
enum class BeanstalkdVerb : std::uint8_t {
  put,
  peek,
  peek_ready,
  peek_delayed,
  peek_buried,
  reserve_with_timeout,
  reserve_job,
  reserve,
  delete_job,
  release,
  bury,
  kick,
  kick_job,
  touch,
  stats_job,
  stats_tube,
  stats,
  use,
  watch,
  ignore,
  list_tubes_watched,
  list_tube_used,
  list_tubes,
  quit,
  pause_tube,
  unknown,
};
inline constexpr std::size_t kBeanstalkdVerbs = static_cast<std::size_t>(BeanstalkdVerb::unknown) + 1;

// Beanstalkd's answer when it cannot make sense of what it got.
enum class BeanstalkdRefusal : std::uint8_t { none, bad_format, unknown_command, expected_crlf, job_too_big };
std::string_view to_string(BeanstalkdRefusal refusal) noexcept;  // "BAD_FORMAT"

// Members that its verb has no use for are 0 or empty.
struct BeanstalkdCommand {
  BeanstalkdVerb verb = BeanstalkdVerb::unknown;
  BeanstalkdRefusal refusal = BeanstalkdRefusal::none;
  // Whether beanstalkd counts it among the commands of its verb, which it does with some that it refuses.
  bool counts = false;
  // The other end speaks another protocol, as a web page does that has its browser send a form here. No command comes
  // after it.
  bool is_foreign = false;
  std::uint64_t id = 0;        // of a job
  std::uint32_t priority = 0;  // 0 is the most urgent
  std::uint32_t delay = 0;     // seconds
  std::uint32_t ttr = 0;       // seconds, as the client said it
  std::uint32_t bound = 0;     // kick: jobs
  std::int64_t timeout = -1;   // reserve_with_timeout: seconds; negative: for ever
  std::string_view tube{};     // a valid name
  std::string_view body{};     // put
};

inline constexpr std::size_t kMostTubeBytes = 200;
inline constexpr std::size_t kMostBeanstalkdLine = 224;  // with its "\r\n"

// 1 to 200 of the characters that beanstalkd allows, and no hyphen first.
bool is_tube_name(std::string_view name) noexcept;

// Feed it by appending to input(), then call next() until it gives null.
//
// A line ends at its first "\r\n". A line that has none within kMostBeanstalkdLine bytes is dropped up to its end and
// refused. So is a body that is too big, byte for byte. beanstalkd differs in two accidents: after a line with a '\r'
// of its own, or one byte too long, it takes the next line for the rest of it.
//
// A line of another protocol ends it: one with no command's word before the first command, and a request line of HTTP
// wherever it stands. The bytes after that are never read, since others may have chosen them to be taken for commands.
//
// Memory: input() holds one command with its body at most, besides what was appended after it.
class BeanstalkdParser {
 public:
  explicit BeanstalkdParser(std::size_t max_job_bytes) noexcept : max_job_bytes_(max_job_bytes) {}

  std::string& input() noexcept { return input_; }
  // The next command, as it is or refused; null: more bytes are needed. It and its views hold until input() is changed,
  // or next() is called again.
  const BeanstalkdCommand* next();
  // Drops what next() has used up of input(): to be called before more is appended.
  void drop_used();

 private:
  enum class State : std::uint8_t { line, long_line, body, too_big, foreign };

  std::string_view rest() const noexcept { return std::string_view(input_).substr(used_); }
  const BeanstalkdCommand* read_line();
  const BeanstalkdCommand* drop_line();
  const BeanstalkdCommand* read_body();
  const BeanstalkdCommand* drop_body();
  const BeanstalkdCommand* refuse(BeanstalkdRefusal refusal) noexcept;
  const BeanstalkdCommand* refuse_unknown(BeanstalkdRefusal refusal) noexcept;
  const BeanstalkdCommand* end_here(BeanstalkdRefusal refusal) noexcept;
  const BeanstalkdCommand* begin_put(std::string_view text);

  const std::size_t max_job_bytes_;
  std::string input_;
  std::size_t used_ = 0;
  std::size_t searched_ = 0;  // no line ends in so many bytes after used_
  State state_ = State::line;
  bool speaks_it_ = false;        // a command has come
  std::uint64_t body_bytes_ = 0;  // of the body that comes, with its "\r\n": all, or those still to be dropped
  BeanstalkdCommand command_;
};

}  // namespace argiope
