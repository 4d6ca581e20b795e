// SPDX-License-Identifier: Apache-2.0
// Checks a whole pool at rest against its memmap: every page in exactly one
// place, every index and count what the words say. Called at the end of core
// tests and after fuzz runs. Knows the layout, none of the code that keeps it.
#ifndef MEMTUNED_TESTS_SUPPORT_ZONE_CHECKER_H_
#define MEMTUNED_TESTS_SUPPORT_ZONE_CHECKER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/segment.h"

namespace memtuned {

// Pages by what their heads' words say.
struct PoolPages {
  uint64_t free = 0, cached = 0, allocated = 0, offered = 0;
  std::map<ProcessOwner, uint64_t> of_owner;  // allocated and offered
};

// REQUIRES: nobody uses the pool meanwhile.
class ZoneChecker {
 public:
  explicit ZoneChecker(const Segment& segment);

  // Returns: the first inconsistency in words, "" when there is none:
  //   no lock or guard is held, no intent or pending chunk is open;
  //   heads tile every carved section; words inside blocks own nothing;
  //   a free block has its bit and no buddy left to merge with;
  //   free-area bits, summaries, section maps and counts agree;
  //   each chunk is in the one place its word says, each cached block in the
  //   array of the chunk its word says, once;
  //   pagesets', depots' and zones' counts agree.
  std::string Check();
  // After Check().
  const PoolPages& pages() const { return pages_; }

 private:
  struct ZoneCounts {
    uint64_t free = 0, managed = 0, pristine = 0;
    uint64_t blocks[kNumPageTypes][kNumOrders] = {};
    bool in_map[kNumPageTypes][kNumOrders] = {};
  };

  void Fail(std::string what);
  bool failed() const { return !problem_.empty(); }

  void CheckLocks();
  void CheckZone(const ZoneShared& zone);
  void CheckSection(const ZoneShared& zone, uint32_t number,
                    ZoneCounts& counts);
  void CheckHead(const ZoneShared& zone, uint32_t pfn, PageWord word);
  void CheckFreeHead(uint32_t pfn, PageWord word);
  void CheckInside(uint32_t pfn, int order);
  void CheckFreeAreas(const ZoneShared& zone, uint32_t number,
                      const uint64_t (&blocks)[kNumPageTypes][kNumOrders]);
  void CheckMap(const ZoneShared& zone, int map, uint32_t section, bool set,
                const char* what);
  void CheckMapTops(const ZoneShared& zone, int map);

  void CheckPageset(const ZoneShared& zone, uint32_t cpu);
  uint64_t CheckDeque(const PagesetShared& pageset, int list);
  void CheckDepot(const ZoneShared& zone);
  void CheckEmpties();
  void CheckLostChunks();
  bool HandedOut(uint32_t chunk) const;
  // Notes that a chunk was found; returns its pages.
  uint64_t Visit(uint32_t chunk, ChunkPlace place, int list, uint32_t ref,
                 uint32_t zone, uint32_t count, const std::string& where);

  const Segment& segment_;
  const Mapping& m_;
  std::string problem_;
  PoolPages pages_;
  std::vector<bool> visited_;       // by chunk
  std::vector<uint32_t> heads_of_;  // cached heads that name the chunk
  std::vector<uint32_t> items_of_;  // by chunk, as its holder counts them
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_SUPPORT_ZONE_CHECKER_H_
