/* The configuration file (YAML) as one struct, with all defaults filled in, and the symbol sources that it defines.
 *
 * Loading a file reports all its problems, each with line, column and dotted key ("caches.max_size"). Unknown keys and keys without effect
 * are warnings. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "core/log.h"
#include "core/secret.h"
#include "core/value_tree.h"
#include "objectstore/objectstore.h"

struct source;     /* origin/origin.h */
struct key_origin; /* config/impl.h */

struct access_key {     /* entry of auth.keys */
    struct sl_str id;   /* its holder, for logs and requests */
    uint8_t sha256[32]; /* of the secret key, which the configuration does not contain */
    const struct sl_str *rights;
    size_t right_count;
    const struct sl_str *scopes; /* requests with the key may use only these scopes; NULL = any */
    size_t scope_count;
    int64_t expires_s; /* seconds since the epoch; INT64_MAX = never */
};

struct mozilla_token {  /* entry of mozilla.tokens */
    uint8_t sha256[32]; /* of the token */
    struct sl_str email;
    uint64_t user_id;
    bool upload, upload_try, view_all, active;
    unsigned upload_api; /* version of the upload API that its holder prefers: 1 or 2 */
    struct sl_str scope; /* scope of uploads with the token; empty: the global one */
    int64_t expires_s;   /* seconds since the epoch; INT64_MAX = never */
};

enum { STORE_REDIRECT, STORE_DIRECT }; /* config_store.serve */

struct config_store {            /* mozilla.store: where files uploaded by Mozilla's API are stored */
    const char *filesystem_path; /* NULL: not in a directory */
    struct bucket_config bucket; /* used if bucket_is_configured() */
    const char *public_url;      /* public URL of the store's root; NULL: it is not public */
    int serve;         /* downloads: STORE_REDIRECT to the store's URL, or STORE_DIRECT: the service sends the file */
    bool serve_native; /* requests of other APIs use it as a source, too */
    struct sl_str *disallowed_snippets;
    size_t disallowed_snippet_count;
    bool scan_contents;
    uint64_t max_upload_size, max_members, max_unpacked_size;
    unsigned workers; /* members of an archive that are processed at once; 0 = number of threads */
    struct sl_str *compress_extensions;
    size_t compress_extension_count;
    struct text_pair *mime_overrides; /* extension to media type */
    size_t mime_override_count;
    struct sl_str *download_extensions;
    size_t download_extension_count;
    struct sl_str *allowed_download_domains;
    size_t allowed_download_domain_count;
    bool allow_any_domain;
    uint64_t v2_max_files, try_retention_ns;
    struct sl_str *extra; /* URLs of other stores */
    size_t extra_count;
};

/* The values of keys that accept one of several words, in the order of the words in keys.c. The fields of struct config that hold them are
 * int, since one function stores all of them. */
enum { MOZILLA_DEFAULT, MOZILLA_DOCUMENTED, MOZILLA_ELIOT, MOZILLA_PROFILER };    /* mozilla.compat */
enum { MOZILLA_NEAREST, MOZILLA_EXACT };                                          /* mozilla.lookup */
enum { MOZILLA_SKIP, MOZILLA_REJECT };                                            /* mozilla.non_integer_offsets */
enum { MOZILLA_UNAVAILABLE, MOZILLA_NOT_FOUND };                                  /* mozilla.transport_errors */
enum { MOZILLA_TITLE, MOZILLA_ERROR, MOZILLA_BOTH };                              /* mozilla.error_key */
enum { MOZILLA_DISK, MOZILLA_REDIS, MOZILLA_DISK_AND_REDIS };                     /* mozilla.cache */
enum { MOZILLA_AUTO, MOZILLA_CODE_FILE, MOZILLA_DEBUG_FILE };                     /* mozilla.module_name */
enum { ISOLATION_PROCESS, ISOLATION_THREAD };                                     /* conversion.isolation */
enum { UPLOADS_OF_SCOPE, UPLOADS_SHARED };                                        /* uploads.scope */
enum { DEBUGINFOD_RESET, DEBUGINFOD_STATUS };                                     /* debuginfod.transient */
enum { SYMBFILE_PREFER_AUTO, SYMBFILE_PREFER_SYMBFILE, SYMBFILE_PREFER_SOURCES }; /* symbfile.prefer */

struct cache_lifetimes { /* those of one kind of cache entries, in nanoseconds; DURATION_NEVER = no limit */
    uint64_t max_unused_for, retry_misses_after, retry_misses_after_public, retry_malformed_after;
    unsigned max_lazy; /* outdated entries that may be refreshed at the same time; they are used meanwhile */
};

struct transcoder { /* a program that writes SymCache files of one version */
    unsigned version[3];
    const char **command;          /* NULL-terminated */
    struct text_pair *environment; /* name and value */
    size_t environment_count;
};
/* Parses a version of SymCache files, such as "3.1.0": a 16-bit major number and 8-bit minor and patch numbers. False if it
 * is invalid. */
bool transcoder_version(struct sl_str text, unsigned version[3]);

/* The kinds of files that a scan of a directory reads (`debuginfod.scan[].kinds`). */
enum {
    SCAN_FILES = 1, /* debug files and programs that are in no package */
    SCAN_DEB = 2,
    SCAN_RPM = 4,
    SCAN_TAR = 8,
    SCAN_ZIP = 16,
    SCAN_ALL_KINDS = 31,
    CONFIG_MAX_SCANS = 64
};
/* The words for SCAN_FILES to SCAN_ZIP in the file, in this order; ends with NULL. */
extern const char *const config_scan_kinds[];
/* A directory that is searched for debug files and packages, again and again (an entry of `debuginfod.scan`). */
struct config_scan {
    struct sl_str path;            /* NUL-terminated */
    const char *include, *exclude; /* regular expressions of PCRE2 for absolute paths; NULL: none */
    unsigned kinds;                /* bits SCAN_.. */
    uint64_t interval_ns;          /* between two searches of the directory; 0: only one, at the start */
};

/* Where cache entries of a kind are stored if the shared cache has both a Redis and a bucket. */
enum shared_route { SHARED_BOTH, SHARED_REDIS_ONLY, SHARED_BUCKET_ONLY };
enum { CONFIG_SHARED_KINDS = 14 };
/* The names of the kinds of cache entries, in the order of config_shared.route. */
extern const char *const config_shared_kinds[CONFIG_SHARED_KINDS];

enum { CLUSTER_OFF, CLUSTER_REDIS }; /* cluster.results */

struct config_shared { /* the cache that several nodes share; NULL paths and URLs: that back end is not used */
    const char *filesystem_path;
    struct bucket_config bucket; /* used if bucket_is_configured() */
    const char *redis_url, *redis_namespace;
    const char *redis_ca_path, *redis_certificate_path, *redis_key_path; /* NULL = none */
    struct sl_secret redis_password;
    uint64_t redis_max_value_size;
    bool redis_negative;
    unsigned max_concurrent_uploads, max_upload_queue_size;
    uint64_t max_upload_queue_bytes;
    int route[CONFIG_SHARED_KINDS]; /* enum shared_route */
};

struct config {
    struct sl_arena arena;
    unsigned holds;   /* number of references that config_retain() gave, besides the one of config_load() */
    const char *path; /* path of the file; NULL = there is none, all values are defaults */
    const char **bind;
    size_t bind_count;
    const char **bind_https, **admin_bind;
    size_t bind_https_count, admin_bind_count;
    struct {
        const char *certificate_path, *key_path, *client_ca_path; /* NULL = none */
    } https;
    const char *cache_dir; /* NULL = no disk cache */
    char *log_level;
    enum log_format log_format;
    const char *log_file;
    int access_log;          /* which requests are logged: all, errors, off (the enum of http_options.access) */
    const char *access_file; /* NULL = the same as the log */
    int access_format;       /* format of the access log: fields, combined */

    struct {
        const char *statsd;                                                 /* host:port, unix:/path; NULL = disabled */
        const char *prefix, *hostname_tag, *environment_tag, *platform_tag; /* names of tags; NULL = none */
        struct text_pair *custom_tags;                                      /* name and value */
        size_t custom_tag_count;
        bool tags, mozilla_names;
        const char *host; /* from $ELIOT_HOSTNAME; NULL = the system's host name */
    } metrics;

    struct sl_secret sentry_dsn; /* receives error reports */

    struct source *sources;  /* of debug files: those of the key `sources`, then one for each of `debuginfod.scan` */
    uint64_t sources_number; /* identifies the list (source_list_number) */
    size_t source_count;
    struct sl_str *symbols; /* for commands: used like their option --symbols */
    size_t symbol_count;
    struct { /* for commands: Sentry project and credentials; NULL = not configured */
        const char *url, *org, *project;
        struct sl_secret token, cookies; /* keys auth.token and auth.cookies */
        struct sl_secret plain_token,
            plain_cookies; /* keys auth_token and auth_cookies, used if the above are not set */
    } sentry;
    bool page_enabled; /* serve the page at / */
    bool symstore_proxy;
    struct { /* the debuginfod server */
        bool enabled;
        const char *path_prefix;
        uint64_t hold_ns, max_hops;
        int transient; /* DEBUGINFOD_RESET, _STATUS */
        struct sl_str *source_roots;
        size_t source_root_count;
    } debuginfod;
    bool propagate_traces;
    bool allow_filesystem_sources_in_requests, allow_ambient_credentials_in_requests,
        allow_internal_sentry_sources_in_requests;
    struct sl_str *sentry_source_hosts;
    size_t sentry_source_host_count;

    uint64_t max_concurrent_requests; /* UINT64_MAX = no limit */
    uint64_t max_job_duration_ns, result_ttl_ns, result_bytes;
    uint64_t symbolicate_body_max_bytes, crash_file_body_max_bytes, core_body_max_bytes;
    uint64_t text_max_body;
    uint64_t max_request_frames, max_request_modules, max_response_frames, max_response_bytes, max_fibers,
        pool_max_queued;

    uint64_t connect_timeout_ns, head_timeout_ns, max_download_timeout_ns, download_stall_timeout_ns;
    uint64_t max_download_size, max_source_file_size; /* UINT64_MAX = no limit */
    unsigned max_inflate_ratio, max_downloads, max_downloads_per_host;
    bool connect_to_reserved_ips;
    struct sl_str *allowed_reserved_networks;
    size_t allowed_reserved_network_count;
    bool deny_list_enabled;
    uint64_t deny_list_time_window_ns, deny_list_bucket_size_ns, deny_list_block_time_ns;
    unsigned deny_list_threshold;
    struct sl_str *deny_list_never_block_hosts;
    size_t deny_list_never_block_host_count;
    uint64_t object_max_section_size, object_max_source_size, max_unwind_chain;
    bool srcsrv_frames;                   /* frames have the path of their file in version control */
    bool minidump_details, apple_details; /* responses have more details of crash files */
    bool core_command_line;               /* responses for core files have the command line of the process */
    bool keep_failed_dumps;               /* minidumps that could not be processed are stored as kind `diagnostics` */
    bool apple_names_from_report;         /* unsymbolicated frames of text reports keep the report's own names */
    bool apple_split_os_version;          /* OS versions of text reports are split into name, version and build */
    int minidump_compat;                  /* the service whose stack walks are imitated: symbolicator, none */
    int unwind_strategy;                  /* tried first: unwind tables (cfi_first) or frame pointers (fp_first) */
    bool srcsrv_links;                    /* source server data of native PDBs is used for source links */
    bool jvm_chain_mappings;              /* the output frame of one mapping is looked up in the following ones */
    bool jvm_error_details;               /* responses say why a mapping was not used */
    bool dotnet_ask_pe;                   /* look for a Portable PDB inside the PE file of .NET modules without one */
    /* report inlined calls also where a function, or the code at an address, has no line numbers, as in some PDB files */
    bool inlines_without_lines;

    bool enable_cache_cleanup;
    uint64_t cache_cleanup_interval_ns;
    struct cache_lifetimes downloaded, derived, index, diagnostics, transcoded;
    bool restart_retries_malformed;
    /* bytes of cache entries that are kept in memory: a limit for each of these kinds; default_capacity: for each other kind */
    uint64_t object_meta_capacity, source_index_capacity, bundled_files_capacity, default_capacity;
    uint64_t sentry_index_capacity, gcs_token_capacity, s3_client_capacity; /* limits in entries, not bytes */
    uint64_t sentry_index_ttl_ns;
    uint64_t max_mapped_files; /* UINT64_MAX = half of vm.max_map_count */
    /* after an upgrade, cached files of the previous format are used for this time before they are converted again */
    uint64_t upgrade_fallback_after_ns;
    uint64_t memory_idle_ns;
    uint64_t cache_max_size, cache_min_free_space; /* bytes; UINT64_MAX = no limit */
    struct config_shared shared;

    struct sl_str *file_ptr_roots;
    size_t file_ptr_root_count;
    struct text_pair *file_ptr_unc_map;
    size_t file_ptr_unc_map_count;

    struct {
        int backlog;
        uint64_t max_request_line, max_head_bytes, compress_min, min_rate;
        unsigned max_header_fields, max_bodies_in_flight, max_connections, max_connections_per_ip, keepalive_requests;
        uint64_t header_timeout_ns, body_timeout_ns, idle_timeout_ns, write_timeout_ns;
        const char **allowed_hosts;
        size_t allowed_host_count;
        const char **trusted_proxies;
        size_t trusted_proxy_count;
        const char **cors_origins, **mozilla_origins; /* origins allowed by CORS, "*" = any */
        size_t cors_origin_count, mozilla_origin_count;
        const char *unix_group; /* group of socket files; NULL = the process's */
        uint64_t file_max_age_ns;
        bool server_header;
        bool reuseport;     /* other processes may listen on the same addresses */
        unsigned processes; /* number of serving processes */
    } http;
    bool core_dumps;
    uint64_t shutdown_delay_ns, shutdown_timeout_ns;
    uint64_t health_stalled_ns;

    int uploads_scope; /* UPLOADS_..: who sees uploads made with a key that has scopes: these scopes, or everyone */
    struct {
        const char *path_prefix;                 /* before the paths of its endpoints: empty, or /a/b */
        int prefer;                              /* SYMBFILE_PREFER_.. */
        const char *store_dir;                   /* where this node stores uploads; NULL: `uploads` in cache_dir */
        const char *shared_dir;                  /* shared by all nodes; NULL: none */
        struct bucket_config bucket;             /* shared by all nodes, used if bucket_is_configured() */
        uint64_t store_max_size, store_min_free; /* UINT64_MAX = no limit */
        uint64_t max_part_bytes, max_part_inflated_bytes, max_set_bytes, max_records, max_parts;
        unsigned max_uploads; /* received at once */
        uint64_t staging_ttl_ns, body_timeout_ns;
    } symbfile;

    struct { /* `store`: uploaded debug files */
        struct bucket_config bucket;
        uint64_t max_file_size; /* bytes */
    } uploads_store;
    struct {
        const char *public_url;           /* base of URLs in answers; NULL: as the client addressed the service */
        bool sentry, breakpad, pyroscope; /* accept uploads of these projects' clients */
    } upload;

    struct {
        bool on;                 /* Mozilla's API is served: `mozilla` is configured, or $ELIOT_SYMBOLS_URLS is set */
        int compat;              /* MOZILLA_DEFAULT..: determines the defaults of the other keys of `mozilla` */
        const char *path_prefix; /* before the paths of its endpoints: empty, or /a/b */
        bool root_alias;         /* serve POST / as well */
        uint64_t max_jobs;       /* per request; 0 = no limit */
        uint64_t max_body_size, request_timeout_ns;
        int lookup, non_integer_offsets, transport_errors, error_key;
        bool v4_require_version;
        const char *extra_name_chars; /* characters that names of modules may contain besides the usual ones */
        bool allow_private_network;
        int module_name;
        struct sl_str *sources; /* as written: URLs, and ids of sources */
        size_t source_count;
        bool are_sources_of_eliot;       /* `sources` come from the variable $ELIOT_SYMBOLS_URLS */
        struct sl_str *fallback_sources; /* as written: ids of sources, or only "all" */
        size_t fallback_count;
        bool fallback_all;
        struct source *stores;          /* resolved from `sources`, in its order */
        const char *stores_key;         /* hash of `sources`, which identifies the list */
        const struct source *fallbacks; /* asked for modules that the stores do not have */
        size_t fallbacks_count;
        uint64_t fallbacks_number;    /* identifies the list `fallbacks` (source_list_number) */
        int cache;                    /* where modules converted for this API are cached: MOZILLA_DISK, ... */
        struct sl_str *v5_extensions; /* as written */
        size_t v5_extension_count;
        bool function_size, module_errors; /* include these members in responses: set from v5_extensions */
        bool profiler_apis;                /* serve /source/v1 and /asm/v1, for the Firefox Profiler */
        const char *version_file;          /* file served as /__version__; NULL: the one beside the program */
        bool broken_endpoint;              /* serve /__broken__ */
        struct mozilla_token *tokens;
        size_t token_count;
        struct config_store store;
    } mozilla;
    struct { /* the cache of modules converted for Mozilla's API, which has limits and may have a Redis of its own */
        const char *kind; /* name of this kind of cache entries: "mozilla_syms" */
        struct cache_lifetimes lifetimes;
        uint64_t max_size;         /* bytes on disk */
        unsigned evict_count;      /* number of entries evicted at once */
        const char *redis_url;     /* NULL: the Redis of the shared cache */
        const char *redis_url_key; /* the key that redis_url comes from, for error messages */
        bool redis_manage;         /* set the eviction policy of the Redis */
    } bounded;
    struct {
        uint64_t node_id;        /* UINT64_MAX: derived from the host name */
        struct text_pair *peers; /* ids of the other nodes, and their URLs */
        size_t peer_count;
        int results; /* how nodes share job results: CLUSTER_.. */
    } cluster;
    struct {
        struct transcoder *transcoders; /* one per major version */
        size_t transcoder_count;
        uint64_t timeout_ns, max_memory, max_output; /* limits of one transcode */
        unsigned max_concurrent;                     /* 0 = number of cores */
    } ms_symcache;
    struct {
        struct config_scan *items;
        size_t count;
        uint64_t prefetch;         /* when one member of a package is read, up to so many bytes of others are kept */
        uint64_t metadata_time_ns; /* limit of a search by /metadata */
    } scan;
    struct {
        uint64_t request_budget; /* bytes for all requests together */
        uint64_t queue_timeout_ns;
    } memory;
    struct {
        bool compat_scope_names;    /* name functions of scripts exactly like Sentry's service */
        bool partial_scopes;        /* use the functions before a syntax error in a script */
        bool used_artifact_bundles; /* responses list the bundles whose files were used */
    } js;
    struct {
        uint64_t max_memory, max_time_ns; /* bytes; CPU time, to which a second per 4 MiB of input is added */
        unsigned max_heavy;               /* conversions of inputs above 1 GiB that run at once */
        int isolation;                    /* ISOLATION_.. */
    } conversion;
    struct {
        struct sl_str *require; /* groups of routes that need a key */
        size_t require_count;
        struct access_key *keys;
        size_t key_count;
    } auth;

    struct {
        const char *directory; /* where the sockets between the service's processes are; NULL: there is only one */
        size_t index;          /* index of this process */
    } process;                 /* set by the program, not by the file */

    int cache_profile;               /* selects the default lifetimes: reference, documented, saas */
    const struct value *source_list; /* the value of the key `sources`, with each ${NAME} replaced; NULL = none */
    struct key_origin *origins;      /* where the value of each key comes from, in the order of config_keys */
};

/* Loads the file `path` (NULL: the defaults and the environment variables of Eliot, Mozilla's service) and resolves references: a value
 * that is exactly ${NAME} is replaced by that environment variable, and a secret `x` may be in a file that the key `x_file` names.
 * `problems`, whose arena the caller sets, gets the problems in the order of the file: on SL_MALFORMED the errors, on success only
 * warnings, for example of a world-readable file with secrets. It may be NULL. Free the result with config_release(). On failure `*config`
 * is NULL and the error is one of
 *
 *     SL_NOT_FOUND, SL_PERMISSION_DENIED, SL_INTERNAL   "failed to open configuration file <path>: ..."
 *     SL_MALFORMED                                      "config file empty", "failed to parse config YAML"
 *     SL_BUSY                                           "out of memory" */
enum sl_code config_load(const char *path, struct config **config, struct value_problems *problems,
                         struct sl_error *error);
/* Parses a configuration from text: results as for config_load(). `name` is the file's name in messages. For tests and fuzzing. */
enum sl_code config_parse(struct sl_str yaml, const char *name, struct config **config, struct value_problems *problems,
                          struct sl_error *error);

/* Take and give back a reference; config_load() gives the first one. A running service may replace its configuration: a fiber that goes on
 * using one after it has suspended must hold a reference. Giving back the last reference frees the configuration. NULL is allowed. Call
 * both on the loop thread. */
const struct config *config_retain(const struct config *config);
void config_release(const struct config *config);

/* Excludes the memory of the configuration, which has secrets, from core dumps. */
void config_exclude_from_core_dumps(const struct config *config);

/* Records where the key's value comes from: the environment, or if `environment` is false, an option of the command line. */
void config_note_override(struct config *config, const char *key, bool environment);

/* Returns the position of the key's value in the file, as a value for value_problem(). For a group of keys ("http"), returns the position
 * of the first key in it that the file sets. Line 0 if the file sets none. */
struct value config_position(const struct config *config, const char *key);

/* Appends a line for each problem: "<name>:<line>:<column>: error: <path>: <what>", or with "warning:" or "info:" instead of "error:".
 * After 20 errors, or 20 warnings, says only how many more there are. Leaves out an unknown position or path; escapes control bytes. */
void config_format_problems(const char *name, const struct value_problems *problems, struct sl_buf *out);

/* Writes every key with its type, default and meaning, in Markdown: doc/configuration.md. False when out of memory. */
bool config_table(struct sl_buf *out);

/* Writes the effective configuration as YAML, each value with a comment about its origin ("default", "<file>:<line>", "env", "option").
 * Secrets become "[redacted]", URLs lose user info and query; keys without effect are left out. config_parse() accepts the result, unless
 * it is too large: aliases of the file are written out. */
void config_dump(const struct config *config, struct sl_buf *out);

/* Sets `keys` to the dotted keys whose values differ in the two configurations, at most `max`, and returns their number. Compares only the
 * key `path`, or if that ends in a dot, all keys below it. */
size_t config_differences(const struct config *a, const struct config *b, const char *path, const char **keys,
                          size_t max);

/* Parses a node id from 0 to 65535, a key of `cluster.peers`. A node with several processes uses this id and the following ones, and is
 * listed with the first. False if the text is no such number. */
bool config_peer_number(struct sl_str text, uint16_t *number);

/* Two signs that the program runs in a container, which changes defaults. _is_set: SYMLOOM_CONTAINER=1 is set. _is_detected: /.dockerenv
 * exists, or /proc/self/cgroup contains "/docker"; this counts only without a configuration file. */
bool config_container_is_set(void);
bool config_container_is_detected(void);

/* True if modules converted for Mozilla's API (config.bounded) are stored in a Redis: `mozilla.cache` is redis or both. */
bool config_bounded_in_redis(const struct config *config);
