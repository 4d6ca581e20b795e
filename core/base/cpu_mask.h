// SPDX-License-Identifier: Apache-2.0
// Lists of CPU (or node) numbers in the kernel's text form, "0-3,8,10-12".
// Floor 0: text in, plain vectors out; reads no file.
#ifndef MEMTUNED_CORE_BASE_CPU_MASK_H_
#define MEMTUNED_CORE_BASE_CPU_MASK_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/topology.h"

namespace memtuned {

// Longest text that the parsers below look at.
inline constexpr size_t kMaxCpuListBytes = 64 * 1024;

// Parses a list as cpulist files, cpuset files and boot parameters have it.
// Items are separated by commas; each is one of
//   8         one number
//   0-3       a range, both ends included
//   10-16/2   every second number of a range
//   0-31:2/8  the first 2 of each group of 8
// White space around the list or an item, and a final newline, are ignored;
// the empty text is the empty list. Items may overlap and come in any order.
// Returns: the numbers, ascending, each once.
// Errors: kInvalidArgument naming the text and the item, also for a number
// above `max`.
absl::StatusOr<std::vector<int>> ParseCpuList(std::string_view text,
                                              int max = kMaxCpuNumber);

// Parses a cpumap file: 32-bit words in hexadecimal, highest first, separated
// by commas, as in "00000000,0000ff00".
// Returns: the numbers of the set bits, ascending.
// Errors: as ParseCpuList.
absl::StatusOr<std::vector<int>> ParseCpuMask(std::string_view text,
                                              int max = kMaxCpuNumber);

// The shortest list of numbers and ranges: {0,1,2,8} is "0-2,8". Order and
// repeats in `cpus` do not matter. ParseCpuList brings the same set back.
std::string FormatCpuList(const std::vector<int>& cpus);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_CPU_MASK_H_
