// SPDX-License-Identifier: Apache-2.0
// The other half of the front door: free, offer, adopt, memory policy.
#include "absl/strings/str_cat.h"
#include "core/allocator.h"
#include "core/allocator_fast.h"
#include "core/mm/pageset.h"
#include "core/process_mems.h"
#include "core/recalculate.h"
#include "core/slot_table.h"

namespace memtuned {

FreeResult Allocator::Free(Pfn pfn, int order) noexcept {
  return FreeFast(pfn.value, order);
}

// The policy has something to decide.
__attribute__((noinline)) FreeResult Allocator::CommitFree(
    PagesetShared& pageset, int order) noexcept {
  const uint32_t zone = mapping_.NumberOf(pageset) / mapping_.nr_cpus;
  ThreadContext& thread = threads_.Current();
  thread.patience.RenewBriefly();  // a flush can wait
  Pageset view(mapping_, segment_.zone(zone), pageset, thread);
  view.AssertGuardHeld();
  view.CommitFreeLocked(ListOf(order, PageType::kOrdinary), order);
  pageset.guard.Unlock();
  LookAtPeak(order, thread.slot);
  return FreeResult::kFreed;
}

__attribute__((noinline)) FreeResult Allocator::FreeBySwap(
    PagesetShared& pageset, uint64_t page, int order) noexcept {
  const LastUsed& last = LastUsedHere();
  OwnBlock block;
  Push push = Push::kCold;
  if (Load(slot_.gave_others_blocks) != 0 &&
      ReadOwn(last, page, order, &block)) {
    push = PushOwn</*kStore=*/false>(last, pageset, order, block);
  }
  if (MEMTUNED_UNLIKELY(push == Push::kToCommit)) {
    return CommitFree(pageset, order);
  }
  pageset.guard.Unlock();
  if (MEMTUNED_UNLIKELY(push == Push::kCold)) return FreeCold(page, order);
  if (MEMTUNED_UNLIKELY(push == Push::kRefused)) {
    return Refuse(FreeResult::kNotAllocated);
  }
  env::Charge(env::Cost::kPagesetOperation);
  return FreeResult::kFreed;
}

__attribute__((noinline)) FreeResult Allocator::FreeCold(uint64_t page,
                                                         int order) noexcept {
  const Pfn pfn{page < kNil ? static_cast<uint32_t>(page) : kNil};
  if (!detached()) threads_.Refresh();
  PageWord word(0);
  const FreeResult check = CheckFree(pfn, order, &word);
  if (check != FreeResult::kFreed) return Refuse(check);
  NoteOthersBlock(pfn);
  return FreeSlow(pfn, order, word);
}

// Whether the holder of a guard may be storing the word of a block of this
// process: another thread of it. Others, stopped or dead ones among them, are
// not waited for, nor is the thread itself, when a signal came in between.
bool Allocator::StoresWords(ThreadOwner holder) noexcept {
  const uint32_t slot = ThreadSlotOf(holder);
  return holder != 0 && slot < mapping_.nr_threads &&
         LoadRelaxed(mapping_.threads[slot].process) == owner_ &&
         holder != threads_.Current().owner;
}

// Before a thread swaps the word of an allocated block that another took.
// After the barrier every thread reads 1, or has read 0 and holds the guard
// under which it did. Once it has let go of that, it stores no word any more
// that somebody else may swap.
void Allocator::NoteOthersBlock(Pfn pfn) noexcept {
  if (Load(slot_.gave_others_blocks) != 0 ||
      LoadRelaxed(mapping_.page(pfn).next) == threads_.Current().owner) {
    return;
  }
  // Sequentially consistent, for guards that are swapped.
  slot_.gave_others_blocks.exchange(1);
  env::SharedStore();
#ifndef MEMTUNED_NO_WAIT_FOR_STORES  // only a test leaves the wait out
  if (mapping_.guard == GuardKind::kBiased) env::BarrierOnAllCpus();
  for (uint32_t i = 0; i < mapping_.nr_zones * mapping_.nr_cpus; ++i) {
    const auto& guard = mapping_.pagesets[i].guard;
    const ThreadOwner holder = guard.HolderNow();
    if (!StoresWords(holder)) continue;
    for (int round = 0; guard.HolderNow() == holder; ++round) {
      env::SpinPause(round);
    }
  }
#endif
}

FreeResult Allocator::CheckFree(Pfn pfn, int order,
                                PageWord* word) const noexcept {
  if (detached()) return FreeResult::kNotAttached;
  if (pfn.value >= mapping_.nr_pages ||
      static_cast<unsigned>(order) > kMaxOrder ||
      (pfn.value & ((1u << order) - 1)) != 0) {
    return FreeResult::kOutOfRange;
  }
  *word = PageWord(LoadRelaxed(mapping_.memmap[pfn.value].word));
  if (word->kind() != PageKind::kAllocated &&
      word->kind() != PageKind::kOffered) {
    return FreeResult::kNotAllocated;
  }
  if (word->ref() != owner_) return FreeResult::kForeign;
  // The owner may give a block it offered back without revoking it first.
  return word->order() == order ? FreeResult::kFreed : FreeResult::kWrongOrder;
}

__attribute__((noinline)) FreeResult Allocator::Refuse(
    FreeResult why) noexcept {
  if (segment_.read_only()) return why;
  AtomicBump(segment_.header().refused_frees[static_cast<size_t>(why)]);
  return why;
}

FreeResult Allocator::FreeSlow(Pfn pfn, int order, PageWord word) noexcept {
  ThreadContext& thread = threads_.Current();
  thread.patience.RenewBriefly();
  const uint32_t zone_number =
      mapping_.ZoneOfSection(pfn.value >> kSectionShift);
  const uint32_t number = env::CurrentCpu();
  const CpuEntry& cpu = mapping_.cpu_table[number > kMaxCpuNumber ? 0 : number];
  PagesetShared* shared = mapping_.PagesetOf(zone_number, LoadRelaxed(cpu.cpu));
  if (shared == nullptr) return Refuse(FreeResult::kOutOfRange);
  Zone& zone = segment_.zone(zone_number);
  Pageset pageset(mapping_, zone, *shared, thread,
                  mapping_.SeatOf(number, thread));
  switch (pageset.GiveBlock(pfn, order, word)) {
    case Pageset::Give::kGiven:
      NoteGiven(order, thread.slot);
      LookAtPeak(order, thread.slot);
      return FreeResult::kFreed;
    case Pageset::Give::kRefused:
      return Refuse(FreeResult::kNotAllocated);
    case Pageset::Give::kMissed:
    case Pageset::Give::kNotCached:
    case Pageset::Give::kNoChunk:
      break;
  }
  if (!zone.Lock(thread)) {
    const FreeResult past = FreePastZone(zone, pfn, order, word);
    if (past != FreeResult::kBusy) return past;
    thread.patience.Extend();
    if (!zone.Lock(thread)) return Refuse(FreeResult::kBusy);
  }
  const bool ours = zone.GiveBlockLocked(pfn, word);
  zone.Unlock(ours ? uint64_t{1} << order : 0);
  if (!ours) return Refuse(FreeResult::kNotAllocated);
  AtomicBump(shared->direct_frees[static_cast<size_t>(order)]);
  NoteGiven(order, thread.slot);
  LookAtPeak(order, thread.slot);
  return FreeResult::kFreed;
}

// The zone's lock is held by somebody who does not let go.
// Returns: kBusy when there is no way past it.
FreeResult Allocator::FreePastZone(Zone& zone, Pfn pfn, int order,
                                   PageWord word) noexcept {
  const int slot = OrderSlot(order);
  if (slot < 0) return FreeResult::kBusy;
  ThreadContext& thread = threads_.Current();
  switch (ChunkPool(mapping_, thread)
              .ParkBlock(zone.shared(), ListOf(slot, word.type()), pfn, word)) {
    case ChunkPool::Park::kParked:
      NoteGiven(order, thread.slot);
      return FreeResult::kFreed;
    case ChunkPool::Park::kRefused:
      return Refuse(FreeResult::kNotAllocated);
    case ChunkPool::Park::kNoRoom:
      break;
  }
  return FreeResult::kBusy;
}

// A word is read after the pushes before it, so that a block that is in there
// twice is refused; a chunk's room bounds the hold.
size_t Allocator::FreeRun(int order, std::span<const Pfn> blocks) noexcept {
  LastUsed* last = threads_.IfCurrent();
  if (last == nullptr || static_cast<unsigned>(order) > kCostlyOrder) return 0;
  PagesetShared& pageset = *last->pageset;
  if (!last->TryLock(pageset)) return 0;
  const bool store = Load(slot_.gave_others_blocks) == 0;
  size_t freed = 0;
  for (Pfn pfn : blocks) {
    OwnBlock block;
    if (!ReadOwn(*last, pfn.value, order, &block)) break;
    if (store && LoadRelaxed(block.page->next) != last->owner) break;
    const Push push = store ? PushOwn<true>(*last, pageset, order, block)
                            : PushOwn<false>(*last, pageset, order, block);
    if (push == Push::kToCommit) {
      CommitFree(pageset, order);
      return freed + 1;
    }
    if (push != Push::kDone) break;
    env::Charge(env::Cost::kPagesetOperation);
    ++freed;
  }
  pageset.guard.Unlock();
  return freed;
}

size_t Allocator::FreeBulk(int order, std::span<const Pfn> blocks) noexcept {
  size_t freed = 0;
  while (!blocks.empty()) {
    const size_t run = FreeRun(order, blocks);
    freed += run;
    blocks = blocks.subspan(run);
    if (blocks.empty()) break;
    freed += Free(blocks.front(), order) == FreeResult::kFreed ? 1 : 0;
    blocks = blocks.subspan(1);
  }
  return freed;
}

FreeResult Allocator::Offer(Pfn pfn, int order, ProcessOwner target) noexcept {
  PageWord word(0);
  const FreeResult check = CheckFree(pfn, order, &word);
  if (check != FreeResult::kFreed) return Refuse(check);
  if (word.kind() != PageKind::kAllocated) {
    return Refuse(FreeResult::kNotAllocated);
  }
  NoteOthersBlock(pfn);
  Page& page = mapping_.page(pfn);
  Store(page.next, target);
  uint64_t expected = word.bits();
  // The next generation: an adopter that read an earlier offer of this block
  // to somebody else cannot win with it.
  const uint64_t offered =
      word.NextGeneration().With(PageKind::kOffered, order, owner_).bits();
  return Exchange(page.word, expected, offered)
             ? FreeResult::kFreed
             : Refuse(FreeResult::kNotAllocated);
}

FreeResult Allocator::Revoke(Pfn pfn, int order) noexcept {
  PageWord word(0);
  const FreeResult check = CheckFree(pfn, order, &word);
  if (check != FreeResult::kFreed) return Refuse(check);
  if (word.kind() != PageKind::kOffered) {
    return Refuse(FreeResult::kNotAllocated);
  }
  uint64_t expected = word.bits();
  const uint64_t mine =
      word.NextGeneration().With(PageKind::kAllocated, order, owner_).bits();
  return Exchange(mapping_.page(pfn).word, expected, mine)
             ? FreeResult::kFreed
             : Refuse(FreeResult::kNotAllocated);
}

FreeResult Allocator::Adopt(Pfn pfn, int order) noexcept {
  return AdoptBlock(pfn, order, /*to_keep=*/true);
}

FreeResult Allocator::AdoptBlock(Pfn pfn, int order, bool to_keep) noexcept {
  if (detached()) return Refuse(FreeResult::kNotAttached);
  if (pfn.value >= mapping_.nr_pages || order < 0 || order > kMaxOrder ||
      (pfn.value & ((1u << order) - 1)) != 0) {
    return Refuse(FreeResult::kOutOfRange);
  }
  Page& page = mapping_.page(pfn);
  // Acquire: what the offerer wrote into the block is visible after this.
  const PageWord word(Load(page.word));
  if (word.kind() != PageKind::kOffered) {
    return Refuse(FreeResult::kNotAllocated);
  }
  if (word.order() != order) return Refuse(FreeResult::kWrongOrder);
  const uint32_t target = Load(page.next);
  if (target != 0 && target != owner_) return Refuse(FreeResult::kForeign);
  ThreadContext& thread = threads_.Current();
  const bool charged = to_keep && limited();
  if (charged && Charge(order, 1, thread) == 0) {
    return Refuse(FreeResult::kProcessLimit);
  }
  mapping_.FlagSection(owner_, pfn);
  uint64_t expected = word.bits();
  const uint64_t mine = word.With(PageKind::kAllocated, order, owner_).bits();
  if (!Exchange(page.word, expected, mine)) {
    if (charged) Uncharge(order, 1, thread.slot);
    return Refuse(FreeResult::kNotAllocated);
  }
  Store(page.next, thread.owner);
  if (!charged) NoteTaken(order, thread.slot);
  // The offerer no longer holds it.
  if (ProcessSlot* from = FindProcessSlot(segment_, word.ref())) {
    AtomicBump(from->retired[static_cast<size_t>(order)].given);
  }
  return FreeResult::kFreed;
}

FreeResult Allocator::FreeAdopted(Pfn pfn, int order) noexcept {
  const FreeResult adopted = AdoptBlock(pfn, order, /*to_keep=*/false);
  return adopted == FreeResult::kFreed ? Free(pfn, order) : adopted;
}

FreeResult Allocator::SetLabel(Pfn pfn, int order, uint8_t label) noexcept {
  PageWord word(0);
  const FreeResult check = CheckFree(pfn, order, &word);
  if (check != FreeResult::kFreed) return Refuse(check);
  Page& page = mapping_.page(pfn);
  Store(page.prev, uint32_t{label});
  uint64_t expected = word.bits();
  return Exchange(page.word, expected, word.WithLabel().bits())
             ? FreeResult::kFreed
             : Refuse(FreeResult::kNotAllocated);
}

absl::Status Allocator::SetMemoryPolicy(MemoryPolicy policy,
                                        const NodeMask& nodes) {
  if (detached()) return absl::FailedPreconditionError("not attached");
  ThreadContext& thread = threads_.Current();
  thread.patience.Renew();
  if (!LockTuning(segment_, thread.owner, thread.patience)) {
    return absl::UnavailableError(
        "memory policy: the tuning lock is held by a process that is stopped");
  }
  absl::Status set = SetPolicyLocked(segment_, slot_, policy, nodes);
  segment_.header().tuning_lock.Unlock();
  return set;
}

}  // namespace memtuned
