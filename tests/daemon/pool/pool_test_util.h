// SPDX-License-Identifier: Apache-2.0
// A small pool for tests of daemon/pool, in a folder of its own.
#ifndef MEMTUNED_TESTS_DAEMON_POOL_POOL_TEST_UTIL_H_
#define MEMTUNED_TESTS_DAEMON_POOL_POOL_TEST_UTIL_H_

#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "daemon/pool/pool_config.h"
#include "daemon/pool/pool_subject.h"

namespace memtuned {

class TempDir {
 public:
  TempDir() {
    char path[] = "/tmp/memtuned-pool-test.XXXXXX";
    path_ = mkdtemp(path);
  }
  ~TempDir() {
    std::error_code error;  // a keeper may be removing its socket
    std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Topology TwoNodes() {
  Topology topology;
  topology.source = TopologySource::kSynthetic;
  for (int n = 0; n < 2; ++n) {
    TopologyNode node;
    node.os_index = n;
    node.memory_bytes = int64_t{1} << 30;
    node.cpus = {2 * n, 2 * n + 1};
    node.near_cpus = node.cpus;
    topology.nodes.push_back(node);
  }
  topology.distances = {{10, 20}, {20, 10}};
  return topology;
}

inline PoolConfig SmallPool(const TempDir& dir, uint64_t bytes) {
  PoolConfig config;
  config.name = "test";
  config.bytes = bytes;
  config.populate = "lazy";
  config.socket_path = dir.path() + "/test.sock";
  return config;
}

// Waits until `condition`, at most ten seconds. Returns: whether it came.
template <typename Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

// A pool of 256 MiB on two nodes, whose memory is all there; nullptr when it
// does not come.
inline std::unique_ptr<PoolSubject> InitialisedPool(const TempDir& dir,
                                                    FdStore* store) {
  auto pool =
      PoolSubject::Create(SmallPool(dir, 256u << 20), TwoNodes(), store);
  if (!pool.ok()) return nullptr;
  const Segment& segment = (*pool)->segment();
  if (!Eventually([&] { return segment.Initialised(); })) return nullptr;
  return *std::move(pool);
}

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_DAEMON_POOL_POOL_TEST_UTIL_H_
