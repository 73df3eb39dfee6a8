/* Data of a minidump that the service's answers lack: registers of callers, words of stack memory, and the names that Breakpad's tools use
 * for systems and processors. */
#include "cli/symbolicate/dump_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/symbolicate/names.h"
#include "elfcore/elfcore.h"

/* ---- the result of the walk ---- */

/* Returns the usual size of a call instruction; 0 for an unknown family. A caller's call is looked up that many bytes before its return
 * address. */
static unsigned call_size(enum sl_cpu_family family)
{
    struct sl_walk_numbers numbers;
    sl_walk_numbers(family, &numbers);
    return numbers.call;
}

bool walked_dump_copy(void *arg, const struct sl_minidump *dump)
{
    struct walked_dump *w = arg;
    size_t count = dump->crash.thread_count;
    /* + 1: no empty arrays */
    w->resume = SL_ARENA_ARRAY(&w->arena, uint64_t *, count + 1);
    w->instruction = SL_ARENA_ARRAY(&w->arena, uint64_t *, count + 1);
    w->registers = SL_ARENA_ARRAY(&w->arena, struct sl_registers *, count + 1);
    w->counts = SL_ARENA_ARRAY(&w->arena, size_t, count + 1);
    if (!w->resume || !w->instruction || !w->registers || !w->counts)
        return false;
    w->thread_count = count;
    /* the arrays are zeroed: a thread that was not walked keeps NULL and a count of 0 */
    for (size_t i = 0; i < count; i++) {
        const struct sl_crash_thread *thread = &dump->crash.threads[i];
        size_t size = thread->frame_count * sizeof(struct sl_registers);
        unsigned call = call_size(dump->threads[i].family); /* bytes from a return address back into its call */
        if (!dump->threads[i].is_walked || !thread->frame_count)
            continue;
        w->resume[i] = SL_ARENA_ARRAY(&w->arena, uint64_t, thread->frame_count);
        w->instruction[i] = SL_ARENA_ARRAY(&w->arena, uint64_t, thread->frame_count);
        if (!w->resume[i] || !w->instruction[i])
            return false;
        for (size_t k = 0; k < thread->frame_count; k++) {
            /* the innermost frame, and one that a signal interrupted, have no return address: nothing is subtracted */
            bool is_exact = !k || thread->frames[k].is_exact;
            w->resume[i][k] = thread->frames[k].address; /* for callers this is the return address */
            w->instruction[i][k] = thread->frames[k].address - (is_exact ? 0 : call);
        }
        w->counts[i] = thread->frame_count;
        if (!dump->threads[i].registers) /* the stack walk kept none */
            continue;
        if (!(w->registers[i] = sl_arena_alloc(&w->arena, size, _Alignof(struct sl_registers))))
            return false;
        memcpy(w->registers[i], dump->threads[i].registers, size);
    }
    return true;
}

enum sl_code walked_dump_read(struct walked_dump *w, struct sl_bytes bytes, struct sl_error *error)
{
    struct sl_elfcore core;
    enum sl_code code = w->is_core ? sl_elfcore_read(bytes, &w->arena, &core, error)
                                   : sl_minidump_read(bytes, &w->arena, &w->dump, error);
    if (code == SL_OK && w->is_core)
        w->dump = core.dump;
    /* 32-bit programs on 64-bit Windows: use the registers of the 32-bit code */
    if (code == SL_OK && !sl_minidump_enter_wow64(&w->dump, &w->arena))
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && w->wants_facts)
        code = sl_minidump_read_facts(&w->dump, &w->arena, &w->facts, error);
    if (code == SL_OK && w->wants_facts)
        code = sl_minidump_analyse(&w->dump, &w->arena, &w->analysis, error);
    return code;
}

void walked_dump_free(struct walked_dump *w)
{
    sl_arena_free(&w->arena);
}

enum sl_cpu_family thread_family(const struct walked_dump *w, size_t thread)
{
    return thread < w->dump.crash.thread_count ? w->dump.threads[thread].family : w->dump.family;
}

const struct sl_registers *frame_registers(const struct walked_dump *w, size_t thread, const struct answer_frame *frame)
{
    size_t index = (size_t)frame->index.value;
    bool known = thread < w->thread_count && index < w->counts[thread] && w->registers[thread];
    return known ? &w->registers[thread][index] : NULL;
}

/* True if the stack walk in this process found the frame. A dump can hold a stack that its writer walked: its frames ("prewalked") replace
 * those found here. */
static bool is_walked_here(const struct walked_dump *w, size_t thread, const struct answer_frame *frame)
{
    return thread < w->thread_count && (size_t)frame->index.value < w->counts[thread] &&
           !sl_str_equal(frame->trust, SL_STR("prewalked"));
}

uint64_t frame_resume(const struct walked_dump *w, size_t thread, const struct answer_frame *frame)
{
    return is_walked_here(w, thread, frame) ? w->resume[thread][frame->index.value] : frame->address.value;
}

uint64_t frame_instruction(const struct walked_dump *w, size_t thread, const struct answer_frame *frame)
{
    return is_walked_here(w, thread, frame) ? w->instruction[thread][frame->index.value] : frame->address.value;
}

bool dump_thread_is_writer(const struct walked_dump *w, size_t thread)
{
    return thread < w->dump.crash.thread_count && w->dump.threads[thread].is_writer;
}

size_t dump_thread_number(const struct walked_dump *w, size_t thread)
{
    size_t number = 0;
    for (size_t i = 0; i < thread; i++)
        number += !dump_thread_is_writer(w, i);
    return number;
}

/* ---- registers ---- */

static const struct shown_register x86_shown[] = {{"eip", 8}, {"esp", 4}, {"ebp", 5}, {"ebx", 3},
                                                  {"esi", 6}, {"edi", 7}, {"eax", 0}, {"ecx", 1},
                                                  {"edx", 2}, {"efl", 9}, {NULL, 0}};
static const struct shown_register amd64_shown[] = {
    {"rax", 0}, {"rdx", 1},  {"rcx", 2},  {"rbx", 3},  {"rsi", 4},  {"rdi", 5},  {"rbp", 6},  {"rsp", 7},  {"r8", 8},
    {"r9", 9},  {"r10", 10}, {"r11", 11}, {"r12", 12}, {"r13", 13}, {"r14", 14}, {"r15", 15}, {"rip", 16}, {NULL, 0}};
static const struct shown_register arm_shown[] = {
    {"r0", 0}, {"r1", 1},   {"r2", 2},   {"r3", 3},  {"r4", 4},  {"r5", 5},  {"r6", 6},  {"r7", 7}, {"r8", 8},
    {"r9", 9}, {"r10", 10}, {"r12", 12}, {"fp", 11}, {"sp", 13}, {"lr", 14}, {"pc", 15}, {NULL, 0}};
static const struct shown_register arm64_shown[] = {
    {"x0", 0},   {"x1", 1},   {"x2", 2},   {"x3", 3},   {"x4", 4},   {"x5", 5},   {"x6", 6},   {"x7", 7},   {"x8", 8},
    {"x9", 9},   {"x10", 10}, {"x11", 11}, {"x12", 12}, {"x13", 13}, {"x14", 14}, {"x15", 15}, {"x16", 16}, {"x17", 17},
    {"x18", 18}, {"x19", 19}, {"x20", 20}, {"x21", 21}, {"x22", 22}, {"x23", 23}, {"x24", 24}, {"x25", 25}, {"x26", 26},
    {"x27", 27}, {"x28", 28}, {"fp", 29},  {"lr", 30},  {"sp", 31},  {"pc", 32},  {NULL, 0}};
static const struct shown_register mips_shown[] = {{"gp", 28}, {"sp", 29}, {"fp", 30}, {"ra", 31}, {"pc", 34},
                                                   {"s0", 16}, {"s1", 17}, {"s2", 18}, {"s3", 19}, {"s4", 20},
                                                   {"s5", 21}, {"s6", 22}, {"s7", 23}, {NULL, 0}};
static const struct shown_register riscv_shown[] = {
    {"pc", 32},  {"ra", 1},  {"sp", 2},  {"gp", 3},  {"tp", 4},  {"t0", 5},  {"t1", 6},  {"t2", 7},  {"s0", 8},
    {"s1", 9},   {"a0", 10}, {"a1", 11}, {"a2", 12}, {"a3", 13}, {"a4", 14}, {"a5", 15}, {"a6", 16}, {"a7", 17},
    {"s2", 18},  {"s3", 19}, {"s4", 20}, {"s5", 21}, {"s6", 22}, {"s7", 23}, {"s8", 24}, {"s9", 25}, {"s10", 26},
    {"s11", 27}, {"t3", 28}, {"t4", 29}, {"t5", 30}, {"t6", 31}, {NULL, 0}};

/* Returns the registers that a frame shows on this processor, in their order; a NULL name ends the list. */
const struct shown_register *shown_registers(enum sl_cpu_family family)
{
    static const struct shown_register none[] = {{NULL, 0}};
    switch (family) {
    case SL_CPU_X86: return x86_shown;
    case SL_CPU_X86_64: return amd64_shown;
    case SL_CPU_ARM: return arm_shown;
    case SL_CPU_ARM64: return arm64_shown;
    case SL_CPU_MIPS:
    case SL_CPU_MIPS64: return mips_shown;
    case SL_CPU_RISCV:
    case SL_CPU_RISCV64: return riscv_shown;
    default: return none;
    }
}

/* ---- names ---- */

const char *dump_cpu_name(const struct sl_minidump *dump)
{
    return dump->family == SL_CPU_X86_64 ? "amd64" : sl_arch_name(dump->crash.system.arch);
}

/* Returns the OS as Breakpad's minidump_stackwalk names it. */
const char *dump_os_name(const struct sl_minidump *dump)
{
    static const char *const names[] = {
        [SL_MINIDUMP_OTHER] = "unknown",   [SL_MINIDUMP_WINDOWS] = "Windows NT",
        [SL_MINIDUMP_MACOS] = "Mac OS X",  [SL_MINIDUMP_IOS] = "iOS",
        [SL_MINIDUMP_LINUX] = "Linux",     [SL_MINIDUMP_SOLARIS] = "Solaris",
        [SL_MINIDUMP_ANDROID] = "Android", [SL_MINIDUMP_PS3] = "PS3",
        [SL_MINIDUMP_NACL] = "NaCl",
    };
    return names[dump->os];
}

struct sl_str dump_reason(const struct symbolicated_answer *answer)
{
    static const struct sl_str mark = SL_STR(" / 0x");
    struct sl_str reason = answer->reason;
    for (size_t i = reason.size; i-- > 0;)
        if (sl_str_starts((struct sl_str){reason.data + i, reason.size - i}, mark))
            return (struct sl_str){reason.data, i};
    return reason;
}

bool dump_uptime(const struct sl_minidump *dump, uint64_t *seconds)
{
    int64_t begin = dump->create_time, now = dump->crash.timestamp;
    *seconds = (uint64_t)(now - begin);
    return dump->has_create_time && dump->crash.has_timestamp && now >= begin;
}

/* True if the answer's module sorts before the dump's: the modules of both are sorted by address, then size. */
static bool is_before(const struct answer_module *known, const struct sl_crash_module *module)
{
    return known->address.value != module->address ? known->address.value < module->address
                                                   : known->size.value < module->size;
}

const struct answer_module *dump_find_module_answer(const struct symbolicated_answer *answer,
                                                    const struct sl_crash_module *module, size_t *next)
{
    while (*next < answer->module_count && is_before(&answer->modules[*next], module))
        (*next)++;
    const struct answer_module *known = *next < answer->module_count ? &answer->modules[*next] : NULL;
    if (!known || !known->address.set || known->address.value != module->address || known->size.value != module->size ||
        !sl_str_equal(known->code_file, module->code_file))
        return NULL;
    (*next)++;
    return known;
}

/* ---- stack memory, and the words in it that point into functions ---- */

/* Returns the size of a pointer on the thread's stack. */
static unsigned word_size(const struct walked_dump *w, size_t thread)
{
    return sl_cpu_pointer_size(thread_family(w, thread));
}

/* Reads the word at an address of the thread's stack; false unless the whole word is in the dump. */
static bool word_at(const struct walked_dump *w, size_t thread, uint64_t address, uint64_t *word)
{
    const struct sl_minidump_memory *stack = &w->dump.threads[thread].stack;
    unsigned size = word_size(w, thread);
    uint64_t at = address - stack->address;
    if (!size || address < stack->address || stack->bytes.size < size || at > stack->bytes.size - size)
        return false;
    *word = 0;
    for (unsigned i = 0; i < size; i++)
        *word = *word << 8 | stack->bytes.data[at + (w->dump.big_endian ? i : size - 1 - i)];
    return true;
}

static int stack_by_value(const void *a, const void *b)
{
    const struct stack_name *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* Fills `names` with the words of all stacks that point into modules, sorted and without duplicates. False when out of memory. */
static bool collect_words(struct walked_dump *w)
{
    struct sl_arena_array array = {.arena = &w->arena, .item = sizeof *w->names};
    bool good = true;
    for (size_t t = 0; t < w->dump.crash.thread_count; t++) {
        uint64_t at = w->dump.threads[t].stack.address, word;
        for (; good && word_at(w, t, at, &word); at += word_size(w, t)) {
            if (!sl_minidump_module_at(&w->dump, word))
                continue;
            struct stack_name *name = sl_arena_array_add(&array);
            if ((good = name != NULL))
                name->value = word;
        }
    }
    size_t count = array.count;
    w->names = sl_arena_array_finish(&array);
    if (!good || !w->names)
        return false;
    if (count)
        qsort(w->names, count, sizeof *w->names, stack_by_value);
    for (size_t i = 0; i < count; i++) /* keep the first of equal words */
        if (!i || w->names[i].value != w->names[w->name_count - 1].value)
            w->names[w->name_count++] = w->names[i];
    return true;
}

/* Returns the entry for a word of the stack; NULL if it points into no function whose name is known. */
static const struct stack_name *find_stack_name(const struct walked_dump *w, uint64_t word)
{
    const struct stack_name wanted = {.value = word};
    const struct stack_name *found =
        w->name_count ? bsearch(&wanted, w->names, w->name_count, sizeof wanted, stack_by_value) : NULL;
    return found && found->function.size ? found : NULL;
}

/* ---- names of the words ---- */

struct stack_word_names {
    struct walked_dump *walked;
    struct sl_str *modules; /* each element of `modules` of the dump's answer, as raw JSON */
    size_t module_count;
};

/* Reads the modules of the dump's answer, which each request for names sends again. False when out of memory. */
static bool list_modules(struct stack_word_names *words, struct sl_str answer)
{
    static const struct sl_field fields[] = {
        SL_FIELD_EACH(false, stack_word_names, modules, module_count, "modules", sl_fields_raw), SL_FIELDS_END};
    struct sl_json j = sl_json(answer, &words->walked->arena, false);
    return sl_json_read_object(&j, fields, words);
}

/* Writes a module of the request (names_wanted.put_module). */
static void stack_put_module(void *arg, size_t index, struct sl_json_writer *w)
{
    sl_json_put_raw(w, ((const struct stack_word_names *)arg)->modules[index]);
}

/* Returns the stack word to look up, an absolute address (names_wanted.address). */
static void stack_address(void *arg, size_t index, uint32_t *module, uint64_t *address)
{
    *module = NAMES_ABSOLUTE;
    *address = ((const struct stack_word_names *)arg)->walked->names[index].value;
}

/* Copies a text to the arena; empty when out of memory. */
static struct sl_str copy_text(struct sl_arena *arena, struct sl_str text)
{
    const char *copy = text.size ? sl_arena_strndup(arena, text.data, text.size) : NULL;
    return (struct sl_str){copy, copy ? text.size : 0};
}

/* Stores the function that a stack word points into (names_wanted.take). In a chain of inlined calls that is the outermost one, which was
 * compiled as a function. False when out of memory. */
static bool store_name(void *arg, size_t index, const struct answer_frame *calls, size_t count)
{
    struct walked_dump *w = ((struct stack_word_names *)arg)->walked;
    const struct answer_frame *outermost = &calls[count - 1];
    struct stack_name *name = &w->names[index];
    bool has_line = outermost->line.value && outermost->line_start.set && outermost->abs_path.size;
    /* one of both is not empty: names_find() passes only calls with names */
    name->function = copy_text(&w->arena, outermost->function.size ? outermost->function : outermost->symbol);
    if (has_line) {
        name->file = copy_text(&w->arena, path_file_name(outermost->abs_path));
        name->line = outermost->line.value;
        name->line_start = outermost->line_start.value;
    }
    return name->function.data != NULL;
}

enum sl_code stack_words_symbolicate(struct walked_dump *w, struct sl_str answer, const struct crash_file *file,
                                     const struct config *config, struct sl_error *error)
{
    struct stack_word_names words = {.walked = w};
    if (!collect_words(w) || !list_modules(&words, answer))
        return sl_fail(error, SL_BUSY, "out of memory");
    struct names_wanted wanted = {.arg = &words,
                                  .scope = file->scope,
                                  .module_count = words.module_count,
                                  .address_count = w->name_count,
                                  .put_module = stack_put_module,
                                  .address = stack_address,
                                  .take = store_name,
                                  .line_starts = true};
    return names_find(&wanted, file->sources, file->source_count, config, error);
}

/* ---- text ---- */

/* Appends the value in hex, padded to the width of a word. */
static void put_hex(unsigned word_size, struct sl_buf *out, uint64_t value)
{
    sl_buf_printf(out, "%0*llx", 2 * (int)word_size, (unsigned long long)value);
}

/* Appends the line of a stack word: its address, its value and the function that it points into (NULL: none). */
static void put_word(unsigned word_size, struct sl_buf *out, const char *indent, uint64_t address, uint64_t word,
                     const struct stack_name *name)
{
    sl_buf_printf(out, "%s *(0x", indent);
    put_hex(word_size, out, address);
    sl_buf_cstr(out, ") = 0x");
    put_hex(word_size, out, word);
    if (name) {
        sl_buf_cstr(out, " <");
        output_put_safe(out, name->function);
        sl_buf_cstr(out, "> [");
        output_put_safe(out, name->file); /* if unknown: empty, and line and line_start are 0 */
        sl_buf_printf(out, " : %llu + 0x%llx]", (unsigned long long)name->line,
                      (unsigned long long)(word - name->line_start));
    }
    sl_buf_u8(out, '\n');
}

/* Appends a hex dump line of up to 16 bytes: the address, the bytes, and these as ASCII. Blanks stand for missing bytes. */
static void put_row(unsigned word_size, struct sl_buf *out, struct sl_bytes bytes, uint64_t address)
{
    enum { ROW = 16 };
    sl_buf_cstr(out, "     ");
    put_hex(word_size, out, address);
    for (size_t i = 0; i < ROW; i++)
        if (i < bytes.size)
            sl_buf_printf(out, " %02x", bytes.data[i]);
        else
            sl_buf_cstr(out, "   ");
    sl_buf_cstr(out, "  ");
    for (size_t i = 0; i < ROW; i++)
        sl_buf_u8(out, i >= bytes.size ? ' ' : bytes.data[i] >= 0x20 && bytes.data[i] < 0x7f ? bytes.data[i] : '.');
    sl_buf_u8(out, '\n');
}

void stack_put_contents(const struct walked_dump *w, size_t thread, uint64_t begin, uint64_t end, struct sl_buf *out)
{
    const struct sl_minidump_memory *stack = &w->dump.threads[thread].stack;
    unsigned size_of_word = word_size(w, thread);
    uint64_t word, size = stack->bytes.size;
    if (!size || begin < stack->address || begin >= end || begin - stack->address >= size)
        return;
    if (end - stack->address > size)
        end = stack->address + size;
    sl_buf_cstr(out, "\n    Stack contents:\n");
    for (uint64_t at = begin; at < end; at += 16) { /* 16: the bytes of a row */
        size_t left = end - at < 16 ? (size_t)(end - at) : 16;
        put_row(size_of_word, out, (struct sl_bytes){stack->bytes.data + (at - stack->address), left}, at);
    }
    sl_buf_cstr(out, "    Possible instruction pointers:\n");
    for (uint64_t at = begin; at < end && word_at(w, thread, at, &word); at += size_of_word) {
        const struct stack_name *name = find_stack_name(w, word);
        if (name)
            put_word(size_of_word, out, "    ", at, word, name);
    }
    sl_buf_u8(out, '\n');
}

void stack_put_pointers(const struct walked_dump *w, size_t thread, bool has_pointer, uint64_t pointer,
                        struct sl_buf *out)
{
    const struct sl_minidump_memory *stack = &w->dump.threads[thread].stack;
    unsigned size_of_word = word_size(w, thread);
    uint64_t word, at = stack->address;
    if (!stack->bytes.size) {
        sl_buf_cstr(out, " <no stack>\n");
        return;
    }
    sl_buf_cstr(out, " Stack begin:   0x");
    put_hex(size_of_word, out, stack->address);
    sl_buf_cstr(out, "\n Stack end:     0x");
    put_hex(size_of_word, out, stack->address + stack->bytes.size);
    if (has_pointer) {
        sl_buf_cstr(out, "\n Stack pointer: 0x");
        put_hex(size_of_word, out, pointer);
    }
    sl_buf_u8(out, '\n');
    for (; word_at(w, thread, at, &word); at += size_of_word)
        put_word(size_of_word, out, "", at, word, find_stack_name(w, word));
}
