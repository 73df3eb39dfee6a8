/* Files that change what a symcache says without being objects: the names of Apple bitcode builds (bcsymbolmaps.c), the
 * C# lines of Unity builds (il2cpp.c). Both are found by the module's debug id, are part of the symcache's key, and their
 * absence is silent. */
#pragma once

#include "kinds/conversion.h"

extern const struct cache_kind kind_auxdifs;  /* UUID maps and BCSymbolMaps; nothing loaded */
extern const struct cache_kind kind_proguard; /* loaded: struct sl_jvm_mapper */
extern const struct cache_kind kind_il2cpp;   /* line mappings; nothing loaded */

/* Downloads the request's file into `fd` and has it checked: the download's error, or what the check says. */
enum sl_code auxiliary_fetch(const struct object_request *request, conversion_checker *check, int fd,
                             struct sl_error *error) SL_SUSPENDS;

/* Everything that a look-up for a module has at hand. */
struct auxiliary_search {
    const struct source *sources;
    size_t source_count;
    struct sl_str scope; /* of the request */
    const struct object_id *id;
    struct sl_arena *arena;
    struct sl_error *failure; /* of the first file that was listed but could not be had; NULL = nobody wants to know */
};

/* The first file of the type for `id` that can be had, in the order of the sources: `*found` is its request and `*item` a
 * reference to it. SL_NOT_FOUND; SL_CANCELLED, SL_BUSY. */
enum sl_code auxiliary_find(const struct auxiliary_search *search, const struct object_id *id, enum file_type type,
                            const struct cache_kind *kind, struct object_request **found,
                            struct cache_item **item) SL_SUSPENDS;

/* As auxiliary_find, of the search's module. The request says what the symcache is made with; NULL = nothing. */
enum sl_code bcsymbolmap_find(const struct auxiliary_search *search, struct object_request **map) SL_SUSPENDS;
enum sl_code il2cpp_find(const struct auxiliary_search *search, struct object_request **lines) SL_SUSPENDS;

/* What a symcache is made of. */
struct symcache_request {
    struct object_request object;
    const struct object_request *map, *lines; /* NULL = none */
    bool variables;
    struct sl_str scope; /* of its entry: private as soon as one of the files is */
};

/* As those of struct object_request. */
bool symcache_request_key(const struct symcache_request *request, struct sl_arena *arena, struct cache_key *key);
bool symcache_request_base(const void *request, struct sl_arena *arena, const struct cache_kind **kind,
                           struct cache_key *key, const void **context);
struct sl_str symcache_request_place(const void *request);
void *symcache_request_retain(const void *request, struct sl_arena *arena);
