#include "engine/internal/steady_worker.hpp"

#include <spdlog/spdlog.h>

#include "argiope/async/event_loop.hpp"
#include "async/internal/as_error.hpp"

namespace argiope {

Coro<Result<void>> SteadyWorker::run(std::shared_ptr<SteadyWorker> self) {
  for (;;) {
    const Result<void> ended = co_await as_error(self->worker_->run());
    if (ended || self->stopped_.is_set()) co_return ended;
    self->trouble_ = ended.error().message;
    spdlog::error("{}: its jobs wait, and are tried again in 10 s: {}", self->name_, self->trouble_);
    const bool goes_on = co_await self->rest();
    if (!goes_on) co_return ended;
    self->trouble_.clear();
  }
}

Coro<bool> SteadyWorker::rest() {
  try {
    co_await timeout(kTryAgain).run(stopped_.wait());
  } catch (const TimeoutError&) {
    co_return true;
  }
  co_return false;
}

void SteadyWorker::stop(bool at_once) {
  stopped_.set();
  worker_->stop(at_once);
}

}  // namespace argiope
