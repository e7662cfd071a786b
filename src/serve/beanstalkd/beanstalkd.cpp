#include "serve/beanstalkd/beanstalkd.hpp"

#include <utility>

#include "serve/beanstalkd/beanstalkd_core.hpp"
#include "serve/beanstalkd/beanstalkd_session.hpp"

namespace argiope {

struct Beanstalkd::State : BeanstalkdCore {
  using BeanstalkdCore::BeanstalkdCore;
};

namespace {

using namespace std::chrono_literals;
using SharedCore = std::shared_ptr<BeanstalkdCore>;

// The time that stop() grants beyond its own to connections that were broken off.
constexpr Duration kLastGrace = 500ms;

Coro<void> serve_client(SharedCore core, Stream& stream) {
  {
    const auto session = std::make_shared<BeanstalkdSession>(core, stream);
    co_await session->serve();
  }
  co_await core->erase_unused_queues();
}

ConnectionHandler serving(SharedCore core) {
  return [core = std::move(core)](Stream& stream) { return serve_client(core, stream); };
}

void begin_to_stop(BeanstalkdCore& core) {
  core.is_stopping = true;
  core.servers.close();
  core.sessions.for_each([](BeanstalkdSession& session) { session.stop(); });
}

Coro<bool> stop_within(SharedCore core, Duration limit) {
  begin_to_stop(*core);
  const bool left_in_time = co_await core->servers.all_gone(limit);
  if (!left_in_time) {
    core->servers.abort_clients();
    co_await core->servers.all_gone(kLastGrace);
  }
  co_await core->quiet();
  co_return left_in_time;
}

}  // namespace

Beanstalkd::Beanstalkd(Engine& engine, BeanstalkdOptions options)
    : state_(std::make_shared<State>(engine, std::move(options))) {}

Beanstalkd::~Beanstalkd() {
  begin_to_stop(*state_);
  state_->servers.abort_clients();
  // They keep the core, which keeps them.
  state_->servers.forget();
  state_->part();
}

std::uint16_t Beanstalkd::listen(const std::string& host, std::uint16_t port) {
  state_->tidy_from_now_on();
  return state_->servers.listen(serving(state_), host, port);
}
void Beanstalkd::listen_unix(const std::string& path) {
  state_->tidy_from_now_on();
  state_->servers.listen_unix(serving(state_), path);
}
void Beanstalkd::listen_at(int fd) {
  state_->tidy_from_now_on();
  state_->servers.listen_at(serving(state_), fd);
}

void Beanstalkd::drain() { state_->is_draining = true; }
Coro<bool> Beanstalkd::stop(Duration limit) { return stop_within(state_, limit); }
std::size_t Beanstalkd::connections() const noexcept { return state_->connections; }

}  // namespace argiope
