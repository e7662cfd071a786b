#include "web/net/certificate_trouble.hpp"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>
#include <vector>

namespace argiope {
namespace {

constexpr std::size_t kMostOfName = 200;  // bytes of one name that are shown
constexpr std::size_t kMostNames = 5;     // names a certificate is for that are shown

struct FreeBio {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};

std::string cut(std::string text) {
  if (text.size() > kMostOfName) text = text.substr(0, kMostOfName) + "…";
  return text;
}

// As RFC 2253 writes it; everything beyond ASCII and every control character is escaped.
std::string text_of(const X509_NAME* name) {
  const std::unique_ptr<BIO, FreeBio> bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253) < 0) return "?";
  const char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size > 0 ? cut(std::string(data, static_cast<std::size_t>(size))) : "nobody";
}

std::string text_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return "a time that is none";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

struct FreeNames {
  void operator()(GENERAL_NAMES* names) const noexcept { GENERAL_NAMES_free(names); }
};

// The DNS names a certificate is for, comma-separated.
std::string names_in(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string text;
  std::size_t count = 0;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    if (++count > kMostNames) return text + ", …";
    std::string one(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                    static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    for (char& c : one) {
      if (c <= 0x20 || c == 0x7f) c = '?';
    }
    text += (text.empty() ? "" : ", ") + cut(std::move(one));
  }
  return text;
}

std::string reason(int error, const X509* certificate, std::string_view host) {
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return "expired on " + text_of(X509_get0_notAfter(certificate));
    case X509_V_ERR_CERT_NOT_YET_VALID: return "not valid before " + text_of(X509_get0_notBefore(certificate));
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: return "self-signed";
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: return "self-signed authority that is not trusted";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: return "unknown issuer, or the server does not send it";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: {
      const std::string names = names_in(certificate);
      return names.empty() ? fmt::format("name mismatch: not for {}", host)
                           : fmt::format("name mismatch: not for {} but for {}", host, names);
    }
    default: return X509_verify_cert_error_string(error);
  }
}

}  // namespace

std::string certificate_trouble(X509_STORE_CTX& verification, std::string_view host) {
  const int error = X509_STORE_CTX_get_error(&verification);
  const X509* certificate = X509_STORE_CTX_get_current_cert(&verification);
  if (certificate == nullptr) return X509_verify_cert_error_string(error);
  return fmt::format("{}: certificate of {}, issued by {}", reason(error, certificate, host),
                     text_of(X509_get_subject_name(certificate)), text_of(X509_get_issuer_name(certificate)));
}

}  // namespace argiope
