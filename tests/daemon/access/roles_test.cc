// SPDX-License-Identifier: Apache-2.0
// Who has which role, and the table of methods by itself. That the table
// covers the services is tested where they are: tests/daemon/rpc/gate_test.cc.
#include "daemon/access/roles.h"

#include <gtest/gtest.h>

#include <set>

#include "daemon/access/method_table.h"

namespace memtuned {
namespace {

constexpr uint32_t kOwnUid = 990;

Caller User(uint32_t uid, uint32_t gid = 65534,
            std::vector<uint32_t> groups = {}) {
  Caller caller;
  caller.uid = uid;
  caller.gid = gid;
  caller.groups = std::move(groups);
  return caller;
}

Caller Certificate(const std::string& identity) {
  Caller caller;
  caller.kind = Caller::Kind::kTls;
  caller.identity = identity;
  return caller;
}

TEST(RolesTest, OwnersAreAdminWhateverTheGrantsSay) {
  const Roles roles({}, kOwnUid);

  EXPECT_EQ(roles.On(User(0), "pools/a"), Role::kAdmin);
  EXPECT_EQ(roles.On(User(kOwnUid), "pools/a"), Role::kAdmin);
  EXPECT_EQ(roles.OnAny(User(kOwnUid)), Role::kAdmin);
  EXPECT_EQ(roles.On(User(1), "pools/a"), Role::kNone);
  EXPECT_EQ(roles.OnAny(User(1)), Role::kNone);
}

TEST(RolesTest, ACertificateOwnsNothing) {
  const Roles roles({}, kOwnUid);

  // The members of a Unix caller are not read: uid is 0 in this one.
  EXPECT_EQ(roles.On(Certificate("spiffe://a/root"), "pools/a"), Role::kNone);
  EXPECT_EQ(roles.OnAny(Certificate("uid:0")), Role::kNone);
}

TEST(RolesTest, WithoutConfigurationTheSocketsGroupOperates) {
  const Roles roles(DefaultGrants(44), kOwnUid);

  EXPECT_EQ(roles.On(User(1, 44), "pools/a"), Role::kOperator);
  EXPECT_EQ(roles.On(User(1, 100, {7, 44}), "pools/a"), Role::kOperator);
  EXPECT_EQ(roles.On(User(1, 100, {7}), "pools/a"), Role::kViewer);
  EXPECT_EQ(roles.On(Certificate("spiffe://a/b"), "pools/a"), Role::kNone);
}

TEST(RolesTest, TheHighestGrantOfASubjectCounts) {
  RoleGrant viewer{.role = Role::kViewer, .users = {5}};
  RoleGrant admin_of_b{
      .role = Role::kAdmin, .users = {5}, .subjects = {"pools/b"}};
  RoleGrant group{.role = Role::kOperator, .groups = {8}};
  const Roles roles({viewer, admin_of_b, group}, kOwnUid);

  EXPECT_EQ(roles.On(User(5), "pools/a"), Role::kViewer);
  EXPECT_EQ(roles.On(User(5), "pools/b"), Role::kAdmin);
  EXPECT_EQ(roles.On(User(5), "pools/bb"), Role::kViewer);
  EXPECT_EQ(roles.On(User(5, 8), "pools/a"), Role::kOperator);
  EXPECT_EQ(roles.On(User(5, 8), "pools/b"), Role::kAdmin);
  EXPECT_EQ(roles.OnAny(User(5)), Role::kAdmin);
  EXPECT_EQ(roles.On(User(6), "pools/b"), Role::kNone);
}

TEST(RolesTest, IdentitiesMatchWholeOrBelowAPath) {
  const Roles roles({{.role = Role::kOperator,
                      .identities = {"spiffe://fleet/ops/*", "web-1.example"}}},
                    kOwnUid);
  const auto role = [&](const char* identity) {
    return roles.On(Certificate(identity), "pools/a");
  };

  EXPECT_EQ(role("spiffe://fleet/ops/alice"), Role::kOperator);
  EXPECT_EQ(role("spiffe://fleet/ops/a/b"), Role::kOperator);
  EXPECT_EQ(role("web-1.example"), Role::kOperator);
  for (const char* other :
       {"spiffe://fleet/ops/", "spiffe://fleet/ops", "spiffe://fleet/opsx/a",
        "spiffe://fleet/dev/alice", "xspiffe://fleet/ops/a",
        "web-1.example.org", "web-1", ""}) {
    EXPECT_EQ(role(other), Role::kNone) << other;
  }
}

TEST(RolesTest, UsersAndGroupsAreNoCertificates) {
  const Roles roles({{.role = Role::kViewer, .every_user = true}}, kOwnUid);

  EXPECT_EQ(roles.On(User(1), "pools/a"), Role::kViewer);
  EXPECT_EQ(roles.On(Certificate("spiffe://a/b"), "pools/a"), Role::kNone);
}

TEST(MethodTableTest, KnowsMethodsByNameAndPath) {
  ASSERT_NE(FindMethod("TuningService/Drain"), nullptr);
  EXPECT_EQ(FindMethodByPath("/memtuned.v1.TuningService/Drain"),
            FindMethod("TuningService/Drain"));
  EXPECT_EQ(FindMethodByPath("/grpc.health.v1.Health/Check"),
            FindMethod("grpc.health.v1.Health/Check"));
  for (const char* path :
       {"", "/", "TuningService/Drain", "/TuningService/Drain",
        "/memtuned.v2.TuningService/Drain", "/memtuned.v1.TuningService/Drai",
        "/memtuned.v1.grpc.health.v1.Health/Check"}) {
    EXPECT_EQ(FindMethodByPath(path), nullptr) << path;
  }
}

TEST(MethodTableTest, OnlyOperatorsAndAdminsMutate) {
  std::set<std::string_view> names;
  for (const MethodRule& rule : MethodTable()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " twice";
    EXPECT_NE(rule.role, Role::kNone) << rule.name;
    if (!rule.mutates) continue;
    EXPECT_GE(rule.role, Role::kOperator) << rule.name;
    EXPECT_TRUE(rule.on_subject) << rule.name;
  }
}

}  // namespace
}  // namespace memtuned
