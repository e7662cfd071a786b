// TLS: what servers and clients prove with who they are. HttpServerOptions::tls takes the one,
// HttpClientOptions::client_certificate the other.
//
//   auto identity = value_or_throw(TlsIdentity::load({.certificate = "chain.pem", .key = "key.pem"}));
//   HttpServer server(handler, {.tls = identity});
#pragma once

#include <memory>
#include <string>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

namespace detail {
class StreamLayer;
}

// Files in PEM.
struct TlsFiles {
  // The server's certificate first, then those that vouch for it, but for the last, which clients know.
  std::string certificate;
  // Its private key, not encrypted.
  std::string key;
  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

// The means by which a client proves who it is, to servers that ask. Files in PEM; without `certificate` there is none.
struct ClientCertificate {
  // The client's certificate first, then those that vouch for it.
  std::string certificate;
  // Its private key; empty: it is in the file of the certificate.
  std::string key;
  // A file whose first line is the key's password; empty: it has none.
  std::string password_file;
  friend bool operator==(const ClientCertificate&, const ClientCertificate&) = default;
};
// Blocks while it reads the files.
// Errors: invalid_input: what is wrong with which.
Result<void> check(const ClientCertificate& certificate);

// A certificate, its chain and its key. TLS 1.2 with ECDHE and AEAD ciphers, and TLS 1.3; HTTP/1.1 by ALPN, where a
// client asks; no client certificates, no renegotiation; sessions are resumed by tickets, so that none take memory.
//
// Threads: a loop's own.
class TlsIdentity {
 public:
  // Blocks while it reads the files.
  // Errors: io: a file that cannot be read; invalid_input: what is wrong with which.
  static Result<std::shared_ptr<TlsIdentity>> load(const TlsFiles& files);
  // The same while a server runs: what is no plain file, such as a pipe that nobody writes to any more, is not waited
  // for.
  // Errors: those of load(), and io for that.
  static Result<std::shared_ptr<TlsIdentity>> load_again(const TlsFiles& files);
  // Takes the other's place for connections from now on; those that are open go on as they are.
  TlsIdentity(TlsIdentity&& other) noexcept;
  TlsIdentity& operator=(TlsIdentity&& other) noexcept;
  ~TlsIdentity();

  // The same with what is in these files now. Errors: those of load_again(); all stays as it was.
  Result<void> reload(const TlsFiles& files);

  // When the server's own certificate expires.
  WallTime expires_at() const noexcept;

  // For a connection that has been accepted. Errors: std::bad_alloc.
  std::unique_ptr<detail::StreamLayer> new_layer() const;

 private:
  struct Loaded;
  explicit TlsIdentity(std::unique_ptr<Loaded> loaded) noexcept;
  static Result<std::unique_ptr<Loaded>> read(const TlsFiles& files, bool is_again);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace argiope
