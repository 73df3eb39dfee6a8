/* Stack traces that the crashed program's own library walked, from Sentry's stream 0x53790001.
 *
 *     u32 version (1) | u32 threads | u32 frames | u32 symbol bytes          header, 16 bytes
 *     u32 thread id | u32 first frame | u32 frame count                      per thread, then padding to 8 bytes
 *     u64 address | u32 symbol offset | u32 symbol size                      per frame, callee first
 *     "honk..."                                                              symbols, UTF-8, without separators */
#include "minidump/impl.h"

#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* NAMES_PER_BYTE limits the bytes of the names of all frames: to this many times (bytes of the symbols + number of frames). Without the
 * limit a small stream could make a large result, because frames may share symbol names. */
enum { VERSION = 1, HEADER_SIZE = 16, THREAD_SIZE = 12, FRAME_SIZE = 16, NAMES_PER_BYTE = 64 };

/* Checks that the symbol names of a thread's frames are inside of the symbols, which are `symbol_bytes` long. `*named` is how many bytes
 * the names of all frames together may still have. The stream is always little-endian. */
static enum sl_code check_frames(const struct sl_minidump_prewalked *thread, size_t symbol_bytes, uint64_t *named,
                                 struct sl_error *error)
{
    struct sl_reader r = sl_reader((struct sl_bytes){thread->frames, thread->count * FRAME_SIZE}, false);
    for (size_t i = 0; i < thread->count; i++) {
        uint64_t address = sl_read_u64(&r), begin = sl_read_u32(&r), size = sl_read_u32(&r);
        if (begin + size > symbol_bytes)
            return sl_fail(error, SL_MALFORMED,
                           "stream of client stacks: the symbol of instruction address %llu is out of bounds",
                           (unsigned long long)address);
        if (size > *named)
            return sl_fail(error, SL_MALFORMED,
                           "stream of client stacks: the symbol names of all frames together are too long for a "
                           "stream of this size");
        *named -= size;
    }
    return SL_OK;
}

/* Orders threads by id; those with the same id stay in the order of the file. */
SL_ORDER_BY(client_by_id, struct sl_minidump_prewalked, thread_id, list_index)

/* Reads the threads, and sorts them by id (threads with one id keep the order of the list). SL_MALFORMED if the frames of a thread or their
 * symbols are out of bounds, or if the symbol names of all frames together are too long (NAMES_PER_BYTE). */
static enum sl_code read_client_threads(struct sl_reader *r, const uint8_t *frames, size_t frame_count,
                                        struct sl_minidump_client *client, struct sl_error *error)
{
    uint64_t left = frame_count; /* frames that are not assigned yet; each belongs to one thread */
    uint64_t named = NAMES_PER_BYTE * (client->symbols.size + frame_count);
    enum sl_code code = SL_OK;
    for (size_t i = 0; i < client->count && code == SL_OK; i++) {
        struct sl_minidump_prewalked *thread = &client->threads[i];
        thread->list_index = i;
        thread->thread_id = sl_read_u32(r);
        uint64_t first = sl_read_u32(r), count = sl_read_u32(r);
        if (first + count > frame_count || count > left)
            return sl_fail(error, SL_MALFORMED, "stream of client stacks: the frames of thread %llu are out of bounds",
                           (unsigned long long)thread->thread_id);
        left -= count;
        thread->frames = frames + first * FRAME_SIZE;
        thread->count = count;
        code = check_frames(thread, client->symbols.size, &named, error);
    }
    qsort(client->threads, client->count, sizeof *client->threads, client_by_id);
    return code;
}

enum sl_code sl_minidump_client_stacks(const struct sl_minidump *dump, struct sl_arena *arena,
                                       struct sl_minidump_client *client, struct sl_error *error)
{
    struct sl_bytes bytes = dump_stream(dump, STREAM_CLIENT_STACKS);
    struct sl_reader r = sl_reader(bytes, false);
    *client = (struct sl_minidump_client){.threads = NULL};
    if (!bytes.data)
        return sl_fail(error, SL_NOT_FOUND, "the minidump has no stream of client stacks (0x53790001)");
    uint32_t version = sl_read_u32(&r);
    uint64_t threads = sl_read_u32(&r), frames = sl_read_u32(&r), symbols = sl_read_u32(&r);
    if (r.failed)
        return sl_fail(error, SL_MALFORMED, "stream of client stacks: the header is cut off; is the dump truncated?");
    if (version != VERSION)
        return sl_fail(error, SL_MALFORMED, "stream of client stacks: version %lu is not supported, only %d",
                       (unsigned long)version, VERSION);
    uint64_t frames_at = (HEADER_SIZE + threads * THREAD_SIZE + 7) & ~UINT64_C(7); /* padded to 8 bytes */
    uint64_t symbols_at = frames_at + frames * FRAME_SIZE;
    if (symbols_at + symbols != bytes.size)
        return sl_fail(error, SL_MALFORMED,
                       "stream of client stacks: its size differs from what its header says; is the dump truncated?");
    client->threads = SL_ARENA_ARRAY(arena, struct sl_minidump_prewalked, threads + 1); /* + 1: not NULL for 0 */
    if (!client->threads)
        return sl_budget_fail(arena->budget, error);
    client->count = threads;
    client->symbols = (struct sl_str){(const char *)bytes.data + symbols_at, symbols};
    enum sl_code code = read_client_threads(&r, bytes.data + frames_at, frames, client, error);
    if (code != SL_OK)
        client->count = 0;
    return code;
}

/* ---- frames ---- */

/* Returns the symbol of `size` bytes at `begin` as valid UTF-8; data NULL when out of memory. */
static struct sl_str symbol_at(const struct sl_minidump_client *client, uint32_t begin, uint32_t size,
                               struct sl_arena *arena)
{
    struct sl_str symbol = {client->symbols.data + begin, size};
    struct sl_buf buf = {.budget = arena->budget};
    if (sl_str_is_utf8(symbol))
        return symbol;
    sl_buf_utf8(&buf, symbol);
    return sl_buf_move_to_arena(&buf, arena);
}

/* Looks for the thread in client->threads, which is sorted by id: the last entry whose id is at most `thread_id` is the one, if that is its
 * id. */
bool sl_minidump_client_frames(const struct sl_minidump_client *client, uint64_t thread_id, struct sl_arena *arena,
                               struct sl_crash_frame **frames, size_t *count)
{
    size_t beyond = SL_COUNT_UP_TO(client->threads, client->count, thread_id, thread_id);
    const struct sl_minidump_prewalked *thread = beyond ? &client->threads[beyond - 1] : NULL;
    *count = 0;
    if (!thread || thread->thread_id != thread_id || !thread->count)
        return false;
    *count = thread->count;
    *frames = SL_ARENA_ARRAY(arena, struct sl_crash_frame, thread->count);
    struct sl_reader r = sl_reader((struct sl_bytes){thread->frames, thread->count * FRAME_SIZE}, false);
    for (size_t i = 0; *frames && i < thread->count; i++) {
        uint64_t address = sl_read_u64(&r);
        uint32_t begin = sl_read_u32(&r), size = sl_read_u32(&r);
        (*frames)[i] = (struct sl_crash_frame){.address = address, .function = symbol_at(client, begin, size, arena)};
        if (!(*frames)[i].function.data)
            *frames = NULL;
    }
    return *frames != NULL;
}
