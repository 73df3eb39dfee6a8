/* Files as memory: read-only mappings, and writing to descriptors. The only system calls of lib/. They block;
 * the service calls them on the pool. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

struct sl_mapping {
    struct sl_bytes bytes; /* of the file as it was at opening; data is not NULL even for an empty file */
    size_t mapped;         /* length of the mmap, 0 when there is none */
};

/* Maps the regular file `path` (or the open `fd`, which stays the caller's) read-only and shared.
 * SL_NOT_FOUND, SL_PERMISSION_DENIED, else SL_INTERNAL with errno's text. */
enum sl_code sl_map_file(const char *path, struct sl_mapping *mapping, struct sl_error *error);
enum sl_code sl_map_fd(int fd, struct sl_mapping *mapping, struct sl_error *error);
void sl_unmap(struct sl_mapping *mapping);

/* Tells the kernel that the pages of [offset, offset + size) of a mapping will not be needed soon, so that a pass over a large
 * file does not count as resident memory. They stay readable. */
void sl_mapping_drop(const struct sl_mapping *mapping, size_t offset, size_t size);

/* All of `bytes` to an open file, where it stands or at `offset`; however many calls it takes. False: errno tells. */
bool sl_write_all(int fd, struct sl_bytes bytes);
bool sl_write_all_at(int fd, struct sl_bytes bytes, uint64_t offset);

/* Closes a descriptor, unless it is that of no file: -1. */
void sl_close(int fd);

/* A new file in `directory` that has no name and ends with its descriptor (0600); -1: errno tells. */
int sl_unlinked_file(const char *directory);
