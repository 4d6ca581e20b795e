/* SPDX-License-Identifier: Apache-2.0
 * libmemtuned, C interface: attach to a page pool that a memtuned daemon
 * serves, then allocate from it at function-call speed, without system calls.
 *
 *   memtuned_pool* pool;
 *   struct memtuned_error error;
 *   if (memtuned_attach("/run/memtuned/pools/default.sock", NULL, &pool,
 *                       &error) != MEMTUNED_OK) {
 *     fprintf(stderr, "%s\n", error.message);
 *     exit(1);
 *   }
 *   void* block = memtuned_allocate(pool, 3);    // 2^3 pages
 *   memtuned_free(pool, block, 3);
 *   memtuned_detach(pool);
 *
 * Blocks have 2^order pages and are aligned to their size. A pool is shared:
 * every process attached to it sees all of its memory, at an address of its
 * own. Blocks travel between processes as offsets: see memtuned_offer().
 *
 * Thread safety: every function, from any thread, except memtuned_detach(),
 * which must be the last use of its pool.
 *
 * fork(): the child sees the parent's memory but owns none of it. Its pools
 * are no longer attached: allocation fails, freeing is refused and changes
 * nothing, memtuned_detach() forgets the pool. The child may attach anew.
 * exec() closes everything. vfork() and clone() without the handlers of
 * pthread_atfork() must be followed by exec().
 */
#ifndef MEMTUNED_MEMTUNED_H_
#define MEMTUNED_MEMTUNED_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MEMTUNED_API __attribute__((visibility("default")))
#else
#define MEMTUNED_API
#endif

#ifdef __cplusplus
#define MEMTUNED_NOEXCEPT noexcept
extern "C" {
#else
#define MEMTUNED_NOEXCEPT
#endif

/* Largest order: blocks of 2^10 pages. */
#define MEMTUNED_MAX_ORDER 10

/* Numbers never change; new ones are added at the end. */
typedef enum memtuned_status {
  MEMTUNED_OK = 0,

  /* Freeing and passing on. Refused, counted by the pool, nothing changed. */
  MEMTUNED_NOT_ALLOCATED = 1, /* double or wild free; no offer to adopt */
  MEMTUNED_WRONG_ORDER = 2,   /* a block, but of another order */
  MEMTUNED_FOREIGN = 3,       /* another process's, not offered to this one */
  MEMTUNED_OUT_OF_RANGE = 4,  /* not in the pool, or not aligned */
  MEMTUNED_NOT_ATTACHED = 5,  /* this is a forked child of who attached, or
                                 attached to read only */

  /* An argument out of its range; error.message names it. */
  MEMTUNED_INVALID_ARGUMENT = 6,

  /* Attaching. */
  MEMTUNED_UNAVAILABLE = 7, /* no socket, nobody listens, or shutting down */
  MEMTUNED_PERMISSION_DENIED = 8,
  MEMTUNED_LAYOUT_DIFFERS = 9, /* library and daemon are of two versions */
  MEMTUNED_POOL_FULL = 10,     /* no process slot is free, or this user has
                                  too many attachments to read */
  MEMTUNED_DEADLINE_EXCEEDED = 11,
  MEMTUNED_BAD_REPLY = 12,    /* what answered is no memtuned daemon */
  MEMTUNED_NO_RESOURCES = 13, /* this process is out of descriptors, memory
                                 or address space */

  /* Freeing: another process holds a lock of the pool and is stopped. Nothing
     changed, the block is still yours: try again. */
  MEMTUNED_BUSY = 14,

  /* Adopting: this process would hold more than it may. The block stays its
     offerer's. */
  MEMTUNED_PROCESS_LIMIT = 15
} memtuned_status;

typedef enum memtuned_memory_policy {
  MEMTUNED_POLICY_LOCAL = 0,     /* the running CPU's node, then by distance */
  MEMTUNED_POLICY_BIND = 1,      /* the given nodes only */
  MEMTUNED_POLICY_PREFERRED = 2, /* the lowest given node, then by distance */
  MEMTUNED_POLICY_INTERLEAVE = 3 /* the given nodes in turn */
} memtuned_memory_policy;

typedef struct memtuned_pool memtuned_pool;

/* What went wrong, for people: one sentence with the values in it. */
typedef struct memtuned_error {
  memtuned_status status;
  char message[508];
} memtuned_error;

/* Attach to read only, as an observer: all of the pool's memory can be read by
 * offset (memtuned_from_offset); writing to it is a SIGSEGV. Nothing can be
 * allocated (NULL), freed or passed on (MEMTUNED_NOT_ATTACHED),
 * memtuned_is_attached and memtuned_process_id say 0, and the pool counts no
 * such call. What is read may change at any moment. It does not keep the pool:
 * once that ends, what is mapped stays as it was last. The daemon's
 * configuration says who may: who may attach, and those it lists as observers.
 * The descriptors are for reading, and only root and the daemon's own user can
 * open the files behind them anew for writing. */
#define MEMTUNED_ATTACH_TO_READ 1u

/* Zero means the default, for every field. */
typedef struct memtuned_attach_options {
  uint32_t timeout_ms; /* for the whole of attaching; 5000 */
  uint32_t flags;      /* MEMTUNED_ATTACH_TO_READ or 0 */
  uint32_t reserved[6];
} memtuned_attach_options;

/* A few words for a memtuned_status, never NULL, for any number. */
MEMTUNED_API const char* memtuned_strerror(int status) MEMTUNED_NOEXCEPT;

/* Bytes of a page, 4096. */
MEMTUNED_API size_t memtuned_page_size(void) MEMTUNED_NOEXCEPT;

/* Attaches this process to the pool behind a socket. A process may attach to
 * several pools, and to one pool several times; each is a slot of its own.
 * `options` and `error` may be NULL. *pool is NULL unless MEMTUNED_OK.
 * Blocks: until the daemon answered, at most the time-out. */
MEMTUNED_API memtuned_status
memtuned_attach(const char* socket_path, const memtuned_attach_options* options,
                memtuned_pool** pool, memtuned_error* error) MEMTUNED_NOEXCEPT;

/* Leaves the pool; NULL is ignored. Blocks still held are given back by the
 * daemon; their memory is no longer mapped when this returns. No thread may
 * use the pool any more; ended threads need no care. */
MEMTUNED_API void memtuned_detach(memtuned_pool* pool) MEMTUNED_NOEXCEPT;

/* 1 while this process is attached, 0 in a forked child and for who attached
 * to read only. */
MEMTUNED_API int memtuned_is_attached(const memtuned_pool* pool)
    MEMTUNED_NOEXCEPT;

/* The name the pool has in the daemon's configuration. */
MEMTUNED_API const char* memtuned_pool_name(const memtuned_pool* pool)
    MEMTUNED_NOEXCEPT;

/* Bytes between the lowest and the highest offset of the pool. */
MEMTUNED_API uint64_t memtuned_pool_bytes(const memtuned_pool* pool)
    MEMTUNED_NOEXCEPT;

/* This process's number in the pool, a target for an offer; 0 for who attached
 * to read only. */
MEMTUNED_API uint32_t memtuned_process_id(const memtuned_pool* pool)
    MEMTUNED_NOEXCEPT;

/* A block of 2^order pages, aligned to its size, contents undefined.
 * Returns NULL when memory is short, when this process would hold more than it
 * may, when `order` is not 0..10 and when this process is not attached.
 * Cost: a few nanoseconds when this CPU's pageset has a block. */
MEMTUNED_API void* memtuned_allocate(memtuned_pool* pool,
                                     int order) MEMTUNED_NOEXCEPT;

/* Gives a block of this process back. NULL is refused as out of range. */
MEMTUNED_API memtuned_status memtuned_free(memtuned_pool* pool, void* block,
                                           int order) MEMTUNED_NOEXCEPT;

/* Fills blocks[0..count-1]. Returns how many; fewer where memtuned_allocate()
 * would return NULL. */
MEMTUNED_API size_t memtuned_allocate_bulk(memtuned_pool* pool, int order,
                                           void** blocks,
                                           size_t count) MEMTUNED_NOEXCEPT;

/* Returns how many were freed; refused ones are counted and skipped. */
MEMTUNED_API size_t memtuned_free_bulk(memtuned_pool* pool, int order,
                                       void* const* blocks,
                                       size_t count) MEMTUNED_NOEXCEPT;

/* Blocks by offset: the same number in every attached process. */
#define MEMTUNED_NO_OFFSET UINT64_MAX

/* Offset of any address inside the pool, else MEMTUNED_NO_OFFSET. */
MEMTUNED_API uint64_t memtuned_to_offset(const memtuned_pool* pool,
                                         const void* address) MEMTUNED_NOEXCEPT;

/* Address in this process, NULL when the offset is not in the pool. */
MEMTUNED_API void* memtuned_from_offset(const memtuned_pool* pool,
                                        uint64_t offset) MEMTUNED_NOEXCEPT;

/* Passing a block on:
 *   one process     block = memtuned_allocate(pool, 0); fill it;
 *                   offset = memtuned_to_offset(pool, block);
 *                   memtuned_offer(pool, offset, 0, 0); send the offset
 *   the other       memtuned_adopt(pool, offset, 0);
 *                   block = memtuned_from_offset(pool, offset); use it;
 *                   memtuned_free(pool, block, 0)
 * What the first wrote is visible to the second after the adoption. Until
 * adopted the block is its offerer's and dies with it. `target`: a
 * memtuned_process_id(), or 0 for whoever comes first. */
MEMTUNED_API memtuned_status memtuned_offer(memtuned_pool* pool,
                                            uint64_t offset, int order,
                                            uint32_t target) MEMTUNED_NOEXCEPT;

/* Takes an offer back. MEMTUNED_FOREIGN: it was adopted meanwhile. */
MEMTUNED_API memtuned_status memtuned_revoke(memtuned_pool* pool,
                                             uint64_t offset,
                                             int order) MEMTUNED_NOEXCEPT;

/* Makes an offered block this process's own. Exactly one adopter wins. */
MEMTUNED_API memtuned_status memtuned_adopt(memtuned_pool* pool,
                                            uint64_t offset,
                                            int order) MEMTUNED_NOEXCEPT;

/* memtuned_adopt() and memtuned_free() in one, also at the process's limit. */
MEMTUNED_API memtuned_status memtuned_free_adopted(memtuned_pool* pool,
                                                   uint64_t offset,
                                                   int order) MEMTUNED_NOEXCEPT;

/* Tags a block of this process with a number of the caller's choice: reports
 * of who holds what are by label. */
MEMTUNED_API memtuned_status
memtuned_set_label(memtuned_pool* pool, void* block, int order,
                   uint8_t label) MEMTUNED_NOEXCEPT;

/* Where later allocations of this process come from. `policy`: a
 * memtuned_memory_policy. `nodes`: operating system numbers 0..1023, ignored
 * for MEMTUNED_POLICY_LOCAL. `error` may be
 * NULL. MEMTUNED_INVALID_ARGUMENT when none of the nodes has memory of this
 * pool that this process may use; the policy is then unchanged. */
MEMTUNED_API memtuned_status memtuned_set_memory_policy(
    memtuned_pool* pool, int policy, const int* nodes, size_t nr_nodes,
    memtuned_error* error) MEMTUNED_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MEMTUNED_MEMTUNED_H_ */
