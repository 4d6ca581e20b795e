// SPDX-License-Identifier: Apache-2.0
#include "daemon/keeper/service_shelf.h"

#include <systemd/sd-daemon.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/keeper/keeper_message.h"
#include "daemon/log.h"

namespace memtuned {
namespace {

// Takes over what the manager passed: (name, descriptor).
std::vector<std::pair<std::string, FileDescriptor>> Passed() {
  std::vector<std::pair<std::string, FileDescriptor>> passed;
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  for (int i = 0; i < count; ++i) {
    passed.emplace_back(names[i], FileDescriptor(SD_LISTEN_FDS_START + i));
    free(names[i]);
  }
  free(names);
  return passed;
}

}  // namespace

std::string ShelfName::Text() const {
  return absl::StrCat(key.pool, ".", key.client, ".", number, ".", total);
}

bool ShelfName::Parse(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '.');
  if (parts.size() != 4) return false;
  key.pool = parts[0];
  return IsKeptName(key.pool) && absl::SimpleAtoi(parts[1], &key.client) &&
         absl::SimpleAtoi(parts[2], &number) &&
         absl::SimpleAtoi(parts[3], &total) && number < total &&
         total <= kMaxFdsOfGroup;
}

bool ServiceShelf::Present() { return std::getenv("NOTIFY_SOCKET") != nullptr; }

std::vector<KeptFds> ServiceShelf::TakeAll() {
  std::map<FdKey, std::vector<FileDescriptor>> groups;
  for (auto& [text, fd] : Passed()) {
    ShelfName name;
    if (!name.Parse(text)) {
      LogEvent(LogLevel::kWarning, "descriptor-not-known", {{"name", text}});
      continue;
    }
    names_[name.key].push_back(text);
    auto& group = groups[name.key];
    if (group.size() < name.total) group.resize(name.total);
    group[name.number] = std::move(fd);
  }
  std::vector<KeptFds> complete;
  for (auto& [key, fds] : groups) {
    bool whole = true;
    for (const FileDescriptor& fd : fds) whole &= fd.get() >= 0;
    if (whole) {
      complete.push_back({key, std::move(fds)});
    } else {
      LogEvent(LogLevel::kError, "descriptors-missing",
               {{"pool", key.pool},
                {"client", absl::StrCat(key.client)},
                {"note", "raise FileDescriptorStoreMax="}});
    }
  }
  return complete;
}

void ServiceShelf::Store(const FdKey& key, std::span<const int> fds) {
  // A name that is there twice would have two meanings.
  auto& names = names_[key];
  ForgetNames(names);
  names.clear();
  for (size_t i = 0; i < fds.size(); ++i) {
    names.push_back(ShelfName{key, i, fds.size()}.Text());
    // Not polled: a connection that was closed has to be seen by the daemon.
    const std::string text =
        absl::StrCat("FDSTORE=1\nFDPOLL=0\nFDNAME=", names.back());
    sd_pid_notify_with_fds(0, 0, text.c_str(), &fds[i], 1);
  }
}

void ServiceShelf::ForgetNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    sd_notify(0, absl::StrCat("FDSTOREREMOVE=1\nFDNAME=", name).c_str());
  }
}

void ServiceShelf::Forget(const FdKey& key) {
  std::erase_if(names_, [&](const auto& entry) {
    const bool goes =
        entry.first == key || (key.client == 0 && entry.first.pool == key.pool);
    if (goes) ForgetNames(entry.second);
    return goes;
  });
}

void ServiceShelf::Release(const std::string&) {}

}  // namespace memtuned
