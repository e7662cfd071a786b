// Certificates and keys of texts in PEM, as OpenSSL takes them from files: the reader of the file knows that it was
// a plain one.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <string>

namespace argiope {

inline constexpr std::size_t kMostPemBytes = std::size_t{4} * 1024 * 1024;

// The first certificate is the context's own, the others vouch for it. False: OpenSSL's list of errors says why.
bool use_certificate_chain(SSL_CTX& context, const std::string& pem);
// False as above, also for a key that does not go with the certificate.
bool use_private_key(SSL_CTX& context, const std::string& pem);

}  // namespace argiope
