/* Converts the call trees of a sampling report to threads of a crash: one for each path from a thread's first call to a call in which
 * samples were taken. */
#include "apple/samples_impl.h"

#include <stdlib.h>

#include "base/buf.h"

struct sampled_path {
    uint32_t row;    /* index of the innermost call; its callers are the rest of the path */
    uint32_t thread; /* index in the report */
    uint64_t count;  /* number of samples with exactly this path */
};

struct samples_filler {
    const struct sl_samples *samples;
    const struct sl_apple_options *options;
    struct sl_arena *arena;
    struct apple_budget *budget;
    struct sl_crash *crash;
    struct sl_arena_array paths, threads, modules;
    uint32_t process; /* index of the process whose stacks are converted */
    bool no_memory;   /* or the budget is used up */
};

/* Charges `cost` bytes to the budget; false if that is used up. */
static bool charge_budget(struct samples_filler *f, uint64_t cost)
{
    f->budget->used_up |= cost > f->budget->left;
    f->no_memory |= cost > f->budget->left;
    f->budget->left -= f->no_memory ? 0 : cost;
    return !f->no_memory;
}

/* qsort() comparison: orders paths by thread, then by number of samples, largest first, then as they are in the report. */
static int path_by_count(const void *left, const void *right)
{
    const struct sampled_path *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Finds the paths of the process: each ends at a row that has more samples than its callees together, as the other samples were taken in
 * that call itself. Lack of memory or budget is recorded. */
static void find_paths(struct samples_filler *f)
{
    const struct sl_samples *samples = f->samples;
    for (size_t i = 0; i < samples->row_count && !f->no_memory; i++) {
        const struct sl_samples_row *row = &samples->rows[i];
        if (row->thread == SL_SAMPLES_NONE || samples->threads[row->thread].process != f->process ||
            row->children >= row->count)
            continue;
        struct sampled_path *path = apple_add(&f->paths, f->budget, COST_PER_LABEL); /* as small as a label */
        if (path)
            *path = (struct sampled_path){(uint32_t)i, row->thread, row->count - row->children};
        f->no_memory |= !path;
    }
}

/* Makes a crash frame of a row. The address of the innermost frame is exact: it is where the sample was taken. Names of the report are used
 * only with the option names_from_report. */
static void fill_frame(const struct samples_filler *f, const struct sl_samples_row *row, bool is_innermost,
                       struct sl_crash_frame *frame)
{
    uint64_t offset = 0;
    struct sl_str digits = row->offset;
    *frame = (struct sl_crash_frame){.address = row->address, .package = row->image_name};
    frame->is_exact = is_innermost || row->is_exact;
    if (!f->options->names_from_report)
        return;
    frame->function = row->function;
    frame->filename = row->filename;
    frame->line = row->source_line;
    if (row->function.data && apple_take_number(&digits, &offset) == APPLE_NUMBER)
        sl_crash_set_symbol(frame, offset);
}

/* Returns the name of the thread for a path, like "com.apple.main-thread (12 of 49 samples)": the name in the report and the samples. */
static struct sl_str path_name(struct samples_filler *f, const struct sampled_path *path)
{
    struct sl_buf text = {.budget = f->arena->budget};
    const struct sl_samples_thread *thread = &f->samples->threads[path->thread];
    if (thread->name.size)
        sl_buf_printf(&text, SL_STR_FMT " (", SL_STR_ARG(thread->name));
    sl_buf_printf(&text, "%llu of %llu samples%s", (unsigned long long)path->count, (unsigned long long)thread->count,
                  thread->name.size ? ")" : "");
    struct sl_str name = sl_buf_move_to_arena(&text, f->arena);
    f->no_memory |= !name.data;
    return name;
}

/* Adds a path as a thread, innermost frame first. Rows without an address, like "<Kernel mode>", are left out. Lack of memory or budget is
 * recorded. */
static void add_sampled_path(struct samples_filler *f, const struct sampled_path *path)
{
    const struct sl_samples *samples = f->samples;
    const struct sl_samples_thread *thread = &samples->threads[path->thread];
    uint64_t count = 0;
    for (uint32_t at = path->row; at != SL_SAMPLES_NONE; at = samples->rows[at].caller)
        count += samples->rows[at].has_address;
    /* charges the frame's memory in addition: paths repeat the frames that they share */
    if (!charge_budget(f, count * (COST_PER_FRAME + sizeof(struct sl_crash_frame)) + thread->name.size))
        return;
    struct sl_crash_thread *added = apple_add(&f->threads, f->budget, COST_PER_THREAD);
    /* + 1: not empty even if no row has an address */
    struct sl_crash_frame *frames = SL_ARENA_ARRAY(f->arena, struct sl_crash_frame, count + 1);
    if (!added || !frames) {
        f->no_memory = true;
        return;
    }
    *added = (struct sl_crash_thread){.id = thread->id,
                                      .has_id = thread->has_id,
                                      .requesting = SL_REQUESTING_THREAD_NO,
                                      .name = path_name(f, path),
                                      .frames = frames};
    for (uint32_t at = path->row; at != SL_SAMPLES_NONE; at = samples->rows[at].caller)
        if (samples->rows[at].has_address)
            fill_frame(f, &samples->rows[at], at == path->row, &frames[added->frame_count++]);
}

/* Adds the images of the process whose stacks are converted. Lack of memory or budget is recorded. */
static void add_modules(struct samples_filler *f)
{
    const struct sl_samples_process *process = &f->samples->processes[f->process];
    for (size_t i = 0; i < process->image_count && !f->no_memory; i++) {
        struct sl_crash_module *added = apple_add(&f->modules, f->budget, COST_PER_IMAGE);
        if (added)
            *added = f->samples->images[process->first_image + i].module;
        f->no_memory |= !added;
    }
}

/* Sets reason, details, time and system of the crash. The reason is the event with its duration, else the title of the report, else
 * "samples"; the details say which of several processes is shown. Lack of memory is recorded. */
static void fill_head(struct samples_filler *f, const struct apple_header *header)
{
    const struct sl_samples *samples = f->samples;
    struct sl_crash *crash = f->crash;
    struct sl_buf reason = {.budget = f->arena->budget}, details = {.budget = f->arena->budget};
    sl_buf_str(&reason, samples->event.size   ? samples->event
                        : samples->title.size ? samples->title
                                              : SL_STR("samples"));
    if (samples->event.size && samples->duration.size)
        sl_buf_printf(&reason, ", " SL_STR_FMT, SL_STR_ARG(samples->duration));
    crash->reason = sl_buf_move_to_arena(&reason, f->arena);
    f->no_memory |= !crash->reason.data;
    if (samples->process_count > 1) {
        sl_buf_printf(&details, "These are the stacks of " SL_STR_FMT ", one of %zu processes of the report.",
                      SL_STR_ARG(samples->processes[f->process].name), samples->process_count);
        crash->details = sl_buf_move_to_arena(&details, f->arena);
        f->no_memory |= !crash->details.data;
    }
    crash->has_timestamp =
        apple_time(samples->time, &crash->timestamp) || apple_time(header->timestamp, &crash->timestamp);
    crash->system.device_model = samples->hardware;
    crash->system.arch = apple_arch(samples->architecture);
    apple_os(samples->os, true, &crash->system);
    const struct sl_str build = crash->system.os_build, word = SL_STR("Build ");
    if (sl_str_starts(build, word)) /* spindump writes "(Build 23A344)" */
        crash->system.os_build = apple_skip(build, word.size);
}

/* Returns the process that the report is about, else the first one with a thread; SL_SAMPLES_NONE if there is none. */
static uint32_t wanted_process(const struct sl_samples *samples)
{
    for (size_t i = 0; i < samples->thread_count && samples->target == SL_SAMPLES_NONE; i++)
        if (samples->threads[i].process != SL_SAMPLES_NONE)
            return samples->threads[i].process;
    return samples->target;
}

enum sl_code apple_read_samples(struct sl_str text, const struct apple_header *header,
                                const struct sl_apple_options *options, struct sl_arena *arena,
                                struct apple_budget *budget, struct sl_crash *crash, struct sl_error *error)
{
    struct sl_samples samples;
    struct samples_filler f = {.samples = &samples,
                               .options = options,
                               .arena = arena,
                               .budget = budget,
                               .crash = crash,
                               .paths = {.arena = arena, .item = sizeof(struct sampled_path)},
                               .threads = {.arena = arena, .item = sizeof(struct sl_crash_thread)},
                               .modules = {.arena = arena, .item = sizeof(struct sl_crash_module)}};
    enum sl_code code = sl_samples_read(text, arena, &samples, error);
    if (code != SL_OK)
        return code;
    f.process = wanted_process(&samples);
    if (f.process == SL_SAMPLES_NONE)
        return sl_fail(error, SL_MALFORMED, "the sampling report has no process with threads");
    find_paths(&f);
    size_t count = f.paths.count;
    struct sampled_path *paths = sl_arena_array_finish(&f.paths);
    f.no_memory |= !paths;
    if (paths && count)
        qsort(paths, count, sizeof *paths, path_by_count);
    for (size_t i = 0; i < count && !f.no_memory; i++)
        add_sampled_path(&f, &paths[i]);
    add_modules(&f);
    fill_head(&f, header);
    crash->crashed = false;
    crash->thread_count = f.threads.count;
    crash->module_count = f.modules.count;
    crash->threads = sl_arena_array_finish(&f.threads);
    crash->modules = sl_arena_array_finish(&f.modules);
    /* for SL_BUSY the caller writes the error: memory, or the report's budget */
    return f.no_memory || !crash->threads || !crash->modules ? SL_BUSY : SL_OK;
}
