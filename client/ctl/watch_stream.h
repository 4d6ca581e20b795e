// SPDX-License-Identifier: Apache-2.0
// Several snapshot streams read as one, from one thread, without ever waiting
// for longer than the deadline allows.
#ifndef MEMTUNED_CLIENT_CTL_WATCH_STREAM_H_
#define MEMTUNED_CLIENT_CTL_WATCH_STREAM_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/connection.h"

namespace memtuned::ctl {

// One message of one stream.
struct WatchEvent {
  std::string subject;
  v1::WatchSnapshotsResponse message;
};

// Thread safety: caller's thread.
class WatchStreams {
 public:
  // A stream that is silent for longer than the connection's timeout plus
  // `interval_seconds` counts as dead.
  WatchStreams(Connection& connection, double interval_seconds);
  // Cancels what is open. Blocks: until gRPC has let go of the streams.
  ~WatchStreams();

  WatchStreams(const WatchStreams&) = delete;
  WatchStreams& operator=(const WatchStreams&) = delete;

  void Start(const std::string& subject);
  // Ends one stream; its end is not an error.
  void Cancel(const std::string& subject);
  int open() const { return open_; }

  // The next message of any stream; nothing when `stop` said so or all
  // streams ended. Asks `stop` at least every 100 ms.
  // Errors: why a stream ended; kDeadlineExceeded for a silent one.
  absl::StatusOr<std::optional<WatchEvent>> Next(
      const std::function<bool()>& stop);

 private:
  // One stream. Its address is the tag of its one pending operation.
  struct Stream {
    enum class Pending { kStart, kRead, kFinish, kNothing };
    std::string subject;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientAsyncReader<v1::WatchSnapshotsResponse>> reader;
    v1::WatchSnapshotsResponse message;
    grpc::Status status;
    Pending pending = Pending::kStart;
    bool cancelled = false;
    std::chrono::steady_clock::time_point silent_since;
  };

  void Read(Stream& stream);
  // Takes a completed operation.
  // Returns: whether `stream.message` holds a new message.
  absl::StatusOr<bool> Advance(Stream& stream, bool ok);
  absl::Status CheckSilence() const;

  Connection& connection_;
  const double interval_seconds_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Stream>> streams_;
  int open_ = 0;
};

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_WATCH_STREAM_H_
