/* Rarely used streams: handles, macOS' records, the last error of a thread. facts_linux.c reads the copies of Linux'
 * files. */
#include "minidump/facts_impl.h"

#include "base/json.h"

enum { MAX_MAC_RECORDS = 20, HANDLE_SIZE = 32 }; /* further records are not read */

/* ---- handles ---- */

static struct sl_str optional_string(struct dump_reader *d, uint32_t rva)
{
    return rva ? dump_string(d, rva) : (struct sl_str){NULL, 0};
}

/* Reads the list of open handles; an entry may be longer than what is read of it. If a handle has no name or type, their data is NULL. */
static void read_handles(struct dump_reader *d, struct sl_minidump_facts *facts)
{
    struct sl_reader r;
    size_t entry, count = dump_extended_list(d->dump, STREAM_HANDLE_DATA, HANDLE_SIZE, false, &r, &entry);
    facts->has_handles = dump_stream(d->dump, STREAM_HANDLE_DATA).data != NULL;
    facts->handles = dump_alloc(d, count, sizeof *facts->handles);
    for (size_t i = 0; facts->handles && i < count; i++) {
        struct sl_reader one = r;
        struct sl_minidump_handle *handle = &facts->handles[i];
        handle->handle = sl_read_u64(&one);
        handle->type = optional_string(d, sl_read_u32(&one));
        handle->object = optional_string(d, sl_read_u32(&one));
        sl_reader_skip(&r, entry);
        facts->handle_count++;
    }
}

/* ---- macOS ---- */

/* Reads a record of macOS' crash info: numbers, then from offset `start` on five NUL-terminated texts. Of versions before 4 only the
 * version is read. */
static void read_mac_record(struct dump_reader *d, struct sl_bytes bytes, uint32_t start,
                            struct sl_minidump_mac_record *record)
{
    struct sl_reader r = dump_make_reader(d->dump, bytes);
    sl_reader_skip(&r, 8); /* type */
    record->version = sl_read_u64(&r);
    if (record->version < 4)
        return;
    record->thread = sl_read_u64(&r);
    record->dialog_mode = sl_read_u64(&r);
    record->abort_cause = record->version < 5 ? 0 : sl_read_u64(&r);
    sl_reader_seek(&r, start);
    struct sl_str *const texts[] = {&record->module, &record->message, &record->signature, &record->backtrace,
                                    &record->message2};
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !r.failed; i++) {
        struct sl_str raw = sl_read_cstr(&r);
        if (!r.failed)
            *texts[i] = dump_utf8(d, (struct sl_bytes){(const uint8_t *)raw.data, raw.size});
    }
}

/* Reads the records of macOS' crash info, at most MAX_MAC_RECORDS; one outside of the file is left out. `start`, which the stream's header
 * gives, is the offset of the texts in each record. */
static void read_mac_records(struct dump_reader *d, struct sl_minidump_facts *facts)
{
    struct sl_reader r = dump_stream_reader(d->dump, STREAM_MAC_CRASH_INFO);
    sl_reader_skip(&r, 4); /* type */
    uint32_t count = sl_read_u32(&r), start = sl_read_u32(&r);
    count = count < MAX_MAC_RECORDS ? count : MAX_MAC_RECORDS;
    facts->has_mac_records = !r.failed;
    facts->mac_records = dump_alloc(d, r.failed ? 0 : count, sizeof *facts->mac_records);
    for (uint32_t i = 0; facts->has_mac_records && facts->mac_records && i < count; i++) {
        struct sl_bytes bytes = dump_location(d->dump, &r, NULL);
        if (bytes.data)
            read_mac_record(d, bytes, start, &facts->mac_records[facts->mac_record_count++]);
    }
}

/* Reads the arguments with which macOS was started. */
static void read_boot_args(struct dump_reader *d, struct sl_minidump_facts *facts)
{
    struct sl_reader r = dump_stream_reader(d->dump, STREAM_MAC_BOOT_ARGS);
    sl_reader_skip(&r, 4); /* type */
    uint64_t rva = sl_read_u64(&r);
    if (!r.failed)
        facts->boot_args = dump_string(d, rva);
}

/* ---- entry points ---- */

/* Reads the list of errors that the program that wrote the dump met while writing it ("soft errors"); ignored unless it is JSON. */
static void read_soft_errors(struct dump_reader *d, struct sl_minidump_facts *facts)
{
    struct sl_str text = dump_text(d, dump_stream(d->dump, STREAM_SOFT_ERRORS));
    struct sl_json j = sl_json(text, d->arena, false);
    if (!text.size)
        return;
    sl_json_skip(&j); /* checks that it is a JSON value */
    if (sl_json_end(&j))
        facts->soft_errors = sl_str_trimmed(text);
}

enum sl_code sl_minidump_read_facts(const struct sl_minidump *dump, struct sl_arena *arena,
                                    struct sl_minidump_facts *facts, struct sl_error *error)
{
    struct sl_minidump copy = *dump; /* `dump` is const, the reader's is not */
    struct dump_reader d = {.dump = &copy, .arena = arena};
    *facts = (struct sl_minidump_facts){.has_process_id = dump->has_process_id, .process_id = dump->process_id};
    /* only the memory limit matters (dump_charge): copies of texts that several entries share take at most the size of the file */
    sl_budget_init(&d.budget, dump->bytes.size);
    sl_budget_limit(&d.budget, dump->bytes.size, NULL, NULL);
    read_handles(&d, facts);
    facts->has_mappings = dump_stream(dump, STREAM_LINUX_MAPS).data != NULL;
    read_mac_records(&d, facts);
    read_boot_args(&d, facts);
    read_soft_errors(&d, facts);
    facts_read_linux(&d, facts);
    return d.out_of_memory ? sl_budget_fail(arena->budget, error) : SL_OK;
}

struct sl_str sl_minidump_last_error(const struct sl_minidump *dump, size_t thread, struct sl_arena *arena)
{
    enum { LAST_ERROR = 13 };        /* index in the thread environment block (TEB), in pointers */
    struct sl_minidump copy = *dump; /* `dump` is const, the reader's is not */
    struct dump_reader d = {.dump = &copy, .arena = arena};
    uint64_t block = dump->threads[thread].environment;
    if (!block || dump->os != SL_MINIDUMP_WINDOWS || dump->family == SL_CPU_UNKNOWN)
        return (struct sl_str){NULL, 0};
    uint64_t at = block + LAST_ERROR * sl_cpu_pointer_size(dump->threads[thread].family), code;
    return dump_memory_read(dump, at, 4, &code) ? dump_windows_error(&d, (uint32_t)code) : (struct sl_str){NULL, 0};
}

/* ---- unloaded modules ---- */

/* Orders pairs of an unloaded module's name and an offset by name, then by offset. */
static int compare_hits(const struct sl_minidump_unloaded_hit *a, const struct sl_minidump_unloaded_hit *b)
{
    size_t size = a->name.size < b->name.size ? a->name.size : b->name.size;
    int order = size ? memcmp(a->name.data, b->name.data, size) : 0;
    if (order || a->name.size != b->name.size)
        return order ? order : a->name.size < b->name.size ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Inserts a hit (name of an unloaded module, offset in it) into the sorted list of `count`, unless it is there already or the list is full.
 * Returns the new number of hits. */
static size_t add_hit(struct sl_minidump_unloaded_hit *found, size_t count, const struct sl_minidump_unloaded_hit *hit)
{
    size_t at = count;
    while (at && compare_hits(&found[at - 1], hit) > 0)
        at--;
    if (count == SL_MINIDUMP_MAX_UNLOADED_HITS || (at && compare_hits(&found[at - 1], hit) == 0))
        return count;
    memmove(&found[at + 1], &found[at], (count - at) * sizeof *found);
    found[at] = *hit;
    return count + 1;
}

size_t sl_minidump_find_unloaded(const struct sl_minidump *dump, uint64_t address,
                                 struct sl_minidump_unloaded_hit found[SL_MINIDUMP_MAX_UNLOADED_HITS])
{
    enum { MAX_LOOKED_AT = 1024 }; /* bounds the time for crafted dumps; Windows keeps the last 64 */
    size_t count = 0;
    for (size_t i = 0; i < dump->unloaded_count && i < MAX_LOOKED_AT; i++) {
        const struct sl_minidump_unloaded *unloaded = &dump->unloaded[i];
        if (address < unloaded->address || address - unloaded->address >= unloaded->size)
            continue;
        const struct sl_minidump_unloaded_hit hit = {unloaded->name, address - unloaded->address};
        count = add_hit(found, count, &hit);
    }
    return count;
}

void sl_minidump_put_unloaded(const struct sl_minidump *dump, uint64_t address, struct sl_buf *out)
{
    struct sl_minidump_unloaded_hit found[SL_MINIDUMP_MAX_UNLOADED_HITS];
    size_t count = sl_minidump_find_unloaded(dump, address, found);
    for (size_t i = 0; i < count; i++) {
        bool again = i && sl_str_equal(found[i].name, found[i - 1].name);
        if (!again)
            sl_buf_printf(out, "%s(unloaded " SL_STR_FMT "@", i ? ") " : "",
                          SL_STR_ARG(sl_crash_file_name(found[i].name)));
        sl_buf_printf(out, "%s0x%llx", again ? "|" : "", (unsigned long long)found[i].offset);
    }
    sl_buf_cstr(out, count ? ")" : "");
}
