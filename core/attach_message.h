// SPDX-License-Identifier: Apache-2.0
// What a process and the daemon say to each other over a pool's socket:
// one request, one reply, then silence until either closes. SOCK_SEQPACKET,
// native byte order (both ends are on one machine). Floor 2.
//
// The daemon knows the caller from SO_PEERCRED, never from what it says. The
// reply carries the metadata's descriptor and the first kFdsPerMessage - 1
// frame descriptors; the rest follow in further messages of one byte each, in
// order. The connection stays open while the process is attached; its closing
// is a hint (a forked child may hold it), the process's end is the proof.
#ifndef MEMTUNED_CORE_ATTACH_MESSAGE_H_
#define MEMTUNED_CORE_ATTACH_MESSAGE_H_

#include <array>
#include <cstdint>
#include <type_traits>

namespace memtuned {

inline constexpr uint32_t kAttachMagic = 0x4d544154;  // "MTAT"
inline constexpr uint32_t kAttachProtocol = 1;
inline constexpr int kFdsPerMessage = 250;  // the kernel's limit is 253

// To read only: no process slot (owner 0 in the reply), and descriptors that
// cannot be mapped for writing, nor, by another user than the daemon's, be
// opened for it.
inline constexpr uint32_t kAttachToRead = 1;

struct AttachRequest {
  uint32_t magic = kAttachMagic;
  uint32_t protocol = kAttachProtocol;
  uint32_t layout_version = 0;  // kLayoutVersion of the library
  uint32_t flags = 0;           // kAttachToRead; others must be 0
  uint64_t abi_hash = 0;        // AbiHash() of the library
};
static_assert(sizeof(AttachRequest) == 24);
static_assert(std::is_trivially_copyable_v<AttachRequest>);

enum class AttachStatus : uint32_t {
  kOk = 0,
  kBadRequest = 1,     // not an attach request of this protocol
  kLayoutDiffers = 2,  // the library was built for another layout
  kDenied = 3,         // this uid and gid may not attach
  kFull = 4,           // no process slot is free, or too many observers
  kShuttingDown = 5,
};
inline constexpr int kNumAttachStatuses = 6;

struct AttachReply {
  uint32_t magic = kAttachMagic;
  uint32_t protocol = kAttachProtocol;
  AttachStatus status = AttachStatus::kOk;
  uint32_t owner = 0;  // ProcessOwner
  uint32_t nr_frame_fds = 0;
  uint32_t layout_version = 0;  // the daemon's
  uint64_t abi_hash = 0;        // the daemon's
  // One readable sentence when status is not kOk, NUL-terminated.
  std::array<char, 224> message{};
};
static_assert(sizeof(AttachReply) == 256);
static_assert(std::is_trivially_copyable_v<AttachReply>);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_ATTACH_MESSAGE_H_
