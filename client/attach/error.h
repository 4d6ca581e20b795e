// SPDX-License-Identifier: Apache-2.0
// From an Outcome to the C interface's error.
#ifndef MEMTUNED_CLIENT_ATTACH_ERROR_H_
#define MEMTUNED_CLIENT_ATTACH_ERROR_H_

#include "client/attach/connection.h"

namespace memtuned::attach {

// Fills `error` unless it is nullptr; a message too long is cut.
// Returns: the outcome's status.
memtuned_status Report(const Outcome& outcome, memtuned_error* error);

}  // namespace memtuned::attach

#endif  // MEMTUNED_CLIENT_ATTACH_ERROR_H_
