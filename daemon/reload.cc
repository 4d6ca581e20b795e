// SPDX-License-Identifier: Apache-2.0
// Compares settings as text and pools field by field.
#include "daemon/reload.h"

#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

constexpr char kRoles[] = "roles";

const PoolConfig* FindPool(const Config& config, const std::string& name) {
  for (const PoolConfig& pool : config.pools) {
    if (pool.name == name) return &pool;
  }
  return nullptr;
}

TunableValue ConfiguredValue(const PoolConfig& pool, const TunableDef& def) {
  for (const TunableAssignment& assignment : pool.tunables) {
    if (assignment.tunable == def.name) return assignment.value;
  }
  return DefaultValue(def);
}

void ComparePools(const PoolConfig& now, const PoolConfig& next,
                  ReloadPlan& plan) {
  const auto field = [&](const char* name) {
    plan.needs_restart.push_back(absl::StrCat("pool.", now.name, ".", name));
  };
  if (now.bytes != next.bytes || now.bytes_per_node != next.bytes_per_node) {
    field("size");
  }
  if (now.populate != next.populate) field("populate");
  if (now.socket_mode != next.socket_mode) field("mode");
  if (now.users != next.users) plan.users[now.name] = next.users;
  for (const TunableDef& def : TunableTable()) {
    const TunableValue value = ConfiguredValue(next, def);
    if (ConfiguredValue(now, def) == value) continue;
    plan.tunables[now.name].push_back({def.name, value});
  }
}

}  // namespace

ReloadPlan PlanReload(const Config& now, const Config& next) {
  ReloadPlan plan;
  for (const ConfigSetting& setting : ConfigSettings()) {
    if (setting.get(now) == setting.get(next)) continue;
    auto& list = setting.reloadable ? plan.settings : plan.needs_restart;
    list.push_back(setting.key);
  }
  if (RolesText(now) != RolesText(next)) plan.settings.push_back(kRoles);
  for (const PoolConfig& pool : now.pools) {
    const PoolConfig* other = FindPool(next, pool.name);
    if (other == nullptr) {
      plan.needs_restart.push_back(absl::StrCat("pool.", pool.name));
    } else {
      ComparePools(pool, *other, plan);
    }
  }
  for (const PoolConfig& pool : next.pools) {
    if (FindPool(now, pool.name) != nullptr) continue;
    plan.needs_restart.push_back(absl::StrCat("pool.", pool.name));
  }
  return plan;
}

Config AfterReload(const Config& now, const Config& next,
                   const ReloadPlan& plan) {
  Config after = now;
  for (const std::string& key : plan.settings) {
    if (key == kRoles) {
      after.roles = next.roles;
      continue;
    }
    const ConfigSetting& setting = *FindConfigSetting(key);
    // The text comes from a value that was accepted.
    static_cast<void>(setting.set(after, setting.get(next)));
  }
  for (PoolConfig& pool : after.pools) {
    if (plan.tunables.count(pool.name) != 0) {
      pool.tunables = FindPool(next, pool.name)->tunables;
    }
    if (plan.users.count(pool.name) != 0) pool.users = plan.users.at(pool.name);
  }
  return after;
}

}  // namespace memtuned
