/* Minidumps in the text formats of Breakpad's minidump_stackwalk: `machine` (-m) and `stackwalk`. */
#include "cli/symbolicate/dump_print.h"

#include <stdio.h>
#include <string.h>

#include "id/id.h"

struct dump_texts {
    const struct symbolicated_answer *answer;
    const struct answer_style *style;
    const struct walked_dump *walked;
    struct sl_buf *out;
};

/* A frame of the answer with its addresses and module. */
struct text_frame {
    const struct answer_frame *frame;
    size_t thread;
    uint64_t at;                /* the frame's address as it is printed (text_address) */
    uint64_t instruction;       /* address of the current instruction; in callers that of the call */
    struct sl_str name, module; /* function; file name of the module. Empty: unknown */
    uint64_t module_address;    /* 0: outside of all modules */
    bool is_inline;
};

/* Returns the address that is printed for a frame: like Breakpad, the return address for x86 and amd64, the address of the call for other
 * CPUs. */
static uint64_t text_address(const struct dump_texts *t, size_t thread, const struct answer_frame *frame)
{
    enum sl_cpu_family family = thread_family(t->walked, thread);
    return family == SL_CPU_X86 || family == SL_CPU_X86_64 ? frame_resume(t->walked, thread, frame)
                                                           : frame_instruction(t->walked, thread, frame);
}

/* Returns what is printed of frame `index` of a thread. The stack walk finds no inlined calls: their only address is the one in the
 * answer. */
static struct text_frame text_frame(const struct dump_texts *t, size_t thread, size_t index)
{
    const struct answer_thread *trace = &t->answer->threads[thread];
    const struct answer_frame *frame = &trace->frames[index];
    bool is_inline = answer_frame_is_inline(trace, index);
    uint64_t instruction = is_inline ? frame->address.value : frame_instruction(t->walked, thread, frame);
    /* by the instruction in the frame: a return address may already lie behind the module's end */
    const struct sl_crash_module *module = sl_minidump_module_at(&t->walked->dump, instruction);
    return (struct text_frame){
        .frame = frame,
        .thread = thread,
        .at = is_inline ? frame->address.value : text_address(t, thread, frame),
        .instruction = instruction,
        .name = answer_frame_name(frame),
        .module = module ? path_file_name(module->code_file) : (struct sl_str){NULL, 0},
        .module_address = module ? module->address : 0,
        .is_inline = is_inline,
    };
}

/* True if the frame's source line is known, with the address where it begins. */
static bool has_line(const struct text_frame *f)
{
    return f->frame->abs_path.size && f->frame->line.value && f->frame->line_start.set;
}

/* Returns the offset of the frame's address from the start of its source line; if that is unknown, of its function, else of its module.
 * Outside of all modules, returns the address itself. */
static uint64_t text_offset(const struct text_frame *f)
{
    if (has_line(f))
        return f->at - f->frame->line_start.value;
    if (f->name.size && f->frame->symbol_address.set)
        return f->at - f->frame->symbol_address.value;
    return f->at - f->module_address; /* outside of all modules, module_address is 0 */
}

/* Formats the module's debug id as Breakpad does, without hyphens; an empty text if it has none. */
static void format_module_id(const struct sl_crash_module *module, char text[SL_DEBUG_ID_TEXT])
{
    *text = '\0';
    if (module->has_debug_id)
        sl_debug_id_format_breakpad(&module->debug_id, text);
}

/* True if the module is the executable. */
static bool is_main(const struct sl_minidump *dump, const struct sl_crash_module *module)
{
    return module == dump->main_module;
}

/* Returns "version|vendor|renderer" of the GPU. Only microdumps tell it, in an annotation; empty if unknown. */
static struct sl_str get_graphics(const struct sl_minidump *dump)
{
    for (size_t i = 0; i < dump->annotation_count && dump->is_microdump; i++)
        if (sl_str_equal(dump->annotations[i].name, SL_STR("gpu")))
            return dump->annotations[i].value;
    return SL_STR("");
}

/* Returns the text up to the next `|`, or all if there is none, and removes it and the `|` from `rest`. */
static struct sl_str cut_part(struct sl_str *rest)
{
    const char *bar = rest->size ? memchr(rest->data, '|', rest->size) : NULL;
    struct sl_str part = {rest->data, bar ? (size_t)(bar - rest->data) : rest->size};
    size_t size = part.size + (bar != NULL);
    *rest = (struct sl_str){rest->data + size, rest->size - size};
    return part;
}

/* ---- machine ---- */

/* True if the text contains the character. */
static bool has_char(struct sl_str text, char c)
{
    return text.size && memchr(text.data, c, text.size);
}

/* Appends a field and the separator `end`. Drops `|` and line ends from the text, as these separate fields and records. */
static void put_field(struct sl_buf *out, struct sl_str text, char end)
{
    if (!has_char(text, '|') && !has_char(text, '\n') && !has_char(text, '\r'))
        sl_buf_str(out, text);
    else
        for (size_t i = 0; i < text.size; i++)
            if (text.data[i] != '|' && text.data[i] != '\n' && text.data[i] != '\r')
                sl_buf_u8(out, (uint8_t)text.data[i]);
    sl_buf_u8(out, (uint8_t)end);
}

/* Prints the lines OS, CPU, GPU (version, vendor, renderer) and Crash. Without a crash the last has the failed assertion instead of the
 * reason, if there is one. `crashed` is the index of the crashed thread; negative: none. */
static void machine_head(const struct dump_texts *t, int64_t crashed)
{
    const struct sl_minidump *dump = &t->walked->dump;
    struct sl_buf *out = t->out;
    sl_buf_printf(out, "OS|%s|", dump_os_name(dump));
    put_field(out, dump->os_text, '\n');
    sl_buf_printf(out, "CPU|%s|", dump_cpu_name(dump));
    put_field(out, dump->cpu_text, '|');
    struct sl_str graphics = get_graphics(dump); /* "version|vendor|renderer" */
    sl_buf_printf(out, "%u\nGPU|", dump->cpu_count);
    put_field(out, cut_part(&graphics), '|');
    put_field(out, cut_part(&graphics), '|');
    put_field(out, graphics, '\n');
    sl_buf_cstr(out, "Crash|");
    if (dump->crash.crashed) {
        put_field(out, dump_reason(t->answer), '|');
        sl_buf_printf(out, "0x%llx|", (unsigned long long)dump->crash_address);
    } else {
        put_field(out, t->answer->assertion.size ? t->answer->assertion : SL_STR("No crash"), '|');
        sl_buf_cstr(out, "|");
    }
    if (crashed >= 0)
        sl_buf_number(out, dump_thread_number(t->walked, (size_t)crashed), '\n');
    else
        sl_buf_u8(out, '\n');
}

/* Prints the line of a module: name, version, debug file, id, first and last address, and 1 for the main module. */
static void machine_module(const struct dump_texts *t, const struct sl_crash_module *module)
{
    char id[SL_DEBUG_ID_TEXT];
    format_module_id(module, id);
    sl_buf_cstr(t->out, "Module|");
    put_field(t->out, path_file_name(module->code_file), '|');
    put_field(t->out, module->version, '|');
    put_field(t->out, path_file_name(module->debug_file), '|');
    sl_buf_printf(t->out, "%s|0x%08llx|0x%08llx|%d\n", id, (unsigned long long)module->address,
                  (unsigned long long)(module->address + module->size - 1), is_main(&t->walked->dump, module));
}

/* Appends the name of the frame's module; without one, the modules that held its address before they were unloaded. */
static void put_machine_module(const struct dump_texts *t, const struct text_frame *f)
{
    struct sl_buf unloaded = {0};
    if (!f->module.size)
        sl_minidump_put_unloaded(&t->walked->dump, f->instruction, &unloaded);
    /* sl_minidump_put_unloaded() writes `|` between offsets: here it separates fields */
    for (size_t i = 0; i < unloaded.size; i++)
        unloaded.data[i] = unloaded.data[i] == '|' ? ',' : unloaded.data[i];
    put_field(t->out, f->module.size ? f->module : sl_buf_view(&unloaded), '|');
    t->out->failed |= unloaded.failed;
    sl_buf_free(&unloaded);
}

/* Prints a line for each frame of a thread, whose number in the output is `number`. A frame outside of all modules gets no function name,
 * as in Breakpad. */
static void machine_thread(const struct dump_texts *t, size_t thread, size_t number)
{
    for (size_t i = 0; i < t->answer->threads[thread].frame_count; i++) {
        struct text_frame f = text_frame(t, thread, i);
        sl_buf_number(t->out, number, '|');
        sl_buf_number(t->out, i, '|');
        put_machine_module(t, &f);
        put_field(t->out, f.module.size ? f.name : SL_STR(""), '|');
        put_field(t->out, has_line(&f) ? f.frame->abs_path : SL_STR(""), '|');
        if (has_line(&f))
            sl_buf_number(t->out, f.frame->line.value, '|');
        else
            sl_buf_u8(t->out, '|');
        sl_buf_str(t->out, SL_STR("0x"));
        sl_buf_number_hex(t->out, text_offset(&f), '\n');
    }
}

/* True if the options select the thread. */
static bool is_selected(const struct answer_style *style, size_t thread)
{
    return style->thread == ALL_THREADS || (size_t)style->thread == thread;
}

/* Prints the selected threads with `put`, the one with index `crashed` first (negative: no thread has crashed). The thread that wrote the
 * dump is left out, and the threads after it are numbered as if it did not exist, as Breakpad does. */
static void put_threads(const struct dump_texts *t, int64_t crashed,
                        void (*put)(const struct dump_texts *t, size_t thread, size_t number))
{
    if (crashed >= 0 && is_selected(t->style, (size_t)crashed))
        put(t, (size_t)crashed, dump_thread_number(t->walked, (size_t)crashed));
    size_t number = 0;
    for (size_t i = 0; i < t->answer->thread_count; i++) {
        if (dump_thread_is_writer(t->walked, i))
            continue;
        if ((int64_t)i != crashed && is_selected(t->style, i))
            put(t, i, number);
        number++;
    }
}

/* Prints the answer as lines of fields separated by '|', as minidump_stackwalk -m does (answer_print). False when out of memory. */
bool answer_print_machine(const struct symbolicated_answer *answer, const struct answer_style *style,
                          struct sl_buf *out)
{
    struct dump_texts t = {answer, style, style->walked, out};
    int64_t crashed = answer_requesting_thread(answer);
    machine_head(&t, crashed);
    for (size_t i = 0; i < t.walked->dump.crash.module_count; i++)
        machine_module(&t, &t.walked->dump.crash.modules[i]);
    sl_buf_u8(out, '\n');
    put_threads(&t, crashed, machine_thread);
    return !out->failed;
}

/* ---- stackwalk ---- */

/* Prints the parts of the GPU's description "version|vendor|renderer", each on its line; UNKNOWN if it is empty. The caller has printed
 * the label "GPU: ", so the lines after the first are indented by its width. */
static void put_graphics(struct sl_str graphics, struct sl_buf *out)
{
    if (!graphics.size)
        sl_buf_cstr(out, "UNKNOWN\n");
    for (bool is_first = true; graphics.size; is_first = false) {
        sl_buf_cstr(out, is_first ? "" : "     ");
        output_put_safe(out, cut_part(&graphics));
        sl_buf_u8(out, '\n');
    }
    sl_buf_u8(out, '\n');
}

/* Prints the facts before the stacks: OS, CPU, GPU, the crash, the uptime. */
static void put_head(const struct dump_texts *t)
{
    const struct sl_minidump *dump = &t->walked->dump;
    struct sl_buf *out = t->out;
    uint64_t seconds;
    sl_buf_printf(out, "Operating system: %s\n", dump_os_name(dump));
    if (dump->os_text.size)
        sl_buf_printf(out, "                  " SL_STR_FMT "\n", SL_STR_ARG(dump->os_text));
    sl_buf_printf(out, "CPU: %s\n", dump_cpu_name(dump));
    if (dump->cpu_text.size)
        sl_buf_printf(out, "     " SL_STR_FMT "\n", SL_STR_ARG(dump->cpu_text));
    sl_buf_printf(out, "     %u CPU%s\n\nGPU: ", dump->cpu_count, dump->cpu_count == 1 ? "" : "s");
    put_graphics(get_graphics(dump), out);
    if (dump->crash.crashed)
        sl_buf_printf(out, "Crash reason:  " SL_STR_FMT "\nCrash address: 0x%llx\n", SL_STR_ARG(dump_reason(t->answer)),
                      (unsigned long long)dump->crash_address);
    else
        sl_buf_cstr(out, "No crash\n");
    if (t->answer->assertion.size) {
        sl_buf_cstr(out, "Assertion: ");
        output_put_safe(out, t->answer->assertion);
        sl_buf_u8(out, '\n');
    }
    if (dump_uptime(dump, &seconds))
        sl_buf_printf(out, "Process uptime: %llu seconds\n", (unsigned long long)seconds);
    else
        sl_buf_cstr(out, "Process uptime: not available\n");
}

/* Appends the registers in lines of at most 80 columns after a leading blank. An inlined call has none of its own: an empty line. Registers
 * whose value is only assumed are left out. */
static void put_registers(const struct dump_texts *t, const struct text_frame *f)
{
    const struct sl_registers *registers = frame_registers(t->walked, f->thread, f->frame);
    enum sl_cpu_family family = thread_family(t->walked, f->thread);
    int digits = sl_cpu_pointer_size(family) == 8 ? 16 : 8;
    size_t width = 0, each = 11 + (size_t)digits; /* 11: the blank, 5 columns of the name, " = 0x" */
    sl_buf_u8(t->out, ' ');
    for (const struct shown_register *r = shown_registers(family); registers && !f->is_inline && r->name; r++) {
        if (!((registers->valid & ~registers->assumed) >> r->number & 1))
            continue;
        if (width + each > 80) {
            sl_buf_cstr(t->out, "\n ");
            width = 0;
        }
        sl_buf_printf(t->out, " %5s = 0x%0*llx", r->name, digits, (unsigned long long)registers->value[r->number]);
        width += each;
    }
    sl_buf_u8(t->out, '\n');
}

/* Returns Breakpad's words for how the stack walk found the frame. */
static const char *found_by(const struct text_frame *f)
{
    static const struct {
        struct sl_str trust;
        const char *text;
    } texts[] = {
        {SL_STR("context"), "given as instruction pointer in context"},
        {SL_STR("prewalked"), "recovered by external stack walker"},
        {SL_STR("cfi"), "call frame info"},
        {SL_STR("cfiscan"), "call frame info with scanning"},
        {SL_STR("fp"), "previous frame's frame pointer"},
        {SL_STR("scan"), "stack scanning"},
    };
    if (f->is_inline)
        return "inline record";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (sl_str_equal(f->frame->trust, texts[i].trust))
            return texts[i].text;
    return "unknown";
}

/* Prints the unloaded modules that once held the frame's address, after a space; nothing if there are none. */
static void put_unloaded(const struct dump_texts *t, const struct text_frame *f)
{
    struct sl_buf unloaded = {0};
    sl_minidump_put_unloaded(&t->walked->dump, f->instruction, &unloaded);
    sl_buf_cstr(t->out, unloaded.size ? " " : "");
    output_put_safe(t->out, sl_buf_view(&unloaded));
    t->out->failed |= unloaded.failed;
    sl_buf_free(&unloaded);
}

/* Prints the first line of frame `number`: "0  app!main [main.c : 12 + 0x5]", with the offset from the begin of that source line. Without a
 * line it is "0  app!main + 0x25", from the begin of the function or else the module; outside of all modules, only the address. */
static void put_frame_title(const struct dump_texts *t, const struct text_frame *f, size_t number)
{
    struct sl_buf *out = t->out;
    unsigned long long offset = text_offset(f);
    sl_buf_printf(out, "%2zu  ", number);
    output_put_safe(out, f->module);
    if (f->module.size && f->name.size) {
        sl_buf_u8(out, '!');
        output_put_safe(out, f->name);
    }
    if (f->module.size && has_line(f)) {
        sl_buf_cstr(out, " [");
        output_put_safe(out, path_file_name(f->frame->abs_path));
        sl_buf_printf(out, " : %llu + 0x%llx]", (unsigned long long)f->frame->line.value, offset);
    } else {
        sl_buf_printf(out, f->module.size ? " + 0x%llx" : "0x%llx", offset);
        if (!f->module.size)
            put_unloaded(t, f);
    }
    sl_buf_u8(out, '\n');
}

/* Gets a frame's stack pointer; false if it is unknown. */
static bool stack_pointer(const struct dump_texts *t, size_t thread, const struct answer_frame *frame,
                          uint64_t *pointer)
{
    struct sl_walk_numbers numbers;
    const struct sl_registers *registers = frame_registers(t->walked, thread, frame);
    if (!registers || !sl_walk_numbers(thread_family(t->walked, thread), &numbers) ||
        !(registers->valid >> numbers.sp & 1))
        return false;
    *pointer = registers->value[numbers.sp];
    return true;
}

/* Appends the stack memory from the frame's stack pointer to that of its caller. Inlined calls are skipped: they share the stack frame of
 * the function they are inlined in. */
static void put_frame_stack(const struct dump_texts *t, size_t thread, size_t index)
{
    const struct answer_thread *trace = &t->answer->threads[thread];
    size_t caller = index + 1;
    uint64_t begin, end;
    while (caller < trace->frame_count && answer_frame_is_inline(trace, caller))
        caller++;
    if (caller < trace->frame_count && stack_pointer(t, thread, &trace->frames[index], &begin) &&
        stack_pointer(t, thread, &trace->frames[caller], &end))
        stack_put_contents(t->walked, thread, begin, end, t->out);
}

/* Prints each word of the thread's stack memory, and the stack pointer of its innermost frame if it is known. */
static void put_stack_words(const struct dump_texts *t, size_t thread)
{
    const struct answer_thread *trace = &t->answer->threads[thread];
    uint64_t pointer = 0;
    bool known = trace->frame_count && stack_pointer(t, thread, &trace->frames[0], &pointer);
    stack_put_pointers(t->walked, thread, known, pointer, t->out);
}

/* Prints a thread: its title with `number`, and each frame with its registers and how it was found (neither with --brief). Frames that
 * repeat because of a recursion are replaced by one line (answer_fold_cycle). With --stack-pointers, prints the words of the thread's stack
 * instead of frames. */
static void put_stack(const struct dump_texts *t, size_t thread, size_t number)
{
    const struct answer_thread *trace = &t->answer->threads[thread];
    const char *what = !trace->requesting              ? ""
                       : t->walked->dump.crash.crashed ? " (crashed)"
                                                       : " (requested dump, did not crash)";
    sl_buf_printf(t->out, "%sThread %zu%s\n", t->style->brief ? "" : "\n", number, what);
    if (t->style->stack_pointers) {
        put_stack_words(t, thread);
        return;
    }
    if (!trace->frame_count)
        sl_buf_cstr(t->out, " <no frames>\n");
    for (size_t i = 0, folded; i < trace->frame_count; i += folded ? folded : 1) {
        if ((folded = answer_fold_cycle(trace, i, t->out)))
            continue;
        struct text_frame f = text_frame(t, thread, i);
        put_frame_title(t, &f, i);
        if (t->style->brief)
            continue;
        put_registers(t, &f);
        sl_buf_printf(t->out, "    Found by: %s\n", found_by(&f));
        if (t->style->stack_contents && !f.is_inline)
            put_frame_stack(t, thread, i);
    }
}

/* Prints a loaded module: addresses, file, version. Warns if its symbols are missing or corrupt, but not if no frame needed them
 * ("unused"). `*next` is the position in the list of modules of the answer, at first 0. */
static void put_loaded(const struct dump_texts *t, const struct sl_crash_module *module, size_t *next)
{
    const struct answer_module *known = dump_find_module_answer(t->answer, module, next);
    char id[SL_DEBUG_ID_TEXT];
    struct sl_str status = known ? known->debug_status : SL_STR("unused");
    format_module_id(module, id);
    sl_buf_printf(t->out, "0x%08llx - 0x%08llx  ", (unsigned long long)module->address,
                  (unsigned long long)(module->address + module->size - 1));
    output_put_safe(t->out, path_file_name(module->code_file));
    sl_buf_cstr(t->out, "  ");
    output_put_safe(t->out, module->version.size ? module->version : SL_STR("???"));
    sl_buf_cstr(t->out, is_main(&t->walked->dump, module) ? "  (main)" : "");
    if (!sl_str_equal(status, SL_STR("unused")) && !sl_str_equal(status, SL_STR("found"))) {
        sl_buf_printf(t->out, "  (WARNING: %s, ",
                      sl_str_equal(status, SL_STR("malformed")) ? "Corrupt symbols" : "No symbols");
        output_put_safe(t->out, path_file_name(module->debug_file));
        sl_buf_printf(t->out, ", %s)", id);
    }
    sl_buf_u8(t->out, '\n');
}

/* Prints the answer as minidump_stackwalk does (answer_print): system and crash, stacks, modules; with --brief only the stacks. False when
 * out of memory. */
bool answer_print_stackwalk(const struct symbolicated_answer *answer, const struct answer_style *style,
                            struct sl_buf *out)
{
    struct dump_texts t = {answer, style, style->walked, out};
    if (!style->brief)
        put_head(&t);
    put_threads(&t, answer_requesting_thread(answer), put_stack);
    if (style->brief)
        return !out->failed;
    sl_buf_cstr(out, "\nLoaded modules:\n");
    for (size_t i = 0, next = 0; i < t.walked->dump.crash.module_count; i++)
        put_loaded(&t, &t.walked->dump.crash.modules[i], &next);
    return !out->failed;
}
