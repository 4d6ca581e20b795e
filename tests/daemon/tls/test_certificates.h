// SPDX-License-Identifier: Apache-2.0
// CAs and certificates made on the spot (EC P-256), and a folder of them that
// is rotated as Kubernetes and others do.
#ifndef MEMTUNED_TESTS_DAEMON_TLS_TEST_CERTIFICATES_H_
#define MEMTUNED_TESTS_DAEMON_TLS_TEST_CERTIFICATES_H_

#include <memory>
#include <string>

#include "daemon/tls/certificate_set.h"

namespace memtuned {

struct CertificateOptions {
  std::string name = "test";
  // As in openssl.cnf.
  std::string alternative_names = "IP:127.0.0.1,DNS:localhost";
  std::string usage = "";  // "clientAuth"; empty: any
  // Seconds from now.
  long begin = -60;
  long end = 3600;
  bool is_ca = false;
};

// A certificate and its key.
struct Pair {
  std::string certificate, key;  // PEM
};

// Issued by `issuer`, or by itself when that is null.
Pair MakePair(const CertificateOptions& options, const Pair* issuer);
Pair MakeCa(const std::string& name, long end = 3600);
// A key that needs a passphrase.
std::string EncryptedKey(const Pair& pair);

// DIR/live -> DIR/N with server.pem, key.pem and ca.pem; paths() go through
// the link.
class CertificateFolder {
 public:
  CertificateFolder();
  ~CertificateFolder();

  CertificatePaths paths() const;
  // Writes a new folder and swaps the link.
  void Rotate(const Pair& server, const std::string& client_ca);
  // Writes into the folder in use.
  void Overwrite(const std::string& name, const std::string& text);
  std::string Write(const std::string& name, const std::string& text);

 private:
  std::string folder_;
  int rotations_ = 0;
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_DAEMON_TLS_TEST_CERTIFICATES_H_
