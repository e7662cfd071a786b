// Looking at real processes from outside, for tests of what becomes of them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace argiope {

// So long takes only what hangs, however slow the machine is.
inline constexpr std::chrono::minutes kPatience{5};

// Whether there is such a process, and it has not ended.
inline bool is_alive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string id, name, state;
  return stat >> id >> name >> state && state != "Z";
}

// Looks until `condition()` holds; false when that hangs.
template <class Condition>
bool comes_true(Condition condition) {
  const auto give_up_at = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up_at) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return true;
}

// The number that a process has written to `file`; 0: none yet.
inline pid_t read_pid(const std::string& file) {
  pid_t pid = 0;
  std::ifstream(file) >> pid;
  return pid;
}

}  // namespace argiope
