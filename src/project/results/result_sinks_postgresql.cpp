// Sinks that fill a table of PostgreSQL, each event exactly once: a batch comes by COPY into a temporary table and from
// there, in the same transaction, into the table, but for what that has already.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "argiope/async/threads.hpp"
#include "base/internal/rfc3339.hpp"
#include "project/results/result_sink.hpp"
#include "project/results/sink_copy_text.hpp"
#include "store/postgresql/internal/postgres_link.hpp"

namespace argiope {
namespace {

constexpr Duration kUsualTableTime = std::chrono::minutes{1};
constexpr std::string_view kColumns = "number, project, page, part, rule, news, at, value";
// The bytes that are copied at a time.
constexpr std::size_t kCopyPieceBytes = 256 * 1024;

// A table, whose connection is made when it is needed. Its functions block.
//
// Threads: as PostgresLink.
class TableConnection {
 public:
  TableConnection(std::string connection, std::string table, Duration limit)
      : limit_(limit), link_(std::move(connection), PostgresLink::Server::any, wait_), table_(std::move(table)) {}

  Result<void> insert(const std::string& lines, const std::string& password) {
    if (link_.has_given_up()) return trouble("given up");
    if (link_.get() == nullptr) {
      if (auto done = link_.connect(password); !done) return trouble(done.error().message.c_str());
      if (auto done = prepare(); !done) return link_.disconnect(), done;
    }
    auto done = insert_all(lines);
    // The rest of the transaction goes with the connection.
    if (!done) link_.disconnect();
    return done;
  }

  void give_up() { link_.give_up(); }

 private:
  std::unexpected<Error> trouble(const char* said) const {
    return fail(Errc::network, fmt::format("table {}: {}", table_, postgres_words(said)));
  }

  Result<void> run(const std::string& statement) {
    const PostgresResult answer(PQexec(link_.get(), statement.c_str()));
    const auto status = PQresultStatus(answer.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
    return trouble(answer ? PQresultErrorMessage(answer.get()) : PQerrorMessage(link_.get()));
  }

  // A user that may not make tables may fill one that is there.
  Result<bool> table_is_there() {
    const char* const values[] = {table_.c_str()};
    const PostgresResult answer(
        PQexecParams(link_.get(), "select to_regclass($1) is not null", 1, nullptr, values, nullptr, nullptr, 0));
    if (PQresultStatus(answer.get()) != PGRES_TUPLES_OK) return trouble(PQerrorMessage(link_.get()));
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
      const PostgresResult begun(
          PQexec(link_.get(), fmt::format("copy argiope_batch ({}) from stdin", kColumns).c_str()));
      if (PQresultStatus(begun.get()) != PGRES_COPY_IN) return trouble(PQerrorMessage(link_.get()));
    }
    for (std::size_t at = 0; at < lines.size(); at += kCopyPieceBytes) {
      const std::size_t size = std::min(kCopyPieceBytes, lines.size() - at);
      if (PQputCopyData(link_.get(), lines.data() + at, static_cast<int>(size)) != 1)
        return trouble(PQerrorMessage(link_.get()));
    }
    if (PQputCopyEnd(link_.get(), nullptr) != 1) return trouble(PQerrorMessage(link_.get()));
    Result<void> done;
    while (const PostgresResult answer{PQgetResult(link_.get())}) {
      if (done && PQresultStatus(answer.get()) != PGRES_COMMAND_OK) done = trouble(PQresultErrorMessage(answer.get()));
      if (PQstatus(link_.get()) == CONNECTION_BAD) return done ? trouble(PQerrorMessage(link_.get())) : done;
    }
    return done;
  }

  const Duration limit_;
  ServerWait wait_{"", limit_};
  PostgresLink link_;
  const std::string table_;
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
