// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/board.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "absl/strings/str_cat.h"

namespace memtuned::torture {

const char* FaultName(Fault fault) {
  constexpr const char* kNames[] = {"stamp",  "refused", "wait", "hang",
                                    "attach", "death",   "reap", "lost"};
  return kNames[static_cast<size_t>(fault)];
}

Board* Board::Create() {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("memtuned-torture: shared memory");
    std::abort();
  }
  return new (memory) Board{};
}

void Board::Report(Fault fault, const std::string& text) {
  const uint32_t number = nr_faults_.fetch_add(1);
  if (number >= notes_.size()) return;
  FaultNote& note = notes_[number];
  note.fault = fault;
  const size_t length = std::min(text.size(), note.text.size() - 1);
  std::copy_n(text.begin(), length, note.text.begin());
  // Pairs with the acquire of those who read it.
  note.complete.store(1, std::memory_order_release);
}

bool Board::Has(Fault fault) const {
  return std::any_of(notes_.begin(), notes_.end(), [fault](const auto& note) {
    return note.complete.load(std::memory_order_acquire) != 0 &&
           note.fault == fault;
  });
}

std::vector<std::string> Board::FaultTexts() const {
  std::vector<std::string> texts;
  const size_t count = nr_faults();
  for (size_t i = 0; i < std::min(count, notes_.size()); ++i) {
    const FaultNote& note = notes_[i];
    texts.push_back(note.complete.load(std::memory_order_acquire) != 0
                        ? absl::StrCat(FaultName(note.fault), ": ",
                                       std::string(note.text.data()))
                        : "killed while it reported something");
  }
  if (count > notes_.size()) {
    texts.push_back(absl::StrCat("and ", count - notes_.size(), " more"));
  }
  return texts;
}

Totals Board::Sum(uint32_t first, uint32_t last) const {
  Totals sum;
  for (uint32_t i = first; i < last; ++i) {
    for (const ThreadLine& line : workers[i].threads) {
      sum.allocations += line.allocations;
      sum.frees += line.frees;
      sum.failures += line.failures;
      sum.adoptions += line.adoptions;
      sum.missed_offers += line.missed_offers;
      sum.attaches += line.attaches;
      sum.refused_attaches += line.refused_attaches;
      sum.longest_call_ns =
          std::max(sum.longest_call_ns, line.longest_call_ns.load());
      sum.longest_wait_ns =
          std::max(sum.longest_wait_ns, line.longest_wait_ns.load());
      sum.longest_behind_stopped_ns = std::max(
          sum.longest_behind_stopped_ns, line.longest_behind_stopped_ns.load());
    }
  }
  return sum;
}

void Board::BeginStop(uint32_t worker, uint64_t now_ns) {
  StopInterval& stop = stops_[nr_stops_.fetch_add(1) % kStopIntervals];
  stop.start_ns.store(0);
  stop.end_ns.store(0);
  stop.worker.store(worker);
  stop.start_ns.store(now_ns);
}

void Board::EndStop(uint64_t now_ns) {
  stops_[(nr_stops_.load() - 1) % kStopIntervals].end_ns.store(now_ns);
}

uint64_t Board::StoppedNs(uint32_t worker, uint64_t start_ns, uint64_t end_ns,
                          bool* was_stopped) const {
  uint64_t total = 0;
  *was_stopped = false;
  for (const StopInterval& stop : stops_) {
    const uint64_t from = stop.start_ns.load();
    const uint64_t to = stop.end_ns.load();
    if (from == 0) continue;
    const uint64_t first = std::max(from, start_ns);
    const uint64_t last = to == 0 ? end_ns : std::min(to, end_ns);
    if (first >= last) continue;
    if (stop.worker.load() == worker) *was_stopped = true;
    total += last - first;
  }
  return total;
}

}  // namespace memtuned::torture
