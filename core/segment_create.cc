// SPDX-License-Identifier: Apache-2.0
// Segment::Create: sizes from a topology, descriptors, first contents.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/file_descriptor.h"
#include "core/mm/zonelist.h"
#include "core/recalculate.h"
#include "core/segment.h"
#include "core/segment_layout.h"

namespace memtuned {
namespace {

constexpr uint64_t kAuto =
    static_cast<uint64_t>(std::numeric_limits<int64_t>::min());

absl::StatusOr<FileDescriptor> MakeFile(const std::string& name,
                                        uint64_t bytes) {
  FileDescriptor fd(
      memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0 || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "segment: memory file of ", bytes, " bytes: ", std::strerror(errno)));
  }
  // The size is fixed for good: nobody can make others fault by shrinking, nor
  // keep others out by a further seal. Whoever got a descriptor for reading
  // must not be able to open the file again for writing; its owner can.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
          0 ||
      fchmod(fd.get(), 0600) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "segment: memory file cannot be sealed: ", std::strerror(errno)));
  }
  return fd;
}

uint32_t SectionsOf(uint64_t pages) {
  return static_cast<uint32_t>((pages + kPagesPerSection - 1) >> kSectionShift);
}

absl::Status CheckConfig(const SegmentConfig& config) {
  if (absl::Status s = config.topology.Validate(); !s.ok()) return s;
  if (config.nodes.size() != config.topology.nodes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "segment: sizes for ", config.nodes.size(), " nodes, the topology has ",
        config.topology.nodes.size()));
  }
  uint64_t sections = 0;
  for (const SegmentNode& node : config.nodes) {
    constexpr uint64_t kMost = uint64_t{kMaxSections - 1} << kSectionShift;
    if (node.pages > kMost) {
      return absl::InvalidArgumentError(
          absl::StrCat("segment: node ", node.os_index, " has ", node.pages,
                       " pages; allowed 0 to ", kMost));
    }
    sections += SectionsOf(node.pages);
  }
  if (sections == 0 || sections >= kMaxSections) {
    return absl::InvalidArgumentError(
        absl::StrCat("segment: ", sections, " sections of 128 MiB; allowed 1 ",
                     "to ", kMaxSections - 1));
  }
  return absl::OkStatus();
}

// On the live machine a CPU is itself. On a described one the machine's
// CPUs play the first CPUs of the description, by number modulo.
int PlayedBy(const Topology& t, const std::vector<int>& online, int number) {
  const bool known = std::binary_search(online.begin(), online.end(), number) ||
                     std::find(t.offline_cpus.begin(), t.offline_cpus.end(),
                               number) != t.offline_cpus.end();
  if (known) return number;
  return online.empty() ? 0
                        : online[static_cast<size_t>(number) % online.size()];
}

// The CPUs of this machine that have each of their pagesets for themselves.
// Those that are online come first.
std::vector<bool> Seats(const Topology& t, const std::vector<int>& online) {
  std::vector<bool> seats(kMaxCpuNumber + 1), taken(kMaxCpuNumber + 1);
  std::vector<int> numbers = env::OnlineCpus();
  for (int n = 0; n <= kMaxCpuNumber; ++n) numbers.push_back(n);
  for (int number : numbers) {
    if (number > kMaxCpuNumber || seats[static_cast<size_t>(number)]) continue;
    const auto cpu = static_cast<size_t>(PlayedBy(t, online, number));
    seats[static_cast<size_t>(number)] = !taken[cpu];
    taken[cpu] = true;
  }
  return seats;
}

GuardKind GuardKindFor(const Topology& t) {
  const std::vector<bool> seats = Seats(t, t.OnlineCpus());
  const std::vector<int> machine = env::OnlineCpus();
  const bool alone =
      std::all_of(machine.begin(), machine.end(), [&](int number) {
        return number <= kMaxCpuNumber && seats[static_cast<size_t>(number)];
      });
  return alone && env::JoinBarriers() ? GuardKind::kBiased
                                      : GuardKind::kTrylock;
}

SegmentHeader* Sizes(const SegmentConfig& config, SegmentHeader* h) {
  h->nr_nodes = static_cast<uint32_t>(config.nodes.size());
  h->nr_cpus =
      static_cast<uint32_t>(std::max(1, config.topology.CpuNumberEnd()));
  uint64_t pages = 0;
  for (const SegmentNode& node : config.nodes) {
    if (node.pages == 0) continue;
    ++h->nr_zones;
    const uint32_t sections = SectionsOf(node.pages);
    h->nr_sections += sections;
    const uint32_t words = SectionMap::Words(sections);
    h->section_map_words +=
        uint64_t{SectionMap::WordsWithTops(words)} * kMapsPerZone;
    pages = (uint64_t{h->nr_sections - sections} << kSectionShift) + node.pages;
  }
  h->nr_pages = static_cast<uint32_t>(pages);
  // Loaded and spare of every list, and an eighth of all pages in pagesets
  // and another in depots.
  const uint64_t chunks =
      uint64_t{h->nr_zones} * h->nr_cpus * kNumLists * 2 + pages / 256 + 1024;
  h->nr_chunks = static_cast<uint32_t>(std::min<uint64_t>(chunks, kMaxChunks));
  h->nr_processes = config.nr_processes;
  h->nr_threads = config.nr_threads;
  h->llc_pages_per_cpu = config.llc_pages_per_cpu;
  h->populate = config.populate;
  return h;
}

void FillHeader(const SegmentConfig& config, SegmentHeader* h) {
  Sizes(config, h);
  h->layout_version = kLayoutVersion;
  h->guard = config.guard != GuardKind::kClosed ? config.guard
                                                : GuardKindFor(config.topology);
  h->abi_hash = AbiHash();
  h->page_size_bytes = kPageSizeBytes;
  h->total_bytes = ComputeLayout(*h).total_bytes;
  const size_t length = std::min(config.name.size(), h->name.size() - 1);
  std::copy_n(config.name.begin(), length, h->name.begin());
  if (getrandom(h->id.data(), h->id.size(), 0) < 0) h->id.fill(0);
  // Chunk 0 is nobody's.
  uint32_t first = 1;
  for (size_t i = 0; i < h->empty_chunks.size(); ++i) {
    ChunkStack& stack = h->empty_chunks[i];
    const auto end = static_cast<uint32_t>(uint64_t{h->nr_chunks} * (i + 1) /
                                           h->empty_chunks.size());
    Store(stack.fresh_begin, first);
    Store(stack.fresh, first);
    Store(stack.fresh_end, std::max(first, end));
    first = std::max(first, end);
  }
  for (int i = 0; i < kNumTunables; ++i) {
    const auto t = static_cast<size_t>(i);
    Store(h->tunables[t], EncodeTunable(TunableTable()[t], config.tunables[t]));
  }
}

}  // namespace

std::array<TunableValue, kNumTunables> DefaultTunables() {
  std::array<TunableValue, kNumTunables> values;
  for (const TunableDef& def : TunableTable()) {
    values[static_cast<size_t>(def.id)] = DefaultValue(def);
  }
  return values;
}

uint64_t EncodeTunable(const TunableDef& def, const TunableValue& value) {
  if (const int64_t* integer = std::get_if<int64_t>(&value)) {
    return static_cast<uint64_t>(*integer);
  }
  if (const double* real = std::get_if<double>(&value)) {
    return std::bit_cast<uint64_t>(*real);
  }
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  if (const std::string* text = std::get_if<std::string>(&value)) {
    for (size_t i = 0; i < def.choices.size(); ++i) {
      if (*text == def.choices[i]) return i;
    }
  }
  return kAuto;
}

TunableValue DecodeTunable(const TunableDef& def, uint64_t word) {
  if (def.kind != TunableKind::kReal && word == kAuto) return AutoValue{};
  switch (def.kind) {
    case TunableKind::kInteger:
      return static_cast<int64_t>(word);
    case TunableKind::kReal:
      return std::bit_cast<double>(word);
    case TunableKind::kFlag:
      return word != 0;
    case TunableKind::kChoice:
      break;
  }
  return word < def.choices.size()
             ? TunableValue(std::string(def.choices[word]))
             : TunableValue(AutoValue{});
}

namespace {

void FillZones(const SegmentConfig& config, Segment& segment) {
  const Mapping& m = segment.mapping();
  uint32_t section = 0, zone_number = 0;
  uint64_t map_word = 0;
  for (uint32_t n = 0; n < m.nr_nodes; ++n) {
    NodeShared& node = segment.nodes()[n];
    const TopologyNode& from = config.topology.nodes[n];
    const uint64_t pages = config.nodes[n].pages;
    node.os_index = static_cast<uint32_t>(from.os_index);
    node.first_section = section;
    node.nr_sections = SectionsOf(pages);
    node.zone = kNil;
    Store(node.online_cpus, static_cast<uint32_t>(from.cpus.size()));
    if (pages == 0) continue;
    ZoneShared& z = m.zones[zone_number];
    z.number = node.zone = zone_number++;
    z.node = node.os_index;
    z.node_index = n;
    z.kind = ZoneKind::kNormal;
    z.first_section = section;
    z.nr_sections = node.nr_sections;
    z.present_pages = pages;
    z.map_words = SectionMap::Words(node.nr_sections);
    z.map_start = map_word;
    map_word += uint64_t{SectionMap::WordsWithTops(z.map_words)} * kMapsPerZone;
    Store(z.intent.what, kNil);
    for (uint32_t i = 0; i < node.nr_sections; ++i) {
      Section& entry = m.sections[section + i];
      Store(entry.zone, z.number);
      const uint64_t left = pages - (uint64_t{i} << kSectionShift);
      Store(entry.pages,
            static_cast<uint32_t>(std::min<uint64_t>(left, kPagesPerSection)));
    }
    section += node.nr_sections;
  }
}

void FillZonelists(const SegmentConfig& config, Segment& segment,
                   uint16_t* zonelists, uint32_t* distances) {
  const Mapping& m = segment.mapping();
  std::vector<ZonelistNode> nodes;
  for (uint32_t n = 0; n < m.nr_nodes; ++n) {
    nodes.push_back({config.topology.nodes[n].os_index,
                     segment.nodes()[n].zone != kNil,
                     !config.topology.nodes[n].cpus.empty()});
    for (uint32_t to = 0; to < m.nr_nodes; ++to) {
      distances[n * m.nr_nodes + to] =
          static_cast<uint32_t>(config.topology.distances[n][to]);
    }
  }
  const auto orders = ComputeNodeOrders(nodes, config.topology.distances);
  for (uint32_t n = 0; n < m.nr_nodes; ++n) {
    uint16_t* list = zonelists + size_t{n} * m.nr_zones;
    for (int position : orders[n]) {
      *list++ = static_cast<uint16_t>(
          segment.nodes()[static_cast<size_t>(position)].zone);
    }
  }
}

void FillCpus(const SegmentConfig& config, Segment& segment) {
  const Mapping& m = segment.mapping();
  const Topology& t = config.topology;
  const std::vector<int> online = t.OnlineCpus();
  for (int cpu : online) {
    Shared64& word = m.online_cpus[static_cast<size_t>(cpu) / 64];
    Store(word, LoadRelaxed(word) | uint64_t{1} << (cpu % 64));
  }
  const std::vector<bool> seats = Seats(t, online);
  for (int number = 0; number <= kMaxCpuNumber; ++number) {
    const int cpu = PlayedBy(t, online, number);
    int home = t.HomeNodeOf(cpu);
    uint32_t zone =
        home < 0 ? kNil : segment.nodes()[static_cast<size_t>(home)].zone;
    if (zone == kNil) {
      // Served from the nearest node that has part of this pool.
      const auto index = static_cast<uint32_t>(std::max(home, 0));
      zone = segment.ZonelistOf(index)[0];
    }
    CpuEntry& entry = m.cpu_table[number];
    Store(entry.has_seat, seats[static_cast<size_t>(number)] ? 1u : 0u);
    Store(entry.cpu, static_cast<uint32_t>(cpu));
    Store(entry.node, m.zones[zone].node);
    Store(entry.zone, zone);
    Store(entry.pageset, zone * m.nr_cpus + static_cast<uint32_t>(cpu));
    Store(entry.first_pfn, m.zones[zone].first_section << kSectionShift);
    Store(entry.nr_pages, static_cast<uint32_t>(m.zones[zone].present_pages));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Segment>> Segment::Create(
    const SegmentConfig& config) {
  if (absl::Status s = CheckConfig(config); !s.ok()) return s;
  SegmentHeader sizes{};
  FillHeader(config, &sizes);
  if (absl::Status s = CheckSizes(sizes); !s.ok()) return s;
  auto metadata = MakeFile("memtuned:" + config.name, sizes.total_bytes);
  if (!metadata.ok()) return metadata.status();
  {
    void* page = mmap(nullptr, sizeof(SegmentHeader), PROT_READ | PROT_WRITE,
                      MAP_SHARED, metadata->get(), 0);
    if (page == MAP_FAILED) {
      return absl::ResourceExhaustedError("segment: map header");
    }
    FillHeader(config, static_cast<SegmentHeader*>(page));
    static_cast<SegmentHeader*>(page)->magic = kSegmentMagic;
    munmap(page, sizeof(SegmentHeader));
  }
  std::vector<int> frames;
  std::vector<FileDescriptor> keep;
  for (const SegmentNode& node : config.nodes) {
    if (!config.with_frames || node.pages == 0) continue;
    auto file =
        MakeFile(absl::StrCat("memtuned:", config.name, ":node", node.os_index),
                 node.pages << kPageShift);
    if (!file.ok()) return file.status();
    keep.push_back(std::move(*file));
  }
  frames.reserve(keep.size());
  for (FileDescriptor& fd : keep) frames.push_back(fd.Release());
  // Attach validates what was just written; zones need their numbers first
  // only to map frames, so contents come before the frames.
  auto segment = AttachNew(metadata->Release(), std::move(frames), config);
  return segment;
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::AttachNew(
    int metadata_fd, std::vector<int> frame_fds, const SegmentConfig& config) {
  std::unique_ptr<Segment> attached(new Segment);
  Segment& segment = *attached;
  segment.frame_fds_ = std::move(frame_fds);
  if (absl::Status s = segment.MapMetadata(metadata_fd); !s.ok()) return s;
  FillZones(config, segment);
  if (absl::Status s = segment.LoadZones(); !s.ok()) return s;
  FillZonelists(config, segment,
                const_cast<uint16_t*>(segment.mapping_.zonelists),
                const_cast<uint32_t*>(segment.distances_));
  FillCpus(config, segment);
  if (!segment.frame_fds_.empty()) {
    if (absl::Status s = segment.MapFrames(); !s.ok()) return s;
  }
  Recalculate(segment, RecalculateTrigger::kCreated, kCreatorOwner);
  for (Zone& zone : segment.zones_) {
    for (uint32_t i = 0; i < config.first_sections; ++i) {
      auto more =
          segment.InitialiseNextSection(zone.shared().number, kCreatorOwner);
      if (!more.ok()) return more.status();
      if (!*more) break;
    }
  }
  Recalculate(segment, RecalculateTrigger::kCreated, kCreatorOwner);
  return attached;
}

}  // namespace memtuned
