// Serves a SyntheticWeb on loopback, over HTTP/1.1, or with TLS and then over HTTP/2 too: `argiope site`, and
// end-to-end tests through it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "site/internal/synthetic_web.hpp"

namespace argiope {

struct SiteServerOptions {
  std::uint16_t port = 8080;  // of the first host; the others follow. 0: free ones
  bool by_address = false;    // hosts differ by address (127.0.0.1, 127.0.0.2 …) and not by port
  // Files in PEM: a certificate and its key. With them hosts speak TLS, and HTTP/2 to who offers it. Empty: plain
  // HTTP/1.1.
  std::string certificate;
  std::string key;
  std::FILE* log = nullptr;  // a line for every request, when it has arrived
};

// Threads: the loop's own. Destroy it after the loop has ended all its tasks.
class SiteServer {
 public:
  // Binds all hosts. Errors: io, naming the address; invalid_input, naming the file.
  static Result<std::unique_ptr<SiteServer>> listen(AsioBackend& backend, const SyntheticWebOptions& web,
                                                    const SiteServerOptions& options);
  virtual ~SiteServer() = default;

  // "http://127.0.0.1:8080", one a host.
  virtual const std::vector<std::string>& origins() const = 0;
  virtual SyntheticWeb& web() = 0;
  virtual std::uint64_t requests() const = 0;
  // Accepts and answers until cancelled.
  virtual Coro<void> serve() = 0;
};

}  // namespace argiope
