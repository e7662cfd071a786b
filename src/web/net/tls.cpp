#include "argiope/web/detail/tls.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <string_view>
#include <system_error>
#include <utility>

#include "async/internal/stream_layer.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/printable.hpp"
#include "web/net/pem_texts.hpp"
#include "web/net/tls_engine.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

namespace {

constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr std::string_view kHttp = "\x08http/1.1";
constexpr std::size_t kMostInRecord = 16 * 1024;

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

TlsContext new_server_context() {
  TlsContext context = new_tls_context(::TLS_server_method());
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_cipher_list(context.get(), kCiphers);
  ::SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  return context;
}

Result<std::string> read_pem_file(const std::string& path, FileReading reading) {
  auto text = read_file_text(path, kMostPemBytes, reading);
  if (text && !text->empty()) return text;
  return fail(Errc::io,
              fmt::format("{}: {}", in_quotes(path), text ? "nothing can be read from it" : text.error().message));
}

WallTime expiry_of(const X509* certificate) {
  std::tm parts{};
  if (certificate == nullptr || ::ASN1_TIME_to_tm(::X509_get0_notAfter(certificate), &parts) != 1)
    return WallTime::max();
  return WallTime{std::chrono::seconds{::timegm(&parts)}};
}

// What the engine reads and writes are the bytes of one call. Buffers of its own would keep their size for as long as
// the connection lasts.
class TlsLayer final : public detail::StreamLayer, private Wire {
 public:
  explicit TlsLayer(SSL_CTX& context) : engine_(context, *this, TlsEngine::Side::server) {}

  // All records that have come whole.
  bool receive(std::string_view came, std::string& plain, std::string& to_peer) override {
    require_tls(came);
    put_on_wire(came, to_peer);
    std::array<char, kMostInRecord> record;
    WireStep step;
    while ((step = engine_.read(record.data(), record.size())).outcome == WireStep::Outcome::done) {
      plain.append(record.data(), step.bytes);
    }
    if (step.outcome == WireStep::Outcome::broken) fail_connection(std::errc::protocol_error);
    return step.outcome == WireStep::Outcome::ended;
  }
  void send(std::string_view plain, std::string& to_peer) override {
    put_on_wire({}, to_peer);
    while (!plain.empty()) {
      const WireStep step = engine_.write(plain.data(), std::min(plain.size(), kMostInRecord));
      if (step.outcome != WireStep::Outcome::done) fail_connection(std::errc::connection_aborted);
      plain.remove_prefix(step.bytes);
    }
  }
  void end(std::string& to_peer) noexcept override {
    put_on_wire({}, to_peer);
    engine_.end();
  }
  bool is_ready() const noexcept override { return engine_.is_ready(); }

 private:
  WireStep read(char* out, std::size_t size) noexcept override {
    if (came_.empty()) return {WireStep::Outcome::wants_read, 0};
    const std::size_t count = came_.copy(out, size);
    came_.remove_prefix(count);
    return {WireStep::Outcome::done, count};
  }
  WireStep write(const char* bytes, std::size_t size) noexcept override {
    to_peer_->append(bytes, size);
    return {WireStep::Outcome::done, size};
  }
  bool is_quiet() noexcept override { return came_.empty(); }
  std::string why_broken() const override { return {}; }

  // For one call, which the engine does nothing beyond.
  void put_on_wire(std::string_view came, std::string& to_peer) noexcept {
    came_ = came;
    to_peer_ = &to_peer;
  }
  // A client that speaks something else begins with a word.
  void require_tls(std::string_view came) {
    if (came.empty() || std::exchange(has_begun_, true)) return;
    if (is_alpha(came.front())) fail_connection(std::errc::wrong_protocol_type);
  }

  std::string_view came_;
  std::string* to_peer_ = nullptr;
  TlsEngine engine_;
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
    return bad_pem_file(files.certificate, "is no chain of certificates in PEM");
  }
  if (!has_key) {
    return bad_pem_file(files.key, "is no private key in PEM that goes with the certificate and needs no password");
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
