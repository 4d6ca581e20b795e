// SPDX-License-Identifier: Apache-2.0
// "TUNABLE=VALUE" as typed, checked against the table of tunables before any
// call is made. The daemon checks again and has the last word.
#ifndef MEMTUNED_CLIENT_CTL_ASSIGNMENT_H_
#define MEMTUNED_CLIENT_CTL_ASSIGNMENT_H_

#include <memtuned/v1/tuning.pb.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace memtuned::ctl {

// Parses all or nothing.
// Errors: kInvalidArgument: no '=', an unknown tunable (with the nearest
// one), a value out of range (with the range), a tunable given twice.
absl::StatusOr<std::vector<v1::Assignment>> ParseAssignments(
    const std::vector<std::string>& texts);

// What a process may hold, as typed: bytes, as 1073741824 or 1GiB (KiB, MiB,
// GiB, TiB); "none": 0; "auto": the pool's.
// Errors: kInvalidArgument with what is allowed.
absl::StatusOr<v1::Value> ParseLimit(const std::string& text);

// The same error with "did you mean" added where it is about an unknown
// tunable `name` and a near one exists.
absl::Status WithNearestTunable(const absl::Status& status,
                                const std::string& name);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_ASSIGNMENT_H_
