// RedisConnection: commands to a server and its replies, over a connection that is made anew when it breaks. What is
// asked for is asked again until the server has answered it, so asking twice must be as good as asking once.
#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "store/jobs/internal/server_wait.hpp"
#include "store/redis/redis_address.hpp"
#include "store/sqlite/internal/alarm.hpp"

namespace argiope {

// Commands as the protocol has them. Arguments are any bytes.
class RedisCommands {
 public:
  template <class... Arguments>
  void add(const Arguments&... arguments) {
    begin(sizeof...(arguments));
    (argument(arguments), ...);
  }
  // One whose `arguments` follow by argument().
  void begin(std::size_t arguments);
  void argument(std::string_view bytes);
  std::size_t count() const noexcept { return count_; }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
  std::size_t count_ = 0;
};

// A part of a reply, which lives as long as that.
class RedisValue {
 public:
  explicit RedisValue(const redisReply* reply) noexcept : reply_(reply) {}
  bool is_error() const noexcept { return reply_->type == REDIS_REPLY_ERROR; }
  bool is_null() const noexcept { return reply_->type == REDIS_REPLY_NIL; }
  std::string_view text() const noexcept {
    return reply_->str == nullptr ? std::string_view{} : std::string_view(reply_->str, reply_->len);
  }
  std::int64_t number() const noexcept { return reply_->integer; }
  std::size_t size() const noexcept { return reply_->elements; }
  // Null behind the last one: what a server says may be shorter than it should be.
  RedisValue operator[](std::size_t i) const noexcept {
    return RedisValue(i < reply_->elements ? reply_->element[i] : &kNothing);
  }

 private:
  static constexpr redisReply kNothing{.type = REDIS_REPLY_NIL};
  const redisReply* reply_;
};
struct RedisReplyCloser {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
class RedisReplies {
 public:
  void add(redisReply* reply) { replies_.emplace_back(reply); }
  std::size_t size() const noexcept { return replies_.size(); }
  RedisValue operator[](std::size_t i) const noexcept { return RedisValue(replies_[i].get()); }
  RedisValue back() const noexcept { return (*this)[size() - 1]; }

 private:
  std::vector<std::unique_ptr<redisReply, RedisReplyCloser>> replies_;
};

// Whether an error of ask() is to be followed by another try, later.
inline bool redis_trouble_passes(const Error& error) noexcept {
  return error.code == Errc::network || error.code == Errc::busy;
}

// What was asked is not for this user, or for this server, which is a replica.
struct RedisForbidden {};

// How long it waits: until be_patient() for one answer, of a server that is there; then, whatever it waits for, as long
// as the address says (ServerWait), but for the system's look-up of a host's name. The log tells once of such a wait,
// and of its end.
// Threads: hurry() from any, the rest one at a time.
class RedisConnection {
 public:
  explicit RedisConnection(RedisAddress address)
      : address_(std::move(address)), wait_(std::string(), address_.store_timeout) {}
  RedisConnection(const RedisConnection&) = delete;

  const RedisAddress& address() const noexcept { return address_; }
  // Run on each new connection before all else, for scripts that are asked for by their digests.
  void set_scripts(std::vector<std::string> scripts) { scripts_ = std::move(scripts); }
  void be_patient() noexcept { is_patient_ = true; }

  // The replies, one a command, none of them an error.
  // Errors: DatabaseFailed: network after the limit; io for an error that does not pass.
  RedisReplies ask(const RedisCommands& commands) { return ask_until(commands, nullptr, {}); }
  // Asks with pauses until the replies are `wanted`. Errors: as ask()'s; busy with `why` after the limit;
  // RedisForbidden, where that is to be told.
  using Wanted = std::function<bool(const RedisReplies&)>;
  struct Waiting {
    std::string_view why;
    Duration longest_pause{};
    bool tells_forbidden = false;
  };
  RedisReplies ask_until(const RedisCommands& commands, const Wanted& wanted, const Waiting& waiting);
  // False after trouble: the next ask() connects anew.
  bool is_up() const noexcept { return context_ != nullptr; }
  // After ask(), also one that gave replies: the server may have done what was asked, by an earlier try.
  bool may_be_done() const noexcept { return may_be_done_; }
  // Whether a wait has ended after hurry(): nothing more is to be waited for.
  bool has_given_up() const { return wait_.has_given_up(); }
  // Waits end after `limit`, that which is under way included.
  void hurry(Duration limit) noexcept { wait_.hurry(limit); }

 private:
  struct Closer {
    void operator()(redisContext* context) const noexcept { redisFree(context); }
  };
  enum class Trouble : std::uint8_t { none, passes, forbidden, scripts_gone, stays };

  bool connect(std::string& cause);
  bool greet(std::string& cause);
  // False: the connection has broken, or nothing comes.
  bool exchange(const RedisCommands& commands, RedisReplies& replies, std::string& cause);
  // The replies, or why there are none.
  Trouble try_once(const RedisCommands& commands, RedisReplies& replies, std::string& cause);
  bool pause(const std::string& cause);
  void over();
  Error error(Errc code, std::string_view cause) const;

  const RedisAddress address_;
  std::vector<std::string> scripts_;
  std::unique_ptr<redisContext, Closer> context_;
  bool may_be_done_ = false;
  bool is_patient_ = false;
  bool told_ = false;
  Duration pause_{};
  ServerWait wait_;
  Alarm silence_;
};

}  // namespace argiope
