// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/stamp.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace memtuned::torture {
namespace {

constexpr size_t kCopiesOfAPage = (kPageBytes - kHolderBytes) / sizeof(Stamp);

}  // namespace

uint64_t Stamp::CheckWord() const {
  // 0 for no stamp of ours: bytes that are all zero are none.
  return (owner * 0x9e3779b97f4a7c15ull ^ place) * 0xbf58476d1ce4e5b9ull ^
         sequence ^ 0x5a5a5a5a5a5a5a5aull;
}

Stamp Stamp::Make(uint64_t owner, uint64_t offset, int order, bool whole,
                  uint64_t sequence) {
  Stamp stamp = {owner,
                 offset | static_cast<uint64_t>(order) | (whole ? kWhole : 0),
                 sequence, 0};
  stamp.check = stamp.CheckWord();
  return stamp;
}

Stamp Stamp::Read(const char* block) {
  Stamp stamp;
  std::memcpy(&stamp, block + kHolderBytes, sizeof(stamp));
  return stamp;
}

size_t Stamp::CopiesIn(size_t page) const {
  const size_t last = (size_t{1} << order()) - 1;
  return whole() && (page == 0 || page == last) ? kCopiesOfAPage : 1;
}

void Stamp::Write(char* block) const {
  for (size_t page = 0; page < size_t{1} << order(); ++page) {
    char* copies = block + page * kPageBytes + kHolderBytes;
    const size_t nr_copies = CopiesIn(page);
    for (size_t i = 0; i < nr_copies; ++i) {
      std::memcpy(copies + i * sizeof(Stamp), this, sizeof(Stamp));
    }
  }
}

bool Stamp::HoldsPage(const char* copies, size_t nr_copies) const {
  uint64_t different = 0;
  for (size_t i = 0; i < nr_copies; ++i) {
    Stamp found;
    std::memcpy(&found, copies + i * sizeof(Stamp), sizeof(Stamp));
    different |= (found.owner ^ owner) | (found.place ^ place) |
                 (found.sequence ^ sequence) | (found.check ^ check);
  }
  return different == 0;
}

std::string Stamp::Check(const char* block) const {
  for (size_t page = 0; page < size_t{1} << order(); ++page) {
    const char* copies = block + page * kPageBytes + kHolderBytes;
    const size_t nr_copies = CopiesIn(page);
    if (HoldsPage(copies, nr_copies)) [[likely]] {
      continue;
    }
    for (size_t i = 0; i < nr_copies; ++i) {
      Stamp found;
      std::memcpy(&found, copies + i * sizeof(Stamp), sizeof(Stamp));
      if (found == *this) continue;
      return absl::StrCat("copy ", i, " of its page ", page, " is ",
                          found.Describe());
    }
    return absl::StrCat("page ", page, " changed back while it was read");
  }
  return "";
}

std::string Stamp::Describe() const {
  if (!IsStamp()) {
    return absl::StrCat("no stamp (", absl::Hex(owner), " ", absl::Hex(place),
                        " ", absl::Hex(sequence), " ", absl::Hex(check), ")");
  }
  return absl::StrCat("block ", sequence, " of worker ", owner >> 32, " (pid ",
                      owner & 0xffffffffu, ") at offset ", offset(), ", order ",
                      order());
}

}  // namespace memtuned::torture
