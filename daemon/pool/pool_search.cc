// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/pool_search.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/thread_state.h"
#include "daemon/keeper/pool_claim.h"
#include "daemon/pool/process_info.h"

namespace memtuned {
namespace {

namespace fs = std::filesystem;

// The paths in /proc of a pool's files that a process has open.
struct OpenFiles {
  std::vector<fs::path> metadata;
  std::map<int, std::vector<fs::path>> frames;  // by node
};

// Looks at one link: "/memfd:memtuned:NAME:node0 (deleted)". Its permissions
// say what it was opened for: an observer's is no reason to find a pool, nor
// to leave one alone.
void Sort(const std::string& name, const fs::path& link, OpenFiles& files) {
  std::error_code error;
  const fs::perms opened_for = fs::symlink_status(link, error).permissions();
  if ((opened_for & fs::perms::owner_write) == fs::perms::none) return;
  const std::string target = fs::read_symlink(link, error).string();
  absl::string_view text = target;
  if (!absl::ConsumePrefix(&text, "/memfd:memtuned:") ||
      !absl::ConsumeSuffix(&text, " (deleted)") ||
      !absl::ConsumePrefix(&text, name)) {
    return;
  }
  int node = 0;
  if (text.empty()) {
    files.metadata.push_back(link);
  } else if (absl::ConsumePrefix(&text, ":node") &&
             absl::SimpleAtoi(text, &node)) {
    files.frames[node].push_back(link);
  }
}

OpenFiles FilesOf(const fs::path& process, const std::string& name) {
  OpenFiles files;
  std::error_code error;
  fs::directory_iterator entry(process / "fd", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    Sort(name, entry->path(), files);
  }
  return files;
}

struct stat MetadataOf(const FoundPool& found) {
  struct stat file {};
  fstat(found.pool.files[0].get(), &file);
  return file;
}

// Opens them. Returns: false when it is not one whole pool.
bool Open(const OpenFiles& files, FoundPool& found) {
  if (files.metadata.size() != 1) return false;
  std::vector<fs::path> paths = files.metadata;
  for (const auto& [node, links] : files.frames) {
    if (links.size() != 1) return false;
    paths.push_back(links[0]);
  }
  for (const fs::path& path : paths) {
    found.pool.files.emplace_back(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (found.pool.files.back().get() < 0) return false;
  }
  return true;
}

bool IsNewer(const FoundPool& a, const FoundPool& b) {
  const timespec left = MetadataOf(a).st_ctim;
  const timespec right = MetadataOf(b).st_ctim;
  return std::pair(left.tv_sec, left.tv_nsec) >
         std::pair(right.tv_sec, right.tv_nsec);
}

bool IsOurs(const fs::path& process) {
  struct stat info {};
  return stat(process.c_str(), &info) == 0 && info.st_uid == geteuid();
}

}  // namespace

std::vector<FoundPool> FindPoolsInProcesses(const std::string& name) {
  std::vector<FoundPool> all;
  std::error_code error;
  fs::directory_iterator entry("/proc", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    uint32_t pid = 0;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &pid) ||
        pid == static_cast<uint32_t>(getpid()) || !IsOurs(entry->path())) {
      continue;
    }
    FoundPool found;
    found.pool.name = name;
    found.pool.source = absl::StrCat("process ", pid);
    if (!Open(FilesOf(entry->path(), name), found)) continue;
    const auto known =
        std::find_if(all.begin(), all.end(), [&found](const FoundPool& f) {
          const struct stat a = MetadataOf(f), b = MetadataOf(found);
          return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
        });
    FoundPool& holder = known == all.end() ? found : *known;
    holder.holders.push_back(pid);
    if (known == all.end()) all.push_back(std::move(found));
  }
  std::erase_if(
      all, [](const FoundPool& f) { return IsClaimed(f.pool.files[0].get()); });
  std::stable_sort(all.begin(), all.end(), IsNewer);
  return all;
}

bool HeldByItsProcesses(const FoundPool& found, const Segment& segment) {
  const Mapping& m = segment.mapping();
  const auto is_attached = [&m](uint32_t pid) {
    for (uint32_t i = 0; i < m.nr_processes; ++i) {
      const ProcessSlot& slot = m.processes[i];
      if (Load(slot.state) == static_cast<uint32_t>(SlotState::kAttached) &&
          LoadRelaxed(slot.pid) == pid &&
          LoadRelaxed(slot.start_time_ticks) == StartTimeOf(pid)) {
        return true;
      }
    }
    return false;
  };
  return std::all_of(found.holders.begin(), found.holders.end(),
                     [&is_attached](uint32_t pid) {
                       return is_attached(pid) || is_attached(ParentOf(pid));
                     });
}

}  // namespace memtuned
