#include "store/postgresql/postgres_session.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace argiope {
namespace {

constexpr std::uint32_t kBigint = 20, kBytea = 17;
constexpr std::size_t kMuchBytes = 1024 * 1024;

template <class Number>
void append_big_endian(std::string& to, Number number) {
  for (int shift = 8 * (static_cast<int>(sizeof number) - 1); shift >= 0; shift -= 8)
    to += static_cast<char>(static_cast<std::uint64_t>(number) >> shift);
}

}  // namespace

void PostgresColumn::add(std::string_view bytes) {
  append_big_endian(values_, static_cast<std::uint32_t>(bytes.size()));
  values_.append(bytes);
  is_numbers_ = false;
  ++count_;
}

void PostgresColumn::add_number(std::int64_t number) {
  append_big_endian(values_, std::uint32_t{sizeof number});
  append_big_endian(values_, number);
  ++count_;
}

// An empty one has no dimension, and then its type does not matter to unnest().
std::string PostgresColumn::array() const {
  std::string array;
  append_big_endian(array, std::uint32_t{empty() ? 0u : 1u});
  append_big_endian(array, std::uint32_t{0});
  append_big_endian(array, is_numbers_ ? kBigint : kBytea);
  if (empty()) return array;
  append_big_endian(array, count_);
  append_big_endian(array, std::uint32_t{1});
  return array + values_;
}

std::size_t PostgresValues::bytes() const noexcept {
  std::size_t bytes = 0;
  for (const std::string& value : values_) bytes += value.size();
  return bytes;
}

void PostgresValues::add_number(std::int64_t number) { append_big_endian(values_.emplace_back(), number); }

std::int64_t PostgresRows::number(int row, int column) const {
  std::uint64_t number = 0;
  for (const char byte : text(row, column)) number = number << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(number);
}

Result<void> PostgresSession::connect() {
  prepared_.clear();
  sent_.clear();
  if (auto done = link_.connect(); !done) return done;
  PQsetnonblocking(link_.get(), 1);
  return {};
}

void PostgresSession::disconnect() noexcept { link_.disconnect(); }

void PostgresSession::lost() {
  PostgresLost lost{PQstatus(link_.get()) == CONNECTION_BAD ? postgres_words(PQerrorMessage(link_.get()))
                                                            : std::string("the server did not answer in time")};
  disconnect();
  throw lost;
}

void PostgresSession::send(const std::string& statement, const PostgresValues& values) {
  PGconn* const postgres = link_.get();
  if (postgres == nullptr) throw PostgresLost{"not connected"};
  if (PQpipelineStatus(postgres) == PQ_PIPELINE_OFF && PQenterPipelineMode(postgres) != 1) lost();
  const auto [at, is_new] = prepared_.try_emplace(statement);
  if (is_new) {
    at->second = fmt::format("argiope{}", prepared_.size());
    if (PQsendPrepare(postgres, at->second.c_str(), statement.c_str(), 0, nullptr) != 1) lost();
    sent_.push_back(true);
  }
  std::vector<const char*> texts;
  std::vector<int> lengths;
  for (const std::string& value : values.all()) {
    texts.push_back(value.data());
    lengths.push_back(static_cast<int>(value.size()));
  }
  const std::vector<int> formats(texts.size(), 1);
  if (PQsendQueryPrepared(postgres, at->second.c_str(), static_cast<int>(texts.size()), texts.data(), lengths.data(),
                          formats.data(), 1) != 1)
    lost();
  sent_.push_back(false);
  // libpq holds at most 2 GB.
  if (values.bytes() < kMuchBytes) return;
  link_.begin_wait();
  if (!link_.send_all()) lost();
}

PostgresResult PostgresSession::next() {
  while (PQisBusy(link_.get()) != 0) {
    if (!link_.await_input()) lost();
  }
  return PostgresResult(PQgetResult(link_.get()));
}

std::vector<PostgresRows> PostgresSession::sync() {
  if (link_.get() == nullptr) throw PostgresLost{"not connected"};
  if (sent_.empty()) return {};
  if (PQpipelineSync(link_.get()) != 1) lost();
  link_.begin_wait();
  std::vector<PostgresRows> answers;
  std::optional<PostgresRefused> refused;
  const auto note_refused = [&](const PostgresResult& answer) {
    const char* const code = PQresultErrorField(answer.get(), PG_DIAG_SQLSTATE);
    const char* const said = PQresultErrorField(answer.get(), PG_DIAG_MESSAGE_PRIMARY);
    if (!refused) refused = {code == nullptr ? "" : code, postgres_words(said)};
    // What was to be prepared behind it is not.
    prepared_.clear();
  };
  for (const bool prepares : std::exchange(sent_, {})) {
    while (PostgresResult answer = next()) {
      const ExecStatusType status = PQresultStatus(answer.get());
      if (status == PGRES_FATAL_ERROR) {
        if (PQstatus(link_.get()) == CONNECTION_BAD) lost();
        note_refused(answer);
      } else if (!prepares && status != PGRES_PIPELINE_ABORTED) {
        answers.emplace_back(std::move(answer));
      }
    }
  }
  for (;;) {
    const PostgresResult answer = next();
    if (answer == nullptr) {
      if (PQstatus(link_.get()) == CONNECTION_BAD) lost();
      continue;
    }
    if (PQresultStatus(answer.get()) == PGRES_PIPELINE_SYNC) break;
    if (PQstatus(link_.get()) == CONNECTION_BAD) lost();
    note_refused(answer);
  }
  // Names that the server knows already are not given twice.
  if (refused) {
    if (PQexitPipelineMode(link_.get()) != 1) lost();
    if (is_in_failed_transaction()) run("ROLLBACK");
    run("DEALLOCATE ALL");
    throw *refused;
  }
  return answers;
}

void PostgresSession::run(const std::string& statements) {
  PGconn* const postgres = link_.get();
  if (postgres == nullptr) throw PostgresLost{"not connected"};
  if (PQpipelineStatus(postgres) != PQ_PIPELINE_OFF && PQexitPipelineMode(postgres) != 1) lost();
  if (PQsendQuery(postgres, statements.c_str()) != 1) lost();
  link_.begin_wait();
  std::optional<PostgresRefused> refused;
  while (const PostgresResult answer = next()) {
    if (PQresultStatus(answer.get()) != PGRES_FATAL_ERROR) continue;
    if (PQstatus(postgres) == CONNECTION_BAD) lost();
    const char* const code = PQresultErrorField(answer.get(), PG_DIAG_SQLSTATE);
    refused = {code == nullptr ? "" : code, postgres_words(PQresultErrorField(answer.get(), PG_DIAG_MESSAGE_PRIMARY))};
  }
  if (refused) throw *refused;
}

bool PostgresSession::is_in_transaction() const noexcept {
  return link_.get() != nullptr && PQtransactionStatus(link_.get()) != PQTRANS_IDLE;
}
bool PostgresSession::is_in_failed_transaction() const noexcept {
  return link_.get() != nullptr && PQtransactionStatus(link_.get()) == PQTRANS_INERROR;
}

bool PostgresSession::was_notified() {
  if (link_.get() == nullptr) return false;
  bool notified = false;
  // Twice: behind the last words of a server that ends is the end of the connection.
  for (int i = 0; i < 2; ++i) {
    if (PQconsumeInput(link_.get()) == 1) continue;
    disconnect();
    return true;
  }
  while (PGnotify* const note = PQnotifies(link_.get())) {
    PQfreemem(note);
    notified = true;
  }
  return notified;
}

}  // namespace argiope
