// SPDX-License-Identifier: Apache-2.0
#include "tests/core/virtual/write_set.h"

#include <sys/mman.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/base/pfn.h"

namespace memtuned {
namespace {

std::vector<WriteSet*> living_write_sets;

}  // namespace

WriteSet::WriteSet(char* base, size_t bytes) : base_(base), bytes_(bytes) {
  pages_.reserve(bytes / kPageSizeBytes);  // nothing is allocated in a fault
  if (living_write_sets.empty()) {
    struct sigaction action = {};
    action.sa_sigaction = &WriteSet::OnFault;
    action.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGSEGV, &action, nullptr) == 0);
  }
  living_write_sets.push_back(this);
  CHECK(mprotect(base_, bytes_, PROT_READ) == 0);
}

WriteSet::~WriteSet() {
  mprotect(base_, bytes_, PROT_READ | PROT_WRITE);
  std::erase(living_write_sets, this);
  if (living_write_sets.empty()) std::signal(SIGSEGV, SIG_DFL);
}

bool WriteSet::Note(char* address) {
  if (address < base_ || address >= base_ + bytes_) return false;
  const auto offset =
      static_cast<size_t>(address - base_) & ~(kPageSizeBytes - 1);
  if (mprotect(base_ + offset, kPageSizeBytes, PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  pages_.push_back(offset);
  return true;
}

// The store is tried again when this returns; one that is nobody's then ends
// the process.
void WriteSet::OnFault(int, siginfo_t* info, void*) {
  auto* address = static_cast<char*>(info->si_addr);
  const bool noted =
      std::any_of(living_write_sets.begin(), living_write_sets.end(),
                  [&](WriteSet* set) { return set->Note(address); });
  if (!noted) std::signal(SIGSEGV, SIG_DFL);
}

}  // namespace memtuned
