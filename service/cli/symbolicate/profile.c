/* `symloom symbolicate` of profiles of the Firefox Profiler: they are written back with names. */
#include "cli/symbolicate/symbolicate.h"

#include "base/map.h"
#include "cli/by_id/by_id.h"
#include "cli/symbolicate/names.h"
#include "profile/profile.h"

struct profile_run {
    const struct options *o;
    struct sl_arena arena;
    struct missing_report missing;
    struct sl_profile profile;
    struct sl_profile_name *names; /* of each address */
    struct sl_map texts;           /* names and files, each once, in the arena */
    struct names_wanted wanted;
    enum sl_code code;
    struct sl_error error;
};

static int profile_no_memory(void)
{
    return report(1, "out of memory", NULL);
}

/* ---- what is asked ---- */

static const char *lib_type(const struct sl_profile *profile, const struct sl_profile_lib *lib)
{
    if (sl_str_ends(lib->debug_name, SL_STR(".pdb")) || sl_str_equal(profile->platform, SL_STR("Windows")))
        return "pe";
    return sl_str_equal(profile->platform, SL_STR("Macintosh")) ? "macho" : "elf";
}

static void profile_put_lib(void *arg, size_t index, struct json_writer *w)
{
    const struct profile_run *run = arg;
    const struct sl_profile_lib *lib = &run->profile.libs[index];
    json_object_begin(w);
    json_key(w, "type");
    json_str(w, sl_str(lib_type(&run->profile, lib)));
    names_put_text(w, "debug_id", lib->debug_id);
    names_put_text(w, "code_id", lib->code_id);
    names_put_text(w, "debug_file", lib->debug_name.size ? lib->debug_name : lib->debug_path);
    names_put_text(w, "code_file", lib->path.size ? lib->path : lib->name);
    json_object_end(w);
}

static void profile_address(void *arg, size_t index, uint32_t *module, uint64_t *relative)
{
    const struct sl_profile_address *address = &((const struct profile_run *)arg)->profile.addresses[index];
    *module = address->lib;
    *relative = address->address;
}

/* ---- what is answered ---- */

/* A text that stays; data NULL: out of memory. */
static struct sl_str kept_text(struct profile_run *run, struct sl_str text)
{
    const struct sl_str *known = sl_map_get(&run->texts, text);
    if (known)
        return *known;
    struct sl_str *kept = SL_ARENA_NEW(&run->arena, struct sl_str);
    char *copy = kept ? sl_arena_strndup(&run->arena, text.data, text.size) : NULL;
    if (!copy)
        return (struct sl_str){NULL, 0};
    *kept = (struct sl_str){copy, text.size};
    void **slot = sl_map_slot(&run->texts, *kept, NULL);
    if (!slot)
        return (struct sl_str){NULL, 0};
    *slot = kept;
    return *kept;
}

static bool take_call(struct profile_run *run, const struct answer_frame *frame, struct sl_profile_call *call)
{
    struct sl_str name = frame->function.size ? frame->function : frame->symbol;
    *call = (struct sl_profile_call){.function = kept_text(run, name), .line = (uint32_t)frame->line.value};
    if (frame->abs_path.size)
        call->file = kept_text(run, frame->abs_path);
    return call->function.data && (call->file.data || !frame->abs_path.size);
}

static bool profile_take(void *arg, size_t index, const struct answer_frame *frames, size_t count)
{
    struct profile_run *run = arg;
    struct answer_number symbol = frames[count - 1].symbol_address;
    struct sl_profile_call *calls = SL_ARENA_ARRAY(&run->arena, struct sl_profile_call, count);
    for (size_t i = 0; calls && i < count; i++)
        if (!take_call(run, &frames[i], &calls[i]))
            return false;
    run->names[index] =
        (struct sl_profile_name){symbol.set ? symbol.value : run->profile.addresses[index].address, calls, count};
    return calls != NULL;
}

/* ---- the work ---- */

static bool find_local_files(const struct profile_run *run, struct local_files *local)
{
    for (size_t i = 0; i < run->profile.lib_count && option_given(run->o, "local-debug-info"); i++)
        if (!local_files_add(local, run->profile.libs[i].path) ||
            !local_files_add(local, run->profile.libs[i].debug_path))
            return false;
    return true;
}

static int profile_symbolicate(struct profile_run *run, const struct sentry_project *project)
{
    struct local_files local = {.arena = &run->arena};
    return find_local_files(run, &local) ? names_symbolicate(&run->wanted, project, &local) : profile_no_memory();
}

/* ---- the command ---- */

static int profile_failed(const struct profile_run *run)
{
    return report(run->code == SL_MALFORMED || run->code == SL_UNSUPPORTED ? STATUS_NOTHING : 1, run->error.message,
                  NULL);
}

static int profile_write(struct profile_run *run)
{
    struct sl_buf out = {0};
    run->code = sl_profile_write(&run->profile, run->names, &out, &run->error);
    struct sl_buf indented = {0};
    bool indent = run->code == SL_OK && option_given(run->o, "indent");
    if (indent)
        put_indented(sl_buf_view(&out), &indented);
    int status = run->code != SL_OK ? profile_failed(run)
                 : indented.failed  ? profile_no_memory()
                                    : symbolicate_write(run->o, sl_buf_view(indent ? &indented : &out));
    sl_buf_free(&out);
    sl_buf_free(&indented);
    return status;
}

static int profile_read(struct profile_run *run, struct sl_str text)
{
    struct sl_profile *profile = &run->profile;
    run->code = sl_profile_read(text, &run->arena, profile, &run->error);
    if (run->code != SL_OK)
        return profile_failed(run);
    run->names = SL_ARENA_ARRAY(&run->arena, struct sl_profile_name, profile->address_count + 1);
    run->wanted = (struct names_wanted){.o = run->o,
                                        .arg = run,
                                        .module_count = profile->lib_count,
                                        .address_count = profile->address_count,
                                        .missing = &run->missing,
                                        .put_module = profile_put_lib,
                                        .address = profile_address,
                                        .take = profile_take};
    return run->names ? 0 : profile_no_memory();
}

int symbolicate_profile(const struct options *o, const struct sentry_project *project, struct sl_str text)
{
    struct profile_run run = {.o = o};
    const char *format = symbolicate_format(o, "json");
    if (strcmp(format, "json") != 0)
        return options_wrong("symbolicate", "--format %s is not available for profiles (only json)", format);
    missing_init(&run.missing, &missing_symbols);
    int status = profile_read(&run, text);
    if (!status)
        status = profile_symbolicate(&run, project);
    if (!status)
        status = profile_write(&run);
    if (!status)
        missing_tell(&run.missing, o);
    status = missing_status(&run.missing, o, status);
    missing_free(&run.missing);
    sl_map_free(&run.texts);
    sl_arena_free(&run.arena);
    return status;
}
