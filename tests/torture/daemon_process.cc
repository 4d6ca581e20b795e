// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/daemon_process.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"

namespace memtuned::torture {
namespace {

constexpr std::chrono::seconds kReadyPatience(30);
constexpr int kStopPatienceMs = 20000;

std::string MakeFolder() {
  std::string path =
      std::filesystem::temp_directory_path() / "memtuned-torture.XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    std::perror(path.c_str());
    std::abort();
  }
  return path;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

}  // namespace

DaemonProcess::DaemonProcess(const std::string& bin_dir,
                             const std::string& pool,
                             const std::string& topology)
    : bin_dir_(bin_dir), dir_(MakeFolder()) {
  std::filesystem::create_directories(dir_ + "/run");
  std::filesystem::create_directories(dir_ + "/state");
  arguments_ = {bin_dir_ + "/memtuned",
                "--runtime-dir",
                dir_ + "/run",
                "--state-dir",
                dir_ + "/state",
                "--listen",
                absl::StrCat("unix:", dir_, "/run/memtuned.sock"),
                "--metrics-listen",
                "off",
                "--topology",
                topology,
                "--pool",
                "default=" + pool};
}

DaemonProcess::~DaemonProcess() {
  Stop();
  std::filesystem::remove_all(dir_);
}

void DaemonProcess::Start() { child_ = Child::Exec(arguments_, dir_ + "/log"); }

std::string DaemonProcess::WaitUntilReady() {
  const auto give_up = std::chrono::steady_clock::now() + kReadyPatience;
  for (;;) {
    if (auto status = TryWait()) {
      return absl::StrCat("memtuned ended with ", DescribeStatus(*status));
    }
    const std::string problem = Ctl({"--timeout", "2s", "zones"});
    if (problem.empty() || std::chrono::steady_clock::now() > give_up) {
      return problem;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

bool DaemonProcess::Listens() const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  pool_socket().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const bool listens = connect(fd, reinterpret_cast<const sockaddr*>(&address),
                               sizeof(address)) == 0;
  close(fd);
  return listens;
}

void DaemonProcess::Kill() {
  child_.Signal(SIGKILL);
  child_.Wait(kStopPatienceMs);
}

std::string DaemonProcess::Stop() {
  if (!child_.alive()) return "";
  child_.Signal(SIGTERM);
  const auto status = child_.Wait(kStopPatienceMs);
  if (!status) {
    child_ = Child();
    return absl::StrCat("memtuned did not end within ", kStopPatienceMs / 1000,
                        " s of SIGTERM");
  }
  return *status == 0
             ? ""
             : absl::StrCat("memtuned ended with ", DescribeStatus(*status));
}

std::string DaemonProcess::Ctl(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {
      bin_dir_ + "/memtunectl", "--target",
      absl::StrCat("unix:", dir_, "/run/memtuned.sock")};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const std::string output = dir_ + "/ctl";
  std::filesystem::remove(output);
  const auto status = Child::Exec(all, output).Wait(kStopPatienceMs);
  if (status && *status == 0) return "";
  return absl::StrCat(
      "memtunectl: ", status ? DescribeStatus(*status) : "no answer", ": ",
      ReadFile(output));
}

std::string DaemonProcess::LogTail() const {
  const std::string log = ReadFile(dir_ + "/log");
  return log.substr(log.size() - std::min<size_t>(log.size(), 4000));
}

uint64_t DaemonProcess::ReclaimedPages() const {
  const std::string key = "pages_given_back=";
  const std::string log = ReadFile(dir_ + "/log");
  uint64_t pages = 0;
  for (size_t at = log.find(key); at != std::string::npos;
       at = log.find(key, at)) {
    at += key.size();
    // Values may stand in quotes.
    const size_t digits = log[at] == '"' ? at + 1 : at;
    pages += std::strtoull(log.c_str() + digits, nullptr, 10);
  }
  return pages;
}

}  // namespace memtuned::torture
