// TLS for clients: whom they trust, and the wire that TLS makes of another one.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/web/detail/tls.hpp"
#include "web/net/tls_engine.hpp"

namespace argiope {

// The protocols from which a server may choose by ALPN (RFC 7301).
enum class TlsOffer : std::uint8_t { http1, http2, both };

// One connection's TLS.
class TlsWire final : public TlsEngine {
 public:
  // Throws std::bad_alloc.
  TlsWire(SSL_CTX& context, Wire& below);
  // The server has to prove that it is `host`, a name or an address, with a certificate.
  Result<void> expect(std::string_view host);
  // Any server that answers is taken for it.
  void trust_anybody() noexcept { ::SSL_set_verify(&tls(), SSL_VERIFY_NONE, nullptr); }
  void offer(TlsOffer protocols);
  // Whether the server has chosen HTTP/2.
  bool has_chosen_http2() const noexcept;
  // Shows the server the certificate that `identity` has, if it asks for one.
  Result<void> show(SSL_CTX& identity);

  // The reason for which the certificate was refused; empty: it was not.
  const std::string& certificate_trouble() const noexcept { return certificate_trouble_; }
  // Whether it broke because the server wants another certificate of ours, or one at all.
  bool is_unwelcome() const noexcept;

 private:
  static int verify(int trusted, X509_STORE_CTX* verification) noexcept;

  std::string host_;
  std::string certificate_trouble_;
};

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
  TlsContext context_;
  TlsContext identity_;  // holds the client's certificate, and makes no connection
};

}  // namespace argiope
