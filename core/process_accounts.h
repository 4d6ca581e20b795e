// SPDX-License-Identifier: Apache-2.0
// What each attached process holds. By order it is the sum of its threads'
// counters, each of which has one writer: no operation pays for it. By node,
// type and offer it is found in the memmap, when asked. Floor 2.
//
// The peak, the most pages a process held at a time, is added up at each
// snapshot; and when a thread that fills or empties a pageset has moved
// kPeakStep pages since it last said so, and with that the process has risen
// as much, or 1/64, above where this was done before. So it misses of a rise
// that ends before the next snapshot at most that, and 2 x kPeakStep and the
// stock of a pageset for each thread. It is never above what the process held
// but for what moved while it was added up, some microseconds.
#ifndef MEMTUNED_CORE_PROCESS_ACCOUNTS_H_
#define MEMTUNED_CORE_PROCESS_ACCOUNTS_H_

#include <cstdint>
#include <vector>

#include "core/segment.h"
#include "core/stats.h"

namespace memtuned {

// Attached processes by slot, without what is the daemon's. Raises the peaks
// where the segment is not mapped to read only.
// Cost: one pass over the thread slots.
std::vector<ProcessSnapshot> ReadProcesses(const Segment& segment);

// What a process holds, of each node with memory. Counts add up to what it
// holds as long as it does nothing meanwhile.
// Takes no lock. Cost: reads the memmap of each section of 128 MiB that the
// process ever took a block from: up to 512 KiB, some 100 us.
std::vector<NodeHoldings> ReadHoldings(const Segment& segment,
                                       ProcessOwner process);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_PROCESS_ACCOUNTS_H_
