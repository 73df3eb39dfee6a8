/* The kind `ppdb_caches`: look-up tables made from Portable PDBs, also from those inside PE files. */
#include "cache_kinds/impl.h"

#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "object/embedded.h"

/* Checks the new table by reading it, then writes it to the entry: a table damaged by a bug of the converter would stay cached. */
static enum sl_code ppdbcaches_store(struct conversion *conversion, const struct converter_call *call,
                                     const struct sl_buf *out, struct sl_error *error)
{
    struct sl_ppdb_table table;
    struct sl_error reason;
    if (sl_ppdb_table_open(sl_buf_bytes(out), &table, &reason) != SL_OK ||
        sl_ppdb_table_verify(&table, &reason) != SL_OK)
        return sl_fail(error, SL_INTERNAL, "the portable PDB cache just made cannot be read, a bug of symloom: %s",
                       reason.message);
    return conversion_write(conversion, call, out, error);
}

/* Writes the look-up table of a Portable PDB; `outcome` receives how many damaged methods and documents it lacks. */
static enum sl_code ppdbcaches_build(struct conversion *conversion, const struct converter_call *call,
                                     struct sl_bytes bytes, struct sl_arena *arena, struct ppdb_cache_result *outcome,
                                     struct sl_error *error)
{
    size_t dropped = 0;
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info info;
    struct sl_error reason;
    struct sl_buf out = {0};
    enum sl_code code = sl_ppdb_open(bytes, arena, &ppdb, &info, &reason);
    if (code == SL_OK)
        code = sl_ppdb_table_build(ppdb, &info, &out, &dropped, &reason);
    outcome->dropped = dropped;
    if (code != SL_OK)
        sl_fail(error, code, "error processing portable pdb file: %s", reason.message);
    else
        code = ppdbcaches_store(conversion, call, &out, error);
    sl_buf_free(&out);
    return code;
}

/* Sets `*ppdb` to the Portable PDB: the file itself or, inflated into the arena, the one embedded in a PE file. SL_NOT_FOUND if there is
 * neither. */
static enum sl_code find_portable_pdb(struct sl_bytes file, const struct reader_limits *limits, struct sl_arena *arena,
                                      struct sl_bytes *ppdb, struct sl_error *error)
{
    struct sl_object *object;
    *ppdb = file;
    if (sl_format_detect(file) == SL_FORMAT_PORTABLEPDB)
        return SL_OK;
    if (sl_format_detect(file) != SL_FORMAT_PE)
        return sl_fail(error, SL_NOT_FOUND, "the file is neither a portable PDB nor a PE file that may contain one");
    enum sl_code code = open_object_in_limits(file, limits, arena->budget, &object, error);
    if (code != SL_OK)
        return code;
    code = sl_object_embedded_ppdb(object, arena, ppdb, error);
    sl_object_close(object);
    return code;
}

/* Runs in a worker: makes the look-up table of a Portable PDB, which is INPUT_FILE itself or embedded in it (a PE file). */
static enum sl_code make_table(struct conversion *conversion, const struct converter_call *call, void *result,
                               struct sl_error *error)
{
    const struct reader_limits *limits = converter_options(call);
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_bytes ppdb;
    enum sl_code code = find_portable_pdb(converter_input_bytes(call, INPUT_FILE), limits, &arena, &ppdb, error);
    if (code == SL_NOT_FOUND) /* the entry must not look as if its file did not exist */
        code = sl_fail(error, SL_UNSUPPORTED, "Only portable PDB files can be used for .NET symbolication");
    else if (code == SL_OK)
        code = ppdbcaches_build(conversion, call, ppdb, &arena, result, error);
    sl_arena_free(&arena);
    return code;
}

/* True for every result: it is only a number for the log, so no value of it does harm. */
static bool check_result(const void *result)
{
    (void)result;
    return true;
}

const struct converter converter_ppdb_cache = {"ppdb_cache", sizeof(struct reader_limits),
                                               sizeof(struct ppdb_cache_result), make_table, check_result};

/* Runs in a worker: writes the Portable PDB that is embedded in a PE file, inflated. SL_NOT_FOUND if there is none. */
static enum sl_code write_ppdb(struct conversion *conversion, const struct converter_call *call, void *result,
                               struct sl_error *error)
{
    (void)result;
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_bytes ppdb;
    enum sl_code code =
        find_portable_pdb(converter_input_bytes(call, INPUT_FILE), converter_options(call), &arena, &ppdb, error);
    if (code == SL_OK)
        code = write_whole_file(call->out, ppdb, error);
    sl_arena_free(&arena);
    return code;
}

const struct converter converter_embedded_ppdb = {"embedded_ppdb", sizeof(struct reader_limits), 0, write_ppdb};

/* Has a worker make the look-up table. Damaged methods and documents are left out of it, which is counted and logged. */
static enum sl_code ppdbcaches_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                       struct sl_error *error)
{
    const struct object_request *request = context;
    struct ppdb_cache_result outcome;
    enum sl_code code =
        convert_to_entry(request, &kind_ppdb_caches, &converter_ppdb_cache, &outcome, tmp->fd, arena, error);
    if (code == SL_OK && outcome.dropped) {
        metric_add(METRIC_CONVERSIONS_PARTIAL, 1, kind_ppdb_caches.name, NULL, NULL);
        log_warn("ppdb", "skipped damaged methods or documents of a portable PDB; some frames get no lines",
                 LOG_U64("count", outcome.dropped), LOG_SLSTR("location", request->file->location));
    }
    return code;
}

static enum sl_code open_into(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_ppdb_table_open(bytes, into, error);
}

const struct cache_kind kind_ppdb_caches = {
    .name = "ppdb_caches",
    .section = CACHE_DERIVED,
    .version = 1001,
    .random_access = true,
    .compute = ppdbcaches_compute,
    .base = object_request_base,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
    .open = open_into,
    .opened_size = sizeof(struct sl_ppdb_table),
};
