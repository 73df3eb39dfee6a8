/* Shared by all kinds of input of `symloom symbolicate`: reading it, where to search, writing answers. */
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/json_fields.h"
#include "cli/locator/locator.h"
#include "cli/server.h"
#include "cli/symbolicate/sentry.h"
#include "core/duration.h"
#include "fetch/fetch.h"
#include "source/text.h"

/* ---- the input ---- */

const char *symbolicate_format(const struct options *o, const char *usual)
{
    return option_given(o, "json") ? "json" : option_value(o, "format", usual);
}

/* Copies the input from a pipe or device to an unlinked temporary file and maps that; unpacks it if it is compressed. */
static enum sl_code map_stream(int stream, struct sl_mapping *mapping, struct sl_error *error)
{
    static char block[64 * 1024];
    ssize_t n;
    bool written = true;
    int fd = temporary_file();
    if (fd < 0)
        return sl_fail_errno(error, errno, "cannot create a temporary file");
    do {
        n = read(stream, block, sizeof block);
        if (n > 0)
            written = sl_write_sparse(fd, (struct sl_bytes){(const uint8_t *)block, (size_t)n});
    } while (written && (n > 0 || (n < 0 && errno == EINTR)));
    enum sl_code code = !written ? sl_fail_errno(error, errno, "cannot write a temporary file")
                        : n < 0  ? sl_fail_errno(error, errno, "cannot read the input")
                                 : sl_map_fd(fd, mapping, error);
    close(fd);
    return code == SL_OK ? map_unpacked(mapping, error) : code;
}

/* If the input begins with a byte order mark of UTF-16, replaces the mapping by one of its text in UTF-8; leaves other input as it is. */
static enum sl_code map_as_utf8(struct sl_mapping *mapping, struct sl_error *error)
{
    struct sl_str begin = {(const char *)mapping->bytes.data, mapping->bytes.size}, text;
    struct sl_buf scratch = {0};
    if (!sl_str_starts(begin, SL_STR("\xFF\xFE")) && !sl_str_starts(begin, SL_STR("\xFE\xFF")))
        return SL_OK;
    bool is_text = sl_text_decode(mapping->bytes, &scratch, &text);
    enum sl_code code = scratch.failed ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
    int fd = is_text ? temporary_file() : -1;
    if (fd >= 0) {
        sl_unmap(mapping);
        code = sl_write_all(fd, (struct sl_bytes){(const uint8_t *)text.data, text.size})
                   ? sl_map_fd(fd, mapping, error)
                   : sl_fail_errno(error, errno, "cannot write a temporary file");
        close(fd);
    } else if (is_text) {
        code = sl_fail_errno(error, errno, "cannot create a temporary file");
    }
    sl_buf_free(&scratch);
    return code;
}

/* Maps the input, unpacked if it is compressed. `-` (standard input), a FIFO and a device cannot be mapped: they are copied. */
static enum sl_code map_bytes(const char *path, struct sl_mapping *mapping, struct sl_error *error)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return map_stream(STDIN_FILENO, mapping, error);
    if (stat(path, &st) != 0 || !(S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
        return map_file(path, mapping, error);
    int stream = open(path, O_RDONLY | O_CLOEXEC);
    if (stream < 0)
        return sl_fail_errno(error, errno, "cannot open the input");
    enum sl_code code = map_stream(stream, mapping, error);
    close(stream);
    return code;
}

enum sl_code symbolicate_map_input(const char *path, struct sl_mapping *mapping, struct sl_error *error)
{
    enum sl_code code = map_bytes(path, mapping, error);
    return code == SL_OK ? map_as_utf8(mapping, error) : code;
}

/* ---- where to search ---- */

bool symbolicate_as_symbolicli(void)
{
    return strcmp(options_program_name(), "symbolicli") == 0;
}

/* Returns the log level that -v stands for (server_verbosity), NULL for the usual one. Started as symbolicli, the program logs at `info`
 * unless an option sets the level, because Sentry's symbolicli, which it replaces, does so. */
static const char *log_level(const struct options *o)
{
    const char *level = server_verbosity(o);
    bool given = level || option_given(o, "log-level") || option_given(o, "quiet");
    return given || !symbolicate_as_symbolicli() ? level : "info";
}

bool symbolicate_takes_addresses(const struct options *o)
{
    return option_given(o, "module") || option_given(o, "maps") || option_given(o, "pid") ||
           strcmp(option_value(o, "type", ""), "addresses") == 0;
}

const char *const *symbolicate_symbol_paths(const struct options *o, size_t *count)
{
    bool any = o->argument_count > 1 && !symbolicate_takes_addresses(o);
    *count = any ? o->argument_count - 1 : 0;
    return any ? (const char *const *)o->arguments + 1 : NULL;
}

int symbolicate_check_symbol_paths(const struct options *o)
{
    size_t count, more;
    const char *const *symbols = option_values(o, "symbols", &count);
    const char *const *paths = symbolicate_symbol_paths(o, &more);
    int status = source_paths_check(symbols, count);
    return status ? status : source_paths_check(paths, more);
}

/* True if the path names a regular file. Others are not opened: opening a FIFO may wait, opening a device may have an effect. */
static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Adds a copy of the path to the files to be searched. False when out of memory. */
static bool add_path(struct local_files *files, const char *path)
{
    const char *copy = sl_arena_strndup(files->arena, path, strlen(path));
    if (!copy ||
        !sl_grow_in_arena(files->arena, &files->items, &files->capacity, files->count + 1, sizeof *files->items))
        return false;
    files->items[files->count++] = copy;
    return true;
}

/* Adds the input's separate debug file and its supplementary file, if they exist, to the files to be searched. False when out of memory. */
static bool add_companions(struct local_files *files, const struct input *input)
{
    char path[4096];
    if (input->debug.path && !add_path(files, input->debug.path))
        return false;
    return !input->object || !input_supplementary_path(input, path) || !is_regular(path) || add_path(files, path);
}

bool local_files_add(struct local_files *files, struct sl_str path)
{
    static const struct input_options options = {.find_debug = true};
    struct input input;
    if (!path.size || *path.data != '/') /* not an absolute path of this machine */
        return true;
    const char *copy = sl_arena_strndup(files->arena, path.data, path.size);
    if (!copy)
        return false;
    if (!is_regular(copy))
        return true;
    if (!add_path(files, copy))
        return false;
    bool good = input_open(copy, &options, &input, NULL) != SL_OK || add_companions(files, &input);
    input_close(&input);
    return good;
}

bool local_files_add_build_id(struct local_files *files, struct sl_str code_id)
{
    char path[4096];
    /* the id becomes a part of a path: only ids of 3 to 64 bytes in hexadecimal are used */
    if (code_id.size < 6 || code_id.size > 128)
        return true;
    for (size_t i = 0; i < code_id.size; i++)
        if (!memchr("0123456789abcdef", code_id.data[i], 16))
            return true;
    return !build_id_path(usual_debug_directories[0], code_id, path) || local_files_add(files, sl_str(path));
}

/* Opens a locator that searches the sources of the options, the paths among the arguments, the Sentry project (if it is online), and the
 * local files (may be NULL). */
static enum sl_code open_search(const struct options *o, const struct sentry_project *project,
                                const struct local_files *local, struct locator **locator, struct sl_error *error)
{
    struct sl_buf path = {0}; /* the arguments as locator_open takes them: a symbol path, with `;` after each entry */
    size_t count;
    const char *const *paths = symbolicate_symbol_paths(o, &count);
    for (size_t i = 0; i < count; i++) {
        sl_buf_cstr(&path, paths[i]);
        sl_buf_u8(&path, ';');
    }
    sl_buf_u8(&path, 0);
    enum sl_code code = path.failed ? sl_fail(error, SL_BUSY, "out of memory")
                                    : locator_open(o, (const char *)path.data, log_level(o), locator, error);
    sl_buf_free(&path);
    if (code == SL_OK && project->online && !locator_add_source(*locator, &project->debug_files)) {
        locator_close(*locator);
        code = sl_fail(error, SL_BUSY, "out of memory");
    }
    if (code == SL_OK && local && local->count && !locator_add_files(*locator, local->items, local->count)) {
        locator_close(*locator);
        code = sl_fail(error, SL_BUSY, "out of memory");
    }
    return code;
}

/* ---- the work ---- */

struct timed_work {
    void (*work)(void *arg);
    void *arg;
    uint64_t timeout_ns;
    bool began, timed_out; /* began: there was memory for the fiber */
};

/* Runs timed->work in a fiber of its own, which is cancelled after timeout_ns, and waits for its end. */
static void run_timed(void *arg)
{
    struct timed_work *timed = arg;
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    timed->began = fiber_start_admitted(&group, timed->work, timed->arg);
    fiber_group_deadline(&group, DURATION_MS(timed->timeout_ns));
    fiber_group_wait(&group);
    timed->timed_out = group.expired;
}

int symbolicate_in_time(const struct options *o, struct locator *locator, void (*work)(void *arg), void *arg)
{
    struct timed_work timed = {.work = work, .arg = arg};
    const char *timeout = option_value(o, "timeout", "15m");
    struct sl_error error = {0};
    if (!duration_parse(sl_str(timeout), &timed.timeout_ns))
        return options_wrong(o, "--timeout: '%s' is not a duration (example: 15m)", timeout);
    if (locator_run(locator, run_timed, &timed, &error) != SL_OK)
        return report_error(1, error.message, NULL);
    if (timed.timed_out)
        return report_error(1, "the symbolication timed out; raise --timeout", NULL);
    return timed.began ? 0 : report_no_memory();
}

int search_inputs_open(const struct options *o, const struct sentry_project *project, const struct local_files *local,
                       struct search_inputs *inputs)
{
    const char *scope = option_value(o, "scope", NULL);
    struct sl_error error = {0};
    if (open_search(o, project, local, &inputs->locator, &error) != SL_OK)
        return report_error(1, error.message, NULL);
    inputs->config = locator_config(inputs->locator);
    inputs->sources = locator_sources(inputs->locator, &inputs->source_count);
    inputs->scope = scope ? sl_str(scope) : project->online ? project->project : SL_STR("global");
    return 0;
}

void search_inputs_close(struct search_inputs *inputs, struct missing_report *missing)
{
    if (missing && inputs->locator)
        locator_describe(inputs->locator, missing);
    locator_close(inputs->locator);
    inputs->locator = NULL;
}

int symbolicate_here(const struct options *o, const struct sentry_project *project, const struct local_files *local,
                     struct missing_report *missing, struct search_inputs *inputs, void (*work)(void *arg), void *arg)
{
    int status = search_inputs_open(o, project, local, inputs);
    if (status)
        return status;
    status = symbolicate_in_time(o, inputs->locator, work, arg);
    search_inputs_close(inputs, missing);
    return status;
}

/* ---- output ---- */

/* Begins a new line, indented by two blanks for each level of nesting. */
static void put_line(struct sl_buf *out, unsigned depth)
{
    sl_buf_u8(out, '\n');
    sl_buf_fill(out, ' ', 2 * (size_t)depth);
}

void put_indented(struct sl_str json, struct sl_buf *out)
{
    unsigned depth = 0;
    bool in_text = false, opened = false;
    for (size_t i = 0; i < json.size; i++) {
        char c = json.data[i];
        if (!in_text && sl_is_blank(c))
            continue;
        bool opens = !in_text && (c == '{' || c == '['), closes = !in_text && (c == '}' || c == ']');
        depth -= closes;
        /* an item begins a new line, and so does a closing bracket, but `{}` and `[]` stay on one line */
        if (opened != closes)
            put_line(out, depth);
        opened = opens;
        sl_buf_u8(out, (uint8_t)c);
        in_text ^= c == '"';
        if (in_text && c == '\\' && i + 1 < json.size)
            sl_buf_u8(out, (uint8_t)json.data[++i]);
        if (!in_text && c == ':')
            sl_buf_u8(out, ' ');
        depth += opens;
        if (!in_text && c == ',')
            put_line(out, depth);
    }
    sl_buf_u8(out, '\n');
}

bool answer_write_json(struct sl_buf *answer, bool indent, struct sl_buf *out, struct sl_str *json)
{
    static const struct sl_str status = SL_STR("{\"status\":\"completed\",");
    sl_buf_u8(answer, '\n');
    struct sl_str text = sl_buf_view(answer);
    size_t begin = sl_str_starts(text, status) ? status.size - 1 : 0;
    if (answer->failed)
        return false;
    answer->data[begin] = '{';
    *json = (struct sl_str){text.data + begin, text.size - begin};
    if (indent) {
        put_indented(*json, out);
        *json = sl_buf_view(out);
    }
    return !out->failed;
}

int symbolicate_write(const struct options *o, struct sl_str text)
{
    const char *path = option_value(o, "output", "-");
    struct sl_error error = {0};
    if (strcmp(path, "-") == 0) {
        output_write(text);
        return 0; /* output_finish reports errors */
    }
    enum sl_code code = output_file_put(path, (struct sl_bytes){(const uint8_t *)text.data, text.size}, &error);
    return code == SL_OK ? 0 : report_error(1, path, error.message);
}

/* ---- a running service instead of this process: --server ---- */

static const char boundary[] = "symloom-form-5b2c9d1e7f";

enum { WAIT_S = 30 }; /* how long one HTTP request waits for the result; then another request asks for it again */

/* A request to the service at --server. */
struct remote_run {
    const char *url; /* of the service; the first `url_size` bytes are without trailing slashes */
    size_t url_size;
    const char *path, *scope;
    struct sl_buf body, *answer;
    bool is_form; /* the body is a multipart form, else JSON */
    struct sl_arena arena;
    struct sl_error error;
    enum sl_code code;
};

/* Appends a part of the multipart form to its body. */
static void put_part(struct sl_buf *out, const struct remote_part *part)
{
    sl_buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n\r\n", boundary,
                  part->name, part->name);
    sl_buf_add(out, part->bytes.data, part->bytes.size);
    sl_buf_cstr(out, "\r\n");
}

/* Called for a response with an error status: makes an error of it that shows the status and the first 200 bytes of the body. */
static enum sl_code remote_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    (void)arg;
    enum sl_code code = status == 401 || status == 403 ? SL_PERMISSION_DENIED
                        : status >= 500                ? SL_DOWNLOAD_ERROR
                                                       : SL_NOT_FOUND;
    int size = body.size < 200 ? (int)body.size : 200;
    return sl_fail(error, code, "the service responded with %d: %.*s", status, size, body.data ? body.data : "");
}

/* Sends a GET, or if `is_post` a POST with the body, and stores the answer in run->answer. The user named the service, so its address may
 * be a reserved one (`trusted`). The answer is JSON to be taken as it is: not decompressed (`keep_wrapper`), not fetched in ranges
 * (`whole`). False, with run->code and run->error, if it fails. */
static bool remote_send(struct remote_run *run, const char *url, bool is_post)
{
    char type[80];
    snprintf(type, sizeof type, run->is_form ? "multipart/form-data; boundary=%s" : "application/json", boundary);
    struct fetch_header header = {SL_STR("Content-Type"), secret_make(sl_str(type))};
    struct fetch_request request = {.url = url,
                                    .headers = is_post ? &header : NULL,
                                    .header_count = is_post,
                                    .trusted = true,
                                    .source = "server",
                                    .max_size = UINT64_C(1) << 32,
                                    .attempts = 1,
                                    .keep_wrapper = true,
                                    .whole = true,
                                    .method = is_post ? "POST" : NULL,
                                    .refused = remote_refused};
    if (is_post)
        request.body = secret_make(sl_buf_view(&run->body));
    sl_buf_clear(run->answer);
    run->code = fetch_text(&request, run->answer, &run->error);
    return run->code == SL_OK;
}

/* True if the service has not finished and answered with "status":"pending"; `id` is then that of the request, by which to ask again. */
static bool is_pending(struct remote_run *run, struct sl_str *id)
{
    static const struct sl_field fields[] = {{.key = SL_STR("request_id"), .type = SL_FIELD_TEXT, .required = true},
                                             SL_FIELDS_END};
    static const struct sl_str pending = SL_STR("{\"status\":\"pending\"");
    struct sl_str text = sl_buf_view(run->answer);
    if (!sl_str_starts(text, pending))
        return false;
    struct sl_json j = sl_json(text, &run->arena, false);
    bool good = sl_json_read_object(&j, fields, id) && id->size;
    id->data = good ? sl_arena_strndup(&run->arena, id->data, id->size) : NULL;
    return id->data != NULL;
}

/* Runs as a fiber: sends the request, then asks for its result until the service has finished. Sets run->code. */
static void remote_work(void *arg)
{
    struct remote_run *run = arg;
    struct sl_buf url = {0};
    struct sl_str id;
    sl_buf_add(&url, run->url, run->url_size);
    sl_buf_printf(&url, "%s?timeout=%d&scope=", run->path, WAIT_S);
    fetch_encode(&url, sl_str(run->scope), false);
    sl_buf_u8(&url, 0);
    bool good = !url.failed && !run->body.failed;
    if (!good)
        run->code = sl_fail(&run->error, SL_BUSY, "out of memory");
    good = good && remote_send(run, (const char *)url.data, true);
    while (good && is_pending(run, &id)) {
        sl_buf_clear(&url);
        sl_buf_add(&url, run->url, run->url_size);
        sl_buf_cstr(&url, "/requests/");
        fetch_encode(&url, id, false);
        sl_buf_printf(&url, "?timeout=%d", WAIT_S);
        sl_buf_u8(&url, 0);
        good = !url.failed;
        if (!good)
            run->code = sl_fail(&run->error, SL_BUSY, "out of memory");
        good = good && remote_send(run, (const char *)url.data, false);
    }
    sl_buf_free(&url);
}

/* Runs remote_work for at most the time of --timeout. The locator is opened for its event loop and downloads only. Returns 0, or an exit
 * status after a report. */
static int remote_run(const struct options *o, struct remote_run *run)
{
    struct locator *locator = NULL;
    struct sl_error error = {0};
    if (locator_open(o, NULL, server_verbosity(o), &locator, &error) != SL_OK)
        return report_error(1, error.message, NULL);
    int status = symbolicate_in_time(o, locator, remote_work, run);
    locator_close(locator);
    if (status || run->code == SL_OK)
        return status;
    return report_error(run->code == SL_PERMISSION_DENIED ? STATUS_DENIED : 1,
                        "cannot symbolicate with the service at --server", run->error.message);
}

int remote_symbolicate(const struct options *o, const char *path, struct sl_str json, const struct remote_part *parts,
                       size_t part_count, struct sl_buf *answer)
{
    const char *url = option_value(o, "server", "");
    struct remote_run run = {.url = url, .url_size = strlen(url), .path = path, .answer = answer};
    size_t path_count;
    symbolicate_symbol_paths(o, &path_count);
    if (option_given(o, "symbols") || path_count)
        return options_wrong(o, "--symbols cannot be combined with --server: the service uses its own sources");
    if (!server_may_connect(o))
        return 2;
    if (!fetch_url_valid(url))
        return options_wrong(o, "--server: '%s' is not a URL", url);
    while (run.url_size && url[run.url_size - 1] == '/')
        run.url_size--;
    run.scope = option_value(o, "scope", "global");
    run.is_form = part_count > 0;
    sl_buf_str(&run.body, json);
    for (size_t i = 0; i < part_count; i++)
        put_part(&run.body, &parts[i]);
    if (run.is_form)
        sl_buf_printf(&run.body, "--%s--\r\n", boundary);
    int status = remote_run(o, &run);
    sl_buf_free(&run.body);
    sl_arena_free(&run.arena);
    return status;
}
