// SPDX-License-Identifier: Apache-2.0
#include "core/thread_context.h"

#include <pthread.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/base/mutex.h"
#include "core/mm/owners.h"
#include "core/slot_table.h"

namespace memtuned {

#ifdef MEMTUNED_VIRTUAL
LastUsed fiber_last_used[env::kMaxVirtualCpus];
#else
constinit thread_local LastUsed tls_last_used;
#endif

// Registries that still live: a thread that ends after its pool was left must
// not touch it, and a forked child disowns them all.
struct LivingRegistries {
  Mutex mutex;
  uint64_t next_id GUARDED_BY(mutex) = 1;
  std::unordered_map<uint64_t, ThreadRegistry*> by_id GUARDED_BY(mutex);

  static LivingRegistries& Get() {
    static auto* living = new LivingRegistries;
    return *living;
  }

  uint64_t Add(ThreadRegistry* registry) {
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(Prepare, InParent, InChild); });
    MutexLock lock(mutex);
    by_id[next_id] = registry;
    return next_id++;
  }

  static void Prepare() NO_THREAD_SAFETY_ANALYSIS { Get().mutex.Lock(); }
  static void InParent() NO_THREAD_SAFETY_ANALYSIS { Get().mutex.Unlock(); }
  static void InChild() NO_THREAD_SAFETY_ANALYSIS {
    LivingRegistries& living = Get();
    for (auto& [id, registry] : living.by_id) {
      // A new id: no thread-local context fits it any more.
      registry->id_.store(living.next_id++, std::memory_order_relaxed);
      registry->owned_.store(false, std::memory_order_relaxed);
    }
    living.by_id.clear();
    living.mutex.Unlock();
  }
};

namespace {

constinit thread_local bool tls_ended = false;

}  // namespace

// This thread's contexts, one a pool; its destructor runs when the thread
// ends.
struct ThreadContexts {
  struct Entry {
    uint64_t registry;
    std::unique_ptr<ThreadContext> context;
  };
  std::vector<Entry> entries;

  // Forgets those of pools that were left.
  void Tidy() {
    LivingRegistries& living = LivingRegistries::Get();
    MutexLock lock(living.mutex);
    for (size_t i = entries.size(); i-- > 0;) {
      if (living.by_id.count(entries[i].registry) != 0) continue;
      entries[i] = std::move(entries.back());
      entries.pop_back();
    }
  }

  ~ThreadContexts() {
    LastUsedHere() = LastUsed{};
    tls_ended = true;
    LivingRegistries& living = LivingRegistries::Get();
    MutexLock lock(living.mutex);
    for (Entry& entry : entries) {
      auto it = living.by_id.find(entry.registry);
      if (it == living.by_id.end()) continue;
      std::erase(it->second->contexts_, entry.context.get());
      ReleaseThreadSlot(it->second->segment_, *entry.context);
    }
    entries.clear();
  }
};

ThreadRegistry::ThreadRegistry(Segment& segment, ProcessOwner process)
    : id_(0),
      owned_(!segment.read_only()),
      segment_(segment),
      process_(process) {
  spare_.process = process_;
  spare_.owner = SlotlessOwner(process_);
  id_.store(LivingRegistries::Get().Add(this), std::memory_order_relaxed);
}

ThreadRegistry::~ThreadRegistry() {
  LivingRegistries& living = LivingRegistries::Get();
  {
    MutexLock lock(living.mutex);
    living.by_id.erase(id_.load(std::memory_order_relaxed));
    if (owned()) {
      for (ThreadContext* context : contexts_) context->life.Leave();
    }
  }
  if (LastUsedHere().registry == id_.load(std::memory_order_relaxed)) {
    LastUsedHere() = LastUsed{};
  }
  if (owned()) ReleaseThreadSlotsOf(segment_, process_);
}

void ThreadRegistry::Fill(ThreadContext& context) {
  TakeThreadSlot(segment_, process_, &context);
  LivingRegistries& living = LivingRegistries::Get();
  MutexLock lock(living.mutex);
  contexts_.push_back(&context);
}

ThreadContext& ThreadRegistry::Current() {
#ifdef MEMTUNED_VIRTUAL
  ThreadContext& context = fibers_[env::CurrentFiber()];
  if (context.owner == 0) Fill(context);
  return context;
#else
  const uint64_t id = id_.load(std::memory_order_relaxed);
  if (tls_last_used.registry == id) return *tls_last_used.context;
  if (tls_ended || !owned()) return spare_;
  static thread_local ThreadContexts contexts;
  for (ThreadContexts::Entry& entry : contexts.entries) {
    if (entry.registry == id) return *entry.context;
  }
  contexts.Tidy();
  contexts.entries.push_back({id, std::make_unique<ThreadContext>()});
  ThreadContext& context = *contexts.entries.back().context;
  Fill(context);
  return context;
#endif
}

void ThreadRegistry::Refresh() {
  ThreadContext& context = Current();
  const uint32_t number = env::CurrentCpuOrNone();
  const Mapping& m = segment_.mapping();
  const GuardSeat seat = m.SeatOf(number);
  if (context.slot == nullptr || number > kMaxCpuNumber) return;
  if (seat.kind == GuardKind::kBiased && seat.cpu != number) return;
  const CpuEntry& cpu = m.cpu_table[number];
  LastUsed last;
  last.registry = id_.load(std::memory_order_relaxed);
  last.seat = seat;
  last.cpu = number;
  last.owner = context.owner;
  last.pageset = &m.pagesets[LoadRelaxed(cpu.pageset)];
  last.zone = &m.zones[LoadRelaxed(cpu.zone)];
  last.first_pfn = LoadRelaxed(cpu.first_pfn);
  last.nr_pages = LoadRelaxed(cpu.nr_pages);
  last.node = LoadRelaxed(cpu.node);
  last.mine = PageWord::State(PageKind::kAllocated, 0, process_);
  last.slot = context.slot;
  last.context = &context;
  LastUsedHere() = last;
}

}  // namespace memtuned
