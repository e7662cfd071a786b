// What a load says over one connection, in one protocol: puts that are acknowledged, or the loop of a worker that does
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace argiope::bench {

class Protocol;

// Who is told what has been answered.
class Listener {
 public:
  virtual ~Listener() = default;
  // The greeting is over: puts or work may begin.
  virtual void ready(Protocol& by) = 0;
  // The oldest `jobs` puts were acknowledged.
  virtual void put(Protocol& by, std::size_t jobs) = 0;
  // How many of `most` jobs a worker may still ask for: what waits for a job holds back what comes after it.
  virtual std::size_t take(std::size_t most) = 0;
  // So many of those were not had.
  virtual void give_back(std::size_t jobs) = 0;
  // A worker has got a job. Called where the protocol can be worked by jobs with different payloads.
  virtual void came(std::string_view payload) = 0;
  // Jobs were settled, and where the protocol answers that, it has.
  virtual void settled(std::size_t jobs) = 0;
};

// What is refused ends the program: a load measures nothing but success.
class Protocol {
 public:
  explicit Protocol(Listener& listener) : listener_(listener) {}
  virtual ~Protocol() = default;
  Protocol(const Protocol&) = delete;

  virtual void greet() { listener_.ready(*this); }
  virtual void put(std::string_view payload) = 0;
  // From now on: takes up to `most` jobs at a time, settles them, and takes the next. Waits where there are none.
  virtual void work(std::size_t most) = 0;
  // Takes whole answers off the front of `in`; how many bytes they were.
  virtual std::size_t hear(std::string_view in) = 0;

  std::string out;  // sent next

 protected:
  Listener& listener_;
};

struct ProtocolOptions {
  std::size_t batch = 1;  // jobs a put, where the protocol has such
  bool works = false;     // what comes after greet(): work(), else put()
  std::size_t in_flight = 1;
};

// "beanstalkd", "http", "redis" (lists), "redis-stream", "nats", "rabbitmq". Null: there is no such.
std::unique_ptr<Protocol> make_protocol(std::string_view name, Listener& listener, const ProtocolOptions& options);

std::unique_ptr<Protocol> make_beanstalkd(Listener& listener, const ProtocolOptions& options);
std::unique_ptr<Protocol> make_http(Listener& listener, const ProtocolOptions& options);
std::unique_ptr<Protocol> make_redis(Listener& listener, const ProtocolOptions& options);
std::unique_ptr<Protocol> make_redis_stream(Listener& listener, const ProtocolOptions& options);
std::unique_ptr<Protocol> make_nats(Listener& listener, const ProtocolOptions& options);
std::unique_ptr<Protocol> make_rabbitmq(Listener& listener, const ProtocolOptions& options);

[[noreturn]] void stop_load(std::string_view why);

// The first number in `text` after `name`; 0 without one.
std::uint64_t number_after(std::string_view text, std::string_view name);

}  // namespace argiope::bench
