// SPDX-License-Identifier: Apache-2.0
// A program that is a keeper and nothing else, for tests to start.
#include <cstring>

#include "daemon/keeper/keeper.h"

int main(int argc, char** argv) {
  return argc == 3 && std::strcmp(argv[1], memtuned::kKeeperFlag) == 0
             ? memtuned::RunKeeper(argv[2])
             : 2;
}
