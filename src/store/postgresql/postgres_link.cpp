#include "store/postgresql/internal/postgres_link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace argiope {
namespace {

constexpr int kTickMs = 100;

std::int64_t in_ms(Duration limit) { return std::chrono::duration_cast<std::chrono::milliseconds>(limit).count(); }

}  // namespace

std::string postgres_words(const char* said) {
  std::string words;
  for (const char* c = said == nullptr ? "" : said; *c != '\0'; ++c) {
    const bool is_blank = *c == '\n' || *c == '\t' || *c == ' ';
    if (!is_blank) words += *c;
    if (is_blank && !words.empty() && !words.ends_with(' ')) words += ' ';
  }
  while (words.ends_with(' ')) words.pop_back();
  return words.empty() ? "the connection was lost" : words;
}

Result<void> PostgresLink::connect(const std::string& password) {
  const std::string limit_ms = fmt::to_string(in_ms(limit_));
  // A server that is gone is noticed in time. Of names that come twice the last counts: the connection's own text may
  // say otherwise.
  const char* const names[] = {"tcp_user_timeout",
                               "keepalives_idle",
                               "keepalives_interval",
                               "keepalives_count",
                               "fallback_application_name",
                               "dbname",
                               "client_encoding",
                               password.empty() ? nullptr : "password",
                               nullptr};
  const char* const values[] = {limit_ms.c_str(), "30",   "10", "3", "argiope", connection_.c_str(), "UTF8",
                                password.c_str(), nullptr};
  postgres_ = PQconnectStartParams(names, values, 1);
  if (postgres_ == nullptr) return fail(Errc::internal, "no memory for a connection");
  PQsetNoticeProcessor(
      postgres_, [](void*, const char*) {}, nullptr);
  auto done = await_connection();
  if (!done) return disconnect(), done;
  const std::lock_guard lock(mutex_);
  socket_ = ::fcntl(PQsocket(postgres_), F_DUPFD_CLOEXEC, 0);
  return {};
}

// PQconnectStart() has no time limit of its own.
Result<void> PostgresLink::await_connection() {
  auto left_ms = in_ms(limit_);
  auto state = PQstatus(postgres_) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (state != PGRES_POLLING_OK) {
    if (state == PGRES_POLLING_FAILED) return fail(Errc::network, postgres_words(PQerrorMessage(postgres_)));
    if (has_given_up_) return fail(Errc::network, "given up");
    if (left_ms <= 0) return fail(Errc::network, "no connection in time");
    pollfd waits{.fd = PQsocket(postgres_),
                 .events = static_cast<short>(state == PGRES_POLLING_READING ? POLLIN : POLLOUT)};
    const int found = ::poll(&waits, 1, kTickMs);
    if (found == 0) left_ms -= kTickMs;
    if (found > 0) state = PQconnectPoll(postgres_);
  }
  return {};
}

bool PostgresLink::await_input() {
  for (auto left_ms = in_ms(limit_); left_ms > 0;) {
    const int unsent = PQflush(postgres_);
    if (unsent < 0 || has_given_up_) return false;
    pollfd waits{.fd = PQsocket(postgres_), .events = static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN)};
    const int found = ::poll(&waits, 1, kTickMs);
    if (found == 0) left_ms -= kTickMs;
    if (found > 0 && (waits.revents & ~POLLOUT) != 0) return PQconsumeInput(postgres_) == 1;
  }
  return false;
}

void PostgresLink::give_up() noexcept {
  has_given_up_ = true;
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

void PostgresLink::disconnect() noexcept {
  if (postgres_ != nullptr) PQfinish(std::exchange(postgres_, nullptr));
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

}  // namespace argiope
