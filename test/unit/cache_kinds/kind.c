/* A kind is one file and one row: this one counts the lines of an object's file. It is looked for as others are. */
#include "../cache/support.h"

#include "fetch/fetch.h"
#include "core/loop.h"
#include "cache_kinds/impl.h"
#include "catalog/catalog.h"
#include "search/search.h"

/* ---- the kind ---- */
static enum sl_code count_lines(struct conversion *conversion, const struct converter_call *call, void *result,
                                struct sl_error *error)
{
    struct sl_bytes object = converter_input_bytes(call, INPUT_FILE);
    uint64_t lines = 0;
    (void)conversion;
    for (size_t i = 0; i < object.size; i++)
        lines += object.data[i] == '\n';
    if (lines > 5)
        return sl_fail(error, SL_UNSUPPORTED, "more than five lines");
    return write_whole_file(call->out, (struct sl_bytes){(const uint8_t *)&lines, sizeof lines}, error);
}

static const struct converter converter_lines = {"lines", sizeof(struct reader_limits), 0, count_lines};

static enum sl_code lines_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    return convert_to_entry(context, NULL, &converter_lines, NULL, tmp->fd, arena, error);
}

static enum sl_code read_lines(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    if (bytes.size != sizeof(uint64_t))
        return sl_fail(error, SL_MALFORMED, "not a count of lines");
    memcpy(into, bytes.data, bytes.size);
    return SL_OK;
}

static const struct cache_kind kind_lines = {
    .name = "lines",
    .section = CACHE_DERIVED,
    .version = 1,
    .compute = lines_compute,
    .base = object_request_base,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
    .open = read_lines,
    .opened_size = sizeof(uint64_t),
};

/* Files that are no objects: kept as they are, if they begin with an `L`. */
static enum sl_code check_letters(struct conversion *conversion, const struct converter_call *call, void *result,
                                  struct sl_error *error)
{
    (void)conversion, (void)result;
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    return file.size && file.data[0] == 'L' ? SL_OK : sl_fail(error, SL_MALFORMED, "no letters");
}

static const struct converter converter_letters = {"letters", 0, 0, check_letters};

static enum sl_code letters_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                    struct sl_error *error)
{
    (void)arena;
    return auxiliary_fetch(context, &converter_letters, tmp->fd, error);
}

static const struct cache_kind kind_letters = {
    .name = "letters",
    .section = CACHE_DOWNLOADED,
    .version = 1,
    .compute = letters_compute,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
};

static const struct search_target unwinding = {
    .purpose = PURPOSE_UNWIND, .kind = &kind_lines, .report = offsetof(struct candidate, unwind)};
static const struct search_target letters = {.purpose = PURPOSE_ANY_FILE, .kind = &kind_letters, .type = FILE_PROGUARD};

/* ---- the files ---- */
#define CODE_ID "0123456789abcdef0123456789abcdef01234567"
#define UUID    "01020304050607080910111213141516"

static void put(const char *source, const char *path, const char *text)
{
    char whole[400], command[500];
    snprintf(whole, sizeof whole, "%s/%s/%s", test_dir, source, path);
    snprintf(command, sizeof command, "mkdir -p $(dirname %s)", whole);
    assert_int_equal(system(command), 0);
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

#define HEAD "MODULE Linux x86_64 67452301AB89EFCD0123456789ABCDEF0 a\nINFO CODE_ID " CODE_ID "\n"
static const char plain[] = HEAD "FUNC 10 20 0 f\n";
static const char with_cfi[] = HEAD "STACK CFI INIT 10 20 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n";
static const char with_much[] = HEAD "FUNC 10 20 0 f\nFUNC 40 20 0 f\nFUNC 70 20 0 f\n"
                                     "STACK CFI INIT 10 20 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n";

static struct source source_at(const char *name)
{
    return (struct source){.id = sl_str(name),
                           .type = SOURCE_FILESYSTEM,
                           .layout = LAYOUT_UNIFIED,
                           .path = sl_str(in_dir(name)),
                           .is_public = true};
}

static const struct object_id elf = {.type = OBJECT_ELF, .code_id = SL_STR(CODE_ID)};
static struct sl_arena arena;

static void run(void (*body)(void *arg))
{
    const struct cache_kind *all[32];
    struct sl_error error = {0};
    memcpy(all, catalog_kinds, catalog_kind_count * sizeof *all);
    all[catalog_kind_count] = &kind_lines;
    all[catalog_kind_count + 1] = &kind_letters;
    struct fetch_options fetch = {.max_download_size = 1 << 20, .max_inflate_ratio = 100};
    loop_init(2);
    fetch_init(&fetch);
    catalog_init(&test_config);
    if (cache_init(&test_config, all, catalog_kind_count + 2, &error) != SL_OK)
        fail_msg("%s", error.message);
    loop_run_fiber(body, NULL);
    cache_close();
    catalog_close();
    fetch_close();
    sl_arena_free(&arena);
    loop_close();
}

/* ---- tests ---- */
static void lines_body(void *arg)
{
    struct source sources[] = {source_at("plain"), source_at("good")};
    struct search_scope where = {sources, 2, SL_STR("global"), &arena};
    struct search_result found;
    search_find(&where, &unwinding, &elf, &found);
    assert_int_equal(found.code, SL_OK);
    assert_int_equal(*(uint64_t *)found.item->loaded, 3);
    assert_true(found.features.has_unwind_info);
    assert_null(found.symcache);
    assert_int_equal(found.candidates.count, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct candidate *candidate = &found.candidates.items[i];
        bool had = sl_str_ends(candidate->location, SL_STR("/breakpad"));
        bool chosen = had && sl_str_equal(candidate->source, SL_STR("good"));
        assert_int_equal(candidate->download, had ? SL_OK : SL_NOT_FOUND);
        assert_false(candidate->debug.set);
        assert_int_equal(candidate->unwind.set, chosen);
        assert_int_equal(candidate->unwind.code, SL_OK);
    }
    assert_int_equal(files_below("lines"), 1);
    cache_release(found.item);
}

TEST(cache_kind_is_made_from_the_best_file)
{
    put("plain", "01/23456789abcdef0123456789abcdef01234567/breakpad", plain);
    put("good", "01/23456789abcdef0123456789abcdef01234567/breakpad", with_cfi);
    run(lines_body);
}

static void failing_body(void *arg)
{
    struct source sources[] = {source_at("much")};
    struct search_scope where = {sources, 1, SL_STR("global"), &arena};
    struct search_result found[2];
    struct search_query questions[] = {{&unwinding, &elf, &found[0]},
                                       {search_symbols_target(&elf, false), &elf, &found[1]}};
    assert_true(search_find_all(&where, questions, 2)); /* uses may be mixed */
    assert_int_equal(found[0].code, SL_UNSUPPORTED);
    assert_null(found[0].item);
    assert_string_equal(found[0].error.message, "more than five lines");
    assert_int_equal(found[0].candidates.count, 3);
    assert_true(found[0].candidates.items[0].unwind.set); /* the first in order of the names */
    assert_int_equal(found[0].candidates.items[0].unwind.code, SL_UNSUPPORTED);
    assert_false(found[0].candidates.items[0].debug.set);
    assert_int_equal(found[1].code, SL_OK);
    assert_non_null(found[1].symcache);
    cache_release(found[1].item);
}

TEST(result_is_reported_in_the_field_of_its_purpose)
{
    put("much", "01/23456789abcdef0123456789abcdef01234567/breakpad", with_much);
    run(failing_body);
}

/* Searches that are recalled share what they came to. */
static bool recalls(const struct search_scope *where, enum sl_code code)
{
    struct search_result found[2];
    for (int i = 0; i < 2; i++) {
        search_find(where, &unwinding, &elf, &found[i]);
        assert_int_equal(found[i].code, code);
        assert_int_equal(found[i].error.code, code);
        assert_int_equal(found[i].candidates.count, 3);
        if (code == SL_OK)
            assert_int_equal(*(uint64_t *)found[i].item->loaded, 3);
        cache_release(found[i].item);
    }
    return found[0].candidates.items == found[1].candidates.items;
}

static void remembered_body(void *arg)
{
    struct source sources[] = {source_at("good")};
    struct search_scope where = {sources, 1, SL_STR("global"), &arena, 7};
    struct cache_file file = {SL_STR("good"), {NULL, 0}};
    struct sl_error error;
    assert_false(recalls(&where, SL_OK)); /* had to be made, and then memory had it */
    assert_true(recalls(&where, SL_OK));
    where.list = 8; /* other sources, for all that is known */
    assert_false(recalls(&where, SL_OK));
    where.list = 0;
    assert_false(recalls(&where, SL_OK));
    where.list = 7;
    assert_true(recalls(&where, SL_OK));
    assert_int_equal(cache_invalidate(&file, 1, &error), SL_OK);
    put("good", "01/23456789abcdef0123456789abcdef01234567/breakpad", with_much);
    assert_false(recalls(&where, SL_UNSUPPORTED));
    assert_true(recalls(&where, SL_UNSUPPORTED));
    catalog_init(&test_config); /* another configuration, for all that is known */
    assert_false(recalls(&where, SL_UNSUPPORTED));
}

TEST(searches_are_cached_while_their_entries_are_in_memory)
{
    put("good", "01/23456789abcdef0123456789abcdef01234567/breakpad", with_cfi);
    run(remembered_body);
}

static void letters_body(void *arg)
{
    struct object_id id = {.has_debug_id = true};
    assert_true(sl_debug_id_parse(SL_STR(UUID), &id.debug_id));
    struct source sources[] = {source_at("none"), source_at("bad"), source_at("letters"), source_at("more")};
    struct search_scope where = {sources, 4, SL_STR("global"), &arena};
    struct search_result found;
    search_find(&where, &letters, &id, &found);
    assert_int_equal(found.code, SL_OK);
    assert_int_equal(found.error.code, SL_OK);
    assert_memory_equal(found.item->mapping.bytes.data, "L1", 2);
    assert_int_equal(found.candidates.count, 0);
    cache_release(found.item);
    where.source_count = 2;
    search_find(&where, &letters, &id, &found);
    assert_int_equal(found.code, SL_NOT_FOUND);
    assert_null(found.item);
}

TEST(first_available_file_is_used_for_other_kinds)
{
    put("bad", "01/020304050607080910111213141516/proguard", "X");
    put("letters", "01/020304050607080910111213141516/proguard", "L1");
    put("more", "01/020304050607080910111213141516/proguard", "L2");
    run(letters_body);
}

static void expect_key(const struct symcache_request *request, const char *expected)
{
    struct sl_arena keys = {0};
    struct cache_key key;
    struct symcache_request *kept = symcache_request_retain(request, &keys);
    assert_non_null(kept);
    const struct symcache_request *const both[] = {request, kept};
    for (size_t i = 0; i < 2; i++) {
        assert_true(symcache_request_key(both[i], &keys, &key));
        assert_true(sl_str_equal(key.text, sl_str(expected)));
    }
    sl_arena_free(&keys);
}

/* Whoever wants variables or columns shares no symcache with those who do not. */
TEST(symcache_keys_name_their_contents)
{
    struct source source = {.id = SL_STR("s"), .type = SOURCE_FILESYSTEM};
    struct remote_file file = {.source = &source, .uri = SL_STR("file://a")},
                       map = {.source = &source, .uri = SL_STR("file://b")};
    struct object_request mapping = {&map, &elf, SL_STR("x")};
    struct symcache_request request = {.object = {&file, &elf, SL_STR("x")}, .scope = SL_STR("x")};
    expect_key(&request, "scope: x\n\nsource: s\nlocation: file://a\n");
    request.variables = true;
    expect_key(&request, "scope: x\n\nsource: s\nlocation: file://a\n\nvariables: true\n");
    request.variables = false;
    request.columns = true;
    expect_key(&request, "scope: x\n\nsource: s\nlocation: file://a\n\ncolumns: true\n");
    request.variables = true;
    request.columns = false;
    request.map = &mapping;
    expect_key(&request, "scope: x\n\nsource: s\nlocation: file://a\n\nbcsymbolmap:\nsource: s\nlocation: file://b\n"
                         "\nvariables: true\n");
}

TEST_FILE(.setup = dir_setup, .teardown = dir_teardown);
