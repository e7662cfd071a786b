#include "cli/owner.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace argiope {
namespace {

constexpr int kTriesToOwn = 20;
constexpr std::chrono::milliseconds kTryInterval{50};

}  // namespace

Result<std::unique_ptr<Store>> open_owned(const std::string& where) {
  auto store = open_store(where);
  for (int i = 0; i < kTriesToOwn && !store && store.error().code == Errc::busy; ++i) {
    std::this_thread::sleep_for(kTryInterval);
    store = open_store(where);
  }
  return store;
}

std::string default_worker_name() {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}:{}", host, ::getpid());
}

void kill_commands() {
  std::ifstream children(fmt::format("/proc/self/task/{}/children", ::gettid()));
  for (pid_t child = 0; children >> child;) ::kill(-child, SIGKILL);
}

}  // namespace argiope
