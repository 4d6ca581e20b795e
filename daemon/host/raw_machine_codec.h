// SPDX-License-Identifier: Apache-2.0
// A RawMachine as bytes, to bring it from the process that ran hwloc to this
// one. Not a file format: both ends are the same binary.
// Floor 2b.
#ifndef MEMTUNED_DAEMON_HOST_RAW_MACHINE_CODEC_H_
#define MEMTUNED_DAEMON_HOST_RAW_MACHINE_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "daemon/host/topology_assembly.h"

namespace memtuned {

// Writes the machine, or the status if there is none. RawMachine::sysfs is
// left out: it is read where the machine is assembled.
std::string EncodeRawMachine(const absl::StatusOr<RawMachine>& machine);

// Returns: what EncodeRawMachine was given, its error included.
// Errors: kDataLoss for bytes that it did not write.
absl::StatusOr<RawMachine> DecodeRawMachine(const std::string& bytes);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_HOST_RAW_MACHINE_CODEC_H_
