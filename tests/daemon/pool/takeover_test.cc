// SPDX-License-Identifier: Apache-2.0
// Daemons that are killed, and the pools they leave to the next one: real
// processes, a real keeper.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>

#include "core/allocator.h"
#include "core/slot_table.h"
#include "daemon/pool/pool_search.h"
#include "daemon/pool/pool_subject.h"
#include "memtuned/pool.h"
#include "tests/daemon/keeper/keeper_test_util.h"
#include "tests/daemon/pool/pool_test_util.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

constexpr uint64_t kPoolBytes = 512u << 20;

// What processes of a test tell each other.
struct Board {
  std::atomic<int> order{0};     // number * 10 + what the client is to do
  std::atomic<int> done{0};      // the last one it did
  std::atomic<int> mistakes{0};  // allocations or frees that failed
  char etag[64] = {};
};

class TakeoverTest : public testing::Test {
 protected:
  TakeoverTest()
      : board_(new (mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board) {
    config_ = SmallPool(dir_, kPoolBytes);
    // No other test's processes are to be found by name.
    config_.name = "takeover-" + std::to_string(getpid());
  }
  ~TakeoverTest() override { munmap(board_, sizeof(Board)); }

  FdStoreOptions Options() const {
    return {dir_.path() + "/keeper.sock", KEEPER_PROGRAM};
  }

  // A daemon with the pool, as it is after `then`.
  std::unique_ptr<Victim> Daemon(std::function<void(PoolSubject&)> then =
                                     [](PoolSubject&) {}) {
    auto daemon = std::make_unique<Victim>([&] {
      auto* store = keeper_ ? new FdStore(Options()) : new FdStore();
      auto pool = PoolSubject::Create(config_, TwoNodes(), store);
      if (!pool.ok()) _exit(1);
      then(**pool);
      static_cast<void>(pool->release());
    });
    EXPECT_TRUE(daemon->ready());
    return daemon;
  }

  enum Order { kWork = 1, kDetach, kExec };
  // A process that holds 1,000 pages and follows orders.
  std::unique_ptr<Victim> Client() {
    auto client = std::make_unique<Victim>([this] {
      memtuned_pool* pool = nullptr;
      if (memtuned_attach(config_.socket_path.c_str(), nullptr, &pool,
                          nullptr) != MEMTUNED_OK) {
        _exit(1);
      }
      for (int i = 0; i < 1000; ++i) {
        if (memtuned_allocate(pool, 0) == nullptr) ++board_->mistakes;
      }
      const int given = board_->order.load();
      std::thread([this, pool, given] { FollowOrders(pool, given); }).detach();
    });
    EXPECT_TRUE(client->ready());
    return client;
  }
  void FollowOrders(memtuned_pool* pool, int done) {
    for (;; usleep(1000)) {
      const int order = board_->order.load();
      if (order == done) continue;
      if (order % 10 == kWork) Work(pool);
      if (order % 10 == kDetach) memtuned_detach(pool);
      if (order % 10 == kExec) {
        board_->done.store(order);
        execl("/bin/sleep", "sleep", "60", static_cast<char*>(nullptr));
      }
      board_->done.store(done = order);
    }
  }
  void Work(memtuned_pool* pool) {
    for (int i = 0; i < 20000; ++i) {
      const auto order = static_cast<unsigned>(i % 5);
      void* block = memtuned_allocate(pool, order);
      if (block == nullptr ||
          memtuned_free(pool, block, order) != MEMTUNED_OK) {
        ++board_->mistakes;
      }
    }
  }
  // Returns: whether a client did it.
  bool Tell(Order kind) {
    const int order = (board_->order.load() / 10 + 1) * 10 + kind;
    board_->order.store(order);
    return Eventually([&] { return board_->done.load() == order; });
  }

  // The next daemon: this process. Twice in a test would be one too many.
  PoolSubject& TakeOver() {
    store_ = keeper_ ? std::make_unique<FdStore>(Options())
                     : std::make_unique<FdStore>();
    auto pool = PoolSubject::Create(config_, TwoNodes(), store_.get());
    EXPECT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
    EXPECT_TRUE(Eventually([&] { return pool_->segment().Initialised(); }));
    return *pool_;
  }
  Snapshot Now() { return *pool_->TakeSnapshot(true); }
  bool AllBack() {
    const Snapshot snapshot = Now();
    uint64_t free_pages = 0, managed = 0;
    for (const ZoneSnapshot& zone : snapshot.zones) {
      free_pages += zone.free_pages + zone.pageset_pages_sum + zone.depot_pages;
      managed += zone.managed_pages;
    }
    return snapshot.processes.empty() && free_pages == managed;
  }
  TempDir dir_;
  PoolConfig config_;
  Board* const board_;
  bool keeper_ = true;
  std::unique_ptr<FdStore> store_;
  std::unique_ptr<PoolSubject> pool_;
};

TEST_F(TakeoverTest, APoolGoesOnAsItWas) {
  auto daemon = Daemon([this](PoolSubject& pool) {
    Eventually([&] { return pool.segment().Initialised(); });
    if (!pool.Apply({{"pageset.batch_factor", 2.0}}, ChangeContext{}).ok()) {
      _exit(2);
    }
    std::strncpy(board_->etag, pool.Version().etag.c_str(), 63);
  });
  auto client = Client();
  daemon->Kill();
  config_.tunables = {{"pageset.batch_factor", 4.0}};

  const bool worked = Tell(kWork);
  PoolSubject& pool = TakeOver();
  const Snapshot now = Now();
  const bool works = Tell(kWork);

  EXPECT_TRUE(worked && works);
  EXPECT_EQ(board_->mistakes.load(), 0);
  EXPECT_EQ(pool.Version().etag, board_->etag);
  EXPECT_EQ(pool.Version().generation, 1);
  EXPECT_EQ(pool.segment().RealTunable(TunableId::kPagesetBatchFactor), 2.0)
      << "not the configured one";
  ASSERT_EQ(now.processes.size(), 1u);
  EXPECT_EQ(now.processes[0].pid, client->pid());
  EXPECT_EQ(now.processes[0].allocated_pages, 1000u);
  client->Kill();
  EXPECT_TRUE(Eventually([&] { return AllBack(); }));
}

TEST_F(TakeoverTest, NewProcessesAttachToTheOldPool) {
  auto daemon = Daemon();
  auto first = Client();
  daemon->Kill();
  TakeOver();

  auto second = Client();

  EXPECT_EQ(Now().processes.size(), 2u);
}

TEST_F(TakeoverTest, WhoDiedMeanwhileIsReaped) {
  auto daemon = Daemon();
  auto stays = Client();
  auto dies = Client();
  daemon->Kill();
  dies->Kill();

  TakeOver();

  EXPECT_TRUE(Eventually([&] { return Now().processes.size() == 1; }));
  EXPECT_EQ(Now().processes[0].pid, stays->pid());
  stays->Kill();
  EXPECT_TRUE(Eventually([&] { return AllBack(); }));
  EXPECT_EQ(ZoneChecker(pool_->segment()).Check(), "");
}

TEST_F(TakeoverTest, WhoDetachedOrCalledExecMeanwhileIsReaped) {
  for (Order order : {kDetach, kExec}) {
    auto daemon = Daemon();
    auto client = Client();
    daemon->Kill();
    ASSERT_TRUE(Tell(order));

    TakeOver();

    EXPECT_TRUE(Eventually([&] { return AllBack(); }));
    EXPECT_TRUE(Runs(client->pid())) << "its process goes on";
    pool_.reset();
    store_.reset();
  }
}

TEST_F(TakeoverTest, AnotherProcessWithTheSamePidIsNotTakenForTheDeadOne) {
  keeper_ = true;
  auto stranger = std::make_unique<Victim>([] {});
  auto daemon = Daemon([&](PoolSubject& pool) {
    ProcessIdentity dead;
    dead.pid = static_cast<uint32_t>(stranger->pid());
    dead.start_time_ticks = 1;  // with the machine
    if (!TakeProcessSlot(pool.segment(), dead).ok()) _exit(2);
  });
  daemon->Kill();

  TakeOver();

  EXPECT_TRUE(Eventually([&] { return Now().processes.empty(); }));
}

TEST_F(TakeoverTest, SlotsThatWereBeingFilledOrReapedAreFinished) {
  auto daemon = Daemon([](PoolSubject& pool) {
    Segment& segment = pool.segment();
    const auto one = TakeProcessSlot(segment, {});
    const auto two = TakeProcessSlot(segment, {});
    if (!one.ok() || !two.ok()) _exit(2);
    Store(FindProcessSlot(segment, *one)->state,
          static_cast<uint32_t>(SlotState::kAttaching));
    Store(FindProcessSlot(segment, *two)->state,
          static_cast<uint32_t>(SlotState::kReaping));
  });
  daemon->Kill();

  TakeOver();

  EXPECT_TRUE(Eventually([&] {
    for (uint32_t i = 0; i < 2; ++i) {
      if (Load(pool_->segment().mapping().processes[i].state) != 0)
        return false;
    }
    return true;
  }));
}

TEST_F(TakeoverTest, ASectionThatWasBeingInitialisedIsFinished) {
  config_.tunables = {{"init.sections_per_second", int64_t{1}}};
  auto daemon = Daemon([](PoolSubject& pool) {
    const Mapping& m = pool.segment().mapping();
    Store(m.sections[m.nr_sections - 1].state,
          static_cast<uint32_t>(SectionState::kPopulating));
  });
  daemon->Kill();

  PoolSubject& pool = TakeOver();  // waits until it is initialised

  EXPECT_EQ(Now().initialised_bytes, kPoolBytes);
  EXPECT_GT(
      LoadRelaxed(pool.segment().header().recalculations[static_cast<size_t>(
          RecalculateTrigger::kInitialised)]),
      0u);
}

TEST_F(TakeoverTest, ThreadSlotsOfTheDeadDaemonAreFree) {
  auto daemon = Daemon();
  daemon->Kill();
  PoolSubject& pool = TakeOver();
  usleep(50000);  // its workers are done

  int used = 0;
  for (uint32_t i = 0; i < pool.segment().mapping().nr_threads; ++i) {
    used += Load(pool.segment().mapping().threads[i].owner) != 0 ? 1 : 0;
  }

  EXPECT_EQ(used, 3) << "this daemon's reaper, idle watch, and its changes";
}

// An upgrade, seen from the new version.
TEST_F(TakeoverTest, APoolOfAnotherLayoutStaysWithItsProcesses) {
  std::unique_ptr<Victim> client;
  auto daemon = Daemon();
  client = Client();
  {
    // As the keeper and the client have it.
    FdStore look(Options());
    auto kept = look.Take(config_.name);
    ASSERT_TRUE(kept.has_value());
    const uint32_t other = kLayoutVersion + 1;
    ASSERT_EQ(pwrite(kept->files[0].get(), &other, sizeof(other),
                     offsetof(SegmentHeader, layout_version)),
              static_cast<ssize_t>(sizeof(other)));
  }
  daemon->Kill();

  TakeOver();
  const bool worked = Tell(kWork);
  auto second = Client();

  EXPECT_TRUE(worked);
  EXPECT_EQ(board_->mistakes.load(), 0) << "the old process works on";
  ASSERT_EQ(Now().processes.size(), 1u);
  EXPECT_EQ(Now().processes[0].pid, second->pid());
  EXPECT_EQ(Now().generation, 0) << "a new pool";
  pool_.reset();
  store_.reset();
  client->Kill();
  second->Kill();
  EXPECT_TRUE(Eventually([&] {
    return access((dir_.path() + "/keeper.sock").c_str(), F_OK) != 0;
  })) << "the keeper ends with the last process of both";
}

TEST_F(TakeoverTest, ABrokenPoolIsNotServed) {
  const std::vector<std::function<void(Segment&)>> breaks = {
      [](Segment& s) { s.header().magic = 0; },
      [](Segment& s) { s.header().nr_pages = 0; },
      [](Segment& s) { s.header().total_bytes += 4096; },
      [](Segment& s) { s.mapping().zones[0].first_section = 1000; },
      [](Segment& s) { s.header().name[0] = 'x'; },
      [](Segment& s) {
        Store(s.mapping().memmap[0].word, uint64_t{0xffffffffffffffff});
      }};
  for (const auto& one : breaks) {
    auto daemon = Daemon([&](PoolSubject& pool) {
      Eventually([&] { return pool.segment().Initialised(); });
      // A carved section, so that there is a memmap.
      const auto owner = TakeProcessSlot(pool.segment(), {});
      Allocator(pool.segment(), *owner).Allocate(0);
      ReleaseProcessSlot(pool.segment(), *owner);
      if (!pool.Apply({{"pageset.batch_factor", 2.0}}, {}).ok()) _exit(2);
      one(pool.segment());
    });
    daemon->Kill();

    PoolSubject& pool = TakeOver();

    EXPECT_EQ(pool.Version().generation, 0) << "a new pool";
    EXPECT_TRUE(AllBack());
    pool_.reset();
    store_.reset();
  }
}

TEST_F(TakeoverTest, AnotherSizeWaitsUntilNobodyIsAttached) {
  auto first = Daemon();
  auto client = Client();
  first->Kill();
  config_.bytes = 2 * kPoolBytes;
  auto second = Daemon();
  const bool same = Tell(kWork);
  second->Kill();
  client->Kill();

  TakeOver();

  EXPECT_TRUE(same);
  EXPECT_EQ(board_->mistakes.load(), 0);
  EXPECT_EQ(Now().size_bytes, 2 * kPoolBytes);
}

TEST_F(TakeoverTest, ASizeThatDiffersIsKeptForThoseAttached) {
  auto daemon = Daemon();
  auto client = Client();
  daemon->Kill();
  config_.bytes = 2 * kPoolBytes;

  TakeOver();

  EXPECT_EQ(Now().size_bytes, kPoolBytes);
  EXPECT_EQ(Now().processes.size(), 1u);
}

TEST_F(TakeoverTest, StoppingWithoutProcessesEndsThePool) {
  TakeOver();
  ASSERT_TRUE(pool_->Apply({{"pageset.batch_factor", 2.0}}, {}).ok());

  pool_.reset();
  store_.reset();
  const bool keeper_left = access(Options().keeper_path.c_str(), F_OK) == 0;

  EXPECT_FALSE(keeper_left);
  EXPECT_EQ(TakeOver().Version().generation, 0);
}

TEST_F(TakeoverTest, StoppingWithProcessesHandsThePoolOn) {
  TakeOver();
  auto client = Client();
  ASSERT_TRUE(pool_->Apply({{"pageset.batch_factor", 2.0}}, {}).ok());
  pool_.reset();
  store_.reset();

  EXPECT_EQ(TakeOver().Version().generation, 1);
  EXPECT_EQ(Now().processes.size(), 1u);
  pool_.reset();
  store_.reset();
  client->Kill();
  EXPECT_TRUE(Eventually([&] {
    return access(Options().keeper_path.c_str(), F_OK) != 0;
  })) << "the last one to leave ends it";
}

// Nobody kept it: neither keeper nor service manager.
TEST_F(TakeoverTest, APoolIsFoundInTheProcessesThatHaveIt) {
  keeper_ = false;
  auto daemon = Daemon([](PoolSubject& pool) {
    if (!pool.Apply({{"pageset.batch_factor", 2.0}}, {}).ok()) _exit(2);
  });
  auto client = Client();
  daemon->Kill();

  TakeOver();

  EXPECT_EQ(Now().generation, 1);
  ASSERT_EQ(Now().processes.size(), 1u);
  EXPECT_TRUE(Tell(kWork));
  EXPECT_EQ(board_->mistakes.load(), 0);
  client->Kill();
  EXPECT_TRUE(Eventually([&] { return AllBack(); }));
}

// It has the pool's files open, and is none of the pool's processes.
TEST_F(TakeoverTest, AnObserverIsNotInTheWayOfThat) {
  keeper_ = false;
  auto daemon = Daemon();
  auto client = Client();
  Victim observer([this] {
    static const auto pool = Pool::AttachToRead(config_.socket_path);
    if (!pool) _exit(1);
  });
  ASSERT_TRUE(observer.ready());
  daemon->Kill();

  TakeOver();

  EXPECT_EQ(Now().processes.size(), 1u);
  EXPECT_TRUE(Tell(kWork));
  EXPECT_EQ(board_->mistakes.load(), 0);
}

TEST_F(TakeoverTest, APoolThatAnotherDaemonServesIsNotTakenFromItsProcesses) {
  keeper_ = false;
  auto other = Daemon();
  auto client = Client();
  config_.socket_path = dir_.path() + "/second.sock";

  TakeOver();

  EXPECT_TRUE(Now().processes.empty());
  EXPECT_TRUE(Tell(kWork));
  EXPECT_EQ(board_->mistakes.load(), 0);
}

TEST_F(TakeoverTest, APoolThatAKeeperHasForAnotherFolderIsNotTakenEither) {
  auto other = Daemon();
  auto client = Client();
  other->Kill();
  keeper_ = false;  // this daemon does not know of the keeper
  ASSERT_TRUE(Eventually([&] {
    return FindPoolsInProcesses(config_.name).empty();
  })) << "the keeper is up, and claims it";

  TakeOver();

  EXPECT_TRUE(Now().processes.empty());
  client->Kill();
  pool_.reset();
  FdStore(Options()).LeaveRest("end of test");
}

TEST_F(TakeoverTest, AttachingDoesNotWaitForALargeReap) {
  config_.bytes = 4ull << 30;
  TakeOver();
  Victim large([this] {
    memtuned_pool* pool = nullptr;
    if (memtuned_attach(config_.socket_path.c_str(), nullptr, &pool, nullptr) !=
        MEMTUNED_OK) {
      _exit(1);
    }
    for (int i = 0; i < 900000; ++i) memtuned_allocate(pool, 0);
  });
  ASSERT_TRUE(large.ready());
  const Shared32& state = pool_->segment().mapping().processes[0].state;
  large.Kill();
  ASSERT_TRUE(Eventually([&] {
    return Load(state) != static_cast<uint32_t>(SlotState::kAttached);
  }));

  auto client = Client();
  const uint32_t then = Load(state);

  EXPECT_EQ(then, static_cast<uint32_t>(SlotState::kReaping));
  EXPECT_TRUE(Eventually([&] { return Now().processes.size() == 1; }));
}

}  // namespace
}  // namespace memtuned
