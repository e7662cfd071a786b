// Other programs: create_subprocess_exec, with asyncio's names and rules. Their pipes are Streams.
//
// A child is held by a pidfd, so that no signal can reach a stranger that got its number, and neither SIGCHLD nor a
// thread is needed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

namespace detail {
class ProcessState;
}

// The kind of one of the child's standard descriptors. `to_stdout` is for stderr only.
enum class Stdio : std::uint8_t { inherit, pipe, devnull, to_stdout };

struct SubprocessOptions {
  Stdio in = Stdio::inherit;
  Stdio out = Stdio::inherit;
  Stdio err = Stdio::inherit;
  // "NAME=value" each; none: as ours. The program is looked for in our own PATH.
  std::optional<std::vector<std::string>> environment;
  // Empty: ours. A relative name of the program counts from here.
  std::string working_directory;
  // Makes the child the leader of a new session, out of reach of our terminal's signals.
  bool new_session = false;
  // The child and all that descend from it end together, and with us, however we end (SIGKILL included): a small
  // process between us and the child adopts what the child leaves behind, children that have left its session or have
  // forked twice included, and kills it all when we are gone. The child leads a session of its own; signals go to its
  // process group. When it has ended after SIGTERM, what is left of its tree is killed; SIGKILL kills all of the tree.
  // A child that ends by itself may leave others behind on purpose: wait() waits for those, too; communicate() lets
  // them live. It does not hold for what others start on the child's behalf (systemd-run, at, docker), nor for a
  // descendant that has changed its user; and when the small process itself is killed, only the child dies with it.
  // Takes two descriptors more while the child runs.
  bool supervised = false;
  // For the pipes.
  StreamOptions stream;
};

struct ProcessOutput {
  std::string out;
  std::string err;
};

// A child process. It is reaped as soon as it ends while the loop runs, whether or not a task waits.
//
// Lifetime: destroying it kills (SIGKILL) a child that still runs, and blocks for the moment until that has ended: so
//           neither a zombie nor a process without an owner is left, even when the loop is destroyed first. (Only a
//           child that changed its user, and that we may not kill, is left.) Destroy it before the backend.
// Threads:  the loop's own.
class Process {
 public:
  explicit Process(std::shared_ptr<detail::ProcessState> state) noexcept;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // The child's own, supervised or not.
  pid_t pid() const;
  // The exit status, or minus the signal that ended it; none while it runs. As asyncio, 255 when other code took the
  // status away (a waitpid(-1), SIGCHLD ignored).
  std::optional<int> returncode() const;

  // Our ends of its pipes. std::logic_error for what is no pipe.
  Stream& in();
  Stream& out();
  Stream& err();

  // Suspends until the child has ended; any number of tasks. Gives returncode().
  // A child that writes to a pipe without a reader never ends: use communicate() then.
  // Cancel: leaves the child as it is.
  Coro<int> wait();
  // Writes `input` and closes the child's stdin, reads its stdout and stderr to the end, and waits for it; "" for what
  // is no pipe. A child that does not read all of its input is no error.
  // Errors: LimitOverrunError when one of them is longer than `limit` bytes; std::logic_error for input without a pipe.
  //         The child runs on.
  // Cancel: leaves the child as it is, and what it wrote in the streams; what of the input was sent is unknown.
  Coro<ProcessOutput> communicate(std::string input = {}, std::size_t limit = 64 * 1024 * 1024);

  // The same, into `output` as it comes, for who looks at it meanwhile or wants what came before an error or a
  // cancellation.
  Coro<void> communicate(std::string input, ProcessOutput& output, std::size_t limit);

  // Errors: std::system_error no_such_process when it has ended; invalid_argument for what is no signal.
  void send_signal(int signal_number);
  // SIGTERM, SIGKILL.
  void terminate();
  void kill();

 private:
  detail::ProcessState& state() const;
  std::shared_ptr<detail::ProcessState> state_;
};

// Starts the program `args[0]`, found in PATH unless it has a slash, for the loop that is running on this thread.
// The child has default signal dispositions, no signal blocked, and no descriptor beyond its three.
//
// Suspends: never, unlike asyncio's; blocks until the program has been loaded.
// Errors:   std::system_error when it cannot be started (not found, no permission, no such directory);
//           std::invalid_argument for no arguments, or a null byte in any text.
Process create_subprocess_exec(const std::vector<std::string>& args, const SubprocessOptions& options = {});
// The same for a command line of /bin/sh. Never put into it what came from outside.
Process create_subprocess_shell(const std::string& command, const SubprocessOptions& options = {});

// Raises the soft limit of open files to the hard one, and gives it. Supervised children have the limit that was
// before.
// Threads: before others start.
std::size_t raise_open_files_limit() noexcept;

// The program that create_subprocess_exec would run: `name` itself when it has a slash (a relative one counts from
// `directory`, or ours), or where it lies in PATH.
// Errors: not_found, as a sentence that says whether it is not there, a directory, or not executable.
Result<std::string> find_program(const std::string& name, const std::string& directory = {});

}  // namespace argiope
