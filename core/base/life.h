// SPDX-License-Identifier: Apache-2.0
// A word in shared memory that tells whether the thread that took it lives.
// The kernel marks it when the thread ends, by whatever way, exec and SIGKILL
// included, and before it takes the process's memory down: some 30 us after a
// kill, where a pidfd says so after 36 ms for each GiB that was mapped. Others
// need one load to look, no system call, and no right to see the process.
//
// The word is the futex of a robust mutex that its thread holds for life. Such
// a mutex is linked into a list of its thread, whose pointers must not be in
// memory that others can write, nor vanish with a mapping while the thread
// goes on. So it lies across the border of two pages: the word is the last of
// a shared page, the links are in a private page of this process. Floor 0.
#ifndef MEMTUNED_CORE_BASE_LIFE_H_
#define MEMTUNED_CORE_BASE_LIFE_H_

#include <array>
#include <cstdint>

#include "core/base/pfn.h"
#include "core/base/shm.h"

namespace memtuned {

// Of Life's word: FUTEX_OWNER_DIED of the kernel's robust futexes.
inline constexpr uint32_t kLifeDied = 0x40000000;

// The shared page of one thread.
struct LifePage {
  std::array<uint8_t, kPageSizeBytes - 8> unused;
  Shared32 word;      // 0: taken by nobody
  Shared32 reserved;  // the mutex's depth
};
static_assert(sizeof(LifePage) == kPageSizeBytes);

// Thread safety: Begin, End and the destructor belong to the thread itself;
// Leave may be called by another one, but not at the same time.
class Life {
 public:
  Life() = default;
  ~Life() { End(); }
  Life(Life&& other) noexcept;
  Life& operator=(Life&& other) noexcept;

  // Takes the life page at `offset` of `file`, for the running thread.
  // Returns: false when the memory for it is not to be had.
  bool Begin(int file, uint64_t offset, LifePage& page);
  // The thread goes on without it; the word is 0. In a forked child the copy
  // is dropped and the word left alone.
  void End();
  // The shared word is 0, and nobody's as far as this thread is concerned. If
  // another thread calls it, its own keeps its private page until End.
  void Leave();

 private:
  void Disconnect();

  LifePage* page_ = nullptr;  // in the segment's mapping; nullptr: not begun
  char* pair_ = nullptr;      // the two pages
  uint32_t tid_ = 0;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_LIFE_H_
