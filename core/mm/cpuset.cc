// SPDX-License-Identifier: Apache-2.0
#include "core/mm/cpuset.h"

namespace memtuned {
namespace {

// The word's sequence after this one, its flags 0.
uint32_t NextSequence(uint32_t word) {
  return ((word >> kMemsFlagBits) + 1) << kMemsFlagBits;
}

}  // namespace

void WriteMemsAllowed(MemsAllowed& mems, const NodeMask& allowed,
                      MemoryPolicy policy, const NodeMask& policy_nodes,
                      uint32_t preferred) {
  uint32_t word = LoadRelaxed(mems.word);
  const uint32_t idle = (word & 1) ^ 1;
  MemsCopy& copy = mems.copies[idle];
  for (size_t i = 0; i < copy.allowed.size(); ++i) {
    Store(copy.allowed[i], allowed.words()[i]);
    Store(copy.policy_nodes[i], policy_nodes.words()[i]);
  }
  Store(copy.policy, static_cast<uint32_t>(policy));
  Store(copy.preferred, preferred);
  // Pairs with the acquire in ReadMemsAllowedBegin: whoever sees the new word
  // sees the whole copy.
  const bool restricted =
      policy != MemoryPolicy::kLocal || allowed != NodeMask::All();
  uint32_t next;
  do {
    next = NextSequence(word) | (word & kMemsLimited) |
           (restricted ? kMemsRestricted : 0) | idle;
  } while (!Exchange(mems.word, word, next));
}

void WriteLimited(MemsAllowed& mems, const Shared64& limit) {
  uint32_t word = Load(mems.word);
  uint32_t next;
  do {
    // Read anew each time: of two writers the later one has the newer limit.
    next = NextSequence(word) | (word & (kMemsRestricted | 1)) |
           (Load(limit) != 0 ? kMemsLimited : 0);
  } while (!Exchange(mems.word, word, next));
}

NodeMask AllowedMask(const MemsAllowed& mems) {
  const MemsCopy& copy = CopyOf(mems, ReadMemsAllowedBegin(mems));
  NodeMask::Words words;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = LoadRelaxed(copy.allowed[i]);
  }
  return NodeMask(words);
}

}  // namespace memtuned
