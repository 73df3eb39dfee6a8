/* The dump, and problems as text: what the user reads, and that the dump is a configuration again. */
#include "parse.h"

#include "config/impl.h"

static const char everything[] =
    "bind: ['127.0.0.1:1', 'unix:/run/s']\n"
    "cache_dir: \"a: b # c \\\"\\\\ \\x01 \\u2028 \xC3\xA4\"\n"
    "logging: {level: trace, format: json, file: 'null ', access: off}\n"
    "sources:\n"
    "- {id: 'x://y?z', type: filesystem, path: '/p?q', filters: {path_patterns: ['a://?[?]']}}\n"
    "- {id: '2', type: http, url: 'https://h/p', headers: {'a: b': c}, name: [~, 5, .5], is_public: True}\n"
    "symstore_proxy: false\n"
    "sentry_source_hosts: ['*.a', b]\n"
    "max_concurrent_requests: null\n"
    "max_job_duration: 1h 1ms\n"
    "result_bytes: 1023\n"
    "max_download_size: null\n"
    "max_source_file_size: 3 MB\n"
    "deny_list_enabled: false\n"
    "caches:\n"
    "  profile: saas\n"
    "  derived: {max_unused_for: null, retry_misses_after: 0s}\n"
    "  downloaded: {max_lazy_redownloads: 0}\n"
    "http: {compress_min: off, trusted_proxies: [unix]}\n";

static void dump_text(const struct config *config, struct sl_buf *out)
{
    config_dump(config, out);
    sl_buf_u8(out, '\0');
}

static const char *after(const struct sl_buf *dump, const char *key)
{
    const char *found = strstr((const char *)dump->data, key);
    if (!found)
        fail_msg("no %s", key);
    return found;
}

static void expect_line(const struct sl_buf *dump, const char *line)
{
    const char *found = after(dump, line);
    assert_true(found == (const char *)dump->data || found[-1] == '\n');
    assert_true(found[strlen(line)] == '\n');
}

/* The text up to the comments. */
static void expect_same_values(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        const char *comment = strstr(a, " # "), *other = strstr(b, " # "), *end = strchr(a, '\n');
        if (comment == a && other == b && comment < end) {
            a = end;
            b = strchr(b, '\n');
        }
        if (*a != *b)
            fail_msg("%.40s\nbecame\n%.40s", a, b);
    }
    assert_true(*a == *b);
}

TEST(dump_is_a_valid_configuration)
{
    struct outcome first, second, third;
    struct sl_buf one = {0}, two = {0}, three = {0};
    parse_good(&first, everything);
    dump_text(first.config, &one);
    parse_good(&second, (const char *)one.data);
    dump_text(second.config, &two);
    parse_good(&third, (const char *)two.data);
    dump_text(third.config, &three);
    expect_same_values((const char *)one.data, (const char *)two.data);
    assert_string_equal((const char *)two.data, (const char *)three.data);

    struct config *c = second.config;
    assert_string_equal(c->cache_dir, "a: b # c \"\\ \x01 \xE2\x80\xA8 \xC3\xA4");
    assert_int_equal(c->bind_count, 2);
    assert_string_equal(c->log_file, "null ");
    assert_int_equal(c->source_count, 2);
    assert_true(c->max_concurrent_requests == UINT64_MAX && c->max_download_size == UINT64_MAX);
    assert_int_equal(c->http.max_bodies_in_flight, 800);
    assert_int_equal(c->max_source_file_size, 3000000);
    assert_int_equal(c->cache_profile, 2);
    assert_true(c->derived.max_unused_for == UINT64_MAX && c->derived.retry_misses_after == 0);
    assert_true(c->downloaded.max_unused_for == first.config->downloaded.max_unused_for);
    assert_int_equal(c->downloaded.max_lazy, 1);
    outcome_free(&first);
    outcome_free(&second);
    outcome_free(&third);
    sl_buf_free(&one);
    sl_buf_free(&two);
    sl_buf_free(&three);
}

TEST(dump_tells_where_values_come_from)
{
    struct outcome o;
    struct sl_buf dump = {0};
    setenv("T_TTL", "3s", 1);
    setenv("T_BIND", "1.2.3.4:5", 1);
    parse_good(&o, "result_ttl: ${T_TTL}\n\nbind: ['${T_BIND}']\nmax_fibers: 5\nhttp:\n  backlog: 6\n"
                   "caches: {profile: saas}\n"
                   "sources: [{id: a, type: filesystem, path: /}]\n");
    dump_text(o.config, &dump);
    expect_line(&dump, "result_ttl: 3s # env");
    expect_line(&dump, "bind: [\"1.2.3.4:5\"] # env");
    expect_line(&dump, "max_fibers: 5 # config.yml:4");
    expect_line(&dump, "http:\n  backlog: 6 # config.yml:6");
    expect_line(&dump, "sources: # config.yml:8\n  - id: \"a\"\n    type: \"filesystem\"\n    path: \"/\"");
    expect_line(&dump, "symstore_proxy: true # default");
    expect_line(&dump, "caches:\n  profile: saas # config.yml:7\n  downloaded:\n    max_unused_for: 12h # default");
    expect_line(&dump, "  in_memory:\n    object_meta_capacity: 100MiB # default");
    outcome_free(&o);
    sl_buf_free(&dump);
}

TEST(dumped_defaults_are_a_configuration)
{
    struct config *config;
    struct sl_error error;
    struct sl_buf dump = {0}, again = {0};
    struct outcome o;
    assert_int_equal(config_load(NULL, &config, NULL, &error), SL_OK);
    dump_text(config, &dump);
    parse_good(&o, (const char *)dump.data);
    dump_text(o.config, &again);
    expect_same_values((const char *)dump.data, (const char *)again.data);
    expect_line(&dump, "sources: [] # default");
    expect_line(&dump, "max_download_size: 15GiB # default");
    expect_line(&dump, "deny_list_never_block_hosts: [] # default");
    config_release(config);
    outcome_free(&o);
    sl_buf_free(&dump);
    sl_buf_free(&again);
}

TEST(every_key_has_a_unique_path)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *row;
        enum key_class wanted = config_keys[i].type == KEY_HIDDEN ? KEY_SECRET : KEY_ROW;
        assert_int_equal(key_classify(sl_str(config_keys[i].path), &row), wanted);
        assert_ptr_equal(row, &config_keys[i]);
    }
}

/* A section cannot have no effect when something below it is read. */
TEST(no_key_lies_in_a_section_without_effect)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const char *path = config_keys[i].path;
        for (const char *dot = strchr(path, '.'); dot; dot = strchr(dot + 1, '.'))
            assert_null(key_no_effect((struct sl_str){path, (size_t)(dot - path)}));
    }
}

/* ---- problems ---- */
TEST(problems_are_listed_in_file_order)
{
    expect_problems("zzz: 1\nresult_ttl: 1\nmax_fibers: 0\nbind: x\n",
                    "config.yml:1:1: warning: zzz: unknown key\n"
                    "config.yml:2:13: error: result_ttl: 1 is not a duration (examples: 30s, 5m, 1h 30m, 7days)\n"
                    "config.yml:3:13: error: max_fibers: 0 is too small; the minimum is 1\n"
                    "config.yml:4:7: error: bind: \"x\": must be IP:PORT, [IPv6]:PORT, unix:/path or systemd\n");
}

static size_t lines_of(const char *text)
{
    size_t lines = 0;
    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

TEST(at_most_twenty_problems_are_shown)
{
    struct outcome o;
    struct sl_buf yaml = {0};
    sl_buf_cstr(&yaml, "http:\n  allowed_hosts: [");
    for (int i = 0; i < 22; i++)
        sl_buf_cstr(&yaml, "[],");
    sl_buf_cstr(&yaml, "]\n");
    for (int i = 0; i < 21; i++)
        sl_buf_printf(&yaml, "unknown-%d: 1\n", i);
    parse_sized(&o, sl_buf_view(&yaml));
    assert_int_equal(o.problems.errors, 22);
    assert_int_equal(lines_of(outcome_text(&o)), 42);
    assert_non_null(strstr(outcome_text(&o), "config.yml: 2 more errors\nconfig.yml: 1 more warning\n"));
    assert_null(strstr(outcome_text(&o), "unknown-20"));
    outcome_free(&o);
    sl_buf_free(&yaml);
}

/* Reading ends when there is enough to say. */
TEST(reading_ends_after_too_many_problems)
{
    struct outcome o;
    struct sl_buf yaml = {0};
    for (int i = 0; i < 10000; i++)
        sl_buf_cstr(&yaml, "max_fibers: 1\n");
    parse_sized(&o, sl_buf_view(&yaml));
    assert_int_equal(o.problems.errors, CONFIG_MAX_PROBLEMS);
    assert_non_null(strstr(outcome_text(&o), "config.yml: 80 more errors\n"));
    outcome_free(&o);
    sl_buf_free(&yaml);
}

TEST(problem_texts_are_escaped)
{
    expect_problems("cache_dir: 5\n\"a\\nb\\e[2J\\x85\\u202e\": 1\nlogging: {level: \"x\\r\\ny\"}\n",
                    "config.yml:2:1: warning: a\\x0ab\\x1b[2J\\x85\xE2\x80\xAE: unknown key\n"
                    "config.yml:3:18: error: logging.level: \"x\\x0d\\x0ay\" is not one of off error warn info debug "
                    "trace\n");
    struct outcome o;
    parse(&o, "max_fibers: x\n");
    sl_buf_clear(&o.text);
    config_format_problems("a\nb\xFF", &o.problems, &o.text);
    sl_buf_u8(&o.text, '\0');
    assert_string_equal(outcome_text(&o), "a\\x0ab\\xff:1:13: error: max_fibers: \"x\" is not an integer\n");
    outcome_free(&o);
    setenv("T_BYTES", "\xFF\xC3", 1);
    expect_error("max_fibers: ${T_BYTES}", "1:13: error: max_fibers: \"\\xff\\xc3\" is not an integer");
}

TEST(long_values_are_truncated_in_messages)
{
    struct outcome o;
    struct sl_buf yaml = {0};
    sl_buf_cstr(&yaml, "max_fibers: ");
    sl_buf_fill(&yaml, 'x', 79);
    for (int i = 0; i < 40; i++)
        sl_buf_cstr(&yaml, "\xC3\xA4"); /* the 80th byte would be half of one */
    parse_sized(&o, sl_buf_view(&yaml));
    assert_non_null(strstr(outcome_text(&o), "xxx...\" is not an integer\n"));
    outcome_free(&o);
    sl_buf_clear(&yaml);
    sl_buf_cstr(&yaml, "max_fibers: ");
    sl_buf_fill(&yaml, 'x', 5000);
    sl_buf_cstr(&yaml, "://y@z");
    parse_sized(&o, sl_buf_view(&yaml));
    assert_non_null(strstr(outcome_text(&o), "xxx...\" is not an integer\n"));
    outcome_free(&o);
    sl_buf_free(&yaml);
}

/* ---- acceptance examples ---- */
TEST(documented_example_is_reported_as_described)
{
    unsetenv("SENTRY_TOKEN");
    static const char yaml[] = "caches:\n"
                               "  downloaded:\n"
                               "    max_unused_for: %s\n"
                               "bind: %s\n"
                               "sources:\n"
                               "  - id: s\n"
                               "    type: sentry\n"
                               "    url: https://sentry.io/\n"
                               "    token: ${SENTRY_TOKEN}\n"
                               "max_concurent_requests: 5\n";
    static const char warning[] = "config.yml:10:1: warning: max_concurent_requests: unknown key, did you mean "
                                  "max_concurrent_requests?\n";
    char text[512], wanted[1024];
    snprintf(text, sizeof text, yaml, "7dayz", "localhost:3021");
    snprintf(
        wanted, sizeof wanted,
        "config.yml:3:21: error: caches.downloaded.max_unused_for: \"7dayz\" is not a duration (examples: 30s, 5m, "
        "1h 30m, 7days, null)\n"
        "config.yml:4:7: error: bind: \"localhost:3021\": host names are not allowed, use an IP address\n"
        "config.yml:9:12: error: sources[0].token: environment variable SENTRY_TOKEN is not set\n%s",
        warning);
    expect_problems(text, wanted);
    setenv("SENTRY_TOKEN", "t", 1);
    snprintf(text, sizeof text, yaml, "7days", "127.0.0.1:3021");
    expect_problems(text, warning);
}

/* A21 of the native API; "empty file" is in yaml.c. */
TEST(zero_and_null_keep_their_meaning)
{
    struct outcome o;
    parse(&o, "max_download_timeout: 0s\ncaches:\n  downloaded:\n    max_unused_for: null\n    a: {b: [c, {d: e}]}\n"
              "nested: {unknown: {keys: 1}}\n");
    assert_int_equal(o.code, SL_OK);
    assert_int_equal(o.config->max_download_timeout_ns, 0);
    assert_true(o.config->downloaded.max_unused_for == UINT64_MAX);
    assert_int_equal(o.problems.count, 2);
    outcome_free(&o);
}
