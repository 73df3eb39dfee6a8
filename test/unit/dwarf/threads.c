/* Reading this very program's DWARF with one and with several threads: the same symcache, and it knows this file. Also the
 * set of ranges that the threads share. */
#include "../parallel.h"

#include "base/file.h"
#include "dwarf/impl.h"
#include "symcache/symcache.h"

static void convert(struct sl_object *object, const struct sl_parallel *parallel, struct sl_buf *out)
{
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch};
    struct sl_error error = {0};
    assert_int_equal(sl_symcache_convert(object, NULL, &options, parallel, out, &error), SL_OK);
}

static uint64_t address_of(struct sl_object *object, const char *name)
{
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    uint64_t address = 0;
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    for (size_t i = 0; i < count; i++)
        if (sl_str_equal(symbols[i].name, sl_str(name)))
            address = symbols[i].address;
    sl_arena_free(&arena);
    return address;
}

TEST(symcache_is_the_same_for_any_number_of_threads)
{
    struct sl_mapping mapping;
    struct sl_object *object;
    struct sl_bytes info;
    struct sl_buf one = {0}, several = {0}, path = {0};
    struct sl_symcache cache;
    struct sl_location chain[4];
    assert_int_equal(sl_map_file("/proc/self/exe", &mapping, NULL), SL_OK);
    assert_int_equal(sl_object_open(mapping.bytes, NULL, &object, NULL), SL_OK);
    assert_true(sl_object_section(object, "debug_info", &info, NULL)); /* of this program */
    convert(object, NULL, &one);
    for (unsigned workers = 2; workers <= PARALLEL_MAX; workers++) {
        struct sl_parallel parallel = parallel_of(workers);
        sl_buf_clear(&several);
        convert(object, &parallel, &several);
        assert_true(sl_str_equal(sl_buf_view(&one), sl_buf_view(&several)));
    }
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&one), &cache, NULL), SL_OK);
    assert_int_equal(sl_symcache_verify(&cache, NULL), SL_OK);
    size_t count = sl_symcache_lookup(&cache, address_of(object, "look"), chain, 4);
    assert_int_equal(count, 1);
    assert_true(chain[0].line > 0);
    sl_symcache_file(&cache, chain[0].file, &path);
    assert_true(sl_str_ends(sl_buf_view(&path), SL_STR("threads.c")));
    sl_buf_free(&one);
    sl_buf_free(&several);
    sl_buf_free(&path);
    sl_object_close(object);
    sl_unmap(&mapping);
}

static struct range_set ranges;
static atomic_size_t added;

enum { ADDED = 200000 };

struct looks {
    size_t missing, unfounded; /* ranges that were added and are not known, and others that are */
};

static void *look(void *arg)
{
    struct looks *looks = arg;
    for (size_t done = 0; done < ADDED;) {
        done = atomic_load(&added);
        for (size_t i = 0; i < done; i += 1 + done / 10)
            looks->missing += !dwarf_has_range(&ranges, dwarf_range_key(i, 16));
        for (size_t i = done; i < done + 4; i++) /* has the place of one that is being added */
            looks->unfounded += dwarf_has_range(&ranges, dwarf_range_key(i, 16) ^ UINT64_C(1) << 63);
    }
    return NULL;
}

TEST(ranges_can_be_looked_up_while_others_are_added)
{
    pthread_t thread;
    size_t repeated = 0;
    struct looks looks = {0, 0};
    assert_false(dwarf_has_range(&ranges, dwarf_range_key(0, 16)));
    assert_int_equal(pthread_create(&thread, NULL, look, &looks), 0);
    for (size_t i = 0; i < ADDED; i++) {
        repeated += !dwarf_range_add(&ranges, dwarf_range_key(i, 16));
        atomic_store(&added, i + 1);
    }
    pthread_join(thread, NULL);
    assert_int_equal(looks.missing, 0);
    assert_int_equal(looks.unfounded, 0);
    assert_int_equal(repeated, 0);
    assert_false(dwarf_range_add(&ranges, dwarf_range_key(77, 16)));
    assert_true(dwarf_range_add(&ranges, dwarf_range_key(77, 17)));
    dwarf_range_free(&ranges);
    assert_false(dwarf_has_range(&ranges, dwarf_range_key(77, 16)));
}
