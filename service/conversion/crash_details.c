/* Makes the additional members of answers that `minidump.details` turns on, as JSON: data that only minidumps have, and the analysis of the
 * crash, which cores have too. */
#include "conversion/crashes.h"
#include "conversion/crash_analysis.h"

/* Writes the annotations that the program and its modules have stored for crash reports; empty members are left out. */
static void write_annotations(struct sl_json_writer *w, const struct sl_minidump *dump)
{
    sl_json_begin_array(w);
    for (size_t i = 0; i < dump->annotation_count; i++) {
        const struct sl_minidump_annotation *annotation = &dump->annotations[i];
        sl_json_begin_object(w);
        sl_json_member_if_set(w, "module", annotation->module);
        sl_json_member_if_set(w, "name", annotation->name);
        sl_json_member_if_set(w, "value", annotation->value);
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* Writes the modules that were unloaded before the crash. */
static void write_unloaded(struct sl_json_writer *w, const struct sl_minidump *dump)
{
    sl_json_begin_array(w);
    for (size_t i = 0; i < dump->unloaded_count; i++) {
        sl_json_begin_object(w);
        sl_json_member_if_set(w, "name", dump->unloaded[i].name);
        sl_json_member_hex(w, "image_addr", dump->unloaded[i].address);
        sl_json_member_u64(w, "image_size", dump->unloaded[i].size);
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* Writes the messages of the section __crash_info of macOS programs. */
static void write_crash_info(struct sl_json_writer *w, const struct sl_minidump *dump)
{
    sl_json_begin_array(w);
    for (size_t i = 0; i < dump->crash_info_count; i++)
        sl_json_put_str(w, dump->crash_info[i]);
    sl_json_end_array(w);
}

static void write_process_id(struct sl_json_writer *w, const struct sl_minidump *dump)
{
    sl_json_put_u64(w, dump->process_id);
}

static void write_create_time(struct sl_json_writer *w, const struct sl_minidump *dump)
{
    sl_json_put_u64(w, dump->create_time);
}

/* Writes the number of threads of a 32-bit program on 64-bit Windows whose 32-bit stacks the dump lacks. */
static void write_wow64_missing(struct sl_json_writer *w, const struct sl_minidump *dump)
{
    sl_json_put_u64(w, dump->wow64_missing);
}

/* Analyses the crash and returns the result as JSON in the arena; an empty text if it found nothing; data NULL when out of memory. */
static struct sl_str analysis_json(const struct sl_minidump *dump, struct sl_arena *arena)
{
    struct sl_minidump_analysis analysis;
    struct sl_error ignored;
    struct sl_buf text = {.budget = arena->budget};
    struct sl_json_writer w = sl_json_writer(&text);
    if (sl_minidump_analyse(dump, arena, &analysis, &ignored) != SL_OK) /* fails only when out of memory */
        return (struct sl_str){NULL, 0};
    if (!analysis.has_instruction && !analysis.flip_count && !analysis.is_stack_overflow)
        return SL_STR("");
    sl_json_begin_object(&w);
    crash_analysis_write(&w, &analysis, 0);
    sl_json_member_boolean(&w, "is_likely_stack_overflow", analysis.is_stack_overflow);
    sl_json_end_object(&w);
    return sl_buf_move_to_arena(&text, arena);
}

bool crash_add_analysis(struct sl_minidump *dump, struct sl_arena *arena)
{
    struct sl_crash *crash = &dump->crash;
    struct sl_str analysis = dump->has_exception ? analysis_json(dump, arena) : SL_STR("");
    if (analysis.size) /* 0: it found nothing */
        crash->extras[crash->extra_count++] = (struct sl_crash_extra){SL_STR("crash_analysis"), analysis};
    return analysis.data != NULL; /* NULL: out of memory */
}

bool crash_details(struct sl_minidump *dump, struct sl_arena *arena)
{
    const struct {
        bool known;
        const char *name;
        void (*write)(struct sl_json_writer *w, const struct sl_minidump *dump);
    } rows[] = {
        {dump->has_process_id, "process_id", write_process_id},
        {dump->has_create_time, "process_create_time", write_create_time},
        {dump->annotation_count, "annotations", write_annotations},
        {dump->crash_info_count, "crash_info", write_crash_info},
        {dump->unloaded_count, "unloaded_modules", write_unloaded},
        {dump->is_wow64, "wow64_missing_stacks", write_wow64_missing},
    };
    struct sl_crash *crash = &dump->crash;
    /* at most one for each row, and one for the analysis of the crash */
    crash->extras = SL_ARENA_ARRAY(arena, struct sl_crash_extra, sizeof rows / sizeof *rows + 1);
    if (!crash->extras)
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].known)
            continue;
        struct sl_buf text = {.budget = arena->budget};
        struct sl_json_writer w = sl_json_writer(&text);
        rows[i].write(&w, dump);
        struct sl_str json = sl_buf_move_to_arena(&text, arena);
        if (!json.data)
            return false;
        crash->extras[crash->extra_count++] = (struct sl_crash_extra){sl_str(rows[i].name), json};
    }
    return crash_add_analysis(dump, arena);
}
