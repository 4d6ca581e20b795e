// SPDX-License-Identifier: Apache-2.0
// The daemon with fake pools, for tests of the process: signals, exit codes,
// the watchdog. The pool "broken" cannot be made; "hangs" hangs its sampler
// from the fifth sample on.
#include <unistd.h>

#include "daemon/run.h"
#include "tests/daemon/rpc/fake_subject.h"

namespace memtuned {
namespace {

class HangingSubject : public FakeSubject {
 public:
  using FakeSubject::FakeSubject;

  absl::StatusOr<Snapshot> TakeSnapshot(bool full) override {
    while (snapshots_taken() >= 4) pause();
    return FakeSubject::TakeSnapshot(full);
  }
};

absl::StatusOr<std::unique_ptr<Subject>> MakePool(const PoolConfig& pool,
                                                  const Topology&, FdStore*) {
  if (pool.name == "broken") {
    return absl::ResourceExhaustedError("no memory for it");
  }
  const FakeOptions options{.name = "pools/" + pool.name};
  std::unique_ptr<Subject> subject;
  if (pool.name == "hangs") {
    subject = std::make_unique<HangingSubject>(options);
  } else {
    subject = std::make_unique<FakeSubject>(options);
  }
  return subject;
}

}  // namespace
}  // namespace memtuned

int main(int argc, char** argv) {
  return memtuned::RunDaemon(argc, argv, memtuned::MakePool);
}
