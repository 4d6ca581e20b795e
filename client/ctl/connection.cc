// SPDX-License-Identifier: Apache-2.0
// Implementation of connection.h.
#include "client/ctl/connection.h"

#include <chrono>

#include "client/ctl/format.h"

namespace memtuned::ctl {
namespace {

// Replies are cut at about 3 MiB by the daemon; a later one may send more.
constexpr int kMaxReplyBytes = 64 << 20;

std::shared_ptr<grpc::Channel> MakeChannel(const Target& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  arguments.SetUserAgentPrefix("memtunectl");
  return grpc::CreateCustomChannel(
      target.Address(), grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Create(
    const Target& target, double timeout_seconds) {
  const absl::Status checked = CheckSocket(target);
  if (!checked.ok()) return checked;
  return std::unique_ptr<Connection>(new Connection(target, timeout_seconds));
}

Connection::Connection(const Target& target, double timeout_seconds)
    : target_(target),
      timeout_seconds_(timeout_seconds),
      channel_(MakeChannel(target)),
      topology_(v1::TopologyService::NewStub(channel_)),
      stats_(v1::StatsService::NewStub(channel_)),
      tuning_(v1::TuningService::NewStub(channel_)),
      health_(grpc::health::v1::Health::NewStub(channel_)) {}

absl::Status Connection::Explain(const absl::Status& failure) const {
  // An answer with details came from the daemon: it speaks for itself.
  if (!ErrorReason(failure).empty()) return failure;
  if (absl::IsUnavailable(failure)) return ExplainFailure(target_, failure);
  if (absl::IsDeadlineExceeded(failure)) {
    return absl::DeadlineExceededError(
        "no answer from " + target_.Address() + " within " +
        Formatter(Glyphs::Ascii()).Seconds(timeout_seconds_) + " (--timeout)");
  }
  return failure;
}

void Connection::SetDeadline(grpc::ClientContext& context) const {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::microseconds>(
                           std::chrono::duration<double>(timeout_seconds_)));
}

}  // namespace memtuned::ctl
