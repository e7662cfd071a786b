// AuditLog: who has changed what, kept beyond the daemon's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

struct AuditOptions {
  std::string file;  // empty: entries are kept in memory, and end with the process
  // Entries that are older, or beyond the last so many, or so many bytes of them, are forgotten.
  Duration keep = std::chrono::days{90};
  std::size_t most_entries = 50'000;
  std::size_t most_bytes = 16 * 1024 * 1024;
};

// One request that has changed something, but for the puts, leases and settlements that are everyday work. So do an
// operator's commands by the beanstalkd protocol, and reloads, each in the words of a request.
struct AuditEntry {
  std::uint64_t number = 0;  // from 1, in the order of the answers
  WallTime at{};
  std::string who;      // the name of the token; "beanstalkd 127.0.0.1:5012" of who has none; "operator"
  std::string from;     // the client's address
  std::string method;   // "POST"; "kick"; "SIGHUP"
  std::string path;     // decoded
  std::string request;  // the beginning of the body, see audited_text()
  // nullopt: the client left before it was answered, or a reload has failed in its middle: the change may have been
  // made or not.
  std::optional<int> status;
  std::string request_id;  // empty: it is no request of the API
};

// An audit's text on a request's body: the beginning of its JSON, without the values of members that hold what jobs are
// given or leave, or secrets. Of what is no JSON, nothing.
std::string audited_text(std::string_view body);

// An entry is a line of the file, in the order of the numbers, which go on from run to run. It is written on a thread
// of its own, right after the change. A file that cannot be written is told of in the log; its lines are kept, and
// written with the next.
//
// Lifetime: destroying it waits for the file.
// Threads:  the loop's own.
class AuditLog {
 public:
  explicit AuditLog(AuditOptions options);
  ~AuditLog();

  // Reads the file, and makes it if need be. Blocks. Before the first add().
  // Errors: of the file. Lines that cannot be read are passed over, and told of in the log.
  Result<void> open();
  // Gives it its number; each goes to the program's log, too.
  void add(AuditEntry entry);
  // Suspends until what was added is on the disk, or could not be written.
  // Cancel: it is written nevertheless.
  Coro<void> written();
  // Forgets what is too old. How many entries.
  std::size_t prune(WallTime now);

  // As its line has it.
  struct Kept {
    std::uint64_t number = 0;
    WallTime at{};
    std::string json;
  };
  // Newest last; numbers grow by one, but what is too old is gone.
  const std::deque<Kept>& entries() const noexcept;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace argiope
