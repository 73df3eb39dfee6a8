/* Finds the addresses of frames that the text gives as symbol and offset: "app!main+0x21" of WinDbg, "libc.so(abort+0x12b)" of glibc. The
 * symbol is compared with two names of each function in the symbol table of its module: the stored one (_ZN1N1fEi) and the demangled one
 * (N::f), with or without parameters. If functions at several addresses have the name, such as overloads, any of them may be meant: then
 * the frame stays as it is. */
#include "api/text/work.h"

#include "base/map.h"
#include "demangle/demangle.h"

enum {
    MAX_WORK = 256 << 20, /* limit of comparing names with demangled ones, for a request: bytes of the names */
    DEMANGLING = 4096,    /* demangling one name counts as comparing so many bytes */
};

struct symbol_search { /* in one module */
    struct text_work *work;
    const struct native_module *module;
    /* the different symbols of the module's frames; named[i].item is 1 + index in work->items of a frame with the symbol */
    struct sl_symcache_named *named;
    size_t count;
    /* Linked lists of frames: by index in work->items, 1 + index of the next frame of the list; 0: none. list_symbols turns a
     * module's one list into a list for each symbol. */
    size_t *next;
    uint64_t spent; /* of MAX_WORK */
};

/* Returns the frame of the native request that was made from this frame of the text. */
static struct native_frame *frame_of(struct text_work *work, const struct text_item *item)
{
    return &work->native.traces[work->stacks[item->stack].trace].frames[item->frame];
}

/* ---- readable names ---- */

/* Returns the part of a C++ or Rust name after the last "::". The mangled name contains it unchanged. */
static struct sl_str last_part(struct sl_str name)
{
    for (size_t i = name.size; i > 1; i--)
        if (name.data[i - 1] == ':' && name.data[i - 2] == ':')
            return (struct sl_str){name.data + i, name.size - i};
    return name;
}

/* True if the name is `wanted`, or `wanted` followed by parameters in brackets. */
static bool is_name(struct sl_str name, struct sl_str wanted)
{
    return sl_str_starts(name, wanted) && (name.size == wanted.size || name.data[wanted.size] == '(');
}

/* Compares the demangled name of a function with each symbol that is not the stored name of any function (`string` is SL_SYMCACHE_NONE).
 * The function's stored name, `stored`, is demangled only when it contains the last part of a symbol, and once: `readable` keeps the result
 * for the next symbols. A second function with another address makes the symbol ambiguous (`found` = 2). */
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
        s->spent += readable->size ? 0 : DEMANGLING; /* demangling costs as much as comparing so many bytes */
        if (!readable->size && !sl_demangle(stored, SL_LANG_UNKNOWN, readable))
            sl_buf_str(readable, stored);
        if (!is_name(sl_buf_view(readable), named->name) || (named->found && named->entry == function->entry))
            continue;
        named->entry = function->entry;
        named->found += named->found < 2;
    }
}

/* Searches the symbols that are not the stored name of any function by the functions' demangled names. If that takes more than MAX_WORK,
 * none of these symbols counts as found: one of the functions that were not compared might have the name too. False when out of memory. */
static bool find_readable(struct symbol_search *s, const struct sl_symcache *table)
{
    struct sl_buf stored = {0}, readable = {0};
    struct sl_symcache_function function;
    bool any = false;
    for (size_t i = 0; i < s->count; i++)
        any = any || s->named[i].string == SL_SYMCACHE_NONE;
    for (uint32_t id = 0; any && s->spent < MAX_WORK && sl_symcache_function(table, id, &function); id++) {
        if (function.entry == UINT64_MAX) /* it has no address: only inlined */
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

/* Sets the address of a frame to that of its symbol plus the offset in the text, relative to its module. Does nothing if the symbol was not
 * found, is ambiguous, or the sum overflows. */
static void set_address(const struct symbol_search *s, const struct sl_symcache_named *named,
                        const struct text_item *item)
{
    struct native_frame *frame = frame_of(s->work, item);
    /* addresses of symbols are relative to the base of the table, which may lie before the start of the module */
    uint64_t ahead = s->module->image_address - native_table_base(s->module), address;
    if (named->found != 1 || __builtin_add_overflow(named->entry, item->piece.native.address, &address))
        return;
    address -= item->piece.native.is_return && address; /* a return address: 1 less lies in the call */
    frame->module = frame->module_index;                /* text_locate may have set `module` to none */
    frame->address = frame->relative = address - ahead;
    frame->undefined = false;
}

/* Finds the symbols of a module's frames in its symbol table, and sets the frames' addresses. Symbols that were uploaded as symbfiles, and
 * tables of .NET, cannot be searched by name: frames of such modules stay as they are. The frames of a symbol are a
 * list that begins at its `item` and goes on with `next` of each frame: indexes in work->items plus 1; 0 ends it. False when out of memory. */
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

/* Fills in `named` with the different symbols of a module's frames, so that each is searched once, however many frames have it. `first`
 * is 1 + the index of the first item in the module's list (see `next`), which becomes one list per symbol. False when out of memory. */
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

/* True for a native frame that the text gives as symbol and offset, with a module that is looked up. */
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
    /* by module: the begin of its list of frames, 1 + index of the first item (symbol_search.next); 0: none */
    size_t *first = SL_ARENA_ARRAY(arena, size_t, work->native.module_count + 1);
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
        /* If the text has an absolute address too, the frame keeps that unless the symbol is found: so it is no address in
         * the module for now. */
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
