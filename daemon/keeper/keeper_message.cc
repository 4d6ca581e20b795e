// SPDX-License-Identifier: Apache-2.0
#include "daemon/keeper/keeper_message.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace memtuned {

bool IsKeptName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxKeptName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '~';
         });
}

bool SendKeeperMessage(int socket, KeeperVerb verb, const FdKey& key,
                       std::span<const int> fds) {
  KeeperMessage message;
  message.verb = verb;
  message.client = key.client;
  message.nr_fds = static_cast<uint32_t>(fds.size());
  std::copy_n(key.pool.begin(), std::min(key.pool.size(), kMaxKeptName),
              message.pool.begin());
  do {
    const auto now =
        fds.subspan(message.nr_before,
                    std::min(fds.size() - message.nr_before, kMaxFdsOfMessage));
    if (!SendWithFds(socket, &message, sizeof(message), now)) return false;
    message.nr_before += static_cast<uint32_t>(now.size());
  } while (message.nr_before < fds.size());
  return true;
}

std::optional<GroupReader::Part> GroupReader::Read(const KeeperMessage& message,
                                                   ReceivedMessage received) {
  std::optional<KeptFds> begun = std::exchange(begun_, std::nullopt);
  if (received.bytes != sizeof(message) || !received.complete ||
      message.magic != kKeeperMagic || message.protocol != kKeeperProtocol ||
      message.nr_fds > kMaxFdsOfGroup || message.pool.back() != '\0') {
    return std::nullopt;
  }
  const bool has_group =
      message.verb == KeeperVerb::kStore || message.verb == KeeperVerb::kGroup;
  const bool has_key =
      message.verb != KeeperVerb::kTake && message.verb != KeeperVerb::kEnd;
  Part part;
  part.verb = message.verb;
  part.group.key = {message.pool.data(), message.client};
  if (has_key && !IsKeptName(part.group.key.pool)) return std::nullopt;
  if (has_group != !received.fds.empty()) return std::nullopt;
  const size_t before =
      begun && begun->key == part.group.key ? begun->fds.size() : 0;
  const size_t now = before + received.fds.size();
  if (message.nr_before != before || (begun && before == 0) ||
      now > message.nr_fds) {
    return std::nullopt;
  }
  if (before != 0) part.group.fds = std::move(begun->fds);
  std::move(received.fds.begin(), received.fds.end(),
            std::back_inserter(part.group.fds));
  part.complete = now == message.nr_fds;
  if (!part.complete) begun_ = std::move(part.group);
  return part;
}

}  // namespace memtuned
