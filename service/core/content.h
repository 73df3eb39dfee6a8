/* Reference-counted bytes that several requests may send, such as the result of a job: in memory, or in an unlinked file while
 * no request needs them soon. Bytes in memory are charged to the memory of the requests (core/memory.h). All bytes that were
 * moved to files share a few descriptors. Loop thread only. */
#pragma once

#include "base/buf.h"
#include "core/memory.h"

struct content;

/* Takes over the buffer and returns one reference. NULL when out of memory: the buffer stays the caller's. */
struct content *content_new(struct sl_buf *bytes);
struct content *content_hold(struct content *content);
void content_release(struct content *content); /* NULL is allowed */

size_t content_size(const struct content *content);

/* Returns the bytes; `data` is NULL when they are in a file. Valid until the fiber suspends, or if pinned until content_unpin. */
struct sl_bytes content_bytes(const struct content *content);
struct sl_bytes content_pin(struct content *content);
void content_unpin(struct content *content);

/* Moves the bytes to an unlinked file in `directory`; their memory is freed when the last pin is gone. On failure they stay in
 * memory. The caller must hold a reference. */
enum sl_code content_spill(struct content *content, const char *directory, struct sl_error *error) SL_SUSPENDS;

/* Copies `size` bytes from `offset` of content that is in a file. */
enum sl_code content_read(struct content *content, uint64_t offset, void *to, size_t size,
                          struct sl_error *error) SL_SUSPENDS;
