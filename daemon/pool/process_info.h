// SPDX-License-Identifier: Apache-2.0
// What /proc says of a process. Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_PROCESS_INFO_H_
#define MEMTUNED_DAEMON_POOL_PROCESS_INFO_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"

namespace memtuned {

// 0 when there is none.
uint32_t ParentOf(uint32_t pid);

// "" when there is none.
std::string CommandOf(const std::string& proc_root, uint32_t pid);

// A pidfd of the process that had `pid` and started then (StartTimeOf); 0 is
// any time.
// Errors: kNotFound (it is gone, or another one has its pid now), others when
// nobody can say.
absl::StatusOr<FileDescriptor> OpenProcess(uint32_t pid, uint64_t start_time);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_PROCESS_INFO_H_
