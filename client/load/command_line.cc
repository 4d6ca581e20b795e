// SPDX-License-Identifier: Apache-2.0
#include "client/load/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <iostream>
#include <string>

namespace memtuned::load {
namespace {

std::string ShapesHelp() {
  std::string text = "Shapes:\n";
  for (const ShapeDef& def : kShapes) {
    text += "  " + std::string(def.name);
    if (def.n_means != nullptr) text += " [N]";
    text += "\n      " + std::string(def.help);
    if (def.n_means != nullptr) {
      text += "; N: " + std::string(def.n_means) + ", " +
              std::to_string(def.n_min) + " to " + std::to_string(def.n_max) +
              ", default " + std::to_string(def.n_default);
    }
    text += "\n";
  }
  return text +
         "\nAn operation is one allocation or one free. Exit status: 0 done,\n"
         "1 a process failed, 2 wrong arguments. SIGINT ends early, with\n"
         "results.";
}

std::string ReadShape(const std::string& name, LoadConfig* config) {
  std::string known;
  for (const ShapeDef& def : kShapes) {
    if (name == def.name) {
      config->shape = def.shape;
      if (config->order < 0) config->order = def.default_order;
      return "";
    }
    known += (known.empty() ? "" : ", ") + std::string(def.name);
  }
  return "SHAPE is \"" + name + "\"; allowed " + known;
}

std::string ReadN(std::optional<uint32_t> n, LoadConfig* config) {
  const ShapeDef& def = GetShape(config->shape);
  config->n = n.value_or(def.n_default);
  if (!n) return "";
  if (def.n_means == nullptr) {
    return "N is " + std::to_string(*n) + "; shape " + def.name + " takes none";
  }
  if (*n < def.n_min || *n > def.n_max ||
      (config->shape == Shape::kProducerConsumer && !std::has_single_bit(*n))) {
    return "N is " + std::to_string(*n) + "; allowed for " + def.name + ": " +
           std::to_string(def.n_min) + " to " + std::to_string(def.n_max) +
           " (" + def.n_means + ")";
  }
  return "";
}

std::string CheckTogether(const LoadConfig& config) {
  if (config.workers() > kMostWorkers) {
    return "--processes times --threads is " +
           std::to_string(config.workers()) + "; allowed 1 to " +
           std::to_string(kMostWorkers);
  }
  if (config.shape != Shape::kProducerConsumer) return "";
  if (config.processes > 1 && config.processes % 2 != 0) {
    return "--processes is " + std::to_string(config.processes) +
           "; producer-consumer works in pairs: allowed 1 or an even number";
  }
  if (config.processes == 1 && config.threads % 2 != 0) {
    return "--threads is " + std::to_string(config.threads) +
           "; producer-consumer in one process works in pairs of threads: "
           "allowed an even number";
  }
  return "";
}

}  // namespace

std::optional<LoadConfig> ParseCommandLine(int argc, char** argv,
                                           int* exit_code) {
  LoadConfig config;
  std::string shape, output = "table";
  std::optional<uint32_t> n, threads;
  CLI::App app("Allocates from a memtuned pool and shows what that cost.",
               "memtune-load");
  app.set_version_flag("--version", MEMTUNE_LOAD_VERSION);
  app.footer(ShapesHelp());
  app.add_option("--socket", config.socket_path,
                 "the pool's attach socket, PATH of pools/NAME.sock")
      ->required()
      ->type_name("PATH");
  app.add_option("--processes", config.processes, "how many, default 1")
      ->check(CLI::Range(uint32_t{1}, kMostProcesses));
  app.add_option("--threads", threads,
                 "in each process, default 1 (2 for producer-consumer in one "
                 "process)")
      ->check(CLI::Range(uint32_t{1}, kMostThreads));
  app.add_option("--seconds", config.seconds, "how long, default 5")
      ->check(CLI::Range(0.01, 86400.0));
  app.add_option("--order", config.order,
                 "blocks of 2^O pages, default 0 (stream: 3)")
      ->check(CLI::Range(0, 10));
  app.add_option("--seed", config.seed, "of the random run lengths, default 1");
  app.add_option("-o,--output", output, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  app.add_flag("--progress", config.progress,
               "a line a second on stderr, also when it is no terminal");
  app.add_option("SHAPE", shape, "see below")->required();
  app.add_option("N", n, "see below");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    *exit_code = app.exit(e, std::cout, std::cerr) == 0 ? 0 : kUsageError;
    return std::nullopt;
  }
  std::string wrong = ReadShape(shape, &config);
  if (wrong.empty()) wrong = ReadN(n, &config);
  const bool in_pairs = config.shape == Shape::kProducerConsumer;
  config.threads = threads.value_or(in_pairs && config.processes == 1 ? 2 : 1);
  if (wrong.empty()) wrong = CheckTogether(config);
  if (!wrong.empty()) {
    std::cerr << "memtune-load: " << wrong << "\n";
    *exit_code = kUsageError;
    return std::nullopt;
  }
  config.json = output == "json";
  config.progress = config.progress || isatty(STDERR_FILENO) == 1;
  return config;
}

}  // namespace memtuned::load
