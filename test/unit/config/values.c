/* Every type of key with good and bad values, rules across keys, unknown keys, profiles, defaults. */
#include "parse.h"

#include "config/impl.h"
#include "core/duration.h"
#include "origin/origin.h"

/* Whether the machine looks like a container: this program is linked so that it is asked here. */
static int looks_like_container;
bool __wrap_config_container_is_detected(void);
bool __wrap_config_container_is_detected(void)
{
    return looks_like_container;
}

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

TEST(booleans_are_read)
{
    static const struct {
        const char *text;
        bool value;
    } good[] = {{"true", true},   {"True", true},         {"FALSE", false}, {"!!bool \"true\"", true},
                {"false", false}, {"!!bool false", false}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char yaml[64];
        struct outcome o;
        snprintf(yaml, sizeof yaml, "enable_cache_cleanup: %s\n", good[i].text);
        parse_good(&o, yaml);
        assert_int_equal(o.config->enable_cache_cleanup, good[i].value);
        outcome_free(&o);
    }
    expect_error("enable_cache_cleanup: yes", "1:23: error: enable_cache_cleanup: \"yes\" is not true or false");
    expect_error("enable_cache_cleanup: 1", "1:23: error: enable_cache_cleanup: 1 is not true or false");
    expect_error("enable_cache_cleanup: 'true'", "1:23: error: enable_cache_cleanup: \"true\" is not true or false");
    expect_error("enable_cache_cleanup:", "1:22: error: enable_cache_cleanup: null is not true or false");
    expect_error("http: {server_header: []}", "1:23: error: http.server_header: a list is not true or false");
}

TEST(counts_are_read)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"1", 1},
                {"+7", 7},
                {"017", 17},
                {"0x1F", 31},
                {"0o17", 15},
                {"9223372036854775807", INT64_MAX},
                {"null", UINT64_MAX},
                {"~", UINT64_MAX},
                {"!!int \"12\"", 12}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char yaml[64];
        struct outcome o;
        snprintf(yaml, sizeof yaml, "max_concurrent_requests: %s\n", good[i].text);
        parse_good(&o, yaml);
        assert_true(o.config->max_concurrent_requests == good[i].value);
        outcome_free(&o);
    }
    static const struct {
        const char *text, *wrong;
    } bad[] = {
        {"-5", "-5 is too small; the minimum is 0"},
        {"9223372036854775808", "9223372036854775808 is too large; the maximum is 9223372036854775807"},
        {"18446744073709551615", "18446744073709551615 is too large; the maximum is 9223372036854775807"},
        {"1.5", "1.5 is not an integer or null"},
        {"1e3", "1e3 is not an integer or null"},
        {"'5'", "\"5\" is not an integer or null"},
        {"1_000", "\"1_000\" is not an integer or null"},
        {"0x", "\"0x\" is not an integer or null"},
        {"0xG", "\"0xG\" is not an integer or null"},
        {"0o8", "\"0o8\" is not an integer or null"},
        {"+", "\"+\" is not an integer or null"},
        {".inf", ".inf is not an integer or null"},
        {"-.INF", "-.INF is not an integer or null"},
        {".NaN", ".NaN is not an integer or null"},
        {"true", "true is not an integer or null"},
        {"{a: 1}", "a map is not an integer or null"},
        {"[5]", "a list is not an integer or null"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char yaml[64], wanted[160];
        snprintf(yaml, sizeof yaml, "max_concurrent_requests: %s\n", bad[i].text);
        snprintf(wanted, sizeof wanted, "1:26: error: max_concurrent_requests: %s", bad[i].wrong);
        expect_error(yaml, wanted);
    }
    expect_error("max_fibers: null", "1:13: error: max_fibers: null is not an integer");
    expect_error("max_fibers: 99999999999999999999999",
                 "1:13: error: max_fibers: 99999999999999999999999 is too large; the maximum is 9223372036854775807");
    expect_error("max_fibers: -99999999999999999999999",
                 "1:13: error: max_fibers: -99999999999999999999999 is too small; the minimum is 1");
}

TEST(numbers_are_checked_against_their_width)
{
    struct outcome o;
    parse_good(&o, "max_downloads: 4294967295\nhttp: {backlog: 2147483647, max_connections_per_ip: -0}\n");
    assert_true(o.config->max_downloads == 4294967295u);
    assert_int_equal(o.config->http.backlog, 2147483647);
    assert_int_equal(o.config->http.max_connections_per_ip, 0);
    outcome_free(&o);
    expect_error("max_downloads: 4294967296",
                 "1:16: error: max_downloads: 4294967296 is too large; the maximum is 4294967295");
    expect_error("http: {backlog: 2147483648}",
                 "1:17: error: http.backlog: 2147483648 is too large; the maximum is 2147483647");
    expect_error("http: {max_connections_per_ip: -1}",
                 "1:32: error: http.max_connections_per_ip: -1 is too small; the minimum is 0");
}

/* spec: "below 1 acts as 1" */
TEST(values_below_one_are_raised_to_one)
{
    struct outcome o;
    parse_good(&o, "caches: {downloaded: {max_lazy_redownloads: 0}, derived: {max_lazy_recomputations: -7}}");
    assert_int_equal(o.config->downloaded.max_lazy, 1);
    assert_int_equal(o.config->derived.max_lazy, 1);
    outcome_free(&o);
}

TEST(sizes_are_read)
{
    struct outcome o;
    parse_good(&o, "result_bytes: 64KiB\nmax_download_size: null\nmax_source_file_size: 0\n"
                   "symbolicate_body_max_bytes: '17'\nsymbfile: {store_min_free: 3 GB}\n"
                   "http: {compress_min: off, min_rate: 0x10}\n");
    assert_true(o.config->result_bytes == 65536);
    assert_true(o.config->max_download_size == UINT64_MAX);
    assert_true(o.config->max_source_file_size == 0);
    assert_true(o.config->symbolicate_body_max_bytes == 17);
    assert_true(o.config->symbfile.store_min_free == 3000000000u);
    assert_true(o.config->http.compress_min == UINT64_MAX);
    assert_true(o.config->http.min_rate == 16);
    outcome_free(&o);
    expect_error("result_bytes: 1.5GiB",
                 "1:15: error: result_bytes: \"1.5GiB\" is not a size (examples: 512, 64KiB, 1GiB)");
    expect_error("result_bytes: 1.5", "1:15: error: result_bytes: 1.5 is not a size (examples: 512, 64KiB, 1GiB)");
    expect_error("result_bytes: -1", "1:15: error: result_bytes: -1 is too small; the minimum is 0 bytes");
    expect_error("result_bytes: 9000000TiB",
                 "1:15: error: result_bytes: \"9000000TiB\" is too large; the maximum is 9223372036854775807 bytes");
    expect_error("result_bytes: null", "1:15: error: result_bytes: null is not a size (examples: 512, 64KiB, 1GiB)");
    expect_error("result_bytes: off", "1:15: error: result_bytes: \"off\" is not a size (examples: 512, 64KiB, 1GiB)");
    expect_error("max_download_size: off",
                 "1:20: error: max_download_size: \"off\" is not a size (examples: 512, 64KiB, 1GiB, null)");
    expect_error("http: {compress_min: null}",
                 "1:22: error: http.compress_min: null is not a size (examples: 512, 64KiB, 1GiB, off)");
    expect_error("http: {max_request_line: 63}",
                 "1:26: error: http.max_request_line: 63 is too small; the minimum is 64 bytes");
}

TEST(durations_are_read)
{
    struct outcome o;
    parse_good(&o, "connect_timeout: 1h 30m\nhead_timeout: '0'\nmax_download_timeout: 0s\nresult_ttl: 100years\n"
                   "caches: {derived: {max_unused_for: null, retry_misses_after: 1M}}\n");
    assert_true(o.config->connect_timeout_ns == 90 * MINUTE);
    assert_true(o.config->head_timeout_ns == 0);
    assert_true(o.config->max_download_timeout_ns == 0);
    assert_true(o.config->derived.max_unused_for == DURATION_NEVER);
    assert_true(o.config->derived.retry_misses_after == 2630016 * SECOND);
    outcome_free(&o);
    expect_error("result_ttl: 5", "1:13: error: result_ttl: 5 is not a duration (examples: 30s, 5m, 1h 30m, 7days)");
    expect_error("result_ttl: 0", "1:13: error: result_ttl: 0 is not a duration (examples: 30s, 5m, 1h 30m, 7days)");
    expect_error("result_ttl: null",
                 "1:13: error: result_ttl: null is not a duration (examples: 30s, 5m, 1h 30m, 7days)");
    expect_error("result_ttl: ''",
                 "1:13: error: result_ttl: \"\" is not a duration (examples: 30s, 5m, 1h 30m, 7days)");
    expect_error("result_ttl: 400years",
                 "1:13: error: result_ttl: \"400years\" is too large; the maximum is 292years 3months "
                 "7days 16h 6m 28s 854ms 775us 807ns");
    expect_error("cache_cleanup_interval: 0s",
                 "1:25: error: cache_cleanup_interval: \"0s\" is too small; the minimum is 1ms");
}

TEST(texts_and_choices_are_read)
{
    struct outcome o;
    parse_good(&o, "cache_dir: /var/x y\nlogging: {file: 2030, level: off, format: json, access: errors}\n");
    assert_string_equal(o.config->cache_dir, "/var/x y");
    assert_string_equal(o.config->log_file, "2030");
    assert_string_equal(o.config->log_level, "off");
    assert_int_equal(o.config->log_format, LOG_JSON);
    assert_int_equal(o.config->access_log, 1);
    outcome_free(&o);
    parse_good(&o, "cache_dir: ~\nlogging:\n");
    assert_null(o.config->cache_dir);
    assert_string_equal(o.config->log_level, "info");
    outcome_free(&o);
    expect_error("cache_dir: ''", "1:12: error: cache_dir: the text is empty, null turns it off");
    expect_error("cache_dir: []", "1:12: error: cache_dir: a list is not a text");
    expect_error("logging: {level: INFO}",
                 "1:18: error: logging.level: \"INFO\" is not one of off error warn info debug trace");
    expect_error("logging: {format: }", "1:19: error: logging.format: null is not one of auto pretty simplified json");
    expect_error("logging: {access: [all]}", "1:19: error: logging.access: a list is not one of all errors off");
}

/* ---- lists ---- */
TEST(lists_and_maps_are_read)
{
    struct outcome o;
    parse_good(&o, "bind: unix:/run/s\nsentry_source_hosts: [sentry.io, '*.sentry.io']\n"
                   "deny_list_never_block_hosts: ~\nallowed_reserved_networks: []\n"
                   "file_ptr: {roots: [/srv, /mnt/x], unc_map: {'\\\\host\\share': /mnt/x, '//other/s': /srv}}\n"
                   "http: {trusted_proxies: [10.0.0.0/8, unix, 'fd00::/8', 1.2.3.4], allowed_hosts: [a.b, 5]}\n");
    assert_int_equal(o.config->bind_count, 1);
    assert_string_equal(o.config->bind[0], "unix:/run/s");
    assert_int_equal(o.config->sentry_source_host_count, 2);
    assert_true(sl_str_equal(o.config->sentry_source_hosts[1], SL_STR("*.sentry.io")));
    assert_int_equal(o.config->deny_list_never_block_host_count, 0);
    assert_int_equal(o.config->allowed_reserved_network_count, 0);
    assert_int_equal(o.config->file_ptr_root_count, 2);
    assert_int_equal(o.config->file_ptr_unc_map_count, 2);
    assert_true(sl_str_equal(o.config->file_ptr_unc_map[0].key, SL_STR("\\\\host\\share")));
    assert_true(sl_str_equal(o.config->file_ptr_unc_map[1].value, SL_STR("/srv")));
    assert_int_equal(o.config->http.trusted_proxy_count, 4);
    assert_string_equal(o.config->http.allowed_hosts[1], "5");
    outcome_free(&o);
    expect_error("http: {allowed_hosts: a.b}", "1:23: error: http.allowed_hosts: \"a.b\" is not a list");
    expect_error("http: {allowed_hosts: {a: b}}", "1:23: error: http.allowed_hosts: a map is not a list");
    expect_error("http: {allowed_hosts: [a, [b]]}", "1:27: error: http.allowed_hosts: a list is not a text");
    expect_error("http: {allowed_hosts: [a, '']}", "1:27: error: http.allowed_hosts: the text is empty");
    expect_error("http: {allowed_hosts: [~]}", "1:24: error: http.allowed_hosts: null is not a text");
    expect_error("bind: []", "1:7: error: bind: the list is empty");
    expect_error("bind:", "1:6: error: bind: the list is empty");
}

TEST(listener_addresses_are_checked)
{
    static const char *const good[] = {"0.0.0.0:3021", "[::]:80", "[::1]:0",           "127.0.0.1:65535",
                                       "systemd",      "unix:/a", "[::ffff:1.2.3.4]:1"};
    static const struct {
        const char *text, *wrong;
    } bad[] = {
        {"3021", "must be IP:PORT, [IPv6]:PORT, unix:/path or systemd"},
        {"localhost", "must be IP:PORT, [IPv6]:PORT, unix:/path or systemd"},
        {":3021", "must be IP:PORT, [IPv6]:PORT, unix:/path or systemd"},
        {"localhost:3021", "host names are not allowed, use an IP address"},
        {"1.2.3:80", "host names are not allowed, use an IP address"},
        {"127.0.0.1:", "the port must be a number from 0 to 65535"},
        {"127.0.0.1:65536", "the port must be a number from 0 to 65535"},
        {"127.0.0.1:-1", "the port must be a number from 0 to 65535"},
        {"127.0.0.1:100000", "the port must be a number from 0 to 65535"},
        {"127.0.0.1:http", "the port must be a number from 0 to 65535"},
        {"::1:80", "IPv6 addresses need brackets ([IPv6]:PORT)"},
        {"[::g]:80", "not an IPv6 address"},
        {"[1.2.3.4]:80", "not an IPv6 address"},
        {"[::1]", "the port must be a number from 0 to 65535"},
        {"unix:", "the path of a socket must be absolute (unix:/path)"},
        {"unix:run/s", "the path of a socket must be absolute (unix:/path)"},
        {"unix:/"
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         "the path is too long for a socket"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_null(text_is_listener(sl_str(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_string_equal(text_is_listener(sl_str(bad[i].text)), bad[i].wrong);
}

TEST(networks_and_hosts_are_checked)
{
    static const char *const good[] = {"10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/32", "::/0", "fd00::/128", "::1"};
    static const char *const bad[] = {
        "",           "10.0.0/8", "10.0.0.0/33", "10.0.0.0/",   "10.0.0.0/-1", "10.0.0.0/8x",
        "fd00::/129", "host/8",   "/8",          "10.0.0.0/8/8"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_null(text_is_network(sl_str(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(text_is_network(sl_str(bad[i])));
    assert_null(text_is_proxy(SL_STR("unix")));
    assert_non_null(text_is_network(SL_STR("unix")));
    static const char *const no_hosts[] = {"", "*.", "*", "a*b", "https://a", "u@a", "a b", "a?b", "*.*.a", "a\nb"};
    for (size_t i = 0; i < sizeof no_hosts / sizeof *no_hosts; i++)
        assert_non_null(text_is_host(sl_str(no_hosts[i])));
    assert_null(text_is_host(SL_STR("a.b-c")));
    assert_null(text_is_host(SL_STR("*.a")));
}

/* ---- across keys ---- */
TEST(deny_list_bucket_must_fit_its_window)
{
    expect_error("deny_list_bucket_size: 2m\n",
                 "1:24: error: deny_list_bucket_size: must not be larger than deny_list_time_window");
    expect_error("deny_list_time_window: 1s\n",
                 "1:24: error: deny_list_bucket_size: must not be larger than deny_list_time_window");
    expect_error("deny_list_bucket_size: 0s\n",
                 "1:24: error: deny_list_bucket_size: \"0s\" is too small; the minimum is 1ms");
    struct outcome o;
    parse_good(&o, "deny_list_time_window: 1h\ndeny_list_bucket_size: 1h\n");
    outcome_free(&o);
}

TEST(profile_changes_defaults)
{
    struct outcome o;
    parse_good(&o, "{}");
    assert_true(o.config->downloaded.max_unused_for == DAY && o.config->derived.max_unused_for == 7 * DAY);
    assert_true(o.config->downloaded.retry_misses_after_public == DAY);
    outcome_free(&o);
    parse_good(&o, "caches: {profile: reference}");
    assert_true(o.config->downloaded.max_unused_for == DAY && o.config->derived.max_unused_for == 7 * DAY);
    assert_true(o.config->derived.retry_misses_after_public == DAY);
    assert_true(o.config->derived.retry_malformed_after == DAY);
    outcome_free(&o);
    parse_good(&o, "caches: {profile: documented}");
    assert_true(o.config->downloaded.max_unused_for == 7 * DAY && o.config->derived.max_unused_for == 7 * DAY);
    assert_true(o.config->downloaded.retry_misses_after == HOUR);
    assert_true(o.config->derived.retry_misses_after_public == HOUR);
    assert_true(o.config->downloaded.retry_malformed_after == DAY);
    assert_true(o.config->index.max_unused_for == 7 * DAY);
    outcome_free(&o);
    /* an explicit key wins, wherever it stands */
    parse_good(&o, "caches: {derived: {max_unused_for: 1h, retry_malformed_after: null}, profile: saas}");
    assert_true(o.config->downloaded.max_unused_for == 12 * HOUR && o.config->derived.max_unused_for == HOUR);
    assert_true(o.config->downloaded.retry_malformed_after == 12 * HOUR);
    assert_true(o.config->derived.retry_malformed_after == DURATION_NEVER);
    outcome_free(&o);
    expect_error("caches: {profile: fast}",
                 "1:19: error: caches.profile: \"fast\" is not one of reference documented saas");
}

TEST(bodies_in_flight_default_follows_the_request_limit)
{
    static const struct {
        const char *yaml;
        unsigned bodies;
    } cases[] = {
        {"{}", 800},
        {"max_concurrent_requests: 5", 20},
        {"max_concurrent_requests: null", 800},
        {"max_concurrent_requests: 9000000000", 4294967295u},
        {"http: {max_bodies_in_flight: 3}\nmax_concurrent_requests: 5", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o;
        parse_good(&o, cases[i].yaml);
        assert_true(o.config->http.max_bodies_in_flight == cases[i].bodies);
        outcome_free(&o);
    }
}

/* ---- keys ---- */
TEST(unknown_keys_are_warnings)
{
    expect_error("max_concurent_requests: 5",
                 "1:1: warning: max_concurent_requests: unknown key, did you mean max_concurrent_requests?");
    expect_error("cahces: {x: 1}", "1:1: warning: cahces: unknown key, did you mean caches?");
    expect_error("caches: {derived: {max_unused_fro: 1h}}",
                 "1:20: warning: caches.derived.max_unused_fro: unknown key, did you mean max_unused_for?");
    expect_error("shared_cache: {s3: {secretkey: x}}",
                 "1:21: warning: shared_cache.s3.secretkey: unknown key, did you mean secret_key?");
    expect_error("sources: [{id: a, type: filesystem, path: /, is_publik: true}]",
                 "1:46: warning: sources[0].is_publik: unknown key, did you mean is_public?");
    expect_error("sources: [{id: a, type: filesystem, path: /, filters: {path_pattern: []}}]",
                 "1:56: warning: sources[0].filters.path_pattern: unknown key, did you mean path_patterns?");
    expect_error("completely_different: 5", "1:1: warning: completely_different: unknown key");
    expect_error("'': 5", "1:1: warning: \"\": unknown key");
    expect_error("'': {bind: 5}", "1:1: warning: \"\": unknown key");
    expect_error("a\tb: 5", "1:1: warning: a\\x09b: unknown key");
    struct outcome o;
    parse(&o, "bnd: 1\nxx: {yy: {zz: 1}}\n"); /* A21: unknown nested keys are fine */
    assert_int_equal(o.code, SL_OK);
    assert_int_equal(o.problems.count, 2);
    outcome_free(&o);
}

/* A key that looks like the path of another is not it. */
TEST(keys_with_dots_are_unknown)
{
    expect_error("logging.level: trace", "1:1: warning: logging.level: unknown key");
    expect_error("http: {cors.origins: 1}", "1:8: warning: http.cors.origins: unknown key");
    expect_error("'sources[]': 1", "1:1: warning: sources[]: unknown key, did you mean sources?");
    expect_error("'sources[].token': 1", "1:1: warning: sources[].token: unknown key");
}

TEST(socket_group_must_exist)
{
    struct outcome o;
    parse_good(&o, "http: {unix_group: root}\n");
    assert_string_equal(o.config->http.unix_group, "root");
    outcome_free(&o);
    expect_error("http: {unix_group: no.such.group}", "1:20: error: http.unix_group: \"no.such.group\": no such group");
}

TEST(keys_without_effect_are_warnings)
{
    expect_problems("special_paths: true\nmozilla: {lru: {max_size: 1}, client_otel: {a: b}}\n"
                    "streaming_timeout: 5\nisolation: processes\ntraces_sample_rate: 1\n"
                    "http: {backlog: 5, reuseport: true}\nmax_unwind_chain_len: 0\ncluster: {nodeid: 1}\n"
                    "caches: {index: {max_lazy_recomputations: 1}}\n",
                    "config.yml:1:1: warning: special_paths: has no effect\n"
                    "config.yml:2:31: warning: mozilla.client_otel: has no effect\n"
                    "config.yml:3:1: warning: streaming_timeout: has no effect; use download_stall_timeout against "
                    "slow downloads\n"
                    "config.yml:4:1: warning: isolation: has no effect\n"
                    "config.yml:5:1: warning: traces_sample_rate: has no effect\n"
                    "config.yml:7:23: error: max_unwind_chain_len: 0 is too small; the minimum is 1\n"
                    "config.yml:8:11: warning: cluster.nodeid: unknown key, did you mean node_id?\n"
                    "config.yml:9:18: warning: caches.index.max_lazy_recomputations: has no effect: indexes count as "
                    "downloads\n");
}

TEST(mozilla_stores_may_be_urls_or_sources)
{
    struct outcome o;
    parse_good(&o, "mozilla: {sources: ['http://a/', 'https://u:p@b/try//?x=1']}\n");
    assert_true(o.config->mozilla.on);
    assert_int_equal(o.config->mozilla.source_count, 2);
    assert_string_equal(o.config->mozilla.stores[0].id.data, "http://a/");
    assert_null(memmem(o.config->mozilla.stores[1].id.data, o.config->mozilla.stores[1].id.size, "u:p", 3));
    assert_int_equal(o.config->mozilla.stores[0].attempts, 5);
    outcome_free(&o);
    parse_good(&o, "bind: 127.0.0.1:1\n");
    assert_false(o.config->mozilla.on);
    outcome_free(&o);
    expect_problems("mozilla: {sources: [nobody], fallback_sources: [other]}\n",
                    "config.yml:1:21: error: mozilla.sources: \"nobody\" is not a URL or the id of a source\n"
                    "config.yml:1:49: error: mozilla.fallback_sources: \"other\" is not a URL or the id of a source\n");
    expect_problems(
        "mozilla: {store: {extra: [\"http://a/v1\", nobody]}}\n",
        "config.yml:1:42: error: mozilla.store.extra: \"nobody\" is not a URL (ids of sources are not allowed here)\n");
}

TEST(disabled_keys_without_effect_are_not_warned_of)
{
    struct outcome o;
    parse_good(&o, "sentry_dsn: ~\nmozilla: null\nspecial_paths: false\nhttp: {reuseport: false}\nshared_cache: ~\n");
    outcome_free(&o);
}

TEST(sections_must_be_maps)
{
    expect_error("conversion: 5", "1:13: error: conversion: 5 is not a map of keys");
    expect_error("caches: [1]", "1:9: error: caches: a list is not a map of keys");
    expect_error("http: {cors: x}", "1:14: error: http.cors: \"x\" is not a map of keys");
}

/* ---- sources ---- */
TEST(sources_are_read)
{
    struct outcome o;
    parse_good(&o, "sources:\n"
                   "  - {id: a, type: filesystem, path: /srv, layout: {type: symstore}, has_index: true}\n"
                   "  - {id: b, type: http, url: 'https://h/', headers: {X-A: v}, name: Long Name, file_ptr: true}\n"
                   "  - {id: c, type: s3, bucket: b, region: [r, 'http://minio'], access_key: k, secret_key: s}\n"
                   "  - {id: d, type: sentry, url: 'https://sentry.io/x', token: t}\n");
    assert_int_equal(o.config->source_count, 4);
    assert_int_equal(o.config->sources[0].layout, LAYOUT_SYMSTORE);
    assert_int_equal(o.config->sources[1].type, SOURCE_HTTP);
    assert_true(o.config->sources[1].file_ptr);
    assert_true(sl_str_equal(o.config->sources[2].bucket.endpoint, SL_STR("http://minio")));
    assert_true(sl_str_equal(secret_open(o.config->sources[3].token), SL_STR("t")));
    outcome_free(&o);
    parse_good(&o, "sources: ~\n");
    assert_int_equal(o.config->source_count, 0);
    outcome_free(&o);
    parse_good(&o, "sources: []\n");
    assert_int_equal(o.config->source_count, 0);
    outcome_free(&o);
}

TEST(source_errors_report_line_and_column)
{
    expect_error("sources: 5", "1:10: error: sources: expected a list, found an integer");
    expect_error("sources: [5]", "1:11: error: sources[0]: expected an object, found an integer");
    expect_error("sources: [{id: a, type: ftp}]",
                 "1:25: error: sources[0].type: unknown source type `ftp`, expected one "
                 "of filesystem, http, s3, gcs, sentry");
    expect_error("sources: [{id: a, type: http, url: x y}]", "1:36: error: sources[0].url: invalid URL");
    expect_error("sources: [{type: filesystem, path: /}]", "1:11: error: sources[0].id: missing field `id`");
    expect_error("sources: [{id: a, type: filesystem, path: /, filters: 5}]",
                 "1:55: error: sources[0].filters: expected an object, found an integer");
    expect_error("sources: [{id: a, type: filesystem, path: /, layout: {type: odd}}]",
                 "1:61: error: sources[0].layout.type: unknown value `odd`, expected one of native, symstore, "
                 "symstore_index2, ssqp, debuginfod, unified, slashsymbols");
    expect_problems("sources:\n"
                    "- {id: a, type: filesystem, path: /}\n"
                    "- {id: a, type: filesystem, path: /, has_index: true}\n",
                    "config.yml:3:8: error: sources[1].id: \"a\" is already the id of another source\n"
                    "config.yml:3:49: warning: sources[1].has_index: has no effect without layout.type: symstore\n");
}

/* ---- the whole ---- */
TEST(defaults_apply_without_a_file)
{
    struct config *config;
    struct sl_error error;
    struct outcome o;
    setenv("SYMLOOM_CONTAINER", "1", 1);
    assert_int_equal(config_load(NULL, &config, NULL, &error), SL_OK);
    parse_good(&o, "{}");
    assert_null(config->path);
    assert_string_equal(config->cache_dir, "/data");
    assert_int_equal(config->bind_count, 1);
    assert_string_equal(config->bind[0], "0.0.0.0:3021");
    assert_int_equal(config->http.max_bodies_in_flight, 800);
    assert_int_equal(config->http.max_bodies_in_flight, o.config->http.max_bodies_in_flight);
    assert_true(config->http.max_connections > 0);
    assert_true(config->symstore_proxy);
    assert_true(config->max_download_size == UINT64_C(16106127360));
    assert_true(config->symbolicate_body_max_bytes == 57671680 && config->crash_file_body_max_bytes == 262144000);
    assert_true(config->object_max_section_size == UINT64_C(4294967296) && config->max_unwind_chain == 128);
    assert_true(config->index.retry_malformed_after == 10 * MINUTE);
    assert_true(config->diagnostics.retry_misses_after == DURATION_NEVER);
    config_release(config);
    outcome_free(&o);
    unsetenv("SYMLOOM_CONTAINER");
    for (int seen = 0; seen < 2; seen++) {
        looks_like_container = seen;
        parse_good(&o, "{}");
        assert_string_equal(o.config->bind[0], "127.0.0.1:3021"); /* whatever the machine looks like: there is a file */
        assert_null(o.config->cache_dir);
        outcome_free(&o);
        assert_int_equal(config_load(NULL, &config, NULL, NULL), SL_OK);
        assert_string_equal(config->bind[0], seen ? "0.0.0.0:3021" : "127.0.0.1:3021");
        assert_int_equal(config->cache_dir != NULL, seen);
        config_release(config);
    }
    config_release(NULL);
}

TEST(path_prefixes_are_checked)
{
    static const char *const good[] = {"", "/a", "/a/b-c_d.e~1"}, *const bad[] = {"a", "/", "/a/", "/a{b}", "/a b"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char yaml[64];
        struct outcome o;
        snprintf(yaml, sizeof yaml, "symbfile: {path_prefix: \"%s\"}", good[i]);
        parse_good(&o, yaml);
        assert_string_equal(o.config->symbfile.path_prefix, good[i]);
        outcome_free(&o);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char yaml[64];
        struct outcome o;
        snprintf(yaml, sizeof yaml, "symbfile: {path_prefix: \"%s\"}", bad[i]);
        parse(&o, yaml);
        assert_int_equal(o.code, SL_MALFORMED);
        outcome_free(&o);
    }
}

/* The examples of the caches' chapter. */
TEST(documented_cache_examples_are_read)
{
    struct outcome o;
    parse_good(&o, "shared_cache: {filesystem: {path: /x}}\n");
    assert_int_equal(o.config->shared.max_upload_queue_size, 400);
    assert_int_equal(o.config->shared.max_concurrent_uploads, 20);
    outcome_free(&o);
    parse_good(&o, "caches: {downloaded: {max_unused_for: 500s}}\n");
    assert_true(o.config->downloaded.max_unused_for == 500 * SECOND);
    assert_true(o.config->downloaded.retry_misses_after == HOUR);
    assert_true(o.config->derived.max_unused_for == 7 * DAY);
    outcome_free(&o);
    parse(&o, "caches: {not_a_cache: {max_unused_for: 1h}}\n");
    assert_int_equal(o.code, SL_OK);
    outcome_free(&o);
}
