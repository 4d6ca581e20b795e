// SPDX-License-Identifier: Apache-2.0
// Long random sequences by threads of several processes at once: allocate,
// free, bulk, offer, adopt, misuse, drain, tunables, sections. Then, at rest:
// every page in exactly one place, counts agree, everything merges again.
//
// Each page has a mark of who holds it, outside the pool: two holders of one
// page are seen the moment the second one gets it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "core/base/thread_state.h"
#include "core/mm/pageset.h"
#include "core/recalculate.h"
#include "core/slot_table.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

constexpr int kChildren = 2;
constexpr int kProcesses = kChildren + 1;
// Threads of each process. One alone may free twice on purpose: nobody else
// could have got the block for the same process in between.
constexpr int kThreads[kProcesses] = {2, 2, 1};
constexpr int kMostThreads = 2;
constexpr size_t kMailboxes = 64;
constexpr int kAnvils = 8;  // blocks that the parent holds throughout

// Memory all processes of the test share.
struct Shared {
  std::atomic<uint64_t> stolen;      // a page with two holders
  std::atomic<uint64_t> unexpected;  // a result that cannot be
  std::atomic<uint64_t> refusals;    // as the callers count them
  std::atomic<uint64_t> operations;
  std::atomic<int> at_rest;  // processes that have done their sequences
  std::atomic<bool> go_on;   // ... and may give everything back
  std::atomic<uint64_t> held[kProcesses];  // pages, by process
  std::atomic<uint64_t> mail[kMailboxes];  // offers: page | order << 32 | 1<<40
  std::atomic<uint32_t> holder[];          // by page, 0: nobody
};

struct Block {
  Pfn pfn;
  int order;
};

class Sequences : public testing::Test {
 protected:
  // Two nodes, the second one ending within a page block; most of the first
  // still to be initialised.
  Sequences()
      : pool_({.topology =
                   TopologyBuilder("2 nodes, 4 cpus").AlternateCpus().Build(),
               .node_pages = {3 * kPagesPerSection, kPagesPerSection + 300},
               .first_sections = 1}) {
    bytes_ = sizeof(Shared) + pool_.mapping().nr_pages * sizeof(uint32_t);
    shared_ = static_cast<Shared*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  ~Sequences() override { munmap(shared_, bytes_); }

  void ExpectSoundAtRest(const std::vector<ProcessOwner>& owners,
                         const Allocator& holder);
  void GiveBackTheRest(Allocator& holder, const std::vector<Block>& anvils);

  TestSegment pool_;
  Shared* shared_ = nullptr;
  size_t bytes_ = 0;
};

// One thread's sequence.
class Player {
 public:
  Player(Segment& segment, Allocator& allocator, Shared& shared, uint32_t mark,
         bool alone, const std::vector<Block>& anvils)
      : segment_(segment),
        allocator_(allocator),
        shared_(shared),
        mark_(mark),
        alone_(alone),
        random_(1000 + mark),
        anvils_(anvils) {}

  void Play(uint64_t operations) {
    for (uint64_t i = 0; i < operations; ++i) Step();
    shared_.operations += operations;
  }
  uint64_t HeldPages() const {
    uint64_t pages = 0;
    for (const Block& block : held_) pages += uint64_t{1} << block.order;
    return pages;
  }
  void FreeAll() {
    while (!held_.empty()) FreeOne();
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }

  void Step() {
    const uint64_t dice = Below(10000);
    if (dice < 4600) {
      if (held_.size() < 3000) AllocateOne();
    } else if (dice < 9150) {
      FreeOne();
    } else if (dice < 9200) {
      FreeMany();
    } else if (dice < 9400) {
      AllocateMany();
    } else if (dice < 9600) {
      OfferOne();
    } else if (dice < 9800) {
      AdoptOne();
    } else if (dice < 9980) {
      Misuse();
    } else {
      Tune(Below(20));
    }
  }

  int Order() {
    const uint64_t dice = Below(100);
    if (dice < 70) return 0;
    if (dice < 95) return static_cast<int>(1 + Below(3));
    return static_cast<int>(4 + Below(7));
  }

  void Mark(const Block& block, uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < (1u << block.order); ++i) {
      uint32_t expected = from;
      if (!shared_.holder[block.pfn.value + i].compare_exchange_strong(expected,
                                                                       to)) {
        ++shared_.stolen;
      }
    }
  }
  void Expect(FreeResult actual, FreeResult expected) {
    if (actual != expected) ++shared_.unexpected;
    if (actual != FreeResult::kFreed) ++shared_.refusals;
  }

  void AllocateOne() {
    Block block;
    block.order = Order();
    block.pfn =
        allocator_.Allocate(block.order, Below(8) == 0 ? PageType::kPurgeable
                                                       : PageType::kOrdinary);
    if (block.pfn.value == kNil) return;
    Mark(block, 0, mark_);
    held_.push_back(block);
  }
  void AllocateMany() {
    if (held_.size() > 2000) return;
    const int order = static_cast<int>(Below(3));
    std::vector<Pfn> blocks(1 + Below(100));
    blocks.resize(allocator_.AllocateBulk(order, blocks));
    for (Pfn pfn : blocks) {
      held_.push_back({pfn, order});
      Mark(held_.back(), 0, mark_);
    }
  }
  Block Pick() {
    std::swap(held_[Below(held_.size())], held_.back());
    const Block block = held_.back();
    held_.pop_back();
    return block;
  }
  void FreeOne() {
    if (held_.empty()) return;
    const Block block = Pick();
    Mark(block, mark_, 0);
    Expect(allocator_.Free(block.pfn, block.order), FreeResult::kFreed);
    if (!alone_ || Below(8) != 0) return;
    if (allocator_.Free(block.pfn, block.order) == FreeResult::kFreed) {
      ++shared_.unexpected;
    }
    ++shared_.refusals;
  }

  void FreeMany() {
    const int order = static_cast<int>(Below(3));
    const size_t most = 1 + Below(100);
    std::vector<Pfn> blocks;
    std::erase_if(held_, [&](const Block& block) {
      if (block.order != order || blocks.size() == most) return false;
      Mark(block, mark_, 0);
      blocks.push_back(block.pfn);
      return true;
    });
    if (allocator_.FreeBulk(order, blocks) != blocks.size()) {
      ++shared_.unexpected;
    }
  }

  // An offer lies in a mailbox; whoever takes it out adopts or revokes it.
  void OfferOne() {
    if (held_.empty()) return;
    std::atomic<uint64_t>& mail = shared_.mail[Below(kMailboxes)];
    if (mail != 0) return;
    const Block block = Pick();
    Mark(block, mark_, 0);
    Expect(allocator_.Offer(block.pfn, block.order), FreeResult::kFreed);
    uint64_t none = 0;
    if (mail.compare_exchange_strong(
            none, block.pfn.value | static_cast<uint64_t>(block.order) << 32 |
                      uint64_t{1} << 40)) {
      return;
    }
    Expect(allocator_.Revoke(block.pfn, block.order), FreeResult::kFreed);
    Mark(block, 0, mark_);
    held_.push_back(block);
  }
  void AdoptOne() {
    const uint64_t letter = shared_.mail[Below(kMailboxes)].exchange(0);
    if (letter == 0) return;
    const Block block{Pfn{static_cast<uint32_t>(letter)},
                      static_cast<int>(letter >> 32 & 15)};
    Expect(allocator_.Adopt(block.pfn, block.order), FreeResult::kFreed);
    Mark(block, 0, mark_);
    held_.push_back(block);
  }

  // Frees that must be refused, whatever else goes on.
  void Misuse() {
    Expect(allocator_.Free(Pfn{segment_.mapping().nr_pages}, 0),
           FreeResult::kOutOfRange);
    if (!held_.empty()) {
      const Block block = held_[Below(held_.size())];
      if (block.order > 0) {
        Expect(allocator_.Free(block.pfn, block.order - 1),
               FreeResult::kWrongOrder);
        Expect(allocator_.Free(Pfn{block.pfn.value + 1}, 0),
               FreeResult::kNotAllocated);
        Expect(allocator_.Free(Pfn{block.pfn.value + 1}, 1),
               FreeResult::kOutOfRange);
      }
    }
    for (const Block& anvil : anvils_) {
      Expect(allocator_.Free(anvil.pfn, anvil.order), FreeResult::kForeign);
      Expect(allocator_.Adopt(anvil.pfn, anvil.order),
             FreeResult::kNotAllocated);
    }
  }

  void Set(TunableId id, const TunableValue& value) {
    Store(segment_.header().tunables[static_cast<size_t>(id)],
          EncodeTunable(GetTunable(id), value));
    Recalculate(segment_, RecalculateTrigger::kTunable, kCreatorOwner);
  }
  void Tune(uint64_t what) {
    const Mapping& m = segment_.mapping();
    ThreadContext thread;
    thread.owner = kCreatorOwner;
    const auto zone = static_cast<uint32_t>(Below(m.nr_zones));
    const auto cpu = static_cast<uint32_t>(Below(m.nr_cpus));
    if (what < 8) {
      Pageset(m, segment_.zone(zone), *m.PagesetOf(zone, cpu), thread).Drain();
    } else if (what < 11) {
      Pageset::DrainDepot(m, segment_.zone(zone), thread);
    } else if (what < 14) {
      Set(TunableId::kPagesetPolicy,
          std::string(PolicyName(static_cast<PagesetPolicy>(Below(5)))));
    } else if (what < 16) {
      Set(TunableId::kPagesetBatchFactor,
          0.25 * static_cast<double>(1 + Below(32)));
    } else if (what < 18) {
      Set(TunableId::kDepotHighFraction, int64_t{Below(2) == 0 ? 0 : 8});
    } else if (what < 19) {
      Recalculate(segment_, RecalculateTrigger::kRequest, kCreatorOwner);
    } else if (!segment_.InitialiseNextSection(zone, kCreatorOwner).ok()) {
      ++shared_.unexpected;
    }
  }

  Segment& segment_;
  Allocator& allocator_;
  Shared& shared_;
  const uint32_t mark_;
  const bool alone_;
  std::mt19937_64 random_;
  const std::vector<Block>& anvils_;
  std::vector<Block> held_;
};

// All sequences of one process; waits at rest for `go_on`, then gives all
// back.
void PlayProcess(Segment& segment, ProcessOwner owner, int number,
                 Shared& shared, uint64_t operations,
                 const std::vector<Block>& anvils,
                 const std::function<void()>& at_rest) {
  Allocator allocator(segment, owner);
  std::vector<std::unique_ptr<Player>> players;
  const int threads = kThreads[number];
  for (int i = 0; i < threads; ++i) {
    const auto mark = static_cast<uint32_t>(number * kMostThreads + i + 1);
    players.push_back(std::make_unique<Player>(segment, allocator, shared, mark,
                                               threads == 1, anvils));
  }
  const auto all = [&](const std::function<void(Player&)>& action) {
    std::vector<std::thread> running;
    for (auto& player : players) {
      running.emplace_back([&action, p = player.get()] { action(*p); });
    }
    for (std::thread& thread : running) thread.join();
  };
  all([&](Player& player) {
    player.Play(operations / static_cast<uint64_t>(threads));
  });
  for (auto& player : players) shared.held[number] += player->HeldPages();
  ++shared.at_rest;
  at_rest();
  all([](Player& player) { player.FreeAll(); });
}

[[noreturn]] void PlayChild(Segment& mapped_by_parent, ProcessOwner owner,
                            int number, Shared& shared, uint64_t operations,
                            const std::vector<Block>& anvils) {
  {
    auto segment = Segment::Attach(dup(mapped_by_parent.metadata_fd()), {});
    if (!segment.ok()) _exit(2);
    ProcessSlot* slot = FindProcessSlot(**segment, owner);
    const auto pid = static_cast<uint32_t>(getpid());
    Store(slot->pid, pid);
    Store(slot->start_time_ticks, StartTimeOf(pid));
    PlayProcess(**segment, owner, number, shared, operations, anvils, [&] {
      while (!shared.go_on) usleep(1000);
    });
  }
  _exit(0);
}

// Blocks in use while every process rests: whose they are, and how many.
void Sequences::ExpectSoundAtRest(const std::vector<ProcessOwner>& owners,
                                  const Allocator& holder) {
  ZoneChecker checker(pool_.segment());
  EXPECT_EQ(checker.Check(), "");
  uint64_t offered = 0;
  for (const std::atomic<uint64_t>& mail : shared_->mail) {
    if (mail != 0) offered += uint64_t{1} << (mail >> 32 & 15);
  }
  EXPECT_EQ(checker.pages().offered, offered);
  uint64_t held = 0;
  for (size_t i = 0; i < owners.size(); ++i) {
    held += shared_->held[i];
    const auto found = checker.pages().of_owner.find(owners[i]);
    const uint64_t pages =
        found == checker.pages().of_owner.end() ? 0 : found->second;
    EXPECT_EQ(HeldPages(pool_.segment(), owners[i]), pages) << i;
  }
  EXPECT_EQ(checker.pages().allocated,
            held + HeldPages(pool_.segment(), holder.owner()));
}

void Sequences::GiveBackTheRest(Allocator& holder,
                                const std::vector<Block>& anvils) {
  // What lies in mailboxes belongs to its offerer: anybody may adopt it.
  for (const std::atomic<uint64_t>& mail : shared_->mail) {
    if (mail == 0) continue;
    EXPECT_EQ(holder.FreeAdopted(Pfn{static_cast<uint32_t>(mail)},
                                 static_cast<int>(mail >> 32 & 15)),
              FreeResult::kFreed);
  }
  for (const Block& anvil : anvils) {
    EXPECT_EQ(holder.Free(anvil.pfn, anvil.order), FreeResult::kFreed);
  }
  pool_.DrainEverything();
  EXPECT_EQ(ZoneChecker(pool_.segment()).Check(), "");
  for (Zone& zone : pool_.segment().zones()) {
    EXPECT_EQ(zone.FreePages(), LoadRelaxed(zone.shared().managed_pages));
  }
}

TEST_F(Sequences, LeaveEveryPageInExactlyOnePlace) {
  const uint64_t all =
      NumberFromEnvironment("MEMTUNED_SEQUENCE_OPERATIONS",
                            static_cast<uint64_t>(10'000'000 * RunScale()));
  const uint64_t each = all / kProcesses;
  auto holder = pool_.MakeAllocator();
  std::vector<Block> anvils;
  for (int i = 0; i < kAnvils; ++i) {
    const int order = i % 4;
    anvils.push_back({holder->Allocate(order), order});
  }
  std::vector<ProcessOwner> owners;
  for (int i = 0; i < kProcesses; ++i) owners.push_back(pool_.TakeProcess());
  std::vector<pid_t> children;
  for (int i = 1; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      PlayChild(pool_.segment(), owners[static_cast<size_t>(i)], i, *shared_,
                each, anvils);
    }
    children.push_back(child);
  }

  PlayProcess(pool_.segment(), owners[0], 0, *shared_, each, anvils, [&] {
    while (shared_->at_rest < kProcesses) usleep(1000);
    ExpectSoundAtRest(owners, *holder);
    shared_->go_on = true;
  });
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }

  EXPECT_EQ(shared_->stolen, 0u);
  EXPECT_EQ(shared_->unexpected, 0u);
  EXPECT_GE(shared_->operations, all - 2 * kProcesses);
  uint64_t refused = 0;
  for (const Shared64& count : pool_.segment().header().refused_frees) {
    refused += LoadRelaxed(count);
  }
  EXPECT_EQ(refused, shared_->refusals);
  EXPECT_GT(refused, 0u);
  std::printf(
      "  %lu operations, %lu refused frees, %lu sections\n",
      static_cast<unsigned long>(shared_->operations.load()),
      static_cast<unsigned long>(refused),
      static_cast<unsigned long>(pool_.segment().SectionsInitialised()));

  GiveBackTheRest(*holder, anvils);
}

}  // namespace
}  // namespace memtuned
