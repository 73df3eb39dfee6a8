/* Converters of ELF core files: to a packed minidump, and to the analysis of the crashing instruction. */
#include "conversion/crashes.h"
#include "elfcore/elfcore.h"
#include "object/archive.h"

/* ---- members that only answers for cores have ---- */

/* Writes the value of the answer's member `process`: id, name and command line of the process. A command line can contain secrets, so it
 * needs the option core.command_line. */
static void write_process(struct sl_json_writer *w, const struct sl_elfcore *core, const struct core_options *options)
{
    sl_json_begin_object(w);
    if (core->dump.has_process_id)
        sl_json_member_u64(w, "pid", core->dump.process_id);
    if (core->name.size)
        sl_json_member_str(w, "name", core->name);
    if (core->command_line.size && options->command_line)
        sl_json_member_str(w, "command_line", core->command_line);
    sl_json_end_object(w);
}

/* Writes the value of the answer's member `packages`: for each module with a package note (.note.package, JSON by the distribution), that
 * note. */
static void write_packages(struct sl_json_writer *w, const struct sl_elfcore *core, const struct core_options *options)
{
    (void)options;
    sl_json_begin_array(w);
    for (size_t i = 0; i < core->package_count; i++) {
        sl_json_begin_object(w);
        sl_json_member_str(w, "code_file", core->packages[i].code_file);
        sl_json_member_hex(w, "image_addr", core->packages[i].address);
        sl_json_put_key_str(w, SL_STR("package"));
        sl_json_put_raw(w, core->packages[i].json);
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* Sets crash->members, the members of the answer that only cores have, as JSON. False when out of memory. */
static bool make_members(const struct sl_elfcore *core, const struct core_options *options, struct sl_crash *crash,
                         struct sl_arena *arena)
{
    const struct {
        bool is_known;
        const char *name;
        void (*write)(struct sl_json_writer *w, const struct sl_elfcore *core, const struct core_options *options);
    } rows[] = {
        {core->dump.has_process_id, "process", write_process},
        {core->package_count, "packages", write_packages},
    };
    crash->members = SL_ARENA_ARRAY(arena, struct sl_crash_extra, sizeof rows / sizeof *rows);
    for (size_t i = 0; crash->members && i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf text = {.budget = arena->budget};
        struct sl_json_writer w = sl_json_writer(&text);
        if (!rows[i].is_known)
            continue;
        rows[i].write(&w, core, options);
        struct sl_str json = sl_buf_move_to_arena(&text, arena);
        if (!json.data)
            return false;
        crash->members[crash->member_count++] = (struct sl_crash_extra){sl_str(rows[i].name), json};
    }
    return crash->members != NULL;
}

/* ---- the converter ---- */

/* Implements converter_core: writes a packed minidump (minidump/pack.h), the form in which stack walks read cores and minidumps. The result
 * says where in the file the image of the vDSO lies (size 0 if the core has none). */
static enum sl_code read_core(struct conversion *conversion, const struct converter_call *call, void *result,
                              struct sl_error *error)
{
    struct core_result *found = result;
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    /* stacks that a client such as Crashpad has walked and stored: a core has none */
    const struct sl_minidump_client client = {.count = 0};
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_buf out = {.budget = &conversion->budget};
    struct sl_elfcore core;
    enum sl_code code = sl_elfcore_read(file, &arena, &core, error);
    if (code == SL_OK) {
        bool good = make_members(&core, converter_options(call), &core.dump.crash, &arena) &&
                    sl_minidump_pack(&core.dump, &client, &arena, &out);
        found->vdso_offset = core.vdso.size ? (uint64_t)(core.vdso.data - file.data) : 0;
        found->vdso_size = core.vdso.size;
        found->has_exception = core.dump.has_exception;
        code = good ? conversion_write(conversion, call, &out, error) : sl_budget_fail(&conversion->budget, error);
    }
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return code;
}

/* True if the result, which came from a worker, has no invalid value (converter.check_result). Any numbers are valid: the caller checks
 * that the vDSO lies in the file. */
static bool check_result(const void *result)
{
    return converter_bool_is_valid(&((const struct core_result *)result)->has_exception);
}

const struct converter converter_core = {"core", sizeof(struct core_options), sizeof(struct core_result), read_core,
                                         check_result};

/* ---- analysis of the crash ---- */

/* True if the file has the debug id and code id of the module. A source may have stored a wrong file under the module's name. */
static bool has_ids(const struct converter_call *call, const struct sl_object *file)
{
    const struct core_analysis_options *options = converter_options(call);
    struct sl_bytes code_id = converter_input_bytes(call, INPUT_CODE_ID);
    const struct sl_object_wanted wanted = {options->has_debug_id ? &options->debug_id : NULL,
                                            {(const char *)code_id.data, code_id.size}};
    return sl_object_matches(sl_object_info(file), &wanted);
}

/* Adds the code in the file of the module (INPUT_CODE) to the memory of the core, which usually lacks it. `*file` is that file, opened; the
 * caller closes it after the analysis. No file, one that is no object file, or one with other ids is no error: SL_OK, and the analysis does
 * without the instruction. */
static enum sl_code add_code(struct conversion *conversion, const struct converter_call *call, struct sl_arena *arena,
                             struct sl_elfcore *core, struct sl_object **file, struct core_analysis_result *result,
                             struct sl_error *error)
{
    const struct core_analysis_options *options = converter_options(call);
    struct sl_bytes bytes = converter_input_bytes(call, INPUT_CODE);
    enum sl_code code = bytes.data ? conversion_open(conversion, bytes, &options->limits, file, error) : SL_NOT_FOUND;
    if (code == SL_BUSY || code == SL_CANCELLED)
        return code;
    if (code != SL_OK || !has_ids(call, *file))
        return SL_OK;
    result->has_used_code = true;
    return sl_elfcore_add_file(core, options->module, *file, arena) ? SL_OK : sl_budget_fail(arena->budget, error);
}

/* Writes a packed struct sl_crash with nothing but the analysis of the crash in `extras`: the output of converter_core has the rest of the
 * core. */
static enum sl_code write_analysis(struct conversion *conversion, const struct converter_call *call,
                                   struct sl_elfcore *core, struct sl_arena *arena, struct sl_error *error)
{
    struct sl_buf out = {.budget = &conversion->budget};
    struct sl_packer packer = {.out = &out};
    struct sl_crash_extra extra;
    struct sl_crash only = {.extras = &extra};
    core->dump.crash.extras = &extra; /* room for the one that crash_add_analysis() adds */
    core->dump.crash.extra_count = 0;
    bool good = crash_add_analysis(&core->dump, arena);
    only.extra_count = core->dump.crash.extra_count;
    if (good)
        sl_crash_pack(&only, &packer);
    enum sl_code code = good ? conversion_write(conversion, call, &out, error) : sl_budget_fail(arena->budget, error);
    sl_packer_free(&packer);
    sl_buf_free(&out);
    return code;
}

/* Implements converter_core_analysis. Reads the core again, after converter_core, since converters keep nothing between calls. */
static enum sl_code analyse_core(struct conversion *conversion, const struct converter_call *call, void *result,
                                 struct sl_error *error)
{
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_object *file = NULL;
    struct sl_elfcore core;
    enum sl_code code = sl_elfcore_read(converter_input_bytes(call, INPUT_FILE), &arena, &core, error);
    if (code == SL_OK)
        code = add_code(conversion, call, &arena, &core, &file, result, error);
    if (code == SL_OK)
        code = write_analysis(conversion, call, &core, &arena, error);
    sl_object_close(file);
    sl_arena_free(&arena);
    return code;
}

/* True if the result, which came from a worker, has no invalid value (converter.check_result). */
static bool check_analysis_result(const void *result)
{
    return converter_bool_is_valid(&((const struct core_analysis_result *)result)->has_used_code);
}

const struct converter converter_core_analysis = {"core_analysis", sizeof(struct core_analysis_options),
                                                  sizeof(struct core_analysis_result), analyse_core,
                                                  check_analysis_result};
