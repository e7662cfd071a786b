// The further work of those who start other programs: the environment that a child gets, and its end.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"

extern char** environ;

namespace argiope {

// This process's environment with `besides` ("NAME=value") in place of what has their names. Without null bytes, which
// no environment can hold.
inline std::vector<std::string> environment_with(const std::vector<std::string>& besides) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view inherited(*entry);
    const std::string_view name = inherited.substr(0, inherited.find('='));
    const bool is_replaced =
        std::ranges::any_of(besides, [&](std::string_view own) { return own.substr(0, own.find('=')) == name; });
    if (!is_replaced) environment.emplace_back(inherited);
  }
  environment.insert(environment.end(), besides.begin(), besides.end());
  for (std::string& entry : environment) std::erase(entry, '\0');
  return environment;
}

// SIGTERM, and after the grace SIGKILL for all that is left of its tree.
inline Coro<void> end_process(Process& process, Duration grace) {
  if (process.returncode()) co_return;
  process.terminate();
  try {
    co_await Timeout(saturating_add(EventLoop::current().time(), grace)).run([](Process& child) -> Coro<void> {
      co_await child.wait();
    }(process));
  } catch (const TimeoutError&) {
  }
  if (!process.returncode()) process.kill();
  co_await process.wait();
}

}  // namespace argiope
