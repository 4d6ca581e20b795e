// SPDX-License-Identifier: Apache-2.0
// A file descriptor that closes itself. Move only. Floor 0.
#ifndef MEMTUNED_CORE_BASE_FILE_DESCRIPTOR_H_
#define MEMTUNED_CORE_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace memtuned {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }  // -1: none
  int Release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_FILE_DESCRIPTOR_H_
