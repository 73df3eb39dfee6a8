/* converter_supplied: reads a debug file that came with a request. Unpacks it if it is compressed or an archive, and finds the object files
 * in it. */
#include "search/converters.h"

#include <string.h>

#include "base/file.h"
#include "conversion/conversion.h"
#include "object/archive.h"
#include "source/zip.h"

struct supplied_reading {
    struct conversion *conversion;
    const struct supplied_options *options;
    int out;
    uint64_t written;      /* bytes written to `out` */
    struct sl_buf records; /* struct supplied_record each */
    uint64_t count;
    uint64_t left; /* bytes that may still be unpacked */
    struct sl_error *error;
};

/* Sets r->error to that of the memory budget: a limit was reached, or memory is used up. Returns false. */
static bool fail_memory(struct supplied_reading *r)
{
    sl_budget_fail(&r->conversion->budget, r->error);
    return false;
}

/* Appends to the output; false with r->error set if it cannot be written. */
static bool put(struct supplied_reading *r, const void *data, size_t size)
{
    if (!sl_write_all_at(r->out, (struct sl_bytes){data, size}, r->written)) {
        sl_fail(r->error, SL_INTERNAL,
                "cannot write the objects of a debug file to a temporary file: is the disk full?");
        return false;
    }
    r->written += size;
    return true;
}

/* Appends a text to the output and sets `*at` to its place there. */
static bool put_text(struct supplied_reading *r, struct sl_str text, struct supplied_text *at)
{
    *at = (struct supplied_text){r->written, text.size};
    return put(r, text.data, text.size);
}

/* Returns the index of a version control system's name in supplied_vcs_names; 0, the empty name, if it is not there. */
static uint32_t find_vcs(struct sl_str name)
{
    for (uint32_t i = 0; i < SUPPLIED_VCS_NAMES; i++)
        if (sl_str_equal(name, supplied_vcs_names[i]))
            return i;
    return 0;
}

/* Adds the record of one object to r->records, and its ids to the output. False with r->error. The object's bytes are `size` bytes at
 * `offset` of r->out if it was unpacked, else of the input file. */
static bool add_object(struct supplied_reading *r, const struct supplied_text *name, bool is_unpacked, uint64_t offset,
                       uint64_t size, struct sl_object *object)
{
    const struct sl_object_info *info = sl_object_info(object);
    struct supplied_record record;
    memset(&record, 0, sizeof record);
    record.name = *name;
    record.bytes = (struct supplied_text){offset, size};
    record.is_unpacked = is_unpacked;
    record.has_debug_info = info->features.has_debug_info;
    record.has_unwind_info = info->features.has_unwind_info;
    record.has_symbols = info->features.has_symbols;
    record.has_sources = info->features.has_sources;
    record.vcs = find_vcs(info->features.srcsrv_vcs);
    record.is_fixed = info->is_fixed;
    record.load_address = info->load_address;
    memcpy(record.uuid, info->debug_id.uuid, sizeof record.uuid);
    record.age = info->debug_id.age;
    record.is_pdb20 = info->debug_id.pdb20;
    if (!put_text(r, info->code_id, &record.code_id) || !put_text(r, info->raw_code_id, &record.raw_code_id))
        return false;
    sl_buf_add(&r->records, &record, sizeof record);
    r->count++;
    return !r->records.failed || fail_memory(r);
}

/* Adds the objects of a file: one, several if it is a universal Mach-O file, none if it is not an object file. `begin` is the offset of the
 * file in r->out if it was unpacked, else in the input. False only on lack of memory or a write error. */
static bool add_file(struct supplied_reading *r, struct supplied_text name, struct sl_bytes file, bool is_unpacked,
                     uint64_t begin)
{
    /* identity: the objects' ids and features are enough here, nothing else is read */
    const struct sl_object_limits limits = {.identity = true, .budget = &r->conversion->budget};
    struct sl_archive archive;
    struct sl_object *object;
    struct sl_bytes slice;
    bool good = true;
    if (sl_archive_open(file, &archive, NULL) != SL_OK)
        return true;
    for (size_t i = 0; i < archive.count && good; i++) {
        if (!sl_archive_slice(&archive, i, &slice) || sl_archive_object(&archive, i, &limits, &object, NULL) != SL_OK)
            continue;
        good = add_object(r, &name, is_unpacked, begin + (uint64_t)(slice.data - file.data), slice.size, object);
        sl_object_close(object);
    }
    return good;
}

/* ---- archives ---- */

/* Unpacks a member of a ZIP archive and adds it if it is an object. A member that cannot be unpacked, also for lack of memory, or has more
 * bytes than may still be unpacked (r->left), is skipped. False if its objects cannot be recorded: lack of memory, or a write error. */
static bool add_member(struct supplied_reading *r, const struct sl_zip *zip, const struct sl_zip_entry *entry)
{
    struct sl_buf out = {.budget = &r->conversion->budget};
    struct supplied_text name;
    struct sl_error ignored;
    if (sl_zip_read(zip, entry, r->left, &out, &ignored) != SL_OK) {
        sl_buf_free(&out);
        return true;
    }
    /* the limit of work grows with the size of the input, and the unpacked bytes are input too */
    sl_budget_grow(&r->conversion->budget, out.size);
    r->left -= out.size;
    uint64_t begin = r->written = (r->written + 15) & ~UINT64_C(15); /* at a multiple of 16, like memory of malloc() */
    bool good = put(r, out.data, out.size) && put_text(r, entry->name, &name) &&
                add_file(r, name, sl_buf_bytes(&out), true, begin);
    sl_buf_free(&out);
    return good;
}

/* Adds the objects among the members of a ZIP archive, such as a packed .dSYM. Stops when the packed sizes add up to more than the archive:
 * then members overlap, as in a ZIP bomb; in a valid archive they share no bytes. False only on lack of memory or a write error. */
static bool add_members(struct supplied_reading *r, const struct sl_zip *zip)
{
    uint64_t packed = 0;
    for (size_t i = 0; i < zip->count; i++) {
        const struct sl_zip_entry *entry = &zip->entries[i];
        if (entry->is_link || !entry->size || entry->size > r->left)
            continue;
        /* Each size is capped, so that the sum cannot overflow. */
        packed += entry->packed < zip->bytes.size ? entry->packed : zip->bytes.size;
        if (packed > zip->bytes.size)
            break;
        if (!add_member(r, zip, entry))
            return false;
    }
    return true;
}

/* Adds the members of a ZIP archive. A damaged archive adds nothing and is no error. False only on lack of memory or a write error. */
static bool add_zip(struct supplied_reading *r, struct sl_bytes file)
{
    struct sl_arena arena = {.budget = &r->conversion->budget};
    struct sl_zip zip;
    struct sl_error error;
    bool good = sl_zip_open(file, 0, &arena, &zip, &error) == SL_OK ? add_members(r, &zip)
                                                                    : error.code != SL_BUSY || fail_memory(r);
    sl_arena_free(&arena);
    return good;
}

/* Callback of unpack_bytes(): charges the budget; false ends the unpacking, when the budget is used up. */
static bool has_time(void *budget)
{
    return sl_budget_spend(budget, 1);
}

/* Unpacks a file that is compressed as a whole, as on symbol servers, into r->out and adds its objects. A file that cannot be unpacked is
 * ignored, unless memory is short or the output cannot be written: then false with r->error. */
static bool add_packed(struct supplied_reading *r, struct sl_bytes file, enum unpack_format format)
{
    struct unpack_call call = {.in = file,
                               .options = {format, r->left, r->options->max_ratio},
                               .out = r->out,
                               .may_continue = has_time,
                               .arg = &r->conversion->budget};
    struct unpack_result unpacked;
    struct sl_mapping mapping;
    struct sl_error error = {0};
    enum sl_code code = unpack_bytes(&call, &unpacked, &error);
    if (code == SL_OK)
        code = sl_map_fd(r->out, &mapping, &error);
    if (code != SL_OK) {
        bool is_fatal = code == SL_BUSY || code == SL_INTERNAL;
        *r->error = is_fatal ? error : *r->error;
        return !is_fatal;
    }
    r->written = mapping.bytes.size;
    r->left -= r->written < r->left ? r->written : r->left;
    sl_budget_grow(&r->conversion->budget, mapping.bytes.size);
    bool good = add_file(r, (struct supplied_text){0, 0}, mapping.bytes, true, 0);
    sl_unmap(&mapping);
    return good;
}

/* ---- the converter ---- */

/* Adds the objects in a file of the request, by its format: a ZIP archive, a compressed file or an object. False with r->error on lack of
 * memory or a write error. */
static bool read_file(struct supplied_reading *r, struct sl_bytes file)
{
    enum unpack_format format = unpack_detect(file);
    if (file.size > 4 && format == UNPACK_ZIP) /* > 4: it has more than the magic bytes */
        return add_zip(r, file);
    return format != UNPACK_NONE ? add_packed(r, file, format)
                                 : add_file(r, (struct supplied_text){0, 0}, file, false, 0);
}

/* The converter's function, run in a worker process: writes the unpacked contents of the file and the records of its objects to the output.
 * A file that is an object itself is not copied: its record refers to the input. */
static enum sl_code read_supplied(struct conversion *conversion, const struct converter_call *call, void *result,
                                  struct sl_error *error)
{
    const struct supplied_options *options = converter_options(call);
    struct supplied_result *totals = result;
    struct sl_error failure = {0};
    struct supplied_reading r = {.conversion = conversion,
                                 .options = options,
                                 .out = call->out,
                                 .records = {.budget = &conversion->budget},
                                 .left = options->max_unpacked,
                                 .error = &failure};
    bool good = read_file(&r, converter_input_bytes(call, INPUT_FILE));
    /* the records are written next, behind what was written so far: .records is their offset */
    *totals =
        (struct supplied_result){.records = r.written, .count = r.count, .unpacked = options->max_unpacked - r.left};
    if (good && r.count)
        good = put(&r, r.records.data, r.records.size);
    sl_buf_free(&r.records);
    if (good)
        return SL_OK;
    *error = failure;
    return failure.code;
}

const struct sl_str supplied_vcs_names[SUPPLIED_VCS_NAMES] = {SL_STR(""), SL_STR("git"), SL_STR("perforce"),
                                                              SL_STR("other")};

/* The converter's check of its result, which a worker process wrote: any numbers are accepted here, as take_records() checks each offset
 * and size when it uses it. */
static bool check_result(const void *result)
{
    (void)result;
    return true;
}

const struct converter converter_supplied = {"supplied_objects", sizeof(struct supplied_options),
                                             sizeof(struct supplied_result), read_supplied, check_result};
