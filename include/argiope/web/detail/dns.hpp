// From host names to addresses: c-ares on the loop, with a cache that keeps to the records' time to live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/detail/ip_address.hpp"

namespace argiope {

using AddressList = std::vector<IpAddress>;

// Threads: the loop's own.
class Resolver {
 public:
  virtual ~Resolver() = default;
  // The addresses of `host` (a name, or an IP literal as a URL has it), in the order to try them; never empty.
  // Errors: Errc::dns naming the host. Suspends: unless cached. Cancel: the look-up itself goes on, for others.
  virtual Coro<Result<AddressList>> resolve(std::string_view host) = 0;
};

struct ResolverOptions {
  Duration timeout = std::chrono::seconds{5};  // of one try
  int tries = 2;
  // The bounds to which a record's own time to live is clamped.
  Duration min_ttl = std::chrono::seconds{10};
  Duration max_ttl = std::chrono::hours{1};
  Duration negative_ttl = std::chrono::seconds{30};
  std::size_t cache_limit = 100'000;  // hosts
  // Hosts asked about at the same time; the others wait. More answers at once than a socket's buffer holds are lost.
  std::size_t max_questions = 64;
  // "address[:port],…" instead of the system's servers; for tests.
  std::string servers;
};

// Looks up A and AAAA by c-ares, /etc/hosts included. `localhost` and its subdomains are loopback without a question
// (RFC 6761, 6.3). Simultaneous questions for one host are asked once.
// Errors: the constructor throws std::runtime_error when c-ares cannot start, std::invalid_argument when max_questions
//         is 0.
class CaresResolver final : public Resolver {
 public:
  // The backend of the loop that will run it; both outlive the resolver.
  CaresResolver(ResolverOptions options, AsioBackend& backend);
  ~CaresResolver() override;

  Coro<Result<AddressList>> resolve(std::string_view host) override;

  std::uint64_t questions_asked() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argiope
