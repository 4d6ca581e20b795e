// SPDX-License-Identifier: Apache-2.0
// A tiny pool shared by five processes of one or two threads, some of which
// will be killed at a store. It knows what each process holds, so that at rest
// every page is accounted for: a page that was lost, or has two owners, or a
// chunk, slot or lock that still names the dead is found.
#ifndef MEMTUNED_TESTS_CORE_VIRTUAL_CRASH_POOL_H_
#define MEMTUNED_TESTS_CORE_VIRTUAL_CRASH_POOL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/core/virtual/virtual_pool.h"

namespace memtuned {

// Fibers of a crash: threads on two CPUs, each of a process of its own.
enum CrashFiber : uint32_t {
  kVictim = 0,     // CPU 0
  kNeighbour = 1,  // CPU 1
  kSuccessor = 2,  // CPU 0, after the victim
  kReaper = 3,     // CPU 1
  kHeir = 4,       // CPU 0: reaps when the reaper died
  kSibling = 5,    // CPU 1: another thread of the victim's process
  kWatcher = 6,    // CPU 0: another one of the reaper's, takes locks over
};
inline constexpr uint32_t kCrashFibers = 7;
inline constexpr uint32_t kCrashProcesses = 5;

struct CrashPoolOptions {
  const char* topology = "1 node, 2 cpus";
  std::vector<uint64_t> node_pages = {1024};
  uint32_t first_sections = kNil;
  PagesetLimits limits = SmallLimits(1, 2);
  uint64_t depot_max_pages = 0;
  GuardKind guard = GuardKind::kBiased;
  // Of a block whose adopter dies before it told the offerer: that one goes on
  // counting it (Allocator::Adopt).
  uint64_t pages_not_told = 0;
};

// Thread safety: one thread, its fibers.
class CrashPool {
 public:
  explicit CrashPool(const CrashPoolOptions& options = {});

  Segment& segment() { return pool_.segment(); }
  const Mapping& mapping() const { return pool_.mapping(); }
  Zone& zone(uint32_t number = 0) { return pool_.zone(number); }
  TestSegment& pool() { return pool_; }

  // What runs on the fibers. `Here`: of the running fiber.
  struct Block {
    Pfn pfn;
    int order;
  };
  Allocator& AllocatorHere() { return *allocators_[ProcessHere()]; }
  ThreadContext& ThreadHere() { return threads_[env::CurrentFiber()]; }
  std::vector<Block>& HandsHere() { return memory_.hands[ProcessHere()]; }
  std::vector<Block>& HandsOf(uint32_t process) {
    return memory_.hands[process];
  }
  ProcessOwner OwnerOf(uint32_t process) const {
    return allocators_[process]->owner();
  }
  // The first block held of an order, which is in nobody's hands then.
  Block TakeOut(int order);
  // Allocates; complains when it fails or the block is the dead's.
  void Take(int order, PageType type = PageType::kOrdinary);
  // Frees a block held; complains when refused.
  void Give(int order);
  void GiveAll();
  // Puts a block held on offer to anybody; it is in nobody's hands then.
  void Offer(int order);
  // Adopts, or takes back, what is on offer; into the hands when it did.
  void Adopt();
  void Revoke();
  const std::vector<Block>& OnOffer() const { return memory_.on_offer; }
  void DrainPagesetOf(uint32_t cpu, uint32_t zone = 0);
  void DecayPagesetOf(uint32_t cpu, uint32_t zone = 0);
  void DrainDepot(uint32_t zone = 0);
  void DrainAll();
  // Allocates, frees and drains, so that every lock of the zone is wanted.
  void Work();
  // Something that must not happen did: the trial failed.
  void Complain(std::string what);
  const std::string& complaint() const { return memory_.complaint; }

  // Kills the fiber's process: all its threads, wherever they stand. For
  // MachineOptions::on_store.
  void Die(env::VirtualMachine& machine, uint32_t fiber);
  // Of a process that ended without being killed.
  void MarkDead(uint32_t process);
  bool Dead(uint32_t process) const { return memory_.dead[process]; }
  // As a daemon does that takes the dead one's place: gives back what all that
  // are dead held, and ends what a daemon had under way.
  void ReapTheDead();
  // Takes over the locks of the dead.
  void Recover();

  // What was counted until now, and the lists of the victim's pageset: what an
  // operation did is the difference of two.
  struct Events {
    std::map<std::string, uint64_t> counts;
    std::string lists;
  };
  Events EventsNow();

  // Publishes limits, whatever the tunables say.
  void Publish(const PagesetLimits& limits) { pool_.Publish(limits); }
  // Runs a body alone, as that fiber.
  void As(uint32_t fiber, const std::function<void()>& body);

  // All that changes: put back as often as needed. The first Save() is where
  // later ones start from.
  struct Memory {
    std::array<std::vector<Block>, kCrashProcesses> hands;
    std::vector<Block> on_offer;
    std::array<bool, kCrashProcesses> dead{};
    std::string complaint;
  };
  struct Moment {
    PoolSnapshot::Moment shared;
    Memory memory;
  };
  Moment Save();
  void PutBack(const Moment& moment);

  // While nobody runs and the dead were reaped. "" when all is well: the pool
  // is sound (ZoneChecker), no lock is held, nothing names the dead, and each
  // living process has what it thinks it has and counts it.
  std::string Problem();
  // The same after GiveAll and drains: every page is free again.
  std::string ProblemWhenEmpty();

 private:
  static uint32_t ProcessOf(uint32_t fiber) {
    if (fiber == kSibling) return kVictim;
    return fiber == kWatcher ? uint32_t{kReaper} : fiber;
  }
  static uint32_t ProcessHere() { return ProcessOf(env::CurrentFiber()); }
  std::string ProblemOfLocks();
  std::string ProblemOfSlots();
  std::string ProblemOfHands(const std::map<ProcessOwner, uint64_t>& named);

  TestSegment pool_;
  const uint64_t pages_not_told_;
  std::array<std::unique_ptr<Allocator>, kCrashProcesses> allocators_;
  std::array<ThreadContext, kCrashFibers> threads_;
  Memory memory_;
  std::optional<PoolSnapshot> snapshot_;
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_CORE_VIRTUAL_CRASH_POOL_H_
