/* Names, bytes and ages: all that needs neither the loop nor, but for side files, a disk. */
#include "support.h"

#include "../descriptors.h"

/* ---- keys ---- */

static void check_path(const char *key, unsigned version, bool format1, const char *path)
{
    char out[128];
    cache_relative_path(sl_str(key), version, format1, out);
    assert_string_equal(out, path);
}

TEST(file_name_is_the_hash_of_the_key)
{
    const char *key = "scope: global\n\nsource: foo\nlocation: file://bar.baz\n";
    check_path(key, 0, true, "v0/f5/e08b92/a55c1357413b5e36547a8b534a014c3a00299e7622e4c4b022a96541");
    check_path(key, 0, false, "v0/f5/e0/8b92a55c1357413b5e36547a8b534a014c3a00299e7622e4c4b022a96541");
    check_path("scope: global\n\nsource: foo\nlocation: file://bar.baz\n\nsecond_source:\nsource: foo\n"
               "location: file://bar.quux\n",
               0, false, "v0/d9/40/ba7507d18c0e9a1d884809670a1e32a72a85ed7563c52909507bf594880a");
    check_path("scope: 12345\n\nsource: sentry:project\nlocation: sentry://project_debug_file/4711\n", 2, false,
               "v2/41/c0/938d146077659e0836af999b541275cb9501cc538f5c926445bc754f4d19");
    check_path("", 1001, false, "v1001/e3/b0/c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* ---- errors ---- */

static void check_decode(const char *text, enum sl_code code, const char *message)
{
    struct sl_error error = {0};
    assert_int_equal(cache_error_decode((struct sl_bytes){(const uint8_t *)text, strlen(text)}, &error), code);
    if (message) {
        assert_int_equal(error.code, code);
        assert_string_equal(error.message, message);
    }
}

TEST(error_markers_are_decoded)
{
    check_decode("", SL_NOT_FOUND, NULL);
    check_decode("malformedDoesn't look like anything to me", SL_MALFORMED, "Doesn't look like anything to me");
    check_decode("downloaderrorSomeone unplugged the internet", SL_DOWNLOAD_ERROR, "Someone unplugged the internet");
    check_decode("permissiondeniedI'm sorry Dave, I'm afraid I can't do that", SL_PERMISSION_DENIED,
                 "I'm sorry Dave, I'm afraid I can't do that");
    check_decode("malformeddownloaderror", SL_MALFORMED, "downloaderror");
    check_decode("downloaderrormalformed", SL_DOWNLOAD_ERROR, "malformed");
    check_decode("unsupportedx", SL_UNSUPPORTED, "x");
    check_decode("permissiondenied", SL_PERMISSION_DENIED, "");
    const char *const contents[] = {"Not any of the error cases", "addictive", "malform", "dler", "hi", "Timeout"};
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++)
        check_decode(contents[i], SL_OK, NULL);
}

TEST(timeout_markers_hold_durations)
{
    struct sl_error error;
    assert_int_equal(cache_error_decode((struct sl_bytes){(const uint8_t *)"timeout4m33s", 12}, &error), SL_TIMEOUT);
    assert_true(error.duration_ns == 273 * S);
    assert_string_equal(error.message, "273s");
    check_decode("timeout4m 33s", SL_TIMEOUT, "273s");
    check_decode("timeout100ms", SL_TIMEOUT, "100ms");
    check_decode("timeoutsoon", SL_INTERNAL, NULL);
    check_decode("timeout", SL_INTERNAL, NULL);
}

TEST(error_details_are_sanitised)
{
    struct sl_error error;
    static const char nul[] = "malformedbefore\0after";
    assert_int_equal(cache_error_decode((struct sl_bytes){(const uint8_t *)nul, sizeof nul - 1}, &error), SL_MALFORMED);
    assert_string_equal(error.message, "before");
    check_decode("malformeda\xffz", SL_MALFORMED, "a\xEF\xBF\xBDz");
    check_decode("malformed\xe2\x82", SL_MALFORMED, "\xEF\xBF\xBD"); /* cut in a character */
    check_decode("malformed\xed\xa0\x80", SL_MALFORMED, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"); /* a surrogate */
    check_decode("malformed\xc0\xaf!", SL_MALFORMED, "\xEF\xBF\xBD\xEF\xBF\xBD!");               /* overlong */
    check_decode("malformed\xf0\x9f\x98\x80", SL_MALFORMED, "\xf0\x9f\x98\x80");
    char hostile[2000] = "malformed";
    memset(hostile + 9, 0x80, sizeof hostile - 9);
    assert_int_equal(cache_error_decode((struct sl_bytes){(uint8_t *)hostile, sizeof hostile}, &error), SL_MALFORMED);
    assert_true(strlen(error.message) < sizeof error.message);
    assert_int_equal(strlen(error.message) % 3, 0);
}

static void check_round(enum sl_code code, uint64_t ns, const char *message, const char *marker, const char *text)
{
    struct sl_error error = {.code = code, .duration_ns = ns}, back = {0};
    snprintf(error.message, sizeof error.message, "%s", message);
    struct sl_buf out = {0};
    cache_error_encode(&error, &out);
    assert_int_equal(out.size, strlen(marker));
    assert_memory_equal(out.data ? out.data : (const void *)"", marker, out.size);
    assert_int_equal(cache_error_decode(sl_buf_bytes(&out), &back), code);
    assert_true(back.duration_ns == ns);
    sl_buf_clear(&out);
    cache_error_text(&back, &out);
    assert_int_equal(out.size, strlen(text));
    assert_memory_equal(out.data, text, out.size);
    sl_buf_free(&out);
}

TEST(errors_survive_a_round_trip)
{
    check_round(SL_NOT_FOUND, 0, "", "", "not found");
    check_round(SL_PERMISSION_DENIED, 0, "403 Forbidden", "permissiondenied403 Forbidden",
                "permission denied: 403 Forbidden");
    check_round(SL_PERMISSION_DENIED, 0, "", "permissiondenied", "permission denied: ");
    check_round(SL_TIMEOUT, 300 * S, "300s", "timeout5m", "download timed out after 300s");
    check_round(SL_TIMEOUT, 1500 * MS, "1.5s", "timeout1s 500ms", "download timed out after 1.5s");
    check_round(SL_TIMEOUT, 100 * MS, "100ms", "timeout100ms", "download timed out after 100ms");
    check_round(SL_DOWNLOAD_ERROR, 0, "500 Internal Server Error", "downloaderror500 Internal Server Error",
                "download failed: 500 Internal Server Error");
    check_round(SL_MALFORMED, 0, "unsupported object file format", "malformedunsupported object file format",
                "malformed: unsupported object file format");
    check_round(SL_UNSUPPORTED, 0, "x", "unsupportedx", "unsupported: x");
    struct sl_error internal = {.code = SL_INTERNAL, .message = "secret path"};
    struct sl_buf out = {0};
    cache_error_encode(&internal, &out);
    assert_int_equal(out.size, 0);
    cache_error_text(&internal, &out);
    assert_memory_equal(out.data, "internal error", out.size);
    sl_buf_free(&out);
}

/* ---- side files ---- */

static void check_meta(const char *json, enum cache_meta_result result)
{
    struct cache_meta meta;
    put_file("entry.metadata", json, 0);
    assert_int_equal(cache_meta_read(AT_FDCWD, in_dir("entry"), &meta), result);
}

TEST(side_files_are_read)
{
    struct cache_meta meta;
    assert_int_equal(cache_meta_read(AT_FDCWD, in_dir("entry"), &meta), CACHE_META_MISSING);
    put_file("entry.metadata", "{\"scope\":\"12345\",\"time_created\":1700000000,\"debug\":null}", 0);
    assert_int_equal(cache_meta_read(AT_FDCWD, in_dir("entry"), &meta), CACHE_META_READ);
    assert_false(meta.is_public || meta.has_status || meta.has_size);
    assert_int_equal(meta.created_s, 1700000000);
    put_file("entry.metadata",
             "{\"scope\":null,\"time_created\":5,\"status\":\"timeout\",\"size\":7,\"key\":\"k\",\"other\":[1]}", 0);
    assert_int_equal(cache_meta_read(AT_FDCWD, in_dir("entry"), &meta), CACHE_META_READ);
    assert_true(meta.is_public && meta.has_status && meta.has_size);
    assert_int_equal(meta.status, SL_TIMEOUT);
    assert_int_equal(meta.size, 7);
}

TEST(side_file_without_descriptors_is_busy_not_missing)
{
    struct cache_meta meta;
    put_file("entry.metadata", "{\"scope\":null,\"time_created\":5}", 0);
    use_up_descriptors();
    enum cache_meta_result result = cache_meta_read(AT_FDCWD, in_dir("entry"), &meta);
    free_descriptors();
    assert_int_equal(result, CACHE_META_BUSY);
    assert_int_equal(cache_meta_read(AT_FDCWD, in_dir("entry"), &meta), CACHE_META_READ);
}

TEST(malformed_side_files_are_reported)
{
    const char *const bad[] = {"",
                               "{",
                               "[]",
                               "null",
                               "{}",
                               "{\"scope\":null}",
                               "{\"time_created\":1}",
                               "{\"scope\":1,\"time_created\":1}",
                               "{\"scope\":null,\"time_created\":\"1\"}",
                               "{\"scope\":null,\"time_created\":1.5}",
                               "{\"scope\":null,\"time_created\":99999999999999999999}",
                               "{\"scope\":null,\"time_created\":1}x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_meta(bad[i], CACHE_META_BAD);
    check_meta("{\"scope\":null,\"time_created\":-5,\"size\":-1,\"status\":\"cancelled\"}", CACHE_META_READ);
    char *deep = calloc(1, 20000);
    memset(deep, '[', 19999);
    check_meta(deep, CACHE_META_BAD);
    free(deep);
}

TEST(side_files_are_written)
{
    struct sl_buf out = {0};
    cache_meta_encode(SL_STR("scope: a\"b\n"), SL_STR("a\"b"), 1700000000123456789, SL_OK, 5, false, "", &out);
    static const char expected[] = "{\"scope\":\"a\\\"b\",\"time_created\":1700000000,\"debug\":null,\"status\":\"ok\","
                                   "\"size\":5,\"key\":\"scope: a\\\"b\\n\",\"nanoseconds\":123456789}";
    assert_int_equal(out.size, sizeof expected - 1);
    assert_memory_equal(out.data, expected, out.size);
    assert_int_equal(cache_tmp_open(test_dir, NULL), SL_OK);
    assert_true(cache_meta_write(in_dir("entry"), sl_buf_bytes(&out)));
    cache_tmp_close();
    assert_string_equal(file_text("entry.metadata"), expected);
    assert_int_equal(files_below("tmp"), 0);
    struct sl_str global[] = {SL_STR("global"), SL_STR("")};
    for (size_t i = 0; i < 2; i++) {
        sl_buf_clear(&out);
        cache_meta_encode(SL_STR("k"), global[i], 1000000000, SL_NOT_FOUND, 0, false, "", &out);
        assert_true(sl_str_starts(sl_buf_view(&out), SL_STR("{\"scope\":null,\"time_created\":1,")));
    }
    sl_buf_free(&out);
}

/* ---- what an entry is ---- */

static enum sl_code decode(const char *bytes, const struct cache_meta *meta, bool *kept)
{
    struct sl_error error;
    enum sl_code code =
        cache_entry_decode((struct sl_bytes){(const uint8_t *)bytes, strlen(bytes)}, strlen(bytes), &meta, &error);
    *kept = meta != NULL;
    return code;
}

TEST(side_file_decides_the_status)
{
    bool kept;
    struct cache_meta ok = {.has_status = true, .status = SL_OK, .mtime_ns = 200};
    assert_int_equal(decode("", &ok, &kept), SL_OK);
    assert_int_equal(decode("timeout is the first word of this source file", &ok, &kept), SL_OK);
    assert_true(kept);
    struct cache_meta missing = {.has_status = true, .status = SL_NOT_FOUND, .mtime_ns = 200};
    assert_int_equal(decode("", &missing, &kept), SL_NOT_FOUND);
    assert_true(kept);
    assert_int_equal(decode("now there is something", &missing, &kept), SL_OK); /* of an entry before this one */
    assert_false(kept);
    assert_int_equal(decode("", NULL, &kept), SL_NOT_FOUND);
}

TEST(size_mismatch_is_damage_only_if_the_side_file_is_newer)
{
    struct cache_meta meta = {.has_size = true, .size = 10, .mtime_ns = 200};
    assert_false(cache_entry_damaged(10, 100, 0, &meta));
    assert_true(cache_entry_damaged(9, 100, 0, &meta));
    assert_false(cache_entry_damaged(9, 300, 0, &meta));    /* the entry is newer: replaced a moment ago */
    assert_false(cache_entry_damaged(9, 300, 300, &meta));  /* and made anew */
    assert_true(cache_entry_damaged(9, 300, 100, &meta));   /* the same file, cut since */
    assert_false(cache_entry_damaged(10, 300, 100, &meta)); /* touched */
    assert_false(cache_entry_damaged(9, 100, 0, NULL));
    const struct cache_meta *late = &meta;
    assert_int_equal(cache_entry_decode((struct sl_bytes){(const uint8_t *)"abc", 3}, 3, &late, NULL), SL_OK);
    assert_null(late);
}

/* ---- ages ---- */

static const struct cache_lifetimes short_lives = {.max_unused_for = 100 * S,
                                                   .retry_misses_after = 10 * S,
                                                   .retry_misses_after_public = 50 * S,
                                                   .retry_malformed_after = 20 * S};

static struct cache_freshness judge(enum cache_class class, int64_t mtime_age_s, int64_t created_age_s, bool is_public)
{
    int64_t now = 1000000 * CACHE_SECOND_NS;
    struct cache_facts facts = {class, is_public, now - mtime_age_s * CACHE_SECOND_NS,
                                now - created_age_s * CACHE_SECOND_NS, true};
    return cache_expiry(&short_lives, &facts, now, now - 500 * CACHE_SECOND_NS, true);
}

TEST(contents_expire_by_use)
{
    assert_false(judge(CACHE_CONTENTS, 100, 900, false).expired); /* greater, not equal */
    assert_true(judge(CACHE_CONTENTS, 101, 0, false).expired);
    assert_false(judge(CACHE_CONTENTS, -7, 0, false).expired); /* the clock went back */
    assert_true(judge(CACHE_CONTENTS, -7, 0, false).left_ns == 3600 * S);
    assert_true(judge(CACHE_CONTENTS, 60, 0, false).left_ns == 3540 * S);
}

TEST(errors_expire_by_creation)
{
    assert_false(judge(CACHE_NEGATIVE, 900, 9, false).expired);
    assert_true(judge(CACHE_NEGATIVE, 900, 9, false).left_ns == 1 * S);
    assert_true(judge(CACHE_NEGATIVE, 0, 10, false).expired); /* equal is enough */
    assert_false(judge(CACHE_NEGATIVE, 0, 49, true).expired);
    assert_true(judge(CACHE_NEGATIVE, 0, 50, true).expired);
    assert_false(judge(CACHE_MALFORMED, 0, 19, true).expired);
    assert_true(judge(CACHE_MALFORMED, 0, 20, false).expired);
    assert_false(judge(CACHE_NEGATIVE, 0, -50, false).expired);
}

TEST(malformed_entries_are_retried_at_each_start)
{
    int64_t start = 1000 * CACHE_SECOND_NS + 500;
    struct cache_lifetimes never = {DURATION_NEVER, DURATION_NEVER, DURATION_NEVER, DURATION_NEVER, 0};
    struct cache_facts facts = {
        .class = CACHE_MALFORMED, .created_ns = 999 * CACHE_SECOND_NS, .created_in_seconds = true};
    assert_true(cache_expiry(&never, &facts, start + 1, start, true).expired);
    assert_false(cache_expiry(&never, &facts, start + 1, start, false).expired);
    facts.created_ns = 1000 * CACHE_SECOND_NS; /* the second of the start: whole seconds cannot tell */
    assert_false(cache_expiry(&never, &facts, start + 1, start, true).expired);
    facts.created_in_seconds = false;
    assert_true(cache_expiry(&never, &facts, start + 1, start, true).expired);
    facts.class = CACHE_NEGATIVE;
    assert_false(cache_expiry(&never, &facts, start + 1, start, true).expired);
    assert_true(cache_expiry(&never, &facts, start + 1, start, true).left_ns == DURATION_NEVER);
}

TEST(used_contents_are_touched_hourly)
{
    int64_t now = 1000000 * CACHE_SECOND_NS;
    struct cache_lifetimes lives = {.max_unused_for = DURATION_NEVER};
    struct cache_facts facts = {.class = CACHE_CONTENTS, .mtime_ns = now - 3599 * CACHE_SECOND_NS};
    struct cache_freshness verdict = cache_expiry(&lives, &facts, now, 0, true);
    assert_false(verdict.touch || verdict.expired);
    assert_true(verdict.left_ns == 1 * S);
    facts.mtime_ns = now - 3600 * CACHE_SECOND_NS;
    verdict = cache_expiry(&lives, &facts, now, 0, true);
    assert_true(verdict.touch && verdict.left_ns == 3600 * S);
}

TEST(absurd_creation_times_do_not_overflow)
{
    struct cache_facts facts;
    struct cache_meta meta = {.created_s = INT64_MAX};
    cache_entry_facts(SL_NOT_FOUND, 0, &meta, &facts);
    assert_false(cache_expiry(&short_lives, &facts, cache_now_ns(), 0, true).expired);
    meta.created_s = INT64_MIN;
    cache_entry_facts(SL_NOT_FOUND, 0, &meta, &facts);
    assert_true(cache_expiry(&short_lives, &facts, cache_now_ns(), 0, true).expired);
}

/* ---- temporary files ---- */

TEST(stale_temporary_directories_are_removed)
{
    int ready[2], go[2];
    assert_int_equal(pipe(ready) | pipe(go), 0);
    pid_t child = fork(); /* a process that dies without cleaning up */
    if (child == 0) {
        struct cache_tmp tmp;
        bool ok = cache_tmp_open(test_dir, NULL) == SL_OK && cache_tmp_create(&tmp, false, NULL) == SL_OK;
        if (!ok || write(ready[1], "r", 1) != 1)
            _exit(1);
        char byte;
        _exit(read(go[0], &byte, 1) == 1 ? 0 : 1); /* waits to be killed */
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    put_file("tmp/fresh", "x", 0);
    put_file("tmp/old", "x", 25 * 3600 * S);
    assert_int_equal(mkdir(in_dir("tmp/1-young"), 0750), 0);
    assert_int_equal(mkdir(in_dir("tmp/2-old"), 0750), 0);
    put_file("tmp/2-old/deep/er/file", "x", 0);
    set_age(in_dir("tmp/2-old"), 3600 * S);
    cache_tmp_sweep(test_dir);
    assert_int_equal(files_below("tmp"), 3); /* the living process, the fresh file, the young directory */
    assert_true(exists("tmp/fresh") && exists("tmp/1-young"));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    cache_tmp_sweep(test_dir);
    assert_int_equal(files_below("tmp"), 2);
    close(ready[0]), close(ready[1]), close(go[0]), close(go[1]);
}

TEST(removed_temporary_directory_is_remade)
{
    struct cache_tmp tmp;
    assert_int_equal(cache_tmp_open(test_dir, NULL), SL_OK);
    cache_tmp_sweep(test_dir); /* its own lock holds it back */
    assert_int_equal(files_below("tmp"), 1);
    assert_int_equal(directory_remove(in_dir("tmp")), 0);
    assert_int_equal(cache_tmp_create(&tmp, false, NULL), SL_OK);
    assert_true(access(tmp.path, F_OK) == 0);
    struct stat st;
    assert_int_equal(fstat(tmp.fd, &st), 0);
    assert_int_equal(st.st_mode & 0777 & ~0640, 0);
    cache_tmp_sweep(test_dir);
    assert_true(access(tmp.path, F_OK) == 0);
    cache_tmp_discard(&tmp);
    cache_tmp_close();
    assert_int_equal(files_below("tmp"), 0);
}

TEST(temporary_files_are_unnamed_without_cache_dir)
{
    struct cache_tmp tmp;
    assert_int_equal(cache_tmp_open(NULL, NULL), SL_OK);
    assert_int_equal(cache_tmp_create(&tmp, false, NULL), SL_OK);
    assert_int_equal(tmp.path[0], 0);
    assert_int_equal(write(tmp.fd, "x", 1), 1);
    cache_tmp_discard(&tmp);
    assert_int_equal(tmp.fd, -1);
    cache_tmp_close();
    struct sl_error error;
    char *deep = calloc(1, 4000);
    memset(deep, 'd', 3999);
    assert_int_equal(cache_tmp_open(deep, &error), SL_MALFORMED);
    free(deep);
}

TEST_FILE(.setup = dir_setup, .teardown = dir_teardown);
