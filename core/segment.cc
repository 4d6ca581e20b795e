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
                                    "invalid_order", "busy", "process_limit"};
  return kNames[static_cast<size_t>(reason)];
}

const char* FreeResultName(FreeResult result) {
  switch (result) {
    case FreeResult::kFreed:
      return "freed";
    case FreeResult::kNotAllocated:
      return "not_allocated";
    case FreeResult::kWrongOrder:
      return "wrong_order";
    case FreeResult::kForeign:
      return "foreign";
    case FreeResult::kOutOfRange:
      return "out_of_range";
    case FreeResult::kNotAttached:
      return "not_attached";
    case FreeResult::kBusy:
      return "busy";
    case FreeResult::kProcessLimit:
      return "process_limit";
    case FreeResult::kCount:
      break;
  }
  return nullptr;
}

Segment::~Segment() {
  if (header_ != nullptr) munmap(header_, metadata_bytes_);
  if (reservation_ != nullptr) munmap(reservation_, reserved_bytes_);
  if (metadata_fd_ >= 0) close(metadata_fd_);
  for (int fd : frame_fds_) close(fd);
}

absl::Status Segment::Map(int metadata_fd, uint64_t bytes) {
  metadata_fd_ = metadata_fd;
  const int access = read_only() ? PROT_READ : PROT_READ | PROT_WRITE;
  void* base = mmap(nullptr, bytes, access, MAP_SHARED, metadata_fd, 0);
  if (base == MAP_FAILED) return Failed("map metadata", errno);
  header_ = static_cast<SegmentHeader*>(base);
  metadata_bytes_ = bytes;
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

Mapping MakeMapping(SegmentHeader* h, const SegmentLayout& l, bool read_only) {
  Mapping m;
  m.base = reinterpret_cast<char*>(h);
  m.zones = At<ZoneShared>(h, l.zones);
  m.pagesets = At<PagesetShared>(h, l.pagesets);
  m.chunks = At<Chunk>(h, l.chunks);
  m.empty_chunks = h->empty_chunks.data();
  m.processes = At<ProcessSlot>(h, l.processes);
  m.threads = At<ThreadSlot>(h, l.threads);
  m.lives = At<LifePage>(h, l.lives);
  m.lock_takeovers = h->lock_takeovers.data();
  m.daemon = &h->daemon;
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
  if (read_only || (m.guard == GuardKind::kBiased && !env::JoinBarriers())) {
    m.guard = GuardKind::kClosed;
  }
  return m;
}

}  // namespace

absl::Status Segment::MapMetadata(int metadata_fd) {
  metadata_fd_ = metadata_fd;
  struct stat file;
  if (fstat(metadata_fd, &file) != 0) return Failed("stat", errno);
  const auto bytes = static_cast<uint64_t>(file.st_size);
  if (bytes < sizeof(SegmentHeader)) {
    return absl::DataLossError(
        absl::StrCat("segment: ", bytes, " bytes are too few for a header"));
  }
  if (absl::Status s = Map(metadata_fd, bytes); !s.ok()) return s;
  if (absl::Status s = Validate(bytes); !s.ok()) {
    munmap(header_, bytes);
    header_ = nullptr;
    return s;
  }
  const SegmentLayout layout = ComputeLayout(*header_);
  name_.assign(header_->name.data(),
               strnlen(header_->name.data(), header_->name.size()));
  populate_ = header_->populate;
  mapping_ = MakeMapping(header_, layout, read_only());
  nodes_ = At<NodeShared>(header_, layout.nodes);
  distances_ = At<uint32_t>(header_, layout.distances);
  return absl::OkStatus();
}

absl::Status Segment::LoadZones() {
  uint32_t section = 0;
  uint64_t map_word = 0;
  for (uint32_t i = 0; i < mapping_.nr_zones; ++i) {
    const ZoneInfo zone = mapping_.zones[i].Info();
    const uint64_t most = uint64_t{zone.nr_sections} << kSectionShift;
    const uint32_t words = SectionMap::Words(zone.nr_sections);
    if (zone.number != i || zone.first_section != section ||
        zone.nr_sections == 0 ||
        zone.nr_sections > mapping_.nr_sections - section ||
        zone.present_pages > most ||
        zone.present_pages + kPagesPerSection <= most ||
        (uint64_t{section} << kSectionShift) + zone.present_pages >
            mapping_.nr_pages ||
        zone.node_index >= mapping_.nr_nodes ||
        zone.node >= static_cast<uint32_t>(NodeMask::kBits) ||
        zone.kind > ZoneKind::kMovable || zone.map_words != words ||
        zone.map_start != map_word) {
      return absl::DataLossError(
          absl::StrCat("segment: zone ", i, " has impossible sizes"));
    }
    section += zone.nr_sections;
    map_word += uint64_t{SectionMap::WordsWithTops(words)} * kMapsPerZone;
    zone_info_.push_back(zone);
    zone_of_section_.insert(zone_of_section_.end(), zone.nr_sections,
                            static_cast<uint16_t>(i));
  }
  if (section != mapping_.nr_sections ||
      map_word != header_->section_map_words) {
    return absl::DataLossError(absl::StrCat("segment: its zones have ", section,
                                            " sections, its ", "header says ",
                                            mapping_.nr_sections));
  }
  mapping_.zone_info = zone_info_.data();
  mapping_.zone_of_section = zone_of_section_.data();
  zones_.reserve(mapping_.nr_zones);
  for (uint32_t i = 0; i < mapping_.nr_zones; ++i) {
    zones_.emplace_back(mapping_, mapping_.zones[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::Attach(
    int metadata_fd, std::vector<int> frame_fds, Access access) {
  std::unique_ptr<Segment> segment(new Segment);
  segment->access_ = access;
  segment->frame_fds_ = std::move(frame_fds);
  absl::Status status = segment->MapMetadata(metadata_fd);
  if (status.ok()) status = segment->LoadZones();
  if (status.ok() && !segment->frame_fds_.empty()) {
    status = segment->MapFrames();
  }
  if (!status.ok()) return status;
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
    const ZoneInfo& zone = zone_info_[i];
    const uint64_t start = uint64_t{zone.first_section} << kSectionShift;
    const uint64_t bytes = zone.present_pages << kPageShift;
    char* where = frames_ + (start << kPageShift);
    const int access = read_only() ? PROT_READ : PROT_READ | PROT_WRITE;
    if (mmap(where, bytes, access, MAP_SHARED | MAP_FIXED, frame_fds_[i], 0) ==
        MAP_FAILED) {
      return Failed("map frames", errno);
    }
    madvise(where, bytes, MADV_DONTDUMP);
    madvise(where, bytes, MADV_HUGEPAGE);  // where shmem allows it
  }
  return absl::OkStatus();
}

absl::Status Segment::ReserveFrames(uint32_t section) {
  const uint32_t number = mapping_.ZoneOfSection(section);
  if (frame_fds_.empty()) return absl::OkStatus();
  const ZoneInfo& zone = zone_info_[number];
  const uint64_t offset = uint64_t{section - zone.first_section}
                          << (kSectionShift + kPageShift);
  const uint64_t bytes = uint64_t{mapping_.PagesOfSection(section)}
                         << kPageShift;
  if (fallocate(frame_fds_[number], 0, static_cast<off_t>(offset),
                static_cast<off_t>(bytes)) != 0) {
    return Failed("reserve frames of a section", errno);
  }
  return absl::OkStatus();
}

TunableValue Segment::Tunable(TunableId id) const {
  const TunableDef& def = GetTunable(id);
  TunableValue value = DecodeTunable(
      def, LoadRelaxed(header_->tunables[static_cast<size_t>(id)]));
  if (MEMTUNED_LIKELY(CheckTunable(def, value).ok())) return value;
  if (!read_only()) header_->Degrade(Degraded::kTunable);
  return DefaultValue(def);
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
  const ZoneInfo& z = zone_info_[zone_number];
  // Sections come in order but for those whose frames could not be had.
  const auto start = static_cast<uint32_t>(
      LoadRelaxed(zones_[zone_number].shared().managed_pages) >> kSectionShift);
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
  if (populate_ == PopulateMode::kReserve) {
    if (absl::Status s = ReserveFrames(number); !s.ok()) {
      Exchange(section.state, populating,
               static_cast<uint32_t>(SectionState::kOffline));
      return s;
    }
  }
  Zone& zone = zones_[mapping_.ZoneOfSection(number)];
  ThreadContext thread;
  thread.owner = owner;
  thread.patience.Renew();
  if (!zone.Lock(thread)) {
    return absl::UnavailableError(
        "segment: the zone's lock is held by a process that does not run");
  }
  // Of several threads that reserved it, one hands it over.
  const bool first = LoadRelaxed(section.state) == populating;
  if (first) zone.OnlineSectionLocked(number);
  zone.Unlock(0);
  if (!first) return absl::OkStatus();
  // Should the lock not be had, whoever looks after the pool does it later.
  Recalculate(*this,
              Initialised() ? RecalculateTrigger::kInitialised
                            : RecalculateTrigger::kSection,
              owner);
  return absl::OkStatus();
}

uint64_t Segment::ManagedPages() const {
  uint64_t pages = 0;
  for (const Zone& zone : zones_) {
    pages += LoadRelaxed(zone.shared().managed_pages);
  }
  return pages;
}

uint32_t Segment::SectionsInitialised() const {
  uint64_t sections = 0;
  for (const Zone& zone : zones_) {
    const uint64_t managed = LoadRelaxed(zone.shared().managed_pages);
    sections += (managed + kPagesPerSection - 1) >> kSectionShift;
  }
  return static_cast<uint32_t>(sections);
}

}  // namespace memtuned
