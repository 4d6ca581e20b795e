// SPDX-License-Identifier: Apache-2.0
// What the daemon sees of attached processes from outside: real ones that are
// stopped, with a lock of the pool in their hands or without.
#include "daemon/pool/process_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/slot_table.h"
#include "daemon/pool/freezer.h"
#include "daemon/pool/pool_subject.h"
#include "daemon/sampler.h"
#include "memtuned/memtuned.h"
#include "tests/daemon/pool/pool_test_util.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

double MetricOf(const Snapshot& snapshot, const std::string& name,
                const std::string& label = "") {
  double found = -1;
  for (const StatDef& def : StatTable()) {
    if (name != def.name) continue;
    StatSink sink;
    sink.value = [&](StatLabels labels, double value) {
      if (label.empty() || labels.back().second == label) found = value;
    };
    sink.histogram = [](StatLabels, std::span<const uint64_t>, double) {};
    def.read(snapshot, sink);
  }
  return found;
}

class ProcessMonitorTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = InitialisedPool(dir_, &store_);
    ASSERT_NE(pool_, nullptr);
  }
  void TearDown() override {
    for (pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

  // An attached process that runs `body` and then waits.
  template <typename Body>
  pid_t Child(Body body) {
    const pid_t child = fork();
    if (child == 0) {
      memtuned_pool* pool = nullptr;
      if (memtuned_attach(socket_.c_str(), nullptr, &pool, nullptr) != 0) {
        _exit(9);
      }
      body(pool);
      for (;;) pause();
    }
    children_.push_back(child);
    return child;
  }
  // One that stops itself with the lock of node 0's zone in its hand, and lets
  // go when it is told to go on.
  pid_t StopsWithALock() {
    return Child([&](memtuned_pool* pool) {
      ThreadContext thread;
      Segment& segment = pool_->segment();
      if (!TakeThreadSlot(segment, memtuned_process_id(pool), &thread) ||
          !segment.zone(0).Lock(thread)) {
        _exit(8);
      }
      raise(SIGSTOP);
      segment.zone(0).Unlock(0);
    });
  }
  static void WaitUntilStopped(pid_t child) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
    ASSERT_TRUE(WIFSTOPPED(status)) << status;
  }
  static const ProcessSnapshot* Find(const Snapshot& snapshot, pid_t pid) {
    for (const ProcessSnapshot& process : snapshot.processes) {
      if (process.pid == pid) return &process;
    }
    return nullptr;
  }

  TempDir dir_;
  FdStore store_;
  const std::string socket_ = dir_.path() + "/test.sock";
  std::unique_ptr<PoolSubject> pool_;
  std::vector<pid_t> children_;
};

TEST_F(ProcessMonitorTest, AStoppedHolderOfALockIsNamedWithinTwoSeconds) {
  Sampler sampler(pool_.get(), SamplerOptions{});
  sampler.Start();
  ASSERT_TRUE(Eventually([&] { return sampler.Latest() != nullptr; }));
  const pid_t child = StopsWithALock();
  WaitUntilStopped(child);
  const auto stopped = std::chrono::steady_clock::now();

  ASSERT_TRUE(Eventually([&] { return sampler.Latest()->degraded; }));

  EXPECT_LT(std::chrono::steady_clock::now() - stopped,
            std::chrono::seconds(2));
  const Snapshot first = *sampler.Latest();
  const ProcessSnapshot* process = Find(first, child);
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->state, ProcessState::kStopped);
  ASSERT_EQ(process->holds.size(), 1u);
  EXPECT_EQ(process->holds[0].lock, "zone");
  EXPECT_EQ(process->holds[0].where, "nodes/0/zones/Normal");
  EXPECT_THAT(first.degraded_reason,
              MatchesRegex("nodes/0/zones/Normal is held by process [0-9]+-"
                           "[0-9]+ \\(pid " +
                           std::to_string(child) + "\\), stopped for 0 s"));
  EXPECT_EQ(MetricOf(first, "memtuned_pool_processes", "stopped"), 1);

  EXPECT_TRUE(Eventually([&] {
    return MetricOf(*sampler.Latest(), "memtuned_lock_holder_stopped_seconds") >
           1.5;
  }));
  EXPECT_THAT(sampler.Latest()->degraded_reason, HasSubstr("stopped for "));
  kill(child, SIGCONT);
  EXPECT_TRUE(Eventually([&] { return !sampler.Latest()->degraded; }));
  EXPECT_EQ(MetricOf(*sampler.Latest(), "memtuned_lock_holder_stopped_seconds"),
            0);
  EXPECT_EQ(Find(*sampler.Latest(), child)->state, ProcessState::kRunning);
}

TEST_F(ProcessMonitorTest, AStoppedProcessWithoutALockIsInNobodysWay) {
  const pid_t child = Child([](memtuned_pool* pool) {
    memtuned_allocate(pool, 0);
    raise(SIGSTOP);
  });
  WaitUntilStopped(child);

  const Snapshot first = *pool_->TakeSnapshot(false);
  usleep(200000);
  const Snapshot second = *pool_->TakeSnapshot(false);

  EXPECT_EQ(Find(first, child)->state, ProcessState::kStopped);
  EXPECT_EQ(Find(first, child)->stopped_seconds, 0);
  EXPECT_GE(Find(second, child)->stopped_seconds, 0.2);
  EXPECT_TRUE(Find(second, child)->holds.empty());
  EXPECT_FALSE(second.degraded);
  EXPECT_EQ(MetricOf(second, "memtuned_pool_processes", "stopped"), 1);
  kill(child, SIGCONT);
  EXPECT_TRUE(Eventually([&] {
    return Find(*pool_->TakeSnapshot(false), child)->state ==
           ProcessState::kRunning;
  }));
}

TEST_F(ProcessMonitorTest, AHolderThatDiesIsNotInTheWay) {
  const pid_t child = StopsWithALock();
  WaitUntilStopped(child);
  ASSERT_TRUE(pool_->TakeSnapshot(false)->degraded);

  kill(child, SIGKILL);

  EXPECT_TRUE(Eventually([&] {
    const Snapshot now = *pool_->TakeSnapshot(false);
    return !now.degraded && now.processes.empty();
  }));
}

TEST_F(ProcessMonitorTest, LastActivityMovesOnlyWithActivity) {
  int wake[2];
  ASSERT_EQ(pipe(wake), 0);
  const pid_t child = Child([&](memtuned_pool* pool) {
    char byte = 0;
    while (read(wake[0], &byte, 1) == 1) {
      memtuned_free(pool, memtuned_allocate(pool, 0), 0);
    }
  });
  const auto active = [&] {
    const Snapshot now = *pool_->TakeSnapshot(false);
    const ProcessSnapshot* process = Find(now, child);
    return process == nullptr ? 0 : process->active_unix_seconds;
  };
  ASSERT_TRUE(Eventually([&] { return active() > 0; }));
  const double attached = active();
  EXPECT_EQ(active(), attached);

  ASSERT_EQ(write(wake[1], "x", 1), 1);

  EXPECT_TRUE(Eventually([&] { return active() > attached; }));
  const double moved = active();
  EXPECT_EQ(active(), moved);
  close(wake[0]);
  close(wake[1]);
}

class FreezerTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = dir_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  bool Frozen(int pid) {
    return IsFrozen(dir_.path() + "/proc", dir_.path() + "/sys", pid);
  }

  TempDir dir_;
  FdStore store_;
};

TEST_F(FreezerTest, ReadsVersionTwo) {
  Write("/proc/7/cgroup", "0::/a.slice/b\n");
  const std::string events = "/sys/fs/cgroup/a.slice/b/cgroup.events";
  EXPECT_FALSE(Frozen(7)) << "nothing to be seen";
  Write(events, "populated 1\nfrozen 0\n");
  EXPECT_FALSE(Frozen(7));

  Write(events, "populated 1\nfrozen 1\n");

  EXPECT_TRUE(Frozen(7));
  EXPECT_FALSE(Frozen(8));
}

TEST_F(FreezerTest, ReadsVersionOne) {
  Write("/proc/7/cgroup", "4:cpu,memory:/x\n6:freezer:/x:y\n0::/\n");
  Write("/sys/fs/cgroup/freezer/x:y/freezer.state", "THAWED\n");
  EXPECT_FALSE(Frozen(7));

  Write("/sys/fs/cgroup/freezer/x:y/freezer.state", "FROZEN\n");

  EXPECT_TRUE(Frozen(7));
}

TEST_F(ProcessMonitorTest, AFrozenProcessCountsAsStopped) {
  const pid_t child = Child([](memtuned_pool*) {});
  ASSERT_TRUE(Eventually(
      [&] { return Find(*pool_->TakeSnapshot(false), child) != nullptr; }));
  const std::string group = dir_.path() + "/sys/fs/cgroup/g";
  const std::string files = dir_.path() + "/proc/" + std::to_string(child);
  std::filesystem::create_directories(group);
  std::filesystem::create_directories(files);
  std::ofstream(files + "/cgroup") << "0::/g\n";
  ProcessMonitor watch(&pool_->segment(), dir_.path() + "/proc",
                       dir_.path() + "/sys");
  const auto state = [&] {
    Snapshot snapshot = *pool_->TakeSnapshot(false);
    watch.Look(&snapshot);
    return Find(snapshot, child)->state;
  };
  EXPECT_EQ(state(), ProcessState::kRunning);

  std::ofstream(group + "/cgroup.events") << "frozen 1\n";

  EXPECT_TRUE(Eventually([&] { return state() == ProcessState::kStopped; }));
}

}  // namespace
}  // namespace memtuned
