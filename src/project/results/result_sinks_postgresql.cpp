// Sinks that fill a table of PostgreSQL, each event exactly once: a batch comes by COPY into a temporary table and from
// there, in the same transaction, into the table, but for what that has already.
#include <fcntl.h>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>

#include "argiope/async/threads.hpp"
#include "base/internal/rfc3339.hpp"
#include "project/results/result_sink.hpp"
#include "project/results/sink_copy_text.hpp"

namespace argiope {
namespace {

constexpr Duration kUsualTableTime = std::chrono::minutes{1};
constexpr int kConnectTickMs = 100;
constexpr std::string_view kColumns = "number, project, page, part, rule, news, at, value";
// The bytes that are copied at a time.
constexpr std::size_t kCopyPieceBytes = 256 * 1024;

std::string without_end_of_line(const char* text) {
  std::string said = text == nullptr ? "" : text;
  while (said.ends_with('\n')) said.pop_back();
  return said;
}

// A connection, made when it is needed. Its functions block.
//
// Threads: one at a time, but give_up(), which any may call: what is under way ends with an error, and all that follows
// does.
class TableConnection {
 public:
  TableConnection(std::string connection, std::string table, Duration limit)
      : connection_(std::move(connection)), table_(std::move(table)), limit_(limit) {}
  ~TableConnection() { disconnect(); }

  Result<void> insert(const std::string& lines, const std::string& password) {
    if (has_given_up_) return trouble("given up");
    if (postgres_ == nullptr) {
      if (auto done = connect(password); !done) return done;
      if (auto done = prepare(); !done) return disconnect(), done;
    }
    auto done = insert_all(lines);
    // The rest of the transaction goes with the connection.
    if (!done) disconnect();
    return done;
  }

  void give_up() {
    has_given_up_ = true;
    const std::lock_guard lock(mutex_);
    if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
  }

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  using Answer = std::unique_ptr<PGresult, Clear>;

  std::unexpected<Error> trouble(const char* said) const {
    const std::string words = without_end_of_line(said);
    return fail(Errc::network, fmt::format("table {}: {}", table_, words.empty() ? "the connection was lost" : words));
  }

  Result<void> connect(const std::string& password) {
    const std::string limit_ms = fmt::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count());
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
  Result<void> await_connection() {
    auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count();
    auto state = PQstatus(postgres_) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
    while (state != PGRES_POLLING_OK) {
      if (state == PGRES_POLLING_FAILED) return trouble(PQerrorMessage(postgres_));
      if (has_given_up_) return trouble("given up");
      if (left_ms <= 0) return trouble("no connection in time");
      pollfd waits{.fd = PQsocket(postgres_),
                   .events = static_cast<short>(state == PGRES_POLLING_READING ? POLLIN : POLLOUT)};
      const int found = ::poll(&waits, 1, kConnectTickMs);
      if (found == 0) left_ms -= kConnectTickMs;
      if (found > 0) state = PQconnectPoll(postgres_);
    }
    return {};
  }

  void disconnect() {
    if (postgres_ != nullptr) PQfinish(std::exchange(postgres_, nullptr));
    const std::lock_guard lock(mutex_);
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  Result<void> run(const std::string& statement) {
    const Answer answer(PQexec(postgres_, statement.c_str()));
    const auto status = PQresultStatus(answer.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
    return trouble(answer ? PQresultErrorMessage(answer.get()) : PQerrorMessage(postgres_));
  }

  // A user that may not make tables may fill one that is there.
  Result<bool> table_is_there() {
    const char* const values[] = {table_.c_str()};
    const Answer answer(
        PQexecParams(postgres_, "select to_regclass($1) is not null", 1, nullptr, values, nullptr, nullptr, 0));
    if (PQresultStatus(answer.get()) != PGRES_TUPLES_OK) return trouble(PQerrorMessage(postgres_));
    return std::string_view(PQgetvalue(answer.get(), 0, 0)) == "t";
  }

  Result<void> prepare() {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count();
    if (auto done = run(fmt::format("set statement_timeout = {}", std::max<std::int64_t>(1, ms))); !done) return done;
    const auto is_there = table_is_there();
    if (!is_there) return std::unexpected(is_there.error());
    constexpr std::string_view kTypes =
        "number bigint not null, project text not null, page text not null, part text not null, rule text not null, "
        "news text not null, at timestamptz not null, value jsonb";
    if (!*is_there) {
      // The time besides the number: a store of pages that was begun anew counts from 1 again.
      if (auto done = run(fmt::format("create table {} ({}, primary key (project, number, at))", table_, kTypes));
          !done)
        return done;
    }
    return run(fmt::format("create temporary table argiope_batch ({}) on commit delete rows", kTypes));
  }

  Result<void> insert_all(const std::string& lines) {
    if (auto done = run("begin"); !done) return done;
    if (auto done = copy(lines); !done) return done;
    if (auto done = run(fmt::format("insert into {0} ({1}) select {1} from argiope_batch order by number "
                                    "on conflict (project, number, at) do nothing",
                                    table_, kColumns));
        !done) {
      return done;
    }
    return run("commit");
  }

  Result<void> copy(const std::string& lines) {
    {
      const Answer begun(PQexec(postgres_, fmt::format("copy argiope_batch ({}) from stdin", kColumns).c_str()));
      if (PQresultStatus(begun.get()) != PGRES_COPY_IN) return trouble(PQerrorMessage(postgres_));
    }
    for (std::size_t at = 0; at < lines.size(); at += kCopyPieceBytes) {
      const std::size_t size = std::min(kCopyPieceBytes, lines.size() - at);
      if (PQputCopyData(postgres_, lines.data() + at, static_cast<int>(size)) != 1)
        return trouble(PQerrorMessage(postgres_));
    }
    if (PQputCopyEnd(postgres_, nullptr) != 1) return trouble(PQerrorMessage(postgres_));
    Result<void> done;
    while (const Answer answer{PQgetResult(postgres_)}) {
      if (done && PQresultStatus(answer.get()) != PGRES_COMMAND_OK) done = trouble(PQresultErrorMessage(answer.get()));
      if (PQstatus(postgres_) == CONNECTION_BAD) return done ? trouble(PQerrorMessage(postgres_)) : done;
    }
    return done;
  }

  const std::string connection_, table_;
  const Duration limit_;
  std::atomic<bool> has_given_up_ = false;
  PGconn* postgres_ = nullptr;
  std::mutex mutex_;  // of `socket_`
  int socket_ = -1;   // the connection's, by a descriptor of our own: libpq may close its own at any moment
};

class TableSink final : public ResultSink {
 public:
  explicit TableSink(std::shared_ptr<SinkContext> context)
      : context_(std::move(context)),
        connection_(std::make_shared<TableConnection>(context_->sink.target, context_->sink.table,
                                                      context_->sink.time_limit.value_or(kUsualTableTime))) {}
  ~TableSink() override { connection_->give_up(); }

  Coro<SinkResult<std::string>> deliver(const SinkBatch& batch) override {
    auto password = context_->secret();
    if (!password) co_return sink_trouble(password.error());
    const auto done = co_await run_in_executor(
        thread_, [connection = connection_, lines = lines_of(batch), password = *std::move(password)] {
          return connection->insert(lines, password);
        });
    if (!done) co_return sink_trouble(done.error());
    co_return SinkResult<std::string>{""};
  }

 private:
  std::string lines_of(const SinkBatch& batch) const {
    std::string lines;
    for (const FeedRow& row : batch.rows) {
      lines += fmt::to_string(row.number) + '\t';
      for (const std::string_view text :
           {std::string_view(context_->project), sink_page(row), std::string_view(row.part), std::string_view(row.rule),
            to_string(row.news)}) {
        append_copy_text(lines, text);
        lines += '\t';
      }
      lines += to_rfc3339_ms(row.at) + '\t';
      row.value.empty() ? void(lines += "\\N") : append_copy_text(lines, without_null_characters(row.value));
      lines += '\n';
    }
    return lines;
  }

  const std::shared_ptr<SinkContext> context_;
  const std::shared_ptr<TableConnection> connection_;
  ThreadPoolExecutor thread_{1};  // joined when the connection has been given up
};

}  // namespace

std::shared_ptr<ResultSink> make_postgresql_sink(std::shared_ptr<SinkContext> context) {
  return std::make_shared<TableSink>(std::move(context));
}

}  // namespace argiope
