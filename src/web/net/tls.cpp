#include "argiope/web/detail/tls.hpp"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "async/internal/stream_layer.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/printable.hpp"
#include "web/net/pem_texts.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

namespace {

struct FreeTls {
  void operator()(SSL_CTX* context) const noexcept { ::SSL_CTX_free(context); }
  void operator()(SSL* connection) const noexcept { ::SSL_free(connection); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeTls>;

constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr std::string_view kHttp = "\x08http/1.1";
constexpr std::size_t kMostInRecord = 16 * 1024;

// The words of OpenSSL on the last call that failed; takes what it has to say.
std::string tls_reason() {
  const unsigned long code = ::ERR_peek_last_error();
  const char* const reason = ::ERR_reason_error_string(code);
  ::ERR_clear_error();
  return reason == nullptr ? "cannot be used" : reason;
}

[[noreturn]] void fail_connection(std::errc why) { throw std::system_error(std::make_error_code(why), "TLS"); }

// A client's list of protocols, each with its length before it.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* length, const unsigned char* offered,
                    unsigned int size, void*) {
  const auto* const ours = reinterpret_cast<const unsigned char*>(kHttp.data());
  unsigned char* found = nullptr;
  const int outcome = ::SSL_select_next_proto(&found, length, ours, kHttp.size(), offered, size);
  *chosen = found;
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Nobody is asked at a terminal.
int no_password(char*, int, int, void*) { return 0; }

TlsContext new_server_context() {
  TlsContext context(::SSL_CTX_new(::TLS_server_method()));
  if (context == nullptr) throw std::bad_alloc();
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_cipher_list(context.get(), kCiphers);
  ::SSL_CTX_set_default_passwd_cb(context.get(), no_password);
  ::SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  return context;
}

Result<std::string> read_pem_file(const std::string& path, FileReading reading) {
  auto text = read_file_text(path, kMostPemBytes, reading);
  if (text && !text->empty()) return text;
  return fail(Errc::io,
              fmt::format("{}: {}", in_quotes(path), text ? "nothing can be read from it" : text.error().message));
}

std::unexpected<Error> bad_file(const std::string& path, std::string_view what) {
  return fail(Errc::invalid_input, fmt::format("{}: {} ({})", in_quotes(path), what, tls_reason()));
}

WallTime expiry_of(const X509* certificate) {
  std::tm parts{};
  if (certificate == nullptr || ::ASN1_TIME_to_tm(::X509_get0_notAfter(certificate), &parts) != 1)
    return WallTime::max();
  return WallTime{std::chrono::seconds{::timegm(&parts)}};
}

// The bytes that OpenSSL reads and writes during one call of a layer. Buffers of its own would keep their size for as
// long as the connection lasts.
struct BytesOfCall {
  std::string_view came;
  std::string* to_peer = nullptr;
};

BytesOfCall& bytes_of(BIO* bio) noexcept { return *static_cast<BytesOfCall*>(::BIO_get_data(bio)); }

int read_wire(BIO* bio, char* out, int size) noexcept {
  std::string_view& came = bytes_of(bio).came;
  ::BIO_clear_retry_flags(bio);
  if (came.empty()) {
    ::BIO_set_retry_read(bio);
    return -1;
  }
  const std::size_t count = came.copy(out, static_cast<std::size_t>(size));
  came.remove_prefix(count);
  return static_cast<int>(count);
}

int write_wire(BIO* bio, const char* bytes, int size) noexcept {
  ::BIO_clear_retry_flags(bio);
  std::string* const to_peer = bytes_of(bio).to_peer;
  if (to_peer == nullptr) return -1;
  to_peer->append(bytes, static_cast<std::size_t>(size));
  return size;
}

long control_wire(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

// Kept for as long as the process, as connections may be.
const BIO_METHOD* wire_method() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* const made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    if (made == nullptr) throw std::bad_alloc();
    ::BIO_meth_set_read(made, read_wire);
    ::BIO_meth_set_write(made, write_wire);
    ::BIO_meth_set_ctrl(made, control_wire);
    return made;
  }();
  return kMethod;
}

// One connection, whose bytes OpenSSL finds on the wire while a call lasts.
class TlsLayer final : public detail::StreamLayer {
 public:
  explicit TlsLayer(SSL_CTX& context) : tls_(::SSL_new(&context)) {
    BIO* const bio = ::BIO_new(wire_method());
    if (tls_ == nullptr || bio == nullptr) {
      ::BIO_free(bio);
      throw std::bad_alloc();
    }
    ::BIO_set_data(bio, &wire_);
    ::BIO_set_init(bio, 1);
    ::SSL_set_bio(tls_.get(), bio, bio);
    ::SSL_set_accept_state(tls_.get());
  }

  bool receive(std::string_view came, std::string& plain, std::string& to_peer) override {
    require_tls(came);
    const OnWire on_wire(wire_, came, to_peer);
    const int why = read_records(plain);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_ZERO_RETURN) fail_connection(std::errc::protocol_error);
    return why == SSL_ERROR_ZERO_RETURN;
  }

  void send(std::string_view plain, std::string& to_peer) override {
    const OnWire on_wire(wire_, {}, to_peer);
    while (!plain.empty()) {
      const std::string_view piece = plain.substr(0, kMostInRecord);
      plain.remove_prefix(piece.size());
      ::ERR_clear_error();
      std::size_t written = 0;
      const bool good = ::SSL_write_ex(tls_.get(), piece.data(), piece.size(), &written) == 1;
      ::ERR_clear_error();
      if (!good || written != piece.size()) fail_connection(std::errc::connection_aborted);
    }
  }

  void end(std::string& to_peer) noexcept override {
    const OnWire on_wire(wire_, {}, to_peer);
    ::ERR_clear_error();
    ::SSL_shutdown(tls_.get());
    ::ERR_clear_error();
  }

  bool is_ready() const noexcept override { return ::SSL_is_init_finished(tls_.get()) == 1; }

 private:
  class OnWire {
   public:
    OnWire(BytesOfCall& wire, std::string_view came, std::string& to_peer) noexcept : wire_(wire) {
      wire_ = {came, &to_peer};
    }
    ~OnWire() { wire_ = {}; }
    OnWire(const OnWire&) = delete;
    OnWire& operator=(const OnWire&) = delete;

   private:
    BytesOfCall& wire_;
  };

  // All that have come whole, up to what SSL_get_error() says then.
  int read_records(std::string& plain) {
    std::array<char, kMostInRecord> record;
    ::ERR_clear_error();
    int count = 0;
    while ((count = ::SSL_read(tls_.get(), record.data(), record.size())) > 0) {
      plain.append(record.data(), static_cast<std::size_t>(count));
    }
    const int why = ::SSL_get_error(tls_.get(), count);
    ::ERR_clear_error();
    return why;
  }
  // A client that speaks something else begins with a word.
  void require_tls(std::string_view came) {
    if (came.empty() || std::exchange(has_begun_, true)) return;
    if (is_alpha(came.front())) fail_connection(std::errc::wrong_protocol_type);
  }

  BytesOfCall wire_;
  const std::unique_ptr<SSL, FreeTls> tls_;
  bool has_begun_ = false;
};

}  // namespace

struct TlsIdentity::Loaded {
  TlsContext context;
  WallTime expires_at{};
};

Result<std::unique_ptr<TlsIdentity::Loaded>> TlsIdentity::read(const TlsFiles& files, bool is_again) {
  const FileReading reading = is_again ? FileReading::again : FileReading::first;
  auto certificate = read_pem_file(files.certificate, reading);
  if (!certificate) return std::unexpected(std::move(certificate.error()));
  // One file may be both, and a pipe is read once.
  auto key = files.key == files.certificate ? certificate : read_pem_file(files.key, reading);
  if (!key) return std::unexpected(std::move(key.error()));
  TlsContext context = new_server_context();
  const bool has_certificate = use_certificate_chain(*context, *certificate);
  const bool has_key = has_certificate && use_private_key(*context, *key);
  ::OPENSSL_cleanse(key->data(), key->size());
  if (!has_certificate) {
    return bad_file(files.certificate, "is no chain of certificates in PEM");
  }
  if (!has_key) {
    return bad_file(files.key, "is no private key in PEM that goes with the certificate and needs no password");
  }
  const WallTime expires_at = expiry_of(::SSL_CTX_get0_certificate(context.get()));
  return std::make_unique<Loaded>(std::move(context), expires_at);
}

TlsIdentity::TlsIdentity(std::unique_ptr<Loaded> loaded) noexcept : loaded_(std::move(loaded)) {}
TlsIdentity::TlsIdentity(TlsIdentity&& other) noexcept = default;
TlsIdentity& TlsIdentity::operator=(TlsIdentity&& other) noexcept = default;
TlsIdentity::~TlsIdentity() = default;

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::load(const TlsFiles& files) {
  auto loaded = read(files, false);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  return std::shared_ptr<TlsIdentity>(new TlsIdentity(*std::move(loaded)));
}

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::load_again(const TlsFiles& files) {
  auto loaded = read(files, true);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  return std::shared_ptr<TlsIdentity>(new TlsIdentity(*std::move(loaded)));
}

Result<void> TlsIdentity::reload(const TlsFiles& files) {
  auto loaded = read(files, true);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  loaded_ = *std::move(loaded);
  return {};
}

WallTime TlsIdentity::expires_at() const noexcept { return loaded_->expires_at; }

std::unique_ptr<detail::StreamLayer> TlsIdentity::new_layer() const {
  return std::make_unique<TlsLayer>(*loaded_->context);
}

}  // namespace argiope
