// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/frame_binding.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/log.h"

namespace memtuned {

void BindFrames(Segment& segment) {
  if (segment.frames() == nullptr) return;
  for (Zone& zone : segment.zones()) {
    const ZoneShared& z = zone.shared();
    NodeMask::Words words{};
    words[z.node / 64] = uint64_t{1} << (z.node % 64);
    char* start = segment.frames() +
                  (uint64_t{z.first_section} << (kSectionShift + kPageShift));
    const long done =
        syscall(SYS_mbind, start, z.present_pages << kPageShift, MPOL_BIND,
                words.data(), NodeMask::kBits + 1, MPOL_MF_MOVE);
    if (done != 0) {
      LogEvent(LogLevel::kWarning, "frames-not-bound",
               {{"pool", segment.name()},
                {"node", absl::StrCat(z.node)},
                {"error", std::strerror(errno)}});
    }
  }
}

}  // namespace memtuned
