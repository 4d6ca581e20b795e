// SPDX-License-Identifier: Apache-2.0
// The three files of the TLS listener as one set: the server's certificates,
// their key, and the CAs of its clients. Floor 3; knows neither gRPC nor
// OpenSSL.
#ifndef MEMTUNED_DAEMON_TLS_CERTIFICATE_SET_H_
#define MEMTUNED_DAEMON_TLS_CERTIFICATE_SET_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"

namespace memtuned {

using SystemTime = std::chrono::system_clock::time_point;

struct CertificatePaths {
  std::string certificate;  // the server's own first, then who issued it
  std::string key;
  std::string client_ca;
};

// A file as it was found.
struct CertificateFile {
  std::string path;
  std::string text;     // empty when it could not be read
  absl::Status status;  // "PATH: cannot be read: ..."

  bool operator==(const CertificateFile&) const = default;
};

struct CertificateSet {
  CertificateFile certificate, key, client_ca;

  bool operator==(const CertificateSet&) const = default;
};

// What is wrong with a set, by half; and until when it can be used.
struct CertificateVerdict {
  absl::Status server;  // certificate and key: "PATH: reason"
  absl::Status ca;
  // Of the certificate that expires first; of those CAs that are valid now.
  SystemTime server_expiry, ca_expiry;

  bool ok() const { return server.ok() && ca.ok(); }
  // Both reasons, or one.
  std::string Reason() const;
};

// Never fails as a whole: what cannot be read is for the judge.
CertificateSet ReadCertificateSet(const CertificatePaths& paths);

// certificate_check.cc
// Whether gRPC can serve with it now: every PEM block is whole, the key fits,
// each certificate issued the one before it, and all are valid at `now`.
CertificateVerdict JudgeCertificateSet(const CertificateSet& set,
                                       SystemTime now);

// "2026-12-01T08:30:00Z"
std::string TimeText(SystemTime time);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_TLS_CERTIFICATE_SET_H_
