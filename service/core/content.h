/* Bytes that several may send, such as the result of a job: in memory, or in a file while nobody needs them soon. What is in
 * memory is counted in the memory of the requests (core/memory.h). All that went to files shares a few descriptors.
 * Loop thread only. */
#pragma once

#include "base/buf.h"
#include "core/memory.h"

struct content;

/* Takes the buffer over, for one holder. NULL when out of memory: the buffer stays the caller's. */
struct content *content_new(struct sl_buf *bytes);
struct content *content_hold(struct content *content);
void content_release(struct content *content); /* NULL is allowed */

size_t content_size(const struct content *content);

/* The bytes, data NULL when they are in a file; valid until the fiber suspends, or if pinned until content_unpin. */
struct sl_bytes content_bytes(const struct content *content);
struct sl_bytes content_pin(struct content *content);
void content_unpin(struct content *content);

/* Moves the bytes to a file without a name in `directory`; the memory is free once nobody has it pinned. When that fails they
 * stay in memory. The caller holds it. */
enum sl_code content_spill(struct content *content, const char *directory, struct sl_error *error) SL_SUSPENDS;

/* Copies a piece of what is in a file. */
enum sl_code content_read(struct content *content, uint64_t offset, void *to, size_t size,
                          struct sl_error *error) SL_SUSPENDS;
