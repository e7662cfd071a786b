#include "store/redis/redis_connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

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

// Errors that say nothing against what was asked: another moment, or another setting, will do.
bool redis_error_passes(std::string_view error) {
  constexpr std::array<std::string_view, 12> kPassing = {"BUSY ",        "LOADING ",    "OOM ",      "MISCONF ",
                                                         "NOAUTH ",      "WRONGPASS ",  "TRYAGAIN ", "MASTERDOWN ",
                                                         "CLUSTERDOWN ", "NOREPLICAS ", "MOVED ",    "ASK "};
  return std::ranges::any_of(kPassing, [&](std::string_view code) { return error.starts_with(code); });
}

// The first word, which is capitals, of what a server says against a command.
std::string_view redis_error_code(std::string_view error) {
  const std::string_view code = error.substr(0, error.find(' '));
  const bool is_code = std::ranges::all_of(code, [](char c) { return c >= 'A' && c <= 'Z'; });
  return is_code ? code : "ERR";
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

RedisReplies RedisConnection::ask_until(const RedisCommands& commands, const Wanted& wanted, const Waiting& waiting) {
  may_be_done_ = false;
  pause_ = kFirstPause;
  bool has_new_scripts = false;
  std::string cause;
  wait_.begin();
  for (;;) {
    RedisReplies replies;
    switch (try_once(commands, replies, cause)) {
      case Trouble::none:
        over();
        if (wanted == nullptr || wanted(replies)) {
          wait_.answered();
          return replies;
        }
        if (!wait_.pause(waiting.why, std::exchange(pause_, std::min(pause_ * 2, waiting.longest_pause))))
          throw DatabaseFailed{error(Errc::busy, waiting.why)};
        break;
      case Trouble::stays: wait_.answered(); throw DatabaseFailed{error(Errc::io, cause)};
      case Trouble::scripts_gone:
        context_.reset();
        if (std::exchange(has_new_scripts, true) && !pause(cause)) throw DatabaseFailed{error(Errc::network, cause)};
        break;
      case Trouble::forbidden:
        if (waiting.tells_forbidden) throw RedisForbidden{};
        [[fallthrough]];
      case Trouble::passes:
        if (!pause(cause)) throw DatabaseFailed{error(Errc::network, is_patient_ ? wait_.cause() : cause)};
    }
  }
}

RedisConnection::Trouble RedisConnection::try_once(const RedisCommands& commands, RedisReplies& replies,
                                                   std::string& cause) {
  const WithoutSigpipe without_sigpipe;
  if (context_ == nullptr && !connect(cause)) return Trouble::passes;
  if (!exchange(commands, replies, cause)) {
    // What has begun to be sent may arrive, however late.
    may_be_done_ = true;
    context_.reset();
    return Trouble::passes;
  }
  Trouble trouble = Trouble::none;
  for (std::size_t i = 0; i < replies.size() && trouble == Trouble::none; ++i) {
    if (!replies[i].is_error()) continue;
    const std::string_view text = replies[i].text();
    cause = printable(text);
    const bool is_forbidden = text.starts_with("NOPERM ") || text.starts_with("READONLY ");
    trouble = text.starts_with("NOSCRIPT ") ? Trouble::scripts_gone
              : is_forbidden                ? Trouble::forbidden
              : redis_error_passes(text)    ? Trouble::passes
                                            : Trouble::stays;
  }
  // A password that was changed is asked for at the next connection.
  if (trouble == Trouble::passes || trouble == Trouble::forbidden) context_.reset();
  return trouble;
}

// A connection that nothing comes by may be a dead one: what was asked is asked by another.
bool RedisConnection::exchange(const RedisCommands& commands, RedisReplies& replies, std::string& cause) {
  redisContext* const redis = context_.get();
  const auto broken = [&] {
    cause = printable(redis->errstr);
    return false;
  };
  if (redisAppendFormattedCommand(redis, commands.bytes().data(), commands.bytes().size()) != REDIS_OK) return broken();
  int is_sent = 0;
  silence_.set(kReplyTimeout);
  for (;;) {
    if (is_sent == 0 && redisBufferWrite(redis, &is_sent) != REDIS_OK) return broken();
    const bool is_ready =
        wait_.await(redis->fd, static_cast<short>(is_sent != 0 ? POLLIN : POLLIN | POLLOUT), &silence_);
    if (!is_ready) {
      cause = "the server does not answer";
      return false;
    }
    silence_.set(kReplyTimeout);
    if (redisBufferRead(redis) != REDIS_OK) return broken();
    for (void* reply = nullptr; replies.size() < commands.count(); replies.add(static_cast<redisReply*>(reply))) {
      if (redisGetReplyFromReader(redis, &reply) != REDIS_OK) return broken();
      if (reply == nullptr) break;
    }
    if (replies.size() < commands.count()) continue;
    if (redis->reader->pos == redis->reader->len) return true;
    cause = "the server says more than it was asked";
    return false;
  }
}

bool RedisConnection::connect(std::string& cause) {
  const bool is_unix = address_.host.starts_with('/');
  context_.reset(is_unix ? redisConnectUnixNonBlock(address_.host.c_str())
                         : redisConnectNonBlock(address_.host.c_str(), address_.port));
  const auto failed = [&](std::string why) {
    cause = std::move(why);
    context_.reset();
    return false;
  };
  if (context_ == nullptr) return failed("no memory");
  if (context_->err != 0) return failed(printable(context_->errstr));
  silence_.set(kConnectTimeout);
  if (!wait_.await(context_->fd, POLLOUT, &silence_)) return failed("no connection in time");
  int refused = 0;
  socklen_t size = sizeof refused;
  if (::getsockopt(context_->fd, SOL_SOCKET, SO_ERROR, &refused, &size) != 0) refused = errno;
  if (refused != 0) return failed(std::generic_category().message(refused));
  if (!is_unix) (void)redisEnableKeepAlive(context_.get());
  if (greet(cause)) return true;
  context_.reset();
  return false;
}

// What a server says against AUTH may repeat what it was sent, so it is told by its code alone.
bool RedisConnection::greet(std::string& cause) {
  const bool has_password = !address_.password.empty();
  RedisCommands hello;
  if (has_password) {
    address_.user.empty() ? hello.add("AUTH", address_.password) : hello.add("AUTH", address_.user, address_.password);
  }
  hello.add("SELECT", std::to_string(address_.database));
  for (const std::string& script : scripts_) hello.add("SCRIPT", "LOAD", script);
  RedisReplies replies;
  if (!exchange(hello, replies, cause)) return false;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].is_error()) continue;
    const std::string_view text = replies[i].text();
    cause = has_password && i == 0 ? fmt::format("it refuses user and password ({})", redis_error_code(text))
                                   : printable(text);
    return false;
  }
  return true;
}

// --- trouble that passes ---------------------------------------------------------------------------------------------

bool RedisConnection::pause(const std::string& cause) {
  if (!is_patient_ || !wait_.pause(cause, std::exchange(pause_, std::min(pause_ * 2, kLongestPause)))) return false;
  if (!std::exchange(told_, true)) {
    spdlog::warn("{}: {}; what is to be read or written waits for it", address_.shown(), cause);
  }
  return true;
}

void RedisConnection::over() {
  if (std::exchange(told_, false)) spdlog::warn("{}: it answers again", address_.shown());
}

Error RedisConnection::error(Errc code, std::string_view cause) const {
  return {code, fmt::format("{}: {}", address_.shown(), cause)};
}

}  // namespace argiope
