// SPDX-License-Identifier: Apache-2.0
// What a daemon and the keeper say to each other: SOCK_SEQPACKET, native byte
// order. A keeper may be older than the daemon that meets it (an upgrade), so
// a daemon goes on speaking every protocol a release had. Floor 2a.
//
// store    daemon   a group, in messages of up to kMaxFdsOfMessage descriptors
// forget   daemon   a group, or a pool with its clients' groups
// release  daemon   the pool goes when its last client does
// take     daemon   answered by a `group` for each, as by `store`, then `end`
#ifndef MEMTUNED_DAEMON_KEEPER_KEEPER_MESSAGE_H_
#define MEMTUNED_DAEMON_KEEPER_KEEPER_MESSAGE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "daemon/keeper/fd_message.h"
#include "daemon/keeper/kept_fds.h"

namespace memtuned {

inline constexpr uint32_t kKeeperMagic = 0x4d544b50;  // "MTKP"
inline constexpr uint32_t kKeeperProtocol = 1;

enum class KeeperVerb : uint32_t {
  kStore = 1,
  kForget = 2,
  kRelease = 3,
  kTake = 4,
  kGroup = 5,
  kEnd = 6,
};

struct KeeperMessage {
  uint32_t magic = kKeeperMagic;
  uint32_t protocol = kKeeperProtocol;
  KeeperVerb verb = KeeperVerb::kTake;
  uint32_t client = 0;                        // FdKey::client
  uint32_t nr_fds = 0;                        // of the whole group
  uint32_t nr_before = 0;                     // of it, in earlier messages
  std::array<char, kMaxKeptName + 1> pool{};  // FdKey::pool, NUL-terminated
};
static_assert(sizeof(KeeperMessage) == 72);
static_assert(std::is_trivially_copyable_v<KeeperMessage>);

// Most descriptors of one group: metadata and the frames of every node.
inline constexpr uint32_t kMaxFdsOfGroup = 1 + 1024;

// Blocks: as SendWithFds. Returns: false when not all was sent.
bool SendKeeperMessage(int socket, KeeperVerb verb, const FdKey& key,
                       std::span<const int> fds = {});

// Puts groups together from their messages, of one sender.
class GroupReader {
 public:
  struct Part {
    KeeperVerb verb = KeeperVerb::kTake;
    KeptFds group;          // with descriptors once it is complete
    bool complete = false;  // false: more of the group follows
  };
  // One message as it was received. Returns: nothing when it is none of this
  // protocol, or not the one that had to follow.
  std::optional<Part> Read(const KeeperMessage& message,
                           ReceivedMessage received);

 private:
  std::optional<KeptFds> begun_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_KEEPER_KEEPER_MESSAGE_H_
