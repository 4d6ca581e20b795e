// SPDX-License-Identifier: Apache-2.0
// What memtuned-torture is asked to do. Read once, then constant; workers are
// forked with a copy.
#ifndef MEMTUNED_TESTS_TORTURE_OPTIONS_H_
#define MEMTUNED_TESTS_TORTURE_OPTIONS_H_

#include <cstdint>
#include <string>

namespace memtuned::torture {

// A fault that a run commits on purpose, to show that it would be found.
enum class Sabotage {
  kNone,
  kScribble,  // a worker writes into another's block
  kLeak,      // a block is not given back
  kWait,      // a call takes longer than allowed
  kHang,      // a call never returns
};

// What is measured instead of tortured.
enum class Measure {
  kNone,
  kReap,      // from a process's end to its pages being back
  kTakeover,  // from a kill to the dead thread's lock having a new holder
};

inline constexpr uint32_t kMostWorkers = 64;  // those of a storm among them
inline constexpr uint32_t kStormWorkers = 8;

struct Options {
  double seconds = 60;
  uint32_t workers = 8;         // processes, 1 to kMostWorkers - kStormWorkers
  uint32_t kill_every_ms = 10;  // on average; 0: nobody is killed
  uint64_t pool_mib = 160;      // a multiple of 4, so that top blocks fill it
  uint64_t seed = 1;
  bool stop = false;         // SIGSTOP a worker now and then
  bool kill_daemon = false;  // kill -9 the daemon each second
  uint32_t storm = 0;        // attaches a second aimed at; 0: no storm
  uint32_t max_wait_ms = 50;
  Sabotage sabotage = Sabotage::kNone;
  Measure measure = Measure::kNone;
  uint32_t rounds = 31;       // of a measurement
  std::string pool_settings;  // appended to the daemon's --pool
  std::string topology = "live";
  std::string bin_dir;  // of memtuned and memtunectl; "": this program's

  uint32_t processes() const {
    return workers + (storm != 0 ? kStormWorkers : 0);
  }
  uint64_t max_wait_ns() const { return uint64_t{max_wait_ms} * 1000000; }
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_OPTIONS_H_
