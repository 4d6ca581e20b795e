// SPDX-License-Identifier: Apache-2.0
// Subjects and topologies as messages.
#include <cstring>

#include "daemon/rpc/convert.h"
#include "daemon/rpc/names.h"

namespace memtuned {
namespace {

v1::TopologySource ToSource(TopologySource source) {
  switch (source) {
    case TopologySource::kLive:
      return v1::TOPOLOGY_SOURCE_LIVE;
    case TopologySource::kXml:
      return v1::TOPOLOGY_SOURCE_XML;
    case TopologySource::kSynthetic:
      return v1::TOPOLOGY_SOURCE_SYNTHETIC;
  }
  return v1::TOPOLOGY_SOURCE_UNSPECIFIED;
}

v1::SubjectState ToState(const Snapshot* snapshot) {
  if (snapshot == nullptr) return v1::SUBJECT_STATE_UNKNOWN;
  if (snapshot->degraded) return v1::SUBJECT_STATE_DEGRADED;
  for (const ZoneSnapshot& zone : snapshot->zones) {
    if (zone.state == ZoneState::kInitialising) {
      return v1::SUBJECT_STATE_INITIALISING;
    }
  }
  return snapshot->ready ? v1::SUBJECT_STATE_READY
                         : v1::SUBJECT_STATE_INITIALISING;
}

v1::SubjectKind ToKind(const char* kind) {
  if (std::strcmp(kind, "pool") == 0) return v1::SUBJECT_KIND_POOL;
  if (std::strcmp(kind, "host") == 0) return v1::SUBJECT_KIND_HOST;
  return v1::SUBJECT_KIND_UNSPECIFIED;
}

}  // namespace

v1::Topology TopologyOf(const Subject& subject, const Snapshot* zones) {
  const Topology& topology = subject.topology();
  v1::Topology out;
  out.set_name(subject.name());
  out.set_source(ToSource(topology.source));
  out.set_description(topology.description);
  for (size_t i = 0; i < topology.nodes.size(); ++i) {
    const TopologyNode& node = topology.nodes[i];
    v1::Node& row = *out.add_nodes();
    row.set_name(NodeName(subject.name(), node.os_index));
    row.set_os_index(node.os_index);
    row.set_memory_bytes(node.memory_bytes);
    row.mutable_cpus()->Add(node.cpus.begin(), node.cpus.end());
    row.mutable_near_cpus()->Add(node.near_cpus.begin(), node.near_cpus.end());
    if (i < topology.distances.size()) {
      const std::vector<int>& distances = topology.distances[i];
      row.mutable_distances()->Add(distances.begin(), distances.end());
    }
    if (zones == nullptr) continue;
    for (const ZoneSnapshot& zone : zones->zones) {
      if (zone.node == node.os_index) row.add_zones(zone.zone);
    }
  }
  out.mutable_homeless_cpus()->Add(topology.homeless_cpus.begin(),
                                   topology.homeless_cpus.end());
  out.mutable_offline_cpus()->Add(topology.offline_cpus.begin(),
                                  topology.offline_cpus.end());
  for (const std::string& warning : topology.warnings) {
    out.add_warnings(warning);
  }
  return out;
}

v1::Subject DescribeSubject(Subject& subject, const Snapshot* snapshot) {
  v1::Subject out;
  out.set_name(subject.name());
  out.set_kind(ToKind(subject.kind()));
  out.set_state(ToState(snapshot));
  const SubjectVersion version = subject.Version();
  out.set_generation(version.generation);
  out.set_etag(version.etag);
  bool writable = false;
  for (const TunableState& state : subject.Tunables()) {
    writable = writable || state.writable;
  }
  if (writable) out.add_capabilities("set");
  for (const char* name : {"recalculate", "drain", "processes", "watch"}) {
    out.add_capabilities(name);
  }
  if (snapshot == nullptr) return out;
  out.set_page_size_bytes(static_cast<int32_t>(snapshot->page_size_bytes));
  out.set_size_bytes(static_cast<int64_t>(snapshot->size_bytes));
  out.set_initialised_bytes(static_cast<int64_t>(snapshot->initialised_bytes));
  out.set_policy(snapshot->policy);
  out.set_degraded_reason(snapshot->degraded_reason);
  return out;
}

}  // namespace memtuned
