#include "web/net/pem_texts.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <new>

namespace argiope {
namespace {

struct FreePem {
  void operator()(BIO* bio) const noexcept { ::BIO_free(bio); }
  void operator()(X509* certificate) const noexcept { ::X509_free(certificate); }
  void operator()(EVP_PKEY* key) const noexcept { ::EVP_PKEY_free(key); }
};
using PemText = std::unique_ptr<BIO, FreePem>;
using PemCertificate = std::unique_ptr<X509, FreePem>;
using PemKey = std::unique_ptr<EVP_PKEY, FreePem>;

// `pem` outlives it.
PemText open_pem(const std::string& pem) {
  PemText bio(::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (bio == nullptr) throw std::bad_alloc();
  return bio;
}

// The end of a text is told as an error, too.
bool is_at_end_of_pem() {
  const unsigned long code = ::ERR_peek_last_error();
  if (ERR_GET_LIB(code) != ERR_LIB_PEM || ERR_GET_REASON(code) != PEM_R_NO_START_LINE) return false;
  ::ERR_clear_error();
  return true;
}

}  // namespace

bool use_certificate_chain(SSL_CTX& context, const std::string& pem) {
  const PemText text = open_pem(pem);
  pem_password_cb* const ask = ::SSL_CTX_get_default_passwd_cb(&context);
  void* const asked_with = ::SSL_CTX_get_default_passwd_cb_userdata(&context);
  ::ERR_clear_error();
  const PemCertificate own(::PEM_read_bio_X509_AUX(text.get(), nullptr, ask, asked_with));
  if (own == nullptr || ::SSL_CTX_use_certificate(&context, own.get()) != 1 || ::ERR_peek_error() != 0) return false;
  ::SSL_CTX_clear_chain_certs(&context);
  for (;;) {
    PemCertificate next(::PEM_read_bio_X509(text.get(), nullptr, ask, asked_with));
    if (next == nullptr) return is_at_end_of_pem();
    if (::SSL_CTX_add0_chain_cert(&context, next.get()) != 1) return false;
    (void)next.release();  // the context's now
  }
}

bool use_private_key(SSL_CTX& context, const std::string& pem) {
  const PemText text = open_pem(pem);
  ::ERR_clear_error();
  const PemKey key(::PEM_read_bio_PrivateKey(text.get(), nullptr, ::SSL_CTX_get_default_passwd_cb(&context),
                                             ::SSL_CTX_get_default_passwd_cb_userdata(&context)));
  return key != nullptr && ::SSL_CTX_use_PrivateKey(&context, key.get()) == 1;
}

}  // namespace argiope
