// SPDX-License-Identifier: Apache-2.0
// The judge: OpenSSL reads the set as it will when gRPC serves with it. The
// only file of the daemon that includes OpenSSL.
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/tls/certificate_set.h"

namespace memtuned {
namespace {

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;

absl::Status Bad(const CertificateFile& file, const std::string& reason) {
  return absl::InvalidArgumentError(absl::StrCat(file.path, ": ", reason));
}

// OpenSSL would ask on the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

Bio Open(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string LastError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string text = reason == nullptr ? "unknown error" : reason;
  ERR_clear_error();
  return text;
}

// A file cut off within "-----BEGIN" looks complete to a parser.
bool EndsInsideALineOfDashes(const std::string& text) {
  const size_t end = text.rfind("-----END ");
  if (end == std::string::npos) return false;
  const size_t line_end = text.find("-----", end + 9);
  return line_end == std::string::npos ||
         text.find("\n-", line_end) != std::string::npos;
}

absl::StatusOr<std::vector<Certificate>> Parse(const CertificateFile& file) {
  if (!file.status.ok()) return file.status;
  ERR_clear_error();
  std::vector<Certificate> found;
  const Bio bio = Open(file.text);
  while (X509* next =
             PEM_read_bio_X509_AUX(bio.get(), nullptr, NoPassphrase, nullptr)) {
    found.emplace_back(next);
  }
  const bool at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end || EndsInsideALineOfDashes(file.text)) {
    return Bad(file, absl::StrCat("certificate ", found.size() + 1,
                                  " is torn or not PEM"));
  }
  if (found.empty()) return Bad(file, "holds no certificate");
  return found;
}

SystemTime TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

SystemTime ExpiryOf(const Certificate& certificate) {
  return TimeOf(X509_get0_notAfter(certificate.get()));
}

// Empty when the certificate is valid at `now`.
std::string WhyNotValid(const Certificate& certificate, SystemTime now) {
  const SystemTime begin = TimeOf(X509_get0_notBefore(certificate.get()));
  const SystemTime end = ExpiryOf(certificate);
  if (now < begin) return absl::StrCat("is not valid before ", TimeText(begin));
  if (now >= end) return absl::StrCat("expired at ", TimeText(end));
  return "";
}

absl::Status CheckChain(const CertificateFile& file,
                        const std::vector<Certificate>& chain, SystemTime now) {
  for (size_t i = 0; i < chain.size(); ++i) {
    const std::string reason = WhyNotValid(chain[i], now);
    if (!reason.empty()) {
      return Bad(file, absl::StrCat("certificate ", i + 1, " ", reason));
    }
    if (i > 0 && X509_check_issued(chain[i].get(), chain[i - 1].get()) != 0) {
      return Bad(file, absl::StrCat("certificate ", i + 1,
                                    " did not issue certificate ", i));
    }
  }
  if (X509_check_purpose(chain[0].get(), X509_PURPOSE_SSL_SERVER, 0) != 1) {
    return Bad(file, "certificate 1 is not for servers (key usage)");
  }
  return absl::OkStatus();
}

// Also finds what OpenSSL holds for too weak.
absl::Status CheckKey(const CertificateSet& set, X509* certificate) {
  if (!set.key.status.ok()) return set.key.status;
  const Bio bio = Open(set.key.text);
  const Key key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr || EndsInsideALineOfDashes(set.key.text)) {
    return Bad(set.key, "holds no whole private key without a passphrase");
  }
  if (X509_check_private_key(certificate, key.get()) != 1) {
    ERR_clear_error();
    return Bad(set.key, absl::StrCat("does not fit the certificate in ",
                                     set.certificate.path));
  }
  const Context context(SSL_CTX_new(TLS_server_method()));
  if (SSL_CTX_use_certificate(context.get(), certificate) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return Bad(set.certificate, absl::StrCat("OpenSSL: ", LastError()));
  }
  return absl::OkStatus();
}

void JudgeServer(const CertificateSet& set, SystemTime now,
                 CertificateVerdict& verdict) {
  const auto chain = Parse(set.certificate);
  verdict.server = chain.status();
  if (verdict.server.ok()) {
    verdict.server = CheckChain(set.certificate, *chain, now);
  }
  if (verdict.server.ok()) {
    verdict.server = CheckKey(set, chain->front().get());
  }
  if (!verdict.server.ok()) return;
  verdict.server_expiry = SystemTime::max();
  for (const Certificate& certificate : *chain) {
    verdict.server_expiry =
        std::min(verdict.server_expiry, ExpiryOf(certificate));
  }
}

// A bundle may still hold CAs that have expired: they count for nothing.
void JudgeCa(const CertificateFile& file, SystemTime now,
             CertificateVerdict& verdict) {
  const auto bundle = Parse(file);
  verdict.ca = bundle.status();
  if (!verdict.ca.ok()) return;
  verdict.ca_expiry = SystemTime::max();
  std::string reason;
  for (const Certificate& certificate : *bundle) {
    const std::string why = WhyNotValid(certificate, now);
    if (why.empty()) {
      verdict.ca_expiry = std::min(verdict.ca_expiry, ExpiryOf(certificate));
    } else {
      reason = why;
    }
  }
  if (verdict.ca_expiry != SystemTime::max()) return;
  verdict.ca = Bad(file, absl::StrCat("no CA in it is valid: certificate ",
                                      bundle->size(), " ", reason));
}

}  // namespace

CertificateVerdict JudgeCertificateSet(const CertificateSet& set,
                                       SystemTime now) {
  CertificateVerdict verdict;
  JudgeServer(set, now, verdict);
  JudgeCa(set.client_ca, now, verdict);
  return verdict;
}

}  // namespace memtuned
