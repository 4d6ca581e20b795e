// SPDX-License-Identifier: Apache-2.0
// Checks of what a --topology value names.
#include "daemon/host/topology_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/topology.h"

namespace memtuned {
namespace {

constexpr size_t kMaxSyntheticBytes = 64 * 1024;
constexpr char kSyntheticExample[] =
    "expected levels from the machine down to pu, as in 'node:2 pu:4', "
    "'node:2(memory=16GiB) core:8 pu:2' or "
    "'[numa(memory=16GiB)] pack:2 pu:4'";

std::string Shown(std::string_view text) {
  constexpr size_t kMaxShown = 80;
  const std::string_view head = text.substr(0, kMaxShown);
  return absl::StrCat(
      "'", absl::CHexEscape(absl::string_view(head.data(), head.size())), "'",
      text.size() > kMaxShown ? "..." : "");
}

absl::Status Refuse(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("topology file ", path, " ", why));
}

absl::Status OpenFailed(const std::string& path, int error) {
  const std::string text =
      absl::StrCat("topology file ", path, ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == EACCES) return absl::PermissionDeniedError(text);
  return absl::InvalidArgumentError(text);
}

// Closes a file descriptor at the end of its scope.
struct FdCloser {
  int fd;
  ~FdCloser() { close(fd); }
};

// Errors: see ReadTopologyXml. Blocks: no; a FIFO is refused, not awaited.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return OpenFailed(path, errno);
  const FdCloser closer{fd};
  struct stat info;
  if (fstat(fd, &info) != 0) return OpenFailed(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Refuse(path, S_ISDIR(info.st_mode)
                            ? "is a directory; a tree of /sys and /proc is "
                              "loaded with fsroot:DIR"
                            : "is not a regular file");
  }
  std::string text;
  char buffer[64 * 1024];
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return OpenFailed(path, errno);
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMaxTopologyXmlBytes) {
      return Refuse(path, absl::StrCat("has more than ", kMaxTopologyXmlBytes,
                                       " bytes, the most that is read"));
    }
  }
}

// The value of `name="…"` in a tag, empty if it has none.
std::string_view Attribute(std::string_view tag, std::string_view name) {
  const std::string key =
      absl::StrCat(" ", absl::string_view(name.data(), name.size()), "=\"");
  const size_t at = tag.find(key);
  if (at == std::string_view::npos) return {};
  tag.remove_prefix(at + key.size());
  return tag.substr(0, tag.find('"'));
}

// The first tag that begins with `start`, empty if there is none.
std::string_view FirstTag(std::string_view text, std::string_view start) {
  const size_t at = text.find(start);
  if (at == std::string_view::npos) return {};
  const size_t end = text.find('>', at);
  if (end == std::string_view::npos) return {};
  return text.substr(at, end - at + 1);
}

absl::Status CheckXmlText(const std::string& path, std::string_view text) {
  if (text.empty()) return Refuse(path, "is empty");
  if (text.find('\0') != std::string_view::npos) {
    return Refuse(path, "holds zero bytes: it is not XML");
  }
  const std::string_view root = FirstTag(text, "<topology");
  if (root.empty()) {
    return Refuse(path, "has no <topology> element: it is not hwloc XML");
  }
  const std::string_view version = Attribute(root, "version");
  if (!version.empty() && version.substr(0, 2) != "1." &&
      version.substr(0, 2) != "2.") {
    return Refuse(
        path, absl::StrCat("is hwloc XML of version ", Shown(version),
                           "; libhwloc 2.x reads versions 1 and 2 (export it "
                           "with lstopo --export-xml-flags v2)"));
  }
  if (text.find("\r\n") != std::string_view::npos) {
    return Refuse(path,
                  "has CRLF line ends, which libhwloc's own XML parser cannot "
                  "read; convert it with: sed -i 's/\\r$//' FILE");
  }
  if (Attribute(FirstTag(text, "<object"), "type") == "System") {
    return Refuse(path,
                  "describes several machines under a System object, which "
                  "libhwloc 2.x cannot read; export each machine by itself");
  }
  if (text.find("</topology>") == std::string_view::npos) {
    return Refuse(path, "ends before </topology>: it is cut off");
  }
  return absl::OkStatus();
}

absl::Status BadSynthetic(std::string_view word, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "synthetic topology: ", Shown(word), " ", why, "; ", kSyntheticExample));
}

// Reads a synthetic description word by word, keeping the number of objects
// of the level it is at.
class SyntheticScanner {
 public:
  explicit SyntheticScanner(std::string_view text) : rest_(text) {}

  absl::StatusOr<int> Scan() {
    while (true) {
      rest_.remove_prefix(
          std::min(rest_.find_first_not_of(" \n"), rest_.size()));
      if (rest_.empty()) break;
      if (absl::Status s = rest_.front() == '['   ? Attached()
                           : rest_.front() == '(' ? Attributes()
                                                  : Level();
          !s.ok()) {
        return s;
      }
    }
    if (levels_ == 0) return BadSynthetic("", "has no level");
    return static_cast<int>(objects_);
  }

 private:
  // "(memory=1GB …)" directly after the description's start or a level.
  absl::Status Attributes() {
    const size_t end = rest_.find(')');
    if (end == std::string_view::npos) {
      return BadSynthetic(rest_, "has no closing )");
    }
    rest_.remove_prefix(end + 1);
    return absl::OkStatus();
  }

  // "[numa(memory=1GB)]": one object more in each object of this level.
  absl::Status Attached() {
    const size_t end = rest_.find(']');
    if (end == std::string_view::npos) {
      return BadSynthetic(rest_, "has no closing ]");
    }
    rest_.remove_prefix(end + 1);
    return AddNodes();
  }

  absl::Status Level() {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \n[("));
    const size_t colon = word.find(':');
    const std::string_view type =
        colon == std::string_view::npos ? "" : word.substr(0, colon);
    std::string_view number = word;
    if (colon != std::string_view::npos) number.remove_prefix(colon + 1);
    int64_t count = 0;
    const char* end = number.data() + number.size();
    const auto [next, error] = std::from_chars(number.data(), end, count);
    if (error == std::errc::result_out_of_range) {
      return BadSynthetic(word, "asks for too many objects");
    }
    if (error != std::errc() || next != end) {
      return BadSynthetic(word, "is not TYPE:NUMBER");
    }
    if (count < 1) return BadSynthetic(word, "is less than one object");
    if (count > (kMaxCpuNumber + 1) / objects_) return TooMany(word, count);
    objects_ *= count;
    ++levels_;
    rest_.remove_prefix(word.size());
    // No other type begins like "node", "numa" and "NUMANode".
    const bool is_node = !type.empty() && (type[0] | 0x20) == 'n';
    return is_node ? AddNodes() : absl::OkStatus();
  }

  absl::Status TooMany(std::string_view word, int64_t count) const {
    return BadSynthetic(word,
                        absl::StrCat("asks for ", objects_, " times ", count,
                                     " objects; at most ", kMaxCpuNumber + 1,
                                     " CPUs are allowed"));
  }

  absl::Status AddNodes() {
    nodes_ += objects_;
    if (nodes_ <= kMaxNodes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "synthetic topology asks for ", nodes_, " or more NUMA nodes; at most ",
        kMaxNodes, " are allowed"));
  }

  std::string_view rest_;
  int levels_ = 0;
  int64_t objects_ = 1;  // of the level read last
  int64_t nodes_ = 0;
};

}  // namespace

absl::StatusOr<TopologyInput> SplitTopologySpec(const std::string& spec) {
  if (spec == "live") return TopologyInput{TopologyInputKind::kLive, ""};
  const size_t colon = spec.find(':');
  const std::string form = spec.substr(0, colon);
  const std::string argument =
      colon == std::string::npos ? "" : spec.substr(colon + 1);
  if (!argument.empty()) {
    if (form == "xml") return TopologyInput{TopologyInputKind::kXml, argument};
    if (form == "synthetic") {
      return TopologyInput{TopologyInputKind::kSynthetic, argument};
    }
    if (form == "fsroot") {
      return TopologyInput{TopologyInputKind::kFsroot, argument};
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("topology is ", Shown(spec),
                   "; allowed live, xml:FILE, synthetic:DESCRIPTION or "
                   "fsroot:DIRECTORY"));
}

absl::StatusOr<std::string> ReadTopologyXml(const std::string& path) {
  absl::StatusOr<std::string> text = ReadRegularFile(path);
  if (!text.ok()) return text;
  if (absl::Status status = CheckXmlText(path, *text); !status.ok()) {
    return status;
  }
  return text;
}

absl::StatusOr<int> CheckSynthetic(const std::string& description) {
  if (description.size() > kMaxSyntheticBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("synthetic topology has ", description.size(),
                     " characters; at most ", kMaxSyntheticBytes, " are read"));
  }
  return SyntheticScanner(description).Scan();
}

absl::Status CheckFsroot(const std::string& dir) {
  std::error_code error;
  const std::string wanted = dir + "/sys/devices/system/cpu";
  if (std::filesystem::is_directory(wanted, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("topology tree ", dir, " has no directory ", wanted,
                   error ? absl::StrCat(" (", error.message(), ")") : ""));
}

}  // namespace memtuned
