// SPDX-License-Identifier: Apache-2.0
// Who holds what, for the report of a hang.
#ifndef MEMTUNED_TESTS_TORTURE_LOCK_REPORT_H_
#define MEMTUNED_TESTS_TORTURE_LOCK_REPORT_H_

#include <string>

#include "core/segment.h"

namespace memtuned::torture {

// Each lock and guard that is held, its thread and process, and whether that
// still lives. A glance: takes no lock.
std::string DescribeHeldLocks(const Segment& segment);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_LOCK_REPORT_H_
