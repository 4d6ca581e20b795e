// SPDX-License-Identifier: Apache-2.0
// A pool with an attach socket, for tests of the client: creates a segment and
// speaks core/attach_message.h over a real socket. What a process held is
// given back when its connection closes.
#ifndef MEMTUNED_TESTS_SUPPORT_ATTACH_TEST_SERVER_H_
#define MEMTUNED_TESTS_SUPPORT_ATTACH_TEST_SERVER_H_

#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/segment.h"

namespace memtuned::test {

// A temporary folder, removed with the files in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A listening socket; type SOCK_SEQPACKET is what clients expect. Dies loudly
// when it cannot.
int ListenOn(const std::string& path, int type, int backlog = 64);

// Sends one message with descriptors in it.
bool SendWithFds(int connection, const void* bytes, size_t size,
                 const std::vector<int>& fds);

// Answers every connection by a function, one after the other; it owns the
// connection while it runs.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<void(int connection)> answer);
  ~ScriptedServer();
  std::string path() const { return folder_.path() + "/pool.sock"; }

 private:
  TemporaryFolder folder_;
  int listener_;
  std::thread thread_;
};

struct AttachTestServerOptions {
  std::string name = "test";
  int nr_nodes = 1;  // all CPUs are node 0's; os indexes 0, 1, 2, ...
  uint64_t pages_a_node = 16384;
  uint32_t nr_processes = 64;
  uint32_t first_sections = kNil;  // all
};

class AttachTestServer {
 public:
  explicit AttachTestServer(AttachTestServerOptions options = {});
  ~AttachTestServer();

  std::string path() const { return folder_.path() + "/pool.sock"; }
  Segment& segment() { return *segment_; }

  uint64_t Refused(FreeResult result) {
    return LoadRelaxed(
        segment_->header().refused_frees[static_cast<size_t>(result)]);
  }
  uint64_t Failures(FailureReason reason) {
    return LoadRelaxed(
        segment_->header().failures[static_cast<size_t>(reason)]);
  }
  // Blocks in the hands of processes, by the memmap.
  uint64_t AllocatedPages() const;
  int AttachedProcesses() const;
  int UsedThreadSlots() const;

 private:
  struct Client {
    int connection;
    uint32_t owner;
  };
  void Serve();
  void Accept();
  void GiveBack(uint32_t owner);

  TemporaryFolder folder_;
  std::unique_ptr<Segment> segment_;
  int listener_ = -1, wake_ = -1;
  std::vector<Client> clients_;  // the thread's
  std::thread thread_;
};

}  // namespace memtuned::test

#endif  // MEMTUNED_TESTS_SUPPORT_ATTACH_TEST_SERVER_H_
