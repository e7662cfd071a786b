#include "async/internal/server_set.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"

namespace argiope::detail {

void ServerSet::require_open() const {
  if (is_closed_) throw std::logic_error(fmt::format("listening with {} that was stopped", owner_));
}

std::uint16_t ServerSet::listen(ConnectionHandler handler, const std::string& host, std::uint16_t port) {
  require_open();
  servers_.push_back(start_server(std::move(handler), host, port, options_));
  return servers_.back().port();
}

void ServerSet::listen_unix(ConnectionHandler handler, const std::string& path) {
  require_open();
  servers_.push_back(start_unix_server(std::move(handler), path, options_));
}

void ServerSet::listen_at(ConnectionHandler handler, int fd) {
  Server server = start_server(std::move(handler), fd, options_);
  require_open();
  servers_.push_back(std::move(server));
}

void ServerSet::close() {
  is_closed_ = true;
  for (Server& server : servers_) server.close();
}

void ServerSet::abort_clients() {
  for (Server& server : servers_) server.abort_clients();
}

std::size_t ServerSet::connections() const {
  std::size_t count = 0;
  for (const Server& server : servers_) count += server.connections();
  return count;
}

Coro<bool> ServerSet::all_gone(Duration limit) {
  std::vector<Coro<void>> ends;
  for (Server& server : servers_) ends.push_back(server.wait_closed());
  try {
    co_await wait_for(gather(std::move(ends)), limit);
  } catch (const TimeoutError&) {
    co_return connections() == 0;
  }
  co_return true;
}

}  // namespace argiope::detail
