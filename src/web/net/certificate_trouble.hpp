// In words: what is wrong with which certificate.
#pragma once

#include <openssl/x509.h>

#include <string>
#include <string_view>

namespace argiope {

// Why a certificate chain for `host` is refused, and whose certificate it is: one sentence without a final stop, e.g.
// `expired on 2026-01-31: certificate of CN=example.org, issued by CN=R3,O=Let's Encrypt,C=US`. To be called from a
// verify callback, when it is told of a failure.
// The text of the certificate is the peer's word: control characters in it are escaped, and long names cut off.
std::string certificate_trouble(X509_STORE_CTX& verification, std::string_view host);

}  // namespace argiope
