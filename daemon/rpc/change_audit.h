// SPDX-License-Identifier: Apache-2.0
// What a change did, as fields of an audit line: generation, before, after.
// Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_CHANGE_AUDIT_H_
#define MEMTUNED_DAEMON_RPC_CHANGE_AUDIT_H_

#include "daemon/log.h"
#include "memtuned/v1/tuning.pb.h"

namespace memtuned {

// The values that were set.
LogFields AuditFieldsOf(const v1::SetTunablesResponse& response);
// The limits that moved.
LogFields AuditFieldsOf(const v1::SetProcessLimitResponse& response);
LogFields AuditFieldsOf(const v1::SetMemsAllowedResponse& response);
LogFields AuditFieldsOf(const v1::RecalculateResponse& response);
// The pages of each zone.
LogFields AuditFieldsOf(const v1::DrainResponse& response);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_CHANGE_AUDIT_H_
