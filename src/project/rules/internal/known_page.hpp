// The knowledge of a project about a page, as far as it decides when the page is visited.
//
//                 ask                      lease                  success
//   (unknown) ─────────► waiting ─────────────────► visiting ────────────────► done ──┐
//                         ▲ ▲ ▲   retry, or again    │    │                           │ ask: tag, age, force;
//                         │ │ └──────────────────────┘    │ failed, no retry left     │ auto_recrawl
//                         │ └─────────────────────────────┼───────────────────────────┘
//                         │      ask: tag, rest, force    ▼
//                         └──────────────────────────── failed
//
//   cancel: waiting and visiting become cancelled; an ask takes it up again as one that is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "project/rules/internal/page_terms.hpp"

namespace argiope {

enum class PageState : std::uint8_t { waiting, visiting, done, failed, cancelled };
std::string_view to_string(PageState state) noexcept;

// For what a page waits.
enum class PageWait : std::uint8_t {
  visit,    // it was asked for
  retry,    // its last visit failed
  recrawl,  // auto_recrawl: its last visit succeeded
};
std::string_view to_string(PageWait wait) noexcept;

struct KnownPage {
  PageState state = PageState::waiting;
  PageWait wait = PageWait::visit;  // of waiting ones
  bool again = false;               // of visiting ones: it is visited once more afterwards, on the terms below
  std::int32_t priority = 0;
  WallTime due{};                    // not before; the epoch: at once
  WallTime succeeded_at{};           // the end of the last visit that succeeded; the epoch: none
  WallTime ended_at{};               // of the last visit, however it ended
  std::optional<Duration> interval;  // of its own, where its rule is adaptive
  std::uint32_t retried = 0;
  PageTag tag = 0;
  OwnTerms own;

  friend bool operator==(const KnownPage&, const KnownPage&) = default;
};

}  // namespace argiope
