#include "web/net/client_tls.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <new>

#include "argiope/web/detail/ip_address.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/printable.hpp"
#include "web/net/certificate_trouble.hpp"
#include "web/net/internal/authorities.hpp"
#include "web/net/pem_texts.hpp"

namespace argiope {
namespace {

constexpr std::string_view kOffers[] = {"\x08http/1.1", "\x02h2", "\x02h2\x08http/1.1"};  // by TlsOffer
// Of the socket, so that a record seldom takes two calls of the system.
constexpr std::size_t kReadAhead = 32 * 1024;
constexpr std::size_t kMostAuthoritiesBytes = std::size_t{64} * 1024 * 1024;

// The alerts that a server sends when a certificate of ours is missing or not to its liking (RFC 8446, 6.2): bad, of a
// kind that is not supported, revoked, expired, unknown, of an unknown authority, access denied, required.
bool is_about_our_certificate(unsigned long code) noexcept {
  constexpr int kAlerts[] = {42, 43, 44, 45, 46, 48, 49, 116};
  return !ERR_SYSTEM_ERROR(code) && ERR_GET_LIB(code) == ERR_LIB_SSL &&
         std::ranges::find(kAlerts, ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET) != std::end(kAlerts);
}

struct PassPhrase {
  std::string text;
  bool is_asked = false;
};

int give_pass_phrase(char* out, int size, int, void* data) {
  if (data == nullptr) return 0;
  auto& phrase = *static_cast<PassPhrase*>(data);
  phrase.is_asked = true;
  return static_cast<int>(phrase.text.copy(out, static_cast<std::size_t>(size)));
}

Result<PassPhrase> read_pass_phrase(const std::string& path) {
  PassPhrase phrase;
  if (path.empty()) return phrase;
  const auto text = read_file_text(path, kMostPemBytes, FileReading::again);
  if (!text || text->empty()) {
    const std::string why = text ? "it is empty" : text.error().message;
    return fail(Errc::invalid_input, fmt::format("{}: no password can be read from it ({})", in_quotes(path), why));
  }
  phrase.text = text->substr(0, text->find('\n'));
  if (phrase.text.ends_with('\r')) phrase.text.pop_back();
  return phrase;
}

// Each client that is made reads them, and so they are plain files.
Result<std::string> read_client_pem(const std::string& path, std::string_view what,
                                    std::size_t most_bytes = kMostPemBytes) {
  auto text = read_file_text(path, most_bytes, FileReading::again);
  if (!text) return fail(Errc::invalid_input, fmt::format("{}: {} ({})", in_quotes(path), what, text.error().message));
  return text;
}

Result<TlsContext> load_identity(const ClientCertificate& files) {
  auto phrase = read_pass_phrase(files.password_file);
  if (!phrase) return std::unexpected(std::move(phrase.error()));
  TlsContext context = new_tls_context(::TLS_client_method());
  ::SSL_CTX_set_default_passwd_cb(context.get(), give_pass_phrase);
  ::SSL_CTX_set_default_passwd_cb_userdata(context.get(), &*phrase);
  const auto certificate = read_client_pem(files.certificate, "is no certificate in PEM");
  if (!certificate) return std::unexpected(certificate.error());
  if (!use_certificate_chain(*context, *certificate))
    return bad_pem_file(files.certificate, "is no certificate in PEM");
  const std::string& key = files.key.empty() ? files.certificate : files.key;
  auto key_text = read_client_pem(key, "has no private key in PEM");
  if (!key_text) return std::unexpected(std::move(key_text.error()));
  const bool has_key = use_private_key(*context, *key_text);
  ::OPENSSL_cleanse(key_text->data(), key_text->size());
  if (!has_key) {
    return bad_pem_file(key, !phrase->is_asked             ? "has no private key in PEM that goes with the certificate"
                             : files.password_file.empty() ? "is a private key that needs a password"
                                                           : "is a private key that needs another password");
  }
  ::SSL_CTX_set_default_passwd_cb_userdata(context.get(), nullptr);
  return context;
}

}  // namespace

// --- one connection

int TlsWire::verify(int trusted, X509_STORE_CTX* verification) noexcept {
  if (trusted == 1) return 1;
  const auto* const tls =
      static_cast<const SSL*>(::X509_STORE_CTX_get_ex_data(verification, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& self = *static_cast<TlsWire*>(SSL_get_app_data(tls));
  try {
    self.certificate_trouble_ = argiope::certificate_trouble(*verification, self.host_);
  } catch (...) {
    // There is no memory for words; it is still refused.
  }
  return 0;
}

TlsWire::TlsWire(SSL_CTX& context, Wire& below) : TlsEngine(context, below, Side::client) {
  SSL_set_app_data(&tls(), this);
  ::SSL_set_verify(&tls(), SSL_VERIFY_PEER, verify);
}

bool TlsWire::is_unwelcome() const noexcept { return is_about_our_certificate(broken_by()); }

Result<void> TlsWire::expect(std::string_view host) {
  host_ = host;
  SSL* const tls = &this->tls();
  const bool is_address = IpAddress::parse(host).has_value();
  if (!is_address && SSL_set_tlsext_host_name(tls, host_.c_str()) != 1) {
    return fail(Errc::tls, "cannot set the server name");
  }
  // OpenSSL checks the name itself, so that a wrong one has an error of its own.
  X509_VERIFY_PARAM* const checks = ::SSL_get0_param(tls);
  const bool is_set = is_address ? ::X509_VERIFY_PARAM_set1_ip_asc(checks, host_.c_str()) == 1
                                 : ::X509_VERIFY_PARAM_set1_host(checks, host_.data(), host_.size()) == 1;
  if (!is_set) return fail(Errc::tls, "cannot set the name the certificate must have");
  return {};
}

void TlsWire::offer(TlsOffer protocols) {
  const std::string_view list = kOffers[static_cast<std::size_t>(protocols)];
  const auto* const bytes = reinterpret_cast<const unsigned char*>(list.data());
  if (::SSL_set_alpn_protos(&tls(), bytes, static_cast<unsigned>(list.size())) != 0) throw std::bad_alloc();
}

bool TlsWire::has_chosen_http2() const noexcept {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  ::SSL_get0_alpn_selected(&tls(), &name, &size);
  return std::string_view(reinterpret_cast<const char*>(name), size) == "h2";
}

Result<void> TlsWire::show(SSL_CTX& identity) {
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(&identity, &chain);
  ::ERR_clear_error();
  if (::SSL_use_cert_and_key(&tls(), ::SSL_CTX_get0_certificate(&identity), ::SSL_CTX_get0_privatekey(&identity), chain,
                             1) == 1) {
    return {};
  }
  return fail(Errc::tls, fmt::format("the client's certificate cannot be used: {}", why_openssl_failed()));
}

// --- what they share

Result<void> ClientTls::load() {
  TlsContext context = new_tls_context(::TLS_client_method());
  SSL_CTX* const made = context.get();
  ::SSL_CTX_set_options(made, SSL_OP_ALL);
  ::SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_read_ahead(made, 1);
  ::SSL_CTX_set_default_read_buffer_len(made, kReadAhead);
  ::ERR_clear_error();
  if (::SSL_CTX_set_default_verify_paths(made) != 1) {
    return fail(Errc::tls, fmt::format("the system's certificate authorities: {}", why_openssl_failed()));
  }
  if (!extra_ca_file_.empty() && ::SSL_CTX_load_verify_locations(made, extra_ca_file_.c_str(), nullptr) != 1) {
    return fail(Errc::tls, fmt::format("{}: {}", extra_ca_file_, why_openssl_failed()));
  }
  context_ = std::move(context);
  return {};
}

Result<std::unique_ptr<TlsWire>> ClientTls::over(Wire& below, std::string_view host, bool is_known, TlsOffer offer,
                                                 bool verifies) {
  if (context_ == nullptr) {
    if (auto loaded = load(); !loaded) return std::unexpected(std::move(loaded.error()));
  }
  const bool shows = is_known && verifies && !certificate_.certificate.empty();
  if (shows && identity_ == nullptr) {
    auto loaded = load_identity(certificate_);
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    identity_ = std::move(*loaded);
  }
  auto wire = std::make_unique<TlsWire>(*context_, below);
  wire->offer(offer);
  if (auto expected = wire->expect(host); !expected) return std::unexpected(std::move(expected.error()));
  if (!verifies) wire->trust_anybody();
  if (shows) {
    if (auto shown = wire->show(*identity_); !shown) return std::unexpected(std::move(shown.error()));
  }
  return wire;
}

Result<void> check_authorities(const std::string& file) {
  const TlsContext context = new_tls_context(::TLS_client_method());
  // OpenSSL would wait for the writer of a pipe.
  if (auto text = read_client_pem(file, "has no certificates in PEM", kMostAuthoritiesBytes); !text)
    return std::unexpected(std::move(text.error()));
  ::ERR_clear_error();
  if (::SSL_CTX_load_verify_locations(context.get(), file.c_str(), nullptr) == 1) return {};
  return bad_pem_file(file, "has no certificates in PEM");
}

Result<void> check(const ClientCertificate& certificate) {
  if (certificate.certificate.empty()) return {};
  auto loaded = load_identity(certificate);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  return {};
}

}  // namespace argiope
