/* POST /core: starts a job that reads an ELF core file, walks its stacks and symbolicates it, as POST /minidump does. */
#include "api/crash/dump.h"
#include "config/config.h"
#include "elfcore/elfcore.h"

/* ---- members that only answers for cores have ---- */

static void write_process(struct sl_json_writer *w, const struct sl_elfcore *core, const struct config *config)
{
    sl_json_begin_object(w);
    if (core->dump.has_process_id)
        sl_json_member_u64(w, "pid", core->dump.process_id);
    if (core->name.size)
        sl_json_member_str(w, "name", core->name);
    if (core->command_line.size && config->core_command_line)
        sl_json_member_str(w, "command_line", core->command_line);
    sl_json_end_object(w);
}

/* Writes what packagers noted in each module. */
static void write_packages(struct sl_json_writer *w, const struct sl_elfcore *core, const struct config *config)
{
    (void)config;
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
static bool make_members(const struct sl_elfcore *core, const struct config *config, struct sl_crash *crash,
                         struct sl_arena *arena)
{
    const struct {
        bool is_known;
        const char *name;
        void (*write)(struct sl_json_writer *w, const struct sl_elfcore *core, const struct config *config);
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
        rows[i].write(&w, core, config);
        struct sl_str json = sl_buf_move_to_arena(&text, arena);
        if (!json.data)
            return false;
        crash->members[crash->member_count++] = (struct sl_crash_extra){sl_str(rows[i].name), json};
    }
    return crash->members != NULL;
}

static enum sl_code parse_core(const struct crash_work *work, const struct config *config, struct sl_minidump *dump,
                               struct sl_error *error)
{
    struct sl_arena *arena = work->native.arena;
    struct sl_elfcore core;
    enum sl_code code = sl_elfcore_read(work->form.parts[PART_FILE], arena, &core, error);
    if (code != SL_OK)
        return code;
    *dump = core.dump;
    return make_members(&core, config, &dump->crash, arena) ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
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
    .parse = parse_core,
};

static const struct http_route routes[] = {CRASH_POST("/core", &crash_core), {.method = NULL}};

const struct http_family family_core = {.routes = routes, .group = "symbolicate"};
