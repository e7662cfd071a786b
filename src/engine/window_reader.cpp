#include "engine/window_reader.hpp"

#include "argiope/async/or_return.hpp"

namespace argiope {

Coro<Result<bool>> read_on(const StoreUse& store, QueueWindow& window, EventLoop& loop) {
  const std::vector<QueueWindow::Load> loads = window.loads(loop.time());
  std::vector<JobId> to_ready, to_set_aside;
  for (const QueueWindow::Move& move : window.take_moves()) {
    (move.shelf == Shelf::set_aside ? to_set_aside : to_ready).push_back(move.id);
  }
  if (!to_ready.empty()) co_await or_return(store(&Store::shelve, std::move(to_ready), Shelf::ready));
  if (!to_set_aside.empty()) co_await or_return(store(&Store::shelve, std::move(to_set_aside), Shelf::set_aside));
  for (const QueueWindow::Load& load : loads) {
    if (load.keys) {
      const auto keys = co_await or_return(store(&Store::keys_set_aside, window.id(), load.after_key, load.read.limit));
      window.loaded_keys(load, keys);
      continue;
    }
    const auto jobs = co_await or_return(store(&Store::read_shelf, window.id(), load.read, load.key));
    window.loaded(load, jobs, loop.time());
  }
  co_return !loads.empty();
}

}  // namespace argiope
