/* POST /core: starts a job that reads an ELF core file, walks its stacks and symbolicates it, as POST /minidump does. */
#include "api/crash/dump.h"
#include "base/map.h"
#include "config/config.h"

/* ---- ids that the core lacks ---- */

/* The callback for the member `debug_id`; an invalid id counts as absent. */
static bool read_debug_id(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct crash_module_id *id = out;
    struct sl_str text;
    if (!sl_fields_text(s, at, &text))
        return false;
    id->has_debug_id = sl_debug_id_parse(text, &id->debug_id);
    return true;
}

/* The callback for the member `code_id`, which is stored in normalised form. */
static bool read_code_id(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct crash_module_id *id = out;
    struct sl_str text;
    if (!sl_fields_text(s, at, &text))
        return false;
    id->code_id = sl_code_id_normalise(s->json->arena, text);
    return id->code_id.data || sl_json_no_memory(s->json);
}

/* Reads one module of the request: its names and ids. In the table, `true` marks the member that must be present; `0` is the offset in
 * the module of what the callback gets: the whole module. */
static bool read_id(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    static const struct sl_field fields[] = {
        {SL_STR("debug_id"), SL_FIELD_CUSTOM, false, 0, read_debug_id},
        {SL_STR("code_id"), SL_FIELD_CUSTOM, false, 0, read_code_id},
        SL_FIELD(TEXT, true, crash_module_id, code_file, "code_file"),
        SL_FIELD(TEXT, false, crash_module_id, debug_file, "debug_file"),
        SL_FIELDS_END,
    };
    return sl_fields_object(s, at, fields, out);
}

bool core_read_ids(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct crash_module_ids *ids = out;
    void *items;
    if (!sl_fields_array(s, at, sizeof *ids->items, read_id, &items, &ids->count))
        return false;
    ids->items = items;
    return true;
}

/* Makes an index of the request's modules by path and by file name; of several with the same name the first counts. False when out of
 * memory. */
static bool index_ids(const struct crash_module_ids *ids, struct sl_map *by_name)
{
    for (size_t i = 0; i < ids->count; i++) {
        const struct sl_str names[] = {ids->items[i].code_file, sl_crash_file_name(ids->items[i].code_file)};
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            bool is_new;
            void **id = names[k].size ? sl_map_find_or_add(by_name, names[k], &is_new) : NULL;
            if (names[k].size && !id)
                return false;
            if (id && is_new)
                *id = &ids->items[i];
        }
    }
    return true;
}

/* Sets the ids of a module to those in the request. If the request has no debug id for it, that is made from the code id, which is the
 * build id of an ELF file. */
static void set_id(struct sl_crash_module *module, const struct crash_module_id *id, bool big_endian)
{
    uint8_t build_id[64];
    size_t size;
    module->code_id = id->code_id;
    module->debug_file = id->debug_file.size ? id->debug_file : module->code_file;
    module->debug_id = id->debug_id;
    module->has_debug_id = id->has_debug_id;
    if (!id->has_debug_id && sl_hex_decode(id->code_id, build_id, sizeof build_id, &size) && size) {
        module->debug_id = sl_debug_id_from_build_id((struct sl_bytes){build_id, size}, big_endian);
        module->has_debug_id = true;
    }
}

/* Gives each module of the dump that has no id the ids of the request's module with the same path or, else, the same file name. False when
 * out of memory. */
static bool add_ids(const struct crash_module_ids *ids, struct sl_minidump *dump, struct sl_arena *arena)
{
    struct sl_map by_name = {.budget = arena->budget};
    bool good = index_ids(ids, &by_name);
    for (size_t i = 0; good && i < dump->crash.module_count; i++) {
        struct sl_crash_module *module = &dump->crash.modules[i];
        const struct crash_module_id *id = sl_map_get(&by_name, module->code_file);
        id = id ? id : sl_map_get(&by_name, sl_crash_file_name(module->code_file));
        if (id && !sl_crash_has_id(module))
            set_id(module, id, dump->big_endian);
    }
    sl_map_free(&by_name);
    return good && sl_minidump_map_modules(dump, arena); /* which module an address belongs to depends on the ids */
}

/* Member of struct crash_kind: adds the ids of modules that the request has. */
static bool complete_core(struct crash_work *work, struct sl_minidump *dump)
{
    return !work->ids.count || add_ids(&work->ids, dump, work->native.arena);
}

/* ---- reading ---- */

/* Adds the vDSO, the kernel's library, from the core to the files sent with the request: no symbol source has it, and on 32-bit x86 threads
 * that wait in system calls are in it. Done once, as the job may run this again. */
static enum sl_code add_vdso(struct crash_work *work, const struct core_result *result, struct sl_error *error)
{
    bool inside = true;
    struct sl_bytes vdso = sl_bytes_slice(work->form.parts[PART_FILE], result->vdso_offset, result->vdso_size, &inside);
    const struct request_file file = {SL_STR("vdso.so"), {(const char *)vdso.data, vdso.size}};
    if (!result->vdso_size || !inside || work->has_vdso)
        return SL_OK;
    enum sl_code code = native_add_file(&work->native, &file, error);
    work->has_vdso = code == SL_OK;
    return code;
}

/* Member of struct crash_kind: runs the converter that reads a core file, then `take`, and adds the vDSO found to the request. */
static enum sl_code convert_core(struct job *job, struct crash_work *work, job_step *take, struct sl_error *error)
{
    const struct core_options options = {.command_line = job->config->core_command_line};
    struct core_result result;
    enum sl_code code =
        crash_convert(job, work, &converter_core, CONVERTER_OPTIONS(options), &result, POOL_WALK, take, error);
    /* the packed dump that `take` has read lacks it, but core_analyse() needs it */
    if (code == SL_OK)
        ((struct dump_work *)work)->dump.has_exception = result.has_exception;
    return code == SL_OK ? add_vdso(work, &result, error) : code;
}

const struct crash_kind crash_core = {
    .job =
        {
            .task = "core_stackwalk",
            .size = sizeof(struct dump_work),
            .open = crash_work_open,
            .receive = crash_receive,
            .takes_file = true,
            .is_allowed = native_is_allowed,
            .read_local = crash_read_local,
            .prepare = crash_prepare,
            .undo = dump_work_undo,
            .run = native_run,
            .reset = native_reset,
            .write = native_write_answer,
            .executor = native_answer_executor,
            .memory = native_answer_memory,
            .finish = crash_finish,
            .release = dump_work_release,
        },
    .name = "core",
    .part = "upload_file_core",
    .missing = "missing core file",
    .rewrites = true,
    .is_core = true,
    .read = dump_work_read,
    .convert = convert_core,
    .complete = complete_core,
    .analyse = core_analyse,
};

static const struct http_route routes[] = {CRASH_POST("/core", &crash_core), {.method = NULL}};

const struct http_family family_core = {.routes = routes, .group = "symbolicate"};
