/* Addresses of frames of which the text has a symbol and an offset: "app!main+0x21" of WinDbg, "libc.so(abort+0x12b)" of glibc. The
 * symbol is looked for in the table of its module: by its name as it is stored there, and by its name for people, without
 * parameters. One name at several addresses (functions of several files, overloads) says nothing: these frames stay as they are. */
#include "api/text/work.h"

#include "demangle/demangle.h"

enum {
    MOST_WORK = 256 << 20, /* bytes of stored names that are compared with names for people, in a request */
    DEMANGLING = 4096,     /* a name that is demangled counts as so many bytes */
};

struct symbol_search { /* in one module */
    struct text_work *work;
    const struct native_module *module;
    struct sl_symcache_named *named; /* of the frames; `item` is an index of items */
    size_t count;
    uint64_t spent; /* of MOST_WORK */
};

static struct native_frame *frame_of(struct text_work *work, const struct text_item *item)
{
    return &work->native.traces[work->stacks[item->stack].trace].frames[item->frame];
}

/* ---- names for people ---- */

static struct sl_str last_part(struct sl_str name)
{
    for (size_t i = name.size; i > 1; i--)
        if (name.data[i - 1] == ':' && name.data[i - 2] == ':')
            return (struct sl_str){name.data + i, name.size - i};
    return name;
}

/* True if the name is `wanted`, or `wanted` with parameters. */
static bool is_name(struct sl_str name, struct sl_str wanted)
{
    return sl_str_starts(name, wanted) && (name.size == wanted.size || name.data[wanted.size] == '(');
}

/* Compares a function with the names that were not found as they are. */
static void compare(struct symbol_search *s, const struct sl_symcache_function *function, struct sl_str stored,
                    struct sl_buf *readable)
{
    sl_buf_clear(readable);
    for (size_t i = 0; i < s->count && s->spent < MOST_WORK; i++) {
        struct sl_symcache_named *named = &s->named[i];
        struct sl_str last = last_part(named->name);
        s->spent += stored.size + named->name.size;
        if (named->string != SL_SYMCACHE_NONE || !memmem(stored.data, stored.size, last.data, last.size))
            continue;
        s->spent += readable->size ? 0 : DEMANGLING;
        if (!readable->size && !sl_demangle(stored, SL_LANG_UNKNOWN, readable))
            sl_buf_str(readable, stored);
        if (!is_name(sl_buf_view(readable), named->name) || (named->found && named->entry == function->entry))
            continue;
        named->entry = function->entry;
        named->found += named->found < 2;
    }
}

/* Looks for the names that are not stored as they are. If that is too much work none of them is found: a function that was not
 * looked at might have the name too. False when out of memory. */
static bool find_readable(struct symbol_search *s, const struct sl_symcache *table)
{
    struct sl_buf stored = {0}, readable = {0};
    struct sl_symcache_function function;
    bool any = false;
    for (size_t i = 0; i < s->count; i++)
        any = any || s->named[i].string == SL_SYMCACHE_NONE;
    for (uint32_t id = 0; any && s->spent < MOST_WORK && sl_symcache_function(table, id, &function); id++) {
        if (function.entry == UINT64_MAX)
            continue;
        sl_buf_clear(&stored);
        sl_symcache_string(table, function.name, &stored);
        if (stored.size)
            compare(s, &function, sl_buf_view(&stored), &readable);
    }
    for (size_t i = 0; s->spent >= MOST_WORK && i < s->count; i++)
        if (s->named[i].string == SL_SYMCACHE_NONE)
            s->named[i].found = 0;
    bool good = !stored.failed && !readable.failed;
    sl_buf_free(&stored);
    sl_buf_free(&readable);
    return good;
}

/* ---- frames ---- */

/* Sets the address of a frame, relative to its module. */
static void set_address(const struct symbol_search *s, const struct sl_symcache_named *named)
{
    const struct text_item *item = &s->work->items[named->item];
    struct native_frame *frame = frame_of(s->work, item);
    uint64_t ahead = s->module->image_address - native_table_base(s->module), address;
    if (named->found != 1 || __builtin_add_overflow(named->entry, item->piece.native.address, &address))
        return;
    address -= item->piece.native.is_return && address;
    frame->module = frame->module_index;
    frame->address = frame->relative = address - ahead;
    frame->undefined = false;
}

/* Finds the symbols of the frames of a module. */
static bool find_symbols(struct symbol_search *s)
{
    const struct native_lookups *found = s->module->found;
    const struct sl_symcache *table =
        found->lookup.code == SL_OK && !found->lookup.ppdb ? found->lookup.symcache : NULL;
    if (!table || native_has_uploaded_symbols(s->module))
        return true;
    if (!sl_symcache_find_named(table, s->named, s->count) || !find_readable(s, table))
        return false;
    for (size_t i = 0; i < s->count; i++)
        set_address(s, &s->named[i]);
    return true;
}

static bool is_after_symbol(const struct text_work *work, const struct text_item *item)
{
    const struct sl_text_frame *frame = &item->piece.native;
    return item->piece.kind == SL_TEXT_NATIVE && !frame->is_named && frame->base == SL_TEXT_OF_SYMBOL &&
           frame->symbol.size && frame->module != SL_TEXT_NO_MODULE &&
           work->module_of[frame->module] < work->native.module_count;
}

enum sl_code text_locate(struct job *job, void *arg, struct sl_error *error)
{
    struct text_work *work = arg;
    struct sl_arena *arena = work->native.arena;
    size_t *first =
        SL_ARENA_ARRAY(arena, size_t, work->native.module_count + 1); /* per module: index of an item, plus 1 */
    size_t *next = SL_ARENA_ARRAY(arena, size_t, work->item_count + 1);
    struct symbol_search s = {.work = work,
                              .named = SL_ARENA_ARRAY(arena, struct sl_symcache_named, work->item_count + 1)};
    if (!first || !next || !s.named)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < work->item_count; i++) {
        if (!is_after_symbol(work, &work->items[i]))
            continue;
        struct native_frame *frame = frame_of(work, &work->items[i]);
        uint32_t module = work->module_of[work->items[i].piece.native.module];
        frame->module = frame->address ? NATIVE_NO_MODULE : frame->module; /* until the symbol is found */
        next[i] = first[module];
        first[module] = i + 1;
    }
    for (size_t m = 0; m < work->native.module_count; m++) {
        s.module = &work->native.modules[m];
        s.count = 0;
        for (size_t at = first[m]; at; at = next[at - 1])
            s.named[s.count++] =
                (struct sl_symcache_named){.name = work->items[at - 1].piece.native.symbol, .item = at - 1};
        if (s.count && s.module->found && !find_symbols(&s))
            return sl_fail(error, SL_BUSY, "out of memory");
    }
    return SL_OK;
}
