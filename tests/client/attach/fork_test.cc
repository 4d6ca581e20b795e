// SPDX-License-Identifier: Apache-2.0
// fork(), threads that end, and blocks that pass between processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "core/slot_table.h"
#include "memtuned/pool.h"
#include "tests/client/attach/child_process.h"
#include "tests/support/attach_test_server.h"

namespace memtuned::test {
namespace {

TEST(ForkTest, AChildOwnsNothingAndHarmsNothing) {
  AttachTestServer server;
  auto pool = Pool::Attach(server.path());
  ASSERT_TRUE(pool);
  auto* block = static_cast<char*>(pool->Allocate(0));
  block[0] = 'p';
  const uint64_t offset = pool->ToOffset(block);

  const int code = RunInChild([&] {
    CHILD_CHECK(!pool->attached());
    CHILD_CHECK(block[0] == 'p');
    for (int order = 0; order <= 10; ++order) {
      CHILD_CHECK(pool->Allocate(order) == nullptr);
    }
    std::vector<void*> more(10);
    CHILD_CHECK(pool->AllocateBulk(0, more) == 0);
    CHILD_CHECK(pool->Free(block, 0) == MEMTUNED_NOT_ATTACHED);
    CHILD_CHECK(pool->Offer(offset, 0) == MEMTUNED_NOT_ATTACHED);
    CHILD_CHECK(pool->Adopt(offset, 0) == MEMTUNED_NOT_ATTACHED);
    CHILD_CHECK(pool->SetLabel(block, 0, 1) == MEMTUNED_NOT_ATTACHED);
    CHILD_CHECK(pool->SetMemoryPolicy(Pool::MemoryPolicy::kLocal).status() ==
                MEMTUNED_NOT_ATTACHED);
    Pool gone = *std::move(pool);
    return 0;
  });

  EXPECT_EQ(code, 0);
  EXPECT_EQ(server.Refused(FreeResult::kNotAttached), 4u);
  EXPECT_EQ(server.Failures(FailureReason::kNotAttached), 12u);
  EXPECT_EQ(server.AttachedProcesses(), 1);
  const ProcessSlot* slot =
      FindProcessSlot(server.segment(), pool->process_id());
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(Load(slot->state), static_cast<uint32_t>(SlotState::kAttached));
  EXPECT_EQ(server.UsedThreadSlots(), 1);
  EXPECT_EQ(server.AllocatedPages(), 1u);
  EXPECT_EQ(pool->Free(block, 0), MEMTUNED_OK);
}

TEST(ForkTest, AChildThatJustEndsReleasesNoSlot) {
  int to_child[2], from_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(from_child), 0);
  // A process of one thread, made before the server's thread was.
  ChildProcess client([&] {
    std::array<char, 200> path = {};
    CHILD_CHECK(read(to_child[0], path.data(), path.size() - 1) > 0);
    auto pool = Pool::Attach(path.data());
    CHILD_CHECK(pool.ok());
    void* block = pool->Allocate(0);
    const pid_t pid = fork();
    if (pid == 0) {
      // A new thread of the child has no context of the parent's either.
      std::thread([&] {
        if (pool->Allocate(0) != nullptr) _exit(98);
      }).join();
      // Not _exit: thread-local and static destructors run.
      std::exit(0);
    }
    int status = 1;
    CHILD_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHILD_CHECK(write(from_child[1], "x", 1) == 1);
    CHILD_CHECK(read(to_child[0], path.data(), 1) == 1);
    CHILD_CHECK(pool->Free(block, 0) == MEMTUNED_OK);
    return 0;
  });
  AttachTestServer server;
  const std::string path = server.path();
  ASSERT_EQ(write(to_child[1], path.data(), path.size()),
            static_cast<ssize_t>(path.size()));

  char byte;
  ASSERT_EQ(read(from_child[0], &byte, 1), 1);

  EXPECT_EQ(server.UsedThreadSlots(), 1);
  EXPECT_EQ(server.AttachedProcesses(), 1);
  EXPECT_EQ(server.AllocatedPages(), 1u);
  ASSERT_EQ(write(to_child[1], "x", 1), 1);
  EXPECT_EQ(client.Wait(), 0);
  for (int fd : {to_child[0], to_child[1], from_child[0], from_child[1]}) {
    close(fd);
  }
}

TEST(ForkTest, AChildAttachesAnew) {
  AttachTestServer server;
  auto pool = Pool::Attach(server.path());
  ASSERT_TRUE(pool);
  void* block = pool->Allocate(0);

  const int code = RunInChild([&] {
    auto own = Pool::Attach(server.path());
    CHILD_CHECK(own.ok());
    CHILD_CHECK(own->process_id() != pool->process_id());
    void* mine = own->Allocate(2);
    CHILD_CHECK(mine != nullptr);
    CHILD_CHECK(own->Free(own->FromOffset(pool->ToOffset(block)), 0) ==
                MEMTUNED_FOREIGN);
    CHILD_CHECK(own->Free(mine, 2) == MEMTUNED_OK);
    CHILD_CHECK(pool->Allocate(0) == nullptr);
    return 0;
  });

  EXPECT_EQ(code, 0);
  EXPECT_EQ(pool->Free(block, 0), MEMTUNED_OK);
}

TEST(ForkTest, TheDaemonHearsOfTheParentsEndThoughAChildLives) {
  AttachTestServer server;
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  ChildProcess parent([&] {
    auto pool = Pool::Attach(server.path());
    CHILD_CHECK(pool.ok());
    CHILD_CHECK(pool->Allocate(0) != nullptr);
    if (fork() == 0) {
      close(channel[1]);
      char byte;
      _exit(static_cast<int>(read(channel[0], &byte, 1)));
    }
    return 0;
  });
  ASSERT_EQ(parent.Wait(), 0);

  for (int i = 0; server.AttachedProcesses() != 0 && i < 2000; ++i) {
    usleep(1000);
  }

  EXPECT_EQ(server.AttachedProcesses(), 0);
  close(channel[0]);
  close(channel[1]);
}

TEST(ForkTest, ForkingAmidAllocationsOfOtherThreads) {
  AttachTestServer server;
  auto pool = Pool::Attach(server.path());
  ASSERT_TRUE(pool);
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        // New threads come and go as well: their slots are being taken.
        std::thread([&] {
          for (int i = 0; i < 50; ++i) {
            void* block = pool->Allocate(i % 4);
            EXPECT_EQ(pool->Free(block, i % 4), MEMTUNED_OK);
          }
        }).join();
      }
    });
  }

  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(RunInChild([&] {
                alarm(20);  // a lock left behind would hang it
                CHILD_CHECK(pool->Allocate(0) == nullptr);
                auto own = Pool::Attach(server.path());
                CHILD_CHECK(own.ok());
                void* block = own->Allocate(0);
                CHILD_CHECK(block != nullptr);
                CHILD_CHECK(own->Free(block, 0) == MEMTUNED_OK);
                return 0;
              }),
              0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(server.AllocatedPages(), 0u);
}

TEST(ThreadExitTest, ReleasesTheSlotAndKeepsTheCount) {
  AttachTestServer server;
  auto pool = Pool::Attach(server.path());
  ASSERT_TRUE(pool);
  std::vector<void*> blocks;
  for (int t = 0; t < 3000; ++t) {  // more than there are slots
    std::thread([&] {
      void* block = pool->Allocate(0);
      if (t % 300 == 0) {
        blocks.push_back(block);
      } else {
        EXPECT_EQ(pool->Free(block, 0), MEMTUNED_OK);
      }
    }).join();
  }

  EXPECT_EQ(server.UsedThreadSlots(), 0);
  EXPECT_EQ(HeldPages(server.segment(), pool->process_id()), 10u);
  EXPECT_EQ(pool->FreeBulk(0, blocks), 10u);
  EXPECT_EQ(HeldPages(server.segment(), pool->process_id()), 0u);
}

TEST(ThreadExitTest, AThreadThatOutlivesThePoolTouchesNothing) {
  AttachTestServer server;
  std::atomic<int> step = 0;
  auto pool = Pool::Attach(server.path());
  ASSERT_TRUE(pool);
  std::thread thread([&] {
    void* block = pool->Allocate(0);
    EXPECT_EQ(pool->Free(block, 0), MEMTUNED_OK);
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();

  { Pool gone = *std::move(pool); }
  auto next = Pool::Attach(server.path());
  ASSERT_TRUE(next);
  ASSERT_NE(next->Allocate(0), nullptr);
  step = 2;
  thread.join();

  EXPECT_EQ(server.UsedThreadSlots(), 1);
}

struct Mailbox {
  std::atomic<uint64_t> offset{0};
  std::atomic<uint32_t> state{0};  // 0 empty, 1 full
};

TEST(PassingTest, BlocksGoFromOneProcessToAnother) {
  AttachTestServer server;
  auto* box = new (mmap(nullptr, sizeof(Mailbox), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Mailbox;
  constexpr uint64_t kBlocks = 2000;
  constexpr int kOrder = 1;

  ChildProcess producer([&] {
    auto pool = Pool::Attach(server.path());
    CHILD_CHECK(pool.ok());
    for (uint64_t i = 0; i < kBlocks; ++i) {
      auto* block = static_cast<uint64_t*>(pool->Allocate(kOrder));
      CHILD_CHECK(block != nullptr);
      block[0] = i;
      block[1023] = ~i;
      const uint64_t offset = pool->ToOffset(block);
      CHILD_CHECK(pool->Offer(offset, kOrder) == MEMTUNED_OK);
      while (box->state != 0) std::this_thread::yield();
      box->offset = offset;
      box->state = 1;
    }
    while (box->state != 0) std::this_thread::yield();
    return 0;
  });
  ChildProcess consumer([&] {
    auto pool = Pool::Attach(server.path());
    CHILD_CHECK(pool.ok());
    for (uint64_t i = 0; i < kBlocks; ++i) {
      while (box->state != 1) std::this_thread::yield();
      const uint64_t offset = box->offset;
      box->state = 0;
      CHILD_CHECK(pool->Adopt(offset, kOrder) == MEMTUNED_OK);
      CHILD_CHECK(pool->Adopt(offset, kOrder) == MEMTUNED_NOT_ALLOCATED);
      auto* block = static_cast<uint64_t*>(pool->FromOffset(offset));
      CHILD_CHECK(block[0] == i && block[1023] == ~i);
      CHILD_CHECK(pool->Free(block, kOrder) == MEMTUNED_OK);
    }
    return 0;
  });

  EXPECT_EQ(producer.Wait(), 0);
  EXPECT_EQ(consumer.Wait(), 0);
  for (int i = 0; server.AttachedProcesses() != 0 && i < 2000; ++i) {
    usleep(1000);
  }
  EXPECT_EQ(server.AllocatedPages(), 0u);
  munmap(box, sizeof(Mailbox));
}

TEST(PassingTest, OfManyAdoptersExactlyOneWins) {
  AttachTestServer server;
  auto giver = Pool::Attach(server.path());
  ASSERT_TRUE(giver);
  std::vector<Pool> takers;
  for (int t = 0; t < 4; ++t) {
    auto taker = Pool::Attach(server.path());
    ASSERT_TRUE(taker);
    takers.push_back(*std::move(taker));
  }
  for (int round = 0; round < 200; ++round) {
    const uint64_t offset = giver->ToOffset(giver->Allocate(0));
    ASSERT_EQ(giver->Offer(offset, 0), MEMTUNED_OK);
    std::atomic<int> winners = 0;
    std::vector<std::thread> threads;
    for (Pool& taker : takers) {
      threads.emplace_back([&] {
        if (taker.FreeAdopted(offset, 0) == MEMTUNED_OK) ++winners;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(winners, 1);
  }
  EXPECT_EQ(server.AllocatedPages(), 0u);
}

}  // namespace
}  // namespace memtuned::test
