#include "cli/owner.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "argiope/async/stream.hpp"
#include "base/internal/printable.hpp"
#include "cli/did_you_mean.hpp"
#include "cli/error_advice.hpp"
#include "cli/job_store.hpp"
#include "cli/random_number.hpp"
#include "remote/internal/api_client.hpp"

namespace argiope {

EngineOptions owner_options() {
  EngineOptions options;
  options.new_queue = default_queue_policy();
  options.seed = random_number();
  return options;
}

int run_as_owner(EventLoop& loop, std::string where, std::string_view advice, EngineOptions options,
                 const OwnerAction& act) {
  if (is_daemon(where)) {
    return complain(fmt::format("--store {}: the daemon itself runs its schedules; argiope schedule add, list and the "
                                "other commands work on it",
                                where),
                    kExitUsage);
  }
  return loop.run_until_complete(
      [](std::string name, std::string_view if_busy, EngineOptions with, const OwnerAction& action) -> Coro<int> {
        auto engine = co_await Engine::open(std::move(name), std::move(with));
        if (!engine) {
          if (engine.error().code == Errc::busy) engine.error().message.append(": ").append(if_busy);
          co_return complain(with_store_option(std::move(engine.error())));
        }
        const auto acted = co_await action(*engine);
        const auto closed = co_await engine->close();
        if (!acted) co_return complain(acted.error());
        co_return closed ? kExitFinished : complain(closed.error());
      }(std::move(where), advice, std::move(options), act));
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
    return fail(Errc::invalid_input,
                fmt::format("there is no queue {}{} --create makes a new one", in_quotes(wanted), meant));
  }
  return true;
}

}  // namespace argiope
