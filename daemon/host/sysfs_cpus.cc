// SPDX-License-Identifier: Apache-2.0
// Reads the kernel's lists of CPUs and nodes.
#include "daemon/host/sysfs_cpus.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/cpu_mask.h"
#include "core/base/topology.h"

namespace memtuned {
namespace {

namespace fs = std::filesystem;

// CPU numbers a kernel may print; those above kMaxCpuNumber are dropped.
constexpr int kMaxKernelCpu = 65535;

// The file's text up to kMaxCpuListBytes; nothing if it cannot be read.
std::optional<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::string text(kMaxCpuListBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return std::nullopt;
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// The number in "PREFIXnumber", nothing if the text is not of that form.
std::optional<int> NumberAfter(std::string_view text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return std::nullopt;
  text.remove_prefix(prefix.size());
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || next != end || text.empty()) return std::nullopt;
  return number;
}

std::vector<int> ReadPossible(const std::string& path, SysfsCpus* result) {
  const std::optional<std::string> text = ReadSmallFile(path);
  if (!text) return {};
  absl::StatusOr<std::vector<int>> cpus = ParseCpuList(*text, kMaxKernelCpu);
  if (!cpus.ok()) {
    result->warnings.push_back(absl::StrCat(
        path, " is ignored: ", std::string(cpus.status().message())));
    return {};
  }
  if (!cpus->empty() && cpus->back() > kMaxCpuNumber) {
    result->warnings.push_back(
        absl::StrCat("possible CPUs up to ", cpus->back(), " are listed in ",
                     path, "; those above ", kMaxCpuNumber, " are ignored"));
    std::erase_if(*cpus, [](int cpu) { return cpu > kMaxCpuNumber; });
  }
  return *std::move(cpus);
}

// cpulist where the kernel has it (2.6.33 on), else cpumap.
std::optional<std::vector<int>> ReadNodeCpus(const std::string& dir,
                                             SysfsCpus* result) {
  std::string path = dir + "/cpulist";
  std::optional<std::string> text = ReadSmallFile(path);
  absl::StatusOr<std::vector<int>> cpus = std::vector<int>();
  if (text) {
    cpus = ParseCpuList(*text);
  } else {
    path = dir + "/cpumap";
    text = ReadSmallFile(path);
    if (!text) return std::nullopt;
    cpus = ParseCpuMask(*text);
  }
  if (cpus.ok()) return *std::move(cpus);
  result->warnings.push_back(absl::StrCat(
      path, " is ignored: ", std::string(cpus.status().message())));
  return std::nullopt;
}

void ReadNodes(const std::string& dir, SysfsCpus* result) {
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::optional<int> nid =
        NumberAfter(it->path().filename().string(), "node");
    if (!nid) continue;
    std::optional<std::vector<int>> cpus =
        ReadNodeCpus(it->path().string(), result);
    if (cpus) result->own_by_node[*nid] = *std::move(cpus);
  }
}

// "MemTotal:       16384 kB"; 0 if there is no such line.
int64_t ReadMemTotal(const std::string& path) {
  std::ifstream file(path);
  uint64_t kib = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("MemTotal:", 0) != 0) continue;
    const size_t digit = line.find_first_of("0123456789");
    if (digit == std::string::npos) return 0;
    std::from_chars(line.data() + digit, line.data() + line.size(), kib);
    break;
  }
  return kib < (uint64_t{1} << 42) ? static_cast<int64_t>(kib * 1024) : 0;
}

}  // namespace

SysfsCpus ReadSysfsCpus(const std::string& sys_root,
                        const std::string& proc_root) {
  SysfsCpus result;
  result.possible =
      ReadPossible(sys_root + "/devices/system/cpu/possible", &result);
  ReadNodes(sys_root + "/devices/system/node", &result);
  result.memory_bytes = ReadMemTotal(proc_root + "/meminfo");
  return result;
}

}  // namespace memtuned
