// SPDX-License-Identifier: Apache-2.0
// StatsService::WatchSnapshots. A slow reader blocks only the write of its
// own thread; its ring drops and counts meanwhile.
#include <atomic>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/convert.h"
#include "daemon/rpc/errors.h"
#include "daemon/rpc/names.h"
#include "daemon/rpc/stats_service.h"

namespace memtuned {
namespace {

// How soon a cancelled call is noticed while nothing is to be sent.
constexpr std::chrono::milliseconds kCancelPoll(100);
constexpr int64_t kMaxIntervalSeconds = 3600;

absl::StatusOr<std::chrono::nanoseconds> ReadInterval(
    const v1::WatchSnapshotsRequest& request) {
  const auto& interval = request.min_interval();
  if (interval.seconds() < 0 || interval.seconds() > kMaxIntervalSeconds ||
      interval.nanos() < 0 || interval.nanos() > 999999999 ||
      (interval.seconds() == kMaxIntervalSeconds && interval.nanos() > 0)) {
    return BadField(
        "min_interval",
        absl::StrCat("is ", interval.seconds(), " s and ", interval.nanos(),
                     " ns; allowed 0 s to ", kMaxIntervalSeconds, " s"));
  }
  return std::chrono::seconds(interval.seconds()) +
         std::chrono::nanoseconds(interval.nanos());
}

v1::WatchSnapshotsResponse MakeSnapshotEvent(const Snapshot& snapshot) {
  v1::WatchSnapshotsResponse event;
  v1::Snapshot& out = *event.mutable_snapshot();
  FillSubjectStats(snapshot, out);
  *out.mutable_sample() = MakeSampleInfo(snapshot);
  for (const ZoneSnapshot& zone : snapshot.zones) {
    *out.add_zones() = ToProto(snapshot, zone);
  }
  return event;
}

// Counts a watcher in, and out again.
class Seat {
 public:
  explicit Seat(std::atomic<int>& taken) : taken_(taken) {
    got_one_ = taken_.fetch_add(1) < StatsService::kMaxWatchers;
  }
  ~Seat() { taken_.fetch_sub(1); }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
  bool got_one() const { return got_one_; }

 private:
  std::atomic<int>& taken_;
  bool got_one_;
};

}  // namespace

grpc::Status StatsService::WatchSnapshots(
    grpc::ServerContext* context, const v1::WatchSnapshotsRequest* request,
    grpc::ServerWriter<v1::WatchSnapshotsResponse>* writer) {
  const auto caller = gate_->Admit(
      *context,
      {.method = "StatsService/WatchSnapshots", .resource = request->name()});
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto interval = ReadInterval(*request);
  if (!interval.ok()) return ToGrpcStatus(interval.status());
  const auto name = ParseName(request->name(), "name", NameDepth::kSubject);
  if (!name.ok()) return ToGrpcStatus(name.status());
  const auto served = registry_->Find(name->subject);
  if (!served.ok()) return ToGrpcStatus(served.status());
  const Seat seat(watchers_);
  if (!seat.got_one()) {
    return ToGrpcStatus(WithRetryAfter(
        WithReason(absl::ResourceExhaustedError(absl::StrCat(
                       "there are ", kMaxWatchers, " watchers already")),
                   "TOO_MANY_WATCHERS",
                   {{"limit", absl::StrCat(kMaxWatchers)}}),
        10.0));
  }

  const auto watch = served->sampler->Watch(*interval);
  while (!context->IsCancelled()) {
    const SnapshotWatch::Event event = watch->Next(kCancelPoll);
    if (event.ended) {
      return ToGrpcStatus(WithReason(
          absl::UnavailableError("the daemon is stopping"), "STOPPING"));
    }
    if (event.missed > 0) {
      v1::WatchSnapshotsResponse fell_behind;
      fell_behind.mutable_fell_behind()->set_missed(event.missed);
      if (observer_ != nullptr) observer_->WatchFellBehind();
      if (!writer->Write(fell_behind)) break;
    }
    if (event.snapshot && !writer->Write(MakeSnapshotEvent(*event.snapshot))) {
      break;
    }
  }
  return ToGrpcStatus(absl::CancelledError("the watcher went away"));
}

}  // namespace memtuned
