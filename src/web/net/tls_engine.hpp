// TlsEngine: the TLS of one connection, of a client (client_tls.hpp) or a server (tls.cpp), over another Wire.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "web/net/wire.hpp"

namespace argiope {

struct FreeTls {
  void operator()(SSL_CTX* context) const noexcept { ::SSL_CTX_free(context); }
  void operator()(SSL* connection) const noexcept { ::SSL_free(connection); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeTls>;

// For TLS 1.2 and later, with a connection's buffers given back while nothing is in them. Nobody is asked for passwords
// at a terminal. Throws std::bad_alloc.
TlsContext new_tls_context(const SSL_METHOD* method);

// The words of OpenSSL on the first error of the call that failed, without those of others: it takes them all.
std::string why_openssl_failed();
// Of a file in PEM that OpenSSL cannot use: `what` is wrong with it, and OpenSSL's words.
// Errors: invalid_input, always.
std::unexpected<Error> bad_pem_file(const std::string& path, std::string_view what);

// read(), write() and end() are to be called when is_ready().
// Lifetime: `below` must outlive it.
class TlsEngine : public Wire {
 public:
  enum class Side : std::uint8_t { client, server };
  // Throws std::bad_alloc.
  TlsEngine(SSL_CTX& context, Wire& below, Side side);

  // Errors: see why_broken().
  WireStep shake_hands() noexcept;
  // Both sides have agreed on how they talk.
  bool is_ready() const noexcept { return ::SSL_is_init_finished(tls_.get()) == 1; }
  // A side that has not begun shakes hands first.
  WireStep read(char* out, std::size_t size) noexcept final;
  WireStep write(const char* bytes, std::size_t size) noexcept final;
  bool is_quiet() noexcept final;
  std::string why_broken() const final { return why_broken_; }
  // Tells the peer that no more comes.
  void end() noexcept;
  // Whether it broke because what is below did.
  bool broke_below() const noexcept { return below_ == WireStep::Outcome::broken; }

 protected:
  SSL& tls() const noexcept { return *tls_; }
  // OpenSSL's number for what broke the engine itself; 0: nothing did.
  unsigned long broken_by() const noexcept { return broken_by_; }

 private:
  static const BIO_METHOD* bio_method();
  static int read_below(BIO* bio, char* out, int size) noexcept;
  static int write_below(BIO* bio, const char* bytes, int size) noexcept;
  // The outcome of a call of OpenSSL that gave `code`.
  WireStep step_after(int code, std::size_t bytes) noexcept;

  Wire& wire_below_;
  const std::unique_ptr<SSL, FreeTls> tls_;
  // How the last call of the wire below ended.
  WireStep::Outcome below_ = WireStep::Outcome::done;
  unsigned long broken_by_ = 0;
  std::string why_broken_;
};

}  // namespace argiope
