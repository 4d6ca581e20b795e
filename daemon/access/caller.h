// SPDX-License-Identifier: Apache-2.0
// Who makes a call. Floor 3.
#ifndef MEMTUNED_DAEMON_ACCESS_CALLER_H_
#define MEMTUNED_DAEMON_ACCESS_CALLER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace memtuned {

struct Caller {
  enum class Kind { kUnix, kTls };

  Kind kind = Kind::kUnix;
  // Unix: as of connect(), told by the kernel.
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;  // supplementary
  int pid = 0;                   // 0: of another pid namespace
  // TLS: a name of the certificate.
  std::string identity;

  // What change records, the audit log and limits know the caller by:
  // "uid:1000", "tls:spiffe://example.org/ops".
  std::string Text() const;
};

// The other end of a connected Unix socket.
// Errors: kUnauthenticated when `fd` is none.
absl::StatusOr<Caller> UnixCaller(int fd);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_ACCESS_CALLER_H_
