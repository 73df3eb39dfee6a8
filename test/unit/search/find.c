/* Choosing among candidates, with sources that the test plays itself and objects that a compiler made. */
#include "../cache/support.h"
#include "../fixture.h"

#include <signal.h>

#include "core/loop.h"
#include "catalog/catalog.h"
#include "search/impl.h"
#include "sources.h"

/* ---- the objects ---- */

static char full[96], debug[96], symbols[96], bare[96];

static int make_fixtures(void **state)
{
    static const char source[] = "int triple_of(int a)\n{\n    return a * 3;\n}\n";
    if (fixture_begin(state) != 0)
        return -1;
    snprintf(full, sizeof full, "%s/full", fixture_dir);
    snprintf(debug, sizeof debug, "%s/debug", fixture_dir);
    snprintf(symbols, sizeof symbols, "%s/symbols", fixture_dir);
    snprintf(bare, sizeof bare, "%s/bare", fixture_dir);
    fixture_write("f.c", source, strlen(source));
    fixture_run(
        "gcc -g -O0 -shared -fPIC -nostdlib -Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567 -o full f.c");
    fixture_run("objcopy --only-keep-debug full debug");
    fixture_run("strip -g -o symbols full");
    /* Neither symbols nor debug information, only code. */
    fixture_run("gcc -O0 -shared -fPIC -nostdlib -fvisibility=hidden -fno-asynchronous-unwind-tables -s -o bare f.c");
    loop_init(2);
    return 0;
}

static int drop_fixtures(void **state)
{
    loop_close();
    return fixture_end(state);
}

/* ---- running ---- */

static const struct object_id elf = {.type = OBJECT_ELF, .code_id = SL_STR("0123456789abcdef0123456789abcdef01234567")};
static const struct object_id elf_with_id = {.type = OBJECT_ELF,
                                             .code_id = SL_STR("0123456789abcdef0123456789abcdef01234567"),
                                             .debug_id = {{1}, 0},
                                             .has_debug_id = true};
static struct source *sources;
static size_t source_count;
static struct sl_arena arena;
static struct search_result found;

static void run(void (*body)(void *arg))
{
    struct sl_error error = {0};
    catalog_init(&test_config);
    if (cache_init(&test_config, catalog_kinds, catalog_kind_count, &error) != SL_OK)
        fail_msg("%s", error.message);
    loop_run_fiber(body, NULL);
    cache_close();
    sl_arena_free(&arena);
    assert_int_equal(files_below("tmp"), 0);
}

static void look_up(const struct object_id *id)
{
    struct search_scope where = {sources, source_count, SL_STR("scope1"), &arena};
    search_find(&where, search_symbols_target(id, false), id, &found);
}

static void check_candidate(size_t index, const char *source, const char *location, enum sl_code download,
                            const char *details, int debug_code, const char *debug_details)
{
    assert_true(index < found.candidates.count);
    const struct candidate *c = &found.candidates.items[index];
    assert_true(sl_str_equal(c->source, sl_str(source)));
    assert_true(sl_str_equal(c->location, sl_str(location)));
    assert_int_equal(c->download, download);
    assert_true(sl_str_equal(c->download_details, sl_str(details)));
    assert_false(c->unwind.set);
    assert_int_equal(c->debug.set ? (int)c->debug.code : -1, debug_code);
    assert_true(sl_str_equal(c->debug.details, sl_str(debug_details)));
}

#define USE_SOURCES(...)                                                                                               \
    static struct source used_sources[] = {__VA_ARGS__};                                                               \
    sources = used_sources;                                                                                            \
    source_count = sizeof used_sources / sizeof *used_sources
#define USE_FILES(...)                                                                                                 \
    struct stored used_files[] = {__VA_ARGS__};                                                                        \
    fill(used_files, sizeof used_files / sizeof *used_files)

#define USE_FILES_AGAIN(...)                                                                                           \
    struct stored used_again[] = {__VA_ARGS__};                                                                        \
    fill(used_again, sizeof used_again / sizeof *used_again)

/* ---- file types ---- */

static void check_types(enum object_type type, size_t count, const enum file_type *expected)
{
    struct object_id id = {.type = type};
    look_up(&id);
    assert_int_equal(types_asked_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(types_asked[i], expected[i]);
}

#define CHECK_TYPES(type, ...)                                                                                         \
    check_types((type), sizeof((enum file_type[]){__VA_ARGS__}) / sizeof(enum file_type),                              \
                (const enum file_type[]){__VA_ARGS__})

FIBER_TEST(file_types_follow_module_and_purpose)
{
    USE_SOURCES({.id = SL_STR("s")});
    fill(NULL, 0);
    CHECK_TYPES(OBJECT_MACHO, FILE_MACH_CODE, FILE_BREAKPAD, FILE_MACH_DEBUG, FILE_PDB, FILE_ELF_DEBUG);
    CHECK_TYPES(OBJECT_PE, FILE_PE, FILE_BREAKPAD, FILE_MACH_DEBUG, FILE_PDB, FILE_ELF_DEBUG);
    CHECK_TYPES(OBJECT_ELF, FILE_ELF_CODE, FILE_BREAKPAD, FILE_MACH_DEBUG, FILE_PDB, FILE_ELF_DEBUG);
    CHECK_TYPES(OBJECT_WASM, FILE_WASM_CODE, FILE_WASM_DEBUG);
    CHECK_TYPES(OBJECT_PE_DOTNET, FILE_PORTABLEPDB, FILE_PDB);
    CHECK_TYPES(OBJECT_UNKNOWN, FILE_PDB, FILE_MACH_DEBUG, FILE_ELF_DEBUG, FILE_PE, FILE_MACH_CODE, FILE_ELF_CODE,
                FILE_WASM_CODE, FILE_WASM_DEBUG, FILE_BREAKPAD, FILE_SOURCEBUNDLE, FILE_UUIDMAP, FILE_BCSYMBOLMAP,
                FILE_PORTABLEPDB, FILE_PROGUARD);
    struct source_lookup source;
    struct search_scope where = {sources, source_count, SL_STR(""), &arena};
    search_find_source(&where, &elf, &source);
    assert_int_equal(source.code, SL_NOT_FOUND);
    assert_int_equal(types_asked_count, 4);
    assert_int_equal(types_asked[0], FILE_SOURCEBUNDLE);
    assert_int_equal(types_asked[3], FILE_WASM_DEBUG);
}

/* ---- errors ---- */

#define NOTHING "No object files listed on this source"

FIBER_TEST(download_errors_are_shown_by_candidates)
{
    static const struct {
        struct stored file;
        enum sl_code status;
        const char *details;
        int debug_code;
    } rows[] = {
        {{.code = SL_DOWNLOAD_ERROR, .text = "500 Internal Server Error"},
         SL_DOWNLOAD_ERROR,
         "download failed: 500 Internal Server Error",
         -1},
        {{.code = SL_TIMEOUT, .text = "200ms", .duration_ns = 200 * MS},
         SL_TIMEOUT,
         "download timed out after 200ms",
         -1},
        {{.code = SL_NOT_FOUND}, SL_NOT_FOUND, "", -1},
        {{.code = SL_PERMISSION_DENIED, .text = "403 Forbidden"}, SL_PERMISSION_DENIED, "403 Forbidden", -1},
        {{.code = SL_OK, .text = "garbage is what this symbol server says"}, SL_MALFORMED, "", SL_MALFORMED},
        {{.code = SL_UNSUPPORTED, .text = "so"}, SL_UNSUPPORTED, "unsupported: so", SL_MALFORMED},
        {{.code = SL_INTERNAL, .text = "/secret/path"}, SL_INTERNAL, "internal error", SL_MALFORMED},
    };
    USE_SOURCES({.id = SL_STR("s")});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char uri[32];
        snprintf(uri, sizeof uri, "http://s/%zu", i);
        struct stored file = rows[i].file;
        file.source = "s";
        file.uri = uri;
        file.type = FILE_ELF_CODE;
        fill(&file, 1);
        for (int again = 0; again < 2; again++) {
            look_up(&elf);
            assert_int_equal(found.code, rows[i].status);
            assert_int_equal(found.error.code, rows[i].status);
            assert_null(found.item);
            assert_int_equal(found.candidates.count, 1);
            check_candidate(0, "s", uri, rows[i].status, rows[i].details, rows[i].debug_code, "");
            assert_int_equal(file.fetched, 1);
        }
    }
}

FIBER_TEST(sources_without_files_have_a_candidate)
{
    USE_SOURCES({.id = SL_STR("zoo")}, {.id = SL_STR("unlistable")}, {.id = SL_STR("forbidden")});
    USE_FILES({.source = "forbidden", .uri = "http://f/b", .type = FILE_ELF_CODE, .code = SL_NOT_FOUND},
              {.source = "forbidden",
               .uri = "http://f/a",
               .type = FILE_ELF_DEBUG,
               .code = SL_PERMISSION_DENIED,
               .text = "403 Forbidden"});
    look_up(&elf);
    assert_int_equal(found.code, SL_NOT_FOUND); /* the first error hides the later ones */
    assert_int_equal(found.candidates.count, 4);
    check_candidate(0, "forbidden", "http://f/a", SL_PERMISSION_DENIED, "403 Forbidden", -1, "");
    check_candidate(1, "forbidden", "http://f/b", SL_NOT_FOUND, "", -1, "");
    check_candidate(2, "unlistable", NOTHING, SL_NOT_FOUND, "", -1, "");
    check_candidate(3, "zoo", NOTHING, SL_NOT_FOUND, "", -1, "");
    source_count = 0;
    look_up(&elf);
    assert_int_equal(found.code, SL_NOT_FOUND);
    assert_int_equal(found.candidates.count, 0);
}

FIBER_TEST(busy_is_no_answer_about_a_file)
{
    USE_SOURCES({.id = SL_STR("s")}, {.id = SL_STR("busy")});
    USE_FILES({.source = "s", .uri = "http://s/1", .type = FILE_ELF_CODE, .code = SL_NOT_FOUND});
    look_up(&elf);
    assert_int_equal(found.code, SL_BUSY);
    USE_FILES_AGAIN({.source = "s", .uri = "http://s/2", .type = FILE_ELF_CODE, .path = full},
                    {.source = "s", .uri = "http://s/3", .type = FILE_UUIDMAP, .code = SL_BUSY});
    source_count = 1;
    look_up(&elf_with_id);
    assert_int_equal(found.code, SL_BUSY); /* with the map its names would be others */
    used_again[1].code = SL_NOT_FOUND;
    look_up(&elf_with_id);
    assert_int_equal(found.code, SL_OK);
    cache_release(found.item);
}

/* Puts a file of the request into the scope, without memory for what is made of it. */
static struct supplied_objects *add_without_memory(const char *path, struct sl_mapping *mapping,
                                                   struct sl_arena *memory)
{
    struct sl_error error;
    struct supplied_objects *own = SL_ARENA_NEW(memory, struct supplied_objects);
    *own = (struct supplied_objects){.arena = memory};
    assert_int_equal(sl_map_file(path, mapping, &error), SL_OK);
    assert_int_equal(supplied_objects_add(own, SL_STR("sent"), mapping->bytes, &error), SL_OK);
    assert_int_equal(own->count, 1);
    memory->limit = memory->used;
    while (sl_arena_alloc(memory, 1, 1))
        ;
    return own;
}

FIBER_TEST(without_memory_for_a_sent_file_no_other_file_answers)
{
    struct sl_arena memory = {0};
    struct sl_mapping mapping;
    USE_SOURCES({.id = SL_STR("s")});
    USE_FILES({.source = "s", .uri = "http://s/1", .type = FILE_ELF_CODE, .path = full});
    struct search_scope where = {sources, source_count, SL_STR("scope1"), &arena};
    where.own = add_without_memory(full, &mapping, &memory);
    search_find(&where, search_symbols_target(&elf, false), &elf, &found);
    assert_int_equal(found.code, SL_BUSY);
    assert_true(found.undecided);
    assert_int_equal(used_files[0].fetched, 0);
    memory.limit = 0;
    search_find(&where, search_symbols_target(&elf, false), &elf, &found);
    assert_int_equal(found.code, SL_OK);
    check_candidate(0, "artifact", "sent", SL_OK, "", SL_OK, "");
    assert_int_equal(used_files[0].fetched, 0);
    cache_release(found.item);
    sl_arena_free(&memory);
    sl_unmap(&mapping);
}

/* ---- choosing ---- */

/* A look-up of every entry's address finds the function somewhere. */
static bool has_function(const struct sl_symcache *cache, const char *name)
{
    struct sl_symcache_cursor cursor;
    bool seen = false;
    struct sl_buf text = {0};
    sl_symcache_first(cache, &cursor);
    while (!seen && sl_symcache_next(cache, &cursor)) {
        struct sl_location chain[4];
        struct sl_symcache_function function;
        if (cursor.hole || !sl_symcache_lookup(cache, cursor.address, chain, 4) ||
            !sl_symcache_function(cache, chain[0].function, &function))
            continue;
        sl_buf_clear(&text);
        sl_symcache_string(cache, function.name, &text);
        seen = sl_str_equal(sl_buf_view(&text), sl_str(name));
    }
    sl_buf_free(&text);
    return seen;
}

FIBER_TEST(best_file_is_chosen)
{
    USE_SOURCES({.id = SL_STR("s")}, {.id = SL_STR("t")});
    USE_FILES({.source = "s", .uri = "http://s/missing", .type = FILE_ELF_CODE, .code = SL_DOWNLOAD_ERROR, .text = "x"},
              {.source = "s", .uri = "http://s/symbols", .type = FILE_ELF_CODE, .path = symbols},
              {.source = "t", .uri = "http://t/bare", .type = FILE_ELF_CODE, .path = bare},
              {.source = "t", .uri = "http://t/debug", .type = FILE_ELF_DEBUG, .path = debug},
              {.source = "t", .uri = "http://t/full", .type = FILE_ELF_DEBUG, .path = full});
    look_up(&elf);
    assert_int_equal(found.code, SL_OK);
    assert_true(found.features.has_debug_info);
    assert_int_equal(found.arch, SL_ARCH_X86_64);
    assert_true(has_function(found.symcache, "triple_of"));
    cache_release(found.item);
    assert_int_equal(found.candidates.count, 5);
    check_candidate(0, "s", "http://s/missing", SL_DOWNLOAD_ERROR, "download failed: x", -1, "");
    check_candidate(1, "s", "http://s/symbols", SL_OK, "", -1, "");
    check_candidate(2, "t", "http://t/bare", SL_OK, "", -1, "");
    check_candidate(3, "t", "http://t/debug", SL_OK, "", SL_OK, ""); /* equal to full, but earlier */
    check_candidate(4, "t", "http://t/full", SL_OK, "", -1, "");
    assert_true(found.candidates.items[1].features.has_symbols);
    assert_false(found.candidates.items[1].features.has_debug_info);
    source_count = 1;
    look_up(&elf);
    assert_int_equal(found.code, SL_OK); /* symbols are better than an error */
    assert_true(has_function(found.symcache, "triple_of"));
    cache_release(found.item);
    check_candidate(1, "s", "http://s/symbols", SL_OK, "", SL_OK, "");
    used_sources[0].id = SL_STR("u");
    shelf[2].source = "u";
    look_up(&elf);
    assert_int_equal(found.code, SL_NOT_FOUND); /* loaded, but of no use */
    check_candidate(0, "u", "http://t/bare", SL_OK, "", -1, "");
}

FIBER_TEST(object_removed_before_conversion_is_reported)
{
    USE_SOURCES({.id = SL_STR("s"), .is_public = true});
    USE_FILES({.source = "s", .uri = "http://s/full", .type = FILE_ELF_CODE, .path = full});
    look_up(&elf);
    assert_int_equal(found.code, SL_OK);
    cache_release(found.item);
    cache_drain();
    cache_close();
    assert_int_equal(directory_remove(in_dir("objects")), 0);
    assert_int_equal(directory_remove(in_dir("symcaches")), 0);
    used_files[0].path = NULL;
    used_files[0].code = SL_NOT_FOUND;
    assert_int_equal(cache_init(&test_config, catalog_kinds, catalog_kind_count, NULL), SL_OK);
    look_up(&elf);
    assert_int_equal(found.code, SL_NOT_FOUND);
    assert_true(found.features.has_debug_info);
    check_candidate(0, "s", "http://s/full", SL_OK, "", SL_NOT_FOUND, "Object file no longer available");
}

FIBER_TEST(cache_keys_name_scope_source_and_location)
{
    USE_SOURCES({.id = SL_STR("s"), .is_public = true}, {.id = SL_STR("c"), .requires_checksum = true});
    USE_FILES({.source = "s", .uri = "http://s/full", .type = FILE_ELF_CODE, .path = full},
              {.source = "c", .uri = "http://c/full", .type = FILE_ELF_CODE, .path = symbols});
    look_up(&elf);
    assert_int_equal(found.code, SL_OK);
    cache_release(found.item);
    static const char *const keys[] = {
        "scope: global\n\nsource: s\nlocation: http://s/full\n",
        "scope: scope1\n\nsource: c\nlocation: http://c/full\nchecksum: SHA256:00\n",
    };
    for (int i = 0; i < 2; i++) {
        char relative[128], path[160];
        cache_relative_path(sl_str(keys[i]), 2, false, relative);
        snprintf(path, sizeof path, "objects/%s", relative);
        assert_true(exists(path));
        cache_relative_path(sl_str(keys[i]), 5, false, relative);
        snprintf(path, sizeof path, "object_meta/%s", relative);
        assert_non_null(strstr(file_text(path), i == 0 ? "\"has_debug_info\":true" : "\"has_debug_info\":false"));
        strncat(path, ".metadata", sizeof path - strlen(path) - 1);
        assert_non_null(strstr(file_text(path), i == 0 ? "\"scope\":null" : "\"scope\":\"scope1\""));
    }
    char relative[128], path[160];
    cache_relative_path(sl_str(keys[0]), 1010, false, relative);
    snprintf(path, sizeof path, "symcaches/%s", relative);
    assert_memory_equal(file_text(path), "SLSC", 4);
}

static void start_again(void)
{
    cache_drain();
    cache_close();
    assert_int_equal(cache_init(&test_config, catalog_kinds, catalog_kind_count, NULL), SL_OK);
}

static const char *symcache_path(unsigned version)
{
    static char paths[2][160];
    char relative[128], *path = paths[version % 2];
    cache_relative_path(SL_STR("scope: scope1\n\nsource: s\nlocation: http://s/1\n"), version, false, relative);
    snprintf(path, sizeof paths[0], "symcaches/%s", relative);
    return path;
}

FIBER_TEST(older_symcache_is_served_until_it_is_remade)
{
    const char *before = symcache_path(1009), *now = symcache_path(1010);
    USE_SOURCES({.id = SL_STR("s")});
    USE_FILES({.source = "s", .uri = "http://s/1", .type = FILE_ELF_CODE, .path = full});
    look_up(&elf);
    assert_int_equal(found.code, SL_OK);
    cache_release(found.item);
    make_parent(in_dir(before));
    assert_int_equal(rename(in_dir(now), in_dir(before)), 0);
    assert_int_equal(directory_remove(in_dir("objects")), 0);
    used_files[0] = (struct stored){.source = "s", .uri = "http://s/1", .type = FILE_ELF_CODE, .code = SL_NOT_FOUND};
    start_again();
    look_up(&elf);
    assert_int_equal(found.code, SL_OK);
    cache_release(found.item);
    while (!files_below("objects")) /* the refresh has asked for it */
        assert_true(fiber_sleep(1));
    start_again();
    assert_true(exists(before) && !exists(now)); /* there was nothing to make another of */
    assert_int_equal(directory_remove(in_dir("objects")), 0);
    used_files[0] = (struct stored){.source = "s", .uri = "http://s/1", .type = FILE_ELF_CODE, .path = full};
    look_up(&elf);
    assert_int_equal(found.code, SL_OK);
    cache_release(found.item);
    while (exists(before))
        assert_true(fiber_sleep(1));
    assert_memory_equal(file_text(now), "SLSC", 4);
    look_up(&elf);
    assert_true(found.code == SL_OK && has_function(found.symcache, "triple_of"));
    cache_release(found.item);
    cache_drain();
}

FIBER_TEST(features_written_by_other_versions_are_read)
{
    USE_SOURCES({.id = SL_STR("s")});
    USE_FILES({.source = "s", .uri = "http://s/1", .type = FILE_ELF_CODE, .path = full});
    char relative[128], path[160];
    cache_relative_path(SL_STR("scope: scope1\n\nsource: s\nlocation: http://s/1\n"), 1, true, relative);
    snprintf(path, sizeof path, "object_meta/%s", relative);
    put_file(path, "{\"has_debug_info\":false,\"has_unwind_info\":true,\"has_symbols\":true,\"srcsrv_vcs\":\"git\"}",
             0);
    look_up(&elf);
    assert_true(found.code == SL_OK && found.features.has_unwind_info && !found.features.has_debug_info);
    assert_true(sl_str_equal(found.features.srcsrv_vcs, SL_STR("git")));
    cache_release(found.item);
    const char *const bad[] = {"{}", "{\"has_debug_info\":1,\"has_unwind_info\":true,\"has_symbols\":true}", "{\"has",
                               "[]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char key[80], uri[32];
        snprintf(uri, sizeof uri, "http://s/bad%zu", i);
        snprintf(key, sizeof key, "scope: scope1\n\nsource: s\nlocation: %s\n", uri);
        cache_relative_path(sl_str(key), 5, false, relative);
        snprintf(path, sizeof path, "object_meta/%s", relative);
        put_file(path, bad[i], 0);
        used_files[0].uri = uri;
        look_up(&elf);
        assert_true(found.code == SL_OK && found.features.has_debug_info);
        cache_release(found.item);
        assert_non_null(strstr(file_text(path), "\"has_debug_info\":true"));
    }
}

/* ---- files to serve ---- */

static void look_for_file(const struct search_target *use)
{
    struct search_scope where = {sources, source_count, SL_STR("scope1"), &arena};
    search_find(&where, use, &elf, &found);
}

static void check_file(const struct search_target *use, enum sl_code code, const char *path, bool undecided)
{
    look_for_file(use);
    assert_int_equal(found.code, code);
    assert_true(sl_str_equal(found.path, sl_str(path)));
    assert_int_equal(found.undecided, undecided);
    cache_release(found.item);
}

FIBER_TEST(files_to_serve_are_chosen_by_what_they_store)
{
    USE_SOURCES({.id = SL_STR("s")}, {.id = SL_STR("t")});
    USE_FILES({.source = "s", .uri = "http://s/bare", .type = FILE_ELF_DEBUG, .path = bare},
              {.source = "s", .uri = "http://s/symbols", .type = FILE_ELF_CODE, .path = symbols},
              {.source = "t", .uri = "http://t/debug", .type = FILE_ELF_DEBUG, .path = debug});
    check_file(&search_debug_file_target, SL_OK, "http://t/debug", false);
    assert_true(types_asked_count == 2 && types_asked[0] == FILE_ELF_DEBUG);
    check_file(&search_code_file_target, SL_OK, "http://s/symbols", false);
    assert_int_equal(types_asked[0], FILE_ELF_CODE);
}

FIBER_TEST(a_failing_source_leaves_the_search_undecided)
{
    USE_SOURCES({.id = SL_STR("s")}, {.id = SL_STR("t")});
    USE_FILES({.source = "s", .uri = "http://s/1", .type = FILE_ELF_DEBUG, .code = SL_TIMEOUT},
              {.source = "t", .uri = "http://t/1", .type = FILE_ELF_DEBUG, .path = symbols});
    check_file(&search_debug_file_target, SL_OK, "http://t/1", true); /* a table of symbols; s may have more */
    check_file(&search_code_file_target, SL_OK, "http://t/1", false);
    used_files[1] = (struct stored){.source = "t", .uri = "http://t/2", .type = FILE_ELF_DEBUG, .path = full};
    check_file(&search_debug_file_target, SL_OK, "http://t/2", false);
    used_files[1] = (struct stored){.source = "t", .uri = "http://t/3", .type = FILE_ELF_DEBUG, .code = SL_NOT_FOUND};
    look_for_file(&search_debug_file_target);
    assert_true(found.code != SL_OK && found.undecided);
    used_files[0] = (struct stored){.source = "s", .uri = "http://s/4", .type = FILE_ELF_DEBUG, .code = SL_NOT_FOUND};
    check_file(&search_debug_file_target, SL_NOT_FOUND, "", false);
}

FIBER_TEST(features_of_an_older_version_are_remade_before_a_file_is_served)
{
    USE_SOURCES({.id = SL_STR("s")});
    USE_FILES({.source = "s", .uri = "http://s/1", .type = FILE_ELF_DEBUG, .path = debug});
    char relative[128], path[160];
    cache_relative_path(SL_STR("scope: scope1\n\nsource: s\nlocation: http://s/1\n"), 4, false, relative);
    snprintf(path, sizeof path, "object_meta/%s", relative);
    put_file(path, "{\"has_debug_info\":true,\"has_unwind_info\":true,\"has_symbols\":true}", 0);
    check_file(&search_code_file_target, SL_NOT_FOUND, "", true);
    do {
        assert_true(fiber_sleep(1));
        look_for_file(&search_debug_file_target);
        cache_release(found.item);
    } while (found.undecided);
    assert_int_equal(found.code, SL_OK);
    check_file(&search_code_file_target, SL_NOT_FOUND, "", false);
}

FIBER_TEST(features_tell_whether_the_program_headers_are_those_of_the_program)
{
    static const struct {
        const char *uri, *loads, *stored;
    } rows[] = {
        {"http://s/full", "\"loads\":{\"usable\":true,\"entries\":[[0,0,",
         "\"debug_sections\":true,\"symbol_table\":true,\"code\":true"},
        {"http://s/debug", "\"loads\":{\"usable\":false,",
         "\"debug_sections\":true,\"symbol_table\":true,\"code\":false"},
        {"http://s/bare", "\"loads\":{\"usable\":true,",
         "\"debug_sections\":false,\"symbol_table\":false,\"code\":true"},
    };
    USE_SOURCES({.id = SL_STR("s")});
    USE_FILES({.source = "s", .uri = "http://s/full", .type = FILE_ELF_CODE, .path = full},
              {.source = "s", .uri = "http://s/debug", .type = FILE_ELF_DEBUG, .path = debug},
              {.source = "s", .uri = "http://s/bare", .type = FILE_ELF_CODE, .path = bare});
    look_up(&elf);
    cache_release(found.item);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char key[80], relative[128], path[160];
        snprintf(key, sizeof key, "scope: scope1\n\nsource: s\nlocation: %s\n", rows[i].uri);
        cache_relative_path(sl_str(key), 5, false, relative);
        snprintf(path, sizeof path, "object_meta/%s", relative);
        assert_non_null(strstr(file_text(path), rows[i].loads));
        assert_non_null(strstr(file_text(path), rows[i].stored));
    }
}

/* ---- together, and leaving ---- */

struct visitor {
    struct sl_arena arena;
    struct search_result result;
};

static void visit(void *arg)
{
    struct visitor *visitor = arg;
    struct search_scope where = {sources, source_count, SL_STR("scope1"), &visitor->arena};
    search_find(&where, search_symbols_target(&elf, false), &elf, &visitor->result);
}

FIBER_TEST(concurrent_requests_share_one_download)
{
    enum { VISITORS = 20 };
    static struct visitor visitors[VISITORS];
    USE_SOURCES({.id = SL_STR("s")});
    USE_FILES({.source = "s", .uri = "http://s/a", .type = FILE_ELF_CODE, .code = SL_NOT_FOUND},
              {.source = "s", .uri = "http://s/b", .type = FILE_ELF_DEBUG, .path = full});
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    for (int i = 0; i < VISITORS; i++)
        assert_true(fiber_start(&group, visit, &visitors[i]));
    fiber_group_wait(&group);
    for (int i = 0; i < VISITORS; i++) {
        assert_int_equal(visitors[i].result.code, SL_OK);
        cache_release(visitors[i].result.item);
        sl_arena_free(&visitors[i].arena);
    }
    assert_int_equal(used_files[0].fetched, 1);
    assert_int_equal(used_files[1].fetched, 1);
}

FIBER_TEST(cancelled_request_leaves_its_downloads_running)
{
    struct fiber_wait_list closed = {0};
    struct visitor visitor = {0};
    USE_FILES({.source = "s", .uri = "http://s/a", .type = FILE_ELF_CODE, .path = full},
              {.source = "s", .uri = "http://s/b", .type = FILE_ELF_DEBUG, .path = debug});
    /* The source belongs to the request, which goes away while the downloads run. */
    struct source *borrowed = calloc(1, sizeof *borrowed);
    *borrowed = (struct source){.id = {strdup("s"), 1}, .token = {{strdup("token"), 5}}};
    borrowed->headers = calloc(1, sizeof *borrowed->headers);
    borrowed->header_count = 1;
    borrowed->headers[0] = (struct fetch_header){{strdup("X-Key"), 5}, {{strdup("value"), 5}}};
    sources = borrowed;
    source_count = 1;
    gate = &closed;
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    assert_true(fiber_start(&group, visit, &visitor));
    while (!closed.first || closed.first == closed.last)
        assert_true(fiber_sleep(1));
    fiber_group_cancel(&group);
    fiber_group_wait(&group);
    assert_int_equal(visitor.result.code, SL_CANCELLED);
    sl_arena_free(&visitor.arena);
    free((void *)borrowed->headers[0].name.data);
    free((void *)borrowed->headers[0].value.hidden.data);
    free(borrowed->headers);
    free((void *)borrowed->token.hidden.data);
    free((void *)borrowed->id.data);
    free(borrowed);
    gate = NULL;
    fiber_wake_all(&closed);
    USE_SOURCES({.id = SL_STR("s")});
    look_up(&elf);
    assert_int_equal(found.code, SL_OK);
    cache_release(found.item);
    assert_string_equal(fetched_token, "token");
    assert_int_equal(used_files[0].fetched, 1);
    assert_int_equal(used_files[1].fetched, 1);
}

FIBER_TEST(warm_lookups_ask_no_source)
{
    enum { LOOKUPS = 20000 };
    USE_SOURCES({.id = SL_STR("s")});
    USE_FILES({.source = "s", .uri = "http://s/a", .type = FILE_ELF_CODE, .code = SL_NOT_FOUND},
              {.source = "s", .uri = "http://s/b", .type = FILE_ELF_DEBUG, .path = full});
    uint64_t begin = 0;
    for (int i = 0; i <= LOOKUPS; i++) {
        if (i == 1)
            begin = clock_mono_ns();
        look_up(&elf);
        assert_int_equal(found.code, SL_OK);
        cache_release(found.item);
        sl_arena_reset(&arena);
    }
    print_message("warm look-up of two candidates: %llu ns\n", (unsigned long long)(clock_mono_ns() - begin) / LOOKUPS);
    assert_int_equal(used_files[0].fetched + used_files[1].fetched, 2);
}

TEST_FILE(.begin = make_fixtures, .end = drop_fixtures, .setup = dir_setup, .teardown = dir_teardown);
