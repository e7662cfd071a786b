#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "argiope/async/stream.hpp"

// Debian 12's header forgets to say that these are C functions.
extern "C" {
#include <sys/pidfd.h>
}

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "argiope/async/group.hpp"
#include "argiope/async/sync.hpp"
#include "async/supervision.hpp"
#include "async/unique_fd.hpp"
#include "base/internal/printable.hpp"

namespace argiope {
namespace {

// The limit that raise_open_files_limit() found; 0 when it has changed nothing.
std::atomic<int> soft_limit_before = 0;

int soft_limit_for_children() noexcept { return soft_limit_before.load(std::memory_order_relaxed); }

// Why a file cannot be run; empty when it can.
std::string why_not(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::strerror(errno);
  if (S_ISDIR(status.st_mode)) return "it is a directory";
  if (::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) return "it is not executable (chmod +x)";
  return {};
}

}  // namespace

std::size_t raise_open_files_limit() noexcept {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  if (files.rlim_cur < files.rlim_max) {
    const rlim_t before = files.rlim_cur;
    // Without a hard limit fs.nr_open is one.
    if (files.rlim_max == RLIM_INFINITY) files.rlim_max = files.rlim_cur = 1'048'576;
    files.rlim_cur = files.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &files) == 0 && before <= std::numeric_limits<int>::max()) {
      int none = 0;
      soft_limit_before.compare_exchange_strong(none, static_cast<int>(before));
    }
    ::getrlimit(RLIMIT_NOFILE, &files);
  }
  return files.rlim_cur;
}

Result<std::string> find_program(const std::string& name, const std::string& directory) {
  if (name.empty()) return fail(Errc::invalid_input, "a command without a name");
  if (name.contains('/')) {
    const std::string path = name.starts_with('/') || directory.empty() ? name : directory + '/' + name;
    const std::string why = why_not(path);
    if (why.empty()) return name;
    return fail(Errc::not_found,
                fmt::format("command {}{}: {}", in_quotes(name),
                            directory.empty() || name.starts_with('/') ? "" : " in " + directory, why));
  }
  const char* const given = ::getenv("PATH");
  std::string_view folders = given != nullptr ? given : "/usr/local/bin:/usr/bin:/bin";
  std::string reason = "there is no such program in PATH";
  for (bool more = true; more;) {
    const std::size_t colon = folders.find(':');
    more = colon != std::string_view::npos;
    const std::string folder(folders.substr(0, colon));
    if (more) folders.remove_prefix(colon + 1);
    const std::string path = (folder.empty() ? "." : folder) + '/' + name;
    const std::string why = why_not(path);
    if (why.empty()) return path;
    if (::access(path.c_str(), F_OK) == 0) reason = fmt::format("{}: {}", path, why);
  }
  return fail(Errc::not_found, fmt::format("command {}: {}", in_quotes(name), reason));
}

namespace detail {

class ProcessState {
 public:
  using Shared = std::shared_ptr<ProcessState>;

  ProcessState() = default;
  ProcessState(const ProcessState&) = delete;
  ProcessState& operator=(const ProcessState&) = delete;
  ~ProcessState() { end(); }

  // From here on the child is ours to end. `control`: our end of its supervisor's socket, if it has one.
  void hold(pid_t pid, UniqueFd control = UniqueFd()) {
    pid_ = pid;
    control_ = std::move(control);
    pidfd_ = UniqueFd(::pidfd_open(pid, 0));
    if (!pidfd_) {
      const int error = errno;
      if (!control_) ::kill(pid, SIGKILL);
      control_.reset();
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      pid_ = 0;
      throw std::system_error(error, std::generic_category(), "pidfd_open");
    }
  }
  void watch(IoBackend& backend) {
    watch_ = backend.watch(pidfd_.get());
    reap_when_ended();
  }

  // Waits for the supervisor to say that the command runs.
  void hear_of_start(const std::string& what) {
    StartReport report{EPIPE, 0};
    char* const into = reinterpret_cast<char*>(&report);
    for (std::size_t got = 0; got < sizeof report;) {
      const ssize_t size = ::read(control_.get(), into + got, sizeof report - got);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) {
        report.error = EPIPE;
        break;
      }
      got += static_cast<std::size_t>(size);
    }
    if (report.error != 0) throw std::system_error(report.error, std::generic_category(), what);
    command_ = report.command;
  }

  pid_t pid() const noexcept { return command_ != 0 ? command_ : pid_; }
  std::optional<int> returncode() const noexcept { return returncode_; }
  void send_signal(int signal_number) {
    if (returncode_) {
      throw std::system_error(std::make_error_code(std::errc::no_such_process),
                              fmt::format("process {} has ended", pid_));
    }
    if (control_ && (signal_number < 1 || signal_number >= NSIG)) {
      throw std::system_error(EINVAL, std::generic_category(), fmt::format("signal {}", signal_number));
    }
    if (control_) return order(static_cast<unsigned char>(signal_number));
    if (::pidfd_send_signal(pidfd_.get(), signal_number, nullptr, 0) != 0) {
      throw std::system_error(errno, std::generic_category(), fmt::format("signal {}", signal_number));
    }
  }
  // Leaves neither a child nor a zombie.
  void end() noexcept {
    if (pid_ == 0) return;
    watch_.reset();  // before the wait: a watched pidfd is non-blocking, and so would that be
    if (control_) {
      control_.reset();  // its supervisor kills the tree, and ends
      reap(0);
    }
    // Waiting for what may not be killed could take for ever.
    if (!returncode_ && ::pidfd_send_signal(pidfd_.get(), SIGKILL, nullptr, 0) == 0) reap(0);
    for (Stream* stream : {&in, &out, &err}) {
      if (*stream) stream->abort();
    }
  }

  static Coro<int> wait(Shared self) {
    co_await self->ended_.wait();
    co_return *self->returncode_;
  }
  using Collect = Coro<void> (*)(Stream& stream, std::size_t limit, std::string& collected);
  static Coro<void> communicate(Shared self, std::string input, ProcessOutput& output, std::size_t limit,
                                Collect collect);
  static Coro<ProcessOutput> communicate(Shared self, std::string input, std::size_t limit);

  Stream in;
  Stream out;
  Stream err;

 private:
  // A supervisor that has just ended hears nothing any more.
  void order(unsigned char what) noexcept { (void)!::send(control_.get(), &what, 1, MSG_NOSIGNAL); }
  // Processes that the command has left behind may stay: its output has ended.
  void release() noexcept {
    if (control_) order(0);
  }

  void reap_when_ended() {
    watch_->start(Interest::read, [this] {
      if (!reap(WNOHANG)) reap_when_ended();
    });
  }
  // False when it has not ended.
  bool reap(int flags) noexcept {
    siginfo_t info{};
    int result;
    do {
      result = ::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED | flags);
    } while (result != 0 && errno == EINTR);
    if (result == 0 && info.si_pid == 0) return false;
    if (result != 0) {
      returncode_ = 255;
    } else {
      returncode_ = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
    }
    watch_.reset();
    pidfd_.reset();
    control_.reset();
    ended_.set();
    return true;
  }

  pid_t pid_ = 0;      // our child: the supervisor, if there is one
  pid_t command_ = 0;  // its child
  UniqueFd pidfd_;
  UniqueFd control_;
  std::unique_ptr<Watch> watch_;
  std::optional<int> returncode_;
  Event ended_;
};

namespace {

Coro<void> feed(Stream& stream, const std::string& input) {
  if (!stream) co_return;
  constexpr std::size_t kPiece = 64 * 1024;
  try {
    for (std::size_t sent = 0; sent < input.size(); sent += kPiece) {
      stream.write(std::string_view(input).substr(sent, kPiece));
      co_await stream.drain();
    }
    stream.close();
    co_await stream.wait_closed();
  } catch (const std::system_error&) {
    // The child reads no more.
    stream.close();
  }
}

Coro<void> collect(Stream& stream, std::size_t limit, std::string& collected) {
  if (stream) collected = co_await stream.read_all(limit);
}

Coro<void> collect_as_it_comes(Stream& stream, std::size_t limit, std::string& collected) {
  if (!stream) co_return;
  while (co_await stream.read_onto(collected, std::max(limit, limit + 1) - collected.size())) {
    if (collected.size() <= limit) continue;
    collected.resize(limit);
    throw LimitOverrunError(fmt::format("the stream is longer than {} bytes", limit), limit);
  }
}

}  // namespace

Coro<ProcessOutput> ProcessState::communicate(Shared self, std::string input, std::size_t limit) {
  ProcessOutput output;
  co_await communicate(std::move(self), std::move(input), output, limit, collect);
  co_return output;
}

Coro<void> ProcessState::communicate(Shared self, std::string input, ProcessOutput& output, std::size_t limit,
                                     Collect collect) {
  if (!input.empty() && !self->in) throw std::logic_error("input for a process whose stdin is no pipe");
  try {
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      group.create_task(feed(self->in, input));
      group.create_task(collect(self->out, limit, output.out));
      group.create_task(collect(self->err, limit, output.err));
      co_return;
    });
  } catch (const ExceptionGroup& group) {
    std::rethrow_exception(group.exceptions().front());
  }
  self->release();
  co_await wait(self);
}

}  // namespace detail

using detail::ProcessState;
using detail::UniqueFd;

namespace {

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

// Before the command's own: the supervisor's name, the limit of open files, the program.
constexpr std::size_t kSupervisorArguments = 3;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

// Above the standard descriptors, which the child's are put in place of one by one.
UniqueFd above_standard(UniqueFd fd) {
  if (fd.get() > STDERR_FILENO) return fd;
  UniqueFd higher(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!higher) throw std::system_error(errno, std::generic_category(), "fcntl");
  return higher;
}

Pipe new_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  return {above_standard(std::move(read_end)), above_standard(std::move(write_end))};
}

// The settings for posix_spawn, freed at the end of the scope.
class SpawnPlan {
 public:
  SpawnPlan() {
    check(::posix_spawn_file_actions_init(&actions_), "posix_spawn");
    if (const int error = ::posix_spawnattr_init(&attributes_); error != 0) {
      ::posix_spawn_file_actions_destroy(&actions_);
      check(error, "posix_spawn");
    }
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // Sets the child's descriptor `target`; gives our end, if there is one.
  UniqueFd connect(Stdio kind, int target) {
    switch (kind) {
      case Stdio::inherit: return UniqueFd();
      case Stdio::devnull: {
        const int mode = target == STDIN_FILENO ? O_RDONLY : O_WRONLY;
        check(::posix_spawn_file_actions_addopen(&actions_, target, "/dev/null", mode, 0), "posix_spawn");
        return UniqueFd();
      }
      case Stdio::to_stdout:
        if (target != STDERR_FILENO) throw std::invalid_argument("Stdio::to_stdout is for stderr only");
        check(::posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO), "posix_spawn");
        return UniqueFd();
      case Stdio::pipe: break;
    }
    Pipe pipe = new_pipe();
    const bool child_reads = target == STDIN_FILENO;
    UniqueFd& theirs = theirs_.emplace_back(std::move(child_reads ? pipe.read_end : pipe.write_end));
    check(::posix_spawn_file_actions_adddup2(&actions_, theirs.get(), target), "posix_spawn");
    return std::move(child_reads ? pipe.write_end : pipe.read_end);
  }

  // The socket that the child's supervisor listens on; gives our end.
  UniqueFd connect_control() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::system_error(errno, std::generic_category(), "socketpair");
    }
    UniqueFd ours(ends[0]);
    theirs_.emplace_back(above_standard(UniqueFd(ends[1])));
    // After the standard ones, whose copies are made by then.
    check(::posix_spawn_file_actions_adddup2(&actions_, theirs_.back().get(), detail::kControlDescriptor),
          "posix_spawn");
    return above_standard(std::move(ours));
  }

  // `program`: the file that is run; by its name, found in PATH, when that is args[0] itself.
  pid_t spawn(const std::string& program, const std::vector<std::string>& args, const SubprocessOptions& options) {
    if (!options.working_directory.empty()) {
      refuse_null_bytes(options.working_directory);
      check(::posix_spawn_file_actions_addchdir_np(&actions_, options.working_directory.c_str()), "posix_spawn");
    }
    // A supervisor does that itself, for it is run from a descriptor.
    if (!options.supervised) {
      check(::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1), "posix_spawn");
    }
    sigset_t all;
    sigset_t none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    check(::posix_spawnattr_setsigdefault(&attributes_, &all), "posix_spawn");
    check(::posix_spawnattr_setsigmask(&attributes_, &none), "posix_spawn");
    const int flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                      (options.new_session || options.supervised ? POSIX_SPAWN_SETSID : 0);
    check(::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags)), "posix_spawn");
    std::vector<char*> argv = pointers(args);
    std::vector<char*> envp = options.environment ? pointers(*options.environment) : std::vector<char*>{};
    pid_t pid = 0;
    const int error = ::posix_spawnp(&pid, program.c_str(), &actions_, &attributes_, argv.data(),
                                     options.environment ? envp.data() : environ);
    if (error != 0) throw std::system_error(error, std::generic_category(), cannot_run(args, options));
    theirs_.clear();
    return pid;
  }

  static std::string cannot_run(const std::vector<std::string>& args, const SubprocessOptions& options) {
    const std::string& name = options.supervised ? args[kSupervisorArguments] : args[0];
    return options.working_directory.empty()
               ? fmt::format("cannot run {}", in_quotes(name))
               : fmt::format("cannot run {} in {}", in_quotes(name), options.working_directory);
  }

 private:
  static void refuse_null_bytes(const std::string& text) {
    if (text.find('\0') != std::string::npos) throw std::invalid_argument("null byte in what a process is given");
  }
  static std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> found;
    for (const std::string& text : texts) {
      refuse_null_bytes(text);
      found.push_back(const_cast<char*>(text.c_str()));
    }
    found.push_back(nullptr);
    return found;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  std::vector<UniqueFd> theirs_;
};

Stream& piped(Stream& stream, const char* name) {
  if (!stream) throw std::logic_error(fmt::format("the process's {} is no pipe: see SubprocessOptions", name));
  return stream;
}

void start_supervised(ProcessState& state, SpawnPlan& plan, const std::vector<std::string>& args,
                      const SubprocessOptions& options) {
  const Result<std::string> program = find_program(args[0], options.working_directory);
  std::vector<std::string> line{"argiope-supervisor", std::to_string(soft_limit_for_children()),
                                program ? *program : args[0]};
  line.insert(line.end(), args.begin(), args.end());
  if (!program) throw std::system_error(ENOENT, std::generic_category(), SpawnPlan::cannot_run(line, options));
  UniqueFd control = plan.connect_control();
  const std::string supervisor = fmt::format("/proc/self/fd/{}", detail::supervisor_program());
  state.hold(plan.spawn(supervisor, line, options), std::move(control));
  state.hear_of_start(SpawnPlan::cannot_run(line, options));
}

}  // namespace

Process create_subprocess_exec(const std::vector<std::string>& args, const SubprocessOptions& options) {
  if (args.empty()) throw std::invalid_argument("a subprocess needs the name of a program");
  IoBackend& backend = EventLoop::current().backend();
  auto state = std::make_shared<ProcessState>();
  SpawnPlan plan;
  UniqueFd in = plan.connect(options.in, STDIN_FILENO);
  UniqueFd out = plan.connect(options.out, STDOUT_FILENO);
  UniqueFd err = plan.connect(options.err, STDERR_FILENO);
  // Before the child, so that a backend without I/O refuses in time.
  if (in) state->in = Stream(in.release(), options.stream);
  if (out) state->out = Stream(out.release(), options.stream);
  if (err) state->err = Stream(err.release(), options.stream);
  if (options.supervised) {
    start_supervised(*state, plan, args, options);
  } else {
    state->hold(plan.spawn(args[0], args, options));
  }
  state->watch(backend);
  return Process(std::move(state));
}

Process create_subprocess_shell(const std::string& command, const SubprocessOptions& options) {
  return create_subprocess_exec({"/bin/sh", "-c", command}, options);
}

Process::Process(std::shared_ptr<ProcessState> state) noexcept : state_(std::move(state)) {}
Process::Process(Process&& other) noexcept = default;
Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    if (state_) state_->end();
    state_ = std::move(other.state_);
  }
  return *this;
}
Process::~Process() {
  if (state_) state_->end();
}

ProcessState& Process::state() const {
  if (!state_) throw std::logic_error("this Process is empty: it was moved from");
  return *state_;
}
pid_t Process::pid() const { return state().pid(); }
std::optional<int> Process::returncode() const { return state().returncode(); }
Stream& Process::in() { return piped(state().in, "stdin"); }
Stream& Process::out() { return piped(state().out, "stdout"); }
Stream& Process::err() { return piped(state().err, "stderr"); }
Coro<int> Process::wait() { return state(), ProcessState::wait(state_); }
Coro<ProcessOutput> Process::communicate(std::string input, std::size_t limit) {
  return state(), ProcessState::communicate(state_, std::move(input), limit);
}
Coro<void> Process::communicate(std::string input, ProcessOutput& output, std::size_t limit) {
  return state(), ProcessState::communicate(state_, std::move(input), output, limit, detail::collect_as_it_comes);
}
void Process::send_signal(int signal_number) { state().send_signal(signal_number); }
void Process::terminate() { send_signal(SIGTERM); }
void Process::kill() { send_signal(SIGKILL); }

}  // namespace argiope
