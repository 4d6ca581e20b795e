// SPDX-License-Identifier: Apache-2.0
#include "client/load/board.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace memtuned::load {

Totals Board::Sum(uint32_t nr_workers) const {
  Totals totals;
  for (uint32_t i = 0; i < nr_workers; ++i) {
    totals.allocations += workers[i].allocations.load();
    totals.frees += workers[i].frees.load();
    totals.failures += workers[i].failures.load();
  }
  return totals;
}

void Board::SetError(uint32_t process, const std::string& text) {
  auto& error = errors[process];
  const size_t length = std::min(text.size(), error.size() - 1);
  std::copy_n(text.begin(), length, error.begin());
  error[length] = '\0';
}

std::unique_ptr<SharedState> SharedState::Create(const LoadConfig& config) {
  const bool rings = config.shape == Shape::kProducerConsumer;
  const uint32_t pairs = rings ? config.workers() / 2 : 0;
  std::unique_ptr<SharedState> state(new SharedState);
  state->ring_bytes_ = Ring::BytesFor(rings ? config.n : 0);
  const size_t board_bytes = (sizeof(Board) + 63) / 64 * 64;
  state->bytes_ = board_bytes + pairs * state->ring_bytes_;
  const int fd = memfd_create("memtune-load", MFD_CLOEXEC);
  if (fd < 0) return nullptr;
  if (ftruncate(fd, static_cast<off_t>(state->bytes_)) == 0) {
    state->memory_ =
        mmap(nullptr, state->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (state->memory_ == nullptr || state->memory_ == MAP_FAILED) {
    state->memory_ = nullptr;
    return nullptr;
  }
  state->board_ = new (state->memory_) Board{};
  state->rings_ = static_cast<char*>(state->memory_) + board_bytes;
  for (uint32_t i = 0; i < pairs; ++i) {
    new (&state->ring(i)) Ring;
    state->ring(i).Init(config.n);
  }
  return state;
}

SharedState::~SharedState() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

}  // namespace memtuned::load
