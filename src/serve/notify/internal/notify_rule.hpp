// NotifyRule: who is told of which trouble, and how: one [[notify]] of a configuration (docs/monitoring.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/calls/calls.hpp"
#include "base/internal/json_reader.hpp"
#include "serve/base/internal/own_queues.hpp"

namespace argiope {

enum class Trouble : std::uint8_t {
  buried,    // a job has failed for good
  expired,   // a lease ran out, or its worker has gone
  missed,    // planned times of a schedule were not run
  failed,    // a run of a schedule has failed, or the schedule cannot run
  depth,     // more jobs are ready than `depth`
  age,       // jobs wait longer than `age`
  daemon,    // the daemon itself
  alarm,     // a round of a project has raised its alarm
  paused,    // a project has paused, or cannot go on
  findings,  // a job went well and has found what people should look at
};
inline constexpr std::array<std::string_view, 10> kTroubleNames{"buried", "expired", "missed", "failed", "depth",
                                                                "age",    "daemon",  "alarm",  "paused", "findings"};

// A trouble of a queue, schedule or project, or of a part of the daemon: "failed" of "backup".
using TroubleKey = std::pair<Trouble, std::string>;

// The form of a message.
enum class NotifyFormat : std::uint8_t {
  json,  // all that is known, as one object
  text,  // {"text":"…"}: Slack, Mattermost and their like
  mail,  // RFC 5322, for sendmail(1)
};
inline constexpr std::string_view kNotifyFormats[] = {"json", "text", "mail"};

struct NotifyRule {
  std::string name;
  std::uint32_t on = 0;           // a bit for each Trouble
  std::vector<std::string> only;  // beginnings of names of queues, schedules and projects; empty: all
  std::uint64_t depth = 0;
  Duration age{};
  NotifyFormat format = NotifyFormat::json;
  std::string from = "argiope", to;             // of mail
  Duration wait = std::chrono::seconds{10};     // after the first trouble, for more to come
  Duration interval = std::chrono::minutes{5};  // between two messages
  bool resolved = true;                         // also tell when it is over
  // One of them.
  std::optional<CommandOptions> command;
  std::optional<HttpPush> push;
  std::string target_text;  // the same as the file says it: equal texts are equal targets

  bool wants(Trouble trouble, std::string_view subject) const noexcept;
  // That its messages wait in: jobs of a queue of the daemon's own, which makes them durable and has them tried again.
  std::string queue() const { return std::string(kNotifyQueues) + name; }
};

// Mistakes go to the errors of `table`.
NotifyRule read_notify_rule(const JsonValue& table);

}  // namespace argiope
