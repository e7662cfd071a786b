#include "project/process/internal/system_call_filter.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <mutex>

namespace argiope {
namespace {

// Refused as to a user without rights.
constexpr const char* kDeniedCalls[] = {
    // the network, and sockets of the machine; pairs of sockets are left
    "socket", "accept", "accept4", "bind", "listen",
    // other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
    // file systems and namespaces
    "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount",
    "fspick", "mount_setattr", "unshare", "setns", "name_to_handle_at", "open_by_handle_at", "fanotify_init",
    "fanotify_mark", "quotactl", "quotactl_fd", "swapon", "swapoff", "nfsservctl", "lookup_dcookie",
    // the kernel's inside
    "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "kexec_load", "kexec_file_load", "init_module",
    "finit_module", "delete_module", "create_module", "userfaultfd", "syslog", "_sysctl", "uselib", "vmsplice",
    "migrate_pages", "move_pages", "mbind", "set_mempolicy", "set_mempolicy_home_node",
    // the machine
    "reboot", "acct", "settimeofday", "stime", "clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64",
    "adjtimex", "sethostname", "setdomainname", "vhangup", "iopl", "ioperm", "vm86", "vm86old",
    // memory that outlives processes and that no bound of them counts
    "shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl",
    "mq_open", "memfd_secret"};

// As if this kernel had none: programs do without then.
constexpr const char* kMissingCalls[] = {"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register",
                                         "memfd_create"};

constexpr unsigned long kNewNamespaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                            CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET, 0x80 /* CLONE_NEWTIME */};

struct ReleaseFilter {
  void operator()(void* filter) const noexcept { ::seccomp_release(filter); }
};
using CallFilter = std::unique_ptr<void, ReleaseFilter>;

// A name that the library has not is a call that this machine's processor or its time has not.
int deny_calls(scmp_filter_ctx filter, auto& names, int error) {
  for (const char* const name : names) {
    const int number = ::seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) continue;
    if (const int failed = ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), number, 0); failed != 0 && failed != -EDOM)
      return failed;
  }
  return 0;
}

int fill_filter(scmp_filter_ctx filter) {
  if (const int failed = deny_calls(filter, kDeniedCalls, EPERM); failed != 0) return failed;
  if (const int failed = deny_calls(filter, kMissingCalls, ENOSYS); failed != 0) return failed;
  for (const unsigned long flag : kNewNamespaces) {
    const scmp_arg_cmp has_flag = SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag);
    if (const int failed = ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, has_flag); failed != 0)
      return failed;
  }
  const scmp_arg_cmp other_family = SCMP_A0(SCMP_CMP_NE, AF_UNIX, 0);
  return ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socketpair), 1, other_family);
}

Result<int> write_filter() {
  const CallFilter filter(::seccomp_init(SCMP_ACT_ALLOW));
  if (filter == nullptr)
    return fail(Errc::unsupported, "libseccomp cannot make a filter of system calls on this machine");
  if (const int failed = fill_filter(filter.get()); failed != 0) {
    return fail(Errc::unsupported,
                fmt::format("libseccomp cannot make the filter of system calls: {}", ::strerror(-failed)));
  }
  const int file = ::memfd_create("argiope-calls", MFD_CLOEXEC);
  if (file < 0) return fail(Errc::io, fmt::format("no memory for the filter of system calls: {}", ::strerror(errno)));
  if (const int failed = ::seccomp_export_bpf(filter.get(), file); failed != 0) {
    ::close(file);
    return fail(Errc::io, fmt::format("cannot write the filter of system calls: {}", ::strerror(-failed)));
  }
  return file;
}

}  // namespace

Result<std::string> system_call_filter() {
  static std::mutex mutex;
  static int file = -1;
  const std::scoped_lock lock(mutex);
  if (file < 0) {
    const Result<int> written = write_filter();
    if (!written) return std::unexpected(written.error());
    file = *written;
  }
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file);
}

}  // namespace argiope
