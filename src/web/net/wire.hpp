// Wire: bytes to and from a peer, now or not at all: a socket, the bytes of one call (tls.cpp), or TLS over another
// wire (tls_engine.hpp). The waiting is its owner's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace argiope {

// The outcome of one call.
struct WireStep {
  enum class Outcome : std::uint8_t {
    done,         // `bytes` of them, at least one
    wants_read,   // again, when the socket can be read
    wants_write,  // again, when the socket can be written
    ended,        // the peer says no more
    broken,       // for a reason that why_broken() has
  };
  Outcome outcome = Outcome::done;
  std::size_t bytes = 0;
};

// Nothing is lost by a call that comes to nothing, so a caller that waits may be cancelled.
// Threads: one at a time.
class Wire {
 public:
  virtual ~Wire() = default;
  // `size` is more than 0.
  virtual WireStep read(char* out, std::size_t size) noexcept = 0;
  virtual WireStep write(const char* bytes, std::size_t size) noexcept = 0;
  // Whether nothing waits to be read: neither bytes nor the end.
  virtual bool is_quiet() noexcept = 0;
  // In words: "Connection reset by peer".
  virtual std::string why_broken() const = 0;
};

}  // namespace argiope
