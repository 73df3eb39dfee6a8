/* Addresses of frames of which the text has a symbol and an offset: "app!main+0x21" of WinDbg, "libc.so(abort+0x12b)" of glibc. The
 * symbol is looked for in the table of its module, by two names of each function: the stored one (_ZN1N1fEi) and the readable one, with or
 * without parameters (N::f). If functions at several addresses have the name, as overloads have, any of them may be meant: these frames
 * stay as they are. */
#include "api/text/work.h"

#include "base/map.h"
#include "demangle/demangle.h"

enum {
    MAX_WORK = 256 << 20, /* bytes of stored names that are compared with readable names, in a request */
    DEMANGLING = 4096,    /* a name that is demangled counts as so many bytes */
};

struct symbol_search { /* in one module */
    struct text_work *work;
    const struct native_module *module;
    /* the different symbols of the frames; `item` is the first frame with it, as in `next` */
    struct sl_symcache_named *named;
    size_t count;
    size_t *next; /* per item: 1 + index of the next item of the same list; 0: none. First by module, then by symbol */
    uint64_t spent; /* of MAX_WORK */
};

static struct native_frame *frame_of(struct text_work *work, const struct text_item *item)
{
    return &work->native.traces[work->stacks[item->stack].trace].frames[item->frame];
}

/* ---- readable names ---- */

/* Returns the part of a C++ or Rust name after the last "::", which its mangled form contains. */
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

/* Compares a function, whose stored name is `stored`, with the symbols that no function has as its stored name. Demangles
 * only if the stored name contains the last part of a symbol; `readable` then holds the readable name for the next
 * symbols. A second function with another address makes the symbol ambiguous (`found` = 2). */
static void compare(struct symbol_search *s, const struct sl_symcache_function *function, struct sl_str stored,
                    struct sl_buf *readable)
{
    sl_buf_clear(readable);
    for (size_t i = 0; i < s->count && s->spent < MAX_WORK; i++) {
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

/* Searches the symbols that are not stored names. If that is too much work none of them is found: a function that was not looked at
 * might have the name too. False when out of memory. */
static bool find_readable(struct symbol_search *s, const struct sl_symcache *table)
{
    struct sl_buf stored = {0}, readable = {0};
    struct sl_symcache_function function;
    bool any = false;
    for (size_t i = 0; i < s->count; i++)
        any = any || s->named[i].string == SL_SYMCACHE_NONE;
    for (uint32_t id = 0; any && s->spent < MAX_WORK && sl_symcache_function(table, id, &function); id++) {
        if (function.entry == UINT64_MAX)
            continue;
        sl_buf_clear(&stored);
        sl_symcache_string(table, function.name, &stored);
        if (stored.size)
            compare(s, &function, sl_buf_view(&stored), &readable);
    }
    for (size_t i = 0; s->spent >= MAX_WORK && i < s->count; i++)
        if (s->named[i].string == SL_SYMCACHE_NONE)
            s->named[i].found = 0;
    bool good = !stored.failed && !readable.failed;
    sl_buf_free(&stored);
    sl_buf_free(&readable);
    return good;
}

/* ---- frames ---- */

/* Sets the address of a frame with this symbol, relative to its module: the symbol's address, relative to the table's
 * base, plus the offset in the text. Nothing if the symbol is ambiguous or unknown. */
static void set_address(const struct symbol_search *s, const struct sl_symcache_named *named,
                        const struct text_item *item)
{
    struct native_frame *frame = frame_of(s->work, item);
    uint64_t ahead = s->module->image_address - native_table_base(s->module), address;
    if (named->found != 1 || __builtin_add_overflow(named->entry, item->piece.native.address, &address))
        return;
    address -= item->piece.native.is_return && address;
    frame->module = frame->module_index;
    frame->address = frame->relative = address - ahead;
    frame->undefined = false;
}

/* Finds the symbols of the frames of a module. Uploaded symbols and tables of .NET cannot be searched by name: these frames
 * stay as they are. False when out of memory. */
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
        for (size_t at = s->named[i].item; at; at = s->next[at - 1])
            set_address(s, &s->named[i], &s->work->items[at - 1]);
    return true;
}

/* Lists the different symbols among the frames of a module, which begin with item number `first` - 1, so that a symbol is searched
 * once, however often it is on the stacks. False when out of memory. */
static bool list_symbols(struct symbol_search *s, size_t first)
{
    struct sl_map numbers = {0}; /* symbol -> 1 + index in `named` */
    bool good = true;
    s->count = 0;
    for (size_t at = first, next; good && at; at = next) {
        struct sl_str symbol = s->work->items[at - 1].piece.native.symbol;
        void **number = sl_map_find_or_add(&numbers, symbol, NULL);
        next = s->next[at - 1];
        if (!(good = number != NULL))
            break;
        if (!*number) {
            s->named[s->count++] = (struct sl_symcache_named){.name = symbol};
            *number = (void *)(uintptr_t)s->count;
        }
        struct sl_symcache_named *named = &s->named[(uintptr_t)*number - 1];
        s->next[at - 1] = named->item;
        named->item = at;
    }
    sl_map_free(&numbers);
    return good;
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
    struct symbol_search s = {.work = work,
                              .named = SL_ARENA_ARRAY(arena, struct sl_symcache_named, work->item_count + 1),
                              .next = SL_ARENA_ARRAY(arena, size_t, work->item_count + 1)};
    if (!first || !s.next || !s.named)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < work->item_count; i++) {
        if (!is_after_symbol(work, &work->items[i]))
            continue;
        struct native_frame *frame = frame_of(work, &work->items[i]);
        uint32_t module = work->module_of[work->items[i].piece.native.module];
        /* with an absolute address in the text, that is what is answered unless the symbol is found */
        frame->module = frame->address ? NATIVE_NO_MODULE : frame->module;
        s.next[i] = first[module];
        first[module] = i + 1;
    }
    for (size_t m = 0; m < work->native.module_count; m++) {
        s.module = &work->native.modules[m];
        if (first[m] && s.module->found && !(list_symbols(&s, first[m]) && find_symbols(&s)))
            return sl_fail(error, SL_BUSY, "out of memory");
    }
    return SL_OK;
}
