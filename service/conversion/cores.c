/* Reads core files. */
#include "conversion/crashes.h"
#include "elfcore/elfcore.h"

/* ---- members that only answers for cores have ---- */

/* Writes the member `process` of the answer: an object with what the core says of its process. The command line can contain secrets, so it
 * needs an option. */
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

/* Writes what packagers noted in each module. */
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

/* Makes the members of the answer. False when out of memory. */
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

/* The converter: writes what a core contains as a packed minidump, the form in which the stack walk reads both. The result says where in
 * the file the code of the vDSO lies (size 0 if the core has none). */
static enum sl_code read_core(struct conversion *conversion, const struct converter_call *call, void *result,
                              struct sl_error *error)
{
    struct core_result *found = result;
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    const struct sl_minidump_client client = {.count =
                                                  0}; /* a core has no sections of Breakpad's or Crashpad's clients */
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_buf out = {.budget = &conversion->budget};
    struct sl_elfcore core;
    enum sl_code code = sl_elfcore_read(file, &arena, &core, error);
    if (code == SL_OK) {
        bool good = make_members(&core, converter_options(call), &core.dump.crash, &arena) &&
                    sl_minidump_pack(&core.dump, &client, &arena, &out);
        found->vdso_offset = core.vdso.size ? (uint64_t)(core.vdso.data - file.data) : 0;
        found->vdso_size = core.vdso.size;
        code = good ? conversion_write(conversion, call, &out, error) : sl_budget_fail(&conversion->budget, error);
    }
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return code;
}

/* Any numbers are valid; the caller checks that the library lies in the file. */
static bool check_result(const void *result)
{
    (void)result;
    return true;
}

const struct converter converter_core = {"core", sizeof(struct core_options), sizeof(struct core_result), read_core,
                                         check_result};
