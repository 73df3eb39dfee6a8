/* The keys of the configuration: a table with a row for each key that is stored in a field of struct config, and the names of all
 * others. */
#include <limits.h>
#include <stddef.h>

#include "config/impl.h"
#include "core/duration.h"

/* The field of a key; of lists, the array and its number of elements. */
#define AT(field)         .offset = offsetof(struct config, field)
#define LIST(list, count) .offset = offsetof(struct config, list), .count_offset = offsetof(struct config, count)

#define NO_EFFECT "has no effect"

#define KIB    UINT64_C(1024)
#define MIB    (1024 * KIB)
#define GIB    (1024 * MIB)
#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static const char *const level_words[] = {"off", "error", "warn", "info", "debug", "trace", NULL};
static const char *const format_words[] = {"auto", "pretty", "simplified", "json", NULL};
static const char *const access_format_words[] = {"fields", "combined", NULL};
static const char *const access_words[] = {"all", "errors", "off", NULL};
static const char *const strategy_words[] = {"cfi_first", "fp_first", NULL};
static const char *const walk_compat_words[] = {"symbolicator", "none", NULL};
static const char *const isolation_words[] = {"process", "thread", NULL};
static const char *const uploads_scope_words[] = {"key", "shared", NULL};
static const char *const prefer_words[] = {"auto", "symbfile", "sources", NULL};
static const char *const route_words[] = {"both", "redis", "bucket", NULL};
static const char *const results_words[] = {"off", "redis", NULL};
static const char *const profile_words[] = {"reference", "documented", "saas", NULL};
static const char *const transient_words[] = {"reset", "status", NULL};
static const char *const compat_words[] = {"default", "documented", "eliot", "profiler", NULL};
static const char *const lookup_words[] = {"nearest", "exact", NULL};
static const char *const extension_words[] = {"function_size", "module_errors", NULL};
static const char *const layer_words[] = {"disk", "redis", "both", NULL};
static const char *const module_name_words[] = {"auto", "code_file", "debug_file", NULL};
static const char *const offset_words[] = {"skip", "reject", NULL};
static const char *const transport_words[] = {"503", "not_found", NULL};
static const char *const serve_words[] = {"redirect", "direct", NULL};
static const char *const error_key_words[] = {"title", "error", "both", NULL};

const char *const config_shared_kinds[CONFIG_SHARED_KINDS] = {
    "objects",   "object_meta", "auxdifs",  "il2cpp",       "symcaches",    "ppdb_caches",  "sourcemap_caches",
    "cficaches", "sourcefiles", "proguard", "source_index", "mozilla_syms", "ms_symcaches", "symbfile_index",
};
#define ROUTE(name, index, default)                                                                                    \
    {                                                                                                                  \
        "shared_cache.route." name, KEY_ENUM, AT(shared.route[index]), .value = default, .words = route_words          \
    }

/* Sets the lifetimes of cache entries that the value of `caches.profile` stands for (config_key.then). They are only defaults: keys of
 * single lifetimes follow in the table, are read later and replace them. */
static void profile_apply(struct config *config)
{
    static const struct {
        uint64_t downloaded_unused, derived_unused, misses_public, malformed;
    } presets[] = {
        /* in the order of profile_words */
        {DAY, 7 * DAY, DAY, DAY},                /* reference */
        {7 * DAY, 7 * DAY, HOUR, DAY},           /* documented */
        {12 * HOUR, 12 * HOUR, HOUR, 12 * HOUR}, /* saas */
    };
    size_t i = (size_t)config->cache_profile;
    config->downloaded.max_unused_for = presets[i].downloaded_unused;
    config->derived.max_unused_for = presets[i].derived_unused;
    config->downloaded.retry_misses_after_public = presets[i].misses_public;
    config->derived.retry_misses_after_public = presets[i].misses_public;
    config->downloaded.retry_malformed_after = presets[i].malformed;
    config->derived.retry_malformed_after = presets[i].malformed;
}

/* Completes the lifetimes of modules converted for Mozilla's API after `mozilla.negative_ttl` was read (config_key.then): misses of public
 * sources and malformed files are retried after the same time, and unused entries do not expire. */
static void bounded_lifetimes_follow(struct config *config)
{
    struct cache_lifetimes *lifetimes = &config->bounded.lifetimes;
    lifetimes->max_unused_for = DURATION_NEVER;
    lifetimes->retry_misses_after_public = lifetimes->retry_malformed_after = lifetimes->retry_misses_after;
}

/* Sets mozilla.fallback_all after `mozilla.fallback_sources` was read (config_key.then): "all", if it is the only id, means all sources. */
static void fallbacks_follow(struct config *config)
{
    const struct sl_str *ids = config->mozilla.fallback_sources;
    config->mozilla.fallback_all = config->mozilla.fallback_count == 1 && sl_str_equal(ids[0], SL_STR("all"));
}

static struct sl_str all_extensions[] = {SL_STR("function_size"), SL_STR("module_errors")};

/* Sets the two switches of extensions after `mozilla.v5_extensions` was read (config_key.then). */
static void extensions_follow(struct config *config)
{
    bool *const switches[] = {&config->mozilla.function_size, &config->mozilla.module_errors}; /* of all_extensions */
    for (size_t i = 0; i < 2; i++) {
        *switches[i] = false;
        for (size_t n = 0; n < config->mozilla.v5_extension_count; n++)
            *switches[i] |= sl_str_equal(config->mozilla.v5_extensions[n], all_extensions[i]);
    }
}

void config_apply_compat(struct config *config)
{
    int compat = config->mozilla.compat; /* MOZILLA_DEFAULT: the defaults of config_defaults() stay */
    if (compat == MOZILLA_DOCUMENTED) {
        config->mozilla.max_jobs = 0;
        config->mozilla.v4_require_version = true;
        config->mozilla.error_key = MOZILLA_BOTH;
        config->mozilla.module_name = MOZILLA_DEBUG_FILE;
        config->mozilla.cache = MOZILLA_REDIS;
    } else if (compat == MOZILLA_ELIOT) {
        config->mozilla.lookup = MOZILLA_EXACT;
        config->mozilla.non_integer_offsets = MOZILLA_REJECT;
        config->mozilla.transport_errors = MOZILLA_NOT_FOUND;
        config->mozilla.root_alias = false;
        config->mozilla.module_name = MOZILLA_CODE_FILE;
        config->bounded.lifetimes.retry_misses_after = 0;
        bounded_lifetimes_follow(config);
        config->mozilla.fallback_count = 0;
        config->mozilla.fallback_all = false;
    } else if (compat == MOZILLA_PROFILER) {
        config->mozilla.lookup = MOZILLA_EXACT;
        config->mozilla.extra_name_chars = "[]:";
        config->mozilla.profiler_apis = true;
        config->mozilla.v5_extensions = all_extensions;
        config->mozilla.v5_extension_count = 2;
        extensions_follow(config);
    }
}

/* After `ms_symcache.negative_ttl` was read (config_key.then): a PDB that is missing on a public source or cannot be transcoded is retried
 * after the same time. */
static void transcoded_apply(struct config *config)
{
    config->transcoded.retry_misses_after_public = config->transcoded.retry_misses_after;
    config->transcoded.retry_malformed_after = config->transcoded.retry_misses_after;
}

/* Sets the default of `http.max_bodies_in_flight` after `max_concurrent_requests` was read (config_key.then): four bodies per job, but at
 * least one; 800 if jobs are not limited. The key itself follows in the table, is read later and replaces it. */
static void bodies_follow(struct config *config)
{
    uint64_t slots = config->max_concurrent_requests;
    config->http.max_bodies_in_flight = slots == 0             ? 1
                                        : slots == UINT64_MAX  ? 800
                                        : slots < UINT_MAX / 4 ? (unsigned)slots * 4
                                                               : UINT_MAX;
}

/* ---- keys with rows ----
 * config_defaults() in read.c sets defaults that depend on the machine, such as that of cache_dir, and most lists that are not empty. */
const struct config_key config_keys[] = {
    {"bind", KEY_STRINGS, LIST(bind, bind_count), .one = true, .min = 1, .check = text_is_listener},
    {"bind_https", KEY_STRINGS, LIST(bind_https, bind_https_count), .one = true, .check = text_is_listener},
    {"admin_bind", KEY_STRINGS, LIST(admin_bind, admin_bind_count), .one = true, .check = text_is_listener},
    {"server_config.https.certificate_path", KEY_STRING, AT(https.certificate_path), .none = "null"},
    {"server_config.https.key_path", KEY_STRING, AT(https.key_path), .none = "null"},
    {"server_config.https.client_ca_path", KEY_STRING, AT(https.client_ca_path), .none = "null"},
    {"cache_dir", KEY_STRING, AT(cache_dir), .none = "null"},
    {"logging.level", KEY_WORD, AT(log_level), .text = "info", .words = level_words},
    {"logging.format", KEY_ENUM, AT(log_format), .value = LOG_AUTO, .words = format_words},
    {"logging.file", KEY_STRING, AT(log_file), .none = "null"},
    {"logging.access", KEY_ENUM, AT(access_log), .words = access_words},
    {"logging.access_file", KEY_STRING, AT(access_file), .none = "null"},
    {"logging.access_format", KEY_ENUM, AT(access_format), .words = access_format_words},

    {"metrics.statsd", KEY_STRING, AT(metrics.statsd), .none = "null", .check = text_is_statsd},
    {"metrics.prefix", KEY_STRING, AT(metrics.prefix), .text = "symbolicator"},
    {"metrics.custom_tags", KEY_PAIRS, LIST(metrics.custom_tags, metrics.custom_tag_count)},
    {"metrics.hostname_tag", KEY_STRING, AT(metrics.hostname_tag), .none = "null"},
    {"metrics.environment_tag", KEY_STRING, AT(metrics.environment_tag), .none = "null"},
    {"metrics.platform_tag", KEY_STRING, AT(metrics.platform_tag), .none = "null"},
    {"metrics.tags", KEY_BOOL, AT(metrics.tags), .value = true},
    {"metrics.mozilla_names", KEY_BOOL, AT(metrics.mozilla_names)},

    {"sentry_dsn", KEY_HIDDEN, AT(sentry_dsn), .none = "null"},
    {"sources", KEY_SOURCES, LIST(sources, source_count)},
    {"symbols", KEY_TEXTS, LIST(symbols, symbol_count)},
    {"url", KEY_STRING, AT(sentry.url), .none = "null"},
    {"org", KEY_STRING, AT(sentry.org), .none = "null"},
    {"project", KEY_STRING, AT(sentry.project), .none = "null"},
    {"auth_token", KEY_HIDDEN, AT(sentry.plain_token), .none = "null"},
    {"auth_cookies", KEY_HIDDEN, AT(sentry.plain_cookies), .none = "null"},
    {"symstore_proxy", KEY_BOOL, AT(symstore_proxy), .value = true},
    {"debuginfod.enabled", KEY_BOOL, AT(debuginfod.enabled), .value = true},
    {"debuginfod.path_prefix", KEY_STRING, AT(debuginfod.path_prefix), .text = "", .check = text_is_path_prefix},
    {"debuginfod.hold", KEY_DURATION, AT(debuginfod.hold_ns), .value = 75 * SECOND},
    {"debuginfod.transient", KEY_ENUM, AT(debuginfod.transient), .words = transient_words},
    {"debuginfod.max_hops", KEY_COUNT, AT(debuginfod.max_hops), .value = 8},
    {"debuginfod.source_roots", KEY_TEXTS, LIST(debuginfod.source_roots, debuginfod.source_root_count)},
    {"debuginfod.metadata_time", KEY_DURATION, AT(scan.metadata_time_ns), .value = 5 * SECOND, .min = MS},
    {"propagate_traces", KEY_BOOL, AT(propagate_traces), .value = true},
    {"allow_filesystem_sources_in_requests", KEY_BOOL, AT(allow_filesystem_sources_in_requests)},
    {"allow_ambient_credentials_in_requests", KEY_BOOL, AT(allow_ambient_credentials_in_requests)},
    {"allow_internal_sentry_sources_in_requests", KEY_BOOL, AT(allow_internal_sentry_sources_in_requests),
     .value = true},
    {"sentry_source_hosts", KEY_TEXTS, LIST(sentry_source_hosts, sentry_source_host_count), .check = text_is_host},

    {"max_concurrent_requests", KEY_COUNT, AT(max_concurrent_requests), .value = 200, .none = "null",
     .then = bodies_follow},
    {"max_job_duration", KEY_DURATION, AT(max_job_duration_ns), .value = 15 * MINUTE},
    {"result_ttl", KEY_DURATION, AT(result_ttl_ns), .value = 90 * SECOND},
    {"result_bytes", KEY_SIZE, AT(result_bytes), .value = 256 * MIB},
    {"symbolicate_body_max_bytes", KEY_SIZE, AT(symbolicate_body_max_bytes), .value = 55 * MIB},
    {"text.max_body", KEY_SIZE, AT(text_max_body), .value = 4 * MIB},
    {"crash_file_body_max_bytes", KEY_SIZE, AT(crash_file_body_max_bytes), .value = 250 * MIB},
    {"core_body_max_bytes", KEY_SIZE, AT(core_body_max_bytes), .value = 4 * GIB},
    {"max_request_frames", KEY_COUNT, AT(max_request_frames), .value = 1000000},
    {"max_request_modules", KEY_COUNT, AT(max_request_modules), .value = 50000},
    {"max_response_frames", KEY_COUNT, AT(max_response_frames), .value = 4000000},
    {"max_response_bytes", KEY_SIZE, AT(max_response_bytes), .value = 64 * MIB},
    {"max_fibers", KEY_COUNT, AT(max_fibers), .value = 20000, .min = 1},
    {"pool.max_queued", KEY_COUNT, AT(pool_max_queued), .value = 10000, .min = 1},

    {"connect_timeout", KEY_DURATION, AT(connect_timeout_ns), .value = 5 * SECOND},
    {"head_timeout", KEY_DURATION, AT(head_timeout_ns), .value = 10 * SECOND},
    {"max_download_timeout", KEY_DURATION, AT(max_download_timeout_ns), .value = 5 * MINUTE},
    {"download_stall_timeout", KEY_DURATION, AT(download_stall_timeout_ns), .value = 30 * SECOND},
    {"max_download_size", KEY_SIZE, AT(max_download_size), .value = 15 * GIB, .none = "null"},
    {"max_source_file_size", KEY_SIZE, AT(max_source_file_size), .value = 64 * MIB},
    {"max_inflate_ratio", KEY_UNSIGNED, AT(max_inflate_ratio), .value = 1000, .min = 1},
    {"max_downloads", KEY_UNSIGNED, AT(max_downloads), .value = 128, .min = 1},
    {"max_downloads_per_host", KEY_UNSIGNED, AT(max_downloads_per_host), .value = 16, .min = 1},
    {"connect_to_reserved_ips", KEY_BOOL, AT(connect_to_reserved_ips)},
    {"allowed_reserved_networks", KEY_TEXTS, LIST(allowed_reserved_networks, allowed_reserved_network_count),
     .check = text_is_network},
    {"deny_list_enabled", KEY_BOOL, AT(deny_list_enabled), .value = true},
    {"deny_list_time_window", KEY_DURATION, AT(deny_list_time_window_ns), .value = MINUTE},
    {"deny_list_bucket_size", KEY_DURATION, AT(deny_list_bucket_size_ns), .value = 5 * SECOND, .min = MS},
    {"deny_list_threshold", KEY_UNSIGNED, AT(deny_list_threshold), .value = 60},
    {"deny_list_block_time", KEY_DURATION, AT(deny_list_block_time_ns), .value = HOUR},
    {"deny_list_never_block_hosts", KEY_TEXTS, LIST(deny_list_never_block_hosts, deny_list_never_block_host_count)},
    {"file_ptr.roots", KEY_TEXTS, LIST(file_ptr_roots, file_ptr_root_count)},
    {"file_ptr.unc_map", KEY_PAIRS, LIST(file_ptr_unc_map, file_ptr_unc_map_count)},
    {"object_file_max_decompressed_section_size", KEY_SIZE, AT(object_max_section_size), .value = 4 * GIB,
     .none = "null"},
    {"object_file_max_decompressed_source_size", KEY_SIZE, AT(object_max_source_size), .value = GIB, .none = "null"},
    {"max_unwind_chain_len", KEY_COUNT, AT(max_unwind_chain), .value = 128, .min = 1, .none = "null"},
    {"srcsrv_frames", KEY_BOOL, AT(srcsrv_frames)},
    {"srcsrv_links", KEY_BOOL, AT(srcsrv_links)},
    {"minidump.compat", KEY_ENUM, AT(minidump_compat), .words = walk_compat_words},
    {"minidump.details", KEY_BOOL, AT(minidump_details)},
    {"core.command_line", KEY_BOOL, AT(core_command_line)},
    {"apple.details", KEY_BOOL, AT(apple_details)},
    {"apple.names_from_report", KEY_BOOL, AT(apple_names_from_report)},
    {"apple.split_os_version", KEY_BOOL, AT(apple_split_os_version)},
    {"js.compat_scope_names", KEY_BOOL, AT(js.compat_scope_names)},
    {"js.partial_scopes", KEY_BOOL, AT(js.partial_scopes)},
    {"js.used_artifact_bundles", KEY_BOOL, AT(js.used_artifact_bundles)},
    {"unwind_strategy", KEY_ENUM, AT(unwind_strategy), .words = strategy_words},
    {"jvm.chain_mappings", KEY_BOOL, AT(jvm_chain_mappings)},
    {"jvm.error_details", KEY_BOOL, AT(jvm_error_details)},
    {"dotnet_ask_pe", KEY_BOOL, AT(dotnet_ask_pe)},
    {"inlines_without_lines", KEY_BOOL, AT(inlines_without_lines)},

    {"enable_cache_cleanup", KEY_BOOL, AT(enable_cache_cleanup)},
    {"cache_cleanup_interval", KEY_DURATION, AT(cache_cleanup_interval_ns), .value = 15 * MINUTE, .min = MS},
    {"caches.profile", KEY_ENUM, AT(cache_profile), .words = profile_words, .then = profile_apply},
    {"caches.downloaded.max_unused_for", KEY_DURATION, AT(downloaded.max_unused_for), .value = DAY, .none = "null"},
    {"caches.downloaded.retry_misses_after", KEY_DURATION, AT(downloaded.retry_misses_after), .value = HOUR,
     .none = "null"},
    {"caches.downloaded.retry_misses_after_public", KEY_DURATION, AT(downloaded.retry_misses_after_public),
     .value = DAY, .none = "null"},
    {"caches.downloaded.retry_malformed_after", KEY_DURATION, AT(downloaded.retry_malformed_after), .value = DAY,
     .none = "null"},
    {"caches.downloaded.max_lazy_redownloads", KEY_UNSIGNED, AT(downloaded.max_lazy), .value = 50, .min = 1,
     .raise = true},
    {"caches.derived.max_unused_for", KEY_DURATION, AT(derived.max_unused_for), .value = 7 * DAY, .none = "null"},
    {"caches.derived.retry_misses_after", KEY_DURATION, AT(derived.retry_misses_after), .value = HOUR, .none = "null"},
    {"caches.derived.retry_misses_after_public", KEY_DURATION, AT(derived.retry_misses_after_public), .value = DAY,
     .none = "null"},
    {"caches.derived.retry_malformed_after", KEY_DURATION, AT(derived.retry_malformed_after), .value = DAY,
     .none = "null"},
    {"caches.derived.max_lazy_recomputations", KEY_UNSIGNED, AT(derived.max_lazy), .value = 20, .min = 1,
     .raise = true},
    {"caches.index.max_unused_for", KEY_DURATION, AT(index.max_unused_for), .value = 7 * DAY, .none = "null"},
    {"caches.index.retry_misses_after", KEY_DURATION, AT(index.retry_misses_after), .value = 10 * MINUTE,
     .none = "null"},
    {"caches.index.retry_misses_after_public", KEY_DURATION, AT(index.retry_misses_after_public), .value = 10 * MINUTE,
     .none = "null"},
    {"caches.index.retry_malformed_after", KEY_DURATION, AT(index.retry_malformed_after), .value = 10 * MINUTE,
     .none = "null"},
    {"caches.index.max_lazy_recomputations", KEY_UNSIGNED, AT(index.max_lazy), .value = 20, .min = 1, .raise = true,
     .no_effect = "has no effect: indexes count as downloads"},
    {"caches.diagnostics.retention", KEY_DURATION, AT(diagnostics.max_unused_for), .value = DAY, .none = "null"},
    {"caches.diagnostics.keep_failed_dumps", KEY_BOOL, AT(keep_failed_dumps)},
    {"caches.in_memory.object_meta_capacity", KEY_SIZE, AT(object_meta_capacity), .value = 100 * MIB},
    {"caches.in_memory.source_index_capacity", KEY_SIZE, AT(source_index_capacity), .value = 10 * MIB},
    {"caches.in_memory.sentry_index_capacity", KEY_COUNT, AT(sentry_index_capacity), .value = 100000},
    {"caches.in_memory.sentry_index_ttl", KEY_DURATION, AT(sentry_index_ttl_ns), .value = HOUR},
    {"caches.in_memory.gcs_token_capacity", KEY_COUNT, AT(gcs_token_capacity), .value = 100},
    {"caches.in_memory.s3_client_capacity", KEY_COUNT, AT(s3_client_capacity), .value = 100},
    {"caches.in_memory.fileinbundle_capacity", KEY_SIZE, AT(bundled_files_capacity), .value = 3 * GIB},
    {"caches.in_memory.default_capacity", KEY_SIZE, AT(default_capacity), .value = 100 * KIB},
    {"caches.in_memory.max_mapped_files", KEY_COUNT, AT(max_mapped_files), .value = UINT64_MAX, .min = 16,
     .none = "null"},
    {"caches.restart_retries_malformed", KEY_BOOL, AT(restart_retries_malformed), .value = true},
    {"caches.upgrade_fallback_after", KEY_DURATION, AT(upgrade_fallback_after_ns), .value = HOUR, .none = "null"},
    {"caches.memory_idle", KEY_DURATION, AT(memory_idle_ns), .value = 10 * MINUTE, .none = "null"},
    {"caches.max_size", KEY_SIZE, AT(cache_max_size), .value = UINT64_MAX, .none = "null"},
    {"caches.min_free_space", KEY_SIZE, AT(cache_min_free_space), .value = UINT64_MAX, .none = "null"},

    {"shared_cache.max_concurrent_uploads", KEY_UNSIGNED, AT(shared.max_concurrent_uploads), .value = 20, .min = 1,
     .max = 1000},
    {"shared_cache.max_upload_queue_size", KEY_UNSIGNED, AT(shared.max_upload_queue_size), .value = 400},
    {"shared_cache.max_upload_queue_bytes", KEY_SIZE, AT(shared.max_upload_queue_bytes), .value = GIB},
    {"shared_cache.filesystem.path", KEY_STRING, AT(shared.filesystem_path), .none = "null"},
    {"shared_cache.gcs.bucket", KEY_STR, AT(shared.bucket.gcs_name), .none = "null"},
    {"shared_cache.gcs.service_account_path", KEY_STR, AT(shared.bucket.service_account_path), .none = "null"},
    {"shared_cache.s3.bucket", KEY_STR, AT(shared.bucket.s3_name), .none = "null"},
    {"shared_cache.s3.region", KEY_STR, AT(shared.bucket.region), .none = "null"},
    {"shared_cache.s3.endpoint", KEY_STR, AT(shared.bucket.endpoint), .none = "null"},
    {"shared_cache.s3.prefix", KEY_STR, AT(shared.bucket.prefix), .none = "null"},
    {"shared_cache.s3.aws_credentials_provider", KEY_ENUM, AT(shared.bucket.credentials),
     .words = aws_credentials_words},
    {"shared_cache.s3.access_key", KEY_HIDDEN, AT(shared.bucket.access_key), .none = "null"},
    {"shared_cache.s3.secret_key", KEY_HIDDEN, AT(shared.bucket.secret_key), .none = "null"},
    {"shared_cache.redis.url", KEY_STRING, AT(shared.redis_url), .none = "null", .check = text_is_redis_url},
    {"shared_cache.redis.ca_path", KEY_STRING, AT(shared.redis_ca_path), .none = "null"},
    {"shared_cache.redis.certificate_path", KEY_STRING, AT(shared.redis_certificate_path), .none = "null"},
    {"shared_cache.redis.key_path", KEY_STRING, AT(shared.redis_key_path), .none = "null"},
    {"shared_cache.redis.password", KEY_HIDDEN, AT(shared.redis_password), .none = "null"},
    {"shared_cache.redis.namespace", KEY_STRING, AT(shared.redis_namespace), .text = "symloom"},
    {"shared_cache.redis.max_value_size", KEY_SIZE, AT(shared.redis_max_value_size), .value = 8 * MIB,
     .max = 512 * MIB},
    {"shared_cache.redis.negative", KEY_BOOL, AT(shared.redis_negative), .value = true},
    ROUTE("objects", 0, SHARED_BUCKET_ONLY),
    ROUTE("object_meta", 1, SHARED_BOTH),
    ROUTE("auxdifs", 2, SHARED_BOTH),
    ROUTE("il2cpp", 3, SHARED_BOTH),
    ROUTE("symcaches", 4, SHARED_BOTH),
    ROUTE("ppdb_caches", 5, SHARED_BOTH),
    ROUTE("sourcemap_caches", 6, SHARED_BOTH),
    ROUTE("cficaches", 7, SHARED_BOTH),
    ROUTE("sourcefiles", 8, SHARED_BOTH),
    ROUTE("proguard", 9, SHARED_BOTH),
    ROUTE("source_index", 10, SHARED_BOTH),
    ROUTE("mozilla_syms", 11, SHARED_BOTH),
    ROUTE("ms_symcaches", 12, SHARED_BOTH),
    ROUTE("symbfile_index", 13, SHARED_BOTH),

    {"http.backlog", KEY_UNSIGNED, AT(http.backlog), .value = 4096, .min = 1, .max = INT_MAX},
    {"http.max_request_line", KEY_SIZE, AT(http.max_request_line), .value = 8 * KIB, .min = 64},
    {"http.max_head_bytes", KEY_SIZE, AT(http.max_head_bytes), .value = 32 * KIB, .min = 64},
    {"http.max_header_fields", KEY_UNSIGNED, AT(http.max_header_fields), .value = 100, .min = 1},
    {"http.compress_min", KEY_SIZE, AT(http.compress_min), .value = 4 * KIB, .none = "off"},
    {"http.max_bodies_in_flight", KEY_UNSIGNED, AT(http.max_bodies_in_flight), .value = 800, .min = 1},
    {"http.header_timeout", KEY_DURATION, AT(http.header_timeout_ns), .value = 10 * SECOND, .min = MS},
    {"http.body_timeout", KEY_DURATION, AT(http.body_timeout_ns), .value = 30 * SECOND, .min = MS},
    {"http.min_rate", KEY_SIZE, AT(http.min_rate), .value = KIB},
    {"http.idle_timeout", KEY_DURATION, AT(http.idle_timeout_ns), .value = 75 * SECOND, .min = MS},
    {"http.write_timeout", KEY_DURATION, AT(http.write_timeout_ns), .value = 30 * SECOND, .min = MS},
    {"http.max_connections", KEY_UNSIGNED, AT(http.max_connections), .min = 1},
    {"http.max_connections_per_ip", KEY_UNSIGNED, AT(http.max_connections_per_ip)},
    {"http.keepalive_requests", KEY_UNSIGNED, AT(http.keepalive_requests), .value = 10000, .min = 1},
    {"http.allowed_hosts", KEY_STRINGS, LIST(http.allowed_hosts, http.allowed_host_count)},
    {"http.trusted_proxies", KEY_STRINGS, LIST(http.trusted_proxies, http.trusted_proxy_count), .check = text_is_proxy},
    {"http.reuseport", KEY_BOOL, AT(http.reuseport)},
    {"http.processes", KEY_UNSIGNED, AT(http.processes), .value = 1, .min = 1, .max = 256},
    {"http.unix_group", KEY_STRING, AT(http.unix_group), .none = "null", .check = text_is_group},
    {"http.file_max_age", KEY_DURATION, AT(http.file_max_age_ns), .value = HOUR},
    {"http.server_header", KEY_BOOL, AT(http.server_header), .value = true},
    {"http.cors.origins", KEY_STRINGS, LIST(http.cors_origins, http.cors_origin_count), .check = text_is_origin},
    {"http.cors.mozilla_origins", KEY_STRINGS, LIST(http.mozilla_origins, http.mozilla_origin_count),
     .check = text_is_origin},
    {"page.enabled", KEY_BOOL, AT(page_enabled), .value = true},
    {"uploads.scope", KEY_ENUM, AT(uploads_scope), .words = uploads_scope_words},
    {"symbfile.path_prefix", KEY_STRING, AT(symbfile.path_prefix), .text = "", .check = text_is_path_prefix},
    {"symbfile.prefer", KEY_ENUM, AT(symbfile.prefer), .words = prefer_words},
    {"symbfile.store_dir", KEY_STRING, AT(symbfile.store_dir), .none = "null"},
    {"symbfile.store.filesystem.path", KEY_STRING, AT(symbfile.shared_dir), .none = "null"},
    {"symbfile.store.gcs.bucket", KEY_STR, AT(symbfile.bucket.gcs_name), .none = "null"},
    {"symbfile.store.gcs.service_account_path", KEY_STR, AT(symbfile.bucket.service_account_path), .none = "null"},
    {"symbfile.store.s3.bucket", KEY_STR, AT(symbfile.bucket.s3_name), .none = "null"},
    {"symbfile.store.s3.region", KEY_STR, AT(symbfile.bucket.region), .none = "null"},
    {"symbfile.store.s3.endpoint", KEY_STR, AT(symbfile.bucket.endpoint), .none = "null"},
    {"symbfile.store.s3.prefix", KEY_STR, AT(symbfile.bucket.prefix), .none = "null"},
    {"symbfile.store.s3.aws_credentials_provider", KEY_ENUM, AT(symbfile.bucket.credentials),
     .words = aws_credentials_words},
    {"symbfile.store.s3.access_key", KEY_HIDDEN, AT(symbfile.bucket.access_key), .none = "null"},
    {"symbfile.store.s3.secret_key", KEY_HIDDEN, AT(symbfile.bucket.secret_key), .none = "null"},
    {"symbfile.store_max_size", KEY_SIZE, AT(symbfile.store_max_size), .value = UINT64_MAX, .none = "null"},
    {"symbfile.store_min_free", KEY_SIZE, AT(symbfile.store_min_free), .value = GIB},
    {"symbfile.max_part_bytes", KEY_SIZE, AT(symbfile.max_part_bytes), .value = 512 * MIB, .min = 1},
    {"symbfile.max_part_inflated_bytes", KEY_SIZE, AT(symbfile.max_part_inflated_bytes), .value = 4 * GIB, .min = 1},
    {"symbfile.max_set_bytes", KEY_SIZE, AT(symbfile.max_set_bytes), .value = 16 * GIB, .min = 1},
    {"symbfile.max_records", KEY_COUNT, AT(symbfile.max_records), .value = 100000000, .min = 1},
    {"symbfile.max_parts", KEY_COUNT, AT(symbfile.max_parts), .value = 10000, .min = 1, .max = 1000000},
    {"symbfile.max_uploads", KEY_UNSIGNED, AT(symbfile.max_uploads), .value = 64, .min = 1},
    {"symbfile.staging_ttl", KEY_DURATION, AT(symbfile.staging_ttl_ns), .value = 24 * HOUR, .min = SECOND},
    {"symbfile.body_timeout", KEY_DURATION, AT(symbfile.body_timeout_ns), .value = 5 * MINUTE, .min = MS},
    {"store.gcs.bucket", KEY_STR, AT(uploads_store.bucket.gcs_name), .none = "null"},
    {"store.gcs.service_account_path", KEY_STR, AT(uploads_store.bucket.service_account_path), .none = "null"},
    {"store.s3.bucket", KEY_STR, AT(uploads_store.bucket.s3_name), .none = "null"},
    {"store.s3.region", KEY_STR, AT(uploads_store.bucket.region), .none = "null"},
    {"store.s3.endpoint", KEY_STR, AT(uploads_store.bucket.endpoint), .none = "null"},
    {"store.s3.prefix", KEY_STR, AT(uploads_store.bucket.prefix), .none = "null"},
    {"store.s3.aws_credentials_provider", KEY_ENUM, AT(uploads_store.bucket.credentials),
     .words = aws_credentials_words},
    {"store.s3.access_key", KEY_HIDDEN, AT(uploads_store.bucket.access_key), .none = "null"},
    {"store.s3.secret_key", KEY_HIDDEN, AT(uploads_store.bucket.secret_key), .none = "null"},
    {"store.max_file_size", KEY_SIZE, AT(uploads_store.max_file_size), .value = 15 * GIB, .min = 1},
    {"upload.public_url", KEY_STRING, AT(upload.public_url), .none = "null"},
    {"upload.sentry", KEY_BOOL, AT(upload.sentry), .value = true},
    {"upload.breakpad", KEY_BOOL, AT(upload.breakpad), .value = true},
    {"upload.pyroscope", KEY_BOOL, AT(upload.pyroscope), .value = true},
    {"mozilla.compat", KEY_ENUM, AT(mozilla.compat), .words = compat_words, .then = config_apply_compat},
    {"mozilla.path_prefix", KEY_STRING, AT(mozilla.path_prefix), .text = "", .check = text_is_path_prefix},
    {"mozilla.root_alias", KEY_BOOL, AT(mozilla.root_alias), .value = true},
    {"mozilla.max_jobs", KEY_COUNT, AT(mozilla.max_jobs), .value = 10},
    {"mozilla.max_body_size", KEY_SIZE, AT(mozilla.max_body_size), .value = 32 * MIB, .min = 1},
    {"mozilla.request_timeout", KEY_DURATION, AT(mozilla.request_timeout_ns), .value = 5 * MINUTE, .min = MS},
    {"mozilla.lookup", KEY_ENUM, AT(mozilla.lookup), .words = lookup_words},
    {"mozilla.non_integer_offsets", KEY_ENUM, AT(mozilla.non_integer_offsets), .words = offset_words},
    {"mozilla.transport_errors", KEY_ENUM, AT(mozilla.transport_errors), .words = transport_words},
    {"mozilla.error_key", KEY_ENUM, AT(mozilla.error_key), .words = error_key_words},
    {"mozilla.v4_require_version", KEY_BOOL, AT(mozilla.v4_require_version)},
    {"mozilla.extra_name_chars", KEY_STRING, AT(mozilla.extra_name_chars), .text = ""},
    {"mozilla.allow_private_network", KEY_BOOL, AT(mozilla.allow_private_network)},
    {"mozilla.module_name", KEY_ENUM, AT(mozilla.module_name), .words = module_name_words},
    {"mozilla.sources", KEY_TEXTS, LIST(mozilla.sources, mozilla.source_count), .one = true},
    {"mozilla.fallback_sources", KEY_TEXTS, LIST(mozilla.fallback_sources, mozilla.fallback_count), .one = true,
     .then = fallbacks_follow},
    {"mozilla.v5_extensions", KEY_TEXTS, LIST(mozilla.v5_extensions, mozilla.v5_extension_count),
     .words = extension_words, .then = extensions_follow},
    {"mozilla.profiler_apis", KEY_BOOL, AT(mozilla.profiler_apis)},
    {"mozilla.version_file", KEY_STRING, AT(mozilla.version_file), .none = "null"},
    {"mozilla.broken_endpoint", KEY_BOOL, AT(mozilla.broken_endpoint)},
    {"mozilla.cache", KEY_ENUM, AT(mozilla.cache), .words = layer_words},
    {"mozilla.redis.url", KEY_STRING, AT(bounded.redis_url), .none = "null", .check = text_is_redis_url},
    {"mozilla.redis.manage", KEY_BOOL, AT(bounded.redis_manage)},
    {"mozilla.lru.max_size", KEY_SIZE, AT(bounded.max_size), .value = 1000000000, .min = 1},
    {"mozilla.lru.evict_count", KEY_UNSIGNED, AT(bounded.evict_count), .value = 5, .min = 1},
    {"mozilla.negative_ttl", KEY_DURATION, AT(bounded.lifetimes.retry_misses_after), .value = HOUR,
     .then = bounded_lifetimes_follow},
    {"mozilla.store.filesystem.path", KEY_STRING, AT(mozilla.store.filesystem_path), .none = "null"},
    {"mozilla.store.gcs.bucket", KEY_STR, AT(mozilla.store.bucket.gcs_name), .none = "null"},
    {"mozilla.store.gcs.service_account_path", KEY_STR, AT(mozilla.store.bucket.service_account_path), .none = "null"},
    {"mozilla.store.s3.bucket", KEY_STR, AT(mozilla.store.bucket.s3_name), .none = "null"},
    {"mozilla.store.s3.region", KEY_STR, AT(mozilla.store.bucket.region), .none = "null"},
    {"mozilla.store.s3.endpoint", KEY_STR, AT(mozilla.store.bucket.endpoint), .none = "null"},
    {"mozilla.store.s3.prefix", KEY_STR, AT(mozilla.store.bucket.prefix), .none = "null"},
    {"mozilla.store.s3.aws_credentials_provider", KEY_ENUM, AT(mozilla.store.bucket.credentials),
     .words = aws_credentials_words},
    {"mozilla.store.s3.access_key", KEY_HIDDEN, AT(mozilla.store.bucket.access_key), .none = "null"},
    {"mozilla.store.s3.secret_key", KEY_HIDDEN, AT(mozilla.store.bucket.secret_key), .none = "null"},
    {"mozilla.store.public_url", KEY_STRING, AT(mozilla.store.public_url), .none = "null"},
    {"mozilla.store.extra", KEY_TEXTS, LIST(mozilla.store.extra, mozilla.store.extra_count)},
    {"mozilla.store.serve", KEY_ENUM, AT(mozilla.store.serve), .words = serve_words},
    {"mozilla.store.serve_native", KEY_BOOL, AT(mozilla.store.serve_native), .value = true},
    {"mozilla.store.disallowed_snippets", KEY_TEXTS,
     LIST(mozilla.store.disallowed_snippets, mozilla.store.disallowed_snippet_count), .text = "qcom/proprietary"},
    {"mozilla.store.scan_contents", KEY_BOOL, AT(mozilla.store.scan_contents)},
    {"mozilla.store.max_upload_size", KEY_SIZE, AT(mozilla.store.max_upload_size), .value = 2 * GIB, .min = 1},
    {"mozilla.store.max_members", KEY_COUNT, AT(mozilla.store.max_members), .value = 20000, .min = 1},
    {"mozilla.store.max_unpacked_size", KEY_SIZE, AT(mozilla.store.max_unpacked_size), .value = 32 * GIB, .min = 1},
    {"mozilla.store.workers", KEY_UNSIGNED, AT(mozilla.store.workers), .max = 1024},
    {"mozilla.store.compress_extensions", KEY_TEXTS,
     LIST(mozilla.store.compress_extensions, mozilla.store.compress_extension_count), .text = "sym"},
    {"mozilla.store.mime_overrides", KEY_PAIRS, LIST(mozilla.store.mime_overrides, mozilla.store.mime_override_count)},
    {"mozilla.store.download_extensions", KEY_TEXTS,
     LIST(mozilla.store.download_extensions, mozilla.store.download_extension_count),
     .text = ".sym .dl_ .ex_ .pd_ .dbg.gz .tar.bz2"},
    {"mozilla.store.allowed_download_domains", KEY_TEXTS,
     LIST(mozilla.store.allowed_download_domains, mozilla.store.allowed_download_domain_count),
     .text = "queue.taskcluster.net firefox-ci-tc.services.mozilla.com"},
    {"mozilla.store.allow_any_domain", KEY_BOOL, AT(mozilla.store.allow_any_domain)},
    {"mozilla.store.v2_max_files", KEY_COUNT, AT(mozilla.store.v2_max_files), .value = 1024, .min = 1},
    {"mozilla.store.try_retention", KEY_DURATION, AT(mozilla.store.try_retention_ns), .value = 28 * DAY, .min = MS},
    {"ms_symcache.negative_ttl", KEY_DURATION, AT(transcoded.retry_misses_after), .value = DAY,
     .then = transcoded_apply},
    {"ms_symcache.timeout", KEY_DURATION, AT(ms_symcache.timeout_ns), .value = 10 * MINUTE, .min = MS},
    {"ms_symcache.max_memory", KEY_SIZE, AT(ms_symcache.max_memory), .value = 4 * GIB, .min = MIB},
    {"ms_symcache.max_output", KEY_SIZE, AT(ms_symcache.max_output), .value = 2 * GIB, .min = 1},
    {"ms_symcache.max_concurrent", KEY_UNSIGNED, AT(ms_symcache.max_concurrent), .none = "null"},
    {"scan.prefetch", KEY_SIZE, AT(scan.prefetch), .value = 256 * MIB},
    {"memory.request_budget", KEY_SIZE, AT(memory.request_budget), .min = MIB},
    {"memory.queue_timeout", KEY_DURATION, AT(memory.queue_timeout_ns), .value = 5 * SECOND},
    {"conversion.max_memory", KEY_SIZE, AT(conversion.max_memory), .min = MIB},
    {"conversion.max_time", KEY_DURATION, AT(conversion.max_time_ns), .value = 30 * SECOND, .min = MS},
    {"conversion.isolation", KEY_ENUM, AT(conversion.isolation), .words = isolation_words},
    {"conversion.max_heavy", KEY_UNSIGNED, AT(conversion.max_heavy), .value = 1, .min = 1},
    {"auth.require", KEY_TEXTS, LIST(auth.require, auth.require_count), .words = access_route_groups},
    {"auth.token", KEY_HIDDEN, AT(sentry.token), .none = "null"},
    {"auth.cookies", KEY_HIDDEN, AT(sentry.cookies), .none = "null"},
    {"cluster.node_id", KEY_COUNT, AT(cluster.node_id), .value = UINT64_MAX, .max = UINT16_MAX, .none = "null"},
    {"cluster.results", KEY_ENUM, AT(cluster.results), .words = results_words},
    {"cluster.peers", KEY_PAIRS, LIST(cluster.peers, cluster.peer_count)},
    {"core_dumps", KEY_BOOL, AT(core_dumps)},
    {"shutdown.delay", KEY_DURATION, AT(shutdown_delay_ns)},
    {"shutdown.timeout", KEY_DURATION, AT(shutdown_timeout_ns), .value = 25 * SECOND},
    {"health.stalled", KEY_DURATION, AT(health_stalled_ns), .value = 30 * SECOND},
};
const size_t config_key_count = sizeof config_keys / sizeof *config_keys;

/* ---- keys without rows ----
 * Each name is a key of the group `path`. Keys below it are not checked, unless the name is itself a group of this table. */
static const struct config_key_group {
    const char *path; /* empty = the top level */
    enum key_class class;
    const char *no_effect; /* text of the warning for these keys; NULL: they have an effect */
    const char *names;     /* separated by single blanks */
} groups[] = {
    {"", KEY_FREE, NO_EFFECT, "traces_sample_rate transaction_sample_rate special_paths isolation"},
    {"", KEY_FREE, "has no effect; use download_stall_timeout against slow downloads", "streaming_timeout"},
    {"logging", KEY_FREE, NO_EFFECT, "enable_backtraces"},
    {"caches", KEY_FREE, NO_EFFECT, "placeholders"},
    {"caches.in_memory", KEY_FREE, NO_EFFECT, "cficaches_capacity"},
    {"ms_symcache", KEY_FREE, NO_EFFECT, "redirect keytab"},
    {"ms_symcache", KEY_FREE, NULL, "transcoders"}, /* read by transcoders.c */
    {"debuginfod", KEY_FREE, NULL, "scan"},         /* read by scans.c */
    {"mozilla", KEY_FREE, NO_EFFECT, "missing_symbols client_otel"},
    {"mozilla", KEY_SECRET, NULL, "tokens"}, /* read by tokens.c */
    {"auth", KEY_FREE, NULL, "keys"},        /* read by access.c */

    /* Sources are read by origin/, like those of requests. */
    {"sources[]", KEY_FREE, NULL, "id name type path url bucket prefix region aws_credentials_provider client_email"},
    {"sources[]", KEY_FREE_BOOL, NULL, "is_public has_index file_ptr accept_invalid_certs"},
    {"sources[]", KEY_SECRET, NULL,
     "headers token cookies access_key secret_key session_token private_key bearer_token"},
    {"sources[].filters", KEY_FREE, NULL, "filetypes path_patterns"},
    {"sources[].filters", KEY_FREE_BOOL, NULL, "requires_checksum"},
    {"sources[].layout", KEY_FREE, NULL, "type casing"},
};
enum { GROUPS = sizeof groups / sizeof *groups };

/* ---- look-up ---- */

/* Splits a key "a.b.c" into its group "a.b", which is returned (empty: the top level), and the name `*last`, "c". */
static struct sl_str keys_split(struct sl_str pattern, struct sl_str *last)
{
    const char *dot = pattern.size ? memrchr(pattern.data, '.', pattern.size) : NULL;
    size_t size = dot ? (size_t)(dot - pattern.data) : 0;
    *last = dot ? (struct sl_str){dot + 1, pattern.size - size - 1} : pattern;
    return (struct sl_str){pattern.data, size};
}

/* Takes the next name of a list separated by blanks; empty at the end. */
static struct sl_str next_name(const char **names)
{
    size_t size = strcspn(*names, " ");
    struct sl_str name = {*names, size};
    *names += size + ((*names)[size] == ' ');
    return name;
}

/* True if the list of names, separated by blanks, contains `wanted`. */
static bool names_contain(const char *names, struct sl_str wanted)
{
    for (struct sl_str name = next_name(&names); name.size; name = next_name(&names))
        if (sl_str_equal(name, wanted))
            return true;
    return false;
}

/* True if the key `path` is `group` or below it. */
static bool is_below(const char *path, struct sl_str group)
{
    return strncmp(path, group.data, group.size) == 0 &&
           (path[group.size] == '\0' || path[group.size] == '.' || path[group.size] == '[');
}

enum key_class key_classify(struct sl_str pattern, const struct config_key **row)
{
    struct sl_str last, parent = keys_split(pattern, &last);
    enum key_class class = KEY_UNKNOWN;
    *row = NULL;
    for (size_t i = 0; i < config_key_count; i++) {
        if (!is_below(config_keys[i].path, pattern))
            continue;
        if (config_keys[i].path[pattern.size] == '\0') {
            *row = &config_keys[i];
            return config_keys[i].type == KEY_HIDDEN ? KEY_SECRET : KEY_ROW;
        }
        class = KEY_GROUP; /* a key below it has a row; go on, since a later row can be its own */
    }
    /* keys without a row: `groups` lists their groups (path) and the names in each */
    for (size_t i = 0; i < GROUPS && pattern.size; i++)
        if (is_below(groups[i].path, pattern))
            return KEY_GROUP;
    for (size_t i = 0; i < GROUPS; i++) {
        if (sl_str_equal(parent, sl_str(groups[i].path)) && names_contain(groups[i].names, last))
            return groups[i].class;
    }
    return class;
}

const char *key_no_effect(struct sl_str pattern)
{
    struct sl_str last, parent = keys_split(pattern, &last);
    for (size_t i = 0; i < config_key_count; i++)
        if (sl_str_equal(pattern, sl_str(config_keys[i].path)))
            return config_keys[i].no_effect;
    for (size_t i = 0; i < GROUPS; i++)
        if (sl_str_equal(parent, sl_str(groups[i].path)) && names_contain(groups[i].names, last))
            return groups[i].no_effect;
    return NULL;
}

void key_list_no_effect(struct sl_buf *out)
{
    for (size_t i = 0; i < config_key_count; i++)
        if (config_keys[i].no_effect)
            sl_buf_printf(out, "- `%s`\n", config_keys[i].path);
    for (size_t i = 0; i < GROUPS; i++) {
        const char *names = groups[i].names;
        for (struct sl_str name = next_name(&names); groups[i].no_effect && name.size; name = next_name(&names))
            sl_buf_printf(out, "- `%s%s" SL_STR_FMT "`\n", groups[i].path, groups[i].path[0] ? "." : "",
                          SL_STR_ARG(name));
    }
}

bool key_within(struct sl_str pattern, enum key_class class)
{
    const struct config_key *row;
    struct sl_str last;
    while (pattern.size) {
        if (key_classify(pattern, &row) == class)
            return true;
        if (sl_str_ends(pattern, SL_STR("[]")))
            pattern.size -= 2;
        else
            pattern = keys_split(pattern, &last);
    }
    return false;
}

/* ---- suggestions ---- */
enum { EDITS = 2, LONGEST = 64 }; /* the largest edit distance of a suggestion; the longest name that is compared */

/* Returns the Levenshtein distance of two names; some number above EDITS if it is larger than EDITS. */
static size_t edit_distance(struct sl_str a, struct sl_str b)
{
    size_t line[LONGEST + 1]; /* one row of the matrix of distances between the prefixes of `a` and `b` */
    if (a.size > LONGEST || b.size > LONGEST || a.size > b.size + EDITS || b.size > a.size + EDITS)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.size; j++)
        line[j] = j;
    for (size_t i = 1; i <= a.size; i++) {
        size_t diagonal = line[0];
        line[0] = i;
        for (size_t j = 1; j <= b.size; j++) {
            size_t best = diagonal + (a.data[i - 1] != b.data[j - 1]), above = line[j];
            best = above + 1 < best ? above + 1 : best;
            best = line[j - 1] + 1 < best ? line[j - 1] + 1 : best;
            diagonal = above;
            line[j] = best;
        }
    }
    return line[b.size];
}

struct nearest {
    struct sl_str group, word; /* of the misspelled key: its group and last name */
    struct sl_str best;        /* the most similar name so far; empty: none */
    size_t distance;           /* edit distance of `best` from `word` */
};

/* Keeps `name` if it is more similar to the misspelled word than those before it. A name of which every letter differs is no suggestion. */
static void consider(struct nearest *n, struct sl_str name)
{
    size_t distance = edit_distance(n->word, name);
    if (distance < n->distance && distance < name.size) {
        n->distance = distance;
        n->best = name;
    }
}

/* If the key `path` is below the group of the misspelled key, considers the name that follows the group in it. */
static void consider_path(struct nearest *n, const char *path)
{
    if (!is_below(path, n->group) && n->group.size)
        return;
    const char *at = path + n->group.size;
    if (n->group.size) {
        if (*at != '.')
            return;
        at++;
    }
    consider(n, (struct sl_str){at, strcspn(at, ".[")});
}

struct sl_str key_nearest(struct sl_str pattern)
{
    struct nearest n = {.distance = EDITS + 1};
    n.group = keys_split(pattern, &n.word);
    for (size_t i = 0; i < config_key_count; i++)
        consider_path(&n, config_keys[i].path);
    for (size_t i = 0; i < GROUPS; i++) {
        const char *names = groups[i].names; /* keys without a row */
        consider_path(&n, groups[i].path);
        for (struct sl_str name; sl_str_equal(n.group, sl_str(groups[i].path)) && (name = next_name(&names)).size;)
            consider(&n, name);
    }
    return n.best;
}
