// SPDX-License-Identifier: Apache-2.0
// A daemon that lives in the test: real gRPC over a Unix socket, simple
// subjects behind it, and switches for what can go wrong.
#ifndef MEMTUNED_TESTS_CLIENT_CTL_FAKE_DAEMON_H_
#define MEMTUNED_TESTS_CLIENT_CTL_FAKE_DAEMON_H_

#include <grpcpp/grpcpp.h>
#include <memtuned/v1/stats.grpc.pb.h>
#include <memtuned/v1/topology.grpc.pb.h>
#include <memtuned/v1/tuning.grpc.pb.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/client/ctl/temp_dir.h"

namespace memtuned::ctl {

// What the fake serves. A test changes it before the calls it is about, or
// takes `mutex`.
struct FakeState {
  std::mutex mutex;
  std::vector<std::string> subjects = {"pools/default"};
  int64_t generation = 12;
  std::string etag = "12-ab";
  std::map<std::string, v1::Value> tunables;
  // Wait before each answer.
  std::chrono::milliseconds delay{0};
  // Errors by method, or by "Method subject".
  std::map<std::string, grpc::Status> failures;
  std::vector<std::string> not_drained;
  // A second process is stopped and holds a zone's lock; the pool says so.
  bool holder_stopped = false;
  // Every snapshot is one second and 1000 refills after the one before.
  int64_t samples = 0;
  // The watch reports missed samples after this many; 0: never.
  int fell_behind_after = 0;
  // The watch ends after this many samples; 0: never.
  int watch_ends_after = 0;
  // What the last mutating call asked for.
  v1::SetTunablesRequest last_set;
  v1::RecalculateRequest last_recalculate;
  v1::DrainRequest last_drain;
  v1::SetProcessLimitRequest last_limit;
  v1::SetMemsAllowedRequest last_mems;
  // Another process has the pid of the first.
  bool pid_twice = false;
  int calls = 0;

  // Bookkeeping of every call: counts it, waits, and says how it is to fail.
  grpc::Status Enter(const std::string& method, const std::string& subject,
                     const grpc::ServerContext& context);
};

// OK if the fake serves `subject`, else NOT_FOUND with details.
grpc::Status FindSubject(const FakeState& state, const std::string& subject);

// An error as the daemon makes it: ErrorInfo, and BadRequest for a field.
grpc::Status MakeError(grpc::StatusCode code, const std::string& message,
                       const std::string& reason, const std::string& field = "",
                       const std::string& description = "");

// Two zones of 256 MiB, as of sample number `sample`.
v1::Snapshot MakeSnapshot(const FakeState& state, const std::string& subject,
                          int64_t sample);

std::unique_ptr<v1::StatsService::Service> MakeStatsService(FakeState* state);
std::unique_ptr<v1::TuningService::Service> MakeTuningService(FakeState* state);

class FakeDaemon {
 public:
  FakeDaemon();
  ~FakeDaemon();

  FakeState& state() { return state_; }
  std::string socket() const { return dir_.File("d.sock"); }
  std::string target() const { return "unix:" + socket(); }
  void SetHealth(const std::string& service, bool serving);
  void Stop();

 private:
  const TempDir dir_;
  FakeState state_;
  std::unique_ptr<v1::TopologyService::Service> topology_;
  std::unique_ptr<v1::StatsService::Service> stats_;
  std::unique_ptr<v1::TuningService::Service> tuning_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace memtuned::ctl

#endif  // MEMTUNED_TESTS_CLIENT_CTL_FAKE_DAEMON_H_
