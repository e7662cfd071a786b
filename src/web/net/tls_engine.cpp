#include "web/net/tls_engine.hpp"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>

#include <cstring>
#include <new>

#include "base/internal/printable.hpp"

namespace argiope {

TlsContext new_tls_context(const SSL_METHOD* method) {
  TlsContext context(::SSL_CTX_new(method));
  if (context == nullptr) throw std::bad_alloc();
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return 0; });
  return context;
}

std::string why_openssl_failed() {
  const unsigned long code = ::ERR_peek_error();
  ::ERR_clear_error();
  if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
  const char* const reason = ::ERR_reason_error_string(code);
  return reason == nullptr ? "TLS fails" : reason;
}

std::unexpected<Error> bad_pem_file(const std::string& path, std::string_view what) {
  return fail(Errc::invalid_input, fmt::format("{}: {} ({})", in_quotes(path), what, why_openssl_failed()));
}

const BIO_METHOD* TlsEngine::bio_method() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* const made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire below");
    if (made == nullptr) throw std::bad_alloc();
    ::BIO_meth_set_read(made, read_below);
    ::BIO_meth_set_write(made, write_below);
    ::BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long { return command == BIO_CTRL_FLUSH; });
    return made;
  }();
  return kMethod;
}

int TlsEngine::read_below(BIO* bio, char* out, int size) noexcept {
  ::BIO_clear_retry_flags(bio);
  auto& self = *static_cast<TlsEngine*>(::BIO_get_data(bio));
  const WireStep step = self.wire_below_.read(out, static_cast<std::size_t>(size));
  self.below_ = step.outcome;
  if (step.outcome == WireStep::Outcome::done) return static_cast<int>(step.bytes);
  if (step.outcome == WireStep::Outcome::ended) return 0;
  if (step.outcome != WireStep::Outcome::broken) ::BIO_set_retry_read(bio);
  return -1;
}

int TlsEngine::write_below(BIO* bio, const char* bytes, int size) noexcept {
  ::BIO_clear_retry_flags(bio);
  auto& self = *static_cast<TlsEngine*>(::BIO_get_data(bio));
  const WireStep step = self.wire_below_.write(bytes, static_cast<std::size_t>(size));
  self.below_ = step.outcome;
  if (step.outcome == WireStep::Outcome::done) return static_cast<int>(step.bytes);
  if (step.outcome != WireStep::Outcome::broken) ::BIO_set_retry_write(bio);
  return -1;
}

TlsEngine::TlsEngine(SSL_CTX& context, Wire& below, Side side) : wire_below_(below), tls_(::SSL_new(&context)) {
  BIO* const bio = ::BIO_new(bio_method());
  if (tls_ == nullptr || bio == nullptr) {
    ::BIO_free(bio);
    throw std::bad_alloc();
  }
  ::BIO_set_data(bio, this);
  ::BIO_set_init(bio, 1);
  ::SSL_set_bio(tls_.get(), bio, bio);
  side == Side::client ? ::SSL_set_connect_state(tls_.get()) : ::SSL_set_accept_state(tls_.get());
}

WireStep TlsEngine::shake_hands() noexcept {
  ::ERR_clear_error();
  return step_after(::SSL_do_handshake(tls_.get()), 0);
}

WireStep TlsEngine::read(char* out, std::size_t size) noexcept {
  ::ERR_clear_error();
  std::size_t bytes = 0;
  const int code = ::SSL_read_ex(tls_.get(), out, size, &bytes);
  return step_after(code, bytes);
}

WireStep TlsEngine::write(const char* bytes, std::size_t size) noexcept {
  ::ERR_clear_error();
  std::size_t written = 0;
  const int code = ::SSL_write_ex(tls_.get(), bytes, size, &written);
  return step_after(code, written);
}

WireStep TlsEngine::step_after(int code, std::size_t bytes) noexcept {
  using Outcome = WireStep::Outcome;
  if (code == 1) return {Outcome::done, bytes};
  switch (::SSL_get_error(tls_.get(), code)) {
    // The wire below knows better which of them it waits for: it may be TLS itself.
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return {below_, 0};
    case SSL_ERROR_ZERO_RETURN: return {Outcome::ended, 0};
    default: break;
  }
  // Without close_notify a cut-off cannot be told from an end; the framing of the response decides.
  if (below_ == Outcome::ended) {
    ::ERR_clear_error();
    return {Outcome::ended, 0};
  }
  try {
    broken_by_ = broke_below() ? 0 : ::ERR_peek_error();
    why_broken_ = broke_below() ? wire_below_.why_broken() : why_openssl_failed();
  } catch (...) {
    why_broken_.clear();
  }
  return {Outcome::broken, 0};
}

// Messages of TLS itself, such as tickets for sessions, are taken in meanwhile.
bool TlsEngine::is_quiet() noexcept {
  ::ERR_clear_error();
  char byte = 0;
  std::size_t bytes = 0;
  const int code = ::SSL_peek_ex(tls_.get(), &byte, 1, &bytes);
  return step_after(code, bytes).outcome == WireStep::Outcome::wants_read;
}

void TlsEngine::end() noexcept {
  ::ERR_clear_error();
  ::SSL_shutdown(tls_.get());
  ::ERR_clear_error();
}

}  // namespace argiope
