// SqliteSchedules: schedules in a file, their steps and their histories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/sqlite_news.hpp"
#include "store/jobs/sqlite_statements.hpp"

namespace argiope {

class SqliteSchedules final : public ScheduleRows {
 public:
  SqliteSchedules(SqliteStatements& sql, SqliteNews& news) noexcept : sql_(sql), news_(news) {}

  std::vector<PutScheduleReply> put(const std::vector<PutSchedule>& wanted) override;
  bool erase(ScheduleId id) override;
  std::vector<StoredSchedule> list(const ScheduleFilter& filter) override;
  std::optional<StoredSchedule> get(ScheduleId id) override;
  std::optional<StoredSchedule> find(std::string_view name) override;
  std::optional<ScheduleView> look(const ScheduleLook& look) override;
  std::optional<ScheduleRun> run(ScheduleId id, std::uint64_t number) override;
  std::vector<ScheduleRun> runs(ScheduleId id, std::size_t limit) override;
  std::optional<ScheduleOutput> output(ScheduleId id) override;

  bool advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) override;
  void write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) override;
  void take_off_started(ScheduleId id, std::uint32_t count) override;
  void end_run(const EndedRun& run, WallTime at, std::string_view error, std::string_view result) override;

  // As they are in the file; and into it, at the end of a transaction.
  void load();
  void flush();

 private:
  PutScheduleReply put_one(const PutSchedule& wanted);
  void write_run(ScheduleId id, const ScheduleRun& run);
  void keep_older(ScheduleId id, const ScheduleRun& run);
  std::optional<ScheduleRun> kept_at(std::uint64_t entry);
  std::optional<ScheduleRun> kept_run(ScheduleId id, std::uint64_t number);

  SqliteStatements& sql_;
  SqliteNews& news_;
  ScheduleId last_ = 0, last_stored_ = 0;  // that has been given
};

}  // namespace argiope
