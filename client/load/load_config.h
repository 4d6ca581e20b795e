// SPDX-License-Identifier: Apache-2.0
// What memtune-load is asked to do. Read once, then constant.
#ifndef MEMTUNED_CLIENT_LOAD_LOAD_CONFIG_H_
#define MEMTUNED_CLIENT_LOAD_LOAD_CONFIG_H_

#include <array>
#include <cstdint>
#include <string>

namespace memtuned::load {

enum class Shape { kLifo, kBurst, kStream, kProducerConsumer, kFault };

// One row a shape; `N` is the number behind it on the command line.
struct ShapeDef {
  Shape shape;
  const char* name;
  const char* help;
  const char* n_means;  // nullptr: takes no N
  uint32_t n_default, n_min, n_max;
  int default_order;
};

inline constexpr std::array<ShapeDef, 5> kShapes = {{
    {Shape::kLifo, "lifo", "allocate a block, free it", nullptr, 0, 0, 0, 0},
    {Shape::kBurst, "burst", "allocate N blocks, free them in that order",
     "blocks", 512, 1, 1000000, 0},
    {Shape::kStream, "stream",
     "runs of 1 to N allocations and of frees, oldest first, as a network "
     "stack makes them",
     "longest run", 64, 1, 4096, 3},
    {Shape::kProducerConsumer, "producer-consumer",
     "one allocates, another frees; through a ring of N entries, between "
     "threads or, with two or more processes, by offer and adopt",
     "ring entries, a power of two", 256, 2, 65536, 0},
    {Shape::kFault, "fault",
     "allocate N blocks, write to each page, check it, free them", "blocks",
     512, 1, 100000, 0},
}};
inline const ShapeDef& GetShape(Shape shape) {
  return kShapes[static_cast<size_t>(shape)];
}

inline constexpr uint32_t kMostProcesses = 256;
inline constexpr uint32_t kMostThreads = 256;  // a process
inline constexpr uint32_t kMostWorkers = 1024;

struct LoadConfig {
  std::string socket_path;
  uint32_t processes = 1;
  uint32_t threads = 1;  // a process
  double seconds = 5;
  int order = -1;  // -1 until the shape's default is filled in
  Shape shape = Shape::kLifo;
  uint32_t n = 0;
  uint64_t seed = 1;
  bool json = false;
  bool progress = false;

  uint32_t workers() const { return processes * threads; }
  bool between_processes() const {
    return shape == Shape::kProducerConsumer && processes > 1;
  }
};

}  // namespace memtuned::load

#endif  // MEMTUNED_CLIENT_LOAD_LOAD_CONFIG_H_
