// SPDX-License-Identifier: Apache-2.0
// memtuned-torture: processes of a pool are killed at random moments, and the
// pool has to bear it. See tests/torture/README.md.
#include "tests/torture/command_line.h"
#include "tests/torture/controller.h"
#include "tests/torture/measure.h"

int main(int argc, char** argv) {
  using namespace memtuned::torture;
  int exit_code = 0;
  const auto options = ParseCommandLine(argc, argv, &exit_code);
  if (!options) return exit_code;
  switch (options->measure) {
    case Measure::kReap:
      return MeasureReap(*options);
    case Measure::kTakeover:
      return MeasureTakeover(*options);
    case Measure::kNone:
      break;
  }
  return Torture(*options);
}
