// SPDX-License-Identifier: Apache-2.0
#include "core/thread_context.h"

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/base/mutex.h"
#include "core/slot_table.h"

namespace memtuned {

constinit thread_local LastUsed tls_last_used;

namespace {

constinit thread_local bool tls_ended = false;

Mutex g_mutex;
uint64_t g_next_id GUARDED_BY(g_mutex) = 1;

// Registries that still live, so that a thread that ends after its pool was
// left does not touch it.
std::unordered_map<uint64_t, Segment*>& Living() REQUIRES(g_mutex) {
  static auto* living = new std::unordered_map<uint64_t, Segment*>;
  return *living;
}

uint64_t Register(Segment& segment) {
  MutexLock lock(g_mutex);
  const uint64_t id = g_next_id++;
  Living()[id] = &segment;
  return id;
}

}  // namespace

// This thread's contexts, one a pool; its destructor runs when the thread
// ends.
struct ThreadContexts {
  struct Entry {
    uint64_t registry;
    std::unique_ptr<ThreadContext> context;
  };
  std::vector<Entry> entries;

  ~ThreadContexts() {
    tls_last_used = LastUsed{};
    tls_ended = true;
    MutexLock lock(g_mutex);
    for (Entry& entry : entries) {
      auto it = Living().find(entry.registry);
      if (it != Living().end()) {
        ReleaseThreadSlot(*it->second, *entry.context);
      }
    }
    entries.clear();
  }
};

ThreadRegistry::ThreadRegistry(Segment& segment, ProcessOwner process)
    : id_(Register(segment)), segment_(segment), process_(process) {
  FillProcess(spare_);
  spare_.owner = kCreatorOwner;
}

ThreadRegistry::~ThreadRegistry() {
  {
    MutexLock lock(g_mutex);
    Living().erase(id_);
  }
  if (tls_last_used.registry == id_) tls_last_used = LastUsed{};
  ReleaseThreadSlotsOf(segment_, process_);
}

void ThreadRegistry::FillProcess(ThreadContext& context) {
  const Mapping& m = segment_.mapping();
  context.process = process_;
  context.process_slot = FindProcessSlot(segment_, process_);
  context.section_bits =
      m.process_sections +
      size_t{ProcessSlotOf(process_)} * m.words_of_sections();
}

void ThreadRegistry::Fill(ThreadContext& context) {
  FillProcess(context);
  TakeThreadSlot(segment_, process_, &context);
}

ThreadContext& ThreadRegistry::CurrentSlow() {
#ifdef MEMTUNED_VIRTUAL
  ThreadContext& context = fibers_[env::CurrentFiber()];
  if (context.owner == 0) Fill(context);
  return context;
#else
  if (tls_ended) return spare_;
  static thread_local ThreadContexts contexts;
  for (ThreadContexts::Entry& entry : contexts.entries) {
    if (entry.registry == id_) {
      tls_last_used = LastUsed{id_, entry.context.get()};
      return *entry.context;
    }
  }
  contexts.entries.push_back({id_, std::make_unique<ThreadContext>()});
  ThreadContext& context = *contexts.entries.back().context;
  Fill(context);
  tls_last_used = LastUsed{id_, &context};
  return context;
#endif
}

}  // namespace memtuned
