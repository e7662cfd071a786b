// The supervisor of one command: a small static program of its own, which the library carries inside itself and runs
// from memory (async/supervision.cpp). It starts the command, adopts whatever the command's tree leaves behind, and
// kills all of it when the process that asked for the command is gone, however that has ended: the socket between them
// closes then.
//
// argv: its name, the soft limit of open files for the command (0: as it is), the program's path, and the command's own
// arguments from its name on. Descriptor 3 is the socket. To the socket goes first a StartReport. From it come bytes: a
// signal for the command's process group (SIGTERM: what is left when the command has ended is killed; SIGKILL: all of
// the tree, now), or 0: what the command leaves behind may stay. It ends as the command ends: with its status, or by
// its signal.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "async/supervision.hpp"

namespace {

using argiope::detail::StartReport;

constexpr int kControl = argiope::detail::kControlDescriptor;
constexpr int kCannotRun = 127;
// A child that may not be killed (it has changed its user) is waited for so long.
constexpr int kPatienceMs = 5'000;
constexpr int kLookAgainMs = 10;

pid_t supervisor = 0;
pid_t command = 0;
int status = SIGKILL;  // as waitpid() gives it; until then as of one that was killed
bool ended = false;    // the command; what it left behind may live on
bool has_children = true;

int limit_of_files = 0;

[[noreturn]] void run_command(char** argv, char** environment, int report) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(kCannotRun);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  rlimit files{};
  if (limit_of_files > 0 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = static_cast<rlim_t>(limit_of_files);
    setrlimit(RLIMIT_NOFILE, &files);
  }
  char* const path = argv[2];
  execve(path, argv + 3, environment);
  if (errno == ENOEXEC) {
    // A script that does not say what runs it: the shell does.
    argv[2] = const_cast<char*>("sh");
    argv[3] = path;
    execve("/bin/sh", argv + 2, environment);
  }
  const int error = errno;
  (void)!write(report, &error, sizeof error);
  _exit(kCannotRun);
}

void reap() {
  for (;;) {
    int of_child = 0;
    const pid_t child = waitpid(-1, &of_child, WNOHANG);
    if (child == 0 || (child < 0 && errno == EINTR)) return;
    if (child < 0) {
      has_children = false;
      return;
    }
    if (child == command) {
      ended = true;
      status = of_child;
    }
  }
}

// Our own children; those of a child that has ended become ours.
void kill_children() {
  char path[64] = "/proc/self/task/";
  char digits[16];
  int count = 0;
  for (pid_t left = getpid(); left > 0; left /= 10) digits[count++] = static_cast<char>('0' + left % 10);
  std::size_t end = strlen(path);
  while (count > 0) path[end++] = digits[--count];
  strcpy(path + end, "/children");
  const int list = open(path, O_RDONLY | O_CLOEXEC);
  if (list < 0) {
    if (!ended) kill(-command, SIGKILL);
    return;
  }
  char text[4096];
  pid_t child = 0;
  for (ssize_t size; (size = read(list, text, sizeof text)) > 0;) {
    for (ssize_t i = 0; i < size; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        child = child * 10 + (text[i] - '0');
      } else {
        if (child > 0) kill(child, SIGKILL);
        child = 0;
      }
    }
  }
  if (child > 0) kill(child, SIGKILL);
  close(list);
}

void kill_tree() {
  for (int waited = 0; has_children && waited < kPatienceMs; waited += kLookAgainMs) {
    if (!ended) kill(-command, SIGKILL);
    kill_children();
    // A process that has just been killed is mostly gone at once, and its children are ours.
    for (int i = 0; i < 100 && has_children; ++i) {
      siginfo_t info{};
      if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
      reap();
      kill_children();
    }
    reap();
    if (has_children) poll(nullptr, 0, kLookAgainMs);
  }
}

[[noreturn]] void end_as_the_command() {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    kill(getpid(), number);
    _exit(128 + number);
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : kCannotRun);
}

[[noreturn]] void supervise(int signals) {
  bool may_stay = false;
  bool ending = false;
  for (;;) {
    pollfd watched[] = {{kControl, POLLIN, 0}, {signals, POLLIN, 0}};
    if (poll(watched, 2, -1) < 0) continue;
    if (watched[1].revents != 0) {
      signalfd_siginfo info{};
      while (read(signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
          kill_tree();
          end_as_the_command();
        }
      }
    }
    reap();
    if (watched[0].revents != 0) {
      unsigned char orders[16];
      const ssize_t size = read(kControl, orders, sizeof orders);
      if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (size <= 0) {
        kill_tree();
        end_as_the_command();
      }
      for (ssize_t i = 0; i < size; ++i) {
        may_stay = orders[i] == 0;
        if (orders[i] == SIGTERM) ending = true;
        if (orders[i] == SIGKILL) {
          kill_tree();
          end_as_the_command();
        }
        if (orders[i] != 0 && !ended) kill(-command, orders[i]);
      }
    }
    reap();
    if (!ended) continue;
    if (ending) kill_tree();
    if (ending || may_stay || !has_children) end_as_the_command();
  }
}

// The asker may be gone by now, which the next look at the socket shows.
void tell(StartReport report) { (void)!send(kControl, &report, sizeof report, MSG_NOSIGNAL); }

}  // namespace

int main(int argc, char** argv, char** environment) {
  if (argc < 4) return kCannotRun;
  limit_of_files = atoi(argv[1]);
  fcntl(kControl, F_SETFD, FD_CLOEXEC);
  if (close_range(kControl + 1, ~0u, 0) != 0) {
    for (int descriptor = kControl + 1; descriptor < 4096; ++descriptor) close(descriptor);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t heard;
  sigemptyset(&heard);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&heard, number);
  sigprocmask(SIG_BLOCK, &heard, nullptr);
  const int signals = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
  int report[2];
  if (signals < 0 || pipe2(report, O_CLOEXEC) != 0) {
    tell({errno, 0});
    return kCannotRun;
  }
  supervisor = getpid();
  command = fork();
  if (command == 0) run_command(argv, environment, report[1]);
  if (command < 0) {
    tell({errno, 0});
    return kCannotRun;
  }
  close(report[1]);
  StartReport told{0, command};
  while (read(report[0], &told.error, sizeof told.error) < 0 && errno == EINTR) {
  }
  close(report[0]);
  // Nobody is to wait for our copies to close.
  for (int descriptor = 0; descriptor < kControl; ++descriptor) close(descriptor);
  tell(told);
  if (told.error != 0) return kCannotRun;
  supervise(signals);
}
