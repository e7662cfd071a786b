// Schedules of a store on Redis, and the requests that came under a key. What a step changes is in rows of its own
// (places), apart from the texts, which may be long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/redis/redis_rows.hpp"

namespace argiope {

class RedisSchedules final : public ScheduleRows {
 public:
  // `last`: the last id that was given.
  RedisSchedules(RedisRows& rows, ScheduleId& last) noexcept : rows_(rows), last_(last) {}

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

 private:
  PutScheduleReply put(const PutSchedule& wanted);
  // Without its texts.
  std::optional<StoredSchedule> place_of(ScheduleId id);
  void write_place(const StoredSchedule& schedule);
  void read_texts(StoredSchedule& schedule);
  void write_run(ScheduleId id, const ScheduleRun& run);
  void erase_run(ScheduleId id, std::uint64_t number);
  std::vector<std::uint64_t> active_of(ScheduleId id);

  RedisRows& rows_;
  ScheduleId& last_;
};

class RedisKeys final : public KeyRows {
 public:
  // `last`: the number of the last request.
  RedisKeys(RedisRows& rows, std::uint64_t& last) noexcept : rows_(rows), last_(last) {}
  std::optional<KeptRequest> find(const std::string& key) override;
  void write(const RequestKey& key, WallTime at, const std::string& reply) override;
  std::size_t prune(WallTime before, std::size_t most, std::size_t limit) override;

 private:
  RedisRows& rows_;
  std::uint64_t& last_;
};

}  // namespace argiope
