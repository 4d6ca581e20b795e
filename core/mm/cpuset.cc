// SPDX-License-Identifier: Apache-2.0
#include "core/mm/cpuset.h"

namespace memtuned {

void WriteMemsAllowed(MemsAllowed& mems, const NodeMask& allowed,
                      MemoryPolicy policy, const NodeMask& policy_nodes,
                      uint32_t preferred) {
  const uint32_t word = LoadRelaxed(mems.word);
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
  const bool unrestricted =
      policy == MemoryPolicy::kLocal && allowed == NodeMask::All();
  Store(mems.word,
        ((word >> 2) + 1) << 2 | (unrestricted ? kMemsUnrestricted : 0) | idle);
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
