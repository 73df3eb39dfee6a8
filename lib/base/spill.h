/* A growing array of plain data that moves into a mapped file when it becomes large, so that the kernel can write its pages to disk and
 * take them from memory. Functions may block; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_spill { /* all zeros is valid and empty */
    void *data;
    size_t capacity; /* bytes */
    bool may_spill, in_file;
    int fd;          /* the caller's file; valid if `may_spill` */
    uint64_t offset; /* where the array begins in the file */
};

/* Lets the array move into the file `fd`, which is empty, open for writing, owned by the caller and valid until sl_spill_free(). Several
 * arrays may share a file if each has another `part`, a small number: the array begins at part * 256 GiB. Without this call the array stays
 * in memory. */
void sl_spill_into(struct sl_spill *spill, int fd, unsigned part);

/* Enlarges the array, if needed, to `size` bytes; `data` may move, new bytes are zero. Above 16 MiB the array moves into the file. The
 * file's blocks are allocated here, so a full disk makes this call fail, not a later write to the array. False when there is no memory or
 * disk space; the array is then unchanged. */
bool sl_spill_reserve(struct sl_spill *spill, size_t size);

/* Drops the array's pages from memory if it is in a file, from which they are read when they are accessed again. */
void sl_spill_drop_pages(const struct sl_spill *spill);

/* Unmaps the array. The caller closes the file. */
void sl_spill_free(struct sl_spill *spill);
