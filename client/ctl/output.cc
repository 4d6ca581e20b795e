// SPDX-License-Identifier: Apache-2.0
// Implementation of output.h.
#include "client/ctl/output.h"

#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

namespace memtuned::ctl {
namespace {

// The tag yaml-cpp gives to a scalar that stood in quotes.
constexpr char kQuoted[] = "!";

// Whether a plain YAML scalar would read back as something else than text.
bool NeedsQuotes(const std::string& text) {
  static const std::string kSafeStart =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/_";
  for (const char* word :
       {"true", "false", "null", "yes", "no",  "on",   "off",   "True", "False",
        "Null", "Yes",   "No",   "On",  "Off", "TRUE", "FALSE", "NULL", "YES",
        "NO",   "ON",    "OFF",  "y",   "n",   "Y",    "N"}) {
    if (text == word) return true;
  }
  return text.empty() || kSafeStart.find(text[0]) == std::string::npos;
}

void Emit(YAML::Emitter& out, const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      if (node.size() == 0) out << YAML::Flow;
      out << YAML::BeginMap;
      for (const auto& entry : node) {
        out << YAML::Key << entry.first.Scalar() << YAML::Value;
        Emit(out, entry.second);
      }
      out << YAML::EndMap;
      break;
    case YAML::NodeType::Sequence:
      if (node.size() == 0) out << YAML::Flow;
      out << YAML::BeginSeq;
      for (const auto& item : node) Emit(out, item);
      out << YAML::EndSeq;
      break;
    case YAML::NodeType::Scalar:
      if (node.Tag() == kQuoted && NeedsQuotes(node.Scalar())) {
        out << YAML::DoubleQuoted;
      }
      out << node.Scalar();
      break;
    default:
      out << YAML::Null;
  }
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message, bool pretty) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  options.add_whitespace = pretty;
  std::string text;
  const auto status =
      google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) return "{}";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string JsonToYaml(const std::string& json) {
  YAML::Emitter out;
  Emit(out, YAML::Load(json));
  return out.c_str();
}

void PrintDocument(std::ostream& out, const std::string& json, bool yaml) {
  if (yaml) {
    out << "---\n" << JsonToYaml(json) << '\n';
  } else {
    out << json << '\n';
  }
}

}  // namespace memtuned::ctl
