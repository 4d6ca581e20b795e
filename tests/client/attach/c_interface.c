/* SPDX-License-Identifier: Apache-2.0
 * The header as a C11 program uses it, compiled with -pedantic.
 * Returns 0, or the line of the first check that failed. */
#include <memtuned/memtuned.h>
#include <stdint.h>
#include <string.h>

#define CHECK(condition) \
  if (!(condition)) return __LINE__

int UseCInterface(const char* path);

int UseCInterface(const char* path) {
  memtuned_pool* pool = NULL;
  memtuned_error error;
  void* blocks[100];
  size_t i;

  CHECK(memtuned_attach(path, NULL, &pool, &error) == MEMTUNED_OK);
  CHECK(memtuned_is_attached(pool) == 1);
  CHECK(memtuned_page_size() == 4096);
  CHECK(strcmp(memtuned_pool_name(pool), "test") == 0);

  void* block = memtuned_allocate(pool, 2);
  CHECK(block != NULL);
  CHECK((uintptr_t)block % (4096 << 2) == 0);
  memset(block, 1, 4096 << 2);
  CHECK(memtuned_set_label(pool, block, 2, 200) == MEMTUNED_OK);

  uint64_t offset = memtuned_to_offset(pool, block);
  CHECK(memtuned_from_offset(pool, offset) == block);
  CHECK(memtuned_offer(pool, offset, 2, 0) == MEMTUNED_OK);
  CHECK(memtuned_revoke(pool, offset, 2) == MEMTUNED_OK);
  CHECK(memtuned_offer(pool, offset, 2, memtuned_process_id(pool)) ==
        MEMTUNED_OK);
  CHECK(memtuned_adopt(pool, offset, 2) == MEMTUNED_OK);
  CHECK(memtuned_offer(pool, offset, 2, 0) == MEMTUNED_OK);
  CHECK(memtuned_free_adopted(pool, offset, 2) == MEMTUNED_OK);

  CHECK(memtuned_allocate_bulk(pool, 0, blocks, 100) == 100);
  for (i = 0; i < 100; ++i) CHECK(blocks[i] != NULL);
  CHECK(memtuned_free_bulk(pool, 0, blocks, 100) == 100);
  CHECK(memtuned_free_bulk(pool, 0, blocks, 100) == 0);

  int node = 5000;
  CHECK(memtuned_set_memory_policy(pool, MEMTUNED_POLICY_BIND, &node, 1,
                                   &error) == MEMTUNED_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "nodes[0] is 5000; allowed 0 to 1023") != NULL);
  node = 0;
  CHECK(memtuned_set_memory_policy(pool, MEMTUNED_POLICY_INTERLEAVE, &node, 1,
                                   &error) == MEMTUNED_OK);
  CHECK(error.status == MEMTUNED_OK);

  memtuned_detach(pool);
  memtuned_detach(NULL);
  return 0;
}
