// SPDX-License-Identifier: Apache-2.0
// Who may call what: every method of every service the server says it has,
// called by users of every role over real sockets.
#include "daemon/rpc/gate.h"

#include <gmock/gmock.h>
#include <google/protobuf/dynamic_message.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "daemon/rpc/change_audit.h"
#include "nlohmann/json.hpp"
#include "tests/daemon/rpc/other_user.h"
#include "tests/daemon/rpc/test_server.h"

namespace memtuned {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kReflection[] = "grpc.reflection.v1alpha.ServerReflection";

grpc::ByteBuffer Bytes(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

std::unique_ptr<Message> New(const Descriptor* type) {
  return std::unique_ptr<Message>(
      MessageFactory::generated_factory()->GetPrototype(type)->New());
}

std::string PathOf(const MethodDescriptor& method) {
  return "/" + method.service()->full_name() + "/" + method.name();
}

// Calls any method, whatever its kind, and reads at most one answer, which
// stays empty without one.
grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                  const std::string& path, const Message& request,
                  grpc::ByteBuffer* answer = nullptr) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  auto context = Soon();
  const auto wait = [&] {
    void* tag;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  auto call = stub.PrepareCall(context.get(), path, &queue);
  call->StartCall(nullptr);
  bool open = wait();
  if (open) {
    call->WriteLast(Bytes(request), grpc::WriteOptions(), nullptr);
    wait();
    grpc::ByteBuffer first;
    call->Read(&first, nullptr);
    if (wait()) {
      if (answer != nullptr) *answer = first;
      // A stream that would go on.
      context->TryCancel();
    }
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  return status;
}

// A request of the method for the subject; it changes nothing that works.
std::unique_ptr<Message> RequestFor(const MethodDescriptor& method,
                                    const std::string& subject) {
  std::unique_ptr<Message> request = New(method.input_type());
  for (const char* name : {"parent", "name"}) {
    const auto* field = method.input_type()->FindFieldByName(name);
    if (field != nullptr) {
      request->GetReflection()->SetString(request.get(), field, subject);
    }
  }
  return request;
}

// All services: those reflection lists, and health, which it does not.
std::vector<const ServiceDescriptor*> Services(TestServer& server) {
  const DescriptorPool* pool = DescriptorPool::generated_pool();
  const auto* reflection = pool->FindServiceByName(kReflection);
  auto request = New(reflection->method(0)->input_type());
  request->GetReflection()->SetString(
      request.get(), request->GetDescriptor()->FindFieldByName("list_services"),
      "*");
  grpc::ByteBuffer bytes;
  Call(server.channel(), PathOf(*reflection->method(0)), *request, &bytes);
  grpc::Slice slice;
  EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
  auto answer = New(reflection->method(0)->output_type());
  EXPECT_TRUE(
      answer->ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
  const auto* listed_field =
      answer->GetDescriptor()->FindFieldByName("list_services_response");
  const Message& listed =
      answer->GetReflection()->GetMessage(*answer, listed_field);
  const auto* service_field =
      listed.GetDescriptor()->FindFieldByName("service");
  std::set<const ServiceDescriptor*> services = {
      pool->FindServiceByName("grpc.health.v1.Health")};
  const int count = listed.GetReflection()->FieldSize(listed, service_field);
  for (int i = 0; i < count; ++i) {
    const Message& service =
        listed.GetReflection()->GetRepeatedMessage(listed, service_field, i);
    services.insert(pool->FindServiceByName(service.GetReflection()->GetString(
        service, service.GetDescriptor()->FindFieldByName("name"))));
  }
  return {services.begin(), services.end()};
}

std::vector<const MethodDescriptor*> Methods(TestServer& server) {
  std::vector<const MethodDescriptor*> methods;
  for (const ServiceDescriptor* service : Services(server)) {
    for (int i = 0; i < service->method_count(); ++i) {
      methods.push_back(service->method(i));
    }
  }
  return methods;
}

constexpr uid_t kNobody = 4000, kViewer = 4001, kOperator = 4002, kAdmin = 4003;

RpcServerOptions WithRoles() {
  RpcServerOptions options;
  options.socket_mode = 0666;
  options.roles = {
      {.role = Role::kViewer, .users = {kViewer}},
      {.role = Role::kOperator, .groups = {kOperator}},
      {.role = Role::kAdmin, .users = {kAdmin}, .subjects = {"pools/default"}}};
  return options;
}

class GateTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "becomes other users: needs root";
  }

  std::shared_ptr<grpc::Channel> As(uid_t uid, std::vector<gid_t> groups = {}) {
    return ChannelAs(server_.listen(), {uid, 100, std::move(groups)});
  }

  nlohmann::json LastAuditLine() {
    const auto lines = server_.audit();
    return lines.empty() ? nlohmann::json()
                         : nlohmann::json::parse(lines.back());
  }

  grpc::Status SetFactor(const std::shared_ptr<grpc::Channel>& channel,
                         double factor, const std::string& id = "",
                         const std::string& subject = "pools/default") {
    v1::SetTunablesRequest request;
    request.set_parent(subject);
    request.set_reason("because");
    request.set_request_id(id);
    v1::Assignment& assignment = *request.add_assignments();
    assignment.set_tunable("pageset.batch_factor");
    assignment.mutable_value()->set_real(factor);
    v1::SetTunablesResponse response;
    return v1::TuningService::NewStub(channel)->SetTunables(Soon().get(),
                                                            request, &response);
  }

  TestServer server_{
      {{.name = "pools/default"}, {.name = "pools/other"}}, {}, WithRoles()};
};

TEST_F(GateTest, EveryMethodHasARuleAndEveryRuleAMethod) {
  std::set<const MethodRule*> used;
  for (const MethodDescriptor* method : Methods(server_)) {
    const MethodRule* rule = FindMethodByPath(PathOf(*method));
    EXPECT_NE(rule, nullptr) << PathOf(*method) << " has no rule";
    used.insert(rule);
    if (rule == nullptr || !rule->IsOurs()) continue;
    // What a rule says of the request is what the request has.
    const bool names_subject =
        method->input_type()->FindFieldByName("parent") != nullptr ||
        method->input_type()->FindFieldByName("name") != nullptr;
    EXPECT_EQ(rule->on_subject, names_subject) << rule->name;
    EXPECT_EQ(rule->mutates,
              method->input_type()->FindFieldByName("request_id") != nullptr)
        << rule->name;
  }

  for (const MethodRule& rule : MethodTable()) {
    EXPECT_EQ(used.count(&rule), 1u) << rule.name << " is no method";
  }
}

TEST_F(GateTest, RolesDecideEveryMethod) {
  const std::map<uid_t, Role> users = {{kNobody, Role::kNone},
                                       {kViewer, Role::kViewer},
                                       {kOperator, Role::kOperator},
                                       {kAdmin, Role::kAdmin}};
  int denied = 0;
  for (const auto& [uid, role] : users) {
    const auto channel = As(uid, {uid});
    for (const MethodDescriptor* method : Methods(server_)) {
      const std::string path = PathOf(*method);
      const bool may = role >= FindMethodByPath(path)->role;
      denied += may ? 0 : 1;

      const grpc::Status status =
          Call(channel, path, *RequestFor(*method, "pools/default"));

      EXPECT_EQ(status.error_code() != StatusCode::PERMISSION_DENIED, may)
          << uid << " " << path << " " << status.error_message();
      EXPECT_NE(status.error_code(), StatusCode::UNIMPLEMENTED) << path;
      if (may || !FindMethodByPath(path)->IsOurs()) continue;
      const auto info = DetailsOf(status).info;
      EXPECT_EQ(info.reason(), "ROLE_MISSING") << path;
      EXPECT_EQ(info.metadata().at("caller"), "uid:" + std::to_string(uid));
      EXPECT_EQ(info.metadata().at("role_needed"),
                RoleName(FindMethodByPath(path)->role));
    }
  }

  EXPECT_GT(denied, 15);
  EXPECT_EQ(server_.observer().denied(), denied);
  int audited = 0;
  for (const std::string& line : server_.audit()) {
    audited += nlohmann::json::parse(line)["decision"] == "denied" ? 1 : 0;
  }
  EXPECT_EQ(audited, denied);
}

TEST_F(GateTest, ARoleOnOneSubjectIsNoneOnAnother) {
  const auto admin = As(kAdmin);

  EXPECT_TRUE(SetFactor(admin, 2).ok());
  const grpc::Status other = SetFactor(admin, 2, "", "pools/other");
  v1::ListSubjectsResponse subjects;
  const grpc::Status listed = v1::TopologyService::NewStub(admin)->ListSubjects(
      Soon().get(), {}, &subjects);

  EXPECT_EQ(other.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(server_.subject(1).applied(), 0);
  ASSERT_TRUE(listed.ok()) << listed.error_message();
  ASSERT_EQ(subjects.subjects_size(), 1);
  EXPECT_EQ(subjects.subjects(0).name(), "pools/default");
  // Not even whether there is such a subject is told.
  EXPECT_EQ(SetFactor(admin, 2, "", "pools/none").error_code(),
            StatusCode::PERMISSION_DENIED);
}

TEST_F(GateTest, NewRolesHoldForTheNextCallOfAnOldConnection) {
  const auto channel = As(kViewer);
  EXPECT_EQ(SetFactor(channel, 2).error_code(), StatusCode::PERMISSION_DENIED);

  server_.server().SetRoles({{.role = Role::kOperator, .users = {kViewer}}});
  EXPECT_TRUE(SetFactor(channel, 2).ok());
  server_.server().SetRoles({});  // the socket's group, which is root's

  EXPECT_EQ(SetFactor(channel, 3).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(SetFactor(As(kNobody, {getegid()}), 3).ok());
}

TEST_F(GateTest, AuditsWhatIsDoneAndWhatIsNot) {
  const auto channel = As(4100, {kOperator});

  SetFactor(channel, 2, "one");
  auto line = LastAuditLine();
  EXPECT_EQ(line["decision"], "applied");
  EXPECT_EQ(line["caller"], "uid:4100");
  EXPECT_EQ(line["gid"], "100");
  EXPECT_EQ(line["pid"], std::to_string(getpid()));
  EXPECT_EQ(line["method"], "TuningService/SetTunables");
  EXPECT_EQ(line["subject"], "pools/default");
  EXPECT_EQ(line["before"], "pageset.batch_factor=1");
  EXPECT_EQ(line["after"], "pageset.batch_factor=2");
  EXPECT_EQ(line["generation"], "1");
  EXPECT_EQ(line["request_id"], "one");
  EXPECT_EQ(line["reason"], "because");

  SetFactor(channel, 2, "one");
  EXPECT_EQ(LastAuditLine()["decision"], "repeated");
  EXPECT_EQ(LastAuditLine()["generation"], "1");
  SetFactor(channel, 99);
  EXPECT_EQ(LastAuditLine()["decision"], "refused");
  EXPECT_THAT(LastAuditLine()["error"].get<std::string>(),
              HasSubstr("allowed 0.25 to 8"));
  SetFactor(As(kViewer), 3, "two");
  line = LastAuditLine();
  EXPECT_EQ(line["decision"], "denied");
  EXPECT_EQ(line["caller"], "uid:4001");
  EXPECT_EQ(line["request_id"], "two");
  EXPECT_THAT(line["error"].get<std::string>(),
              HasSubstr("needs role operator on 'pools/default'; 'uid:4001' "
                        "has viewer"));
  EXPECT_EQ(server_.audit().size(), 4u);
}

TEST_F(GateTest, AuditsPlansDrainsAndRecalculations) {
  v1::DrainRequest drain;
  drain.set_parent("pools/default");
  drain.mutable_scope()->add_nodes(0);
  v1::DrainResponse drained;
  ASSERT_TRUE(server_.tuning().Drain(Soon().get(), drain, &drained).ok());
  EXPECT_EQ(LastAuditLine()["method"], "TuningService/Drain");
  EXPECT_EQ(LastAuditLine()["before"],
            "pools/default/nodes/0/zones/Normal pages=80");
  EXPECT_EQ(LastAuditLine()["after"],
            "pools/default/nodes/0/zones/Normal pages=0");

  v1::RecalculateRequest recalculate;
  recalculate.set_parent("pools/default");
  recalculate.set_validate_only(true);
  v1::RecalculateResponse planned;
  ASSERT_TRUE(
      server_.tuning().Recalculate(Soon().get(), recalculate, &planned).ok());

  EXPECT_EQ(LastAuditLine()["decision"], "planned");
}

TEST_F(GateTest, AuditsTheLimitsARecalculationMovedAndNotWithoutEnd) {
  v1::RecalculateResponse response;
  for (int i = 0; i < 66; ++i) {
    v1::Effect& effect = *response.mutable_change()->add_effects();
    effect.set_where("nodes/0/zones/Normal");
    effect.set_what("batch");
    effect.set_before(7);
    effect.set_after(63);
  }

  const LogFields fields = AuditFieldsOf(response);

  EXPECT_THAT(fields[1].second,
              StartsWith("nodes/0/zones/Normal batch=7, nodes/0/"));
  EXPECT_THAT(fields[2].second, HasSubstr("batch=63, and 2 more"));
}

TEST_F(GateTest, TheSameIdOfAnotherCallerIsAnother) {
  EXPECT_TRUE(SetFactor(As(4100, {kOperator}), 2, "one").ok());
  EXPECT_TRUE(SetFactor(As(4101, {kOperator}), 3, "one").ok());

  EXPECT_EQ(server_.subject().applied(), 2);
}

TEST_F(GateTest, TellsWhoMadeTheChangeAnEtagMissed) {
  const std::string old = server_.subject().Version().etag;
  ASSERT_TRUE(SetFactor(As(4100, {kOperator}), 2).ok());
  v1::RecalculateRequest request;
  request.set_parent("pools/default");
  request.set_etag(old);
  v1::RecalculateResponse response;

  const grpc::Status status =
      server_.tuning().Recalculate(Soon().get(), request, &response);

  EXPECT_EQ(status.error_code(), StatusCode::ABORTED);
  const auto info = DetailsOf(status).info;
  EXPECT_EQ(info.metadata().at("etag"), server_.subject().Version().etag);
  EXPECT_EQ(info.metadata().at("changed_by"), "uid:4100");
}

TEST_F(GateTest, RefusesACallerWhoChangesTooMuch) {
  server_.server().SetMutationsPerMinute(3);
  const auto busy = As(4100, {kOperator});
  int64_t refused = 0;
  grpc::Status last;
  for (int i = 0; i < 20; ++i) {
    const grpc::Status status = SetFactor(busy, 2);
    if (status.ok()) continue;
    ++refused;
    last = status;
  }

  EXPECT_GE(refused, 16);
  EXPECT_EQ(last.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailsOf(last).info.reason(), "TOO_MANY_CALLS");
  EXPECT_GT(DetailsOf(last).retry.retry_delay().seconds(), 5);
  EXPECT_EQ(server_.subject().applied(), 20 - refused);
  EXPECT_TRUE(SetFactor(As(4101, {kOperator}), 2).ok());
  // The first refused call is on record, the flood is not.
  EXPECT_EQ(server_.audit().size(), static_cast<size_t>(20 - refused + 1 + 1));
  // Reading goes on.
  v1::ListTunablesRequest request;
  request.set_parent("pools/default");
  v1::ListTunablesResponse response;
  EXPECT_TRUE(v1::TuningService::NewStub(busy)
                  ->ListTunables(Soon().get(), request, &response)
                  .ok());
}

TEST_F(GateTest, AFloodOfDeniedCallsIsCountedButDoesNotFillTheLog) {
  server_.server().SetMutationsPerMinute(3);
  const auto channel = As(kNobody);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(SetFactor(channel, 2).error_code(),
              StatusCode::PERMISSION_DENIED);
  }

  EXPECT_EQ(server_.observer().denied(), 50);
  EXPECT_LE(server_.audit().size(), 5u);
}

}  // namespace
}  // namespace memtuned
