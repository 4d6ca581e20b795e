// SPDX-License-Identifier: Apache-2.0
// Short words for what the messages hold: resource names, states, values.
#ifndef MEMTUNED_CLIENT_CTL_LABELS_H_
#define MEMTUNED_CLIENT_CTL_LABELS_H_

#include <memtuned/v1/stats.pb.h>
#include <memtuned/v1/topology.pb.h>
#include <memtuned/v1/tuning.pb.h>

#include <string>
#include <string_view>

#include "client/ctl/format.h"
#include "client/ctl/table_printer.h"
#include "core/tunables.h"

namespace memtuned::ctl {

// "pools/default/nodes/0/zones/Normal/pagesets/3" -> "0/Normal"; a name
// without node and zone stays as it is.
std::string ZoneLabel(std::string_view resource);
// What follows the last "/tunables/", "/processes/" ... of a name.
std::string LastPart(std::string_view resource);

// "ready", "initialising 12 %" (by managed of present memory), ...
Cell ZoneStateCell(const v1::Zone& zone, const Formatter& format);
// "ok", "stale: expected 63/378", "unknown".
Cell LimitsCell(const v1::LimitsCheck& limits);
// "378" where both are equal, else "614..65536".
std::string RangeText(int64_t min, int64_t max);
// `part` of `whole` in percent; "-" where whole is 0.
std::string ShareText(int64_t part, int64_t whole, const Formatter& format);

Cell SubjectStateCell(v1::SubjectState state);
Cell ProcessStateCell(v1::ProcessState state);
const char* OriginText(v1::Origin origin);
const char* SourceText(v1::TopologySource source);

// As a user would type it; "-" when unset.
std::string ValueText(const v1::Value& value);
v1::Value ToProto(const TunableValue& value);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_LABELS_H_
