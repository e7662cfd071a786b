// Notifier: gathers what goes wrong, and has it told to those whom the configuration names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/engine/engine.hpp"
#include "serve/notify/internal/notify_rule.hpp"
#include "serve/watch/event_feed.hpp"

namespace argiope {

class Metrics;

struct NotifierOptions {
  std::string from;  // which daemon: a name for people
  // How often to look at what is a state and not an event: depth, age, the daemon.
  Duration look_interval = std::chrono::seconds{10};
  struct Unwell {
    std::string part;  // "the store", "the target of queue mail"; the name of a project
    std::string text;
  };
  // The daemon's troubles now. Empty: nobody knows.
  std::function<std::vector<Unwell>()> unwell;
  // Which projects do not go on now, and why. Empty: there are none.
  std::function<std::vector<Unwell>()> halted;
  // The faults of a project's last round that has ended. nullopt: there is no such project. Empty: there are none.
  std::function<std::optional<std::vector<std::string>>(const std::string& project)> alarms;
  // Where commands find the daemon, MessageHead::daemon. Empty: nobody knows.
  std::function<std::string()> daemon;
  std::string file;  // of its memory; empty: it ends with the process
};

// A message is a job of the rule's own queue (NotifyRule::queue), put when its rule has waited for more to come, and
// not sooner after the one before than the rule's interval. From then on it is as durable as any job. Notices gathered
// and not put yet, and TroubleLog's troubles are in a file a second later at most, for the next process. A message that
// tells of an end waits until the one that told of the trouble was delivered or given up. Of messages that could not be
// delivered nothing is told but to the log.
//
// Lifetime: its engine outlives it, or stop() is called before.
// Threads:  the loop's own; made on a running loop.
class Notifier {
 public:
  Notifier(Engine& engine, EventFeed& events, NotifierOptions options);
  ~Notifier();

  // Reads what the process before has remembered, before the first set(). Unreadable text is told in the log.
  void open();
  // From now on. Queues of messages get their policy. A rule whose name was there keeps what it has to tell and what is
  // open; what was of others is dropped. Errors: of the store, naming the rule.
  Coro<Result<void>> set(std::vector<NotifyRule> rules);
  // Puts a message that says that it is a test. Errors: not_found; of the put.
  Coro<Result<JobId>> test(std::string name);
  // A round of a project has ended. `alarms` has its faults, a sentence each.
  void tell_alarms(const std::string& project, const std::vector<std::string>& alarms);
  // Puts what is gathered, and hears nothing more.
  Coro<void> stop();

  struct Status {
    std::string name;
    std::size_t gathered = 0;  // troubles that wait for their message
    std::size_t lasting = 0;   // that were told, and are not over
    std::uint64_t messages = 0;
    std::optional<WallTime> last_at;
  };
  // Of each rule, since the daemon began or the rule came.
  std::vector<Status> statuses() const;

  struct Left {
    std::string name;
    std::uint64_t messages = 0;
  };
  // Of rules that are gone, or have another name now: how many messages wait that nobody delivers. As of the last count
  // of the queues.
  std::vector<Left> left() const;
  // The same as one number, for as long as the metrics live. Lifetime: the engine outlives them, too.
  void add_to(Metrics& metrics) const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace argiope
