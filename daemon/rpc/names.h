// SPDX-License-Identifier: Apache-2.0
// Resource names: "pools/default/nodes/0/zones/Normal". Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_NAMES_H_
#define MEMTUNED_DAEMON_RPC_NAMES_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/subject.h"

namespace memtuned {

// A subject and what of it is meant.
struct ResourceName {
  std::string subject;      // "host" or "pools/NAME"
  std::optional<int> node;  // os index
  std::string zone;         // "" or "Normal"; only with node
  std::string tunable;      // "" or "pageset.batch_factor"; without node
};

// What may follow the subject.
enum class NameDepth { kSubject, kNode, kZone, kTunable };

// `field` is the request's field, for the error. kTunable demands a tunable;
// the others are the deepest form accepted.
// Errors: kInvalidArgument naming the accepted forms.
absl::StatusOr<ResourceName> ParseName(const std::string& text,
                                       const std::string& field,
                                       NameDepth depth);

// "3-17", as ProcessId::Text() has it; nothing for anything else.
std::optional<ProcessId> ParseProcessId(const std::string& text);

std::string NodeName(const std::string& subject, int node);
std::string ZoneName(const std::string& subject, int node,
                     const std::string& zone);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_NAMES_H_
