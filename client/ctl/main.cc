// SPDX-License-Identifier: Apache-2.0
// memtunectl: the command-line client of memtuned. Only the process: streams,
// terminal, exit status. See client/ctl/README.md.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "client/ctl/run.h"

namespace {

int TerminalWidth() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

int main(int argc, char** argv) {
  // What gRPC has to say about connections is said by memtunectl in words.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  const memtuned::ctl::Terminal terminal = {
      std::cout, std::cerr, is_terminal, is_terminal ? TerminalWidth() : 0,
      memtuned::ctl::Glyphs::FromEnvironment()};
  return static_cast<int>(
      memtuned::ctl::Run({argv + 1, argv + argc}, terminal));
}
