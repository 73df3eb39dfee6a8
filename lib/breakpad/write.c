/* Sorts functions and symbols, merges them, and writes the text of the file. */
#include "breakpad/impl.h"

#include "base/order.h"
#include "object/nesting.h"

#include <stdlib.h>

enum { FLUSH_SIZE = 64 * 1024 }; /* bytes of text that are collected before they are passed to the output */
static const uint32_t unnumbered = UINT32_MAX; /* of a file or inlined function that no record has used yet */

struct public
{ /* a PUBLIC record */
    uint64_t address;
    struct sl_str name;
    uint32_t parameters;
    bool multiple;
};

struct text_writer {
    struct sl_breakpad_writer *w;
    const struct sl_breakpad_output *output;
    struct sl_buf out;
    struct public *publics;
    size_t public_count;
    /* From ids of the writer's files and names to the numbers of FILE and INLINE_ORIGIN records, and back. */
    uint32_t *files, *origins;
    uint32_t *file_order, *origin_order;
    uint32_t file_count, origin_count;
    bool has_nameless; /* some line or inlined call has no file */
    bool failed, stopped;
};

/* ---- order ---- */

SL_ORDER_BY(breakpad_write_by_start, struct breakpad_record, address, order)

SL_ORDER_BY(breakpad_write_by_address, struct breakpad_symbol, address, order)

/* qsort() comparison: by range, then in the order of the input. */
static int by_range(const void *left, const void *right)
{
    const struct breakpad_record *a = left, *b = right;
    if (a->address == b->address && a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return breakpad_write_by_start(left, right);
}

/* Of several functions with equal ranges keeps the one that was read last, and sorts the records by address. The one that stays is marked
 * `multiple` if the names differ. */
static void merge_equal_ranges(struct sl_breakpad_writer *w)
{
    size_t kept = 0;
    if (!w->record_count)
        return;
    qsort(w->records, w->record_count, sizeof *w->records, by_range);
    for (size_t i = 0; i < w->record_count; i++) {
        struct breakpad_record *now = &w->records[i], *last = kept ? &w->records[kept - 1] : NULL;
        if (last && last->address == now->address && last->size == now->size) {
            now->multiple = last->multiple || last->name != now->name;
            *last = *now;
        } else {
            w->records[kept++] = *now;
        }
    }
    w->record_count = kept;
    qsort(w->records, w->record_count, sizeof *w->records, breakpad_write_by_start);
}

/* Sorts functions (w->records) and symbols by address, and adds unnamed functions for code that has neither. breakpad_add_unnamed needs
 * both lists sorted and appends to the functions, so these are sorted again if it added any. */
static void order_records(struct sl_breakpad_writer *w)
{
    size_t named;
    merge_equal_ranges(w); /* also sorts the functions */
    if (w->symbol_count)
        qsort(w->symbols, w->symbol_count, sizeof *w->symbols, breakpad_write_by_address);
    named = w->record_count;
    breakpad_add_unnamed(w);
    if (w->record_count > named)
        qsort(w->records, w->record_count, sizeof *w->records, breakpad_write_by_start);
}

/* True if two names are equal when demangled. The mangled names may differ: a C++ constructor has several (C1, C2). */
static bool same_when_demangled(struct text_writer *t, struct sl_str a, struct sl_str b)
{
    struct sl_buf *out = &t->w->scratch;
    if (sl_str_equal(a, b))
        return true;
    sl_buf_clear(out); /* gets both names, one after the other */
    breakpad_render_name(out, a, SL_LANG_UNKNOWN);
    size_t size = out->size;
    breakpad_render_name(out, b, SL_LANG_UNKNOWN);
    return out->size == 2 * size && memcmp(out->data, out->data + size, size) == 0;
}

/* Merges the symbols at one address: the name is that of the first, the parameter size the first that is not 0. The result is marked
 * `multiple` if one of them is or their names differ. */
static struct public merge_symbols(struct text_writer *t, const struct breakpad_symbol *symbols, size_t count)
{
    struct public all = {symbols->address, symbols->name, 0, false};
    for (size_t i = 0; i < count; i++) {
        all.parameters = all.parameters ? all.parameters : symbols[i].parameters;
        all.multiple = all.multiple || symbols[i].multiple || !same_when_demangled(t, symbols[i].name, all.name);
    }
    return all;
}

/* Uses the symbols at one address for the functions that begin there: for a missing parameter size and the mark `m`, and with the option
 * prefer_public for the name. Without functions it makes a PUBLIC record. */
static void use_symbols(struct text_writer *t, const struct breakpad_symbol *symbols, size_t count,
                        struct breakpad_record *functions, size_t function_count)
{
    struct sl_breakpad_writer *w = t->w;
    struct public public = merge_symbols(t, symbols, count);
    for (size_t i = 0; i < function_count; i++) {
        functions[i].multiple = functions[i].multiple || public.multiple;
        if (!functions[i].parameters)
            functions[i].parameters = public.parameters;
    }
    if (function_count && !w->options->prefer_public)
        return;
    sl_buf_clear(&w->scratch);
    breakpad_render_name(&w->scratch, public.name, SL_LANG_UNKNOWN);
    uint32_t name = breakpad_text_number(&w->names, &w->arena, sl_buf_view(&w->scratch), &t->failed);
    for (size_t i = 0; i < function_count; i++)
        functions[i].name = name;
    if (t->failed || function_count)
        return;
    public.name = w->names.items[name];
    t->publics[t->public_count++] = public;
}

struct symbol_merge {
    struct text_writer *text;
    struct sl_nesting nesting; /* the symbols around the current address; a tag is an index in w->symbols */
    size_t next;               /* the first record (function) at or after the address */
    uint64_t covered;          /* the highest end of a function that begins before the address */
};

/* Moves p->next (a function) to `address`, which must not be less than the last one, and p->covered to the highest end of the functions
 * before it. Returns the number of records (functions) that begin there; the first is p->next. */
static size_t records_at(struct symbol_merge *p, uint64_t address)
{
    const struct sl_breakpad_writer *w = p->text->w;
    for (; p->next < w->record_count && w->records[p->next].address < address; p->next++)
        if (w->records[p->next].address + w->records[p->next].size > p->covered)
            p->covered = w->records[p->next].address + w->records[p->next].size;
    size_t found = p->next;
    while (found < w->record_count && w->records[found].address == address)
        found++;
    return found - p->next;
}

/* For each nested symbol that ends before `limit`, adds a PUBLIC record at its end for the symbol around it; not where a function begins or
 * has code. */
static void resume_symbols(struct symbol_merge *p, uint64_t limit)
{
    const struct sl_breakpad_writer *w = p->text->w;
    /* sl_nesting_at() removes the symbols that have ended at an address (at 0: none) and returns the innermost of the others */
    for (const struct sl_nested *inner = sl_nesting_at(&p->nesting, 0);
         inner && inner->end < limit && !p->text->failed;) {
        uint64_t end = inner->end;
        inner = sl_nesting_at(&p->nesting, end);
        if (!inner || records_at(p, end) || end < p->covered)
            continue;
        struct breakpad_symbol rest = w->symbols[inner->tag]; /* tag: the index of the symbol */
        rest.address = end;
        rest.parameters = 0; /* it is not the symbol's entry */
        use_symbols(p->text, &rest, 1, NULL, 0);
    }
}

/* Uses symbols for the functions at their addresses, or makes PUBLIC records of them. Symbols within a function are dropped. */
static void merge_into_records(struct text_writer *t)
{
    struct sl_breakpad_writer *w = t->w;
    struct symbol_merge p = {.text = t, .nesting.account.budget = w->account.budget};
    for (size_t i = 0, end; i < w->symbol_count && !t->failed; i = end) {
        uint64_t address = w->symbols[i].address;
        for (end = i + 1; end < w->symbol_count && w->symbols[end].address == address;)
            end++;
        resume_symbols(&p, address);
        size_t found = records_at(&p, address);
        if (found || address >= p.covered)
            use_symbols(t, &w->symbols[i], end - i, w->records + p.next, found);
        sl_nesting_at(&p.nesting, address);          /* removes the symbols that have ended */
        for (size_t j = end; j-- > i && !t->failed;) /* opened last, the first one of the file is the innermost */
            if (w->symbols[j].size && w->symbols[j].size < UINT64_MAX - address)
                t->failed = !sl_nesting_open(&p.nesting, address + w->symbols[j].size, (uint32_t)j);
    }
    resume_symbols(&p, UINT64_MAX);
    sl_nesting_free(&p.nesting);
}

/* ---- numbers ---- */

/* Gives `id` the next number when it is used for the first time: numbers[id] becomes *count, order[*count] becomes `id`. */
static void breakpad_write_use(uint32_t *numbers, uint32_t *order, uint32_t *count, uint32_t id)
{
    if (id == SL_NO_FILE || numbers[id] != unnumbered)
        return;
    order[*count] = id;
    numbers[id] = (*count)++;
}

/* Gives a file its number when it is used for the first time. */
static void use_file(struct text_writer *t, uint32_t id)
{
    t->has_nameless = t->has_nameless || id == SL_NO_FILE;
    breakpad_write_use(t->files, t->file_order, &t->file_count, id);
}

/* Numbers the files and inlined functions of a record in the order of the text: first the inlined calls, then the lines. The record has the
 * lines first, so a second reader (`calls`) skips these. */
static void use_record(struct text_writer *t, const struct breakpad_record *record)
{
    struct sl_reader r = sl_reader((struct sl_bytes){record->data, record->data_size}, false);
    int64_t file = 0;
    uint64_t lines = sl_read_uleb(&r);
    struct sl_reader calls = r;
    for (uint64_t i = 0; i < lines; i++) /* address, size, line, file */
        sl_read_sleb(&calls), sl_read_uleb(&calls), sl_read_uleb(&calls), sl_read_sleb(&calls);
    for (uint64_t count = sl_read_uleb(&calls); count; count--) {
        sl_read_uleb(&calls), sl_read_uleb(&calls); /* depth, line of the call */
        use_file(t, (uint32_t)sl_read_uleb(&calls));
        breakpad_write_use(t->origins, t->origin_order, &t->origin_count, (uint32_t)sl_read_uleb(&calls));
        for (uint64_t ranges = sl_read_uleb(&calls); ranges; ranges--)
            sl_read_sleb(&calls), sl_read_uleb(&calls);
    }
    for (uint64_t i = 0; i < lines; i++) {
        sl_read_sleb(&r), sl_read_uleb(&r), sl_read_uleb(&r);
        file += sl_read_sleb(&r);
        use_file(t, (uint32_t)file);
    }
}

/* Returns an array of `count` numbers that are all `unnumbered`; NULL, with t->failed set, when out of memory. */
static uint32_t *numbers_new(struct text_writer *t, size_t count)
{
    uint32_t *numbers = sl_arena_alloc(&t->w->arena, (count + 1) * sizeof *numbers, _Alignof(uint32_t));
    t->failed = t->failed || !numbers;
    for (size_t i = 0; numbers && i < count; i++)
        numbers[i] = unnumbered;
    return numbers;
}

/* Numbers files and inlined functions in the order in which the records, already sorted, use them. */
static void breakpad_write_number(struct text_writer *t)
{
    const struct sl_breakpad_writer *w = t->w;
    t->files = numbers_new(t, w->files.count);
    t->file_order = numbers_new(t, w->files.count);
    t->origins = numbers_new(t, w->names.count);
    t->origin_order = numbers_new(t, w->names.count);
    for (size_t i = 0; i < w->record_count && !t->failed; i++)
        use_record(t, &w->records[i]);
}

/* ---- text ---- */

/* Passes the collected text to the output if it has at least `least` bytes. Sets t->stopped if the output wants no more. */
static void breakpad_write_flush(struct text_writer *t, size_t least)
{
    if (t->out.size < least)
        return;
    t->stopped = t->stopped || (t->out.size && !t->output->write(t->output->arg, sl_buf_view(&t->out)));
    sl_buf_clear(&t->out);
}

static void put_text(struct sl_buf *out, struct sl_str text)
{
    sl_buf_str(out, text);
    sl_buf_u8(out, '\n');
}

/* Returns the number of a file in the text. Lines without a file (SL_NO_FILE) get the number after the last, for which write_files() writes
 * a FILE record `<unknown>`: readers treat a number without a FILE record as an error. */
static uint32_t file_number(const struct text_writer *t, uint64_t id)
{
    return id >= t->w->files.count ? t->file_count : t->files[id];
}

/* Writes the MODULE record and the INFO records. */
static void write_header(struct text_writer *t)
{
    const struct sl_breakpad_options *o = t->w->options;
    sl_buf_cstr(&t->out, "MODULE ");
    breakpad_render_text(&t->out, o->os);
    sl_buf_u8(&t->out, ' ');
    breakpad_render_text(&t->out, o->arch);
    sl_buf_u8(&t->out, ' ');
    breakpad_render_text(&t->out, o->id);
    sl_buf_u8(&t->out, ' ');
    breakpad_render_text(&t->out, o->name);
    sl_buf_u8(&t->out, '\n');
    for (size_t i = 0; i < o->info_count; i++) {
        sl_buf_cstr(&t->out, "INFO ");
        breakpad_render_text(&t->out, o->infos[i]);
        sl_buf_u8(&t->out, '\n');
    }
}

/* Writes the FILE records, the last one for `<unknown>` if a line or inlined call has no file, and the INLINE_ORIGIN records. */
static void write_files(struct text_writer *t)
{
    const struct sl_breakpad_options *o = t->w->options;
    for (uint32_t i = 0; i < t->file_count && !t->stopped; i++) {
        struct sl_str path = t->w->files.items[t->file_order[i]];
        sl_buf_cstr(&t->out, "FILE ");
        sl_buf_number(&t->out, i, ' ');
        breakpad_render_text(&t->out, o->map_path ? o->map_path(o->map_arg, path) : path);
        sl_buf_u8(&t->out, '\n');
        breakpad_write_flush(t, FLUSH_SIZE);
    }
    if (t->has_nameless) {
        sl_buf_cstr(&t->out, "FILE ");
        sl_buf_number(&t->out, t->file_count, ' ');
        put_text(&t->out, SL_STR("<unknown>"));
    }
    for (uint32_t i = 0; i < t->origin_count && !t->stopped; i++) {
        sl_buf_cstr(&t->out, "INLINE_ORIGIN ");
        sl_buf_number(&t->out, i, ' ');
        put_text(&t->out, t->w->names.items[t->origin_order[i]]);
        breakpad_write_flush(t, FLUSH_SIZE);
    }
}

/* Writes the INLINE records of a function that begins at `start`: depth, line and file of the call, the function called, and its ranges. */
static void write_calls(struct text_writer *t, struct sl_reader *r, uint64_t start)
{
    for (uint64_t count = sl_read_uleb(r); count; count--) {
        uint64_t at = start;
        sl_buf_cstr(&t->out, "INLINE ");
        sl_buf_number(&t->out, sl_read_uleb(r), ' ');
        sl_buf_number(&t->out, sl_read_uleb(r), ' ');
        sl_buf_number(&t->out, file_number(t, sl_read_uleb(r)), ' ');
        sl_buf_number(&t->out, t->origins[sl_read_uleb(r)], ' ');
        for (uint64_t ranges = sl_read_uleb(r); ranges; ranges--) {
            at += (uint64_t)sl_read_sleb(r);
            uint64_t size = sl_read_uleb(r);
            sl_buf_number_hex(&t->out, at + t->w->options->base, ' ');
            sl_buf_number_hex(&t->out, size, ranges > 1 ? ' ' : '\n');
            at += size;
        }
    }
}

/* Writes the FUNC record of a function, then its INLINE records, then its lines. In `f->data` the lines precede the inlined calls, so a
 * second reader (`calls`) skips the lines. */
static void write_function(struct text_writer *t, const struct breakpad_record *f)
{
    struct sl_reader r = sl_reader((struct sl_bytes){f->data, f->data_size}, false);
    uint64_t lines = sl_read_uleb(&r), at = f->address;
    struct sl_reader calls = r;
    int64_t file = 0;
    sl_buf_cstr(&t->out, f->multiple && t->w->options->multiple ? "FUNC m " : "FUNC ");
    sl_buf_number_hex(&t->out, f->address + t->w->options->base, ' ');
    sl_buf_number_hex(&t->out, f->size, ' ');
    sl_buf_number_hex(&t->out, f->parameters, ' ');
    put_text(&t->out, t->w->names.items[f->name]);
    for (uint64_t i = 0; i < lines; i++) /* address, size, line, file */
        sl_read_sleb(&calls), sl_read_uleb(&calls), sl_read_uleb(&calls), sl_read_sleb(&calls);
    write_calls(t, &calls, f->address);
    for (uint64_t i = 0; i < lines; i++) {
        at += (uint64_t)sl_read_sleb(&r);
        uint64_t size = sl_read_uleb(&r), line = sl_read_uleb(&r);
        file += sl_read_sleb(&r);
        sl_buf_number_hex(&t->out, at + t->w->options->base, ' ');
        sl_buf_number_hex(&t->out, size, ' ');
        sl_buf_number(&t->out, line, ' ');
        sl_buf_number(&t->out, file_number(t, (uint64_t)file), '\n');
        at += size;
        breakpad_write_flush(t, FLUSH_SIZE);
    }
}

/* Writes a PUBLIC record. */
static void write_public(struct text_writer *t, const struct public *p)
{
    sl_buf_cstr(&t->out, p->multiple && t->w->options->multiple ? "PUBLIC m " : "PUBLIC ");
    sl_buf_number_hex(&t->out, p->address + t->w->options->base, ' ');
    sl_buf_number_hex(&t->out, p->parameters, ' ');
    put_text(&t->out, p->name);
}

/* Writes functions and PUBLIC records by address; at equal addresses the function first. */
static void write_records(struct text_writer *t)
{
    const struct sl_breakpad_writer *w = t->w;
    size_t function = 0, public = 0;
    while ((function < w->record_count || public < t->public_count) && !t->stopped) {
        bool next = function < w->record_count &&
                    (public >= t->public_count || w->records[function].address <= t->publics[public].address);
        if (next)
            write_function(t, &w->records[function++]);
        else
            write_public(t, &t->publics[public ++]);
        breakpad_write_flush(t, FLUSH_SIZE);
    }
}

enum sl_code sl_breakpad_writer_finish(struct sl_breakpad_writer *w, const struct sl_breakpad_output *output,
                                       struct sl_error *error)
{
    struct text_writer t = {.w = w, .output = output, .failed = w->failed};
    if (!w->options->header_only && !t.failed) {
        /* a symbol makes at most two: at its begin, and at its end one that resumes the symbol around it */
        t.publics = SL_ARENA_ARRAY(&w->arena, struct public, 2 * w->symbol_count + 1);
        order_records(w);
        t.failed = !t.publics || w->failed;
        if (!t.failed)
            merge_into_records(&t);
        breakpad_write_number(&t); /* numbers the files; writes nothing */
    }
    if (!t.failed) {
        write_header(&t);
        write_files(&t);
        if (!w->options->header_only)
            write_records(&t);
        breakpad_write_flush(&t, 0);
    }
    t.failed = t.failed || t.out.failed || w->scratch.failed;
    sl_buf_free(&t.out);
    if (t.failed)
        return sl_budget_fail(w->options->budget, error);
    return t.stopped ? sl_fail(error, SL_CANCELLED, "the symbol file is incomplete: the reader of the output closed it")
                     : SL_OK;
}
