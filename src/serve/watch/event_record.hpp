// EventRecord: the last events, numbered, for streams that read them and clients that come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/engine/engine.hpp"

namespace argiope {

// Which event of which run of the daemon: "5f3c9a12-1041".
struct EventId {
  std::uint64_t run = 0;
  std::uint64_t number = 0;
};
std::string to_string(const EventId& id);
// The value of a Last-Event-ID; nullopt for what is none of ours.
std::optional<EventId> parse_event_id(std::string_view text) noexcept;

// `event: NAME`, `data: …` for each line, and the line that ends it.
void append_event(std::string& out, std::string_view name, std::string_view data);

// An event as it is kept. Its text is written when it is first read, so that one that nobody reads costs no writing.
struct KeptEvent {
  enum class Kind : std::uint8_t { job, schedule, queue, project, other };
  Kind kind = Kind::other;
  std::string owner;  // the queue, schedule or project it tells of, by which it is chosen; empty: the daemon
  // As it was told; its texts are below.
  JobEvent job;
  ScheduleEvent schedule;
  std::string name, queue, text;
  std::string written;  // as a stream sends it, but for its id; empty until asked for
};

// Numbers grow by one from 1 on, and by more where events were not recorded.
//
// Cost:    O(1) for each event, with no allocation once it is full and texts are short.
// Threads: one at a time.
class EventRecord {
 public:
  // `most`: at least 1.
  explicit EventRecord(std::size_t most) noexcept : most_(most) {}

  void add(const JobEvent& event);
  void add(const ScheduleEvent& event);
  // `data`: JSON. An event called "project" is of the kind project, all else other.
  void add(std::string_view kind, std::string_view data, std::string_view owner);
  // Forgets all, and leaves a gap: who has read up to here has missed something.
  void forget();

  // Of the oldest that is kept, and of the next that comes.
  std::uint64_t first() const noexcept { return next_ - kept_; }
  std::uint64_t next() const noexcept { return next_; }
  // first() <= number < next().
  const KeptEvent& at(std::uint64_t number) const { return events_[number % most_]; }
  // The text of it that a stream sends, without its id.
  std::string_view written(std::uint64_t number);

 private:
  KeptEvent& append(KeptEvent::Kind kind, std::string_view owner);

  const std::size_t most_;
  std::vector<KeptEvent> events_;
  std::uint64_t next_ = 1;
  std::uint64_t kept_ = 0;
};

}  // namespace argiope
