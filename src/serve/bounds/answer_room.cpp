#include "serve/bounds/answer_room.hpp"

#include <utility>

#include "serve/bounds/caller_counts.hpp"

namespace argiope {

struct AnswerRoom::State {
  explicit State(std::size_t the_most) noexcept : most(the_most) {}

  const std::size_t most;
  std::size_t bytes = 0;
  CallerCounts held;

  static bool fits(std::size_t more, std::size_t held, std::size_t most) noexcept {
    return held == 0 || (held <= most && more <= most - held);
  }
};

AnswerRoom::AnswerRoom(std::size_t most) : state_(std::make_shared<State>(most)) {}

std::size_t AnswerRoom::bytes() const noexcept { return state_->bytes; }

bool AnswerRoom::is_full(std::string_view who) const {
  const std::size_t share = state_->most / 2;
  const std::size_t little = share / 16;
  return !fits(who, little);
}

bool AnswerRoom::fits(std::string_view who, std::size_t bytes) const {
  return State::fits(bytes, state_->bytes, state_->most) && State::fits(bytes, state_->held.of(who), state_->most / 2);
}

AnswerRoom::Held AnswerRoom::take(std::string_view who, std::size_t bytes) {
  return fits(who, bytes) ? take_anyway(who, bytes) : nullptr;
}

AnswerRoom::Held AnswerRoom::take_anyway(std::string_view who, std::size_t bytes) {
  struct Counted {
    Counted(std::shared_ptr<State> its_state, std::string its_who, std::size_t its_bytes)
        : state(std::move(its_state)), who(std::move(its_who)), bytes(its_bytes) {
      state->bytes += bytes;
      state->held.add(who, bytes);
    }
    Counted(const Counted&) = delete;
    ~Counted() {
      state->bytes -= bytes;
      state->held.drop(who, bytes);
    }
    const std::shared_ptr<State> state;
    const std::string who;
    const std::size_t bytes;
  };
  return std::make_shared<const Counted>(state_, std::string(who), bytes);
}

Problem AnswerRoom::refusal() {
  return {ProblemType::busy, "too many large answers wait for their clients to take them", {}};
}

void AnswerRoom::hold(std::string_view who, ServerResponse& response, bool refuses, std::string_view request_id) {
  if (response.until_sent != nullptr || response.stream || response.body.size() <= kSmall) return;
  response.until_sent = refuses ? take(who, response.body.size()) : take_anyway(who, response.body.size());
  if (response.until_sent == nullptr) response = answer(refusal(), request_id);
}

}  // namespace argiope
