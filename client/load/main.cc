// SPDX-License-Identifier: Apache-2.0
// memtune-load: allocates from a pool as programs do and shows what that cost.
// See client/load/README.md.
#include <iostream>

#include "client/load/command_line.h"
#include "client/load/report.h"
#include "client/load/runner.h"

int main(int argc, char** argv) {
  using namespace memtuned::load;
  int exit_code = 0;
  const auto config = ParseCommandLine(argc, argv, &exit_code);
  if (!config) return exit_code;
  const auto result = Run(*config, std::cerr);
  if (!result) return 1;
  if (config->json) {
    PrintJson(*config, *result, std::cout);
  } else {
    PrintTable(*config, *result, std::cout);
  }
  return 0;
}
