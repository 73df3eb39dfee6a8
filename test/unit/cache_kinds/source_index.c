/* The index of a symbol store that the test plays: what is fetched of it, and what happens when a part cannot be had. */
#include "../cache/support.h"

#include "core/loop.h"
#include "cache_kinds/impl.h"
#include "catalog/catalog.h"

static const char *last_id;        /* NULL = not there */
static unsigned segments;          /* that can be had */
static unsigned busy = UINT32_MAX; /* the segment that there is no memory for */
static char fetched[512];          /* what was asked for, separated by blanks */
static struct sl_arena arena;
static struct source source;

enum sl_code origin_list(const struct source *from, const struct object_id *id, const enum file_type *types,
                         size_t type_count, struct sl_arena *in, struct remote_file **files, size_t *count,
                         struct sl_error *error)
{
    *count = 0;
    return SL_OK;
}

struct sl_str origin_scope(const struct remote_file *file, struct sl_str scope)
{
    return scope;
}

/* Segment N names "nN\1"; the first also "both\1", as the second does. */
enum sl_code origin_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    char text[128], path[64];
    snprintf(path, sizeof path, SL_STR_FMT, SL_STR_ARG(file->path));
    size_t used = strlen(fetched);
    snprintf(fetched + used, sizeof fetched - used, "%s%s", used ? " " : "", path + strlen("000Admin/"));
    unsigned number = (unsigned)strtoul(path + strlen("000Admin/"), NULL, 10);
    bool last = strcmp(path, "000Admin/lastid.txt") == 0;
    if (number == busy)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (last ? !last_id : number == 0 || number > segments)
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    if (last)
        snprintf(text, sizeof text, "%s", last_id);
    else
        snprintf(text, sizeof text, "\"n%u\\1\",\n%s", number, number <= 2 ? "\"both\\1\",\n" : "");
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return SL_OK;
}

enum sl_code origin_fetch_noting(const struct remote_file *file, int fd, char *note, struct sl_error *error)
{
    (void)note;
    return origin_fetch(file, fd, error);
}

/* Which of the paths are in the index, in the index's spelling. */
static void expect(const char *expected, const char *asked_for)
{
    static const char *const paths[] = {"n1/1/n1", "N2/1/N2", "n3/1/n3", "both/1/both", "none/1/none"};
    struct remote_file files[5];
    size_t count = 5;
    char found[256] = "";
    fetched[0] = '\0';
    for (size_t i = 0; i < 5; i++)
        files[i] = (struct remote_file){
            .source = &source, .path = sl_str(paths[i]), .location = sl_str(paths[i]), .uri = sl_str(paths[i])};
    bool failed = false;
    assert_int_equal(source_index_filter(&source, SL_STR("42"), &arena, files, &count, &failed), SL_OK);
    assert_true(!failed || !count);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%s" SL_STR_FMT, i ? " " : "", SL_STR_ARG(files[i].path));
    }
    assert_string_equal(found, expected);
    assert_string_equal(fetched, asked_for);
}

/* A day later: the last number is asked for again. */
static void next_day(const char *last)
{
    last_id = last;
    catalog_close();
    catalog_init(&test_config);
}

static void run(void (*body)(void *arg));

FIBER_TEST(grown_index_fetches_only_new_segments)
{
    last_id = "2\r\n";
    segments = 2;
    expect("n1/1/n1 n2/1/n2 both/1/both", "lastid.txt 0000000001 0000000002");
    expect("n1/1/n1 n2/1/n2 both/1/both", "");
    next_day("3");
    segments = 3;
    expect("n1/1/n1 n2/1/n2 n3/1/n3 both/1/both", "lastid.txt 0000000003");
    next_day("4"); /* which cannot be had: the last good index serves */
    expect("n1/1/n1 n2/1/n2 n3/1/n3 both/1/both", "lastid.txt 0000000004");
    expect("n1/1/n1 n2/1/n2 n3/1/n3 both/1/both", "");
    next_day(NULL);
    expect("n1/1/n1 n2/1/n2 n3/1/n3 both/1/both", "lastid.txt");
}

FIBER_TEST(index_lookup_without_memory_is_busy)
{
    struct remote_file file = {.source = &source, .path = SL_STR("n1/1/n1")};
    size_t count = 1;
    last_id = "1";
    bool failed = false;
    segments = busy = 1;
    source.id = SL_STR("busy");
    fetched[0] = 0;
    assert_int_equal(source_index_filter(&source, SL_STR("42"), &arena, &file, &count, &failed), SL_BUSY);
    assert_false(failed);
    struct sl_arena small;
    sl_arena_init(&small, 1);
    assert_int_equal(source_index_filter(&source, SL_STR("42"), &small, &file, &count, &failed), SL_BUSY);
    assert_false(failed);
    busy = UINT32_MAX;
    expect("n1/1/n1 both/1/both", "0000000001"); /* nothing was kept */
}

FIBER_TEST(older_index_does_not_stand_in_for_lack_of_memory)
{
    struct remote_file file = {.source = &source, .path = SL_STR("n2/1/n2")};
    size_t count = 1;
    bool failed = false;
    source.id = SL_STR("grows");
    last_id = "1";
    segments = 2;
    expect("n1/1/n1 both/1/both", "lastid.txt 0000000001");
    next_day("2");
    busy = 2;
    enum sl_code code = source_index_filter(&source, SL_STR("42"), &arena, &file, &count, &failed);
    busy = UINT32_MAX;
    assert_int_equal(code, SL_BUSY); /* and not: the store lacks the file */
    assert_false(failed);
}

FIBER_TEST(failed_index_is_cached_as_empty)
{
    last_id = "2";
    segments = 1;
    source.id = SL_STR("fails");
    expect("", "lastid.txt 0000000001 0000000002");
    expect("", "");
    source.id = SL_STR("none");
    last_id = NULL;
    expect("", "lastid.txt");
    expect("", "");
    source.id = SL_STR("empty");
    last_id = "0";
    expect("", "lastid.txt");
    last_id = "1";
    source.id = SL_STR("sentry:x"); /* without its URL in the key */
    expect("n1/1/n1 both/1/both", "lastid.txt 0000000001");
    source.is_public = true;
    source.id = SL_STR("public");
    expect("n1/1/n1 both/1/both", "lastid.txt 0000000001");
    char path[512];
    static const char key[] = "scope: global\n\ntype: symstore\nsource_id: public\nlast_id: 1\n";
    snprintf(path, sizeof path, "%s/source_index/", test_dir);
    cache_relative_path(sl_str(key), 1, false, path + strlen(path));
    assert_int_equal(access(path, R_OK), 0);
    static const char segment[] = "scope: global\n\ntype: symstore_segment\nsource_id: public\nsegment: 1\n";
    snprintf(path, sizeof path, "%s/source_index/", test_dir);
    cache_relative_path(sl_str(segment), 1, false, path + strlen(path));
    assert_int_equal(access(path, R_OK), 0);
}

static void run(void (*body)(void *arg))
{
    source = (struct source){.id = SL_STR("store"),
                             .type = SOURCE_HTTP,
                             .url = SL_STR("https://user:pass@host/"),
                             .layout = LAYOUT_SYMSTORE,
                             .has_index = true};
    test_config.source_index_capacity = 10 << 20;
    test_config.s3_client_capacity = test_config.gcs_token_capacity = 100;
    catalog_init(&test_config);
    assert_int_equal(cache_init(&test_config, catalog_kinds, catalog_kind_count, NULL), SL_OK);
    loop_run_fiber(body, NULL);
    catalog_close();
    cache_close();
    sl_arena_free(&arena);
}

static int begin_file(void **state)
{
    log_set_levels("off");
    loop_init(2);
    return 0;
}

static int end_file(void **state)
{
    loop_close();
    return 0;
}

TEST_FILE(.begin = begin_file, .end = end_file, .setup = dir_setup, .teardown = dir_teardown);
