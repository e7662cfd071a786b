#include "engine/window_reader.hpp"

#include "argiope/async/or_return.hpp"

namespace argiope {

Coro<Result<bool>> read_on(const StoreUse& store, QueueWindow& window, EventLoop& loop) {
  const std::vector<QueueWindow::Load> loads = window.loads(loop.time());
  QueueWindow::Moves moves = window.take_moves();
  if (!moves.to_ready.empty()) co_await or_return(store(&Store::shelve, std::move(moves.to_ready), Shelf::ready));
  if (!moves.to_set_aside.empty()) {
    co_await or_return(store(&Store::shelve, std::move(moves.to_set_aside), Shelf::set_aside));
  }
  for (const QueueWindow::Load& load : loads) {
    using From = QueueWindow::Load::From;
    if (load.from == From::keys) {
      const auto keys = co_await or_return(store(&Store::keys_set_aside, window.id(), load.after_key, load.limit));
      window.loaded_keys(load, keys);
      continue;
    }
    const auto jobs = co_await or_return(
        load.from == From::ready ? store(&Store::load_ready, window.id(), load.after, load.limit)
        : load.from == From::key
            ? store(&Store::load_set_aside, window.id(), load.key, load.after, load.limit)
            : store(&Store::load_delayed, window.id(), load.due_after, load.due_after_id, load.limit));
    window.loaded(load, jobs, loop.time());
  }
  co_return !loads.empty();
}

}  // namespace argiope
