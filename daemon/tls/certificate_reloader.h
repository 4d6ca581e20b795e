// SPDX-License-Identifier: Apache-2.0
// Follows the files of the TLS listener and hands out the last good set.
// Floor 3; knows neither gRPC nor OpenSSL.
#ifndef MEMTUNED_DAEMON_TLS_CERTIFICATE_RELOADER_H_
#define MEMTUNED_DAEMON_TLS_CERTIFICATE_RELOADER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "daemon/tls/certificate_set.h"

namespace memtuned {

// Invariants: Current() was judged good, as a whole, when it was taken over; a
// set that was not never replaces it.
// Thread safety: any thread; one caller starts and stops it.
class CertificateReloader {
 public:
  static constexpr std::chrono::milliseconds kInterval{1000};

  struct State {
    SystemTime server_expiry, ca_expiry;  // of the set in use
    // Sets refused because of this half; one that stays bad counts once.
    int64_t server_failures = 0;
    int64_t ca_failures = 0;
  };

  // Takes the first set.
  // Errors: kInvalidArgument naming file and reason.
  static absl::StatusOr<std::unique_ptr<CertificateReloader>> Create(
      const CertificatePaths& paths);

  ~CertificateReloader();
  CertificateReloader(const CertificateReloader&) = delete;
  CertificateReloader& operator=(const CertificateReloader&) = delete;

  // Looks at the files each `interval`.
  // REQUIRES: called once.
  void Start(std::chrono::milliseconds interval = kInterval);
  // May be called again.
  void Stop() EXCLUDES(mutex_);

  // Judges what two looks in a row found: files that are being written are
  // left to settle.
  void Look() EXCLUDES(mutex_) { LookAt(/*settled=*/false); }
  // Judges what is there now: somebody says that it is complete.
  void LookNow() EXCLUDES(mutex_) { LookAt(/*settled=*/true); }

  // Another pointer is another set.
  std::shared_ptr<const CertificateSet> Current() const EXCLUDES(mutex_);
  State state() const EXCLUDES(mutex_);

 private:
  CertificateReloader(const CertificatePaths& paths, CertificateSet first,
                      const CertificateVerdict& verdict);

  void Run(std::chrono::milliseconds interval) EXCLUDES(mutex_);
  void LookAt(bool settled) EXCLUDES(mutex_);
  void TakeOverLocked(CertificateSet set, const CertificateVerdict& verdict)
      REQUIRES(mutex_);
  void RefuseLocked(const CertificateVerdict& verdict) REQUIRES(mutex_);

  const CertificatePaths paths_;
  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<const CertificateSet> current_ GUARDED_BY(mutex_);
  State state_ GUARDED_BY(mutex_);
  CertificateSet seen_ GUARDED_BY(mutex_);  // by the last look
  std::string refused_ GUARDED_BY(mutex_);  // the reason last logged
  std::thread thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_TLS_CERTIFICATE_RELOADER_H_
