// SPDX-License-Identifier: Apache-2.0
// memtuned_attach and memtuned_detach: socket, handshake, mapping, slot.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/attach/connection.h"
#include "client/attach/error.h"
#include "client/attach/live_pools.h"
#include "client/attach/pool_state.h"
#include "core/slot_table.h"

namespace memtuned::attach {
namespace {

constexpr uint32_t kDefaultTimeoutMs = 5000;

Outcome CheckOptions(const memtuned_attach_options& options) {
  if ((options.flags & ~MEMTUNED_ATTACH_TO_READ) != 0) {
    return {MEMTUNED_INVALID_ARGUMENT,
            absl::StrCat("flags of the options is ", options.flags,
                         "; allowed 0 or MEMTUNED_ATTACH_TO_READ (",
                         MEMTUNED_ATTACH_TO_READ, ")")};
  }
  for (uint32_t word : options.reserved) {
    if (word != 0) {
      return {MEMTUNED_INVALID_ARGUMENT,
              absl::StrCat("a reserved field of the options is ", word,
                           "; it must be 0")};
    }
  }
  return {};
}

Outcome FromStatus(const absl::Status& status) {
  memtuned_status code = MEMTUNED_NO_RESOURCES;
  if (status.code() == absl::StatusCode::kDataLoss) code = MEMTUNED_BAD_REPLY;
  if (status.code() == absl::StatusCode::kFailedPrecondition) {
    code = MEMTUNED_LAYOUT_DIFFERS;
  }
  return {code, absl::StrCat(status.message())};
}

// A frame file that is too short would be a SIGBUS at first touch.
Outcome CheckFrames(Segment& segment) {
  for (size_t i = 0; i < segment.frame_fds().size(); ++i) {
    const uint64_t needed = segment.mapping().zones[i].present_pages
                            << kPageShift;
    struct stat file;
    if (fstat(segment.frame_fds()[i], &file) != 0 ||
        static_cast<uint64_t>(file.st_size) < needed) {
      return {MEMTUNED_BAD_REPLY,
              absl::StrCat("frame file ", i, " of the pool has ", file.st_size,
                           " bytes; needed ", needed)};
    }
  }
  return {};
}

Outcome MapPool(Granted granted, Segment::Access access,
                std::unique_ptr<memtuned_pool>* pool) {
  std::vector<int> frames;
  frames.reserve(granted.frames.size());
  for (FileDescriptor& fd : granted.frames) frames.push_back(fd.Release());
  auto segment =
      Segment::Attach(granted.metadata.Release(), std::move(frames), access);
  if (!segment.ok()) return FromStatus(segment.status());
  if (Outcome sizes = CheckFrames(**segment); !sizes.ok()) return sizes;
  // Who reads only has no slot.
  if (access == Segment::Access::kRead
          ? granted.owner != 0
          : FindProcessSlot(**segment, granted.owner) == nullptr) {
    return {MEMTUNED_BAD_REPLY,
            absl::StrCat("the daemon handed out process slot ", granted.owner,
                         ", which the pool does not have")};
  }
  *pool = std::make_unique<memtuned_pool>(*std::move(segment), granted.owner,
                                          std::move(granted.connection));
  return {};
}

Outcome Attach(const std::string& path, uint32_t timeout_ms,
               Segment::Access access, std::unique_ptr<memtuned_pool>* pool) {
  const Deadline deadline{std::chrono::milliseconds(timeout_ms)};
  Granted granted;
  if (Outcome connected = Connect(path, deadline, &granted.connection);
      !connected.ok()) {
    return connected;
  }
  if (Outcome answered = Handshake(deadline, access, &granted);
      !answered.ok()) {
    answered.message = absl::StrCat(path, ": ", answered.message);
    return answered;
  }
  Outcome mapped = MapPool(std::move(granted), access, pool);
  if (!mapped.ok()) mapped.message = absl::StrCat(path, ": ", mapped.message);
  return mapped;
}

}  // namespace

memtuned_status Report(const Outcome& outcome, memtuned_error* error) {
  if (error == nullptr) return outcome.status;
  error->status = outcome.status;
  const size_t length =
      std::min(outcome.message.size(), sizeof(error->message) - 1);
  std::memcpy(error->message, outcome.message.data(), length);
  error->message[length] = '\0';
  return outcome.status;
}

}  // namespace memtuned::attach

using memtuned::attach::Outcome;
using memtuned::attach::Report;

memtuned_status memtuned_attach(const char* socket_path,
                                const memtuned_attach_options* options,
                                memtuned_pool** pool,
                                memtuned_error* error) noexcept {
  if (pool != nullptr) *pool = nullptr;
  if (pool == nullptr || socket_path == nullptr) {
    return Report({MEMTUNED_INVALID_ARGUMENT,
                   pool == nullptr ? "pool is NULL" : "socket_path is NULL"},
                  error);
  }
  uint32_t timeout_ms = memtuned::attach::kDefaultTimeoutMs;
  auto access = memtuned::Segment::Access::kWrite;
  if (options != nullptr) {
    const Outcome checked = memtuned::attach::CheckOptions(*options);
    if (!checked.ok()) return Report(checked, error);
    if (options->timeout_ms != 0) timeout_ms = options->timeout_ms;
    if ((options->flags & MEMTUNED_ATTACH_TO_READ) != 0) {
      access = memtuned::Segment::Access::kRead;
    }
  }
  try {
    std::unique_ptr<memtuned_pool> made;
    const Outcome outcome =
        memtuned::attach::Attach(socket_path, timeout_ms, access, &made);
    if (outcome.ok()) {
      memtuned::attach::AddLivePool(made.get());
      *pool = made.release();
    }
    return Report(outcome, error);
  } catch (const std::exception& e) {
    return Report({MEMTUNED_NO_RESOURCES, e.what()}, error);
  }
}

void memtuned_detach(memtuned_pool* pool) noexcept {
  if (pool == nullptr) return;
  memtuned::attach::RemoveLivePool(pool);
  delete pool;
}
