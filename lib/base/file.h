/* Read-only mappings of files, and writing to descriptors. lib/ makes system calls only here and in base/spill.h. They block, so the
 * service calls them on its thread pool. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

struct stat;

/* fstat(2). The C library's function may call newfstatat instead, which also takes paths and so is forbidden in processes that may
 * open nothing (service/worker). */
int sl_fstat(int fd, struct stat *st);

struct sl_mapping {
    struct sl_bytes bytes; /* contents, with the size at opening; data is not NULL even for an empty file */
    size_t mapped;         /* length of the mmap, 0 if nothing is mapped */
};

/* Map the regular file `path` (or the open `fd`, which the caller closes) read-only and shared. Return SL_OK, SL_NOT_FOUND,
 * SL_PERMISSION_DENIED, SL_BUSY (out of memory or descriptors), else SL_INTERNAL with the text of errno. */
enum sl_code sl_map_file(const char *path, struct sl_mapping *mapping, struct sl_error *error);
enum sl_code sl_map_fd(int fd, struct sl_mapping *mapping, struct sl_error *error);
void sl_unmap(struct sl_mapping *mapping);

/* Drops the pages of [offset, offset + size) from the process's resident memory (madvise), so reading a large file from end to end does not
 * make all of it resident. They stay readable. */
void sl_mapping_drop(const struct sl_mapping *mapping, size_t offset, size_t size);

/* Writes all of `bytes`, at the file position or at `offset`, in as many calls as it takes. False: see errno. */
bool sl_write_all(int fd, struct sl_bytes bytes);
bool sl_write_all_at(int fd, struct sl_bytes bytes, uint64_t offset);

/* Writes all of `bytes` at the file position, which must be the end of the file, but leaves a hole for each aligned block of 4 KiB that
 * holds only zeros: core files consist mostly of such blocks. A pipe or socket gets the zeros. False: see errno. */
bool sl_write_sparse(int fd, struct sl_bytes bytes);

/* Closes a descriptor; does nothing for -1. */
void sl_close(int fd);

/* Opens a new unnamed file in `directory` (mode 0600), which vanishes when its descriptor is closed. -1: see errno. */
int sl_unlinked_file(const char *directory);
