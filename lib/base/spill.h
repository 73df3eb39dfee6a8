/* A growing array of plain data that moves into a file when it becomes large, so the kernel can write out pages that are not in
 * use. sl_spill_drop_pages() drops them from memory. Blocking; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_spill { /* all zeros is valid and empty */
    void *data;
    size_t capacity; /* bytes */
    bool may_spill, in_file;
    int fd; /* valid if `may_spill`: the caller's, for the array's part of it */
    uint64_t offset;
};

/* Lets the array move into the file, which is empty, open for writing, owned by the caller and valid until sl_spill_free. Several
 * arrays may share a file; `part` distinguishes them. Without this call the array stays in memory. */
void sl_spill_into(struct sl_spill *spill, int fd, unsigned part);

/* Enlarges the array, if needed, to `size` bytes; `data` may move, new bytes are zero. Above 16 MiB the array moves into the file. Its
 * blocks are allocated at once, so a full disk is detected here. False when there is no space. */
bool sl_spill_reserve(struct sl_spill *spill, size_t size);

/* Drops the pages of an array in a file from memory, until they are accessed again. */
void sl_spill_drop_pages(const struct sl_spill *spill);

void sl_spill_free(struct sl_spill *spill);
