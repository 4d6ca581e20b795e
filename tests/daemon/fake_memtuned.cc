// SPDX-License-Identifier: Apache-2.0
// The daemon with fake pools, for tests of the process: signals, exit codes.
#include "daemon/run.h"
#include "tests/daemon/rpc/fake_subject.h"

int main(int argc, char** argv) {
  return memtuned::RunDaemon(
      argc, argv,
      [](const memtuned::PoolConfig& pool, const memtuned::Topology&)
          -> absl::StatusOr<std::unique_ptr<memtuned::Subject>> {
        if (pool.name == "broken") {
          return absl::ResourceExhaustedError("no memory for it");
        }
        auto subject = std::make_unique<memtuned::FakeSubject>(
            memtuned::FakeOptions{.name = "pools/" + pool.name});
        return std::unique_ptr<memtuned::Subject>(std::move(subject));
      });
}
