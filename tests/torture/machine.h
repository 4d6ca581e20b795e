// SPDX-License-Identifier: Apache-2.0
// What the machine did meanwhile that is nobody's fault.
#ifndef MEMTUNED_TESTS_TORTURE_MACHINE_H_
#define MEMTUNED_TESTS_TORTURE_MACHINE_H_

#include <cstdint>
#include <span>

namespace memtuned::torture {

// Time of all CPUs that a hypervisor gave to others, since the machine
// started. 0 where the kernel does not know.
uint64_t StolenMs();
// The same of each CPU, by number.
void StolenMsPerCpu(std::span<uint32_t> ms);

// Whether the kernel tells how long a thread waited on a run queue.
bool TellsRunQueueDelay();

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_MACHINE_H_
