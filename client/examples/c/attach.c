/* SPDX-License-Identifier: Apache-2.0
 * Attaches to a pool, writes a block of 8 pages, and passes its offset on to
 * itself the way it would to another process.
 *   cc attach.c $(pkg-config --cflags --libs memtuned) -o attach
 *   ./attach /run/memtuned/pools/default.sock
 */
#include <memtuned/memtuned.h>
#include <stdio.h>
#include <string.h>

static const int kOrder = 3; /* 2^3 pages */

/* The other process's part: it got `offset` by a pipe, a socket, a queue. */
static int receive(memtuned_pool* pool, uint64_t offset) {
  const memtuned_status status = memtuned_adopt(pool, offset, kOrder);
  if (status != MEMTUNED_OK) {
    fprintf(stderr, "adopt: %s\n", memtuned_strerror(status));
    return 1;
  }
  char* block = memtuned_from_offset(pool, offset);
  printf("received: %s\n", block);
  return memtuned_free(pool, block, kOrder) == MEMTUNED_OK ? 0 : 1;
}

static int use(memtuned_pool* pool) {
  char* block = memtuned_allocate(pool, kOrder);
  if (block == NULL) {
    fprintf(stderr, "the pool has no block of 8 pages left\n");
    return 1;
  }
  strcpy(block, "hello from a shared page");
  const uint64_t offset = memtuned_to_offset(pool, block);
  /* To whoever adopts it first; until then it is still this process's. */
  const memtuned_status status = memtuned_offer(pool, offset, kOrder, 0);
  if (status != MEMTUNED_OK) {
    fprintf(stderr, "offer: %s\n", memtuned_strerror(status));
    return 1;
  }
  return receive(pool, offset);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s SOCKET\n", argv[0]);
    return 2;
  }
  memtuned_pool* pool = NULL;
  memtuned_error error;
  if (memtuned_attach(argv[1], NULL, &pool, &error) != MEMTUNED_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  printf("attached to %s, %llu MiB\n", memtuned_pool_name(pool),
         (unsigned long long)(memtuned_pool_bytes(pool) >> 20));
  const int failed = use(pool);
  memtuned_detach(pool); /* what is still held would be given back */
  return failed;
}
