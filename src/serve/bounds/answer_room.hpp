// AnswerRoom: how much of answers may wait in memory until their clients have taken it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "argiope/web/http_server.hpp"
#include "serve/base/problem.hpp"

namespace argiope {

// One caller has half of the room at most, so that who takes nothing of his answers leaves some for the others. An
// answer that is larger than that fits where it is the only one. Small answers are not counted: a connection costs as
// much.
//
// Threads:  the loop's own.
// Lifetime: what it has given may outlive it.
class AnswerRoom {
 public:
  using Held = std::shared_ptr<const void>;
  static constexpr std::size_t kSmall = std::size_t{16} * 1024;

  explicit AnswerRoom(std::size_t most);
  // Room for an answer of so many bytes to `who`, until the last copy of it has gone; null: there is none.
  Held take(std::string_view who, std::size_t bytes);
  // The same, whether there is room or not: for what has been done already, and must be told.
  Held take_anyway(std::string_view who, std::size_t bytes);
  // Whether take() would give it.
  bool fits(std::string_view who, std::size_t bytes) const;
  // Whether less than a sixteenth of what `who` may have is left: who reads much need not begin then.
  bool is_full(std::string_view who) const;
  // Has `response` counted. One that there is no room for gives way to a refusal, where `refuses`.
  void hold(std::string_view who, ServerResponse& response, bool refuses, std::string_view request_id = {});

  // The answer where there is no room.
  static Problem refusal();

  std::size_t bytes() const noexcept;  // that are held

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace argiope
