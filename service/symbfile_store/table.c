/* The table of the parts of an incomplete set (upload): the file `table` in the set's directory; integers are little-endian:
 *
 *     0    "SLUT"       written last when the table is rebuilt from the files
 *     8    u64          all parts below this number exist; it may be lower than the true value
 *     64   64 bytes per part, by number: SHA-256, u64 records, u64 inflated, mode (0 = absent), 15 zeros
 *
 * For example, a table whose part 0 exists, a symbfile of 3 records and 128 bytes:
 *
 *     0    53 4C 55 54 00 00 00 00  01 00 00 00 00 00 00 00
 *     64   <SHA-256>  03 00 00 00 00 00 00 00  80 00 00 00 00 00 00 00  73 00 ...
 *
 * The table only saves listing the directory for each part: what counts are the names of the parts' files, which are read if the table is
 * missing, and once more when it says that the set is complete. A part is added to the table after its file is in place, and the entry
 * is synced before the client gets an answer: so every acknowledged part is in the table. */
#include "symbfile_store/impl.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAGIC = 4, ENTRY = 64, AT_RECORDS = 32, AT_INFLATED = 40, AT_MODE = 48, AT_COMPLETE = 8, STEP = 64 };

static const uint8_t empty_head[16] = "SLUT"; /* header of a table without parts: magic, zeros */

/* Makes the path of a set's table. */
static void table_path(const char *home, const struct symbfile_set *set, char out[STORE_PATH + 200])
{
    snprintf(out, STORE_PATH + 200, "%s/%s/table", home, set->name);
}

/* Returns the offset of a part's entry; the header is as large as one entry. */
static uint64_t get_offset(uint64_t number)
{
    return (number + 1) * ENTRY;
}

static bool write_at(int fd, const void *data, size_t size, uint64_t offset)
{
    return sl_write_all_at(fd, (struct sl_bytes){data, size}, offset);
}

/* Writes the entry of a part. */
static bool write_part(int fd, const struct symbfile_part_file *part)
{
    uint8_t entry[ENTRY] = {0};
    uint64_t records = htole64(part->records), inflated = htole64(part->inflated);
    memcpy(entry, part->sha256, sizeof part->sha256);
    memcpy(entry + AT_RECORDS, &records, sizeof records);
    memcpy(entry + AT_INFLATED, &inflated, sizeof inflated);
    entry[AT_MODE] = (uint8_t)part->mode;
    return write_at(fd, entry, sizeof entry, get_offset(part->number));
}

/* Rebuilds the table from the names of the parts' files. If a crash has left several files with one number, the last one listed counts.
 * Ignores numbers that the set does not have. The header is written last, after a sync: a table without header is rebuilt when it is
 * opened. */
static bool rebuild_from_files(int fd, const char *home, struct symbfile_set *set)
{
    bool ok = ftruncate(fd, 0) == 0 && store_load_parts(home, set);
    for (size_t i = 0; ok && i < set->have_count; i++)
        ok = set->have[i].number >= set->parts || write_part(fd, &set->have[i]);
    free(set->have);
    set->have = NULL;
    set->have_count = 0;
    return ok && fdatasync(fd) == 0 && write_at(fd, empty_head, sizeof empty_head, 0);
}

/* Opens the table of a set, or rebuilds it if it is missing or incomplete. False on failure, with errno set. */
bool part_table_open(struct part_table *table, const char *home, struct symbfile_set *set)
{
    char path[STORE_PATH + 200];
    uint8_t head[sizeof empty_head];
    uint64_t complete;
    table_path(home, set, path);
    *table =
        (struct part_table){.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640), .parts = set->parts};
    if (table->fd < 0)
        return false;
    if (pread(table->fd, head, sizeof head, 0) == (ssize_t)sizeof head && memcmp(head, empty_head, MAGIC) == 0) {
        memcpy(&complete, head + AT_COMPLETE, sizeof complete);
        table->complete = le64toh(complete);
        return true;
    }
    if (rebuild_from_files(table->fd, home, set))
        return true;
    part_table_close(table);
    return false;
}

/* Keeps errno, as callers close the table after a failure. */
void part_table_close(struct part_table *table)
{
    int reason = errno;
    sl_close(table->fd);
    table->fd = -1;
    errno = reason;
}

bool part_table_get(const struct part_table *table, uint64_t number, struct symbfile_part_file *part)
{
    uint8_t entry[ENTRY];
    uint64_t records, inflated;
    if (pread(table->fd, entry, sizeof entry, (off_t)get_offset(number)) != (ssize_t)sizeof entry || !entry[AT_MODE])
        return false;
    memcpy(&records, entry + AT_RECORDS, sizeof records);
    memcpy(&inflated, entry + AT_INFLATED, sizeof inflated);
    *part = (struct symbfile_part_file){.number = (uint32_t)number,
                                        .mode = (char)entry[AT_MODE],
                                        .records = le64toh(records),
                                        .inflated = le64toh(inflated)};
    memcpy(part->sha256, entry, sizeof part->sha256);
    return true;
}

/* Increases table->complete to the number of the first missing part, reading STEP entries at a time. It begins where the last call
 * ended, so that all calls for a set together read each entry about once. */
static void advance_complete(struct part_table *table)
{
    uint8_t entries[STEP * ENTRY];
    while (table->complete < table->parts) {
        ssize_t size = pread(table->fd, entries, sizeof entries, (off_t)get_offset(table->complete));
        size_t count = size > 0 ? (size_t)size / ENTRY : 0, i = 0;
        while (i < count && table->complete < table->parts && entries[i * ENTRY + AT_MODE]) {
            i++;
            table->complete++;
        }
        if (i < STEP) /* a missing part, or the end of the table */
            return;
    }
}

/* Writes the entry of a part and syncs it, then increases table->complete. That is stored without a sync: after a crash it may be too
 * low, which only costs reading entries again. */
bool part_table_put(struct part_table *table, const struct symbfile_part_file *part)
{
    if (!write_part(table->fd, part) || fdatasync(table->fd) != 0)
        return false;
    uint64_t before = table->complete;
    advance_complete(table);
    uint64_t complete = htole64(table->complete);
    return table->complete == before || write_at(table->fd, &complete, sizeof complete, AT_COMPLETE);
}

void part_table_remove(struct part_table *table, const char *home, const struct symbfile_set *set)
{
    char path[STORE_PATH + 200];
    part_table_close(table);
    table_path(home, set, path);
    unlink(path);
}
