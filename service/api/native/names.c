/* Names the resulting frames. Demangling needs more stack than a fiber has, so it runs on the pool; frequent names come from the
 * name cache (api/name_cache.h), which only the loop may use. */
#include "api/name_cache.h"
#include "api/native/native.h"
#include "core/sigbus_guard.h"
#include "core/pool.h"
#include "demangle/demangle.h"

/* ---- naming ---- */
struct native_pending_name { /* a name that the cache does not have, to be demangled on the pool */
    struct native_names *names;
    enum sl_language language;
    struct native_pending_name *next;
};

struct native_naming { /* state of native_name and native_name_at_once */
    struct native_request *request;
    struct sl_map functions;             /* key: module, function, table; value: struct native_names */
    struct name_cache *name_cache;       /* NULL: this runs on the pool, names are demangled at once */
    struct native_pending_name *pending; /* list */
    struct sl_buf text;                  /* scratch buffer */
};

/* Copies the text into the arena; empty when out of memory, which is noted in the request. */
static struct sl_str native_names_keep(struct native_naming *n, struct sl_str text)
{
    char *copy = sl_arena_strndup(n->request->arena, text.data, text.size);
    n->request->out_of_memory = n->request->out_of_memory || !copy;
    return (struct sl_str){copy ? copy : "", copy ? text.size : 0};
}

/* Sets names->function to the demangled symbol; leaves it as it is if the symbol cannot be demangled. */
static void demangle(struct native_naming *n, struct native_names *names, enum sl_language language)
{
    sl_buf_clear(&n->text);
    if (sl_demangle(names->symbol, language, &n->text))
        names->function = native_names_keep(n, sl_buf_view(&n->text));
}

/* Returns the key of a name in the name cache: language and symbol. It lies in n->text. */
static struct sl_str cache_key(struct native_naming *n, const struct native_pending_name *pending)
{
    sl_buf_clear(&n->text);
    sl_buf_u8(&n->text, (uint8_t)pending->language);
    sl_buf_str(&n->text, pending->names->symbol);
    return sl_buf_view(&n->text);
}

/* Sets names->function to the demangled names->symbol. Without a name cache demangles at once. With one takes the name from there, or
 * lists it as pending if it is not there: until it is demangled, and if it cannot be, the symbol is also the function name. The cache
 * also has the names that cannot be demangled. */
static void set_function_name(struct native_naming *n, struct native_names *names, enum sl_language language)
{
    names->function = names->symbol;
    if (!n->name_cache) {
        demangle(n, names, language);
        return;
    }
    struct native_pending_name pending = {.names = names, .language = language, .next = n->pending};
    const struct sl_str *known = name_cache_get(n->name_cache, cache_key(n, &pending));
    if (known) {
        /* equal texts: leaves `function` the same text as `symbol`, by which drop_failed_names knows that nothing was demangled */
        if (!sl_str_equal(*known, names->symbol))
            names->function = native_names_keep(n, *known);
        return;
    }
    struct native_pending_name *item = SL_ARENA_NEW(n->request->arena, struct native_pending_name);
    if (!item) {
        n->request->out_of_memory = true;
        return;
    }
    *item = pending;
    n->pending = item;
}

/* Allocates names with this symbol; NULL when out of memory, which is noted in the request. */
static struct native_names *new_names(struct native_naming *n, struct sl_str symbol)
{
    struct native_names *names = SL_ARENA_NEW(n->request->arena, struct native_names);
    n->request->out_of_memory = n->request->out_of_memory || !names;
    if (names)
        names->symbol = symbol;
    return names;
}

/* Sets the names of a symbolicated frame; they stay NULL when out of memory (out_of_memory). A function without a name is called "?". All
 * frames of one function share their names. */
static void name_symbolicated(struct native_naming *n, struct native_result_frame *frame)
{
    const struct sl_symcache *cache = native_table(&n->request->modules[frame->module], frame->table);
    uint32_t words[3] = {frame->module, frame->location.function, frame->table};
    struct sl_str key = {(const char *)words, sizeof words};
    frame->names = sl_map_get(&n->functions, key);
    if (frame->names)
        return;
    struct sl_symcache_function function;
    sl_buf_clear(&n->text);
    if (sl_symcache_function(cache, frame->location.function, &function))
        sl_symcache_string(cache, function.name, &n->text);
    struct sl_str symbol = n->text.size ? sl_buf_view(&n->text) : SL_STR("?");
    struct native_names *names = new_names(n, native_names_keep(n, symbol));
    key = native_names_keep(n, key);
    void **slot = sl_map_find_or_add(&n->functions, key, NULL);
    n->request->out_of_memory = n->request->out_of_memory || !slot;
    if (!names || !slot)
        return;
    if (frame->table == TABLE_SYMCACHE)
        set_function_name(n, names, function.language);
    else
        names->function = names->symbol; /* names in uploaded symbols are not mangled */
    frame->names = *slot = names;
}

/* Demangles the name of a frame that was not symbolicated, if the client sent either symbol or function. A client that sends both
 * has demangled the name itself. */
static void name_unsymbolicated(struct native_naming *n, struct native_result_frame *frame)
{
    struct sl_str symbol = native_text(frame->sent, SENT_SYMBOL), function = native_text(frame->sent, SENT_FUNCTION);
    if (!symbol.data == !function.data)
        return;
    struct native_names *names = new_names(n, symbol.data ? symbol : function);
    if (names)
        set_function_name(n, names, SL_LANG_UNKNOWN);
    frame->names = names;
}

/* Sets the names of all frames. When the answer's limit leaves no memory for names, removes the frames that have none yet. */
static void name_all(void *arg)
{
    struct native_naming *n = arg;
    struct native_request *request = n->request;
    answer_limit_step(request->limit); /* names may again take memory up to the limit */
    for (size_t t = 0; t < request->trace_count; t++)
        for (size_t i = 0; i < request->results[t].count && !request->out_of_memory; i++) {
            struct native_result_frame *frame = &request->results[t].frames[i];
            if (!answer_limit_has_memory(request->limit)) {
                native_drop_frames(request, t, i);
                return;
            }
            if (frame->is_dotnet)
                continue; /* the table has no names */
            if (frame->status == FRAME_SYMBOLICATED)
                name_symbolicated(n, frame);
            else
                name_unsymbolicated(n, frame);
        }
}

/* Pool work: demangles the names that the cache did not have. */
static void demangle_pending(void *arg)
{
    struct native_naming *n = arg;
    for (struct native_pending_name *item = n->pending; item; item = item->next)
        demangle(n, item->names, item->language);
}

/* Demangles the pending names and adds them to the name cache. False on failure: `error` is set. */
static bool demangle_on_pool(struct native_naming *n, struct sl_error *error)
{
    if (!n->pending)
        return true;
    if (pool_run(POOL_SYMBOLICATE, demangle_pending, n, error) != SL_OK)
        return false;
    for (struct native_pending_name *item = n->pending; item; item = item->next)
        name_cache_put(n->name_cache, cache_key(n, item), item->names->function);
    return true;
}

/* Removes the names of frames that were not symbolicated if demangling changed nothing, so that these frames keep the names that were
 * sent. Function and symbol are then the same text, at one address. */
static void drop_failed_names(struct native_request *request)
{
    for (size_t t = 0; t < request->trace_count; t++)
        for (size_t i = 0; i < request->results[t].count; i++) {
            struct native_result_frame *frame = &request->results[t].frames[i];
            if (frame->status != FRAME_SYMBOLICATED && frame->names &&
                frame->names->function.data == frame->names->symbol.data)
                frame->names = NULL;
        }
}

static void naming_free(struct native_naming *n)
{
    sl_map_free(&n->functions);
    sl_buf_free(&n->text);
}

void native_name_at_once(struct native_request *request)
{
    struct native_naming n = {.request = request};
    name_all(&n);
    drop_failed_names(request);
    naming_free(&n);
}

enum sl_code native_name(struct native_request *request, struct name_cache *name_cache, struct sl_error *error)
{
    struct native_naming n = {.request = request, .name_cache = name_cache};
    /* a guard catches SIGBUS of a table that was truncated, as pool_run does for pool work */
    enum sl_code code =
        sigbus_guard_run(name_all, &n)
            ? SL_OK
            : sl_fail(error, SL_INTERNAL, "a symbol table was truncated while names were read, or its disk failed");
    if (code == SL_OK && !demangle_on_pool(&n, error))
        code = error->code;
    drop_failed_names(request);
    naming_free(&n);
    return code;
}
