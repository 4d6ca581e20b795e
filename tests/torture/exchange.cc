// SPDX-License-Identifier: Apache-2.0
// Blocks that pass from worker to worker by offer and adopt, over mailboxes
// on the board: a word each, so that whoever is killed leaves it whole.
//
// A word may be stale: its writer died, or revoked the offer, and the block
// has been offered by another since. The pool then lets the reader adopt that
// one: offers here are open to all. What the offerer remembers of it will be
// refused, as its block has gone.
#include <array>
#include <map>
#include <vector>

#include "core/base/env.h"
#include "tests/torture/actor.h"
#include "tests/torture/slices.h"

namespace memtuned::torture {
namespace {

// Page number and order of a block on offer, 0: none. 1 << 63 tells page 0
// from nothing.
constexpr uint64_t ToWord(uint64_t offset, int order) {
  return uint64_t{1} << 63 | static_cast<uint64_t>(order) << 48 |
         offset / kPageBytes;
}
constexpr int OrderOf(uint64_t word) {
  return static_cast<int>(word >> 48 & 15);
}
constexpr uint64_t OffsetOf(uint64_t word) {
  return (word & ((uint64_t{1} << 48) - 1)) * kPageBytes;
}

class BlockExchange {
 public:
  BlockExchange(WorkerProcess& process, Slice& slice, Random& random)
      : actor_(process, 0, slice), random_(random) {}

  void Run(uint64_t max_pages) {
    while (actor_.running()) {
      if (random_.Between(0, 1) == 0) {
        if (offered_pages_ + 8 > max_pages) RevokeAll();
        OfferOne();
      } else {
        TakeOne(DrawMailbox().exchange(0));
      }
      while (held_.size() > random_.Between(0, 64)) FreeOne();
    }
    while (!held_.empty()) FreeOne();
    RevokeAll();
  }

 private:
  struct Held {
    void* memory;
    int order;
  };
  struct Offered {
    int order;
    uint32_t entry;
  };

  std::atomic<uint64_t>& DrawMailbox() {
    return actor_.process()
        .board.mailboxes[random_.Between(0, Board::kMailboxes - 1)];
  }

  void OfferOne() {
    const int order = static_cast<int>(random_.Between(0, 3));
    void* memory = actor_.Allocate(order);
    if (memory == nullptr) return;
    const uint64_t offset = actor_.process().pool.ToOffset(memory);
    // An earlier offer of it was taken, and the block given back.
    offered_.erase(offset);
    const uint32_t entry = actor_.Offer(memory, order);
    offered_[offset] = {order, entry};
    offered_pages_ += uint64_t{1} << order;
    TakeOne(DrawMailbox().exchange(ToWord(offset, order)));
  }

  void TakeOne(uint64_t word) {
    if (word == 0) {
      actor_.LookAtTheClock(env::NowNs());
      return;
    }
    const int order = OrderOf(word);
    const uint64_t offset = OffsetOf(word);
    if (random_.Between(0, 3) == 0) {
      if (actor_.FreeAdopted(offset, order)) offered_.erase(offset);
      return;
    }
    void* memory = actor_.Adopt(offset, order);
    if (memory == nullptr) return;
    offered_.erase(offset);
    held_.push_back({memory, order});
  }

  void FreeOne() {
    actor_.Free(held_.back().memory, held_.back().order);
    held_.pop_back();
  }

  void RevokeAll() {
    for (const auto& [offset, offer] : offered_) {
      if (actor_.Revoke(offset, offer.order, offer.entry)) {
        actor_.Free(actor_.process().pool.FromOffset(offset), offer.order);
      }
    }
    offered_.clear();
    offered_pages_ = 0;
  }

  Actor actor_;
  Random& random_;
  std::map<uint64_t, Offered> offered_;  // by offset; some adopted meanwhile
  std::vector<Held> held_;
  uint64_t offered_pages_ = 0;  // since all were revoked
};

}  // namespace

void RunExchangeSlice(WorkerProcess& process, Slice& slice, Random& random,
                      uint64_t max_pages) {
  BlockExchange(process, slice, random).Run(max_pages);
}

}  // namespace memtuned::torture
