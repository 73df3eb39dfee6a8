/* References to the environment, secrets in files, and that secrets show nowhere. */
#include "parse.h"

#include <sys/stat.h>
#include <unistd.h>

#include "config/impl.h"
#include "origin/origin.h"

#define SECOND UINT64_C(1000000000)

static char directory[] = "/tmp/config-XXXXXX";

static int make_directory(void **state)
{
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    return rmdir(directory);
}

/* The path of a file in the directory, with `text` in it. */
static const char *write_file(const char *name, const char *text, size_t size, mode_t mode)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void dump_text(const struct config *config, struct sl_buf *out)
{
    config_dump(config, out);
    sl_buf_u8(out, '\0');
}

/* ---- environment ---- */
TEST(references_have_the_type_of_their_key)
{
    struct outcome o;
    setenv("T_BOOL", "true", 1);
    setenv("T_INT", "17", 1);
    setenv("T_SIZE", "64KiB", 1);
    setenv("T_DURATION", "1h 30m", 1);
    setenv("T_ZERO", "0", 1);
    setenv("T_NULL", "null", 1);
    setenv("T_WORD", "off", 1);
    setenv("T_PORT", "127.0.0.1:80", 1);
    setenv("T_DIGITS", "2030", 1);
    parse_good(&o, "enable_cache_cleanup: ${T_BOOL}\nmax_fibers: ${T_INT}\nresult_bytes: '${T_SIZE}'\n"
                   "max_source_file_size: \"${T_INT}\"\nresult_ttl: ${T_DURATION}\nhead_timeout: ${T_ZERO}\n"
                   "max_download_size: ${T_NULL}\nmax_concurrent_requests: ${T_NULL}\ncache_dir: ${T_NULL}\n"
                   "logging: {level: \"${T_WORD}\", access: \"${T_WORD}\", file: \"${T_DIGITS}\"}\n"
                   "bind: [\"${T_PORT}\", systemd]\nhttp: {compress_min: \"${T_WORD}\"}\n"
                   "caches: {derived: {max_unused_for: \"${T_NULL}\"}}\n"
                   "sources: [{id: \"${T_DIGITS}\", type: filesystem, path: /, is_public: \"${T_BOOL}\"}]\n");
    assert_true(o.config->enable_cache_cleanup);
    assert_int_equal(o.config->max_fibers, 17);
    assert_int_equal(o.config->result_bytes, 65536);
    assert_int_equal(o.config->max_source_file_size, 17);
    assert_true(o.config->result_ttl_ns == 5400 * SECOND);
    assert_true(o.config->head_timeout_ns == 0);
    assert_true(o.config->max_download_size == UINT64_MAX && o.config->max_concurrent_requests == UINT64_MAX);
    assert_null(o.config->cache_dir);
    assert_string_equal(o.config->log_level, "off");
    assert_int_equal(o.config->access_log, 2);
    assert_string_equal(o.config->log_file, "2030");
    assert_string_equal(o.config->bind[0], "127.0.0.1:80");
    assert_true(o.config->http.compress_min == UINT64_MAX);
    assert_true(o.config->derived.max_unused_for == UINT64_MAX);
    assert_true(sl_str_equal(o.config->sources[0].id, SL_STR("2030")));
    assert_true(o.config->sources[0].is_public);
    outcome_free(&o);
    expect_error("max_fibers: ${T_BOOL}", "1:13: error: max_fibers: true is not an integer");
    expect_error("result_ttl: ${T_INT}",
                 "1:13: error: result_ttl: \"17\" is not a duration (examples: 30s, 5m, 1h 30m, 7days)");
    expect_error("http: {allowed_hosts: \"${T_WORD}\"}", "1:23: error: http.allowed_hosts: \"off\" is not a list");
}

TEST(only_whole_values_are_references)
{
    static const char *const literal[] = {"$HOME",    "${}",      "${HOME",         "$ {HOME}",
                                          "x${HOME}", "${HOME}x", "${HOME}/${HOME}"};
    enum { NOTHING_LIKE_ONE = 4 }; /* the others get a warning */
    for (size_t i = 0; i < sizeof literal / sizeof *literal; i++) {
        char yaml[64];
        struct outcome o;
        snprintf(yaml, sizeof yaml, "cache_dir: '%s'", literal[i]);
        parse(&o, yaml);
        assert_string_equal(outcome_text(&o),
                            i < NOTHING_LIKE_ONE
                                ? ""
                                : "config.yml:1:12: warning: cache_dir: ${HOME} is not replaced: a variable "
                                  "must be the whole value\n");
        assert_string_equal(o.config->cache_dir, literal[i]);
        outcome_free(&o);
    }
}

/* The text of a variable is a text, also when it looks like a reference. */
TEST(references_are_resolved_once)
{
    struct outcome o;
    setenv("T_OUTER", "${T_INNER}", 1);
    setenv("T_INNER", "/inner", 1);
    parse_good(&o, "cache_dir: ${T_OUTER}");
    assert_string_equal(o.config->cache_dir, "${T_INNER}");
    outcome_free(&o);
    expect_error("bind: ${T_OUTER}",
                 "1:7: error: bind: \"${T_INNER}\": must be IP:PORT, [IPv6]:PORT, unix:/path or systemd");
    expect_error("max_fibers: ${T_OUTER}", "1:13: error: max_fibers: \"${T_INNER}\" is not an integer");
    expect_error("sources: ${T_OUTER}", "1:10: error: sources: expected a list, found a string");
}

TEST(an_unset_variable_is_reported_once)
{
    unsetenv("T_UNSET");
    static const struct {
        const char *yaml, *place;
    } cases[] = {
        {"max_fibers: ${T_UNSET}", "1:13: error: max_fibers"},
        {"bind: ${T_UNSET}", "1:7: error: bind"},
        {"bind: ['127.0.0.1:1', \"${T_UNSET}\"]", "1:23: error: bind[1]"},
        {"logging: {level: \"${T_UNSET}\"}", "1:18: error: logging.level"},
        {"sources: ${T_UNSET}", "1:10: error: sources"},
        {"sources: [\"${T_UNSET}\"]", "1:11: error: sources[0]"},
        {"sources: [{id: a, type: http, url: \"${T_UNSET}\"}]", "1:36: error: sources[0].url"},
        {"sources: [{id: a, type: \"${T_UNSET}\"}]", "1:25: error: sources[0].type"},
        {"sources: [{id: a, type: filesystem, path: /, is_public: \"${T_UNSET}\"}]",
         "1:57: error: sources[0].is_public"},
        {"sources: [{id: a, type: sentry, url: 'http://h', token: \"${T_UNSET}\"}]", "1:57: error: sources[0].token"},
        {"sources: [{id: a, type: sentry, url: 'http://h', token_file: \"${T_UNSET}\"}]",
         "1:62: error: sources[0].token_file"},
        {"caches: ${T_UNSET}", "1:9: error: caches"},
        {"shared_cache: {s3: {bucket: b, secret_key: \"${T_UNSET}\"}}", "1:44: error: shared_cache.s3.secret_key"},
        {"file_ptr: {unc_map: {a: \"${T_UNSET}\"}}", "1:25: error: file_ptr.unc_map.a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[160];
        snprintf(wanted, sizeof wanted, "%s: environment variable T_UNSET is not set", cases[i].place);
        expect_error(cases[i].yaml, wanted);
    }
    struct outcome o; /* enough is enough */
    struct sl_buf yaml = {0};
    sl_buf_cstr(&yaml, "special_paths: [");
    for (int i = 0; i < 1000; i++)
        sl_buf_cstr(&yaml, "\"${T_UNSET}\", ");
    sl_buf_cstr(&yaml, "]\nmax_fibers: x\n");
    parse_sized(&o, sl_buf_view(&yaml));
    assert_int_equal(o.problems.errors, CONFIG_MAX_PROBLEMS);
    outcome_free(&o);
    sl_buf_free(&yaml);
    setenv("T_EMPTY", "", 1); /* set, though */
    expect_error("cache_dir: ${T_EMPTY}", "1:12: error: cache_dir: the text is empty, null turns it off");
}

TEST(aliases_of_references_are_resolved)
{
    struct outcome o;
    setenv("T_TIME", "3s", 1);
    parse_good(&o, "connect_timeout: &t ${T_TIME}\nhead_timeout: *t\n");
    assert_true(o.config->connect_timeout_ns == 3 * SECOND && o.config->head_timeout_ns == 3 * SECOND);
    outcome_free(&o);
}

/* ---- secrets in files ---- */
static enum sl_code token_of(const char *path, struct outcome *o)
{
    char yaml[256];
    snprintf(yaml, sizeof yaml, "sources:\n- {id: a, type: sentry, url: 'http://h', token_file: '%s'}\n", path);
    parse(o, yaml);
    return o->code;
}

TEST(secrets_come_from_files)
{
    static const struct {
        const char *text, *secret;
    } cases[] = {{"abc", "abc"},         {"abc\n", "abc"},       {"abc\r\n", "abc"},
                 {"a b\nc\n", "a b\nc"}, {"${HOME}", "${HOME}"}, {" x \n\n", " x \n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o;
        const char *path = write_file("token", cases[i].text, strlen(cases[i].text), 0600);
        assert_int_equal(token_of(path, &o), SL_OK);
        assert_int_equal(o.problems.count, 0);
        assert_true(sl_str_equal(secret_open(o.config->sources[0].token), sl_str(cases[i].secret)));
        outcome_free(&o);
        setenv("T_PATH", path, 1);
        assert_int_equal(token_of("${T_PATH}", &o), SL_OK);
        assert_true(sl_str_equal(secret_open(o.config->sources[0].token), sl_str(cases[i].secret)));
        outcome_free(&o);
        unlink(path);
    }
}

static void expect_bad_file(const char *path, const char *wrong)
{
    struct outcome o;
    char wanted[256];
    assert_int_equal(token_of(path, &o), SL_MALFORMED);
    snprintf(wanted, sizeof wanted, "config.yml:2:54: error: sources[0].token_file: \"%s\": %s\n", path, wrong);
    assert_string_equal(outcome_text(&o), wanted);
    outcome_free(&o);
}

TEST(unusable_secret_files_are_errors)
{
    static char large[64 * 1024 + 1];
    memset(large, 's', sizeof large);
    const char *path = write_file("token", "", 0, 0600);
    expect_bad_file(path, "empty");
    write_file("token", "\r\n", 2, 0600);
    expect_bad_file(path, "empty");
    write_file("token", "a\0b", 3, 0600);
    expect_bad_file(path, "contains a NUL byte");
    write_file("token", large, sizeof large, 0600);
    expect_bad_file(path, "larger than 64 KiB");
    write_file("token", large, sizeof large - 1, 0600);
    struct outcome o;
    assert_int_equal(token_of(path, &o), SL_OK);
    assert_int_equal(o.config->sources[0].token.hidden.size, 64 * 1024);
    outcome_free(&o);
    unlink(path);
    expect_bad_file(path, "No such file or directory");
    expect_bad_file(directory, "not a regular file");
    expect_bad_file("/dev/zero", "not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_bad_file(path, "not a regular file"); /* and does not wait for a writer */
    unlink(path);
    expect_error("sources: [{id: a, type: sentry, url: 'http://h', token_file: 5}]",
                 "1:62: error: sources[0].token_file: 5 is not the path of a file");
    expect_error("sources: [{id: a, type: sentry, url: 'http://h', token_file: [x]}]",
                 "1:62: error: sources[0].token_file: a list is not the path of a file");
    expect_error("sources: [{id: a, type: sentry, url: 'http://h', token: t, token_file: /x}]",
                 "1:72: error: sources[0].token_file: set only one of token and token_file");
    expect_error("shared_cache: {redis: {password_file: /nowhere/x}}",
                 "1:39: error: shared_cache.redis.password_file: \"/nowhere/x\": No such file or directory");
    expect_error("cache_dir_file: /x", "1:1: warning: cache_dir_file: unknown key");
}

/* ---- silence ---- */
static const char full_of_secrets[] =
    "shared_cache: {redis: {url: 'redis://:sEcReT@h', password: sEcReT}, s3: {access_key: sEcReT, secret_key: "
    "sEcReT}}\n"
    "sources:\n"
    "- {id: a, type: http, url: 'https://u:sEcReT@h/p?sig=sEcReT#sEcReT', headers: {Authorization: sEcReT, X: "
    "sEcReT}}\n"
    "- {id: b, type: sentry, url: 'https://sEcReT@h', token: sEcReT}\n"
    "- {id: c, type: sentry, url: 'https://h', cookies: sEcReT}\n"
    "- {id: d, type: s3, bucket: b, region: [r, 'http://u:sEcReT@minio/?a=sEcReT'], access_key: sEcReT,\n"
    "   secret_key: sEcReT, session_token: sEcReT}\n"
    "- {id: e, type: gcs, bucket: b, private_key: sEcReT, client_email: e, bearer_token: sEcReT}\n";

TEST(dumps_hold_no_secrets)
{
    struct outcome o, again;
    struct sl_buf dump = {0};
    parse_good(&o, full_of_secrets);
    assert_true(sl_str_equal(secret_open(o.config->sources[3].bucket.session_token), SL_STR("sEcReT")));
    dump_text(o.config, &dump);
    const char *text = (const char *)dump.data;
    if (strstr(text, "sEcReT"))
        fail_msg("%s", text);
    assert_non_null(strstr(text, "    url: \"https://h/p\"\n"));
    assert_non_null(strstr(text, "    headers: {\"Authorization\": \"[redacted]\", \"X\": \"[redacted]\"}\n"));
    assert_non_null(strstr(text, "    region: [\"r\", \"http://minio/\"]\n"));
    assert_non_null(strstr(text, "    session_token: \"[redacted]\"\n"));
    parse_good(&again, text);
    assert_int_equal(again.config->source_count, 5);
    outcome_free(&again);
    outcome_free(&o);
    sl_buf_free(&dump);
}

TEST(misspelt_secrets_are_not_dumped)
{
    struct outcome o;
    struct sl_buf dump = {0};
    parse(&o,
          "sources: [{id: a, type: http, url: 'http://h', tokken: sEcReT, headrs: {A: sEcReT}}]\nsentry_dsm: sEcReT\n");
    assert_int_equal(o.code, SL_OK);
    assert_int_equal(o.problems.count, 3);
    assert_null(strstr(outcome_text(&o), "sEcReT"));
    dump_text(o.config, &dump);
    assert_null(strstr((const char *)dump.data, "sEcReT"));
    outcome_free(&o);
    sl_buf_free(&dump);
}

TEST(messages_hold_no_secrets)
{
    static const char *const texts[] = {
        "shared_cache: {redis: 'redis://:sEcReT@h:6379/?x=sEcReT'}",
        "shared_cache: 'http://u:sEcReT@h'",
        "sources: [{id: a, type: http, url: 'http://u:sEcReT@h p?sEcReT'}]",
        "sources: [{id: a, type: http, url: 'nothing://u:sEcReT@'}]",
        "sources: [{id: a, type: sentry, url: 'http://h', token: [sEcReT]}]",
        "sources: [{id: a, type: sentry, url: 'http://h', token: sEcReT, cookies: sEcReT}]",
        "sources: [{id: a, type: http, url: 'http://h', headers: {A: [sEcReT]}}]",
        "sources: [{id: a, type: http, url: 'http://h', headers: sEcReT}]",
        "sources: [{id: a, type: sentry, url: 'http://h', token: sEcReT, token: sEcReT}]",
        "sources: [{id: a, type: sentry, url: 'http://h', token: sEcReT, token_file: /x}]",
        "sources: [{id: a, type: sentry, url: 'http://h', token: !x sEcReT}]",
        "sources: [{id: a, type: sentry, url: 'http://h', token: \"sEcReT]",
        "sources: [{id: a, type: sentry, url: 'http://h', token: *sEcReT}]",
        "sources: [{id: a, type: sentry, url: 'http://h', token: sEcReT: x}]",
        "sentry_source_hosts: ['https://u:sEcReT@h/?sEcReT']",
        "bind: 'http://u:sEcReT@h:80'",
        "http: {trusted_proxies: ['x://sEcReT@/']}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct outcome o;
        parse(&o, texts[i]);
        if (o.code == SL_OK || strstr(outcome_text(&o), "sEcReT") || strstr(o.error.message, "sEcReT"))
            fail_msg("of\n%s\nbut: %s", texts[i], outcome_text(&o));
        outcome_free(&o);
    }
}

/* ---- files ---- */
TEST(configuration_files_are_loaded)
{
    struct config *config;
    struct sl_error error;
    const char *path = write_file("config.yml", "max_fibers: 5\n", 14, 0644);
    assert_int_equal(config_load(path, &config, NULL, &error), SL_OK);
    assert_int_equal(config->max_fibers, 5);
    assert_string_equal(config->path, path);
    config_release(config);
    write_file("config.yml", "max_fibers: x\n", 14, 0644);
    assert_int_equal(config_load(path, &config, NULL, &error), SL_MALFORMED);
    assert_null(config);
    assert_string_equal(error.message, "failed to parse config YAML");
    write_file("config.yml", "", 0, 0644);
    assert_int_equal(config_load(path, &config, NULL, &error), SL_MALFORMED);
    assert_string_equal(error.message, "config file empty");
    unlink(path);
    assert_int_equal(config_load(path, &config, NULL, &error), SL_NOT_FOUND);
    char message[300];
    snprintf(message, sizeof message, "failed to open configuration file %s: No such file or directory", path);
    assert_string_equal(error.message, message);
    assert_int_equal(config_load(directory, &config, NULL, &error), SL_INTERNAL);
    snprintf(message, sizeof message, "failed to open configuration file %s: Is a directory", directory);
    assert_string_equal(error.message, message);
    assert_null(config);
}

/* Endless files end at the limit. */
TEST(large_files_are_refused)
{
    struct outcome o = {.problems.arena = &o.arena};
    assert_int_equal(config_load("/dev/zero", &o.config, &o.problems, &o.error), SL_MALFORMED);
    outcome_format(&o);
    assert_string_equal(outcome_text(&o), "config.yml: error: the file is larger than 1048576 bytes\n");
    outcome_free(&o);
}

TEST(world_readable_secrets_are_warned_of)
{
    static const char written[] = "sources: [{id: a, type: sentry, url: 'http://h', token: sEcReT}]\n",
                      referred[] = "sources: [{id: a, type: sentry, url: 'http://h', token: '${T_TOKEN}'}]\n";
    setenv("T_TOKEN", "sEcReT", 1);
    struct {
        const char *text;
        mode_t mode;
        const char *wanted;
    } cases[] = {
        {written, 0644,
         "config.yml: warning: sources[0].token: the file contains secrets and is readable by everyone; restrict it "
         "with chmod o-r\n"},
        {written, 0640, ""},
        {referred, 0644, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o = {.problems.arena = &o.arena};
        const char *path = write_file("config.yml", cases[i].text, strlen(cases[i].text), cases[i].mode);
        assert_int_equal(config_load(path, &o.config, &o.problems, &o.error), SL_OK);
        outcome_format(&o);
        assert_string_equal(outcome_text(&o), cases[i].wanted);
        outcome_free(&o);
        unlink(path);
    }
}

TEST_FILE(.begin = make_directory, .end = remove_directory);
