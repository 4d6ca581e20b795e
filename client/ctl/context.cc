// SPDX-License-Identifier: Apache-2.0
// Implementation of context.h.
#include "client/ctl/context.h"

#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace memtuned::ctl {
namespace {

constexpr char kCurrent[] = "current-context";
constexpr char kContexts[] = "contexts";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string ContextFile() {
  std::string named = Environment("MEMTUNECTL_CONFIG");
  if (!named.empty()) return named;
  const std::string folder = Environment("XDG_CONFIG_HOME");
  if (!folder.empty()) return folder + "/memtunectl.yaml";
  const std::string home = Environment("HOME");
  return home.empty() ? "" : home + "/.config/memtunectl.yaml";
}

absl::Status Wrong(const std::string& file, const YAML::Node& node,
                   const std::string& what) {
  return absl::InvalidArgumentError(
      file + ":" + std::to_string(node.Mark().line + 1) + ": " + what);
}

// A scalar, or a list of them with commas between.
std::string TextOf(const YAML::Node& node) {
  if (!node.IsSequence()) return node.as<std::string>();
  std::string text;
  for (const auto& item : node) {
    text += (text.empty() ? "" : ",") + item.as<std::string>();
  }
  return text;
}

absl::StatusOr<Context> ReadFields(const YAML::Node& fields,
                                   const std::string& file,
                                   const std::string& name) {
  Context context;
  const std::pair<const char*, std::string*> known[] = {
      {"target", &context.target},
      {"targets", &context.targets},
      {"tls-ca", &context.tls.ca},
      {"tls-certificate", &context.tls.certificate},
      {"tls-key", &context.tls.key},
      {"tls-server-name", &context.tls.server_name}};
  std::string allowed;
  for (const auto& [key, value] : known) {
    allowed += (allowed.empty() ? "" : ", ") + std::string(key);
  }
  if (!fields.IsMap()) {
    return Wrong(file, fields,
                 "context " + name + " has no keys; allowed " + allowed);
  }
  for (const auto& field : fields) {
    const auto key = field.first.as<std::string>();
    std::string* value = nullptr;
    for (const auto& [word, place] : known) {
      if (key == word) value = place;
    }
    if (value == nullptr) {
      return Wrong(file, field.first,
                   absl::StrCat("context ", name, ": '", key,
                                "' is no key; allowed ", allowed));
    }
    *value = TextOf(field.second);
  }
  return context;
}

void FillUp(std::string* value, const std::string& otherwise) {
  if (value->empty()) *value = otherwise;
}

}  // namespace

absl::StatusOr<Context> ReadContext(const std::string& text,
                                    const std::string& file,
                                    const std::string& name) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) return Context{};
    for (const auto& field : root) {
      const auto key = field.first.as<std::string>();
      if (key != kCurrent && key != kContexts) {
        return Wrong(
            file, field.first,
            "'" + key + "' is no key; allowed " + kCurrent + ", " + kContexts);
      }
    }
    std::string wanted = name;
    if (wanted.empty() && root[kCurrent]) {
      wanted = root[kCurrent].as<std::string>();
    }
    if (wanted.empty()) return Context{};
    const YAML::Node contexts = root[kContexts];
    if (contexts && contexts.IsMap() && contexts[wanted]) {
      return ReadFields(contexts[wanted], file, wanted);
    }
    std::string there;
    for (const auto& context : contexts) {
      there += (there.empty() ? "" : ", ") + context.first.as<std::string>();
    }
    return absl::InvalidArgumentError(file + ": there is no context '" +
                                      wanted + "'; it has " +
                                      (there.empty() ? "none" : there));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        file + ":" + std::to_string(error.mark.line + 1) + ": " + error.msg);
  }
}

absl::StatusOr<Context> ContextOf(const Invocation& invocation) {
  Context context;
  context.target = invocation.Text("--target");
  context.targets = invocation.Text("--targets");
  context.tls = {
      invocation.Text("--tls-ca"), invocation.Text("--tls-certificate"),
      invocation.Text("--tls-key"), invocation.Text("--tls-server-name")};
  if (!context.target.empty() && !context.targets.empty()) {
    return absl::InvalidArgumentError(
        "--target and --targets exclude each other");
  }
  const std::string name = invocation.Text("--context");
  const bool has_target = !context.target.empty() || !context.targets.empty();
  if (name.empty() && (has_target || !Environment("MEMTUNED_TARGET").empty())) {
    return context;
  }
  const std::string path = ContextFile();
  std::ifstream file(path);
  if (!file) {
    if (name.empty() && (path.empty() || errno == ENOENT)) return context;
    return absl::InvalidArgumentError("cannot read the contexts in '" + path +
                                      "': " + std::strerror(errno) +
                                      " ($MEMTUNECTL_CONFIG names the file)");
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto from_file = ReadContext(text, path, name);
  if (!from_file.ok()) return from_file;
  if (!has_target) {
    context.target = from_file->target;
    context.targets = from_file->targets;
  }
  FillUp(&context.tls.ca, from_file->tls.ca);
  FillUp(&context.tls.certificate, from_file->tls.certificate);
  FillUp(&context.tls.key, from_file->tls.key);
  FillUp(&context.tls.server_name, from_file->tls.server_name);
  return context;
}

}  // namespace memtuned::ctl
