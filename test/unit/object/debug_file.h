/* What the tests of debug files share: opening them, and looking addresses up. */
#pragma once

#include "../fixture.h"
#include "../symcache/chain.h"

#include "object/object.h"
#include "symcache/symcache.h"

static inline struct sl_object *open_bytes(struct sl_bytes bytes)
{
    struct sl_object *object;
    struct sl_error error = {0};
    if (sl_object_open(bytes, NULL, &object, &error) != SL_OK)
        fail_msg("%s", error.message);
    return object;
}

/* A symcache of the object. */
struct converted {
    struct sl_buf file;
    struct sl_symcache cache;
};

static inline void convert_with(struct converted *c, struct sl_object *object,
                                const struct sl_symcache_options *options, const struct sl_parallel *parallel)
{
    struct sl_error error = {0};
    *c = (struct converted){0};
    if (sl_symcache_convert(object, NULL, options, parallel, &c->file, &error) != SL_OK)
        fail_msg("%s", error.message);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&c->file), &c->cache, &error), SL_OK);
    assert_int_equal(sl_symcache_verify(&c->cache, &error), SL_OK);
}

static inline void convert(struct converted *c, struct sl_object *object)
{
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch};
    convert_with(c, object, &options, NULL);
}

/* The chain at an address as "inner:line@file outer:line@file"; valid until the next call. */
static inline const char *chain_at(const struct sl_symcache *cache, uint64_t address)
{
    static char text[4096];
    struct sl_buf out = {0};
    chain_append(cache, address, &out);
    assert_true(out.size < sizeof text);
    snprintf(text, sizeof text, "%.*s", (int)out.size, out.data ? (const char *)out.data : "");
    sl_buf_free(&out);
    return text;
}

/* Address of the object's symbol of that name; the test fails without one. */
static inline uint64_t symbol_address(struct sl_object *object, const char *name)
{
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count, found = SIZE_MAX;
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    for (size_t i = 0; i < count; i++)
        if (sl_str_equal(symbols[i].name, sl_str(name)))
            found = i;
    if (found == SIZE_MAX)
        fail_msg("no symbol %s", name);
    uint64_t address = symbols[found].address;
    sl_arena_free(&arena);
    return address;
}

/* Everything there is to ask of an object; for damaged files, where only surviving matters. */
static inline void read_all_of(struct sl_bytes bytes)
{
    static const char *const sections[] = {"debug_info", "debug_str_offsets", "eh_frame", "unwind_info", "text"};
    struct sl_object *object;
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    struct sl_section_info section;
    struct sl_bytes contents;
    struct sl_buf out = {0};
    size_t count;
    if (sl_object_open(bytes, NULL, &object, NULL) != SL_OK)
        return;
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch};
    sl_object_symbols(object, &arena, &symbols, &count, NULL);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        sl_object_section(object, sections[i], &contents, NULL);
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++)
        ;
    sl_symcache_convert(object, NULL, &options, NULL, &out, NULL);
    sl_buf_free(&out);
    sl_arena_free(&arena);
    sl_object_close(object);
}

/* Opens and reads copies of the file with bytes changed in [0, reach), and files cut short. */
static inline void damage(struct sl_bytes bytes, size_t reach, unsigned rounds)
{
    uint32_t seed = 1;
    for (unsigned round = 0; round < rounds; round++) {
        size_t size = round % 4 == 0 ? (size_t)round * 7919 % bytes.size : bytes.size;
        uint8_t *copy = malloc(size + 1);
        assert_non_null(copy);
        memcpy(copy, bytes.data, size);
        for (unsigned i = 0; i < 3; i++) {
            seed = seed * 1664525 + 1013904223;
            size_t at = 4 + (seed >> 8) % (reach - 4);
            if (at < size)
                copy[at] = seed & 1 ? 0xFF : (uint8_t)(seed >> 24);
        }
        read_all_of((struct sl_bytes){copy, size});
        free(copy);
    }
}
