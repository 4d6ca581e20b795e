// SPDX-License-Identifier: Apache-2.0
// Which pages of a range of memory were written: the rest is write-protected,
// and the first store to a page that still is costs a fault. So that memory is
// put back by looking at a few pages, thousands of times a second.
#ifndef MEMTUNED_TESTS_CORE_VIRTUAL_WRITE_SET_H_
#define MEMTUNED_TESTS_CORE_VIRTUAL_WRITE_SET_H_

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memtuned {

// REQUIRES: whole pages that are readable and writable; the kernel writes none
// of them on behalf of this process, and no other process does.
// Thread safety: one thread.
class WriteSet {
 public:
  WriteSet(char* base, size_t bytes);
  // Everything is writable again.
  ~WriteSet();
  WriteSet(const WriteSet&) = delete;
  WriteSet& operator=(const WriteSet&) = delete;

  // Offsets of the pages written since this was made, each once, in the order
  // of their first store.
  const std::vector<size_t>& pages() const { return pages_; }

 private:
  static void OnFault(int signal, siginfo_t* info, void* context);
  bool Note(char* address);

  char* const base_;
  const size_t bytes_;
  std::vector<size_t> pages_;
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_CORE_VIRTUAL_WRITE_SET_H_
