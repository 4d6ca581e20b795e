// SPDX-License-Identifier: Apache-2.0
// What is served, and on which machine.
#include "daemon/rpc/topology_service.h"

#include "daemon/rpc/convert.h"
#include "daemon/rpc/errors.h"
#include "daemon/rpc/names.h"
#include "daemon/rpc/paging.h"

namespace memtuned {

grpc::Status TopologyService::ListSubjects(
    grpc::ServerContext* context, const v1::ListSubjectsRequest* request,
    v1::ListSubjectsResponse* response) {
  const auto caller =
      gate_->Admit(*context, {.method = "TopologyService/ListSubjects"});
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto size = PageSize(request->page_size(), 100, 1000);
  if (!size.ok()) return ToGrpcStatus(size.status());
  const auto from = ParsePageToken(request->page_token(), "subjects");
  if (!from.ok()) return ToGrpcStatus(from.status());

  const auto& subjects = registry_->subjects();
  size_t at = static_cast<size_t>(from->first);
  for (; at < subjects.size() && response->subjects_size() < *size; ++at) {
    if (!gate_->MaySee(*caller, subjects[at].subject->name())) continue;
    const auto latest = subjects[at].sampler->Latest();
    *response->add_subjects() =
        DescribeSubject(*subjects[at].subject, latest.get());
  }
  if (at < subjects.size()) {
    response->set_next_page_token(
        MakePageToken("subjects", {static_cast<int64_t>(at), 0}));
  }
  response->set_daemon_version(version_);
  return grpc::Status::OK;
}

grpc::Status TopologyService::GetTopology(grpc::ServerContext* context,
                                          const v1::GetTopologyRequest* request,
                                          v1::GetTopologyResponse* response) {
  const auto caller = gate_->Admit(
      *context,
      {.method = "TopologyService/GetTopology", .resource = request->name()});
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto name = ParseName(request->name(), "name", NameDepth::kSubject);
  if (!name.ok()) return ToGrpcStatus(name.status());
  const auto served = registry_->Find(name->subject);
  if (!served.ok()) return ToGrpcStatus(served.status());

  const auto latest = served->sampler->Latest();
  *response->mutable_topology() = TopologyOf(*served->subject, latest.get());
  return grpc::Status::OK;
}

}  // namespace memtuned
