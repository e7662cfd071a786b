#include "store/redis/redis_connection.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/internal/printable.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

using namespace std::chrono_literals;

namespace {

constexpr Duration kConnectTimeout = 5s;
// A server that is stopped or cut off says nothing; one that syncs its disk may take seconds.
constexpr Duration kReplyTimeout = 10s;
constexpr Duration kFirstPause = 1ms, kLongestPause = 250ms;

// hiredis writes so that a server which has gone kills the process by a signal; here it is an error like others.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const int error = errno;
    constexpr timespec kNow{};
    while (sigtimedwait(&pipe_, nullptr, &kNow) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
};

timeval timeval_of(Duration duration) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
}

// Errors that say nothing against what was asked: another moment, or another setting, will do.
bool redis_error_passes(std::string_view error) {
  constexpr std::array<std::string_view, 12> kPassing = {"BUSY ",     "LOADING ",    "OOM ",         "MISCONF ",
                                                         "READONLY ", "NOAUTH ",     "WRONGPASS ",   "NOPERM ",
                                                         "TRYAGAIN ", "MASTERDOWN ", "CLUSTERDOWN ", "NOREPLICAS "};
  return std::ranges::any_of(kPassing, [&](std::string_view code) { return error.starts_with(code); });
}

}  // namespace

void RedisCommands::begin(std::size_t arguments) {
  fmt::format_to(std::back_inserter(bytes_), "*{}\r\n", arguments);
  ++count_;
}

void RedisCommands::argument(std::string_view bytes) {
  fmt::format_to(std::back_inserter(bytes_), "${}\r\n", bytes.size());
  bytes_.append(bytes);
  bytes_ += "\r\n";
}

RedisReplies RedisConnection::ask(const RedisCommands& commands) {
  may_be_done_ = false;
  waited_ = {};
  pause_ = kFirstPause;
  bool has_new_scripts = false;
  for (;;) {
    RedisReplies replies;
    std::string cause;
    switch (try_once(commands, replies, cause)) {
      case Trouble::none: over(); return replies;
      case Trouble::stays: throw DatabaseFailed{error(Errc::io, cause)};
      case Trouble::scripts_gone:
        context_.reset();
        if (std::exchange(has_new_scripts, true) && !wait(cause)) throw DatabaseFailed{error(Errc::network, cause)};
        break;
      case Trouble::passes:
        if (!wait(cause)) throw DatabaseFailed{error(Errc::network, cause)};
    }
  }
}

RedisConnection::Trouble RedisConnection::try_once(const RedisCommands& commands, RedisReplies& replies,
                                                   std::string& cause) {
  const WithoutSigpipe without_sigpipe;
  if (context_ == nullptr && !connect(cause)) return Trouble::passes;
  const auto broken = [&] {
    cause = printable(context_->errstr);
    // What has begun to be sent may arrive, however late.
    may_be_done_ = true;
    context_.reset();
    return Trouble::passes;
  };
  if (redisAppendFormattedCommand(context_.get(), commands.bytes().data(), commands.bytes().size()) != REDIS_OK) {
    return broken();
  }
  Trouble trouble = Trouble::none;
  for (std::size_t i = 0; i < commands.count(); ++i) {
    void* reply = nullptr;
    if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
      if (context_->err == REDIS_ERR_IO && errno == EAGAIN) waited_ += kReplyTimeout;
      return broken();
    }
    auto* const known = static_cast<redisReply*>(reply);
    replies.add(known);
    if (known->type != REDIS_REPLY_ERROR || trouble != Trouble::none) continue;
    const std::string_view text = RedisValue(known).text();
    cause = printable(text);
    trouble = text.starts_with("NOSCRIPT ") ? Trouble::scripts_gone
              : redis_error_passes(text)    ? Trouble::passes
                                            : Trouble::stays;
  }
  // A password that was changed is asked for at the next connection.
  if (trouble == Trouble::passes) context_.reset();
  return trouble;
}

bool RedisConnection::connect(std::string& cause) {
  const timeval timeout = timeval_of(kConnectTimeout);
  context_.reset(address_.host.starts_with('/')
                     ? redisConnectUnixWithTimeout(address_.host.c_str(), timeout)
                     : redisConnectWithTimeout(address_.host.c_str(), address_.port, timeout));
  if (context_ == nullptr) {
    cause = "no memory";
    return false;
  }
  if (context_->err != 0 || redisSetTimeout(context_.get(), timeval_of(kReplyTimeout)) != REDIS_OK) {
    cause = printable(context_->errstr);
    context_.reset();
    return false;
  }
  if (greet(cause)) return true;
  context_.reset();
  return false;
}

bool RedisConnection::greet(std::string& cause) {
  RedisCommands hello;
  if (!address_.password.empty()) {
    address_.user.empty() ? hello.add("AUTH", address_.password) : hello.add("AUTH", address_.user, address_.password);
  }
  hello.add("SELECT", std::to_string(address_.database));
  for (const std::string& script : scripts_) hello.add("SCRIPT", "LOAD", script);
  if (redisAppendFormattedCommand(context_.get(), hello.bytes().data(), hello.bytes().size()) != REDIS_OK) {
    cause = printable(context_->errstr);
    return false;
  }
  for (std::size_t i = 0; i < hello.count(); ++i) {
    void* reply = nullptr;
    if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
      cause = printable(context_->errstr);
      return false;
    }
    const std::unique_ptr<redisReply, RedisReplyCloser> known(static_cast<redisReply*>(reply));
    if (known->type != REDIS_REPLY_ERROR) continue;
    cause = printable(RedisValue(known.get()).text());
    return false;
  }
  return true;
}

// --- trouble that passes ---------------------------------------------------------------------------------------------

bool RedisConnection::wait(const std::string& cause) {
  std::unique_lock lock(mutex_);
  if (waited_ >= limit_) return false;
  if (!std::exchange(told_, true)) {
    spdlog::warn("{}: {}; what is to be read or written waits for it", address_.shown(), cause);
  }
  wake_.wait_for(lock, pause_);
  waited_ += pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
  return true;
}

bool RedisConnection::pause(Duration pause, Duration waited) {
  std::unique_lock lock(mutex_);
  if (waited >= limit_) return false;
  wake_.wait_for(lock, pause);
  return true;
}

void RedisConnection::over() {
  if (std::exchange(told_, false)) spdlog::warn("{}: it answers again", address_.shown());
}

void RedisConnection::set_limit(Duration limit) {
  std::lock_guard lock(mutex_);
  limit_ = limit;
}

void RedisConnection::hurry(Duration limit) {
  std::lock_guard lock(mutex_);
  limit_ = std::min(limit_, limit);
  wake_.notify_one();
}

Error RedisConnection::error(Errc code, std::string_view cause) const {
  return {code, fmt::format("{}: {}", address_.shown(), cause)};
}

}  // namespace argiope
