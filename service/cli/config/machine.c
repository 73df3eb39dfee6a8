#include "cli/config/check.h"
#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/cache.h"
#include "conversion/isolation.h"
#include "core/loop.h"
#include "core/temp_dir.h"
#include "tls/tls.h"
#include "objectstore/objectstore.h"
#include "origin/health.h"
#include "origin/origin.h"

enum { PATH_BYTES = 4096 };

/* ---- places ---- */

/* Replaces a path by its parent: "a/b/" -> "a", "a" -> ".", "/a" -> "/". */
static void cut_last(char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    while (size && path[size - 1] != '/')
        size--;
    while (size > 1 && path[size - 1] == '/')
        size--;
    if (size)
        path[size] = '\0';
    else
        memcpy(path, ".", 2);
}

/* Tests whether files can be created in the directory or, if it does not exist, in its nearest existing parent, where it would be made.
 * Returns 0 or errno. */
static int try_directory(const char *path)
{
    char at[PATH_BYTES], probe[PATH_BYTES + 32];
    struct stat st;
    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
        return ENAMETOOLONG;
    while (stat(at, &st) != 0) {
        if (errno != ENOENT || strcmp(at, "/") == 0 || strcmp(at, ".") == 0)
            return errno;
        cut_last(at);
    }
    snprintf(probe, sizeof probe, "%s/.symloom-XXXXXX", at);
    int fd = S_ISDIR(st.st_mode) ? mkostemp(probe, O_CLOEXEC) : -1;
    if (fd < 0)
        return S_ISDIR(st.st_mode) ? errno : ENOTDIR;
    unlink(probe);
    close(fd);
    return 0;
}

/* Tests whether the file can be appended to, or created if it is missing. Returns 0 or errno. */
static int try_file(const char *path)
{
    struct stat st;
    char directory[PATH_BYTES];
    if (stat(path, &st) == 0)
        return S_ISDIR(st.st_mode) ? EISDIR : access(path, W_OK) == 0 ? 0 : errno;
    if (snprintf(directory, sizeof directory, "%s", path) >= (int)sizeof directory)
        return ENAMETOOLONG;
    cut_last(directory);
    return access(directory, F_OK) == 0 ? try_directory(directory) : errno;
}

/* ---- keys ---- */

/* Adds an error for a file or directory that `key` names and that cannot be written. `reason`: the errno of the attempt; 0 if it can be
 * written, then nothing is added. */
static void report_unwritable(const struct config *config, const char *key, const char *path, int reason,
                              struct value_problems *problems)
{
    struct value at = config_position(config, key);
    if (reason)
        value_problem(problems, &at, false, key, "cannot write to %s: %s", path, strerror(reason));
}

static void check_directory(const struct config *config, const char *key, const char *path,
                            struct value_problems *problems)
{
    if (path)
        report_unwritable(config, key, path, try_directory(path), problems);
}

/* Warns if no temporary files can be created in $TMPDIR or the default directory. The problem has no line in the configuration file. */
static void check_temp_dir(struct value_problems *problems)
{
    const char *configured = getenv("TMPDIR"), *reason = strerror(temp_dir_error());
    if (temp_dir_error() && configured && *configured)
        value_problem(problems, NULL, true, "TMPDIR", "cannot create temporary files in %s (%s); using %s instead",
                      configured, *configured == '/' ? reason : "the path is not absolute", temp_dir());
    else if (temp_dir_error())
        value_problem(problems, NULL, true, "TMPDIR", "cannot create temporary files in %s (%s); set TMPDIR",
                      temp_dir(), reason);
}

/* Loads the HTTPS certificate and key as the service would: adds an error if that fails, a warning if the certificate has expired. */
static void check_certificate(const struct config *config, struct value_problems *problems)
{
    static const char key[] = "server_config.https.certificate_path";
    struct tls_files files = {config->https.certificate_path, config->https.key_path, config->https.client_ca_path};
    struct tls_context *context;
    struct sl_error error;
    struct value at = config_position(config, key);
    if (!files.certificate || !files.key)
        return;
    if (tls_context_server(&files, &context, &error) != SL_OK) {
        value_problem(problems, &at, false, key, "%s", error.message);
        return;
    }
    if (tls_context_expiry(context) <= clock_wall_s())
        value_problem(problems, &at, true, key, "the certificate has expired; clients will reject it");
    tls_context_free(context);
}

/* Warns of a directory that is missing or cannot be read. `is_source`: it is a symbol source, whose contents are checked as well
 * (origin_check_directory; codes other than SL_DOWNLOAD_ERROR mean that this process lacks memory or descriptors). */
static void check_readable(const struct value *at, const char *key, struct sl_str path, bool is_source,
                           struct value_problems *problems)
{
    struct sl_error error;
    char text[PATH_BYTES];
    struct stat st;
    if (snprintf(text, sizeof text, SL_STR_FMT, SL_STR_ARG(path)) >= (int)sizeof text) /* longer than PATH_MAX */
        return;
    if (stat(text, &st) != 0)
        value_problem(problems, at, true, key, "cannot read %s: %s", text, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        value_problem(problems, at, true, key, "%s is not a directory", text);
    else if (access(text, R_OK | X_OK) != 0)
        value_problem(problems, at, true, key, "cannot read %s: %s", text, strerror(errno));
    else if (is_source && origin_check_directory(text, &error) == SL_DOWNLOAD_ERROR)
        value_problem(problems, at, true, key, "%s: %s", text, error.message);
}

/* Warns of directories of `filesystem` sources, debuginfod.scan and file_ptr.roots that cannot be read, each at the line of its key. */
static void check_sources(const struct config *config, struct value_problems *problems)
{
    size_t listed = config->source_count - config->scan.count; /* the last sources are made from debuginfod.scan */
    for (size_t i = 0; i < listed; i++) {
        char key[48];
        snprintf(key, sizeof key, "sources[%zu].path", i);
        if (config->sources[i].type == SOURCE_FILESYSTEM)
            check_readable(value_get(&config->source_list->items[i], "path"), key, config->sources[i].path, true,
                           problems);
    }
    for (size_t i = 0; i < config->scan.count; i++) {
        char key[48];
        struct value at = config_position(config, "debuginfod.scan");
        snprintf(key, sizeof key, "debuginfod.scan[%zu].path", i);
        check_readable(&at, key, config->scan.items[i].path, true, problems);
    }
    struct value roots = config_position(config, "file_ptr.roots");
    for (size_t i = 0; i < config->file_ptr_root_count; i++)
        check_readable(&roots, "file_ptr.roots", config->file_ptr_roots[i], false, problems);
}

static void report_store_error(const struct config *config, const char *key, const struct sl_error *error,
                               struct value_problems *problems)
{
    struct value at = config_position(config, key);
    value_problem(problems, &at, false, key, "%s", error->message);
}

/* Adds an error if the settings or credentials of a bucket are invalid; sends no request. True if they are valid or there is no bucket. */
static bool check_bucket(const struct config *config, const char *section, const struct bucket_config *bucket,
                         struct value_problems *problems)
{
    struct sl_arena arena = {0};
    struct object_store store;
    struct sl_error error;
    const char *key;
    /* "": no label, which only requests would use */
    bool good = !bucket_is_configured(bucket) || object_store_open(&store, bucket, "", &arena, &key, &error) == SL_OK;
    if (!good) {
        char whole[64];
        snprintf(whole, sizeof whole, "%s.%s", section, key);
        report_store_error(config, whole, &error, problems);
    }
    sl_arena_free(&arena);
    return good;
}

/* Adds an error for each configured bucket with invalid credentials or settings, and for an invalid shared_cache. */
static void check_stores(const struct config *config, struct value_problems *problems)
{
    const char *key;
    struct sl_error error;
    if (check_bucket(config, "shared_cache", &config->shared.bucket, problems) &&
        cache_check_shared(config, &key, &error) != SL_OK)
        report_store_error(config, key, &error, problems);
    check_bucket(config, "mozilla.store", &config->mozilla.store.bucket, problems);
    check_bucket(config, "symbfile.store", &config->symbfile.bucket, problems);
    check_bucket(config, "store", &config->uploads_store.bucket, problems);
}

void config_check_machine(const struct config *config, struct value_problems *problems)
{
    check_directory(config, "cache_dir", config->cache_dir, problems);
    check_directory(config, "symbfile.store_dir", config->symbfile.store_dir, problems);
    check_directory(config, "symbfile.store.filesystem.path", config->symbfile.shared_dir, problems);
    check_directory(config, "shared_cache.filesystem.path", config->shared.filesystem_path, problems);
    check_directory(config, "mozilla.store.filesystem.path", config->mozilla.store.filesystem_path, problems);
    check_stores(config, problems);
    check_temp_dir(problems);
    if (config->log_file)
        report_unwritable(config, "logging.file", config->log_file, try_file(config->log_file), problems);
    if (config->access_file)
        report_unwritable(config, "logging.access_file", config->access_file, try_file(config->access_file), problems);
    check_certificate(config, problems);
    struct value dsn = config_position(config, "sentry_dsn");
    if (secret_present(config->sentry_dsn) && !errors_dsn_valid(secret_open(config->sentry_dsn)))
        value_problem(problems, &dsn, false, "sentry_dsn", "not a DSN (example: https://key@sentry.io/1)");
    check_sources(config, problems);
}

void config_check_isolation(const struct config *config, bool tells_all, struct value_problems *problems)
{
    static const char key[] = "conversion.isolation";
    struct worker_text measures;
    struct sl_error error;
    struct value at = config_position(config, key);
    if (config->conversion.isolation == ISOLATION_THREAD) /* the configuration wants no worker processes */
        return;
    if (isolation_probe(&measures, &error) != SL_OK)
        value_problem(problems, &at, true, key, "%s; hostile files will be read by threads of the service",
                      error.message);
    else if (tells_all)
        value_info(problems, &at, key, "files are read by processes that are confined by: %s", measures.text);
}
