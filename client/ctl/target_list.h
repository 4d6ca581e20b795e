// SPDX-License-Identifier: Apache-2.0
// --targets: the daemons of a fleet, from a list, a file or the name service.
#ifndef MEMTUNED_CLIENT_CTL_TARGET_LIST_H_
#define MEMTUNED_CLIENT_CTL_TARGET_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace memtuned::ctl {

struct FleetTarget {
  std::string address;      // as ParseTarget reads it
  std::string server_name;  // what its certificate must be for; "": the host
};

// Reads "A,B,C", a file with one address a line (# starts a comment), or
// "dns:///NAME:PORT", which is every address the name service has for NAME.
// What is named twice counts once.
// Errors: kInvalidArgument naming the address, or FILE:LINE; kUnavailable when
// a name cannot be resolved.
absl::StatusOr<std::vector<FleetTarget>> ReadTargets(const std::string& text);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_TARGET_LIST_H_
