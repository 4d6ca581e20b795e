// SPDX-License-Identifier: Apache-2.0
// Plain values of the core and of subjects to and from memtuned.v1 messages.
// No decision is made here. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_CONVERT_H_
#define MEMTUNED_DAEMON_RPC_CONVERT_H_

#include <functional>
#include <optional>
#include <string>

#include "core/stats.h"
#include "core/tunables.h"
#include "daemon/subject.h"
#include "memtuned/v1/stats.pb.h"
#include "memtuned/v1/topology.pb.h"
#include "memtuned/v1/tuning.pb.h"

namespace memtuned {

google::protobuf::Timestamp ToTimestamp(double unix_seconds);
google::protobuf::Duration ToDuration(double seconds);
double UnixNow();

// convert_tuning.cc
v1::Value ToProto(const TunableValue& value);
// Nothing when the oneof is unset.
std::optional<TunableValue> FromProto(const v1::Value& value);
v1::Tunable ToProto(const std::string& subject, const TunableState& state);
// Fills generation, etag, values, effects and, unless planned, the name.
void FillChange(const std::string& subject, const ChangeResult& result,
                v1::Change& change);
// Per-CPU rows are left out as a whole beyond kMaxCpuDrains of them.
inline constexpr size_t kMaxCpuDrains = 100000;
v1::DrainResult ToProto(const std::string& subject, const DrainResult& result);

// convert_stats.cc
v1::SampleInfo MakeSampleInfo(const Snapshot& snapshot);
v1::Zone ToProto(const Snapshot& snapshot, const ZoneSnapshot& zone);
v1::Pageset ToProto(const Snapshot& snapshot, const ZoneSnapshot& zone,
                    const PagesetSnapshot& pageset);
v1::Process ToProto(const Snapshot& snapshot, const ProcessSnapshot& process);
v1::NodeHoldings ToProto(const Snapshot& snapshot, const NodeHoldings& node);
// Everything but zones and stats.
void FillSubjectStats(const Snapshot& snapshot, v1::Snapshot& out);
// Walks StatTable(): the samples the metrics endpoint shows, in its order,
// from number `from` on.
// Returns: the number of the first sample that `visit` said no to, -1 when
// there was none.
int64_t VisitStats(const Snapshot& snapshot, bool per_cpu, int64_t from,
                   const std::function<bool(v1::Stat)>& visit);

// convert_topology.cc
// `zones` may be null: Node.zones stays empty.
v1::Topology TopologyOf(const Subject& subject, const Snapshot* zones);
// `snapshot` may be null: the state is UNKNOWN.
v1::Subject DescribeSubject(Subject& subject, const Snapshot* snapshot);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_CONVERT_H_
