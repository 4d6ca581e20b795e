// SPDX-License-Identifier: Apache-2.0
// What stands behind a memtuned_pool: the mapping, the allocator and the open
// connection. memtune-load looks in here for the pool's counters; users of the
// library cannot.
#ifndef MEMTUNED_CLIENT_ATTACH_POOL_STATE_H_
#define MEMTUNED_CLIENT_ATTACH_POOL_STATE_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "core/allocator.h"
#include "core/base/file_descriptor.h"
#include "core/segment.h"
#include "core/slot_table.h"

// Thread safety: any thread, see memtuned/memtuned.h.
struct memtuned_pool {
  memtuned_pool(std::unique_ptr<memtuned::Segment> mapped,
                memtuned::ProcessOwner owner,
                memtuned::FileDescriptor open_connection)
      : connection(std::move(open_connection)),
        frames(mapped->frames()),
        frames_bytes(mapped->frames_bytes()),
        name(NameOf(*mapped)),
        segment(std::move(mapped)),
        departure{this, owner},
        allocator(*segment, owner) {}

  // Open while attached; -1 in a forked child. First here, so that it closes
  // last: the daemon may give our blocks to others once it hears of that.
  memtuned::FileDescriptor connection;
  char* const frames;  // where the pool's offset 0 is in this process
  const uint64_t frames_bytes;
  const std::string name;
  const std::unique_ptr<memtuned::Segment> segment;
  // Once no thread uses the pool any more the pool is told as well: the daemon
  // may not be there to see the connection close.
  struct Departure {
    const memtuned_pool* pool;
    memtuned::ProcessOwner owner;
    ~Departure() {
      if (pool->connection.get() >= 0) {
        memtuned::LeavePool(*pool->segment, owner);
      }
    }
  };
  const Departure departure;
  memtuned::Allocator allocator;

 private:
  // The header's bytes are anybody's to write: never past their array.
  static std::string NameOf(const memtuned::Segment& segment) {
    const auto& name = segment.header().name;
    return {name.data(), strnlen(name.data(), name.size())};
  }
};

#endif  // MEMTUNED_CLIENT_ATTACH_POOL_STATE_H_
