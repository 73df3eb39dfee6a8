/* Reads minidumps: header, directory of streams, lists; calls the readers of the streams. */
#include "minidump/impl.h"
#include "minidump/microdump.h"

#include <stdarg.h>
#include <stdio.h>

enum { HEADER_SIZE = 32, ENTRY_SIZE = 12 };

/* ---- streams ---- */

const char *sl_minidump_stream_name(uint32_t type)
{
    static const struct dump_name names[] = {
        {STREAM_THREAD_LIST, "ThreadListStream"},
        {STREAM_MODULE_LIST, "ModuleListStream"},
        {STREAM_MEMORY_LIST, "MemoryListStream"},
        {STREAM_EXCEPTION, "ExceptionStream"},
        {STREAM_SYSTEM_INFO, "SystemInfoStream"},
        {8, "ThreadExListStream"},
        {STREAM_MEMORY64_LIST, "Memory64ListStream"},
        {10, "CommentStreamA"},
        {11, "CommentStreamW"},
        {STREAM_HANDLE_DATA, "HandleDataStream"},
        {13, "FunctionTableStream"},
        {STREAM_UNLOADED_MODULES, "UnloadedModuleListStream"},
        {STREAM_MISC_INFO, "MiscInfoStream"},
        {STREAM_MEMORY_INFO, "MemoryInfoListStream"},
        {STREAM_THREAD_INFO, "ThreadInfoListStream"},
        {18, "HandleOperationListStream"},
        {19, "TokenStream"},
        {20, "JavaScriptDataStream"},
        {21, "SystemMemoryInfoStream"},
        {22, "ProcessVmCountersStream"},
        {23, "IptTraceStream"},
        {STREAM_THREAD_NAMES, "ThreadNamesStream"},
        {STREAM_BREAKPAD_INFO, "BreakpadInfoStream"},
        {STREAM_ASSERTION, "AssertionInfoStream"},
        {0x47670003, "LinuxCpuInfoStream"},
        {0x47670004, "LinuxProcStatusStream"},
        {0x47670005, "LinuxLsbReleaseStream"},
        {0x47670006, "LinuxCmdLineStream"},
        {0x47670007, "LinuxEnvironStream"},
        {0x47670008, "LinuxAuxvStream"},
        {STREAM_LINUX_MAPS, "LinuxMapsStream"},
        {0x4767000A, "LinuxDsoDebugStream"},
        {STREAM_CRASHPAD_INFO, "CrashpadInfoStream"},
        {0x4B6B0002, "ChromiumStabilityReportStream"},
        {STREAM_MAC_CRASH_INFO, "MacCrashInfoStream"},
        {0x4D7A0002, "MacBootArgsStream"},
        {0x4D7A0003, "LinuxLimitsStream"},
        {0x4D7A0004, "SoftErrorsStream"},
        {STREAM_CLIENT_STACKS, "SentryStacktracesStream"},
        {0, NULL},
    };
    return dump_find_name(names, type);
}

const char *dump_find_name(const struct dump_name *names, uint64_t number)
{
    for (; names->name; names++)
        if (names->number == number)
            return names->name;
    return NULL;
}

struct sl_reader dump_make_reader(const struct sl_minidump *dump, struct sl_bytes bytes)
{
    return sl_reader(bytes, dump->big_endian);
}

struct sl_bytes dump_stream(const struct sl_minidump *dump, uint32_t type)
{
    for (size_t i = dump->stream_count; i-- > 0;)
        if (dump->streams[i].type == type)
            return dump->streams[i].bytes;
    return (struct sl_bytes){NULL, 0};
}

struct sl_reader dump_stream_reader(const struct sl_minidump *dump, uint32_t type)
{
    return dump_make_reader(dump, dump_stream(dump, type));
}

struct sl_bytes dump_location(const struct sl_minidump *dump, struct sl_reader *r, uint32_t *rva)
{
    uint32_t size = sl_read_u32(r), offset = sl_read_u32(r);
    if (rva)
        *rva = offset;
    return r->failed ? (struct sl_bytes){NULL, 0} : sl_bytes_slice(dump->bytes, offset, size, NULL);
}

/* ---- lists ---- */

/* Returns how many of `count` entries of `size` bytes the reader still has: lists of truncated dumps are used as far as they go. */
static size_t entries_left(const struct sl_reader *r, uint64_t count, size_t size)
{
    size_t left = r->failed ? 0 : sl_reader_left(r) / size;
    return count < left ? (size_t)count : left;
}

size_t dump_list(const struct sl_minidump *dump, uint32_t type, size_t size, struct sl_reader *r)
{
    *r = dump_stream_reader(dump, type);
    uint64_t count = sl_read_u32(r);
    if (sl_reader_left(r) == count * size + 4) /* padding that some writers put after the count */
        sl_reader_skip(r, 4);
    return entries_left(r, count, size);
}

size_t dump_extended_list(const struct sl_minidump *dump, uint32_t type, size_t size, bool wide, struct sl_reader *r,
                          size_t *entry)
{
    *r = dump_stream_reader(dump, type);
    uint32_t header = sl_read_u32(r);
    *entry = sl_read_u32(r);
    uint64_t count = wide ? sl_read_u64(r) : sl_read_u32(r);
    if (header < sl_reader_offset(r) || *entry < size) /* the header or the entries are smaller than is read of them */
        return 0;
    sl_reader_seek(r, header);
    return entries_left(r, count, *entry);
}

void *dump_alloc(struct dump_reader *d, size_t count, size_t size)
{
    void *items = sl_arena_zalloc(d->arena, count + 1, size);
    d->out_of_memory |= !items;
    return items;
}

bool dump_charge(struct dump_reader *d, size_t size)
{
    return sl_budget_charge(&d->budget, size);
}

struct sl_str dump_printf(struct dump_reader *d, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    char *text = size < 0 ? NULL : sl_arena_alloc(d->arena, (size_t)size + 1, 1);
    if (text)
        vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    d->out_of_memory |= !text;
    return sl_str(text);
}

/* ---- reading ---- */

/* Reads the directory, `count` entries at file offset `rva`. Streams outside of the file get no bytes. SL_MALFORMED if the directory itself
 * is outside. When out of memory, SL_OK with d->out_of_memory set. */
static enum sl_code read_directory(struct dump_reader *d, uint32_t count, uint32_t rva, struct sl_error *error)
{
    struct sl_minidump *dump = d->dump;
    struct sl_bytes bytes = sl_bytes_slice(dump->bytes, rva, (uint64_t)count * ENTRY_SIZE, NULL);
    struct sl_reader r = dump_make_reader(dump, bytes);
    if (!bytes.data)
        return sl_fail(error, SL_MALFORMED, "Missing stream directory (heavily truncated minidump?)");
    dump->streams = dump_alloc(d, count, sizeof *dump->streams);
    for (uint32_t i = 0; dump->streams && i < count; i++) {
        struct sl_minidump_stream *stream = &dump->streams[dump->stream_count];
        stream->type = sl_read_u32(&r);
        stream->size = sl_read_u32(&r);
        stream->offset = sl_read_u32(&r);
        stream->bytes = sl_bytes_slice(dump->bytes, stream->offset, stream->size, NULL);
        dump->stream_count += stream->type != 0; /* 0: unused */
    }
    return SL_OK;
}

/* Reads the header; the byte order of its signature is that of the dump. */
static enum sl_code read_header(struct dump_reader *d, struct sl_error *error)
{
    struct sl_minidump *dump = d->dump;
    struct sl_reader r = sl_reader(dump->bytes, false);
    uint32_t signature = sl_read_u32(&r);
    if (dump->bytes.size < HEADER_SIZE)
        return sl_fail(error, SL_MALFORMED, "Missing minidump header (empty minidump?)");
    if (signature != DUMP_SIGNATURE && __builtin_bswap32(signature) != DUMP_SIGNATURE)
        return sl_fail(error, SL_MALFORMED, "Header mismatch");
    r.big_endian = dump->big_endian = signature != DUMP_SIGNATURE;
    uint32_t version = sl_read_u32(&r), count = sl_read_u32(&r), directory = sl_read_u32(&r);
    sl_reader_skip(&r, 4); /* checksum */
    dump->crash.timestamp = sl_read_u32(&r);
    dump->crash.has_timestamp = true;
    if ((version & 0xFFFF) != DUMP_VERSION) /* the upper half may be any number of the writer's */
        return sl_fail(error, SL_MALFORMED, "Minidump version mismatch");
    return read_directory(d, count, directory, error);
}

enum sl_code dump_read(struct sl_bytes bytes, struct sl_arena *arena, struct sl_minidump *dump, struct sl_error *error)
{
    struct dump_reader d = {.dump = dump, .arena = arena};
    *dump = (struct sl_minidump){.bytes = bytes};
    /* only the memory limit matters (dump_charge): copies of texts and contexts take at most the size of the file */
    sl_budget_init(&d.budget, bytes.size);
    sl_budget_limit(&d.budget, bytes.size, NULL, NULL);
    enum sl_code code = read_header(&d, error);
    if (code != SL_OK)
        return code;
    if (!d.out_of_memory && !dump_read_system(&d))
        return sl_fail(error, SL_MALFORMED, "The system information stream was not found");
    if (!d.out_of_memory) {
        dump_read_modules(&d);
        dump_read_memory(&d);
    }
    if (!d.out_of_memory && !dump_read_threads(&d))
        return sl_fail(error, SL_MALFORMED, "The thread list stream was not found");
    if (!d.out_of_memory)
        dump_read_info(&d);
    return d.out_of_memory ? sl_budget_fail(arena->budget, error) : SL_OK;
}

enum sl_code sl_minidump_read(struct sl_bytes bytes, struct sl_arena *arena, struct sl_minidump *dump,
                              struct sl_error *error)
{
    return sl_microdump_is_in(bytes) ? dump_read_microdump(bytes, arena, dump, error)
                                     : dump_read(bytes, arena, dump, error);
}
