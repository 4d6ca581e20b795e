// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/actor.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/attach/pool_state.h"
#include "tests/torture/wrapped_calls.h"

namespace memtuned::torture {
namespace {

constinit thread_local Actor* tls_actor = nullptr;

std::string DescribeBlock(uint64_t offset, int order) {
  return absl::StrCat("block at offset ", offset, ", order ", order);
}

}  // namespace

Actor::Actor(WorkerProcess& process, uint32_t thread, Slice& slice)
    : process_(process),
      slice_(slice),
      line_(process.line().threads[thread]),
      timer_(process.board, line_, process.id.slot,
             process.options.max_wait_ns()) {
  tls_actor = this;
}

Actor::~Actor() { tls_actor = nullptr; }

Actor* Actor::OfThisThread() { return tls_actor; }

void Actor::LookAtTheClock(uint64_t now_ns) {
  if (now_ns < slice_.end_ns &&
      !g_asked_to_end.load(std::memory_order_relaxed)) {
    return;
  }
  slice_.phase.store(load::Phase::kStopping, std::memory_order_relaxed);
}

void* Actor::Allocate(int order) {
  timer_.Begin();
  void* block = RealAllocate(process_.pool.handle(), order);
  LookAtTheClock(timer_.End("Allocate"));
  if (block == nullptr) {
    Count(line_.failures);
  } else {
    Got(block, order);
  }
  return block;
}

void Actor::Got(void* block, int order) {
  const uint64_t offset = process_.pool.ToOffset(block);
  if (offset % (kPageBytes << order) != 0) {
    process_.Fail(Fault::kStamp, absl::StrCat(DescribeBlock(offset, order),
                                              " is not aligned to its size"));
  }
  const uint32_t entry = process_.held.NextEntry(slice_.whole_stamps);
  const uint32_t before = process_.held.Put(offset, entry);
  if (before != 0) {
    process_.Fail(Fault::kStamp,
                  absl::StrCat(DescribeBlock(offset, order),
                               " was handed out to a process that has it: ",
                               process_.DescribePage(offset)));
  }
  Stamp::Make(process_.owner, offset, order, slice_.whole_stamps, entry)
      .Write(static_cast<char*>(block));
  Count(line_.allocations);
}

void Actor::CheckOwn(void* block, int order, uint32_t entry) const {
  const uint64_t offset = process_.pool.ToOffset(block);
  const std::string problem = Stamp::Make(process_.owner, offset, order,
                                          HeldBlocks::IsWhole(entry), entry)
                                  .Check(static_cast<const char*>(block));
  if (problem.empty()) return;
  process_.Fail(Fault::kStamp,
                absl::StrCat(DescribeBlock(offset, order), ", block ", entry,
                             " of this worker, was written to by another: ",
                             problem, "; ", process_.DescribePage(offset)));
}

uint32_t Actor::TakeHeld(void* block, int order) const {
  const uint64_t offset = process_.pool.ToOffset(block);
  const uint32_t entry = process_.held.Take(offset);
  if (entry == 0) {
    process_.Fail(Fault::kStamp, absl::StrCat(DescribeBlock(offset, order),
                                              " is not this worker's to give"));
  }
  CheckOwn(block, order, entry);
  return entry;
}

void Actor::Refused(const char* call, uint64_t offset, int order,
                    memtuned_status status) const {
  process_.Fail(
      Fault::kRefused,
      absl::StrCat(call, " of this worker's ", DescribeBlock(offset, order),
                   ": ", memtuned_strerror(status), "; ",
                   process_.DescribePage(offset)));
}

void Actor::Free(void* block, int order) {
  TakeHeld(block, order);
  memtuned_status status = MEMTUNED_BUSY;
  while (status == MEMTUNED_BUSY) {  // a stopped process is in the way
    timer_.Begin();
    status = RealFree(process_.pool.handle(), block, order);
    LookAtTheClock(timer_.End("Free"));
  }
  if (status != MEMTUNED_OK) {
    Refused("Free", process_.pool.ToOffset(block), order, status);
  }
  Count(line_.frees);
}

size_t Actor::AllocateBulk(int order, std::span<void*> blocks) {
  timer_.Begin();
  const size_t got = process_.pool.AllocateBulk(order, blocks);
  LookAtTheClock(timer_.End("AllocateBulk"));
  for (void* block : blocks.first(got)) Got(block, order);
  if (got < blocks.size()) Count(line_.failures);
  return got;
}

void Actor::FreeBulk(int order, std::span<void* const> blocks) {
  for (void* block : blocks) TakeHeld(block, order);
  timer_.Begin();
  const size_t freed = process_.pool.FreeBulk(order, blocks);
  LookAtTheClock(timer_.End("FreeBulk"));
  if (freed != blocks.size()) {
    process_.Fail(Fault::kRefused,
                  absl::StrCat("FreeBulk of ", blocks.size(),
                               " blocks of this worker, order ", order,
                               ", took ", freed));
  }
  Count(line_.frees, freed);
}

uint32_t Actor::Offer(void* block, int order) {
  const uint32_t entry = TakeHeld(block, order);
  const uint64_t offset = process_.pool.ToOffset(block);
  timer_.Begin();
  const memtuned_status status = process_.pool.Offer(offset, order);
  LookAtTheClock(timer_.End("Offer"));
  if (status != MEMTUNED_OK) Refused("Offer", offset, order, status);
  return entry;
}

// Offers are open to all, so these are the ways to be too late.
bool Actor::MayMiss(const char* call, uint64_t offset, int order,
                    memtuned_status status) const {
  if (status != MEMTUNED_NOT_ALLOCATED && status != MEMTUNED_WRONG_ORDER &&
      status != MEMTUNED_FOREIGN) {
    Refused(call, offset, order, status);
  }
  Count(line_.missed_offers);
  return false;
}

bool Actor::Revoke(uint64_t offset, int order, uint32_t entry) {
  timer_.Begin();
  const memtuned_status status = process_.pool.Revoke(offset, order);
  LookAtTheClock(timer_.End("Revoke"));
  if (status != MEMTUNED_OK) return MayMiss("Revoke", offset, order, status);
  CheckOwn(process_.pool.FromOffset(offset), order, entry);
  process_.held.Put(offset, entry);
  return true;
}

void* Actor::Adopt(uint64_t offset, int order) {
  timer_.Begin();
  const memtuned_status status = process_.pool.Adopt(offset, order);
  LookAtTheClock(timer_.End("Adopt"));
  if (status != MEMTUNED_OK) {
    MayMiss("Adopt", offset, order, status);
    return nullptr;
  }
  auto* block = static_cast<char*>(process_.pool.FromOffset(offset));
  const Stamp stamp = Stamp::Read(block);
  const std::string problem =
      !stamp.IsStamp() || stamp.offset() != offset || stamp.order() != order
          ? absl::StrCat("its stamp is ", stamp.Describe())
          : stamp.Check(block);
  if (!problem.empty()) {
    process_.Fail(Fault::kStamp,
                  absl::StrCat("adopted ", DescribeBlock(offset, order), ": ",
                               problem, "; ", process_.DescribePage(offset)));
  }
  Count(line_.adoptions);
  Got(block, order);
  return block;
}

bool Actor::FreeAdopted(uint64_t offset, int order) {
  timer_.Begin();
  memtuned_status status = process_.pool.FreeAdopted(offset, order);
  LookAtTheClock(timer_.End("FreeAdopted"));
  while (status == MEMTUNED_BUSY) {  // adopted, not freed
    void* block = process_.pool.FromOffset(offset);
    status = RealFree(process_.pool.handle(), block, order);
  }
  if (status != MEMTUNED_OK) {
    return MayMiss("FreeAdopted", offset, order, status);
  }
  Count(line_.adoptions);
  Count(line_.frees);
  return true;
}

void Actor::SetLabel(void* block, int order, uint8_t label) {
  const memtuned_status status = process_.pool.SetLabel(block, order, label);
  if (status != MEMTUNED_OK) {
    Refused("SetLabel", process_.pool.ToOffset(block), order, status);
  }
}

void Actor::SetMemoryPolicy(bool interleave) {
  const Mapping& m = process_.pool.handle()->segment->mapping();
  const auto node = static_cast<int>(m.zones[0].node);
  timer_.Begin();
  const Error error = process_.pool.SetMemoryPolicy(
      interleave ? Pool::MemoryPolicy::kInterleave : Pool::MemoryPolicy::kLocal,
      std::span(&node, 1));
  LookAtTheClock(timer_.End("SetMemoryPolicy"));
  if (error.status() == MEMTUNED_BUSY) return;
  if (!error.ok()) process_.Fail(Fault::kRefused, error.message());
}

}  // namespace memtuned::torture
