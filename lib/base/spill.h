/* A growing array of plain data that lies in a file once it is large: pages that nobody looks at are the kernel's to write
 * out, and `sl_spill_rest` gives them up for now. Blocking; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_spill { /* all zeros is valid and empty */
    void *data;
    size_t capacity; /* bytes */
    bool in_file;
    int fd; /* if in_file */
};

/* Room for `size` bytes; `data` may move, new bytes are zero. Beyond 16 MiB it becomes an unlinked file in `directory`
 * (NULL: it stays memory), whose blocks are taken at once, so that a full disk is seen here. False: no room. */
bool sl_spill_reserve(struct sl_spill *spill, size_t size, const char *directory);

/* What is in a file need not be in memory until it is looked at again. */
void sl_spill_rest(const struct sl_spill *spill);

void sl_spill_free(struct sl_spill *spill);
