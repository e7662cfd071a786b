// The changes of a reload, for the audit.
#pragma once

#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "config/internal/configuration.hpp"
#include "serve/gate/internal/token_file.hpp"

namespace argiope {

// The settings of files that a daemon goes by, as far as a reload takes it. [serve] of `configuration` is passed over.
struct SettingsInForce {
  const Configuration& configuration;
  const std::vector<Token>& tokens;
  const std::vector<std::string>& hosts;
  WallTime certificate_expires_at{};  // the epoch: there is none
};

// {"queues":{"added":["a"],"changed":["b"],"removed":["c"]},"schedules":{…},"notify":{…},"tokens":{…},
// "hosts":["jobs.example"],"certificate_expires_at":"…"}, without what is the same. Names alone, no secrets.
std::string changes_between(const SettingsInForce& before, const SettingsInForce& after);

}  // namespace argiope
