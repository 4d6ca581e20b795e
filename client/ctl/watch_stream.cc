// SPDX-License-Identifier: Apache-2.0
// Implementation of watch_stream.h.
#include "client/ctl/watch_stream.h"

#include <google/protobuf/util/time_util.h>

namespace memtuned::ctl {
namespace {

constexpr std::chrono::milliseconds kStopPoll{100};

}  // namespace

WatchStreams::WatchStreams(Connection& connection, double interval_seconds)
    : connection_(connection), interval_seconds_(interval_seconds) {}

WatchStreams::~WatchStreams() {
  for (auto& stream : streams_) stream->context.TryCancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void WatchStreams::Start(const std::string& subject) {
  v1::WatchSnapshotsRequest request;
  request.set_name(subject);
  *request.mutable_min_interval() =
      google::protobuf::util::TimeUtil::MicrosecondsToDuration(
          static_cast<int64_t>(interval_seconds_ * 1e6));
  auto stream = std::make_unique<Stream>();
  stream->subject = subject;
  stream->silent_since = std::chrono::steady_clock::now();
  stream->reader = connection_.stats().AsyncWatchSnapshots(
      &stream->context, request, &queue_, stream.get());
  streams_.push_back(std::move(stream));
  ++open_;
}

void WatchStreams::Cancel(const std::string& subject) {
  for (auto& stream : streams_) {
    if (stream->subject != subject) continue;
    stream->cancelled = true;
    stream->context.TryCancel();
  }
}

void WatchStreams::Read(Stream& stream) {
  stream.pending = Stream::Pending::kRead;
  stream.reader->Read(&stream.message, &stream);
}

absl::StatusOr<bool> WatchStreams::Advance(Stream& stream, bool ok) {
  stream.silent_since = std::chrono::steady_clock::now();
  switch (stream.pending) {
    case Stream::Pending::kStart:
      if (ok) {
        Read(stream);
        return false;
      }
      break;
    case Stream::Pending::kRead:
      if (ok) return true;
      break;
    case Stream::Pending::kFinish: {
      stream.pending = Stream::Pending::kNothing;
      --open_;
      if (stream.cancelled || stream.status.ok()) return false;
      const absl::Status failure = FromGrpcStatus(stream.status);
      const absl::Status explained = connection_.Explain(failure);
      return WithMessage(explained,
                         "the watch of " + stream.subject +
                             " ended: " + std::string(explained.message()));
    }
    case Stream::Pending::kNothing:
      return false;
  }
  stream.pending = Stream::Pending::kFinish;
  stream.reader->Finish(&stream.status, &stream);
  return false;
}

absl::Status WatchStreams::CheckSilence() const {
  const auto patience = std::chrono::duration<double>(
      connection_.timeout_seconds() + interval_seconds_);
  const auto now = std::chrono::steady_clock::now();
  for (const auto& stream : streams_) {
    if (stream->pending == Stream::Pending::kNothing || stream->cancelled) {
      continue;
    }
    if (now - stream->silent_since > patience) {
      return absl::DeadlineExceededError(
          "no sample of " + stream->subject + " from " +
          connection_.target().Address() + " within --timeout");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<WatchEvent>> WatchStreams::Next(
    const std::function<bool()>& stop) {
  while (open_ > 0) {
    if (stop()) return std::nullopt;
    void* tag = nullptr;
    bool ok = false;
    const auto got = queue_.AsyncNext(
        &tag, &ok, std::chrono::system_clock::now() + kStopPoll);
    if (got == grpc::CompletionQueue::SHUTDOWN) return std::nullopt;
    if (got == grpc::CompletionQueue::TIMEOUT) {
      const absl::Status silence = CheckSilence();
      if (!silence.ok()) return silence;
      continue;
    }
    auto& stream = *static_cast<Stream*>(tag);
    auto advanced = Advance(stream, ok);
    if (!advanced.ok()) return advanced.status();
    if (!*advanced) continue;
    WatchEvent event = {stream.subject, std::move(stream.message)};
    Read(stream);
    return event;
  }
  return std::nullopt;
}

}  // namespace memtuned::ctl
