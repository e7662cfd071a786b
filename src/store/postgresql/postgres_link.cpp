#include "store/postgresql/internal/postgres_link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

namespace argiope {
namespace {

using Options = std::map<std::string, std::string>;

// What the connection's own text may say otherwise.
const Options kOwn = {{"tcp_user_timeout", "30000"},
                      {"keepalives_idle", "10"},
                      {"keepalives_interval", "5"},
                      {"keepalives_count", "3"},
                      {"fallback_application_name", "argiope"}};
const std::string kEncoding = "UTF8";
constexpr Duration kUsualConnectTime = std::chrono::seconds{5};
constexpr int kLeastConnectSeconds = 2;  // as libpq has it

// As the connection's text says, or else the environment.
Options options_of(const std::string& connection) {
  Options options;
  const PostgresOptions own = parse_postgres_options(connection);
  const PostgresOptions usual(PQconndefaults());
  for (const auto* from : {own.get(), usual.get()}) {
    for (; from != nullptr && from->keyword != nullptr; ++from) {
      if (from->val != nullptr) options.try_emplace(from->keyword, from->val);
    }
  }
  return options;
}

std::vector<std::string> parts_of(const Options& options, const std::string& name) {
  std::vector<std::string> parts;
  const auto found = options.find(name);
  if (found == options.end()) return parts;
  for (std::size_t from = 0; from <= found->second.size();) {
    const std::size_t to = std::min(found->second.find(',', from), found->second.size());
    parts.push_back(found->second.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

// What to say of each. Which of them is asked first libpq decides where a standby is preferred.
std::vector<Options> hosts_of(const Options& options) {
  const auto names = parts_of(options, "host"), addresses = parts_of(options, "hostaddr"),
             ports = parts_of(options, "port");
  const std::size_t count = std::max(names.size(), addresses.size());
  const auto attributes = options.find("target_session_attrs");
  const bool is_libpqs = attributes != options.end() && attributes->second == "prefer-standby";
  if (count < 2 || is_libpqs || (ports.size() != count && ports.size() > 1)) return {Options{}};
  std::vector<Options> hosts(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (i < names.size()) hosts[i]["host"] = names[i];
    if (i < addresses.size()) hosts[i]["hostaddr"] = addresses[i];
    if (!ports.empty()) hosts[i]["port"] = ports[ports.size() == 1 ? 0 : i];
  }
  return hosts;
}

Duration time_for_each(const Options& options) {
  const auto found = options.find("connect_timeout");
  const int seconds = found == options.end() ? 0 : std::atoi(found->second.c_str());
  return seconds > 0 ? Duration{std::chrono::seconds{std::max(seconds, kLeastConnectSeconds)}} : kUsualConnectTime;
}

}  // namespace

PostgresOptions parse_postgres_options(const std::string& connection) {
  char* said = nullptr;
  PostgresOptions parsed(PQconninfoParse(connection.c_str(), &said));
  if (said != nullptr) PQfreemem(said);
  return parsed;
}

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

// A server that is gone is noticed in time. Of names that come twice the last counts: the connection's own text may say
// otherwise, but not to which of its hosts this is.
Result<void> PostgresLink::connect_to(const Options& host, const Alarm* sooner) {
  std::vector<const char*> names, values;
  const auto say = [&](const char* name, const std::string& value) {
    names.push_back(name);
    values.push_back(value.c_str());
  };
  for (const auto& [name, value] : kOwn) say(name.c_str(), value);
  say("dbname", connection_);
  say("client_encoding", kEncoding);
  for (const auto& [name, value] : host) say(name.c_str(), value);
  names.push_back(nullptr);
  values.push_back(nullptr);
  postgres_ = PQconnectStartParams(names.data(), values.data(), 1);
  if (postgres_ == nullptr) return fail(Errc::internal, "no memory for a connection");
  PQsetNoticeProcessor(
      postgres_, [](void*, const char*) {}, nullptr);
  auto done = await_connection(sooner);
  if (!done) return disconnect(), done;
  const std::lock_guard lock(mutex_);
  socket_ = ::fcntl(PQsocket(postgres_), F_DUPFD_CLOEXEC, 0);
  return {};
}

Result<void> PostgresLink::connect(const std::string& password) {
  wait_.begin();
  const Options said = options_of(connection_);
  Options more;
  if (!password.empty()) more["password"] = password;
  const auto attributes = said.find("target_session_attrs");
  if (attributes == said.end() || attributes->second == "any") {
    if (wanted_ == Server::writable) more["target_session_attrs"] = "read-write";
  }
  const std::vector<Options> hosts = hosts_of(said);
  const bool is_bounded = hosts.size() > 1 || said.contains("connect_timeout");
  Alarm sooner;
  std::string why;
  auto left = static_cast<int>(hosts.size());
  for (const Options& host : hosts) {
    Options all = more;
    all.insert(host.begin(), host.end());
    // A silent one leaves those behind it their part of the time.
    sooner.set(std::min(time_for_each(said), wait_.left() / left--));
    auto done = connect_to(all, is_bounded ? &sooner : nullptr);
    if (done) return done;
    if (why.find(done.error().message) == std::string::npos) why += (why.empty() ? "" : "; ") + done.error().message;
  }
  return fail(Errc::network, why);
}

// PQconnectPoll() has no time limit of its own.
Result<void> PostgresLink::await_connection(const Alarm* sooner) {
  auto state = PQstatus(postgres_) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (state != PGRES_POLLING_OK) {
    if (state == PGRES_POLLING_FAILED) return fail(Errc::network, postgres_words(PQerrorMessage(postgres_)));
    if (has_given_up_) return fail(Errc::network, "given up");
    const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (!wait_.await(PQsocket(postgres_), events, sooner)) return fail(Errc::network, "no connection in time");
    state = PQconnectPoll(postgres_);
  }
  return {};
}

bool PostgresLink::await_input() {
  const int unsent = PQflush(postgres_);
  return unsent >= 0 && await(unsent > 0 ? POLLIN | POLLOUT : POLLIN);
}

bool PostgresLink::send_all() {
  for (;;) {
    const int unsent = PQflush(postgres_);
    if (unsent <= 0) return unsent == 0;
    if (!await(POLLIN | POLLOUT)) return false;
  }
}

bool PostgresLink::await(int events) {
  return !has_given_up_ && wait_.await(PQsocket(postgres_), static_cast<short>(events)) &&
         PQconsumeInput(postgres_) == 1;
}

void PostgresLink::give_up() noexcept {
  has_given_up_ = true;
  wait_.hurry(Duration{});
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

void PostgresLink::disconnect() noexcept {
  if (postgres_ != nullptr) PQfinish(std::exchange(postgres_, nullptr));
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

}  // namespace argiope
