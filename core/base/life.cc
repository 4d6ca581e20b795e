// SPDX-License-Identifier: Apache-2.0
#include "core/base/life.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

namespace memtuned {

Life::Life(Life&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)),
      pair_(std::exchange(other.pair_, nullptr)),
      tid_(other.tid_) {}

Life& Life::operator=(Life&& other) noexcept {
  if (this == &other) return *this;
  End();
  page_ = std::exchange(other.page_, nullptr);
  pair_ = std::exchange(other.pair_, nullptr);
  tid_ = other.tid_;
  return *this;
}

#ifdef MEMTUNED_VIRTUAL

// Fibers have no kernel: whoever stops one for good marks its word.
bool Life::Begin(int, uint64_t, LifePage& page) {
  page_ = &page;
  Store(page.word, 1u);
  return true;
}

void Life::End() {
  if (page_ != nullptr) Store(page_->word, 0u);
  page_ = nullptr;
}

void Life::Leave() { End(); }

#else

namespace {

pthread_mutex_t* MutexIn(char* pair) {
  return reinterpret_cast<pthread_mutex_t*>(pair + offsetof(LifePage, word));
}

uint32_t Tid() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

}  // namespace

#ifdef __x86_64__
// The lock word first, the links behind the border.
static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0);
static_assert(offsetof(pthread_mutex_t, __data.__list) >=
              kPageSizeBytes - offsetof(LifePage, word));
#endif

bool Life::Begin(int file, uint64_t offset, LifePage& page) {
  void* pair = mmap(nullptr, 2 * kPageSizeBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pair == MAP_FAILED) return false;
  pair_ = static_cast<char*>(pair);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  // Tried, not waited for: the word is in memory that others can write.
  const bool locked =
      mmap(pair_, kPageSizeBytes, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset)) == pair_ &&
      pthread_mutex_init(MutexIn(pair_), &attributes) == 0 &&
      pthread_mutex_trylock(MutexIn(pair_)) == 0;
  pthread_mutexattr_destroy(&attributes);
  if (!locked) {
    munmap(pair_, 2 * kPageSizeBytes);
    pair_ = nullptr;
    return false;
  }
  page_ = &page;
  tid_ = Tid();
  return true;
}

void Life::End() {
  if (pair_ == nullptr) return;
  // In a forked child it is another thread's: the list it was in is not this
  // one's, nor is the shared word.
  if (Tid() == tid_) {
    Disconnect();
    pthread_mutex_unlock(MutexIn(pair_));
  }
  munmap(pair_, 2 * kPageSizeBytes);
  pair_ = nullptr;
  page_ = nullptr;
}

void Life::Leave() {
  if (Tid() == tid_) {
    End();
  } else {
    Disconnect();
  }
}

void Life::Disconnect() {
  if (pair_ == nullptr || page_ == nullptr) return;
  // The list of a thread that goes on must not point to nowhere: another page
  // takes the shared one's place. It says what the shared one should: that one
  // is anybody's to write, and a mutex that is not its thread's would stay in
  // the list.
  const bool replaced =
      mmap(pair_, kPageSizeBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == pair_;
  reinterpret_cast<LifePage*>(pair_)->word.store(tid_);
  // If the kernel refused, that was the shared word: End's unlock clears it.
  if (replaced) Store(page_->word, 0u);
  page_ = nullptr;
}

#endif

}  // namespace memtuned
