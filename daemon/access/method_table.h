// SPDX-License-Identifier: Apache-2.0
// Every method the server answers and the role it takes: one table, and a
// test that holds it against the services' descriptors. Floor 3.
#ifndef MEMTUNED_DAEMON_ACCESS_METHOD_TABLE_H_
#define MEMTUNED_DAEMON_ACCESS_METHOD_TABLE_H_

#include <span>
#include <string_view>

#include "daemon/access/role_config.h"

namespace memtuned {

struct MethodRule {
  // "TuningService/Drain" for one of memtuned.v1, others with their package,
  // as "grpc.health.v1.Health/Check".
  const char* name;
  Role role;
  // On the subject the request names, or, when it names none, on any.
  bool on_subject;
  // Needs a deadline, counts against mutations-per-minute, and each call is
  // in the audit log.
  bool mutates;

  // One of memtuned.v1, as opposed to the library's health and reflection.
  bool IsOurs() const;
};

std::span<const MethodRule> MethodTable();

// By the name of the table. Null when there is no rule.
const MethodRule* FindMethod(std::string_view name);
// By what a request has: "/memtuned.v1.TuningService/Drain".
const MethodRule* FindMethodByPath(std::string_view path);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_ACCESS_METHOD_TABLE_H_
