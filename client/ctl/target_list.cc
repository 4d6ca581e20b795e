// SPDX-License-Identifier: Apache-2.0
// Implementation of target_list.h.
#include "client/ctl/target_list.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <sstream>

#include "client/ctl/target.h"

namespace memtuned::ctl {
namespace {

constexpr char kDns[] = "dns:///";

std::string Trim(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool IsFile(const std::string& text) {
  struct stat status;
  return stat(text.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

absl::StatusOr<std::vector<FleetTarget>> Resolve(const Target& target) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(
      target.host.c_str(), std::to_string(target.port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError("cannot resolve '" + target.host +
                                  "': " + gai_strerror(error));
  }
  std::vector<FleetTarget> targets;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char host[NI_MAXHOST];
    if (getnameinfo(each->ai_addr, each->ai_addrlen, host, sizeof(host),
                    nullptr, 0, NI_NUMERICHOST) == 0) {
      targets.push_back({Target{"", host, target.port}.Address(), target.host});
    }
  }
  freeaddrinfo(found);
  return targets;
}

// One word of a list or line of a file.
absl::Status Add(const std::string& word, std::vector<FleetTarget>* targets,
                 std::set<std::string>* seen) {
  auto target = ParseTarget(word);
  if (!target.ok()) return target.status();
  std::vector<FleetTarget> these = {{target->Address(), ""}};
  if (word.rfind(kDns, 0) == 0) {
    auto resolved = Resolve(*target);
    if (!resolved.ok()) return resolved.status();
    these = std::move(*resolved);
  }
  for (FleetTarget& each : these) {
    if (seen->insert(each.address).second) targets->push_back(std::move(each));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<FleetTarget>> ReadTargets(const std::string& text) {
  std::vector<FleetTarget> targets;
  std::set<std::string> seen;
  const bool is_file = IsFile(text);
  std::ifstream file;
  std::istringstream list(text);
  if (is_file) file.open(text);
  std::istream& in = is_file ? static_cast<std::istream&>(file) : list;
  std::string word;
  for (int line = 1; std::getline(in, word, is_file ? '\n' : ','); ++line) {
    if (is_file) word = word.substr(0, word.find('#'));
    word = Trim(word);
    if (word.empty()) continue;
    const absl::Status added = Add(word, &targets, &seen);
    if (added.ok()) continue;
    const std::string where =
        is_file ? text + ":" + std::to_string(line) + ": " : "--targets: ";
    return absl::Status(added.code(), where + std::string(added.message()));
  }
  if (in.bad() || (is_file && !file.eof())) {
    return absl::InvalidArgumentError("--targets: cannot read '" + text + "'");
  }
  if (targets.empty()) {
    return absl::InvalidArgumentError("--targets: '" + text +
                                      "' names no target");
  }
  return targets;
}

}  // namespace memtuned::ctl
