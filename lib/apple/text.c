/* Crash reports as text: a heading says which section follows, and the section decides how a line is read. */
#include "apple/impl.h"

#include "base/buf.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* The section that the current line is in; IN_ROOT is outside of all sections, where lines are "Key: value". */
enum text_state { IN_ROOT, IN_THREAD, IN_REGISTERS, IN_IMAGES, IN_INFORMATION, IN_SYSLOG };

enum text_key {
    KEY_CODE_TYPE,
    KEY_TIME,
    KEY_OS_VERSION,
    KEY_HARDWARE,
    KEY_EXCEPTION_TYPE,
    KEY_EXCEPTION_MESSAGE,
    KEY_EXCEPTION_SUBTYPE,
    KEY_EXCEPTION_CODES,
    KEY_TERMINATION,
    KEY_TERMINATION_DESCRIPTION,
    KEY_CRASHED_THREAD,
    KEY_TRIGGERED_THREAD,
    TEXT_KEYS
};

static const struct sl_str key_names[TEXT_KEYS] = {
    [KEY_CODE_TYPE] = SL_STR("Code Type"),
    [KEY_TIME] = SL_STR("Date/Time"),
    [KEY_OS_VERSION] = SL_STR("OS Version"),
    [KEY_HARDWARE] = SL_STR("Hardware Model"),
    [KEY_EXCEPTION_TYPE] = SL_STR("Exception Type"),
    [KEY_EXCEPTION_MESSAGE] = SL_STR("Exception Message"),
    [KEY_EXCEPTION_SUBTYPE] = SL_STR("Exception Subtype"),
    [KEY_EXCEPTION_CODES] = SL_STR("Exception Codes"),
    [KEY_TERMINATION] = SL_STR("Termination Reason"),
    [KEY_TERMINATION_DESCRIPTION] = SL_STR("Termination Description"),
    [KEY_CRASHED_THREAD] = SL_STR("Crashed Thread"),
    [KEY_TRIGGERED_THREAD] = SL_STR("Triggered by Thread"),
};

struct thread_label { /* a line that names a thread: "Thread 5 name: worker" */
    uint64_t number;
    size_t line_index; /* index among these lines; of several lines for one thread the last counts */
    struct sl_str name;
};

struct text_reader {
    const struct sl_apple_options *options;
    struct sl_arena *arena;
    struct apple_budget *budget;
    struct sl_crash *crash;
    enum text_state state;
    bool after_blank; /* in the image list: the previous line was blank, and there is an image before it */
    bool no_memory;   /* or the budget is used up */
    struct sl_str values[TEXT_KEYS];
    struct sl_arena_array threads, labels, modules, registers;
    struct sl_buf information;
    bool after_termination;    /* a line in angle brackets that explains the termination may follow */
    struct sl_str explanation; /* the first such line */
    bool has_thread;           /* `thread` and `frames` are those of the current thread */
    bool in_exception;         /* the current thread is the backtrace of the last exception */
    struct sl_crash_thread thread;
    struct sl_arena_array frames;
    bool has_exception;
    struct sl_crash_thread exception; /* the backtrace of the last exception */
};

/* ---- threads ---- */

/* Ends the current thread, if there is one, and adds it to the list. The backtrace of the last exception is only stored in t->exception:
 * finish_threads() adds it as the last thread. */
static void close_thread(struct text_reader *t)
{
    if (!t->has_thread)
        return;
    struct sl_crash_thread *ended =
        t->in_exception ? &t->exception : apple_add(&t->threads, t->budget, COST_PER_THREAD);
    t->thread.frame_count = t->frames.count;
    t->thread.frames = sl_arena_array_finish(&t->frames);
    if (ended)
        *ended = t->thread;
    t->no_memory |= !ended || !t->thread.frames;
    t->has_exception |= t->in_exception;
    t->has_thread = t->in_exception = false;
}

/* Begins a thread at its heading. If its number exceeds 64 bits, the thread is skipped: its lines are read as "Key: value". */
static void open_thread(struct text_reader *t, const struct apple_thread_line *line)
{
    close_thread(t);
    t->state = line->fits ? IN_THREAD : IN_ROOT;
    t->has_thread = line->fits;
    t->thread =
        (struct sl_crash_thread){.id = line->number,
                                 .has_id = true,
                                 .requesting = line->crashed ? SL_REQUESTING_THREAD_YES : SL_REQUESTING_THREAD_NO};
    if (line->name.size)
        t->thread.name = line->name;
}

/* Begins the backtrace of the last exception, which is read like a thread. */
static void open_exception(struct text_reader *t)
{
    close_thread(t);
    t->state = IN_THREAD;
    t->has_thread = t->in_exception = true;
    t->thread =
        (struct sl_crash_thread){.name = SL_STR(SL_APPLE_LAST_EXCEPTION), .requesting = SL_REQUESTING_THREAD_NO};
}

/* Records a line like "Thread 5 name: worker", which also ends the section before it. The line may come before or after the thread, so
 * name_threads() uses it at the end of the report; there the highest line_index of a thread wins. */
static void add_label(struct text_reader *t, const struct apple_thread_line *line)
{
    t->state = IN_ROOT;
    if (!line->fits)
        return;
    struct thread_label *label = apple_add(&t->labels, t->budget, COST_PER_LABEL);
    if (label)
        *label = (struct thread_label){.number = line->number, .line_index = t->labels.count, .name = line->name};
    t->no_memory |= !label;
}

/* Adds a frame to the current thread; without the option names_from_report, the frame's function, file and line are dropped. */
static void add_text_frame(struct text_reader *t, const struct sl_crash_frame *from)
{
    struct sl_crash_frame *frame = apple_add(&t->frames, t->budget, COST_PER_FRAME);
    if (!frame) {
        t->no_memory = true;
        return;
    }
    *frame = *from;
    if (!t->options->names_from_report) {
        frame->function = frame->filename = (struct sl_str){NULL, 0};
        frame->symbol_offset = 0;
        frame->line = 0;
    }
}

/* Reads a line like "(0x1000 0x2000)": the backtrace of the last exception may be such a list. False if the line is not only addresses, or
 * is not in that backtrace. */
static bool read_addresses(struct text_reader *t, struct sl_str line)
{
    struct sl_crash_frame frame = {0};
    bool any = false;
    if (!t->in_exception || !line.size || (line.data[0] != '(' && line.data[0] != '0'))
        return false;
    while (apple_next_address(&line, &frame.address)) {
        add_text_frame(t, &frame);
        any = true;
    }
    return any && !line.size;
}

/* Reads a line in the section of a thread: a frame, or addresses; any other line ends the section. A frame whose address exceeds 64 bits is
 * skipped. */
static void read_thread_line(struct text_reader *t, struct sl_str line)
{
    struct apple_frame_line frame;
    if (!t->has_thread) /* the thread has ended */
        t->state = IN_ROOT;
    else if (apple_frame_line(line, &frame)) {
        if (frame.fits)
            add_text_frame(t, &frame.frame);
    } else if (!read_addresses(t, line))
        t->state = IN_ROOT;
}

/* ---- other sections ---- */

/* Adds the registers in a line; an empty line ends their section. Lack of memory or budget is recorded. */
static void read_registers(struct text_reader *t, struct sl_str line)
{
    struct sl_crash_register reg, *added;
    if (!line.size)
        t->state = IN_ROOT;
    while (apple_next_register(&line, &reg)) {
        if ((added = apple_add(&t->registers, t->budget, COST_PER_REGISTER)))
            *added = reg;
        t->no_memory |= !added;
    }
}

/* True if `value` must not replace `before`, the earlier value of the same key. Only exception codes that are numbers must not: Console
 * writes the codes as words first and then again as numbers. */
static bool keeps_earlier(size_t key, struct sl_str value, struct sl_str before)
{
    return key == KEY_EXCEPTION_CODES && before.size && !apple_codes_are_raw(before) && apple_codes_are_raw(value);
}

/* Reads a line outside of all sections: "Key: value", or after "Termination Reason" its explanation in angle brackets. Of several values of
 * a key the last counts, except that numbers do not replace exception codes in words (keeps_earlier()). */
static void read_root(struct text_reader *t, struct sl_str line)
{
    struct sl_str key, value;
    t->state = IN_ROOT; /* read_image() and read_information() call this at a line that ends their section */
    if (t->after_termination && line.size && line.data[0] == '<' && !t->explanation.size) {
        t->explanation = line;
        return;
    }
    t->after_termination = false;
    if (!apple_key_value(line, &key, &value))
        return;
    for (size_t i = 0; i < TEXT_KEYS; i++)
        if (sl_str_equal(key, key_names[i]) && !keeps_earlier(i, value, t->values[i]))
            t->values[i] = value;
    t->after_termination = sl_str_equal(key, key_names[KEY_TERMINATION]);
}

/* Reads a line of the image list. Images with an invalid range or id are skipped. A line of another form ends the list if a blank line
 * precedes it; otherwise it is skipped too. Lack of memory or budget is recorded. */
static void read_image(struct text_reader *t, struct sl_str line)
{
    struct apple_image_line image;
    struct sl_crash_module module = {0}, *added;
    bool after_blank = t->after_blank;
    t->after_blank = !line.size && t->modules.count; /* a blank line before the first image does not count */
    if (!line.size)
        return;
    if (!apple_image_line(line, &image)) {
        if (after_blank)
            read_root(t, line);
        return;
    }
    if (!image.fits || image.end < image.begin || !apple_module_id(image.uuid, t->arena, &module))
        return;
    if (!image.begin && sl_debug_id_is_nil(&module.debug_id))
        return; /* a placeholder for addresses outside of all images */
    module.address = image.begin;
    /* not + 1, though `end` is the last byte: responses of /applecrashreport have this size */
    module.size = image.end - image.begin;
    module.code_file = module.debug_file = image.path.size ? image.path : image.name;
    if ((added = apple_add(&t->modules, t->budget, COST_PER_IMAGE)))
        *added = module;
    t->no_memory |= !added || !module.code_id.data;
}

/* True if the line is the heading of a section that may follow the application-specific information and that is not read. */
static bool ends_information(struct sl_str line)
{
    static const char *const heads[] = {"Application Specific Backtrace", "Application Specific Signatures",
                                        "Kernel Triage", "VM Region Info"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (sl_str_starts(line, sl_str(heads[i])))
            return true;
    return false;
}

/* Adds a line of application-specific information; in the section "Filtered syslog" the line is skipped. */
static void read_information(struct text_reader *t, struct sl_str line)
{
    if (ends_information(line)) {
        read_root(t, line); /* also ends the section */
        return;
    }
    if (t->state == IN_SYSLOG)
        return;
    if (t->information.size)
        sl_buf_u8(&t->information, '\n');
    sl_buf_str(&t->information, line);
}

/* If the line is the heading of a section or thread, begins that; false for any other line. */
static bool read_heading(struct text_reader *t, struct sl_str line)
{
    struct apple_thread_line thread;
    if (sl_str_starts(line, SL_STR("Binary Images:")) || sl_str_equal(line, SL_STR("Binary Images"))) {
        t->state = IN_IMAGES;
        t->after_blank = false;
    } else if (sl_str_starts(line, SL_STR("Application Specific Information:")))
        t->state = IN_INFORMATION;
    else if (sl_str_starts(line, SL_STR("Filtered syslog:")))
        t->state = IN_SYSLOG;
    else if (apple_registers_header(line))
        t->state = IN_REGISTERS;
    else if (apple_thread_header(line, &thread))
        open_thread(t, &thread);
    else if (apple_thread_name(line, &thread))
        add_label(t, &thread);
    else if (sl_str_equal(line, SL_STR("Last Exception Backtrace:")))
        open_exception(t);
    else
        return false;
    return true;
}

/* Reads a line, without white space at its end: a heading, or a line of the current section. */
static void read_line(struct text_reader *t, struct sl_str line)
{
    while (line.size && sl_is_blank(line.data[line.size - 1]))
        line.size--;
    if (read_heading(t, line))
        return;
    switch (t->state) {
    case IN_ROOT: read_root(t, line); break;
    case IN_THREAD: read_thread_line(t, line); break;
    case IN_REGISTERS: read_registers(t, line); break;
    case IN_IMAGES: read_image(t, line); break;
    case IN_INFORMATION:
    case IN_SYSLOG: read_information(t, line); break;
    }
}

/* ---- results ---- */

SL_ORDER_BY(label_by_number, struct thread_label, number, line_index)

/* Sets the names of threads from the recorded lines like "Thread 5 name: worker"; of several for one thread the last counts. */
static void name_threads(struct text_reader *t)
{
    size_t count = t->labels.count;
    struct thread_label *labels = sl_arena_array_finish(&t->labels);
    t->no_memory |= !labels;
    if (labels && count)
        qsort(labels, count, sizeof *labels, label_by_number);
    for (size_t i = 0; labels && count && i < t->crash->thread_count; i++) {
        struct sl_crash_thread *thread = &t->crash->threads[i];
        size_t low = SL_PARTITION_POINT(middle, 0, count, thread->has_id && labels[middle].number <= thread->id);
        if (low && thread->has_id && labels[low - 1].number == thread->id) /* the last label of this number */
            thread->name = labels[low - 1].name;
    }
}

/* Marks the threads with the number that `value` begins with ("0  Dispatch queue: x") as crashed; false if there is none. */
static bool mark_thread(struct sl_crash *crash, struct sl_str value)
{
    uint64_t number;
    bool marked = false;
    if (apple_take_number(&value, &number) == APPLE_NUMBER)
        for (size_t i = 0; i < crash->thread_count; i++)
            if (crash->threads[i].has_id && crash->threads[i].id == number) {
                crash->threads[i].requesting = SL_REQUESTING_THREAD_YES;
                marked = true;
            }
    return marked;
}

/* Returns the first thread that is marked as crashed; NULL if there is none. */
static struct sl_crash_thread *crashed_thread(const struct sl_crash *crash)
{
    for (size_t i = 0; i < crash->thread_count; i++)
        if (crash->threads[i].requesting == SL_REQUESTING_THREAD_YES)
            return &crash->threads[i];
    return NULL;
}

/* Completes the threads: adds the backtrace of the last exception and sets the names. Marks the thread that crashed (by its heading, else
 * by "Crashed Thread" or "Triggered by Thread") and gives it the registers. */
static void finish_threads(struct text_reader *t)
{
    struct sl_crash *crash = t->crash;
    close_thread(t);
    if (t->has_exception) {
        struct sl_crash_thread *added = apple_add(&t->threads, t->budget, COST_PER_THREAD);
        if (added)
            *added = t->exception;
        t->no_memory |= !added;
    }
    crash->thread_count = t->threads.count;
    crash->threads = sl_arena_array_finish(&t->threads);
    size_t register_count = t->registers.count;
    struct sl_crash_register *registers = sl_arena_array_finish(&t->registers);
    if (t->no_memory || !crash->threads || !registers) {
        t->no_memory = true;
        return;
    }
    name_threads(t);
    if (!crashed_thread(crash) && !mark_thread(crash, t->values[KEY_CRASHED_THREAD]))
        mark_thread(crash, t->values[KEY_TRIGGERED_THREAD]);
    struct sl_crash_thread *crashed = crashed_thread(crash);
    if (crashed && !sl_crash_set_registers(crashed, registers, register_count, t->arena))
        t->no_memory = true;
}

/* Returns the first text that is not empty. */
static struct sl_str first_text(const struct sl_str *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i].size)
            return values[i];
    return (struct sl_str){NULL, 0};
}

/* Returns the explanation of the termination: the line in angle brackets after it, else the part in brackets of the termination description
 * "SPRINGBOARD, <RBSTerminateContext| ...>"; empty if there is neither. */
static struct sl_str termination_words(const struct text_reader *t)
{
    struct sl_str description = t->values[KEY_TERMINATION_DESCRIPTION];
    const char *open = description.size ? memchr(description.data, '<', description.size) : NULL;
    if (t->explanation.size || !open)
        return t->explanation;
    return (struct sl_str){open, (size_t)(description.data + description.size - open)};
}

/* Sets the details to all causes that the report gives, a line each; data NULL if there is none. Lack of memory is recorded. */
static void put_all_causes(struct text_reader *t, struct sl_str information)
{
    const struct sl_str *values = t->values;
    struct sl_buf text = {.budget = t->arena->budget};
    const struct apple_causes causes = {.information = information,
                                        .message = values[KEY_EXCEPTION_MESSAGE],
                                        .subtype = values[KEY_EXCEPTION_SUBTYPE],
                                        .codes = values[KEY_EXCEPTION_CODES],
                                        .termination = apple_termination_parse(values[KEY_TERMINATION]),
                                        .explanation = termination_words(t)};
    apple_put_causes(&causes, &text);
    bool any = text.size || text.failed; /* a failed text becomes NULL below */
    t->crash->details = any ? sl_buf_move_to_arena(&text, t->arena) : (struct sl_str){NULL, 0};
    t->no_memory |= any && !t->crash->details.data;
}

/* Sets reason, details, time and system from the values of the keys; time and system that are absent there come from `header`, the JSON
 * line before the text. Without the option all_causes the details are the first of these that the report has: application information, the
 * exception's message, its subtype, its codes. */
static void finish_head(struct text_reader *t, const struct apple_header *header)
{
    struct sl_crash *crash = t->crash;
    struct sl_str information = {NULL, 0}, *values = t->values;
    if (t->information.failed)
        t->no_memory = true;
    else if (t->information.size) {
        t->information.size -= t->information.data[t->information.size - 1] == '\n'; /* the last line was blank */
        information = sl_buf_move_to_arena(&t->information, t->arena);
        t->no_memory |= !information.data;
    }
    if (t->options->all_causes) {
        put_all_causes(t, information);
    } else {
        const struct sl_str details[] = {information, values[KEY_EXCEPTION_MESSAGE], values[KEY_EXCEPTION_SUBTYPE],
                                         values[KEY_EXCEPTION_CODES]};
        crash->details = first_text(details, sizeof details / sizeof *details);
    }
    crash->reason = first_text(&values[KEY_EXCEPTION_TYPE], 1);
    crash->has_timestamp =
        apple_time(values[KEY_TIME], &crash->timestamp) || apple_time(header->timestamp, &crash->timestamp);
    crash->system.device_model = values[KEY_HARDWARE];
    crash->system.arch = apple_arch(values[KEY_CODE_TYPE]);
    apple_os(values[KEY_OS_VERSION].size ? values[KEY_OS_VERSION] : header->os_version, t->options->split_os_version,
             &crash->system);
}

bool apple_read_text(struct sl_str text, const struct apple_header *header, const struct sl_apple_options *options,
                     struct sl_arena *arena, struct apple_budget *budget, struct sl_crash *crash)
{
    struct text_reader t = {.options = options,
                            .arena = arena,
                            .budget = budget,
                            .crash = crash,
                            .threads = {.arena = arena, .item = sizeof(struct sl_crash_thread)},
                            .labels = {.arena = arena, .item = sizeof(struct thread_label)},
                            .modules = {.arena = arena, .item = sizeof(struct sl_crash_module)},
                            .registers = {.arena = arena, .item = sizeof(struct sl_crash_register)},
                            .frames = {.arena = arena, .item = sizeof(struct sl_crash_frame)},
                            .information = {.budget = arena->budget}};
    struct sl_str line;
    while (!t.no_memory && sl_str_next_line(&text, &line))
        read_line(&t, line);
    finish_threads(&t);
    finish_head(&t, header);
    crash->module_count = t.modules.count;
    crash->modules = sl_arena_array_finish(&t.modules);
    t.no_memory |= !crash->modules;
    /* frees the arrays that a failure has left unfinished */
    sl_arena_array_discard(&t.threads);
    sl_arena_array_discard(&t.frames);
    sl_arena_array_discard(&t.labels);
    sl_arena_array_discard(&t.registers);
    sl_buf_free(&t.information);
    return !t.no_memory;
}
