// EventFeed: what happens, as server-sent events that a client can follow and take up again where it lost them; and
// counters, as snapshots, so that an event that is lost never leaves a wrong number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/engine/engine.hpp"
#include "argiope/web/http_server.hpp"
#include "serve/bounds/answer_room.hpp"
#include "serve/gate/access_right.hpp"
#include "serve/watch/counters.hpp"
#include "serve/watch/tally.hpp"

namespace argiope {

struct EventFeedOptions {
  std::size_t kept = 10'000;  // events for who comes back, or reads slowly
  std::size_t most_streams = 256;
  std::size_t most_streams_of_one = 64;  // of Wanted::who
  Duration snapshot_interval = std::chrono::seconds{1};
  Duration heartbeat_interval = std::chrono::seconds{15};
  // Events within this time go to a stream in one piece.
  Duration gather_interval = std::chrono::milliseconds{100};
  // How long events are still kept when the last stream has ended.
  Duration keep_for = std::chrono::seconds{60};
  // The daemon's own numbers for snapshots, as a JSON object; may be empty.
  std::function<std::string()> daemon_counters;
  // Where snapshots wait for their clients. One for which there is no room is left out until there is. Null: nothing is
  // counted.
  std::shared_ptr<AnswerRoom> room{};
};

// A stream sends, each with the id RUN-NUMBER: `job`, `schedule`, `queue`, and what tell() is given. Without an id:
// `counters` each second; `reset` when the client has missed events and has to look anew ({"why":…}); and comments when
// nothing happens. Nothing is kept for one stream: who reads more slowly than EventFeedOptions::kept allows is told
// `reset` and goes on with what happens then. Events are written, and queues counted, once for all streams, and only
// while there are some; otherwise all it does is what Tally does.
//
// Lifetime: its engine outlives it. Streams under way may outlive it, and end at their next step.
// Threads:  the loop's own; made on a running loop.
class EventFeed {
 public:
  static constexpr std::size_t kMostUnwatched = 50;
  // How old counts may be for those who ask for them: GET /metrics, GET /v1/notify.
  static constexpr Duration kCountAge = std::chrono::seconds{1};

  // `run_id`: of this run of the daemon; no two in a row may be the same.
  EventFeed(Engine& engine, EventFeedOptions options, std::uint64_t run_id);
  ~EventFeed();

  struct Wanted {
    bool jobs = true, schedules = true, queues = true, workers = true, projects = true, counters = true;
    // Jobs, runs of schedules and changes of this queue alone; empty: all.
    std::string queue;
    // As the client sent it.
    std::optional<std::string> last_event_id;
    // Without one: it begins with so many of the last events, as far as they are kept. While there was no stream these
    // are failures, cancelled jobs, changes of queues and events of schedules, kMostUnwatched at most; they have no id.
    std::size_t last = 0;
    // Only of queues, schedules and projects that it is true of; empty: all.
    MaySee may_see;
    std::string who;                       // has a share of the streams; empty: of all of them
    std::shared_ptr<AccessRight> right{};  // the stream ends with it; null: it has no end
  };
  // An answer that streams until the client leaves, its right ends, or stop(). 429 where there are too many, 503 after
  // stop().
  ServerResponse stream(Wanted wanted);
  // The same for who has another way to send: `send` gets what the client is to have, piece by piece, until it returns
  // false, or stop(). An exception of `send` ends the stream and reaches the caller.
  using Send = std::function<Coro<bool>(std::string_view piece)>;
  Coro<void> follow(Wanted wanted, Send send);
  // The snapshot as JSON, at most a snapshot_interval old:
  // {"at","queues":{"mail":{"ready",…,"done_rate",…}},"totals":{…},"daemon":{…}}.
  Coro<Result<std::string>> counters(MaySee may_see = {});
  // The same as numbers: counts them anew unless that was done within `age`. Errors: of the store; there are older ones
  // then.
  Coro<Result<void>> count(Duration age);
  const Counters& snapshot() const noexcept;
  // Sends news of others: `event: KIND`, `data: JSON`. `owner`: the queue, schedule or project it is about; empty: it
  // is for those who see all. Goes to those who want workers; of the kind "project" to those who want projects.
  void tell(std::string_view kind, std::string_view json, std::string_view owner = {});
  // Whether what is told now is kept for anybody.
  bool is_recording() const noexcept;
  // Streams end, and no more begin. Counting goes on. Does nothing the second time.
  void stop();

  std::size_t streams() const noexcept;
  // How often a stream was told `reset`.
  std::uint64_t resets() const noexcept;
  const Tally& tally() const noexcept;
  // Tally::heard(), for who may outlive the feed.
  std::function<std::uint64_t()> changes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace argiope
