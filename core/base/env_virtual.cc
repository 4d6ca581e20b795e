// SPDX-License-Identifier: Apache-2.0
#include "core/base/env_virtual.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include "core/base/check.h"
#include "core/base/shm_lock.h"

namespace memtuned::env {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kGuardBytes = 4096;

// Guesses for a large machine: what a line of another CPU's costs more, and
// the work of each Cost. Good for counts and orders of magnitude, not for
// absolute times.
constexpr uint64_t kLocalEdgeNs = 12;
constexpr uint64_t kRemoteEdgeNs = 70;
constexpr uint64_t kPauseNs = 40;
constexpr uint64_t kCostNs[] = {18, 22, 28, 90};
static_assert(std::size(kCostNs) == static_cast<size_t>(Cost::kCount));

VirtualMachine* running = nullptr;
uint64_t idle_ns = 0;  // what NowNs says between runs

#if defined(__x86_64__)

// Saves the callee-saved registers on the stack, leaves the stack pointer in
// *save and goes on where `to` was left.
extern "C" void memtuned_switch_stack(void** save, void* to);
asm(R"(
.text
.globl memtuned_switch_stack
.type memtuned_switch_stack, @function
memtuned_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size memtuned_switch_stack, .-memtuned_switch_stack
)");

void SwitchContext(void** save, void* to) { memtuned_switch_stack(save, to); }

// A stack on which the switch finds six registers, then `entry` to return to.
void* FreshContext(char* stack, void (*entry)()) {
  constexpr int kRegisters = 6;
  auto** top = reinterpret_cast<void**>(stack + kStackBytes);
  // Entry's own return address, 8 below a multiple of 16 as the ABI has it;
  // it never returns.
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kRegisters; ++i) *--top = nullptr;
  return top;
}

#else

// A context is a ucontext_t at the foot of its stack; the caller's is static.
ucontext_t caller_context;

void SwitchContext(void** save, void* to) {
  auto* from = static_cast<ucontext_t*>(*save);
  if (from == nullptr) *save = from = &caller_context;
  CHECK(swapcontext(from, static_cast<ucontext_t*>(to)) == 0);
}

void* FreshContext(char* stack, void (*entry)()) {
  auto* context = new (stack) ucontext_t;
  CHECK(getcontext(context) == 0);
  context->uc_stack.ss_sp = stack + sizeof(ucontext_t);
  context->uc_stack.ss_size = kStackBytes - sizeof(ucontext_t);
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

#endif

}  // namespace

// What the seam's functions see of the machine that runs.
struct Hooks {
  static uint32_t Fiber() { return running == nullptr ? 0 : running->current_; }
  static uint32_t Cpu() {
    return running == nullptr ? 0 : running->current_ % running->cpus_;
  }
  static uint64_t Now() {
    if (running == nullptr) return idle_ns;
    return running->explores() ? running->step_ : running->current().clock_ns;
  }
  static void Edge(const void* lock) { running->OnEdge(lock); }
  static void Store() {
    if (running->options_.on_store) running->OnStore();
  }
  static void Access() { running->OnAccess(); }
  static void Spin() { running->OnSpin(); }
  static void Charge(Cost cost) { running->OnCharge(cost); }
  static void Spend(uint64_t ns) { running->OnSpend(ns); }
};

uint32_t CurrentFiber() { return Hooks::Fiber(); }
uint32_t CurrentCpu() { return Hooks::Cpu(); }
uint64_t NowNs() { return Hooks::Now(); }
void SpinPause(int) {
  // Nobody else runs: the holder will never let go.
  CHECK(running != nullptr);
  Hooks::Spin();
}
void LockEdge(const void* lock) {
  if (running != nullptr) Hooks::Edge(lock);
}
void SharedStore() {
  if (running == nullptr) return;
  Hooks::Store();
  Hooks::Access();
}
void SharedCount() {
  if (running != nullptr) Hooks::Store();
}
void SharedLoad() {
  if (running != nullptr) Hooks::Access();
}
void Charge(Cost cost) {
  if (running != nullptr) Hooks::Charge(cost);
}
void SpendNs(uint64_t ns) {
  if (running != nullptr) Hooks::Spend(ns);
}

bool VirtualMachine::Supported() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
  return false;
#else
  return true;
#endif
#else
  return true;
#endif
}

VirtualMachine::VirtualMachine(uint32_t cpus, MachineOptions options)
    : cpus_(cpus), options_(std::move(options)) {
  CHECK_WITH(cpus >= 1 && cpus <= kMaxVirtualCpus, cpus, kMaxVirtualCpus);
}

VirtualMachine::~VirtualMachine() {
  for (char* stack : stacks_) {
    munmap(stack - kGuardBytes, kGuardBytes + kStackBytes);
  }
}

void VirtualMachine::PrepareFiber(uint32_t number) {
  if (number == stacks_.size()) {
    void* memory =
        mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK(mprotect(memory, kGuardBytes, PROT_NONE) == 0);
    stacks_.push_back(static_cast<char*>(memory) + kGuardBytes);
  }
  Fiber& fiber = fibers_[number];
  fiber.context = FreshContext(stacks_[number], &EnterFiber);
  if (!explores()) {
    fiber.clock_ns = random_() % 1000;
    QueueTurn(number);
  }
}

VirtualMachine::Outcome VirtualMachine::Run(
    const std::vector<std::function<void()>>& bodies) {
  CHECK(running == nullptr);
  CHECK(Supported());
  CHECK_WITH(bodies.size() <= kMaxVirtualCpus, bodies.size(), kMaxVirtualCpus);
  if (bodies.empty()) return Outcome::kFinished;
  step_ = step_of_rescue_ = switches_ = end_ns_ = 0;
  digest_ = 0xcbf29ce484222325ull;
  spinning_ = 0;
  outcome_ = Outcome::kFinished;
  turns_ = {};
  locks_.clear();
  random_.seed(static_cast<uint32_t>(options_.seed));
  fibers_.assign(bodies.size(), Fiber{});
  nr_ready_ = static_cast<uint32_t>(bodies.size());
  for (uint32_t i = 0; i < bodies.size(); ++i) {
    fibers_[i].body = &bodies[i];
    PrepareFiber(i);
  }
  caller_ = nullptr;
  running = this;
  if (explores()) {
    current_ = 0;
    current_ = NextExplored(/*current_ready=*/false);
  } else {
    current_ = turns_.top().fiber;
    turns_.pop();
  }
  SwitchContext(&caller_, current().context);
  running = nullptr;
  for (uint32_t i = 0; i < fibers_.size(); ++i) {
    end_ns_ = std::max(end_ns_, fibers_[i].clock_ns);
    if (fibers_[i].state != State::kDone) ForgetRanksOf(i);
  }
  idle_ns = std::max(idle_ns, explores() ? step_ : end_ns_);
  return outcome_;
}

void VirtualMachine::EnterFiber() {
  (*running->current().body)();
  running->OnDone();
}

void VirtualMachine::OnEdge(const void* lock) {
  if (explores()) {
    StepExplored();
    return;
  }
  Fiber& fiber = current();
  LockTraffic& traffic = locks_[lock];
  fiber.clock_ns +=
      traffic.last_fiber == current_ ? kLocalEdgeNs : kRemoteEdgeNs;
  traffic.last_fiber = current_;
  fiber.last_edge = lock;
  ++step_;
  YieldTimed();
  // After the turn: until this fiber's next edge nothing comes between this
  // and what it does to the lock, so nobody parks unseen.
  WakeFirst(traffic);
}

void VirtualMachine::Become(Fiber& fiber, State state) {
  if (fiber.state == State::kReady) --nr_ready_;
  if (state == State::kReady) ++nr_ready_;
  fiber.state = state;
}

void VirtualMachine::OnStore() {
  const uint64_t store = ++current().stores;
  running = nullptr;
  options_.on_store(current_, store);
  running = this;
  if (current().state == State::kKilled) LeaveForGood();
}

void VirtualMachine::Kill(uint32_t number) {
  if (number >= fibers_.size()) return;
  Fiber& fiber = fibers_[number];
  if (fiber.state == State::kDone || fiber.state == State::kKilled) return;
  if (fiber.state == State::kParked) {
    std::erase(locks_[fiber.last_edge].parked, number);
  }
  Become(fiber, State::kKilled);
  ++step_;
  WakeSpinners();
  WakeEverybody();
}

void VirtualMachine::OnAccess() {
  if (explores()) StepExplored();
}

void VirtualMachine::OnCharge(Cost cost) {
  OnSpend(kCostNs[static_cast<size_t>(cost)]);
}

// An eighth more or less, so that seeds differ in more than their start.
void VirtualMachine::OnSpend(uint64_t ns) {
  if (explores()) return;
  current().clock_ns += ns - ns / 8 + random_() % (ns / 4 + 1);
}

void VirtualMachine::OnSpin() {
  Fiber& fiber = current();
  if (explores()) {
    // Others ran since it last looked, maybe between its look and here.
    if (std::exchange(fiber.switches_at_spin, switches_) != switches_) return;
    Become(fiber, State::kSpinning);
    ++spinning_;
    LeaveExplored();
    return;
  }
  fiber.clock_ns += kPauseNs;
  if (fiber.last_edge == nullptr) {
    YieldTimed();
    return;
  }
  Become(fiber, State::kParked);
  locks_[fiber.last_edge].parked.push_back(current_);
  LeaveTimed();
}

void VirtualMachine::OnDone() {
  Become(current(), State::kDone);
  LeaveForGood();
}

void VirtualMachine::LeaveForGood() {
  if (explores()) {
    WakeSpinners();
    LeaveExplored();
  } else {
    ++step_;
    LeaveTimed();
  }
}

// Explored runs.

void VirtualMachine::WakeSpinners() {
  if (spinning_ == 0) return;
  for (Fiber& fiber : fibers_) {
    if (fiber.state == State::kSpinning) Become(fiber, State::kReady);
  }
  spinning_ = 0;
}

void VirtualMachine::StepExplored() {
  WakeSpinners();
  const uint32_t next = NextExplored(/*current_ready=*/true);
  if (next != current_) SwitchTo(next);
}

void VirtualMachine::LeaveExplored() {
  const uint32_t next = NextExplored(/*current_ready=*/false);
  next == kNoCpu ? BackToCaller() : SwitchTo(next);
}

uint32_t VirtualMachine::NextExplored(bool current_ready) {
  const uint64_t step = step_++;
  if (step >= kMostSteps) BackToCaller();
  if (current_ready && nr_ready_ == 1) return current_;
  ready_.clear();
  for (uint32_t i = 0; i < fibers_.size(); ++i) {
    if (fibers_[i].state == State::kReady) ready_.push_back(i);
  }
  if (ready_.empty()) return kNoCpu;
  if (ready_.size() == 1) return ready_[0];
  return options_.choose(Choice{step, current_, current_ready, ready_});
}

// Timed runs.

void VirtualMachine::QueueTurn(uint32_t fiber) {
  turns_.push({fibers_[fiber].clock_ns, fiber});
}

// Drops the turns of the killed.
bool VirtualMachine::NobodyQueued() {
  while (!turns_.empty() &&
         fibers_[turns_.top().fiber].state == State::kKilled) {
    turns_.pop();
  }
  return turns_.empty();
}

void VirtualMachine::YieldTimed() {
  if (NobodyQueued() || turns_.top().clock_ns >= current().clock_ns) return;
  QueueTurn(current_);
  const uint32_t next = turns_.top().fiber;
  turns_.pop();
  SwitchTo(next);
}

void VirtualMachine::LeaveTimed() {
  if (NobodyQueued() && !WakeEverybody()) {
    BackToCaller();
    return;
  }
  const uint32_t next = turns_.top().fiber;
  turns_.pop();
  if (next != current_) SwitchTo(next);
}

// Everybody waits, or a fiber was killed. Legal once after each step: a lock
// that was let go at the very end of a body has no edge behind it.
bool VirtualMachine::WakeEverybody() {
  if (step_ == step_of_rescue_) return false;
  step_of_rescue_ = step_;
  for (uint32_t i = 0; i < fibers_.size(); ++i) {
    if (fibers_[i].state != State::kParked) continue;
    std::deque<uint32_t>& parked = locks_[fibers_[i].last_edge].parked;
    parked.erase(std::find(parked.begin(), parked.end(), i));
    Become(fibers_[i], State::kReady);
    fibers_[i].clock_ns = std::max(fibers_[i].clock_ns, current().clock_ns);
    QueueTurn(i);
  }
  return !turns_.empty();
}

void VirtualMachine::WakeFirst(LockTraffic& traffic) {
  if (traffic.parked.empty()) return;
  const uint32_t first = traffic.parked.front();
  traffic.parked.pop_front();
  Fiber& fiber = fibers_[first];
  Become(fiber, State::kReady);
  fiber.clock_ns = std::max(fiber.clock_ns, current().clock_ns + kRemoteEdgeNs);
  QueueTurn(first);
}

void VirtualMachine::SwitchTo(uint32_t next) {
  Fiber& from = current();
  current_ = next;
  ++switches_;
  const uint64_t mark =
      uint64_t{next} << 48 ^ (explores() ? step_ : current().clock_ns);
  digest_ = (digest_ ^ mark) * 0x100000001b3ull;
  SwitchContext(&from.context, current().context);
}

void VirtualMachine::BackToCaller() {
  const bool done =
      std::none_of(fibers_.begin(), fibers_.end(), [](const Fiber& fiber) {
        return fiber.state != State::kDone && fiber.state != State::kKilled;
      });
  outcome_ = done ? Outcome::kFinished : Outcome::kStuck;
  SwitchContext(&current().context, caller_);
}

}  // namespace memtuned::env
