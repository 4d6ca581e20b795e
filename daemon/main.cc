// SPDX-License-Identifier: Apache-2.0
// memtuned: the daemon with real pools.
#include <utility>

#include "daemon/pool/pool_subject.h"
#include "daemon/run.h"

namespace {

absl::StatusOr<std::unique_ptr<memtuned::Subject>> MakePool(
    const memtuned::PoolConfig& pool, const memtuned::Topology& topology,
    memtuned::FdStore* store) {
  auto subject = memtuned::PoolSubject::Create(pool, topology, store);
  if (!subject.ok()) return subject.status();
  return std::unique_ptr<memtuned::Subject>(*std::move(subject));
}

}  // namespace

int main(int argc, char** argv) {
  return memtuned::RunDaemon(argc, argv, MakePool);
}
