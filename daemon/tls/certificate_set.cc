// SPDX-License-Identifier: Apache-2.0
// Reads the files, however odd what lies there.
#include "daemon/tls/certificate_set.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace memtuned {
namespace {

// A bundle of every public CA has a quarter of it.
constexpr size_t kMaxFileBytes = 1 << 20;

absl::Status Unreadable(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": cannot be read: ", why));
}

// Appends the file to `text`. Returns: 0 or an errno.
int ReadAll(int fd, std::string& text) {
  char buffer[16384];
  while (text.size() <= kMaxFileBytes) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got == 0) return 0;
    if (got < 0 && errno != EINTR) return errno;
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  return EFBIG;
}

CertificateFile ReadOne(const std::string& path) {
  CertificateFile file;
  file.path = path;
  // Nonblocking: a pipe in its place must not hold up the daemon.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    file.status = Unreadable(path, std::strerror(errno));
    return file;
  }
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    file.status = Unreadable(path, "it is not a regular file");
  } else if (const int error = ReadAll(fd, file.text); error != 0) {
    file.status = Unreadable(path, std::strerror(error));
    file.text.clear();
  }
  close(fd);
  return file;
}

}  // namespace

CertificateSet ReadCertificateSet(const CertificatePaths& paths) {
  return {ReadOne(paths.certificate), ReadOne(paths.key),
          ReadOne(paths.client_ca)};
}

std::string CertificateVerdict::Reason() const {
  std::string reason(server.message());
  if (!server.ok() && !ca.ok()) reason += "; ";
  return reason + std::string(ca.message());
}

std::string TimeText(SystemTime time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", absl::FromChrono(time),
                          absl::UTCTimeZone());
}

}  // namespace memtuned
