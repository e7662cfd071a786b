// An engine's inside: the parts it is made of.
#pragma once

#include <memory>
#include <optional>

#include "argiope/engine/engine.hpp"
#include "engine/broker.hpp"

namespace argiope {

struct Engine::State {
  // Its parts let go of the store, which may end with it.
  void let_go() noexcept;
  static Coro<Result<void>> close(std::shared_ptr<State> state);

  std::unique_ptr<Store> opened;  // where the engine has opened it
  Store* store = nullptr;
  std::shared_ptr<Broker> broker;
  std::optional<Scheduler> scheduler;  // where it fires schedules
  std::optional<Book> book;
};

}  // namespace argiope
