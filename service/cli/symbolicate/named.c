/* `symloom symbolicate` of profiles and of reports of samples: they are written back with names. */
#include "api/named_file.h"

#include "apple/samples.h"
#include "cli/by_id/by_id.h"
#include "cli/symbolicate/names.h"
#include "cli/symbolicate/symbolicate.h"

struct named_run {
    const struct options *o;
    struct sl_arena arena;
    struct missing_report missing;
    struct named_file file;
    struct names_wanted wanted;
};

static int named_failed(enum sl_code code, const struct sl_error *error)
{
    return report(code == SL_MALFORMED || code == SL_UNSUPPORTED ? STATUS_NOTHING : 1, error->message, NULL);
}

/* ---- the look-up ---- */

static void named_put_module(void *arg, size_t index, struct sl_json_writer *w)
{
    const struct named_file *file = &((const struct named_run *)arg)->file;
    struct named_module module;
    file->format->module(file, index, &module);
    sl_json_begin_object(w);
    sl_json_member_str(w, "type", sl_str(module.type));
    names_put_text(w, "debug_id", module.debug_id);
    names_put_text(w, "code_id", module.code_id);
    names_put_text(w, "debug_file", module.debug_file);
    names_put_text(w, "code_file", module.code_file);
    sl_json_end_object(w);
}

static void named_address(void *arg, size_t index, uint32_t *module, uint64_t *relative)
{
    const struct named_file *file = &((const struct named_run *)arg)->file;
    file->format->address(file, index, module, relative);
}

static bool named_take(void *arg, size_t index, const struct answer_frame *frames, size_t count)
{
    struct named_file *file = &((struct named_run *)arg)->file;
    struct sl_opt_u64 symbol = frames[count - 1].symbol_address;
    struct named_call *items = SL_ARENA_ARRAY(file->arena, struct named_call, count);
    for (size_t i = 0; items && i < count; i++)
        items[i] = (struct named_call){.function = frames[i].function.size ? frames[i].function : frames[i].symbol,
                                       .path = frames[i].abs_path,
                                       .filename = frames[i].filename,
                                       .line = frames[i].line.value};
    const struct named_calls calls = {items, count, symbol.value, symbol.set};
    return items && file->format->take(file, index, &calls);
}

static bool find_local_files(const struct named_run *run, struct local_files *local)
{
    const struct named_file *file = &run->file;
    struct named_module module;
    for (size_t i = 0; i < file->module_count && option_given(run->o, "local-debug-info"); i++) {
        file->format->module(file, i, &module);
        for (size_t k = 0; k < sizeof module.paths / sizeof *module.paths; k++)
            if (!local_files_add(local, module.paths[k]))
                return false;
    }
    return true;
}

static int named_look_up(struct named_run *run, const struct sentry_project *project)
{
    struct local_files local = {.arena = &run->arena};
    run->wanted = (struct names_wanted){.o = run->o,
                                        .arg = run,
                                        .module_count = run->file.module_count,
                                        .address_count = run->file.address_count,
                                        .missing = &run->missing,
                                        .put_module = named_put_module,
                                        .address = named_address,
                                        .take = named_take};
    return find_local_files(run, &local) ? names_symbolicate(&run->wanted, project, &local) : report_no_memory();
}

/* ---- the command ---- */

static int named_write(const struct named_run *run)
{
    struct sl_buf out = {0}, indented = {0};
    struct sl_error error;
    enum sl_code code = run->file.format->write(&run->file, &out, &error);
    bool indent = code == SL_OK && option_given(run->o, "indent") && out.size && out.data[0] == '{';
    if (indent)
        put_indented(sl_buf_view(&out), &indented);
    int status = code != SL_OK     ? named_failed(code, &error)
                 : indented.failed ? report_no_memory()
                                   : symbolicate_write(run->o, sl_buf_view(indent ? &indented : &out));
    sl_buf_free(&out);
    sl_buf_free(&indented);
    return status;
}

/* `code` is what reading the file came to. */
static int named_finish(struct named_run *run, const struct sentry_project *project, enum sl_code code,
                        const struct sl_error *error)
{
    missing_init(&run->missing, &missing_symbols);
    int status = code == SL_OK ? named_look_up(run, project) : named_failed(code, error);
    if (!status)
        status = named_write(run);
    if (!status)
        missing_tell(&run->missing, run->o);
    status = missing_status(&run->missing, run->o, status);
    missing_free(&run->missing);
    named_file_end(&run->file);
    sl_arena_free(&run->arena);
    return status;
}

int symbolicate_profile(const struct options *o, const struct sentry_project *project, struct sl_str text)
{
    struct named_run run = {.o = o};
    struct sl_error error;
    const char *format = symbolicate_format(o, "json");
    if (strcmp(format, "json") != 0)
        return options_wrong("symbolicate", "--format %s is not available for profiles (only json)", format);
    enum sl_code code = named_profile_read(text, &run.arena, &run.file, &error);
    return named_finish(&run, project, code, &error);
}

int symbolicate_report(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes)
{
    struct named_run run = {.o = o};
    struct sl_error error;
    if (!sl_samples_is((struct sl_str){(const char *)bytes.data, bytes.size}) ||
        strcmp(symbolicate_format(o, "text"), "text") != 0)
        return symbolicate_crash(o, project, CRASH_FILE_APPLE, bytes);
    enum sl_code code = named_samples_read(bytes, &run.arena, &run.file, &error);
    return named_finish(&run, project, code, &error);
}
