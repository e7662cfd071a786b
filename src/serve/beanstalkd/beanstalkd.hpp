// Beanstalkd: the beanstalkd protocol (its protocol.txt, 1.12) over an engine. A tube is a queue of that name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "argiope/engine/engine.hpp"
#include "argiope/web/detail/tls.hpp"
#include "serve/bounds/answer_room.hpp"

namespace argiope {

class AuditLog;

struct BeanstalkdOptions {
  std::size_t max_job_bytes = 65'535;  // beanstalkd -z
  std::size_t max_connections = 10'000;
  std::uint64_t instance_id = 0;  // what `stats` says of this run
  // Where it is set, clients speak TLS, but for those of Unix sockets, and agree on it within ten seconds.
  std::shared_ptr<const TlsIdentity> tls;
  // Is told of what operators change: pause-tube and kick. Null: nobody is. It outlives the Beanstalkd.
  AuditLog* audit = nullptr;
  // Answers that wait for their clients are counted in it, all connections together as one caller. Where there is no
  // room, the connection with the most of them is closed. Null: each connection has its own bound alone.
  std::shared_ptr<AnswerRoom> room;
};

// Lifetime: its engine outlives it; stop() before destroying it.
// Threads:  the loop's own.
class Beanstalkd {
 public:
  Beanstalkd(Engine& engine, BeanstalkdOptions options);
  ~Beanstalkd();
  // As HttpServer::listen.
  std::uint16_t listen(const std::string& host, std::uint16_t port);
  void listen_unix(const std::string& path);
  void listen_at(int fd);
  // Refuses puts with DRAINING from now on (SIGUSR1).
  void drain();
  // Takes no more clients, ends reserves that wait, gives back what is leased; true: all had ended within `limit`.
  Coro<bool> stop(Duration limit);
  std::size_t connections() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace argiope
