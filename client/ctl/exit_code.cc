// SPDX-License-Identifier: Apache-2.0
// The rows of exit_code.h and the mapping from status codes.
#include "client/ctl/exit_code.h"

#include <array>

#include "client/ctl/rpc_error.h"

namespace memtuned::ctl {
namespace {

constexpr std::array<ExitCodeDef, 8> kExitCodes = {{
    {ExitCode::kDone, "done", "everything asked for was done"},
    {ExitCode::kFindings, "findings",
     "a finding of severity error, or a target that does not serve"},
    {ExitCode::kUsage, "usage",
     "wrong command line, or a value, subject or name that is not allowed"},
    {ExitCode::kUnreachable, "unreachable",
     "no daemon there, connection lost, or deadline exceeded"},
    {ExitCode::kDenied, "denied", "not allowed to connect or to do this"},
    {ExitCode::kRefused, "refused",
     "refused as things stand: read-only, locked, stale etag, risk not "
     "accepted, too many calls, not supported"},
    {ExitCode::kPartial, "partial",
     "done in part; the output says what is not"},
    {ExitCode::kInternal, "internal", "an error inside memtunectl or memtuned"},
}};

}  // namespace

std::span<const ExitCodeDef> ExitCodeTable() { return kExitCodes; }

const ExitCodeDef& GetExitCode(ExitCode code) {
  return kExitCodes[static_cast<size_t>(code)];
}

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kUsage;
    case absl::StatusCode::kUnavailable:
      return ErrorReason(status) == "WRITER_ABSENT" ? ExitCode::kRefused
                                                    : ExitCode::kUnreachable;
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return ExitCode::kUnreachable;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kDenied;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnimplemented:
      return ExitCode::kRefused;
    default:
      return ExitCode::kInternal;
  }
}

}  // namespace memtuned::ctl
