/* `symloom symbolicate` of reports of samples: they are written back with names. */
#include "apple/samples.h"

#include <inttypes.h>

#include "base/map.h"
#include "cli/by_id/by_id.h"
#include "cli/symbolicate/names.h"
#include "cli/symbolicate/symbolicate.h"

struct samples_run {
    const struct options *o;
    struct sl_arena arena;
    struct missing_report missing;
    struct sl_samples samples;
    struct sl_samples_name *names; /* of each row */
    uint32_t *modules;             /* of each image: of those that have its id the first that rows are in, as below */
    const struct sl_crash_module **asked;
    uint32_t *rows; /* those whose names are asked for */
    struct names_wanted wanted;
    enum sl_code code;
    struct sl_error error;
};

static int samples_no_memory(void)
{
    return report(1, "out of memory", NULL);
}

/* ---- what is asked ---- */

static void samples_put_module(void *arg, size_t index, struct json_writer *w)
{
    const struct samples_run *run = arg;
    const struct sl_crash_module *module = run->asked[index];
    char id[SL_DEBUG_ID_TEXT];
    sl_debug_id_format(&module->debug_id, id);
    json_object_begin(w);
    json_key(w, "type");
    json_str(w, SL_STR("macho"));
    names_put_text(w, "debug_id", sl_str(id));
    names_put_text(w, "code_id", module->code_id);
    names_put_text(w, "debug_file", module->debug_file);
    names_put_text(w, "code_file", module->code_file);
    json_object_end(w);
}

static uint64_t relative_address(const struct samples_run *run, const struct sl_samples_row *row)
{
    return row->address - run->samples.images[row->image].begin;
}

static void samples_address(void *arg, size_t index, uint32_t *module, uint64_t *relative)
{
    const struct samples_run *run = arg;
    const struct sl_samples_row *row = &run->samples.rows[run->rows[index]];
    uint64_t address = relative_address(run, row);
    *module = run->modules[row->image];
    *relative = address - (!row->is_exact && address);
}

/* Each id once: processes share most of their images. */
static bool choose_modules(struct samples_run *run)
{
    struct sl_samples *samples = &run->samples;
    struct sl_map by_id = {0};
    bool good = true;
    for (size_t i = 0; i < samples->row_count && good; i++) {
        const struct sl_samples_row *row = &samples->rows[i];
        if (row->image == SL_SAMPLES_NONE)
            continue;
        const struct sl_crash_module *module = &samples->images[row->image].module;
        bool made = false;
        void **slot = sl_map_slot(&by_id, module->code_id, &made);
        if (!(good = slot != NULL))
            break;
        if (made) {
            run->asked[run->wanted.module_count++] = module;
            *slot = &run->asked[run->wanted.module_count - 1];
        }
        run->modules[row->image] = (uint32_t)((const struct sl_crash_module **)*slot - run->asked);
        run->rows[run->wanted.address_count++] = (uint32_t)i;
    }
    sl_map_free(&by_id);
    return good;
}

/* ---- what is answered ---- */

static struct sl_str call_name(const struct answer_frame *call)
{
    return call->function.size ? call->function : call->symbol;
}

/* "inner (inlined into outer)" */
static struct sl_str name_of_calls(struct samples_run *run, const struct answer_frame *calls, size_t count)
{
    struct sl_buf text = {0};
    sl_buf_str(&text, call_name(&calls[0]));
    for (size_t i = 1; i < count; i++) {
        sl_buf_cstr(&text, i == 1 ? " (inlined into " : ", ");
        sl_buf_str(&text, call_name(&calls[i]));
    }
    if (count > 1)
        sl_buf_u8(&text, ')');
    return sl_buf_keep(&text, &run->arena);
}

static bool samples_take(void *arg, size_t index, const struct answer_frame *calls, size_t count)
{
    struct samples_run *run = arg;
    const struct sl_samples_row *row = &run->samples.rows[run->rows[index]];
    struct sl_samples_name *name = &run->names[run->rows[index]];
    const struct answer_number symbol = calls[count - 1].symbol_address;
    uint64_t address = relative_address(run, row);
    struct sl_str file = calls[0].filename.size ? calls[0].filename : calls[0].abs_path;
    name->function = name_of_calls(run, calls, count);
    name->line = calls[0].line.value;
    name->has_offset = count == 1 && symbol.set && symbol.value <= address;
    name->offset = name->has_offset ? address - symbol.value : 0;
    char *copy = file.size ? sl_arena_strndup(&run->arena, file.data, file.size) : NULL;
    name->file = (struct sl_str){copy, copy ? file.size : 0};
    return name->function.data && (copy || !file.size);
}

/* ---- the work ---- */

static bool samples_find_local_files(const struct samples_run *run, struct local_files *local)
{
    for (size_t i = 0; i < run->wanted.module_count && option_given(run->o, "local-debug-info"); i++)
        if (!local_files_add(local, run->asked[i]->code_file))
            return false;
    return true;
}

static int samples_symbolicate(struct samples_run *run, const struct sentry_project *project)
{
    struct local_files local = {.arena = &run->arena};
    return samples_find_local_files(run, &local) ? names_symbolicate(&run->wanted, project, &local)
                                                 : samples_no_memory();
}

static int samples_write(struct samples_run *run)
{
    struct sl_buf out = {0};
    int status = sl_samples_write(&run->samples, run->names, &out) ? symbolicate_write(run->o, sl_buf_view(&out))
                                                                   : samples_no_memory();
    sl_buf_free(&out);
    return status;
}

static int samples_read(struct samples_run *run, struct sl_bytes bytes)
{
    struct sl_samples *samples = &run->samples;
    struct sl_buf mended = {0};
    sl_buf_utf8(&mended, (struct sl_str){(const char *)bytes.data, bytes.size});
    struct sl_str text = sl_buf_keep(&mended, &run->arena);
    if (!text.data)
        return samples_no_memory();
    run->code = sl_samples_read(text, &run->arena, samples, &run->error);
    if (run->code != SL_OK)
        return report(run->code == SL_MALFORMED ? STATUS_NOTHING : 1, run->error.message, NULL);
    run->names = SL_ARENA_ARRAY(&run->arena, struct sl_samples_name, samples->row_count + 1);
    run->modules = SL_ARENA_ARRAY(&run->arena, uint32_t, samples->image_count + 1);
    run->asked = SL_ARENA_ARRAY(&run->arena, const struct sl_crash_module *, samples->image_count + 1);
    run->rows = SL_ARENA_ARRAY(&run->arena, uint32_t, samples->row_count + 1);
    run->wanted = (struct names_wanted){.o = run->o,
                                        .arg = run,
                                        .missing = &run->missing,
                                        .put_module = samples_put_module,
                                        .address = samples_address,
                                        .take = samples_take};
    bool good = run->names && run->modules && run->asked && run->rows && choose_modules(run);
    return good ? 0 : samples_no_memory();
}

static int write_with_names(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes)
{
    struct samples_run run = {.o = o};
    missing_init(&run.missing, &missing_symbols);
    int status = samples_read(&run, bytes);
    if (!status)
        status = samples_symbolicate(&run, project);
    if (!status)
        status = samples_write(&run);
    if (!status)
        missing_tell(&run.missing, o);
    status = missing_status(&run.missing, o, status);
    missing_free(&run.missing);
    sl_arena_free(&run.arena);
    return status;
}

int symbolicate_report(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes)
{
    bool is_samples = sl_samples_is((struct sl_str){(const char *)bytes.data, bytes.size});
    if (is_samples && strcmp(symbolicate_format(o, "text"), "text") == 0)
        return write_with_names(o, project, bytes);
    return symbolicate_crash(o, project, CRASH_FILE_APPLE, bytes);
}
