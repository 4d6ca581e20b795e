// SPDX-License-Identifier: Apache-2.0
// Kinds of work that cost virtual time. Floor 0.
#ifndef MEMTUNED_CORE_BASE_ENV_COST_H_
#define MEMTUNED_CORE_BASE_ENV_COST_H_

namespace memtuned::env {

enum class Cost {
  kPagesetOperation,  // one take or give in a pageset
  kZoneTake,          // one block out of the free areas
  kZoneGive,          // one block into the free areas, merging included
  kDepotMove,         // one chunk into or out of the depot
  kCount,
};

}  // namespace memtuned::env

#endif  // MEMTUNED_CORE_BASE_ENV_COST_H_
