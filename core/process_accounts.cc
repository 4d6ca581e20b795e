// SPDX-License-Identifier: Apache-2.0
#include "core/process_accounts.h"

#include <algorithm>
#include <bit>

#include "core/process_limit.h"
#include "core/slot_table.h"

namespace memtuned {
namespace {

uint64_t NotBelowZero(uint64_t number) {
  return static_cast<int64_t>(number) > 0 ? number : 0;
}

// What the threads of one process add up to.
struct Account {
  int threads = 0;
  std::array<uint64_t, kNumOrders> blocks{};  // modulo 2^64, as counts may lie
  uint64_t operations = 0;

  void Add(const BlockCounts& counts) {
    for (size_t order = 0; order < counts.size(); ++order) {
      const uint64_t taken = LoadRelaxed(counts[order].taken);
      const uint64_t given = LoadRelaxed(counts[order].given);
      blocks[order] += taken - given;
      operations += taken + given;
    }
  }
  uint64_t Pages() const {
    uint64_t pages = 0;
    for (size_t order = 0; order < blocks.size(); ++order) {
      pages += blocks[order] << order;
    }
    return NotBelowZero(pages);
  }
};

std::vector<Account> AddUp(const Segment& segment) {
  const Mapping& m = segment.mapping();
  std::vector<Account> accounts(m.nr_processes);
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    const ThreadSlot& thread = m.threads[i];
    const ProcessOwner process = LoadRelaxed(thread.process);
    if (FindProcessSlot(segment, process) == nullptr) continue;
    Account& account = accounts[ProcessSlotOf(process)];
    ++account.threads;
    account.Add(thread.counts);
  }
  for (uint32_t i = 0; i < m.nr_processes; ++i) {
    accounts[i].Add(m.processes[i].retired);
  }
  return accounts;
}

std::vector<int> AllowedNodes(const Segment& segment, const ProcessSlot& slot) {
  std::vector<int> nodes;
  const NodeMask allowed = AllowedMask(slot.mems);
  const Mapping& m = segment.mapping();
  for (uint32_t z = 0; z < m.nr_zones; ++z) {
    const auto node = static_cast<int>(m.zone_info[z].node);
    if (m.zone_info[z].kind == ZoneKind::kNormal && allowed.Test(node)) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

ProcessSnapshot ReadProcess(const Segment& segment, ProcessSlot& slot,
                            const Account& account) {
  ProcessSnapshot process;
  process.generation = LoadRelaxed(slot.owner) >> kProcessSlotBits;
  process.pid = static_cast<int>(LoadRelaxed(slot.pid));
  process.uid = LoadRelaxed(slot.uid);
  process.start_time_ticks = LoadRelaxed(slot.start_time_ticks);
  process.threads = account.threads;
  process.allocated_pages = account.Pages();
  if (!segment.read_only()) {
    AtomicMax(slot.peak_pages, process.allocated_pages);
  }
  process.peak_pages =
      std::max(LoadRelaxed(slot.peak_pages), process.allocated_pages);
  process.limit_pages = LoadRelaxed(slot.limit_pages);
  process.own_limit = HasOwnLimit(slot);
  for (size_t order = 0; order < account.blocks.size(); ++order) {
    process.held_blocks[order] = NotBelowZero(account.blocks[order]);
  }
  process.operations = account.operations;
  process.attached_unix_seconds =
      static_cast<double>(LoadRelaxed(slot.attached_unix_ns)) * 1e-9;
  process.mems_allowed = AllowedNodes(segment, slot);
  return process;
}

void AddHoldings(const Mapping& m, uint32_t section, ProcessOwner owner,
                 NodeHoldings* node) {
  const uint32_t start = section << kSectionShift;
  const uint32_t end = start + m.PagesOfSection(section);
  for (uint32_t at = start; at < end;) {
    const PageWord word(LoadRelaxed(m.memmap[at].word));
    const bool offered = word.kind() == PageKind::kOffered;
    if ((word.kind() != PageKind::kAllocated && !offered) ||
        word.ref() != owner || !m.IsBlock(Pfn{at}, word.order())) {
      ++at;
      continue;
    }
    const uint32_t pages = 1u << word.order();
    node->pages += pages;
    if (offered) node->offered_pages += pages;
    if (word.type() == PageType::kPurgeable) node->purgeable_pages += pages;
    ++node->blocks[static_cast<size_t>(word.order())];
    at += pages;
  }
}

}  // namespace

std::vector<ProcessSnapshot> ReadProcesses(const Segment& segment) {
  const Mapping& m = segment.mapping();
  const std::vector<Account> accounts = AddUp(segment);
  std::vector<ProcessSnapshot> processes;
  for (uint32_t i = 0; i < m.nr_processes; ++i) {
    ProcessSlot& slot = m.processes[i];
    const auto state = static_cast<SlotState>(LoadRelaxed(slot.state));
    if (state != SlotState::kAttached && state != SlotState::kReaping) {
      continue;
    }
    processes.push_back(ReadProcess(segment, slot, accounts[i]));
    processes.back().slot = i;
    if (state == SlotState::kReaping) {
      processes.back().state = ProcessState::kReaping;
    }
  }
  return processes;
}

std::vector<NodeHoldings> ReadHoldings(const Segment& segment,
                                       ProcessOwner process) {
  const Mapping& m = segment.mapping();
  std::vector<NodeHoldings> nodes;
  std::vector<size_t> of_node(m.nr_nodes, 0);
  for (uint32_t n = 0; n < m.nr_nodes; ++n) {
    of_node[n] = nodes.size();
    if (segment.nodes()[n].zone == kNil) continue;
    nodes.emplace_back();
    nodes.back().node = static_cast<int>(segment.nodes()[n].os_index);
  }
  if (FindProcessSlot(segment, process) == nullptr) return nodes;
  const uint32_t words = m.words_of_sections();
  const Shared64* bits =
      m.process_sections + size_t{ProcessSlotOf(process)} * words;
  for (uint32_t w = 0; w < words; ++w) {
    for (uint64_t left = LoadRelaxed(bits[w]); left != 0; left &= left - 1) {
      const uint32_t section =
          w * 64 + static_cast<uint32_t>(std::countr_zero(left));
      if (section >= m.nr_sections) break;
      const ZoneInfo& zone = m.zone_info[m.ZoneOfSection(section)];
      const size_t at = of_node[zone.node_index];
      if (at < nodes.size()) AddHoldings(m, section, process, &nodes[at]);
    }
  }
  return nodes;
}

}  // namespace memtuned
