/* Sampling reports: sections, threads, processes and their images. */
#include "apple/samples_impl.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"

/* The section of the report that the current line is in. */
enum samples_section {
    IN_HEAD,
    IN_TREE,     /* call tree of a thread */
    IN_HEAVIEST, /* one stack: all its rows have the same indentation */
    IN_TOTALS,   /* functions, summed over all callers */
    IN_TOPS,     /* functions at the top of stacks; the number of samples follows each */
    IN_IMAGES,
};

struct samples_reader {
    struct sl_samples *samples;
    struct sl_arena *arena;
    enum samples_section section;
    struct sl_arena_array rows, threads, processes, images;
    struct sl_samples_process process; /* the current one */
    bool has_process, has_target_pid, no_memory;
    uint64_t target_pid; /* PID of the process that the report is about */
    uint32_t thread;     /* index of the current one */
    uint32_t heaviest;   /* index of the previous row of a "Heaviest stack"; SL_SAMPLES_NONE after its heading */
};

/* ---- section headings ---- */

/* Removes `word` from the beginning of `*rest`, and white space from both ends of what is left; false if `*rest` begins otherwise. */
static bool skip_prefix(struct sl_str *rest, const char *word)
{
    if (!sl_str_starts(*rest, sl_str(word)))
        return false;
    *rest = sl_str_trimmed(apple_skip(*rest, strlen(word)));
    return true;
}

/* Adds the current process, if there is one, to the list. Lack of memory is recorded. */
static void close_process(struct samples_reader *s)
{
    struct sl_samples_process *added = s->has_process ? sl_arena_array_add(&s->processes) : NULL;
    if (added)
        *added = s->process;
    s->no_memory |= s->has_process && !added;
    s->has_process = false;
}

/* Begins a process at its name, like "app [123] (suspended)"; the number is its PID. */
static void open_process(struct samples_reader *s, struct sl_str name)
{
    close_process(s);
    const char *open = name.size ? memrchr(name.data, '[', name.size) : NULL;
    s->process = (struct sl_samples_process){.name = name, .first_image = s->images.count};
    struct sl_str digits = open ? apple_skip(name, (size_t)(open - name.data) + 1) : SL_STR("");
    s->process.has_pid = apple_take_number(&digits, &s->process.pid) == APPLE_NUMBER;
    s->has_process = true;
    s->thread = SL_SAMPLES_NONE;
    s->section = IN_TREE;
}

/* Adds a thread of the current process and makes it the current one. Lack of memory is recorded. */
static void add_thread(struct samples_reader *s, struct sl_samples_thread thread)
{
    struct sl_samples_thread *added = sl_arena_array_add(&s->threads);
    if (added) {
        *added = thread;
        /* close_process() will add the current process at this index */
        added->process = s->has_process ? (uint32_t)s->processes.count : SL_SAMPLES_NONE;
    }
    s->no_memory |= !added;
    s->thread = (uint32_t)s->threads.count - 1;
}

/* Finds the value between `label`, which ends with a quote, and the next quote. False if there is no label or no quote after it. */
static bool find_quoted(struct sl_str line, const char *label, struct sl_str *value)
{
    const char *found = memmem(line.data, line.size, label, strlen(label));
    if (!found)
        return false;
    struct sl_str rest = apple_skip(line, (size_t)(found - line.data) + strlen(label));
    const char *end = rest.size ? memchr(rest.data, '"', rest.size) : NULL;
    *value = (struct sl_str){rest.data, end ? (size_t)(end - rest.data) : rest.size};
    return end;
}

/* Parses "  Thread 0x2ca9e    DispatchQueue \"com.apple.main-thread\"(1)    Thread name \"x\"    49 samples (1-49)" and adds the thread,
 * named by its thread name, else by its queue. False for other lines. */
static bool read_thread_head(struct samples_reader *s, struct sl_str line)
{
    struct sl_samples_thread thread = {.name = {NULL, 0}};
    struct sl_str rest = sl_str_trimmed(line);
    if (!sl_str_starts(rest, SL_STR("Thread 0x")))
        return false;
    rest = apple_skip(rest, 7); /* "Thread " */
    thread.has_id = apple_next_address(&rest, &thread.id);
    if (!find_quoted(line, "Thread name \"", &thread.name) && !find_quoted(line, "DispatchQueue \"", &thread.name))
        thread.name = (struct sl_str){NULL, 0};
    add_thread(s, thread);
    s->section = IN_TREE;
    return true;
}

/* True for "<count> Thread_<id>", the first row of a thread. */
static bool is_thread_row(struct sl_str line)
{
    struct sl_str rest = sl_str_trimmed(line);
    uint64_t count;
    return apple_take_number(&rest, &count) == APPLE_NUMBER && sl_str_starts(rest, SL_STR(" Thread_"));
}

/* Parses " 8676 Thread_955462 DispatchQueue_1: com.apple.main-thread  (serial)" or " 2569 Thread_1330655: JavaScriptCore::Marking", and
 * adds the thread. False for other lines. */
static bool read_thread_row(struct samples_reader *s, struct sl_str line)
{
    struct sl_samples_thread thread = {.name = {NULL, 0}};
    struct sl_str rest = sl_str_trimmed(line);
    uint64_t count; /* not used: find_callers() adds up the samples of the thread */
    if (apple_take_number(&rest, &count) != APPLE_NUMBER || !skip_prefix(&rest, " Thread_"))
        return false;
    thread.has_id = apple_take_number(&rest, &thread.id) == APPLE_NUMBER;
    const char *queue = rest.size ? memmem(rest.data, rest.size, "DispatchQueue_", 14) : NULL;
    if (skip_prefix(&rest, ":")) /* the thread's name; a queue may follow it */
        thread.name = sl_str_trimmed((struct sl_str){rest.data, queue ? (size_t)(queue - rest.data) : rest.size});
    else if (queue) {
        rest = apple_skip(rest, (size_t)(queue - rest.data));
        const char *colon = memchr(rest.data, ':', rest.size);
        rest = sl_str_trimmed(apple_skip(rest, colon ? (size_t)(colon - rest.data) + 1 : rest.size));
        /* the kind of queue after the name, "  (serial)", is left out */
        const char *end = rest.size ? memmem(rest.data, rest.size, "  (", 3) : NULL;
        thread.name = (struct sl_str){rest.data, end ? (size_t)(end - rest.data) : rest.size};
    }
    add_thread(s, thread);
    return true;
}

/* ---- the head ---- */

/* Reads a line of the head of the report or of a process, like "PID: 123". If a key occurs several times, its first value counts; of
 * several PIDs the last counts. False for other keys. */
static bool read_samples_head(struct samples_reader *s, struct sl_str line)
{
    struct sl_samples *samples = s->samples;
    struct sl_str digits;
    const struct {
        const char *key;
        struct sl_str *value;
    } keys[] = {
        {"Analysis of ", &samples->title},
        {"Date/Time:", &samples->time},
        {"OS Version:", &samples->os},
        {"Architecture:", &samples->architecture},
        {"Code Type:", &samples->architecture},
        {"Hardware model:", &samples->hardware},
        {"Event:", &samples->event},
        {"Duration:", &samples->duration},
        {"PID:", &digits},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct sl_str rest = line;
        if (!skip_prefix(&rest, keys[i].key))
            continue;
        if (keys[i].value == &digits) /* only a mark: the PID is a number, not a text */
            s->has_target_pid |= apple_take_number(&rest, &s->target_pid) == APPLE_NUMBER;
        else if (!keys[i].value->size)
            *keys[i].value = rest;
        return true;
    }
    return false;
}

/* If the line is the heading of a section, process or thread, makes that the current one; false for any other line. A "Heaviest stack" or a
 * table of totals belongs to no thread. */
static bool read_samples_section(struct samples_reader *s, struct sl_str line)
{
    static const struct {
        const char *begin;
        enum samples_section section;
    } sections[] = {
        {"Call graph:", IN_TREE},
        {"Heaviest stack for the ", IN_HEAVIEST},
        {"Total number in stack", IN_TOTALS},
        {"Sort by top of stack", IN_TOPS},
    };
    struct sl_str rest = line;
    if (skip_prefix(&rest, "Process:") || skip_prefix(&rest, "Powerstats for:")) {
        open_process(s, rest);
        return true;
    }
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (sl_str_starts(line, sl_str(sections[i].begin))) {
            s->section = sections[i].section;
            s->thread = s->heaviest = SL_SAMPLES_NONE;
            return true;
        }
    if (sl_str_equal(sl_str_trimmed(line), SL_STR("Binary Images:"))) {
        s->section = IN_IMAGES;
        return true;
    }
    return read_thread_head(s, line);
}

/* ---- rows and images ---- */

/* Adds a row of any section but the image list; lines of other forms are skipped. In a "Heaviest stack" each row calls the next one;
 * find_callers() sets the callers in a tree later. */
static void add_samples_row(struct samples_reader *s, struct sl_str line)
{
    struct sl_samples_row row, *added;
    bool in_tree = s->section == IN_TREE, in_heaviest = s->section == IN_HEAVIEST;
    size_t at = (size_t)(line.data - s->samples->text.data);
    if (in_tree && !s->has_process) /* a tree without a "Process:" line before it */
        open_process(s, SL_STR(""));
    /* `has_count` is false for IN_TOPS: there the number of samples follows the function */
    if ((in_tree && read_thread_row(s, line)) || !samples_row(line, s->section != IN_TOPS, &row))
        return;
    if (in_tree && s->thread == SL_SAMPLES_NONE) /* "Powerstats for:" has a tree without threads */
        add_thread(s, (struct sl_samples_thread){.has_id = false});
    row.line = at;
    row.line_size = line.size;
    row.thread = in_tree ? s->thread : SL_SAMPLES_NONE;
    row.process = s->has_process ? (uint32_t)s->processes.count : SL_SAMPLES_NONE;
    row.caller = in_heaviest ? s->heaviest : SL_SAMPLES_NONE;
    row.is_exact = s->section != IN_TOTALS; /* find_callers() and find_exact_totals() correct it later */
    if ((added = sl_arena_array_add(&s->rows)))
        *added = row;
    s->no_memory |= !added;
    s->heaviest = (uint32_t)s->rows.count - 1;
}

/* Reads a line of the image list. False if the line is neither blank nor an image: then the list has ended. Images with an invalid range or
 * id, or outside of a process, are left out. */
static bool read_image(struct samples_reader *s, struct sl_str line)
{
    struct apple_image_line image;
    struct sl_samples_image *added;
    struct sl_crash_module module = {0};
    struct sl_str rest = sl_str_trimmed(line);
    if (!rest.size)
        return true;
    if (rest.data[0] == '*') /* marks images of the kernel */
        rest = apple_skip(rest, 1);
    if (!apple_image_line(rest, &image))
        return false;
    if (!image.fits || image.end < image.begin || !apple_module_id(image.uuid, s->arena, &module) || !s->has_process)
        return true;
    module.address = image.begin;
    module.size = image.end > image.begin ? image.end - image.begin + 1 : 0; /* equal: the end is unknown */
    module.code_file = module.debug_file = image.path.size ? image.path : image.name;
    if ((added = sl_arena_array_add(&s->images)))
        *added = (struct sl_samples_image){image.begin, image.end, module};
    s->no_memory |= !added || !module.code_id.data;
    s->process.image_count = s->images.count - s->process.first_image;
    return true;
}

/* Reads a line: a heading, or what the current section has. Rows of a tree or table are indented or begin with `*`; other lines may be of a
 * head ("PID: 1"), as each process has one. A line of the image list that is no image is read as a line of a head. */
static void read_samples_line(struct samples_reader *s, struct sl_str line)
{
    while (line.size && sl_is_blank(line.data[line.size - 1]))
        line.size--;
    if (!line.size || read_samples_section(s, line))
        return;
    if (s->section == IN_IMAGES && read_image(s, line))
        return;
    if (s->section == IN_IMAGES || s->section == IN_HEAD || (line.data[0] != ' ' && line.data[0] != '*'))
        read_samples_head(s, line);
    else
        add_samples_row(s, line);
}

/* ---- linking rows, images and processes ---- */

SL_ORDER_BY(image_by_address, struct sl_samples_image, begin, end)

/* True if the row has an offset in its image ("app + 16396") and its address minus that offset is `begin`, the first address of an image.
 * Then the address lies in that image, even if its size is unknown. */
static bool matches_offset(const struct sl_samples_row *row, uint64_t begin)
{
    struct sl_str digits = apple_skip(row->image_and_offset, row->image_name.size);
    uint64_t offset;
    return digits.size > 3 && /* longer than " + " */
           (digits = apple_skip(digits, 3), apple_take_number(&digits, &offset) == APPLE_NUMBER) &&
           offset == row->address - begin;
}

/* Sets row->image to the image of the row's process that contains the row's address; leaves SL_SAMPLES_NONE if there is none. */
static void find_image(const struct sl_samples *samples, struct sl_samples_row *row)
{
    if (!row->has_address || row->process == SL_SAMPLES_NONE)
        return;
    const struct sl_samples_process *process = &samples->processes[row->process];
    const struct sl_samples_image *images = samples->images + process->first_image;
    /* the images are sorted: number of those that begin at or before the address; only the last of them can contain it */
    size_t beyond = SL_COUNT_UP_TO(images, process->image_count, begin, row->address);
    const struct sl_samples_image *image = beyond ? &images[beyond - 1] : NULL;
    if (image && (row->address <= image->end || (image->begin == image->end && matches_offset(row, image->begin))))
        row->image = (uint32_t)(image - samples->images);
}

/* Links each row of a tree with its caller: the last row before it whose number of samples is farther to the left. Adds the row's count to
 * `children` of its caller (up to UINT64_MAX), or to `count` of the thread if it has no caller. Clears is_exact of rows whose address is a
 * return address. */
static void find_callers(const struct sl_samples *samples)
{
    for (size_t i = 0; i < samples->row_count; i++) {
        struct sl_samples_row *row = &samples->rows[i];
        const struct sl_samples_row *before = i ? row - 1 : NULL;
        uint32_t caller = before && before->thread == row->thread ? (uint32_t)i - 1 : SL_SAMPLES_NONE;
        /* rows farther to the right are not its callers, but their callers may be */
        while (row->thread != SL_SAMPLES_NONE && caller != SL_SAMPLES_NONE &&
               samples->rows[caller].column >= row->column)
            caller = samples->rows[caller].caller;
        if (row->thread != SL_SAMPLES_NONE) /* a "Heaviest stack" has its callers already */
            row->caller = caller;
        if (row->caller == SL_SAMPLES_NONE && row->thread != SL_SAMPLES_NONE)
            samples->threads[row->thread].count += row->count;
        if (row->caller == SL_SAMPLES_NONE)
            continue;
        /* A caller's address is a return address, except where a call from user space into the kernel was made: there it is the very
         * instruction that entered the kernel. */
        struct sl_samples_row *from = &samples->rows[row->caller];
        from->is_exact &= row->is_kernel && !from->is_kernel;
        from->children = from->children + row->count < row->count ? UINT64_MAX : from->children + row->count;
    }
}

/* Sets is_exact of rows in the tables of totals, whose functions also occur in call trees: an address is exact (no return address) if it is
 * so in a tree. An address at offset 0 of its function is always exact, because nothing returns there. Returns false if out of memory. */
static bool find_exact_totals(struct samples_reader *s)
{
    struct sl_samples *samples = s->samples;
    uint64_t *exact = SL_ARENA_ARRAY(s->arena, uint64_t, samples->row_count); /* addresses that are exact in trees */
    size_t count = 0;
    for (size_t i = 0; exact && i < samples->row_count; i++) {
        struct sl_samples_row *row = &samples->rows[i];
        row->is_exact |= sl_str_equal(row->offset, SL_STR("0"));
        if (row->is_exact && row->has_address && row->thread != SL_SAMPLES_NONE)
            exact[count++] = row->address;
    }
    if (exact && count)
        qsort(exact, count, sizeof *exact, sl_order_u64);
    for (size_t i = 0; exact && i < samples->row_count; i++) {
        struct sl_samples_row *row = &samples->rows[i];
        /* number of exact addresses that are not above the row's: if the row's address is one of them, it is the last of these */
        size_t beyond = row->is_exact ? 0 : SL_PARTITION_POINT(middle, 0, count, exact[middle] <= row->address);
        row->is_exact |= row->thread == SL_SAMPLES_NONE && beyond && exact[beyond - 1] == row->address;
    }
    return exact;
}

/* Sets samples->target, the process that the report is about: the one with the PID of the report's head, else the only process. Rows in
 * no process get it too. */
static void find_target(struct samples_reader *s)
{
    struct sl_samples *samples = s->samples;
    samples->target = samples->process_count == 1 ? 0 : SL_SAMPLES_NONE;
    for (size_t i = 0; i < samples->process_count && s->has_target_pid; i++)
        if (samples->processes[i].has_pid && samples->processes[i].pid == s->target_pid)
            samples->target = (uint32_t)i;
    for (size_t i = 0; i < samples->row_count; i++) /* a "Heaviest stack" before all processes is that of the target */
        if (samples->rows[i].process == SL_SAMPLES_NONE)
            samples->rows[i].process = samples->target;
}

/* Completes the report when all lines are read: links rows with their callers and images. SL_MALFORMED if it has no rows; also the error of
 * sl_budget_fail() if memory is short. */
static enum sl_code finish(struct samples_reader *s, struct sl_error *error)
{
    struct sl_samples *samples = s->samples;
    close_process(s);
    samples->row_count = s->rows.count;
    samples->thread_count = s->threads.count;
    samples->process_count = s->processes.count;
    samples->image_count = s->images.count;
    samples->rows = sl_arena_array_finish(&s->rows);
    samples->threads = sl_arena_array_finish(&s->threads);
    samples->processes = sl_arena_array_finish(&s->processes);
    samples->images = sl_arena_array_finish(&s->images);
    if (s->no_memory || !samples->rows || !samples->threads || !samples->processes || !samples->images)
        return sl_budget_fail(s->arena->budget, error);
    if (!samples->row_count)
        return sl_fail(error, SL_MALFORMED, "the sampling report has no row with a call");
    for (size_t i = 0; i < samples->process_count; i++)
        if (samples->processes[i].image_count)
            qsort(samples->images + samples->processes[i].first_image, samples->processes[i].image_count,
                  sizeof *samples->images, image_by_address);
    /* find_exact_totals() uses what find_callers() has set, find_image() the processes that find_target() has set */
    find_target(s);
    find_callers(samples);
    if (!find_exact_totals(s))
        return sl_budget_fail(s->arena->budget, error);
    for (size_t i = 0; i < samples->row_count; i++)
        find_image(samples, &samples->rows[i]);
    return SL_OK;
}

enum sl_code sl_samples_read(struct sl_str text, struct sl_arena *arena, struct sl_samples *samples,
                             struct sl_error *error)
{
    struct samples_reader s = {.samples = samples,
                               .arena = arena,
                               .thread = SL_SAMPLES_NONE,
                               .heaviest = SL_SAMPLES_NONE,
                               .rows = {.arena = arena, .item = sizeof(struct sl_samples_row)},
                               .threads = {.arena = arena, .item = sizeof(struct sl_samples_thread)},
                               .processes = {.arena = arena, .item = sizeof(struct sl_samples_process)},
                               .images = {.arena = arena, .item = sizeof(struct sl_samples_image)}};
    struct sl_str line;
    *samples = (struct sl_samples){.text = text, .target = SL_SAMPLES_NONE};
    while (!s.no_memory && sl_str_next_line(&text, &line))
        read_samples_line(&s, line);
    enum sl_code code = finish(&s, error);
    /* frees the arrays that a failure has left unfinished */
    sl_arena_array_discard(&s.rows);
    sl_arena_array_discard(&s.threads);
    sl_arena_array_discard(&s.processes);
    sl_arena_array_discard(&s.images);
    return code;
}

bool sl_samples_is_text(struct sl_str text)
{
    enum { LINES = 2000 }; /* searched at most: limits the work for large texts */
    struct sl_str line;
    bool has_steps = false; /* the head of spindump; a "Thread 0x" alone occurs in other texts too */
    bool after_graph = false;
    for (size_t i = 0; i < LINES && sl_str_next_line(&text, &line); i++) {
        if (sl_str_starts(line, SL_STR("Analysis of sampling ")) ||
            sl_str_starts(line, SL_STR("Heaviest stack for the ")) || (after_graph && is_thread_row(line)))
            return true;
        after_graph = sl_str_starts(line, SL_STR("Call graph:"));
        has_steps |= sl_str_starts(line, SL_STR("Steps:")) || sl_str_starts(line, SL_STR("Num samples:"));
        if (has_steps && sl_str_starts(sl_str_trimmed(line), SL_STR("Thread 0x")))
            return true;
    }
    return false;
}
