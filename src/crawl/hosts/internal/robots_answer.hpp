// The judgement on an answer to a question for robots.txt. The crawl's shards and the projects' HostDesk ask in their
// own ways, and go by this one judgement.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/robots.hpp"

namespace argiope {

struct RobotsAnswer {
  enum class Kind : std::uint8_t {
    challenged,  // to be asked again, with an answer to the challenge
    failed,      // nobody answered: the host is in trouble, and nothing is known of its file
    refused,     // the host answered that now it does not say: everything is forbidden, perhaps only for a moment
    known,       // from now on it counts, for kRobotsLifetime
  };

  Kind kind = Kind::known;
  Error error{};                     // of `failed` and `refused`: why
  Duration at_least{};               // of `refused`: the Retry-After that came with it
  std::optional<RobotsRules> rules;  // of `known`: the file that there is; without, everything is allowed

  // Zero: it names none. A longer one counts as `most`, which is logged.
  Duration crawl_delay(std::string_view site, Duration most) const;
  // The part of `rules` to be kept; they are gone then. Null allows everything.
  std::unique_ptr<const RobotsRules> take_rules();
};

// `sent`, `response`: what the request ended with, redirects followed. `attempts`: how many answers before this one, in
// a row, were challenges or refusals. `product_token`: as RobotsRules::parse() has it.
RobotsAnswer judge_robots(const Result<void>& sent, const HttpResponse& response, std::uint32_t attempts,
                          std::string_view product_token, WallTime now);

}  // namespace argiope
