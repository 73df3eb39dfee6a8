/* A store in a directory: what is put there is whole or not there, known by what was packed, and goes when its time has come. */
#include "../directory.h"
#include "../fetch/support.h"

#include <sys/stat.h>

#include "store/impl.h"

static char dir[] = "/tmp/symloom-store-XXXXXX";
static const uint8_t md5[16] = {1, 2, 3, 255};

static const char *in_dir(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static bool is_there(const char *name)
{
    return access(in_dir(name), F_OK) == 0;
}

static size_t entries_of(const char *name)
{
    struct stat st;
    return stat(in_dir(name), &st) == 0 ? (size_t)st.st_nlink : 0; /* of directories: two, and one for each within */
}

static enum sl_code put(const char *name, const void *data, size_t size, struct sl_error *error)
{
    struct store_tmp_file work;
    struct store_meta meta = {.size = size};
    *error = (struct sl_error){0};
    assert_int_equal(store_tmp_file_create(&work, error), SL_OK);
    assert_true(sl_write_all(work.fd, (struct sl_bytes){data, size}));
    enum sl_code code = store_put(sl_str(name), &work, &meta, "text/plain", error);
    assert_int_equal(work.fd, -1);
    assert_false(*work.path && access(work.path, F_OK) == 0);
    return code;
}

static void expect(const char *name, const char *contents)
{
    struct sl_mapping mapping;
    struct store_meta meta;
    struct sl_error error;
    assert_int_equal(store_open(sl_str(name), &mapping, &meta, &error), SL_OK);
    assert_int_equal(meta.size, strlen(contents));
    assert_memory_equal(mapping.bytes.data, contents, strlen(contents));
    sl_unmap(&mapping);
}

static void objects(void *arg)
{
    struct store_meta meta;
    struct sl_error error;
    assert_int_equal(store_stat(SL_STR("v1/a/AB/a.sym"), false, &meta, &error), SL_NOT_FOUND);
    assert_int_equal(put("v1/a/AB/a.jpeg", "first", 5, &error), SL_OK);
    expect("v1/a/AB/a.jpeg", "first");
    assert_int_equal(put("v1/a/AB/a.jpeg", "another", 7, &error), SL_OK);
    expect("v1/a/AB/a.jpeg", "another");
    assert_int_equal(store_stat(SL_STR("v1/a/AB/a.jpeg"), false, &meta, &error), SL_OK);
    assert_false(meta.has_original || meta.is_packed);
    assert_int_equal(store_stat(SL_STR("v1/a/AB/a.jpeg"), true, &meta, &error), SL_OK);
    static const uint8_t of_another[4] = {0xB3, 0x2D, 0x73, 0xE5}; /* md5sum(1) */
    assert_true(meta.has_original && meta.modified_ns > 0);
    assert_memory_equal(meta.md5, of_another, 4);
    assert_int_equal(store_stat(SL_STR("v1/a/AB"), false, &meta, &error), SL_NOT_FOUND); /* a directory */
}

static void packed_objects(void *arg)
{
    uint8_t file[STORE_GZIP_HEADER_SIZE + 4] = {0};
    struct store_meta meta;
    struct sl_error error;
    store_gzip_header_write(UINT64_C(0x123456789A), md5, file);
    assert_int_equal(put("try/v1/a/AB/a.sym", file, sizeof file, &error), SL_OK);
    assert_int_equal(store_stat(SL_STR("try/v1/a/AB/a.sym"), false, &meta, &error), SL_OK);
    assert_true(meta.is_packed && meta.has_original);
    assert_int_equal(meta.original_size, UINT64_C(0x123456789A));
    assert_memory_equal(meta.md5, md5, 16);
    assert_int_equal(meta.size, sizeof file);
    for (size_t size = 0; size < STORE_GZIP_HEADER_SIZE; size++)
        assert_false(store_gzip_header_read((struct sl_bytes){file, size}, &meta));
    file[12] = 'X'; /* the field of somebody else */
    assert_false(store_gzip_header_read((struct sl_bytes){file, sizeof file}, &meta));
}

static void texts(void *arg)
{
    const struct sl_str names[] = {SL_STR("codeinfo/a/AB"), SL_STR("codeinfo/b.dll/CD")};
    struct sl_buf text = {0};
    struct sl_error error;
    for (int round = 0; round < 2; round++) { /* the second time they are one file already */
        assert_int_equal(store_put_text(names, 2, SL_STR("{\"x\":1}"), &error), SL_OK);
        for (size_t i = 0; i < 2; i++) {
            sl_buf_clear(&text);
            assert_int_equal(store_read(names[i], &text, &error), SL_OK);
            assert_true(sl_str_equal(sl_buf_view(&text), SL_STR("{\"x\":1}")));
        }
    }
    assert_int_equal(store_put_text(names, 1, SL_STR("{}"), &error), SL_OK);
    expect("codeinfo/a/AB", "{}");
    expect("codeinfo/b.dll/CD", "{\"x\":1}");
    assert_int_equal(store_put_text(names, 0, SL_STR("{}"), &error), SL_OK);
    sl_buf_free(&text);
}

static void failures(void *arg)
{
    char long_name[1200];
    struct sl_error error;
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(put(long_name, "x", 1, &error), SL_INTERNAL);
    assert_int_equal(put("v1/a/AB/a.jpeg/below/a file", "x", 1, &error), SL_INTERNAL);
    const struct sl_str names[] = {SL_STR("codeinfo/a/AB"), {long_name, sizeof long_name - 1}};
    assert_int_equal(store_put_text(names, 2, SL_STR("{\"y\":1}"), &error), SL_INTERNAL);
    expect("codeinfo/a/AB", "{}");
    assert_int_equal(entries_of("tmp"), 2);
    rmdir(in_dir("tmp")); /* somebody cleans up */
    assert_int_equal(put("v1/a/AB/b.jpeg", "x", 1, &error), SL_OK);
}

static void expiry(void *arg)
{
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct sl_error error;
    assert_int_equal(put("try/v1/b/AB/b.sym", "x", 1, &error), SL_OK);
    assert_int_equal(put("v1/b/AB/b.sym", "x", 1, &error), SL_OK);
    for (const char *const *name = (const char *const[]){"try/v1/b/AB/b.sym", "v1/b/AB/b.sym", NULL}; *name; name++)
        assert_int_equal(utimensat(AT_FDCWD, in_dir(*name), old, 0), 0);
    struct store_tmp_file work;
    assert_int_equal(store_tmp_file_create(&work, &error), SL_OK);
    assert_int_equal(futimens(work.fd, old), 0);
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    assert_true(fiber_start(&group, store_sweep_repeatedly, NULL));
    for (int i = 0; i < 1000 && is_there("try/v1/b"); i++)
        fiber_sleep(10);
    fiber_group_cancel(&group);
    fiber_group_wait(&group);
    assert_false(is_there("try/v1/b"));
    assert_int_not_equal(access(work.path, F_OK), 0);
    assert_true(is_there("v1/b/AB/b.sym") && is_there("try/v1/a/AB/a.sym"));
    store_tmp_file_discard(&work);
}

static void everything(void *arg)
{
    struct config *config = arg;
    struct sl_error error = {0};
    size_t count;
    assert_int_equal(store_init(config, &error), SL_OK);
    assert_true(store_is_open());
    assert_string_equal(store_bucket(), strrchr(dir, '/') + 1);
    assert_true(sl_str_starts(store_sources(&count)->path, sl_str(dir)));
    assert_int_equal(count, 2);
    objects(NULL);
    packed_objects(NULL);
    texts(NULL);
    failures(NULL);
    expiry(NULL);
    store_close();
    assert_false(store_is_open());
}

TEST(directory_store_keeps_objects)
{
    char yaml[200];
    struct config *config;
    struct value_problems problems = {0};
    struct sl_error error;
    assert_non_null(mkdtemp(dir));
    snprintf(yaml, sizeof yaml, "mozilla: {store: {filesystem: {path: %s}}}\n", dir);
    assert_int_equal(config_parse(sl_str(yaml), "test", &config, &problems, &error), SL_OK);
    struct fetch_options options = open_options();
    with_fetch(&options, everything, config);
    config_release(config);
    assert_int_equal(directory_remove(dir), 0);
}

TEST(unconfigured_store_is_absent)
{
    struct config *config;
    struct value_problems problems = {0};
    struct sl_error error = {0};
    assert_int_equal(config_parse(SL_STR("mozilla: {}\n"), "test", &config, &problems, &error), SL_OK);
    assert_int_equal(store_init(config, &error), SL_NOT_FOUND);
    assert_false(store_is_open());
    config_release(config);
    static const char yaml[] = "mozilla: {store: {filesystem: {path: /dev/null/store}}}\n";
    assert_int_equal(config_parse(sl_str(yaml), "test", &config, &problems, &error), SL_OK);
    assert_int_equal(store_init(config, &error), SL_INTERNAL);
    assert_false(store_is_open());
    config_release(config);
}
