// SPDX-License-Identifier: Apache-2.0
// Standard containers in a pool: pages come from memtuned, a pool_resource
// cuts them into small objects.
//   c++ -std=c++20 attach.cc $(pkg-config --cflags --libs memtuned) -o attach
//   ./attach /run/memtuned/pools/default.sock
#include <memtuned/pool.h>

#include <iostream>
#include <memory_resource>
#include <string>
#include <unordered_map>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " SOCKET\n";
    return 2;
  }
  auto pool = memtuned::Pool::Attach(argv[1]);
  if (!pool) {
    std::cerr << pool.error().message() << "\n";
    return 1;
  }
  // In this order: containers go first, the attachment last.
  memtuned::PoolResource pages(*pool);
  std::pmr::synchronized_pool_resource small(
      {.max_blocks_per_chunk = 0, .largest_required_pool_block = 2048}, &pages);
  std::pmr::unordered_map<int, std::pmr::string> squares(&small);
  for (int i = 0; i < 10000; ++i) {
    squares.emplace(i,
                    std::to_string(i) + " squared is " + std::to_string(i * i));
  }
  std::cout << squares.size() << " entries in pool " << pool->name() << "; "
            << squares.at(111) << "\n";
}
