// SPDX-License-Identifier: Apache-2.0
#include "core/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/recalculate.h"
#include "core/segment_layout.h"

namespace memtuned {
namespace {

// Blocks are naturally aligned in memory up to a whole section.
constexpr uint64_t kFramesAlignment = uint64_t{kPagesPerSection} << kPageShift;

absl::Status Failed(const char* what, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("segment: ", what, ": ", std::strerror(error)));
}

}  // namespace

const char* TriggerName(RecalculateTrigger trigger) {
  constexpr const char* kNames[] = {"created", "section",   "initialised",
                                    "cpus",    "watermark", "tunable",
                                    "request"};
  return kNames[static_cast<size_t>(trigger)];
}

const char* FailureReasonName(FailureReason reason) {
  constexpr const char* kNames[] = {"no_memory", "not_attached",
                                    "invalid_order"};
  return kNames[static_cast<size_t>(reason)];
}

const char* FreeResultName(FreeResult result) {
  constexpr const char* kNames[] = {"freed",   "not_allocated", "wrong_order",
                                    "foreign", "out_of_range",  "not_attached"};
  return kNames[static_cast<size_t>(result)];
}

Segment::~Segment() {
  if (header_ != nullptr) munmap(header_, header_->total_bytes);
  if (reservation_ != nullptr) munmap(reservation_, reserved_bytes_);
  if (metadata_fd_ >= 0) close(metadata_fd_);
  for (int fd : frame_fds_) close(fd);
}

absl::Status Segment::Map(int metadata_fd, uint64_t bytes) {
  metadata_fd_ = metadata_fd;
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, metadata_fd, 0);
  if (base == MAP_FAILED) return Failed("map metadata", errno);
  header_ = static_cast<SegmentHeader*>(base);
  return absl::OkStatus();
}

absl::Status Segment::Validate(uint64_t file_bytes) {
  const SegmentHeader& h = *header_;
  if (h.magic != kSegmentMagic) {
    return absl::DataLossError("segment: not a memtuned segment (bad magic)");
  }
  if (h.layout_version != kLayoutVersion || h.abi_hash != AbiHash()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "segment: layout ", h.layout_version, " abi ", absl::Hex(h.abi_hash),
        "; this library has layout ", kLayoutVersion, " abi ",
        absl::Hex(AbiHash()), ": rebuild against the daemon's version"));
  }
  if ((h.guard != GuardKind::kTrylock && h.guard != GuardKind::kBiased) ||
      h.page_size_bytes != kPageSizeBytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "segment: guard ", static_cast<uint32_t>(h.guard), ", page size ",
        h.page_size_bytes, " are not supported here"));
  }
  if (absl::Status sizes = CheckSizes(h); !sizes.ok()) {
    return absl::DataLossError(absl::StrCat(sizes.message()));
  }
  const SegmentLayout layout = ComputeLayout(h);
  if (h.total_bytes != layout.total_bytes || file_bytes < h.total_bytes) {
    return absl::DataLossError(absl::StrCat(
        "segment: header says ", h.total_bytes, " bytes, its sizes need ",
        layout.total_bytes, ", the file has ", file_bytes));
  }
  return absl::OkStatus();
}

namespace {

template <typename T>
T* At(SegmentHeader* header, uint64_t offset) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(header) + offset);
}

Mapping MakeMapping(SegmentHeader* h, const SegmentLayout& l) {
  Mapping m;
  m.base = reinterpret_cast<char*>(h);
  m.zones = At<ZoneShared>(h, l.zones);
  m.pagesets = At<PagesetShared>(h, l.pagesets);
  m.chunks = At<Chunk>(h, l.chunks);
  m.empty_chunks = &h->empty_chunks;
  m.fresh_chunks = &h->fresh_chunks;
  m.processes = At<ProcessSlot>(h, l.processes);
  m.threads = At<ThreadSlot>(h, l.threads);
  m.process_sections = At<Shared64>(h, l.process_sections);
  m.sections = At<Section>(h, l.sections);
  m.free_areas = At<SectionFreeAreas>(h, l.free_areas);
  m.section_maps = At<Shared64>(h, l.section_maps);
  m.memmap = At<Page>(h, l.memmap);
  m.cpu_table = At<CpuEntry>(h, l.cpu_table);
  m.online_cpus = At<Shared64>(h, l.online_cpus);
  m.zonelists = At<uint16_t>(h, l.zonelists);
  m.nr_zones = h->nr_zones;
  m.nr_nodes = h->nr_nodes;
  m.nr_cpus = h->nr_cpus;
  m.nr_chunks = h->nr_chunks;
  m.nr_sections = h->nr_sections;
  m.nr_pages = h->nr_pages;
  m.nr_processes = h->nr_processes;
  m.nr_threads = h->nr_threads;
  m.llc_pages_per_cpu = h->llc_pages_per_cpu;
  m.guard = h->guard;
  // Without barriers nobody could take the guards of this process's threads
  // from them: it goes past the pagesets.
  if (m.guard == GuardKind::kBiased && !env::JoinBarriers()) {
    m.guard = GuardKind::kClosed;
  }
  return m;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Segment>> Segment::Attach(
    int metadata_fd, std::vector<int> frame_fds) {
  std::unique_ptr<Segment> segment(new Segment);
  segment->metadata_fd_ = metadata_fd;
  segment->frame_fds_ = std::move(frame_fds);
  struct stat file;
  if (fstat(metadata_fd, &file) != 0) return Failed("stat", errno);
  const auto bytes = static_cast<uint64_t>(file.st_size);
  if (bytes < sizeof(SegmentHeader)) {
    return absl::DataLossError(
        absl::StrCat("segment: ", bytes, " bytes are too few for a header"));
  }
  if (absl::Status s = segment->Map(metadata_fd, bytes); !s.ok()) return s;
  if (absl::Status s = segment->Validate(bytes); !s.ok()) {
    munmap(segment->header_, bytes);
    segment->header_ = nullptr;
    return s;
  }
  SegmentHeader* h = segment->header_;
  const SegmentLayout layout = ComputeLayout(*h);
  segment->mapping_ = MakeMapping(h, layout);
  segment->nodes_ = At<NodeShared>(h, layout.nodes);
  segment->distances_ = At<uint32_t>(h, layout.distances);
  segment->zones_.reserve(h->nr_zones);
  for (uint32_t i = 0; i < h->nr_zones; ++i) {
    segment->zones_.emplace_back(segment->mapping_, segment->mapping_.zones[i]);
  }
  if (!segment->frame_fds_.empty()) {
    if (absl::Status s = segment->MapFrames(); !s.ok()) return s;
  }
  return segment;
}

absl::Status Segment::MapFrames() {
  if (frame_fds_.size() != mapping_.nr_zones) {
    return absl::DataLossError(absl::StrCat("segment: ", frame_fds_.size(),
                                            " frame files for ",
                                            mapping_.nr_zones, " zones"));
  }
  reserved_bytes_ = frames_bytes() + kFramesAlignment;
  reservation_ = mmap(nullptr, reserved_bytes_, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reservation_ == MAP_FAILED) {
    reservation_ = nullptr;
    return Failed("reserve address space", errno);
  }
  const auto address = reinterpret_cast<uint64_t>(reservation_);
  const uint64_t aligned =
      (address + kFramesAlignment - 1) & ~(kFramesAlignment - 1);
  frames_ = reinterpret_cast<char*>(aligned);
  for (uint32_t i = 0; i < mapping_.nr_zones; ++i) {
    const ZoneShared& zone = mapping_.zones[i];
    const uint64_t start = uint64_t{zone.first_section} << kSectionShift;
    const uint64_t bytes = zone.present_pages << kPageShift;
    if (start + zone.present_pages > mapping_.nr_pages) {
      return absl::DataLossError("segment: a zone lies outside the pool");
    }
    char* where = frames_ + (start << kPageShift);
    if (mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             frame_fds_[i], 0) == MAP_FAILED) {
      return Failed("map frames", errno);
    }
    madvise(where, bytes, MADV_DONTDUMP);
    madvise(where, bytes, MADV_HUGEPAGE);  // where shmem allows it
  }
  return absl::OkStatus();
}

absl::Status Segment::ReserveFrames(uint32_t section) {
  const uint32_t number = LoadRelaxed(mapping_.sections[section].zone);
  if (frame_fds_.empty() || number >= frame_fds_.size()) {
    return absl::OkStatus();
  }
  const ZoneShared& zone = mapping_.zones[number];
  const uint64_t offset = uint64_t{section - zone.first_section}
                          << (kSectionShift + kPageShift);
  const uint64_t bytes = uint64_t{LoadRelaxed(mapping_.sections[section].pages)}
                         << kPageShift;
  if (fallocate(frame_fds_[number], 0, static_cast<off_t>(offset),
                static_cast<off_t>(bytes)) != 0) {
    return Failed("reserve frames of a section", errno);
  }
  return absl::OkStatus();
}

TunableValue Segment::Tunable(TunableId id) const {
  return DecodeTunable(GetTunable(id),
                       LoadRelaxed(header_->tunables[static_cast<size_t>(id)]));
}

double Segment::RealTunable(TunableId id) const {
  const TunableValue value = Tunable(id);
  const double* real = std::get_if<double>(&value);
  return real != nullptr ? *real : 0;
}

int64_t Segment::IntegerTunable(TunableId id) const {
  const TunableValue value = Tunable(id);
  const int64_t* integer = std::get_if<int64_t>(&value);
  return integer != nullptr ? *integer : -1;
}

absl::StatusOr<bool> Segment::InitialiseNextSection(uint32_t zone_number,
                                                    ThreadOwner owner) {
  const ZoneShared& z = zones_[zone_number].shared();
  // Sections come in order but for those whose frames could not be had.
  const auto start =
      static_cast<uint32_t>(LoadRelaxed(z.managed_pages) >> kSectionShift);
  for (SectionState wanted :
       {SectionState::kOffline, SectionState::kPopulating}) {
    for (uint32_t i = 0; i < z.nr_sections; ++i) {
      const uint32_t number = z.first_section + (start + i) % z.nr_sections;
      auto state = static_cast<uint32_t>(wanted);
      Shared32& section = mapping_.sections[number].state;
      if (LoadRelaxed(section) != state ||
          !Exchange(section, state,
                    static_cast<uint32_t>(SectionState::kPopulating))) {
        continue;
      }
      if (absl::Status s = InitialiseSection(number, owner); !s.ok()) return s;
      return true;
    }
  }
  return false;
}

absl::Status Segment::InitialiseSection(uint32_t number, ThreadOwner owner) {
  Section& section = mapping_.sections[number];
  auto populating = static_cast<uint32_t>(SectionState::kPopulating);
  if (header_->populate == PopulateMode::kReserve) {
    if (absl::Status s = ReserveFrames(number); !s.ok()) {
      Exchange(section.state, populating,
               static_cast<uint32_t>(SectionState::kOffline));
      return s;
    }
  }
  Zone& zone = zones_[LoadRelaxed(section.zone)];
  zone.Lock(owner);
  // Of several threads that reserved it, one hands it over.
  const bool first = LoadRelaxed(section.state) == populating;
  if (first) zone.OnlineSectionLocked(number);
  zone.Unlock(0);
  if (!first) return absl::OkStatus();
  const uint64_t done = header_->sections_initialised.fetch_add(1) + 1;
  Recalculate(*this,
              done == mapping_.nr_sections ? RecalculateTrigger::kInitialised
                                           : RecalculateTrigger::kSection,
              owner);
  return absl::OkStatus();
}

}  // namespace memtuned
