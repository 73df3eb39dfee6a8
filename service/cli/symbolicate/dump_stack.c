/* Stacks of minidumps as memory: what lies in them, and the words of them that point into functions. */
#include "cli/symbolicate/dump_print.h"

#include <stdlib.h>

#include "base/json.h"
#include "cli/symbolicate/names.h"

/* ---- words ---- */

static unsigned word_size(const struct walked_dump *w, size_t thread)
{
    return sl_cpu_pointer_size(thread_family(w, thread));
}

/* The word at an address of the thread's stack; false when not all of it is there. */
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

/* The words that point into modules, each once. */
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
    w->names = sl_arena_array_keep(&array);
    if (!good || !w->names)
        return false;
    if (count)
        qsort(w->names, count, sizeof *w->names, stack_by_value);
    for (size_t i = 0; i < count; i++)
        if (!i || w->names[i].value != w->names[w->name_count - 1].value)
            w->names[w->name_count++] = w->names[i];
    return true;
}

static const struct stack_name *stack_name_of(const struct walked_dump *w, uint64_t word)
{
    const struct stack_name wanted = {.value = word};
    const struct stack_name *found =
        w->name_count ? bsearch(&wanted, w->names, w->name_count, sizeof wanted, stack_by_value) : NULL;
    return found && found->function.size ? found : NULL;
}

/* ---- their names ---- */

struct word_names {
    struct walked_dump *walked;
    struct sl_str *modules; /* of the dump's answer, as they are written */
    size_t module_count;
};

static bool list_modules(struct word_names *words, struct sl_str answer)
{
    static const struct sl_field fields[] = {
        SL_FIELD_EACH(false, word_names, modules, module_count, "modules", sl_fields_raw), SL_FIELDS_END};
    struct sl_json j = sl_json(answer, &words->walked->arena, false);
    return sl_json_read_object(&j, fields, words);
}

static void stack_put_module(void *arg, size_t index, struct sl_json_writer *w)
{
    sl_json_put_raw(w, ((const struct word_names *)arg)->modules[index]);
}

static void stack_address(void *arg, size_t index, uint32_t *module, uint64_t *address)
{
    *module = NAMES_ABSOLUTE;
    *address = ((const struct word_names *)arg)->walked->names[index].value;
}

static struct sl_str stack_text(struct sl_arena *arena, struct sl_str text)
{
    const char *copy = text.size ? sl_arena_strndup(arena, text.data, text.size) : NULL;
    return (struct sl_str){copy, copy ? text.size : 0};
}

/* The function that was not inlined is the one that a return leads to. */
static bool stack_take(void *arg, size_t index, const struct answer_frame *calls, size_t count)
{
    struct walked_dump *w = ((struct word_names *)arg)->walked;
    const struct answer_frame *outermost = &calls[count - 1];
    struct stack_name *name = &w->names[index];
    bool has_line = outermost->line.value && outermost->line_start.set && outermost->abs_path.size;
    name->function = stack_text(&w->arena, outermost->function.size ? outermost->function : outermost->symbol);
    if (has_line) {
        name->file = stack_text(&w->arena, path_file_name(outermost->abs_path));
        name->line = outermost->line.value;
        name->line_start = outermost->line_start.value;
    }
    return name->function.data != NULL;
}

enum sl_code stack_words_name(struct walked_dump *w, struct sl_str answer, const struct crash_file *file,
                              const struct config *config, struct sl_error *error)
{
    struct word_names words = {.walked = w};
    if (!collect_words(w) || !list_modules(&words, answer))
        return sl_fail(error, SL_BUSY, "out of memory");
    struct names_wanted wanted = {.arg = &words,
                                  .scope = file->scope,
                                  .module_count = words.module_count,
                                  .address_count = w->name_count,
                                  .put_module = stack_put_module,
                                  .address = stack_address,
                                  .take = stack_take,
                                  .line_starts = true};
    return names_look_up(&wanted, file->sources, file->source_count, config, error);
}

/* ---- as texts ---- */

static void put_hex(unsigned word_size, struct sl_buf *out, uint64_t value)
{
    sl_buf_printf(out, "%0*llx", 2 * (int)word_size, (unsigned long long)value);
}

/* A word, and the function that it points into. */
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
        output_put_safe(out, name->file);
        sl_buf_printf(out, " : %llu + 0x%llx]", (unsigned long long)name->line,
                      (unsigned long long)(word - name->line_start));
    }
    sl_buf_u8(out, '\n');
}

/* 16 bytes; blanks for those behind the end. */
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
    for (uint64_t at = begin; at < end; at += 16) {
        size_t left = end - at < 16 ? (size_t)(end - at) : 16;
        put_row(size_of_word, out, (struct sl_bytes){stack->bytes.data + (at - stack->address), left}, at);
    }
    sl_buf_cstr(out, "    Possible instruction pointers:\n");
    for (uint64_t at = begin; at < end && word_at(w, thread, at, &word); at += size_of_word) {
        const struct stack_name *name = stack_name_of(w, word);
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
        put_word(size_of_word, out, "", at, word, stack_name_of(w, word));
}
