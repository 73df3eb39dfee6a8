/* `symloom push-symbols`: sends symbols of executables to a service that accepts symbfiles. */
#include "cli/push_symbols/push.h"
#include "cli/server.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct option_spec specs[] = {
    {"executable", 'e', OPTION_VALUE, true, "PATH", "Send symbols of this deployed executable, or of a directory"},
    {"pid", 0, OPTION_VALUE, false, "PID", "Send symbols of the executables that this process has loaded"},
    {"debug-file", 'd', OPTION_VALUE, false, "PATH", "Read symbols from this file (default: found for the executable)"},
    {"debug-file-directory", 0, OPTION_VALUE, true, "DIR", "Search here for debug files (default: /usr/lib/debug)"},
    {"url", 'u', OPTION_VALUE, false, "URL", "Send to this service (default: $SYMLOOM_URL)"},
    {"api-key", 't', OPTION_VALUE, false, "KEY", "Authenticate with this key: base64, or id:key ($SYMLOOM_API_KEY)"},
    {"api-key-file", 0, OPTION_VALUE, false, "PATH", "Read the key from the first line of this file"},
    {"no-ranges", 0, OPTION_FLAG, false, NULL, "Send return pads only"},
    {"no-returnpads", 0, OPTION_FLAG, false, NULL, "Send ranges only"},
    {"no-follow-alt-link", 0, OPTION_FLAG, false, NULL, "Do not read the supplementary debug file (dwz)"},
    {"chunk-size", 0, OPTION_VALUE, false, "BYTES",
     "Set the part size before compression (default: 16 MiB; 1 to 256 MiB)"},
    {"compress", 0, OPTION_VALUE, false, "auto|zstd|none", "Compress parts (auto: if the service supports it)"},
    {"zstd-level", 0, OPTION_VALUE, false, "N", "Compress with this level, 1 to 19 (default: 3)"},
    {"concurrency", 0, OPTION_VALUE, false, "N", "Send N parts at the same time (default: 4)"},
    {"retries", 0, OPTION_VALUE, false, "N", "Retry each part N times (default: 5)"},
    {"timeout", 0, OPTION_VALUE, false, "SECONDS", "Give up after this time without progress (default: 300)"},
    {"force", 0, OPTION_FLAG, false, NULL, "Send even if already uploaded or if build ids differ"},
    {"dry-run", 0, OPTION_FLAG, false, NULL, "Send nothing"},
    {"output", 0, OPTION_VALUE, false, "DIR", "Write symbfiles to DIR (with --dry-run)"},
    {"progress", 0, OPTION_VALUE, false, "auto|plain|json|none", "Choose how to show progress on standard error"},
    {"verbose", 'v', OPTION_FLAG, false, NULL, "Print where symbols come from"},
    {"ca-file", 0, OPTION_VALUE, false, "PATH", "Trust the certificates in this file"},
    {"insecure", 0, OPTION_FLAG, false, NULL, "Do not verify the service's certificate"},
    {"file-id", 0, OPTION_VALUE, false, "ID", "Set the file id that the symbfiles belong to (mode symbfile)"},
    {"ranges", 0, OPTION_VALUE, false, "FILE", "Send this file of ranges (mode symbfile)"},
    {"returnpads", 0, OPTION_VALUE, false, "FILE", "Send this file of return pads (mode symbfile)"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

enum { MAX_KEY = 4096, MAX_DIRECTORIES = 64 };

/* Reports a usage error. Always returns false, so that functions that parse options can return its result. */
static bool usage(const char *what)
{
    report_error(PUSH_USAGE, what, NULL);
    options_try_help("push-symbols");
    return false;
}

/* ---- options ---- */
/* Reads an option, or its default `fallback`, as a number from `min` to `max`. False after a report of a usage error. */
static bool push_symbols_number(const struct options *o, const char *name, const char *fallback, uint64_t min,
                                uint64_t max, uint64_t *value)
{
    const char *text = option_value(o, name, fallback);
    char *end, what[160];
    *value = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && *value >= min && *value <= max)
        return true;
    snprintf(what, sizeof what, "--%s: '%.60s' is not a number from %llu to %llu", name, text, (unsigned long long)min,
             (unsigned long long)max);
    return usage(what);
}

/* Sets `index` to that of the option's value in `words`, which ends with NULL; 0, the default, if the option is not given. False after a
 * report of a usage error. */
static bool read_word(const struct options *o, const char *name, const char *const *words, int *index)
{
    const char *text = option_value(o, name, words[0]);
    char what[160];
    for (*index = 0; words[*index]; ++*index)
        if (strcmp(words[*index], text) == 0)
            return true;
    snprintf(what, sizeof what, "--%s: invalid value '%.60s'", name, text);
    return usage(what);
}

/* Reads the access key: the first line of the file of --api-key-file, or of standard input for `-`. The caller has set errno to 0, which it
 * still is if the file is empty. False after a report. */
static bool read_first_line(const char *path, char *line, size_t size)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "re");
    bool read = file && fgets(line, (int)size, file);
    int number = errno;
    if (file && !standard)
        fclose(file);
    if (read) {
        line[strcspn(line, "\r\n")] = '\0';
        return true;
    }
    report_error(PUSH_USAGE, "--api-key-file: cannot read a key from this file",
                 number ? strerror(number) : "the file is empty");
    options_try_help("push-symbols");
    return false;
}

/* Sets `out` to the access key in the form that is sent, base64; empty when none is given. A key file wins over --api-key, that over
 * $SYMLOOM_API_KEY. False after a report of a usage error. */
static bool read_key(const struct options *o, char out[MAX_KEY])
{
    char line[MAX_KEY / 2] = "";
    const char *path = option_value(o, "api-key-file", NULL), *from_environment = getenv("SYMLOOM_API_KEY");
    const char *key = option_value(o, "api-key", from_environment ? from_environment : "");
    errno = 0; /* stays 0 if read_first_line finds an empty file */
    if (path && !read_first_line(path, line, sizeof line))
        return false;
    key = path ? line : key;
    if (strlen(key) >= sizeof line)
        return usage("the key is too long: it may have 2047 bytes");
    access_key_encode(key, out, MAX_KEY); /* always fits */
    option_hide(o, "api-key");            /* from ps(1) */
    return true;
}

/* Sets `url` to the service's URL without slashes at its end; empty if a dry run has none. False after a report of a usage error. */
static bool read_url(const struct options *o, char url[1024])
{
    const char *from_environment = getenv("SYMLOOM_URL");
    const char *text = option_value(o, "url", from_environment ? from_environment : "");
    size_t size = strlen(text);
    while (size && text[size - 1] == '/')
        size--;
    if (size >= 1024)
        return usage("the URL is too long: it may have 1023 bytes");
    snprintf(url, 1024, "%.*s", (int)size, text);
    return size || option_given(o, "dry-run") || usage("no service given: pass --url or set SYMLOOM_URL");
}

/* Reads all options about the service and the transfer; `url` and `key` store texts that `t` refers to. False after a report of a usage
 * error. */
static bool read_target(const struct options *o, struct push_target *t, char url[1024], char key[MAX_KEY])
{
    static const char *const compress[] = {"auto", "zstd", "none", NULL};
    static const char *const progress[] = {"auto", "plain", "json", "none", NULL};
    int how, shown;
    uint64_t level, concurrency, retries, timeout;
    if (!read_url(o, url) || !read_key(o, key) || !read_word(o, "compress", compress, &how) ||
        !read_word(o, "progress", progress, &shown) || !push_symbols_number(o, "zstd-level", "3", 1, 19, &level) ||
        !push_symbols_number(o, "concurrency", "4", 1, 64, &concurrency) ||
        !push_symbols_number(o, "retries", "5", 0, 100, &retries) ||
        !push_symbols_number(o, "timeout", "300", 1, 86400, &timeout))
        return false;
    *t = (struct push_target){
        .url = url,
        .key = *key ? key : NULL,
        .ca_file = option_value(o, "ca-file", NULL),
        .insecure = option_given(o, "insecure"),
        .force = option_given(o, "force"),
        .zstd_level = (int)level,
        .concurrency = (unsigned)concurrency,
        .retries = (unsigned)retries,
        .timeout_s = (unsigned)timeout,
        /* `shown`: index of `progress` */
        .progress = option_given(o, "quiet") || shown == 3 ? PUSH_SILENT
                    : shown == 2                           ? PUSH_JSON
                    : shown == 0 && isatty(STDERR_FILENO)  ? PUSH_BAR
                                                           : PUSH_LINES,
    };
    t->compress = how == 0 ? COMPRESS_AUTO : how == 1 ? COMPRESS_ZSTD : COMPRESS_NONE; /* indexes of `compress` */
    return true;
}

/* ---- work ---- */
/* Uploads the parts of one executable; with --dry-run writes them to the directory of --output, if given. Returns a push_status; problems
 * are reported. */
static int deliver(const struct options *o, const struct push_target *target, struct push_job *job)
{
    if (!option_given(o, "dry-run")) {
        bool hashed = push_hash(&job->sets[PUSH_RANGES]) && push_hash(&job->sets[PUSH_RETURNPADS]);
        if (!hashed)
            fputs("error: cannot hash the parts: out of memory, or a temporary file is unreadable\n", stderr);
        return hashed ? push_upload(target, job) : PUSH_FAILED;
    }
    const char *directory = option_value(o, "output", NULL);
    return directory ? push_save(job, directory) : PUSH_OK;
}

/* Reads the symbols of one executable, and uploads or saves them. Returns a push_status; problems are reported. */
static int push_executable(const struct options *o, const struct push_target *target, const struct push_item *item,
                           uint64_t chunk_size)
{
    struct push_job job = {
        .chunk_size = chunk_size,
        .wanted = {!option_given(o, "no-ranges"), !option_given(o, "no-returnpads")},
    };
    const char *directories[MAX_DIRECTORIES + 1] = {0};
    size_t count;
    const char *const *given = option_values(o, "debug-file-directory", &count);
    for (size_t i = 0; i < count && i < MAX_DIRECTORIES; i++)
        directories[i] = given[i];
    struct push_source source = {
        .executable = item->path,
        .name = item->name,
        .debug_file = option_value(o, "debug-file", NULL),
        .debug_directories = directories,
        .follow_alt_link = !option_given(o, "no-follow-alt-link"),
        .force = option_given(o, "force"),
        .verbose = option_given(o, "verbose"),
    };
    int status = push_extract(&source, &job);
    if (status == PUSH_OK)
        status = deliver(o, target, &job);
    push_job_free(&job);
    return status;
}

/* Adds to the list the executables that -e, --pid and the arguments after the mode name. It is a usage error if none is named, or if
 * --debug-file is given and the list does not have exactly one. Returns a push_status; problems are reported. usage() is always false, so
 * `usage(...) ? PUSH_OK : PUSH_USAGE` is PUSH_USAGE. */
static int list_executables(const struct options *o, struct push_list *list)
{
    size_t count;
    const char *const *paths = option_values(o, "executable", &count), *pid = option_value(o, "pid", NULL);
    int status = PUSH_OK;
    for (size_t i = 0; i < count && status == PUSH_OK; i++)
        status = push_list_path(list, paths[i]);
    for (size_t i = 1; i < o->argument_count && status == PUSH_OK; i++) /* argument 0 is the mode */
        status = push_list_path(list, o->arguments[i]);
    if (pid && status == PUSH_OK)
        status = push_list_process(list, pid);
    if (status != PUSH_OK)
        return status;
    if (!count && !pid && o->argument_count == 1)
        return usage("no executable given: pass -e PATH or --pid PID") ? PUSH_OK : PUSH_USAGE;
    if (list->count != 1 && option_given(o, "debug-file"))
        return usage("--debug-file can be used with one executable only") ? PUSH_OK : PUSH_USAGE;
    return PUSH_OK;
}

/* Uploads or saves the symbols of all executables in the list. A file that the user named must have symbols. Files that were found in a
 * directory or process may lack them, as long as one file in the list has some. Returns the first push_status that is an error. */
static int push_all(const struct options *o, const struct push_target *target, const struct push_list *list,
                    uint64_t chunk_size)
{
    int status = PUSH_OK;
    size_t pushed = 0;
    for (size_t i = 0; i < list->count; i++) {
        int one = push_executable(o, target, &list->items[i], chunk_size);
        pushed += one == PUSH_OK;
        if (status == PUSH_OK && (one != PUSH_NOTHING || list->items[i].named))
            status = one;
    }
    if (status == PUSH_OK && !pushed)
        return report_error(PUSH_NOTHING, "none of the executables has symbols", NULL);
    if (status == PUSH_OK)
        fputs("note: an executable that is stripped or changed after this gets another file id, for which the service "
              "has no symbols\n",
              stderr);
    return status;
}

/* Runs the mode `executable`: uploads or saves the symbols of the executables that options and arguments name. Returns a push_status. */
static int push_executables(const struct options *o, const struct push_target *target, uint64_t chunk_size)
{
    struct push_list list = {0};
    int status = list_executables(o, &list);
    if (status == PUSH_OK)
        status = push_all(o, target, &list, chunk_size);
    push_list_free(&list);
    return status;
}

/* Runs the mode `symbfile`: uploads or saves the existing symbfiles of --ranges and --returnpads. Returns a push_status; usage() is always
 * false, so `usage(...) ? PUSH_OK : PUSH_USAGE` is PUSH_USAGE. */
static int push_files(const struct options *o, const struct push_target *target, uint64_t chunk_size)
{
    const char *names[PUSH_KINDS] = {option_value(o, "ranges", NULL), option_value(o, "returnpads", NULL)};
    struct push_job job = {.chunk_size = chunk_size};
    int status = PUSH_OK;
    if (!sl_file_id_parse_any(sl_str(option_value(o, "file-id", "")), &job.file_id))
        return usage("--file-id is missing or not a file id") ? PUSH_OK : PUSH_USAGE;
    if (!names[PUSH_RANGES] && !names[PUSH_RETURNPADS])
        return usage("no file given: pass --ranges or --returnpads") ? PUSH_OK : PUSH_USAGE;
    for (int kind = 0; kind < PUSH_KINDS && status == PUSH_OK; kind++)
        if (names[kind])
            status = push_reread(names[kind], (enum push_kind)kind, &job);
    if (status == PUSH_OK)
        status = deliver(o, target, &job);
    push_job_free(&job);
    return status;
}

/* Runs `symloom push-symbols`: sends the symbols of executables, or existing symbfiles. Returns the exit status. usage() is always false,
 * so `usage(...) ? PUSH_OK : PUSH_USAGE` is PUSH_USAGE. */
static int push(const struct options *o)
{
    struct push_target target;
    char url[1024], key[MAX_KEY];
    uint64_t chunk_size;
    const char *mode = o->argument_count ? o->arguments[0] : "";
    struct progress bar;
    if (!server_may_connect(o))
        return PUSH_USAGE;
    if (strcmp(mode, "executable") != 0 && strcmp(mode, "symbfile") != 0)
        return usage("missing mode: executable or symbfile") ? PUSH_OK : PUSH_USAGE;
    if (!read_target(o, &target, url, key) ||
        !push_symbols_number(o, "chunk-size", "16777216", 1 << 20, 256 << 20, &chunk_size))
        return PUSH_USAGE;
    if (option_given(o, "dry-run"))
        chunk_size = UINT64_MAX; /* push_save needs all records of a kind in one part */
    if (strcmp(mode, "symbfile") == 0 && !options_arguments(o, 1))
        return PUSH_USAGE;
    progress_begin(&bar, o, "sending");
    target.bar = &bar;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int status =
        strcmp(mode, "executable") == 0 ? push_executables(o, &target, chunk_size) : push_files(o, &target, chunk_size);
    curl_global_cleanup();
    return status;
}

const struct command command_push_symbols = {
    .name = "push-symbols",
    .summary = "send symbols of executables to a service",
    .usage = "push-symbols executable|symbfile [OPTION...] [PATH...]",
    .about = "Sends the symbols of executables, or existing symbfiles, to a service.",
    .examples = "symloom push-symbols executable app --url http://symloom:3021\n"
                "symloom push-symbols executable --pid 4711 --url http://symloom:3021",
    .options = specs,
    .groups = {{"Most used", "executable pid url api-key api-key-file force dry-run output progress verbose"},
               {"Input",
                "debug-file debug-file-directory no-ranges no-returnpads no-follow-alt-link file-id ranges returnpads"},
               {"Transfer", "chunk-size compress zstd-level concurrency retries timeout ca-file insecure"}},
    .run = push,
};
