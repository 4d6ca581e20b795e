// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/command_line.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

namespace memtuned::torture {
namespace {

constexpr char kAbout[] =
    "Kills processes of a pool at random moments and looks whether the pool\n"
    "bears it. Exit status: 0 it did, 1 it did not, 2 wrong arguments.";

const std::map<std::string, Sabotage> kSabotages = {
    {"scribble", Sabotage::kScribble},
    {"leak", Sabotage::kLeak},
    {"wait", Sabotage::kWait},
    {"hang", Sabotage::kHang},
};

const std::map<std::string, Measure> kMeasures = {
    {"reap", Measure::kReap},
    {"takeover", Measure::kTakeover},
};

void AddModes(CLI::App& app, Options& options) {
  app.add_flag("--stop", options.stop,
               "also SIGSTOP a worker for 5 to 300 ms, again and again");
  app.add_flag("--kill-daemon", options.kill_daemon,
               "also kill -9 the daemon each second and start it again");
  app.add_option("--storm", options.storm,
                 "also attach and detach that often a second, as far as the "
                 "machine allows")
      ->check(CLI::Range(0, 100000));
  app.add_option("--self-test", options.sabotage,
                 "commit this fault on purpose; exit status 0: it was found")
      ->transform(CLI::CheckedTransformer(kSabotages));
  app.add_option("--measure", options.measure,
                 "measure on a quiet machine instead: reap (how soon 64 MiB "
                 "are back), takeover (how soon a lock is)")
      ->transform(CLI::CheckedTransformer(kMeasures));
}

void AddSizes(CLI::App& app, Options& options) {
  app.add_option("--seconds", options.seconds, "how long to torture")
      ->check(CLI::Range(0.1, 864000.0))
      ->capture_default_str();
  app.add_option("--workers", options.workers, "processes that allocate")
      ->check(CLI::Range(1u, kMostWorkers - kStormWorkers))
      ->capture_default_str();
  app.add_option("--kill-every-ms", options.kill_every_ms,
                 "time between kills on average, 0: none")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--pool-mib", options.pool_mib,
                 "size of the pool, a multiple of 4")
      ->check(CLI::Range(8, 1 << 20))
      ->capture_default_str();
  app.add_option("--pool-settings", options.pool_settings,
                 "more of the daemon's --pool, as policy=fixed,populate=lazy");
  app.add_option("--topology", options.topology, "the daemon's --topology")
      ->capture_default_str();
  app.add_option("--max-wait-ms", options.max_wait_ms,
                 "longest time a call may take, minus run-queue delay")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of every choice made")
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "of a measurement")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--bin-dir", options.bin_dir,
                 "where memtuned and memtunectl are; default: beside this");
}

}  // namespace

std::optional<Options> ParseCommandLine(int argc, char** argv, int* exit_code) {
  Options options;
  CLI::App app(kAbout, "memtuned-torture");
  AddSizes(app, options);
  AddModes(app, options);
  try {
    app.parse(argc, argv);
    if (options.pool_mib % 4 != 0) {
      throw CLI::ValidationError("--pool-mib is " +
                                 std::to_string(options.pool_mib) +
                                 "; allowed multiples of 4");
    }
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  if (options.bin_dir.empty()) {
    options.bin_dir =
        std::filesystem::read_symlink("/proc/self/exe").parent_path();
  }
  return options;
}

}  // namespace memtuned::torture
