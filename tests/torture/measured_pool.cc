// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/measured_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <new>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/env.h"
#include "core/mm/slots.h"

namespace memtuned::torture {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

bool WaitFor(const std::function<bool()>& condition, int seconds) {
  const auto give_up = steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

}  // namespace

MeasuredPool::MeasuredPool(const Options& options, const std::string& size)
    : daemon_(options.bin_dir,
              absl::StrCat(size, ",populate=lazy",
                           options.pool_settings.empty() ? "" : ",",
                           options.pool_settings),
              options.topology) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  shared_ = new (memory) Shared;
}

MeasuredPool::~MeasuredPool() { munmap(shared_, sizeof(Shared)); }

std::unique_ptr<MeasuredPool> MeasuredPool::Create(const Options& options,
                                                   const std::string& size) {
  std::unique_ptr<MeasuredPool> made(new MeasuredPool(options, size));
  made->daemon_.Start();
  std::string problem = made->daemon_.WaitUntilReady();
  if (problem.empty()) {
    auto pool = Pool::Attach(made->daemon_.pool_socket());
    if (pool) {
      made->pool_ = *std::move(pool);
    } else {
      problem = pool.error().message();
    }
  }
  if (problem.empty() &&
      !WaitFor([&] { return made->segment().Initialised(); }, 120)) {
    problem = "the pool is not initialised in 120 s";
  }
  if (problem.empty()) return made;
  std::cerr << "memtuned-torture: pool of " << size << ": " << problem << "\n"
            << made->daemon_.LogTail();
  return nullptr;
}

uint64_t MeasuredPool::FreePages() {
  uint64_t pages = 0;
  for (const Zone& zone : segment().zones()) pages += zone.FreePages();
  return pages;
}

std::optional<Child> MeasuredPool::Start(
    const std::function<bool(Pool&)>& prepare,
    const std::function<void(Pool&)>& then) {
  shared_->state = State::kPreparing;
  shared_->through_ns = 0;
  Child child = Child::Fork([&] {
    auto pool = Pool::Attach(daemon_.pool_socket());
    const bool prepared = pool && prepare(*pool);
    shared_->state = prepared ? State::kPrepared : State::kFailed;
    if (prepared && then) {
      then(*pool);
      shared_->through_ns = env::NowNs();
    }
    for (;;) pause();
    return 0;
  });
  if (!WaitFor([&] { return shared_->state != State::kPreparing; }, 30) ||
      shared_->state != State::kPrepared) {
    std::cerr << "memtuned-torture: a process could not prepare\n";
    return std::nullopt;
  }
  return child;
}

bool MeasuredPool::WaitUntilAlone() {
  const Mapping& m = segment().mapping();
  const auto alone = [&] {
    for (uint32_t i = 0; i < m.nr_processes; ++i) {
      const ProcessSlot& slot = m.processes[i];
      if (LoadRelaxed(slot.state) != static_cast<uint32_t>(SlotState::kFree) &&
          LoadRelaxed(slot.owner) != pool_->process_id()) {
        return false;
      }
    }
    return true;
  };
  if (WaitFor(alone, 10)) return true;
  std::cerr << "memtuned-torture: the dead still have a slot after 10 s\n";
  return false;
}

}  // namespace memtuned::torture
