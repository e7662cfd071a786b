// A certificate made for a test.
#pragma once

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <boost/asio/ssl.hpp>
#include <cstdio>
#include <memory>
#include <string>

namespace argiope {

// For secure.test and 127.0.0.2. It has signed itself, unless another has. There are files with it, for those who
// trust it, and with its key.
class Certificate {
 public:
  explicit Certificate(bool expired = false) : Certificate("Argiope test", nullptr, expired) {}
  // Signed by another.
  explicit Certificate(const Certificate& issuer) : Certificate("Argiope leaf", &issuer, false) {}
  ~Certificate() {
    std::remove(path_.c_str());
    std::remove(key_path_.c_str());
  }

  const std::string& path() const { return path_; }
  const std::string& key_path() const { return key_path_; }
  boost::asio::ssl::context server{boost::asio::ssl::context::tls_server};

 private:
  Certificate(const char* subject, const Certificate* issuer, bool expired)
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), x509_(X509_new(), X509_free) {
    ASN1_INTEGER_set(X509_get_serialNumber(x509_.get()), 1);
    X509_set_version(x509_.get(), X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(x509_.get()), -7200);
    X509_gmtime_adj(X509_getm_notAfter(x509_.get()), expired ? -3600 : 3600);
    X509_set_pubkey(x509_.get(), key_.get());
    X509_NAME* name = X509_get_subject_name(x509_.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(subject), -1, -1, 0);
    X509_set_issuer_name(x509_.get(), issuer == nullptr ? name : X509_get_subject_name(issuer->x509_.get()));
    add(NID_basic_constraints, "critical,CA:TRUE");
    add(NID_subject_alt_name, "DNS:secure.test,IP:127.0.0.2");
    X509_sign(x509_.get(), issuer == nullptr ? key_.get() : issuer->key_.get(), EVP_sha256());
    write(path_, [&](std::FILE* file) { PEM_write_X509(file, x509_.get()); });
    write(key_path_,
          [&](std::FILE* file) { PEM_write_PrivateKey(file, key_.get(), nullptr, nullptr, 0, nullptr, nullptr); });
    SSL_CTX_use_certificate(server.native_handle(), x509_.get());
    SSL_CTX_use_PrivateKey(server.native_handle(), key_.get());
  }
  template <class Write>
  static void write(std::string& path, Write with) {
    path = ::testing::TempDir() + "argiope-pem-XXXXXX";
    std::FILE* file = ::fdopen(::mkstemp(path.data()), "w");
    with(file);
    std::fclose(file);
  }
  void add(int what, const char* value) {
    std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, what, value), X509_EXTENSION_free);
    X509_add_ext(x509_.get(), extension.get(), -1);
  }
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
  std::unique_ptr<X509, decltype(&X509_free)> x509_;
  std::string path_, key_path_;
};

}  // namespace argiope
