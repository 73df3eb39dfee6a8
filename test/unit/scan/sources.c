/* Source texts are found in the packages that were built from the same source, and no others; what a pass keeps and refuses. */
#include "../cache/support.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "catalog/catalog.h"
#include "conversion/conversion.h"
#include "core/files.h"
#include "fetch/fetch.h"
#include "scan/scan.h"

static char mirror[128];
static struct config_scan entry;
static struct source source;

/* ---- packages ---- */

static void add_member(struct sl_buf *out, const char *name, struct sl_bytes contents)
{
    char header[512] = {0};
    unsigned sum = 8 * ' ';
    snprintf(header, 100, "%s", name);
    memcpy(header + 100, "0000644", 7);
    snprintf(header + 124, 12, "%011o", (unsigned)contents.size);
    memcpy(header + 136, "00000000000", 11);
    header[156] = '0';
    for (size_t i = 0; i < sizeof header; i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    header[155] = ' ';
    sl_buf_add(out, header, sizeof header);
    sl_buf_add(out, contents.data, contents.size);
    sl_buf_fill(out, 0, (512 - contents.size % 512) % 512);
}

static void add_text(struct sl_buf *out, const char *name, const char *text)
{
    add_member(out, name, (struct sl_bytes){(const uint8_t *)text, strlen(text)});
}

static void write_archive(const char *name, struct sl_buf *archive)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", mirror, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    assert_true(fd >= 0 && sl_write_all(fd, sl_buf_bytes(archive)));
    close(fd);
    sl_buf_free(archive);
}

static void add_ar_member(struct sl_buf *out, const char *name, struct sl_buf *contents)
{
    sl_buf_printf(out, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "100644", contents->size);
    sl_buf_add(out, contents->data, contents->size);
    sl_buf_fill(out, '\n', contents->size % 2);
    sl_buf_free(contents);
}

/* The least that has a build id: an ELF header, a segment of notes, a note. */
static struct sl_bytes make_program(uint8_t file[196], uint8_t id)
{
    static const uint8_t head[] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 62, 0, 1};
    memset(file, 0, 196);
    memcpy(file, head, sizeof head);
    file[32] = 64; /* program headers */
    file[52] = 64, file[54] = 56, file[56] = 1;
    file[64] = 4;                         /* PT_NOTE */
    file[72] = file[80] = file[88] = 120; /* offset, addresses */
    file[96] = file[104] = 36;            /* sizes */
    file[112] = 4;
    file[120] = 4, file[124] = 20, file[128] = 3;
    memcpy(file + 132, "GNU", 4);
    memset(file + 136, id, 20);
    return (struct sl_bytes){file, 196};
}

/* A package of Debian with a program, built from `source_name`. */
static void write_deb(const char *name, const char *source_name, uint8_t id)
{
    uint8_t program[196];
    char control[200];
    struct sl_buf deb = {0}, format = {0}, control_tar = {0}, data = {0};
    snprintf(control, sizeof control, "Package: x\nSource: %s\nVersion: 1.2-3+b1\n", source_name);
    add_text(&control_tar, "./control", control);
    sl_buf_fill(&control_tar, 0, 1024);
    add_member(&data, "./usr/bin/x", make_program(program, id));
    sl_buf_fill(&data, 0, 1024);
    sl_buf_cstr(&format, "2.0\n");
    sl_buf_cstr(&deb, "!<arch>\n");
    add_ar_member(&deb, "debian-binary", &format);
    add_ar_member(&deb, "control.tar", &control_tar);
    add_ar_member(&deb, "data.tar", &data);
    write_archive(name, &deb);
}

static void write_sources(const char *name, const char *const *pairs)
{
    struct sl_buf archive = {0};
    for (; *pairs; pairs += 2)
        add_text(&archive, pairs[0], pairs[1]);
    sl_buf_fill(&archive, 0, 1024);
    write_archive(name, &archive);
}

/* ---- the service ---- */

static int begin_scan(void **state)
{
    struct sl_error error;
    struct fetch_options options = {.max_download_size = UINT64_MAX, .max_inflate_ratio = 1000};
    if (dir_setup(state) != 0)
        return -1;
    snprintf(mirror, sizeof mirror, "%s/mirror", test_dir);
    files_make_directory(mirror, 0700, FILES_UNSYNCED);
    entry = (struct config_scan){.path = sl_str(mirror), .kinds = SCAN_ALL_KINDS};
    source = (struct source){.id = SL_STR("scan:0"), .type = SOURCE_FILESYSTEM, .path = sl_str(mirror)};
    test_config.scan.items = &entry;
    test_config.scan.count = 1;
    test_config.sources = &source;
    test_config.source_count = 1;
    test_config.max_source_file_size = 1 << 20;
    test_config.object_max_source_size = 1 << 20;
    loop_init(2);
    if (cache_init(&test_config, catalog_kinds, catalog_kind_count, &error) != SL_OK)
        return -1;
    conversions_configure(&test_config);
    fetch_init(&options);
    scan_configure(&test_config);
    return 0;
}

static int end_scan(void **state)
{
    scan_close();
    fetch_close();
    cache_close();
    loop_close();
    return dir_teardown(state);
}

/* The text that is found for a path, or the name of the code. */
static void check(uint8_t id, const char *path, const char *expected)
{
    uint8_t bytes[20];
    struct sl_arena arena = {0};
    struct sl_error error = {0};
    struct cache_item *item;
    memset(bytes, id, sizeof bytes);
    enum sl_code code = scan_find_source((struct sl_bytes){bytes, sizeof bytes}, sl_str(path), &arena, &item, &error);
    struct sl_str found = sl_str(sl_code_name(code));
    if (code == SL_OK)
        found = (struct sl_str){(const char *)item->mapping.bytes.data, item->mapping.bytes.size};
    if (!sl_str_equal(found, sl_str(expected)))
        fail_msg("%s: expected %s, got " SL_STR_FMT " (%s)", path, expected, SL_STR_ARG(found), error.message);
    cache_release(item);
    sl_arena_free(&arena);
}

static void sources_body(void *arg)
{
    static const char *const foo[] =
        {"foo-1.2/src/a.c", "int a;", "foo-1.2/b.c", "top", "foo-1.2/src/b.c", "below", "foo-1.2/README", "text",
         "foo-1.2/lib/e.c", "e one",  NULL},
                             *const more[] = {"foo-1.2/lib/e.c", "e two", "usr/src/debug/foo/x.c", "exact", NULL},
                             *const other[] = {"bar-1.2/src/a.c", "other", NULL};
    struct sl_error error;
    (void)arg;
    write_deb("x.deb", "foo (1:1.2-3)", 7);
    write_deb("y.deb", "baz", 8);
    write_sources("foo_1.2.orig.tar", foo);
    write_sources("foo_1.2.orig-more.tar", more);
    write_sources("bar_1.2.orig.tar", other);
    assert_int_equal(scan_pass(0, &error), SL_OK);
    check(7, "/build/foo-1.2/src/a.c", "int a;");
    check(7, "/usr/src/foo-1.2-3/src/a.c", "int a;");
    check(7, "src/a.c", "not_found"); /* nothing says that it is that of the source */
    check(7, "/src/a.c", "int a;");
    check(7, "./src/a.c", "int a;");
    check(7, "/build/foo-1.2/b.c", "top");
    check(7, "/build/foo-1.2/src/b.c", "below");
    check(7, "/build/foo-1.2/gen/b.c", "not_found"); /* another b.c than those of the source */
    check(7, "/build/other-1/src/a.c", "not_found");
    check(7, "/build/foo-1.2/lib/e.c", "not_found"); /* two that are equally likely */
    check(7, "/usr/src/debug/foo/x.c", "exact");
    check(8, "/build/foo-1.2/src/a.c", "not_found"); /* built from another source */
    check(9, "/build/foo-1.2/src/a.c", "not_found");
    cache_drain();
}

TEST(texts_are_found_in_packages_of_the_same_source, .setup = begin_scan, .teardown = end_scan)
{
    loop_run_fiber(sources_body, NULL);
}

/* ---- passes ---- */

static uint64_t files_after_pass(void)
{
    struct sl_error error;
    struct scan_state state;
    assert_int_equal(scan_pass(0, &error), SL_OK);
    assert_true(scan_get_state(0, &state));
    return state.indexed_files;
}

static void short_of_descriptors_body(void *arg)
{
    enum { DEPTH = 50, FREE = 16 };
    char name[2 * DEPTH + 8], path[512];
    struct rlimit limit, low;
    (void)arg;
    for (size_t i = 0; i < DEPTH; i++)
        memcpy(name + 2 * i, "d/", 2);
    snprintf(name + 2 * DEPTH, sizeof name - 2 * DEPTH, "x.deb");
    snprintf(path, sizeof path, "%s/%s", mirror, name);
    assert_true(files_make_parents(path, 0700));
    write_deb(name, "foo", 7);
    assert_int_equal(files_after_pass(), 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int lowest = dup(0);
    close(lowest);
    low = (struct rlimit){(rlim_t)lowest + FREE, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    uint64_t count = files_after_pass();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(count, 1);
    unlink(path);
    assert_int_equal(files_after_pass(), 0);
    cache_drain();
}

TEST(files_of_directories_that_cannot_be_read_now_stay_in_the_index, .setup = begin_scan, .teardown = end_scan)
{
    loop_run_fiber(short_of_descriptors_body, NULL);
}

TEST(a_record_is_of_one_file)
{
    struct sl_index_builder builder = {0};
    struct sl_index_file file = {.path = SL_STR("a.deb")};
    struct sl_buf bytes = {0};
    struct sl_index index;
    struct sl_error error;
    sl_index_add_file(&builder, &file);
    assert_true(sl_index_finish(&builder, 0, &bytes));
    assert_int_equal(kind_scan_file.open(sl_buf_bytes(&bytes), &index, &error), SL_OK);
    sl_buf_clear(&bytes);
    sl_index_add_file(&builder, &file);
    assert_true(sl_index_finish(&builder, 0, &bytes));
    assert_int_equal(kind_scan_file.open(sl_buf_bytes(&bytes), &index, &error), SL_MALFORMED);
    sl_buf_free(&bytes);
    sl_index_builder_free(&builder);
}
