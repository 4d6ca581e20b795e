// SPDX-License-Identifier: Apache-2.0
// One thread compares what lies in the files with what is in use.
#include "daemon/tls/certificate_reloader.h"

#include <utility>

#include "daemon/log.h"

namespace memtuned {

absl::StatusOr<std::unique_ptr<CertificateReloader>>
CertificateReloader::Create(const CertificatePaths& paths) {
  CertificateSet set = ReadCertificateSet(paths);
  const CertificateVerdict verdict =
      JudgeCertificateSet(set, std::chrono::system_clock::now());
  if (!verdict.ok()) return absl::InvalidArgumentError(verdict.Reason());
  return std::unique_ptr<CertificateReloader>(
      new CertificateReloader(paths, std::move(set), verdict));
}

CertificateReloader::CertificateReloader(const CertificatePaths& paths,
                                         CertificateSet first,
                                         const CertificateVerdict& verdict)
    : paths_(paths), seen_(first) {
  const MutexLock lock(mutex_);
  TakeOverLocked(std::move(first), verdict);
}

CertificateReloader::~CertificateReloader() { Stop(); }

void CertificateReloader::Start(std::chrono::milliseconds interval) {
  thread_ = std::thread([this, interval] { Run(interval); });
}

void CertificateReloader::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void CertificateReloader::Run(std::chrono::milliseconds interval) {
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (!stopping_) wake_.WaitFor(mutex_, interval);
      if (stopping_) return;
    }
    Look();
  }
}

void CertificateReloader::LookAt(bool settled) {
  // Without the lock: a slow disk must not hold up handshakes.
  CertificateSet set = ReadCertificateSet(paths_);
  const MutexLock lock(mutex_);
  const bool changed = set != seen_;
  if (changed) {
    seen_ = set;
    refused_.clear();
  }
  if (set == *current_ || (changed && !settled)) return;
  // Again at each look: the time to use it may come.
  const CertificateVerdict verdict =
      JudgeCertificateSet(set, std::chrono::system_clock::now());
  if (verdict.ok()) {
    TakeOverLocked(std::move(set), verdict);
  } else if (verdict.Reason() != refused_) {
    RefuseLocked(verdict);
  }
}

void CertificateReloader::TakeOverLocked(CertificateSet set,
                                         const CertificateVerdict& verdict) {
  current_ = std::make_shared<const CertificateSet>(std::move(set));
  state_.server_expiry = verdict.server_expiry;
  state_.ca_expiry = verdict.ca_expiry;
  refused_.clear();
  LogEvent(LogLevel::kInfo, "certificates",
           {{"certificate", paths_.certificate},
            {"expiry", TimeText(verdict.server_expiry)},
            {"client-ca", paths_.client_ca},
            {"client-ca-expiry", TimeText(verdict.ca_expiry)}});
}

void CertificateReloader::RefuseLocked(const CertificateVerdict& verdict) {
  refused_ = verdict.Reason();
  if (!verdict.server.ok()) ++state_.server_failures;
  if (!verdict.ca.ok()) ++state_.ca_failures;
  LogEvent(LogLevel::kError, "certificates-refused",
           {{"error", refused_}, {"note", "the last good ones stay in use"}});
}

std::shared_ptr<const CertificateSet> CertificateReloader::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

CertificateReloader::State CertificateReloader::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

}  // namespace memtuned
