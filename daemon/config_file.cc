// SPDX-License-Identifier: Apache-2.0
// Reads the YAML file: a map of settings, under "pool" a map of pools, each
// "SIZE[,key=value...]" or a map, and under "roles" a list of maps.
// Exceptions of yaml-cpp end here.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <set>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/config.h"

namespace memtuned {
namespace {

std::string Where(const std::string& file, const YAML::Mark& mark) {
  return mark.is_null() ? absl::StrCat(file, ": ")
                        : absl::StrCat(file, ":", mark.line + 1, ": ");
}

absl::Status At(const std::string& file, const YAML::Node& node,
                const std::string& message) {
  return absl::InvalidArgumentError(
      absl::StrCat(Where(file, node.Mark()), message));
}

const char* TypeName(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return "a single value";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a map";
    default:
      return "empty";
  }
}

// The key of a map's entry.
absl::StatusOr<std::string> Key(const std::string& file,
                                const YAML::Node& key) {
  if (!key.IsScalar()) {
    return At(file, key,
              absl::StrCat("a key is ", TypeName(key), "; allowed a word"));
  }
  return key.Scalar();
}

std::string Shown(const std::string& key) {
  return absl::Utf8SafeCEscape(key.substr(0, 64));
}

// A value, or a list of them, as parts whose keys start with `before`. `of`
// names what they belong to in messages.
template <typename Part>
absl::Status ReadList(const std::string& file, const std::string& of,
                      const std::string& before, const YAML::Node& key,
                      const YAML::Node& value, std::vector<Part>& parts) {
  const auto name = Key(file, key);
  if (!name.ok()) return name.status();
  const std::string where = Where(file, key.Mark());
  if (value.IsScalar()) {
    parts.push_back({where, before + *name, value.Scalar()});
    return absl::OkStatus();
  }
  bool scalars = value.IsSequence();
  if (scalars) {
    for (const auto& item : value) {
      scalars = scalars && item.IsScalar();
      if (scalars) parts.push_back({where, before + *name, item.Scalar()});
    }
  }
  if (scalars) return absl::OkStatus();
  return At(file, key,
            absl::StrCat(of, ".", before, Shown(*name), " is ", TypeName(value),
                         "; allowed a value or a list of values"));
}

// The users under "attach" or "observe". An empty list would be none at all,
// which lets everyone in.
absl::Status ReadPoolUsers(const std::string& file, const std::string& key,
                           const YAML::Node& key_node, const YAML::Node& value,
                           PoolText& pool) {
  const std::string of = absl::StrCat("pool.", Shown(pool.name));
  const size_t before = pool.parts.size();
  if (value.IsMap()) {
    for (const auto& entry : value) {
      absl::Status read =
          ReadList(file, of, key + ".", entry.first, entry.second, pool.parts);
      if (!read.ok()) return read;
    }
  }
  if (pool.parts.size() > before) return absl::OkStatus();
  return At(file, key_node,
            absl::StrCat(of, ".", key,
                         " names nobody; allowed a map with "
                         "users, groups or both"));
}

absl::Status ReadPool(const std::string& file, const YAML::Node& key,
                      const YAML::Node& value, Config& config) {
  const auto name = Key(file, key);
  if (!name.ok()) return name.status();
  const std::string where = Where(file, key.Mark());
  if (value.IsScalar()) {
    const auto pool = SplitPool(where, *name, value.Scalar());
    return pool.ok() ? AddPool(*pool, config) : pool.status();
  }
  if (!value.IsMap()) {
    return At(file, key,
              absl::StrCat("pool.", Shown(*name), " is ", TypeName(value),
                           "; allowed a size or a map with size"));
  }
  PoolText pool{where, *name, {}};
  std::set<std::string> lists;
  for (const auto& entry : value) {
    const auto part = Key(file, entry.first);
    if (!part.ok()) return part.status();
    if (*part == "attach" || *part == "observe") {
      if (!lists.insert(*part).second) {
        return At(
            file, entry.first,
            absl::StrCat("pool.", Shown(*name), ".", *part, " is given twice"));
      }
      absl::Status read =
          ReadPoolUsers(file, *part, entry.first, entry.second, pool);
      if (!read.ok()) return read;
      continue;
    }
    if (!entry.second.IsScalar()) {
      return At(
          file, entry.first,
          absl::StrCat("pool.", Shown(*name), ".", Shown(*part), " is ",
                       TypeName(entry.second), "; allowed a single value"));
    }
    pool.parts.push_back(
        {Where(file, entry.first.Mark()), *part, entry.second.Scalar()});
  }
  return AddPool(pool, config);
}

absl::Status ReadPools(const std::string& file, const YAML::Node& key,
                       const YAML::Node& pools, Config& config) {
  if (!pools.IsMap()) {
    return At(file, key,
              absl::StrCat("pool is ", TypeName(pools),
                           "; allowed a map from names to sizes"));
  }
  for (const auto& entry : pools) {
    absl::Status read = ReadPool(file, entry.first, entry.second, config);
    if (!read.ok()) return read;
  }
  return absl::OkStatus();
}

absl::Status ReadRoles(const std::string& file, const YAML::Node& key,
                       const YAML::Node& roles, Config& config) {
  bool maps = roles.IsSequence() && roles.size() > 0;
  for (const auto& entry : roles) maps = maps && entry.IsMap();
  if (!maps) {
    return At(file, key,
              "roles is not a list of maps; allowed one or more of {role, "
              "users, groups, identities, subjects}");
  }
  for (const auto& entry : roles) {
    RoleText role{Where(file, entry.Mark()), {}};
    for (const auto& part : entry) {
      absl::Status read =
          ReadList(file, "roles", "", part.first, part.second, role.parts);
      if (!read.ok()) return read;
    }
    absl::Status added = AddRole(role, config);
    if (!added.ok()) return added;
  }
  return absl::OkStatus();
}

absl::Status ReadSetting(const std::string& file, const YAML::Node& key_node,
                         const YAML::Node& value, Config& config) {
  const auto key = Key(file, key_node);
  if (!key.ok()) return key.status();
  if (*key == "pool") return ReadPools(file, key_node, value, config);
  if (*key == "roles") return ReadRoles(file, key_node, value, config);
  const ConfigSetting* setting = FindConfigSetting(*key);
  if (setting == nullptr) {
    std::string known = "pool, roles";
    for (const ConfigSetting& row : ConfigSettings()) {
      absl::StrAppend(&known, ", ", row.key);
    }
    return At(file, key_node,
              absl::StrCat("unknown key '", Shown(*key), "'; allowed ", known));
  }
  if (!value.IsScalar()) {
    return At(file, key_node,
              absl::StrCat(*key, " is ", TypeName(value),
                           "; allowed a single value"));
  }
  absl::Status set = setting->set(config, value.Scalar());
  if (set.ok()) return set;
  return At(file, key_node,
            absl::StrCat(*key, " ", std::string(set.message())));
}

absl::Status ReadRoot(const std::string& file, const YAML::Node& root,
                      Config& config) {
  if (root.IsNull()) return absl::OkStatus();
  if (!root.IsMap()) {
    return At(file, root,
              absl::StrCat("the file is ", TypeName(root),
                           "; allowed a map of settings"));
  }
  std::set<std::string> seen;
  for (const auto& entry : root) {
    if (entry.first.IsScalar() && !seen.insert(entry.first.Scalar()).second) {
      return At(file, entry.first,
                absl::StrCat(Shown(entry.first.Scalar()), " is given twice"));
    }
    absl::Status read = ReadSetting(file, entry.first, entry.second, config);
    if (!read.ok()) return read;
  }
  return absl::OkStatus();
}

// Sees what must not be in a file before it is built into nodes: a second
// document (yaml-cpp may find endless ones in a text like " ,x"), and aliases,
// with which a node can contain itself.
class Guard : public YAML::EventHandler {
 public:
  // "" or what is wrong, and where.
  const std::string& problem() const { return problem_; }
  const YAML::Mark& mark() const { return mark_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Note(mark, "more than one document; allowed one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    CheckAnchor(mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Note(mark, "anchors and aliases are not accepted");
  }
  void OnScalar(const YAML::Mark& mark, const std::string&,
                YAML::anchor_t anchor, const std::string&) override {
    CheckAnchor(mark, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckAnchor(mark, anchor);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    CheckAnchor(mark, anchor);
  }
  void OnMapEnd() override {}

 private:
  void CheckAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) Note(mark, "anchors and aliases are not accepted");
  }
  void Note(const YAML::Mark& mark, const char* problem) {
    if (!problem_.empty()) return;
    mark_ = mark;
    problem_ = problem;
  }

  int documents_ = 0;
  std::string problem_;
  YAML::Mark mark_;
};

absl::Status CheckShape(const std::string& text, const std::string& file) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  Guard guard;
  while (guard.problem().empty() && parser.HandleNextDocument(guard)) {
  }
  if (guard.problem().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Where(file, guard.mark()), guard.problem()));
}

}  // namespace

absl::Status ReadConfigText(const std::string& text, const std::string& file,
                            Config& config) {
  try {
    absl::Status shape = CheckShape(text, file);
    if (!shape.ok()) return shape;
    return ReadRoot(file, YAML::Load(text), config);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        Where(file, error.mark),
        "not YAML: ", absl::Utf8SafeCEscape(error.msg.substr(0, 200))));
  }
}

}  // namespace memtuned
