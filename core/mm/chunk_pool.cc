// SPDX-License-Identifier: Apache-2.0
#include "core/mm/chunk_pool.h"

#include "core/mm/owners.h"

namespace memtuned {
namespace {

// A stack is held for some ten instructions; its holder may be preempted.
constexpr uint64_t kStackPatienceNs = 200'000;

}  // namespace

void ChunkPool::SetPending(uint64_t value) {
  // Only a test, or a measurement of what it costs, leaves it out.
#if !defined(MEMTUNED_MUTANT_NO_PENDING) && !defined(MEMTUNED_NO_RECOVERY)
  if (thread_->slot != nullptr) Store(thread_->slot->pending, value);
#else
  (void)value;
#endif
}

bool ChunkPool::Lock(ChunkStack& stack, uint64_t place) {
  Patience patience{env::kPatienceNs == Patience::kEndless ? Patience::kEndless
                                                           : kStackPatienceNs};
  LockWait wait;
  DeathProbe probe = ProbeOf(*mapping_);
  probe.runs = nullptr;
  if (!stack.lock.LockWithin(thread_->owner, probe, patience, &wait)) {
    return false;
  }
  if (MEMTUNED_UNLIKELY(wait.taken_over)) {
    CountTakeover(*mapping_, LockKind::kDepot);
    EndChangesLocked(stack, place);
  }
  return true;
}

void ChunkPool::RecoverStack(ChunkStack& stack, uint64_t place) {
  const ThreadOwner holder = stack.lock.HolderNow();
  if (holder == 0 || !OwnerDied(*mapping_, holder)) return;
  if (Lock(stack, place)) stack.lock.Unlock();
}

// The head's store decides: a chunk that somebody was pushing or popping is in
// the stack if it is on top, and in that thread's hands if not.
void ChunkPool::EndChangesLocked(ChunkStack& stack, uint64_t place) {
  ForEachPending(*mapping_, [&](ThreadSlot& slot, uint32_t number) {
    Shared64& word = mapping_->chunks[number].word;
    const uint64_t now = LoadRelaxed(word);
    const uint64_t in_hand = ChunkWord(ChunkPlace::kThread, ListOfWord(place),
                                       LoadRelaxed(slot.owner));
    if (number == ChunkStack::ChunkOf(LoadRelaxed(stack.head))) {
      Store(word, place);
      Store(slot.pending, uint64_t{0});
    } else if (now == place) {
      Store(word, in_hand);
    } else if (PlaceOf(now) == ChunkPlace::kUnused &&
               number >= LoadRelaxed(stack.fresh_begin) &&
               number < LoadRelaxed(stack.fresh)) {
      Store(word, in_hand);
    }
  });
}

void ChunkPool::PushLocked(ChunkStack& stack, uint32_t number, uint64_t place,
                           uint64_t pages) {
  const uint64_t head = LoadRelaxed(stack.head);
  const size_t parity = ChunkStack::ParityOf(head);
  Chunk& chunk = mapping_->chunks[number];
  Store(chunk.word, place);
  Store(chunk.next, ChunkStack::ChunkOf(head));
  Store(stack.pages[parity ^ 1], LoadRelaxed(stack.pages[parity]) + pages);
  Store(stack.head,
        ChunkStack::Next(head, ChunkStack::CountOf(head) + 1, number));
  PutDown();
}

uint32_t ChunkPool::PopLocked(ChunkStack& stack, int list, bool counts_pages) {
  const uint64_t head = LoadRelaxed(stack.head);
  const size_t parity = ChunkStack::ParityOf(head);
  const uint32_t number = ChunkStack::ChunkOf(head);
  if (number == kNoChunk || number >= mapping_->nr_chunks) return kNoChunk;
  PickUp(number);
  const uint64_t pages = counts_pages ? PagesOf(number, list) : 0;
  Store(stack.pages[parity ^ 1], LoadRelaxed(stack.pages[parity]) - pages);
  Store(stack.head,
        ChunkStack::Next(head, ChunkStack::CountOf(head) - 1,
                         LoadRelaxed(mapping_->chunks[number].next)));
  MarkThread(number, list);
  return number;
}

uint32_t ChunkPool::FreshLocked(ChunkStack& stack, int list) {
  const uint32_t number = LoadRelaxed(stack.fresh);
  if (number >= LoadRelaxed(stack.fresh_end) || number >= mapping_->nr_chunks) {
    return kNoChunk;
  }
  PickUp(number);
  Store(stack.fresh, number + 1);
  MarkThread(number, list);
  return number;
}

uint32_t ChunkPool::TakeEmpty(int list) {
  for (uint32_t i = 0; i < kNumEmptyStacks; ++i) {
    ChunkStack& stack =
        mapping_->empty_chunks[(thread_->owner + i) % kNumEmptyStacks];
    // Glances: most stacks but one's own are asked in vain.
    if (ChunkStack::ChunkOf(LoadRelaxed(stack.head)) == kNoChunk &&
        LoadRelaxed(stack.fresh) >= LoadRelaxed(stack.fresh_end)) {
      continue;
    }
    if (!Lock(stack, EmptyPlace())) continue;
    uint32_t chunk = PopLocked(stack, list, /*counts_pages=*/false);
    if (chunk == kNoChunk) chunk = FreshLocked(stack, list);
    stack.lock.Unlock();
    if (chunk == kNoChunk) continue;
    Store(mapping_->chunks[chunk].count, 0u);
    return chunk;
  }
  return kNoChunk;
}

void ChunkPool::GiveEmpty(uint32_t chunk) {
  // Stopped processes would have to hold all of them, each in the midst of ten
  // instructions: then, after 20 ms, this chunk is of no use any more.
  constexpr uint32_t kMostTries = 100;
  for (uint32_t i = 0; i < kMostTries; ++i) {
    ChunkStack& stack =
        mapping_->empty_chunks[(thread_->owner + i) % kNumEmptyStacks];
    if (!Lock(stack, EmptyPlace())) continue;
    PushLocked(stack, chunk, EmptyPlace(), 0);
    stack.lock.Unlock();
    return;
  }
  PutDown();
}

bool ChunkPool::DepotPush(ZoneShared& zone, int list, uint32_t chunk) {
  ChunkStack& stack = zone.depot[static_cast<size_t>(list)];
  const uint64_t place = DepotPlace(NumberOf(zone), list);
  if (ChunkStack::CountOf(LoadRelaxed(stack.head)) >= kMaxStackCount ||
      !Lock(stack, place)) {
    return false;
  }
  const bool room =
      ChunkStack::CountOf(LoadRelaxed(stack.head)) < kMaxStackCount;
  if (room) PushLocked(stack, chunk, place, PagesOf(chunk, list));
  stack.lock.Unlock();
  if (!room) return false;
  AtomicBump(zone.depot_pushes);
  env::Charge(env::Cost::kDepotMove);
  return true;
}

uint32_t ChunkPool::DepotPop(ZoneShared& zone, int list) {
  ChunkStack& stack = zone.depot[static_cast<size_t>(list)];
  // Most refills find an empty depot: look before touching the lock.
  if (ChunkStack::ChunkOf(LoadRelaxed(stack.head)) == kNoChunk ||
      !Lock(stack, DepotPlace(NumberOf(zone), list))) {
    return kNoChunk;
  }
  const uint32_t chunk = PopLocked(stack, list, /*counts_pages=*/true);
  stack.lock.Unlock();
  if (chunk == kNoChunk) return kNoChunk;
  AtomicBump(zone.depot_pops);
  env::Charge(env::Cost::kDepotMove);
  return chunk;
}

ChunkPool::Park ChunkPool::ParkBlock(ZoneShared& zone, int list, Pfn pfn,
                                     PageWord word) {
  if (thread_->slot == nullptr) return Park::kNoRoom;
  const uint32_t chunk = TakeEmpty(list);
  if (chunk == kNoChunk) return Park::kNoRoom;
  // As in a push: the array covers the block before its word says so.
  Store(mapping_->chunks[chunk].items[0], pfn.value);
  Store(mapping_->chunks[chunk].count, 1u);
  Shared64& where = mapping_->page(pfn).word;
  uint64_t expected = word.bits();
  const PageWord parked = word.Given(chunk);
  if (!Exchange(where, expected, parked.bits())) {
    Store(mapping_->chunks[chunk].count, 0u);
    GiveEmpty(chunk);
    return Park::kRefused;
  }
  if (DepotPush(zone, list, chunk)) return Park::kParked;
  // It is this thread's still, and nobody else can have seen it free.
  Store(where, word.bits());
  Store(mapping_->chunks[chunk].count, 0u);
  GiveEmpty(chunk);
  return Park::kNoRoom;
}

}  // namespace memtuned
