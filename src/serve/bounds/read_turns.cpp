#include "serve/bounds/read_turns.hpp"

namespace argiope {

std::shared_ptr<Semaphore> ReadTurns::turns_of(const std::string& who) {
  std::erase_if(of_callers_, [](const auto& one) { return one.second.use_count() == 1; });
  auto& turns = of_callers_[who];
  if (turns == nullptr) turns = std::make_shared<Semaphore>(kOfOneCaller);
  return turns;
}

Coro<ReadTurns::Turn> ReadTurns::next(std::string who) {
  std::shared_ptr<Semaphore> turns = turns_of(who);
  auto its = co_await turns->scoped();
  auto all = co_await all_.scoped();
  co_return Turn(std::move(turns), std::move(its), std::move(all));
}

}  // namespace argiope
