// TLS for clients: whom they trust, and the wire that TLS makes of another one.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/web/detail/tls.hpp"
#include "web/net/wire.hpp"

namespace argiope {

// The protocols from which a server may choose by ALPN (RFC 7301).
enum class TlsOffer : std::uint8_t { http1, http2, both };

// One connection's TLS. read() and write() are to be called when shake_hands() is done.
// Lifetime: `below` must outlive it.
class TlsWire final : public Wire {
 public:
  // Throws std::bad_alloc.
  TlsWire(SSL_CTX& context, Wire& below);
  // The server has to prove that it is `host`, a name or an address, with a certificate.
  Result<void> expect(std::string_view host);
  // Any server that answers is taken for it.
  void trust_anybody() noexcept { ::SSL_set_verify(tls_.get(), SSL_VERIFY_NONE, nullptr); }
  void offer(TlsOffer protocols);
  // Whether the server has chosen HTTP/2.
  bool has_chosen_http2() const noexcept;
  // Shows the server the certificate that `identity` has, if it asks for one.
  Result<void> show(SSL_CTX& identity);

  // Errors: see certificate_trouble() and why_broken().
  WireStep shake_hands() noexcept;
  WireStep read(char* out, std::size_t size) noexcept override;
  WireStep write(const char* bytes, std::size_t size) noexcept override;
  bool is_quiet() noexcept override;
  std::string why_broken() const override { return why_broken_; }
  // The reason for which the certificate was refused; empty: it was not.
  const std::string& certificate_trouble() const noexcept { return certificate_trouble_; }
  // Whether it broke because what is below did.
  bool broke_below() const noexcept { return below_ == WireStep::Outcome::broken; }
  // Whether it broke because the server wants another certificate of ours, or one at all.
  bool is_unwelcome() const noexcept { return is_unwelcome_; }

 private:
  struct Free {
    void operator()(SSL* connection) const noexcept { ::SSL_free(connection); }
  };
  static const BIO_METHOD* bio_method();
  static int read_below(BIO* bio, char* out, int size) noexcept;
  static int write_below(BIO* bio, const char* bytes, int size) noexcept;
  static int verify(int trusted, X509_STORE_CTX* verification) noexcept;
  // The outcome of a call of OpenSSL that gave `code`.
  WireStep step_after(int code, std::size_t bytes) noexcept;

  Wire& wire_below_;
  const std::unique_ptr<SSL, Free> tls_;
  // How the last call of the wire below ended.
  WireStep::Outcome below_ = WireStep::Outcome::done;
  std::string host_;
  std::string certificate_trouble_;
  std::string why_broken_;
  bool is_unwelcome_ = false;
};

struct FreeSslContext {
  void operator()(SSL_CTX* context) const noexcept { ::SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, FreeSslContext>;

// The state that the connections of one client share: the authorities it trusts, and who it is itself.
// Threads: one at a time.
class ClientTls {
 public:
  // The system's authorities, and those in `extra_ca_file` (PEM) if it is not empty.
  ClientTls(std::string extra_ca_file, ClientCertificate certificate)
      : extra_ca_file_(std::move(extra_ca_file)), certificate_(std::move(certificate)) {}

  // `is_known`: the server may see the client's certificate. `verifies`: it has to prove who it is; else it sees no
  // certificate either. Files are read at the first call, which takes longer than a page.
  // Errors: tls, naming the file; of the client's own also invalid_input.
  Result<std::unique_ptr<TlsWire>> over(Wire& below, std::string_view host, bool is_known, TlsOffer offer,
                                        bool verifies = true);

 private:
  Result<void> load();

  const std::string extra_ca_file_;
  const ClientCertificate certificate_;
  SslContext context_;
  SslContext identity_;  // holds the client's certificate, and makes no connection
};

}  // namespace argiope
