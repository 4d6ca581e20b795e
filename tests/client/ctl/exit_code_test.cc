// SPDX-License-Identifier: Apache-2.0
// The table of exit statuses and what maps to which.
#include "client/ctl/exit_code.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include "client/ctl/rpc_error.h"

namespace memtuned::ctl {
namespace {

ExitCode Of(absl::StatusCode code) {
  return ExitCodeOf(absl::Status(code, "x"));
}

TEST(ExitCodeTest, TableRowsStandAtTheirOwnNumber) {
  const auto table = ExitCodeTable();

  ASSERT_EQ(table.size(), 8u);
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(table[i].code), i);
    EXPECT_STREQ(GetExitCode(table[i].code).name, table[i].name);
  }
}

TEST(ExitCodeTest, EveryStatusCodeHasOne) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kDone);
  EXPECT_EQ(Of(absl::StatusCode::kInvalidArgument), ExitCode::kUsage);
  EXPECT_EQ(Of(absl::StatusCode::kNotFound), ExitCode::kUsage);
  EXPECT_EQ(Of(absl::StatusCode::kOutOfRange), ExitCode::kUsage);
  EXPECT_EQ(Of(absl::StatusCode::kUnavailable), ExitCode::kUnreachable);
  EXPECT_EQ(Of(absl::StatusCode::kDeadlineExceeded), ExitCode::kUnreachable);
  EXPECT_EQ(Of(absl::StatusCode::kCancelled), ExitCode::kUnreachable);
  EXPECT_EQ(Of(absl::StatusCode::kPermissionDenied), ExitCode::kDenied);
  EXPECT_EQ(Of(absl::StatusCode::kUnauthenticated), ExitCode::kDenied);
  EXPECT_EQ(Of(absl::StatusCode::kFailedPrecondition), ExitCode::kRefused);
  EXPECT_EQ(Of(absl::StatusCode::kAborted), ExitCode::kRefused);
  EXPECT_EQ(Of(absl::StatusCode::kAlreadyExists), ExitCode::kRefused);
  EXPECT_EQ(Of(absl::StatusCode::kResourceExhausted), ExitCode::kRefused);
  EXPECT_EQ(Of(absl::StatusCode::kUnimplemented), ExitCode::kRefused);
  EXPECT_EQ(Of(absl::StatusCode::kInternal), ExitCode::kInternal);
  EXPECT_EQ(Of(absl::StatusCode::kUnknown), ExitCode::kInternal);
  EXPECT_EQ(Of(absl::StatusCode::kDataLoss), ExitCode::kInternal);
}

TEST(ExitCodeTest, DaemonWithoutWriterCountsAsRefused) {
  google::rpc::ErrorInfo info;
  info.set_reason("WRITER_ABSENT");
  google::rpc::Status details;
  details.add_details()->PackFrom(info);

  const absl::Status status = FromGrpcStatus(grpc::Status(
      grpc::StatusCode::UNAVAILABLE, "no writer", details.SerializeAsString()));

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kRefused);
}

}  // namespace
}  // namespace memtuned::ctl
