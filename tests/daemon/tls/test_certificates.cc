// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/tls/test_certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>

namespace memtuned {
namespace {

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

X509* ParseCertificate(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

EVP_PKEY* ParseKey(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return key;
}

void Extend(X509* certificate, X509* issuer, int nid, const std::string& text) {
  if (text.empty()) return;
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension =
      X509V3_EXT_conf_nid(nullptr, &context, nid, text.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

Pair MakePair(const CertificateOptions& options, const Pair* issuer) {
  static std::atomic<long> serial{1};
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), options.begin);
  X509_gmtime_adj(X509_getm_notAfter(certificate), options.end);
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
      reinterpret_cast<const unsigned char*>(options.name.c_str()), -1, -1, 0);
  X509_set_pubkey(certificate, key);
  X509* parent = issuer ? ParseCertificate(issuer->certificate) : certificate;
  EVP_PKEY* parent_key = issuer ? ParseKey(issuer->key) : key;
  X509_set_issuer_name(certificate, X509_get_subject_name(parent));
  Extend(certificate, parent, NID_basic_constraints,
         options.is_ca ? "critical,CA:TRUE" : "CA:FALSE");
  Extend(certificate, parent, NID_subject_alt_name, options.alternative_names);
  Extend(certificate, parent, NID_ext_key_usage, options.usage);
  X509_sign(certificate, parent_key, EVP_sha256());

  Pair pair;
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  pair.certificate = TextOf(bio);
  bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  pair.key = TextOf(bio);
  if (issuer) {
    X509_free(parent);
    EVP_PKEY_free(parent_key);
  }
  X509_free(certificate);
  EVP_PKEY_free(key);
  return pair;
}

Pair MakeCa(const std::string& name, long end) {
  CertificateOptions options;
  options.name = name;
  options.alternative_names = "";
  options.is_ca = true;
  options.begin = end < 0 ? end - 3600 : -60;
  options.end = end;
  return MakePair(options, nullptr);
}

std::string EncryptedKey(const Pair& pair) {
  EVP_PKEY* key = ParseKey(pair.key);
  BIO* bio = BIO_new(BIO_s_mem());
  char passphrase[] = "secret";
  PEM_write_bio_PrivateKey(bio, key, EVP_aes_128_cbc(), nullptr, 0, nullptr,
                           passphrase);
  EVP_PKEY_free(key);
  return TextOf(bio);
}

CertificateFolder::CertificateFolder() {
  char folder[] = "/tmp/memtuned-tls-XXXXXX";
  folder_ = mkdtemp(folder);
}

CertificateFolder::~CertificateFolder() {
  std::filesystem::remove_all(folder_);
}

CertificatePaths CertificateFolder::paths() const {
  return {folder_ + "/live/server.pem", folder_ + "/live/key.pem",
          folder_ + "/live/ca.pem"};
}

void CertificateFolder::Rotate(const Pair& server,
                               const std::string& client_ca) {
  const std::string name = std::to_string(++rotations_);
  std::filesystem::create_directory(folder_ + "/" + name);
  Write(name + "/server.pem", server.certificate);
  Write(name + "/key.pem", server.key);
  Write(name + "/ca.pem", client_ca);
  std::filesystem::create_symlink(name, folder_ + "/next");
  std::filesystem::rename(folder_ + "/next", folder_ + "/live");
}

void CertificateFolder::Overwrite(const std::string& name,
                                  const std::string& text) {
  Write("live/" + name, text);
}

std::string CertificateFolder::Write(const std::string& name,
                                     const std::string& text) {
  const std::string path = folder_ + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace memtuned
