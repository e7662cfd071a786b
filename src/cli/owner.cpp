#include "cli/owner.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "argiope/async/subprocess.hpp"
#include "base/internal/printable.hpp"
#include "cli/did_you_mean.hpp"
#include "cli/error_advice.hpp"
#include "cli/job_store.hpp"

namespace argiope {
namespace {

constexpr int kTriesToOwn = 20;
constexpr std::chrono::milliseconds kTryInterval{50};

}  // namespace

Result<std::unique_ptr<Store>> open_owned(const std::string& where, std::string_view advice) {
  auto store = open_store(where);
  for (int i = 0; i < kTriesToOwn && !store && store.error().code == Errc::busy; ++i) {
    std::this_thread::sleep_for(kTryInterval);
    store = open_store(where);
  }
  if (store) return store;
  if (store.error().code == Errc::busy) store.error().message.append(": ").append(advice);
  return std::unexpected(with_store_option(std::move(store.error())));
}

Coro<Result<void>> with_broker(Store& store, std::function<Coro<Result<void>>(Broker& broker)> act) {
  BrokerOptions options;
  options.new_queue = default_queue_policy();
  options.seed = std::random_device{}();
  auto opened = co_await Broker::open(store, options);
  if (!opened) co_return std::unexpected(std::move(opened.error()));
  Broker& broker = **opened;
  auto acted = co_await act(broker);
  auto closed = co_await broker.close();
  co_return acted ? closed : acted;
}

int close_owned(Store& store, const Result<void>& ran) {
  const Result<void> closed = store.close();
  if (!ran) return complain(ran.error());
  if (!closed) return complain(closed.error());
  return kExitFinished;
}

std::string default_worker_name() {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}:{}", host, ::getpid());
}

void kill_commands() {
  std::ifstream children(fmt::format("/proc/self/task/{}/children", ::gettid()));
  for (pid_t child = 0; children >> child;) ::kill(child, SIGTERM);
}

Result<void> check_command(const std::vector<std::string>& command) {
  const auto program = find_program(command.front());
  if (!program) return fail(Errc::invalid_input, program.error().message);
  return {};
}

Result<bool> may_make_queue(const std::string& wanted, const std::vector<std::string>& there) {
  if (std::ranges::find(there, wanted) != there.end()) return false;
  if (const std::string meant = did_you_mean(wanted, there); !meant.empty()) {
    return fail(Errc::invalid_input, fmt::format("there is no queue {}{} --create makes a new one", in_quotes(wanted), meant));
  }
  return true;
}

}  // namespace argiope
