/* A minidump as bytes: one process reads the file and hands over what it read to another one, which walks the stacks and does not trust
 * the first. Both have the file, so memory is given by its offset and size there.
 *
 *     struct sl_crash (crash/pack.h), in which frames are those that the client walked itself
 *     | number of client stacks | microdumps: size and bytes of the minidump made of it
 *     | os, byte order, family, address mask | for each thread: registers, family, stack, is_walked
 *     | list of memory | list of unloaded modules */
#pragma once

#include "crash/pack.h"
#include "minidump/minidump.h"

/* Appends the dump and the stacks that the client walked itself; their frames, made in the arena, replace those of dump->crash. False when
 * out of memory. */
bool sl_minidump_pack(struct sl_minidump *dump, const struct sl_minidump_client *client, struct sl_arena *arena,
                      struct sl_buf *out);

/* Reads what sl_minidump_pack() wrote of the file `bytes`: a dump for sl_minidump_start, sl_minidump_target, sl_minidump_module_at and
 * sl_minidump_put_unloaded. `packed` and `bytes` must outlive the dump. `*client_count` is the number of stacks that the client walked.
 * SL_MALFORMED if the bytes are damaged; SL_BUSY. */
enum sl_code sl_minidump_unpack(struct sl_bytes packed, struct sl_bytes bytes, struct sl_arena *arena,
                                struct sl_minidump *dump, uint64_t *client_count, struct sl_error *error);

/* Appends only what walks of the dump's stacks need, for a process that has the same file: os, byte order, family, address mask, modules
 * with their addresses, sizes and whether they have an id, threads, memory. False when out of memory. */
bool sl_minidump_pack_stacks(const struct sl_minidump *dump, struct sl_buf *out);

/* Reads what sl_minidump_pack_stacks() wrote: a dump for sl_minidump_start and sl_minidump_target, whose crash has only threads and
 * modules without names. SL_MALFORMED, SL_BUSY. */
enum sl_code sl_minidump_unpack_stacks(struct sl_bytes packed, struct sl_bytes bytes, struct sl_arena *arena,
                                       struct sl_minidump *dump, struct sl_error *error);
