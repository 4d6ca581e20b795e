// SPDX-License-Identifier: Apache-2.0
// What SIGHUP does: the difference between two configurations, sorted into
// what can change now and what needs a restart. Floor 5.
#ifndef MEMTUNED_DAEMON_RELOAD_H_
#define MEMTUNED_DAEMON_RELOAD_H_

#include <map>
#include <string>
#include <vector>

#include "daemon/config.h"
#include "daemon/user_list.h"

namespace memtuned {

struct ReloadPlan {
  // Keys of settings to take over now, as "log-level".
  std::vector<std::string> settings;
  // Pool name -> tunables whose configured value differs. One that is no
  // longer configured gets its default, as it would after a restart.
  std::map<std::string, std::vector<TunableAssignment>> tunables;
  // Pool name -> who may use it from now on, where that differs.
  std::map<std::string, PoolUsers> users;
  // What differs and stays as it is: "listen", "pool.a", "pool.b.size".
  std::vector<std::string> needs_restart;
};

ReloadPlan PlanReload(const Config& now, const Config& next);

// `now` with what the plan takes over from `next`.
Config AfterReload(const Config& now, const Config& next,
                   const ReloadPlan& plan);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RELOAD_H_
