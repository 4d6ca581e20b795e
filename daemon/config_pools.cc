// SPDX-License-Identifier: Apache-2.0
// Reads pools: a name, a size, and keys that are the pool's own or tunables.
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/config.h"

namespace memtuned {
namespace {

constexpr size_t kMaxPools = 64;
constexpr size_t kMaxNameBytes = 32;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kMinBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxBytes = uint64_t{1} << 50;

struct Unit {
  const char* name;
  int shift;
};
constexpr Unit kUnits[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}};

absl::Status Bad(const std::string& field, const std::string& text,
                 const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", Echo(text), "; allowed ", allowed));
}

bool ValidName(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  if (!absl::ascii_islower(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_islower(byte) && !absl::ascii_isdigit(byte) && c != '-') {
      return false;
    }
  }
  return true;
}

absl::Status SetSize(const std::string& field, const std::string& text,
                     PoolConfig& pool) {
  std::string number = text;
  pool.bytes_per_node = absl::EndsWith(number, "/node");
  if (pool.bytes_per_node) number.resize(number.size() - 5);
  int shift = 0;
  for (const Unit& unit : kUnits) {
    if (!absl::EndsWith(number, unit.name)) continue;
    number.resize(number.size() - 3);
    shift = unit.shift;
  }
  uint64_t count = 0;
  const bool digits = !number.empty() && number.find_first_not_of(
                                             "0123456789") == std::string::npos;
  if (!digits || !absl::SimpleAtoi(number, &count) ||
      count > (kMaxBytes >> shift) || (count << shift) < kMinBytes ||
      (count << shift) % kPageBytes != 0) {
    return Bad(field, text,
               "1MiB to 1024TiB, whole pages, as 1GiB in all or 256GiB/node");
  }
  pool.bytes = count << shift;
  return absl::OkStatus();
}

absl::Status SetMode(const std::string& field, const std::string& text,
                     PoolConfig& pool) {
  const bool octal = !text.empty() && text.size() <= 4 &&
                     text.find_first_not_of("01234567") == std::string::npos;
  const int mode = octal ? std::stoi(text, nullptr, 8) : -1;
  if (mode < 0 || mode > 0777) {
    return Bad(field, text, "an octal mode, 0 to 0777");
  }
  pool.socket_mode = mode;
  return absl::OkStatus();
}

// "attach.users" and the like, of which there may be several. nullptr: another
// key.
UserList* FindUserList(const std::string& key, PoolUsers& users) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(key, absl::MaxSplits('.', 1));
  if (parts.second != "users" && parts.second != "groups") return nullptr;
  if (parts.first == "attach") return &users.attach;
  return parts.first == "observe" ? &users.observe : nullptr;
}

absl::Status AddUsers(const std::string& field, const std::string& key,
                      const std::string& text, UserList& list) {
  absl::Status added = AddToUserList(key.substr(key.find('.') + 1), text, list);
  if (added.ok()) return added;
  return absl::InvalidArgumentError(
      absl::StrCat(field, " ", std::string(added.message())));
}

absl::Status SetTunable(const std::string& field, const std::string& key,
                        const std::string& text, PoolConfig& pool) {
  std::string name = key;
  if (key == "policy") name = "pageset.policy";
  if (key == "sections_per_second") name = "init.sections_per_second";
  const TunableDef* def = FindTunable(name);
  if (def == nullptr) {
    std::string known =
        "size, policy, populate, sections_per_second, mode, attach.users, "
        "attach.groups, observe.users, observe.groups";
    for (const TunableDef& row : TunableTable()) {
      absl::StrAppend(&known, ", ", row.name);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is not a key of a pool; allowed ", known));
  }
  const auto value = ParseTunable(*def, text);
  if (!value.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", std::string(value.status().message())));
  }
  for (const TunableAssignment& earlier : pool.tunables) {
    if (earlier.tunable == name) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": ", name, " is given twice"));
    }
  }
  pool.tunables.push_back({name, *value});
  return absl::OkStatus();
}

absl::Status SetPart(const std::string& key, const std::string& text,
                     PoolConfig& pool) {
  const std::string field = absl::StrCat(
      "pool.", pool.name, ".", absl::Utf8SafeCEscape(key.substr(0, 64)));
  if (key == "size") return SetSize(field, text, pool);
  if (key == "mode") return SetMode(field, text, pool);
  if (key == "populate") {
    if (text != "reserve" && text != "lazy") {
      return Bad(field, text, "reserve, lazy");
    }
    pool.populate = text;
    return absl::OkStatus();
  }
  if (UserList* list = FindUserList(key, pool.users)) {
    return AddUsers(field, key, text, *list);
  }
  return SetTunable(field, key, text, pool);
}

absl::Status At(const std::string& where, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(where, std::string(status.message())));
}

absl::Status CheckName(const std::string& name, const Config& config) {
  if (!ValidName(name)) {
    return Bad("pool name", name,
               "a lower-case letter, then lower-case letters, digits and '-', "
               "32 in all");
  }
  if (config.pools.size() >= kMaxPools) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pool.", name, " is one too many; allowed ", kMaxPools, " pools"));
  }
  for (const PoolConfig& pool : config.pools) {
    if (pool.name == name) {
      return absl::InvalidArgumentError(
          absl::StrCat("pool.", name, " is defined twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PoolText> SplitPool(const std::string& where,
                                   const std::string& name,
                                   const std::string& text) {
  PoolText pool{where, name, {}};
  const std::vector<std::string> items = absl::StrSplit(text, ',');
  pool.parts.push_back({where, "size", items[0]});
  for (size_t i = 1; i < items.size(); ++i) {
    const size_t at = items[i].find('=');
    if (at == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "pool ", Echo(name), ": ", Echo(items[i]),
                       " has no '='; allowed key=value"));
    }
    pool.parts.push_back(
        {where, items[i].substr(0, at), items[i].substr(at + 1)});
  }
  return pool;
}

absl::Status AddPool(const PoolText& text, Config& config) {
  const absl::Status named = CheckName(text.name, config);
  if (!named.ok()) return At(text.where, named);
  PoolConfig pool;
  pool.name = text.name;
  std::set<std::string> seen;
  for (const PoolText::Part& part : text.parts) {
    if (FindUserList(part.key, pool.users) == nullptr &&
        !seen.insert(part.key).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          part.where, "pool.", pool.name, ".",
          absl::Utf8SafeCEscape(part.key.substr(0, 64)), " is given twice"));
    }
    const absl::Status set = SetPart(part.key, part.value, pool);
    if (!set.ok()) return At(part.where, set);
  }
  if (pool.bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(text.where, "pool.", pool.name,
                     ".size is missing; allowed 1GiB in all, or 256GiB/node"));
  }
  if (!pool.users.observe.empty() && pool.users.attach.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        text.where, "pool.", pool.name, ".observe needs pool.", pool.name,
        ".attach: without it everyone who can connect may attach, and write"));
  }
  config.pools.push_back(std::move(pool));
  return absl::OkStatus();
}

std::string PoolSizeText(const PoolConfig& pool) {
  std::string text = absl::StrCat(pool.bytes);
  for (const Unit& unit : kUnits) {
    if (pool.bytes % (uint64_t{1} << unit.shift) == 0) {
      text = absl::StrCat(pool.bytes >> unit.shift, unit.name);
      break;
    }
  }
  return text + (pool.bytes_per_node ? "/node" : "");
}

}  // namespace memtuned
