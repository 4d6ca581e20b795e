// SPDX-License-Identifier: Apache-2.0
// Where finished RPCs are counted. daemon/metrics implements it; daemon/rpc
// only calls it. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_RPC_OBSERVER_H_
#define MEMTUNED_DAEMON_RPC_RPC_OBSERVER_H_

namespace memtuned {

// Thread safety: any thread.
class RpcObserver {
 public:
  virtual ~RpcObserver() = default;

  // One finished call. `method` is one of our own, without package, as
  // "TuningService/Drain", or "other" for everything else the server answers
  // (health, reflection, unknown methods). `code` is the gRPC status code.
  // Blocks: never.
  virtual void Observe(const char* method, int code, double seconds) = 0;

  // A call was refused for who made it.
  virtual void CallDenied() {}

  // A watcher was told that it missed snapshots.
  virtual void WatchFellBehind() {}
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_RPC_OBSERVER_H_
