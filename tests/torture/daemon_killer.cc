// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/daemon_killer.h"

#include "absl/strings/str_cat.h"
#include "tests/torture/durations.h"

namespace memtuned::torture {
namespace {

constexpr uint64_t kListenPatience = 20 * kSecond;

}  // namespace

void DaemonKiller::Begin(uint64_t now_ns) {
  started_ns_ = now_ns;
  next_ns_ = now_ns + kSecond;
  waits_ = false;
}

void DaemonKiller::Act(uint64_t now_ns) {
  if (now_ns < next_ns_) return;
  const bool listens = daemon_.Listens();
  if (waits_ && listens) {
    waits_ = false;
    next_ns_ = now_ns + random_.Between(50, 500) * kMillisecond;
    return;
  }
  if (now_ns - started_ns_ > kListenPatience) {
    board_.Report(Fault::kDeath, absl::StrCat("memtuned does not listen ",
                                              kListenPatience / kSecond,
                                              " s after its start"));
  }
  if (!listens && (waits_ || random_.Between(0, 3) != 0)) {
    waits_ = true;
    next_ns_ = now_ns + 50 * kMillisecond;
    return;
  }
  daemon_.Kill();
  daemon_.Start();
  ++kills_;
  if (!listens) ++kills_at_start_;
  Begin(now_ns);
}

}  // namespace memtuned::torture
