// SPDX-License-Identifier: Apache-2.0
// Whether a pool is in somebody's care. Daemons and keepers hold a lock on the
// metadata file of each pool they have (a record lock, which is theirs alone
// and ends with them), so that no daemon takes from its processes a pool that
// another one serves. Floor 2a.
#ifndef MEMTUNED_DAEMON_KEEPER_POOL_CLAIM_H_
#define MEMTUNED_DAEMON_KEEPER_POOL_CLAIM_H_

namespace memtuned {

// Lasts until this process closes any descriptor of the file. Any number of
// processes may have one.
void ClaimPool(int metadata);

// Whether another process has one.
bool IsClaimed(int metadata);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_KEEPER_POOL_CLAIM_H_
