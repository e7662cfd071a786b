// Schedules in memory. A million of them cost little more than what they say: each is one block with its texts,
// equal definitions are kept once, and what only a schedule has that has fired before is kept apart.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "jobs/internal/store_rows.hpp"
#include "store/jobs/schedules_by_name.hpp"

namespace argiope {

class MemorySchedules : public ScheduleRows {
 public:
  MemorySchedules() = default;
  MemorySchedules(const MemorySchedules&) = delete;
  ~MemorySchedules() override;

  std::vector<PutScheduleReply> put(const std::vector<PutSchedule>& wanted) override;
  bool erase(ScheduleId id) override;
  std::vector<StoredSchedule> list(const ScheduleFilter& filter) override;
  std::optional<StoredSchedule> get(ScheduleId id) override;
  std::optional<StoredSchedule> find(std::string_view name) override;
  std::vector<ScheduleRun> runs(ScheduleId id, std::size_t limit) override;
  std::optional<ScheduleRun> run(ScheduleId id, std::uint64_t number) override;
  std::optional<ScheduleOutput> output(ScheduleId id) override;
  std::optional<ScheduleView> look(const ScheduleLook& look) override;

  bool advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) override;
  void take_off_started(ScheduleId id, std::uint32_t count) override;
  void write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) override;
  void end_run(const EndedRun& run, WallTime at, std::string_view error, std::string_view result) override;

  // --- firing and ends of runs between start() and stop() can be undone
  void start() {
    undo_.clear();
    undoable_ = true;
  }
  void stop() {
    undo_.clear();
    undoable_ = false;
  }
  void take_back();  // and stops

 private:
  // The record that a schedule has once it has fired, or has been put as one that has.
  struct Past {
    WallTime last{};
    std::uint64_t fired = 0;
    std::uint64_t missed = 0;
    std::uint64_t entries = 0;
    std::uint32_t active = 0;
    std::vector<ScheduleRun> runs;  // entry n is at (n - 1) % kRunsKept
    // Entries of runs that had not ended when others took their places there. Null: there have been none.
    std::unique_ptr<std::map<std::uint64_t, ScheduleRun>> older;
  };
  // The front of a block; name and trigger follow where its last member ends.
  struct Schedule {
    ScheduleId id;
    std::uint64_t version;
    WallTime next;
    Past* past;
    std::uint32_t definition;
    std::uint32_t trigger_bytes;
    std::uint16_t name_bytes;
    bool paused;
    std::string_view name() const noexcept { return {text(), name_bytes}; }
    std::string_view trigger() const noexcept { return {text() + name_bytes, trigger_bytes}; }
    char* text() noexcept { return reinterpret_cast<char*>(&paused) + 1; }
    const char* text() const noexcept { return reinterpret_cast<const char*>(&paused) + 1; }
  };
  // Ids come in order and are not used again: so many of them in a row share a page, which goes with the last of them.
  static constexpr std::size_t kPage = 64;
  struct Page {
    std::uint64_t number;
    std::size_t live;
    std::unique_ptr<Schedule*[]> schedules;
  };
  struct Definition {
    std::string text;
    std::uint64_t uses = 0;
  };
  // The place as it was before a change.
  struct PlaceBefore {
    ScheduleId id;
    std::uint64_t version;
    SchedulePlace place;
    std::uint32_t active;
  };
  struct RunBefore {
    ScheduleId id;
    std::size_t at;
    std::optional<ScheduleRun> run;  // nullopt: none
  };
  struct OlderBefore {
    ScheduleId id;
    std::uint64_t number;
    std::optional<ScheduleRun> run;  // nullopt: none
  };
  struct OutputBefore {
    ScheduleId id;
    std::optional<ScheduleOutput> output;  // nullopt: none
  };
  using Before = std::variant<PlaceBefore, RunBefore, OlderBefore, OutputBefore>;

  static Schedule* make(std::string_view name, std::string_view trigger);
  static void destroy(Schedule* schedule) noexcept;
  static Past& past_of(Schedule& schedule);
  static SchedulePlace place_of(const Schedule& schedule);
  static void set_place(Schedule& schedule, const SchedulePlace& place);
  static StoredSchedule told(const Schedule& schedule, const Definition* definition);

  std::vector<Page>::const_iterator page_from(std::uint64_t number) const;
  // Where the schedule of that id stands in its page; null if it is not there.
  Schedule** slot_of(ScheduleId id) const;
  Schedule* at(ScheduleId id) const;
  void append(Schedule* schedule);
  void make_room_by_name(std::size_t more);
  PutScheduleReply put(const PutSchedule& wanted, std::size_t hash);
  std::uint32_t use_definition(const std::string& text);
  void drop_definition(std::uint32_t index);
  void remember_before(Before before);
  void remember(const Schedule& schedule);
  void write(Schedule& schedule, const ScheduleRun& run);
  void set_older(Schedule& schedule, std::uint64_t number, std::optional<ScheduleRun> run);

  void set_output(ScheduleId id, std::optional<ScheduleOutput> output);

  ScheduleId last_id_ = 0;
  std::map<ScheduleId, ScheduleOutput> outputs_;
  std::vector<Page> pages_;  // by number
  SchedulesByName<Schedule> by_name_;
  std::deque<Definition> definitions_;
  std::vector<std::uint32_t> free_definitions_;
  std::uint32_t last_definition_ = 0;  // the one used last
  std::unordered_map<std::string_view, std::uint32_t> definition_of_;
  std::vector<Before> undo_;
  bool undoable_ = false;
};

}  // namespace argiope
