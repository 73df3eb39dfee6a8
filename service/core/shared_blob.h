/* Reference-counted bytes that several requests may send, such as the result of a job: in memory, or in an unlinked file while
 * no request needs them soon. Bytes in memory count against memory.request_budget (core/memory.h). Many contents share one
 * file, so that few descriptors are needed. Loop thread only. */
#pragma once

#include "base/buf.h"
#include "core/memory.h"

struct shared_blob;

/* Takes over the buffer and returns one reference. NULL when out of memory: the buffer stays the caller's. */
struct shared_blob *shared_blob_new(struct sl_buf *bytes);
struct shared_blob *shared_blob_retain(struct shared_blob *content); /* returns a further reference */
void shared_blob_release(struct shared_blob *content);               /* NULL is allowed */

size_t shared_blob_size(const struct shared_blob *content);

/* Both return the bytes; `data` is NULL when they are in a file, and then nothing is pinned. Those of shared_blob_bytes are valid until the
 * fiber suspends, those of shared_blob_pin until shared_blob_unpin. */
struct sl_bytes shared_blob_bytes(const struct shared_blob *content);
struct sl_bytes shared_blob_pin(struct shared_blob *content);
void shared_blob_unpin(struct shared_blob *content);

/* Moves the bytes to an unlinked file in `directory`; their memory is freed at once or, if they are pinned, by the last shared_blob_unpin.
 * On failure they stay in memory. The caller must hold a reference. */
enum sl_code shared_blob_spill(struct shared_blob *content, const char *directory, struct sl_error *error) SL_SUSPENDS;

/* Reads `size` bytes at `offset` of content that is in a file (shared_blob_bytes returned NULL). */
enum sl_code shared_blob_read(struct shared_blob *content, uint64_t offset, void *to, size_t size,
                              struct sl_error *error) SL_SUSPENDS;
