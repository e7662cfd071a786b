// PostgresSchedules: schedules in PostgreSQL, with their places, histories and outputs. What changes them is sent in
// the order it was asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/postgresql/postgres_work.hpp"

namespace argiope {

class PostgresSchedules final : public ScheduleRows {
 public:
  explicit PostgresSchedules(PostgresWork& work) noexcept : work_(work) {}

  void ask_for(const NeededRows& needed, std::vector<PostgresWork::Statement>& reads);
  void take_brought(const NeededRows& needed, PostgresWork::Answers& answers, std::size_t& at);

  std::vector<PutScheduleReply> put(const std::vector<PutSchedule>& schedules) override;
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

  void mark() {
    places_.mark();
    runs_.mark();
  }
  void keep() noexcept {
    places_.keep();
    runs_.keep();
  }
  void take_back() {
    places_.take_back();
    runs_.take_back();
  }
  void clear() noexcept {
    places_.clear();
    runs_.clear();
  }

 private:
  struct Place {
    bool is_there = false;
    std::uint64_t version = 0, entries = 0;
  };
  using RunKey = std::pair<ScheduleId, std::uint64_t>;

  PutScheduleReply put_one(const PutSchedule& wanted, std::optional<std::pair<ScheduleId, std::uint64_t>> old);
  void write_run(ScheduleId id, const ScheduleRun& run);
  void take_places(const PostgresRows& rows);
  const Place& place_of(ScheduleId id);

  PostgresWork& work_;
  PostgresOverlay<ScheduleId, Place> places_;
  PostgresOverlay<RunKey, std::optional<ScheduleRun>> runs_;  // written, or gone
};

}  // namespace argiope
