// SPDX-License-Identifier: Apache-2.0
// Messages for scripts: proto JSON and the same as YAML. Several messages
// make several documents, as `jq` and YAML readers expect of a stream.
#ifndef MEMTUNED_CLIENT_CTL_OUTPUT_H_
#define MEMTUNED_CLIENT_CTL_OUTPUT_H_

#include <ostream>
#include <string>

namespace google::protobuf {
class Message;
}

namespace memtuned::ctl {

// Proto JSON with the field names of the proto files and every plain field,
// zero or not. One line unless `pretty`.
std::string ToJson(const google::protobuf::Message& message, bool pretty);

// Block-style YAML of a JSON text; what was a string stays one.
// REQUIRES: `json` is valid.
std::string JsonToYaml(const std::string& json);

// `json` as a document of its own: itself, or YAML after "---".
void PrintDocument(std::ostream& out, const std::string& json, bool yaml);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_OUTPUT_H_
