/* `symloom symbolicate`: text with stacks of any format, in a file or on standard input:
 *
 *     log_input.c ──▶ a part: some whole lines ──▶ api/local_text.h ──▶ output
 *
 * A part ends where the input pauses, or is MAX_PART bytes long, so a text of any size needs constant memory. */
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/local_text.h"
#include "cli/symbolicate/artifacts.h"
#include "cli/locator/locator.h"
#include "js/names.h"

/* MAX_PART: bytes of lines that are symbolicated at once. PAUSE_MS: how long the frames of a script at the end wait for more lines.
 * MAX_NAMED: scripts without a source map that the report lists. */
enum { MAX_PART = 1024 * 1024, BLOCK = 64 * 1024, PAUSE_MS = 100, MAX_NAMED = 1000 };

struct text_run {
    const struct options *o;
    const struct sentry_project *project;
    struct search_inputs inputs; /* opened for the first part that is looked up */
    bool is_open;
    struct sl_text reader;     /* reads the lines; knows the modules that the text has listed so far */
    struct sl_map known_names; /* modules whose files on this machine were looked for, by name; the value is not used */
    struct missing_report missing, missing_scripts, missing_traces;
    struct local_artifacts *scripts;    /* NULL: no scripts are given */
    struct local_request local;         /* how frames of scripts and of the JVM are looked up */
    struct sl_map warned_scripts;       /* scripts warned of by warn_of_scopes(), by name; the value is not used */
    struct text_trace *trace;           /* NULL: no mapping is given */
    struct log_input *input;            /* NULL: the whole text is in memory */
    struct output_file *file;           /* NULL: standard output */
    struct sl_buf held;                 /* text that was read but not written yet */
    size_t frame_count, without_module; /* native frames, and those of them whose module is unknown */
    bool failed;                        /* the output cannot be written any more */
    struct local_text part;             /* the lines that are symbolicated now, and how */
    struct sl_buf answer;               /* `part` with names, or JSON */
    enum sl_code code;
    struct sl_error error;
};

/* ---- callbacks of local_text_symbolicate() ---- */

/* Adds the file at the module's path on this machine, and its debug files, to the files that are searched. Only once for each name, since
 * every part of a growing log, often a few lines, asks for all modules that the log has listed. */
static void add_local_files(struct text_run *t, struct sl_str name)
{
    struct sl_arena arena = {0};
    struct local_files files = {.arena = &arena};
    if (sl_map_get(&t->known_names, name))
        return;
    if (local_files_add(&files, name) && sl_map_put(&t->known_names, name, t)) /* t: any value but NULL */
        for (size_t i = 0; i < files.count; i++)
            locator_add_file_later(t->inputs.locator, files.items[i]);
    sl_arena_free(&arena);
}

/* Finds the ids of a module of which the text has only the name (local_text.find_id): in a file of the symbol paths or, with
 * --local-debug-info, in the file at its path on this machine. False if there is none. */
static bool find_id(void *arg, struct sl_str name, struct object_id *id)
{
    struct text_run *t = arg;
    if (option_given(t->o, "local-debug-info"))
        add_local_files(t, name);
    return locator_find_named(t->inputs.locator, name, id);
}

/* Counts a module on the stacks in the report of missing symbols, once (local_text.on_module). */
static void on_module(void *arg, const struct object_id *id, bool found)
{
    struct text_run *t = arg;
    struct sl_str name = path_file_name(id->code_file.size ? id->code_file : id->debug_file);
    if (found ? missing_found(&t->missing, name, id->code_id) : missing_add(&t->missing, name, id->code_id))
        missing_count(&t->missing, !found, 1);
}

/* True for scripts that are part of Node.js, Deno or Bun: they have no source map, so a frame of them is not reported as missing one. */
static bool is_of_engine(struct sl_str url)
{
    return sl_str_starts(url, SL_STR("node:")) || sl_str_starts(url, SL_STR("internal/")) ||
           sl_str_starts(url, SL_STR("deno:")) || sl_str_starts(url, SL_STR("ext:")) ||
           sl_str_starts(url, SL_STR("bun:"));
}

/* Warns of a source map with malformed `scopes`, once for each script; `name` is the script's. */
static void warn_of_scopes(struct text_run *t, const struct local_script_frame *frame, struct sl_str name)
{
    bool is_new;
    if (!frame->bad_scopes || sl_map_get(&t->warned_scripts, name))
        return;
    const char *key = sl_arena_strndup(&t->missing_scripts.arena, name.data, name.size);
    void **known = key ? sl_map_find_or_add(&t->warned_scripts, (struct sl_str){key, name.size}, &is_new) : NULL;
    if (known)
        *known = t; /* any value but NULL, which sl_map_get() returns for unknown names */
    print_note("warning: " SL_STR_FMT
               ": item %u of `scopes` in the source map is malformed; function names do not use it\n",
               SL_STR_ARG(name), frame->bad_scopes);
}

/* Counts a frame of a script in the report of missing source maps, with the reason if it was not mapped (local_text.on_script). */
static void on_script(void *arg, const struct local_script_frame *frame)
{
    struct text_run *t = arg;
    struct missing_report *missing = &t->missing_scripts;
    bool is_mapped = frame->outcome == LOCAL_SCRIPT_MAPPED;
    /* the report names scripts by their file, without host, directory and query */
    struct sl_str name = path_file_name(sl_js_strip_hostname(sl_js_without_parameters(frame->url)));
    const char *query = name.size ? memchr(name.data, '?', name.size) : NULL;
    name.size = query ? (size_t)(query - name.data) : name.size;
    warn_of_scopes(t, frame, name);
    if (!is_mapped && is_of_engine(frame->url)) /* such scripts have no source maps */
        return;
    missing_count(missing, !is_mapped, 1); /* one frame in all, missing or not */
    if (frame->outcome == LOCAL_SCRIPT_NOT_COVERED)
        missing_failure(missing, name, SL_STR("its source map does not cover some positions"));
    if (frame->outcome == LOCAL_SCRIPT_UNMAPPED && frame->problem.data)
        missing_failure(missing, name, frame->problem);
    if (frame->outcome == LOCAL_SCRIPT_UNMAPPED && missing->things.count < MAX_NAMED)
        missing_add(missing, name, (struct sl_str){NULL, 0});
}

/* Symbolicates the lines in t->part; the result is `answer`, `code` and `error`. Runs in the fiber of symbolicate_in_time(). */
static void look_up(void *arg)
{
    struct text_run *t = arg;
    t->part.sources = t->inputs.sources;
    t->part.source_count = t->inputs.source_count;
    t->part.scope = t->inputs.scope;
    t->local.sources = t->inputs.sources;
    t->local.source_count = t->inputs.source_count;
    t->code = local_text_symbolicate(&t->part, t->inputs.config, &t->answer, &t->error);
}

/* Lets a running service (--server) symbolicate the lines in t->part: sets t->answer to the text of its answer, or with wants_json to the
 * whole answer. Returns an exit status. */
static int ask_server(struct text_run *t)
{
    static const struct sl_field fields[] = {{.key = SL_STR("text"), .type = SL_FIELD_TEXT, .required = true},
                                             SL_FIELDS_END};
    const struct remote_part part = {"text", {(const uint8_t *)t->part.text.data, t->part.text.size}};
    struct sl_arena arena = {0};
    struct sl_buf json = {0};
    struct sl_str text;
    int status = remote_symbolicate(t->o, "/symbolicate-text", (struct sl_str){NULL, 0}, &part, 1, &json);
    struct sl_json j = sl_json(sl_buf_view(&json), &arena, false);
    if (!status && !t->part.wants_json && !sl_json_read_object(&j, fields, &text))
        status = report_error(1, option_value(t->o, "server", ""), "its answer to /symbolicate-text has no `text`");
    else if (!status && !t->part.wants_json)
        sl_buf_str(&t->answer, text);
    else if (!status)
        sl_buf_str(&t->answer, sl_buf_view(&json));
    sl_buf_free(&json);
    sl_arena_free(&arena);
    return status;
}

/* Symbolicates the lines in t->part in this process; the result is t->answer. The first call opens the symbol sources. Returns an exit
 * status. */
static int find_here(struct text_run *t)
{
    int status = 0;
    if (!t->is_open && (status = search_inputs_open(t->o, t->project, NULL, &t->inputs)))
        return status;
    /* an empty source, to which add_local_files() adds files when the text names modules */
    if (!t->is_open && option_given(t->o, "local-debug-info") && !locator_add_files(t->inputs.locator, NULL, 0))
        return report_no_memory();
    t->inputs.sources = locator_sources(t->inputs.locator, &t->inputs.source_count); /* with that source */
    t->is_open = true;
    status = symbolicate_in_time(t->o, t->inputs.locator, look_up, t);
    return status || t->code == SL_OK ? status : report_error(1, t->error.message, NULL);
}

/* Symbolicates the lines in t->part by the service of --server if that is given, else in this process; the result is t->answer. Frames in
 * the service's text that still lack names are then looked up in this process, if scripts or JVM mappings are given. Returns an exit
 * status. */
static int find_names(struct text_run *t)
{
    sl_buf_free(&t->answer);
    if (!option_given(t->o, "server"))
        return find_here(t);
    int status = ask_server(t);
    if (status || t->part.wants_json || !(t->scripts || t->trace))
        return status;
    struct sl_buf answered = t->answer;
    t->answer = (struct sl_buf){0};
    t->part.text = sl_buf_view(&answered);
    status = find_here(t);
    sl_buf_free(&answered);
    return status;
}

/* True if the text has a frame to look up, or lists modules: then it is symbolicated, which also adds the modules to t->reader; other text
 * is copied. Uses a reader of its own, so that t->reader does not read the lines twice. */
static bool has_frames(const struct text_run *t, struct sl_str text)
{
    struct sl_text reader;
    struct sl_text_piece piece;
    struct sl_str line;
    bool found = false;
    sl_text_begin(&reader);
    while (!found && sl_text_next_line(&text, &line)) {
        while (sl_text_next(&reader, &line, &piece) && !found)
            /* SL_TEXT_MADE: Symbolizer Markup that is replaced; scripts count only if local ones are given */
            found = (piece.kind == SL_TEXT_NATIVE && !piece.native.is_named) || piece.kind == SL_TEXT_MADE ||
                    (piece.kind == SL_TEXT_SCRIPT && t->part.files);
        found = found || reader.module_count;
    }
    sl_text_end(&reader);
    return found;
}

/* ---- parts ---- */

/* Writes to the output, in the encoding of the input. False when out of memory; a failed write sets t->failed instead. */
static bool text_put(struct text_run *t, struct sl_str text)
{
    bool good = true;
    if (t->input)
        text = log_input_encode(t->input, text, t->file != NULL, &good);
    if (good && text.size)
        t->failed |= !(t->file ? output_file_write(t->file, text) : output_write(text));
    return good;
}

/* Symbolicates and writes whole lines; lines without frames are copied. is_last: no more text follows. Returns an exit status. */
static int put_part(struct text_run *t, struct sl_str lines, bool is_last)
{
    struct sl_str text = lines;
    int status = 0;
    /* the text lists the modules of many programs, more than a reader can store: forget all, since only the latest matter */
    if (sl_text_is_nearly_full(&t->reader) && !t->reader.in_module_line) {
        sl_map_free(&t->known_names);
        sl_text_end(&t->reader);
        sl_text_begin(&t->reader);
    }
    /* after a list of modules every part is read, as the list may go on in it; with JVM mappings, too, as has_frames() does not look for
     * JVM frames */
    if (t->trace || t->reader.in_module_line || t->reader.module_count || has_frames(t, lines)) {
        t->part.text = lines;
        t->part.is_part = !is_last;
        status = find_names(t);
        text = sl_buf_view(&t->answer);
    }
    return status ? status : text_put(t, text) ? 0 : report_no_memory();
}

/* Returns the size of the whole lines before the JavaScript frames that the text ends with. These frames have to wait for the next one: the
 * name of a function can come from the frame of its caller. */
static size_t settled_size(struct sl_str text)
{
    struct sl_js_stack_frame frame;
    const char *newline = text.size ? memrchr(text.data, '\n', text.size) : NULL;
    while (newline) {
        size_t end = (size_t)(newline + 1 - text.data);
        newline = memrchr(text.data, '\n', end - 1);
        size_t begin = newline ? (size_t)(newline + 1 - text.data) : 0;
        if (!sl_js_stack_frame((struct sl_str){text.data + begin, end - begin}, &frame))
            return end;
    }
    return 0;
}

/* Returns how much of t->held, the text that was read but not written yet, can be symbolicated now: whole lines whose result later input
 * does not change. 0: read more first, because it is needed, or because it has arrived (log_input_waits) and larger parts are faster.
 * `end`: no more input comes, so all of it. */
static size_t complete_size(const struct text_run *t, bool end)
{
    struct sl_str text = sl_buf_view(&t->held);
    const char *newline = memrchr(text.data, '\n', text.size);
    size_t lines = newline ? (size_t)(newline + 1 - text.data) : 0;
    bool full = text.size >= MAX_PART;
    if (end || (!lines && full)) /* a line that is longer than a part is cut */
        return text.size;
    if (!full && log_input_waits(t->input, 0))
        return 0;
    size_t settled = t->part.files ? settled_size(text) : lines;
    /* an Apple report as JSON is read as a whole, since its images may come last; one that is larger than a part is cut */
    size_t whole = sl_text_complete_size((struct sl_str){text.data, lines});
    if (whole < lines && (whole || !full))
        return whole;
    if (settled || (!full && log_input_waits(t->input, PAUSE_MS)))
        return settled;
    return lines; /* all lines, though they end with frames of a script: no more input came for PAUSE_MS, or the part is full */
}

/* Symbolicates the text of `path` (`-`: standard input) while it is read. Returns an exit status. */
static int stream(struct text_run *t, const char *path)
{
    struct log_input input;
    const char *problem = NULL;
    int status = 0;
    if (!log_input_open(&input, path))
        return report_error(1, path, strerror(errno));
    t->input = &input;
    for (bool end = false; !status && !end && !t->failed;) {
        if (!sl_buf_reserve(&t->held, BLOCK)) {
            status = report_no_memory();
            break;
        }
        size_t n = log_input_read(&input, t->held.data + t->held.size, BLOCK, &problem);
        t->held.size += n;
        end = n == 0;
        size_t size = t->held.size ? complete_size(t, end) : 0;
        if (size || end)
            status = put_part(t, (struct sl_str){(const char *)t->held.data, size}, end);
        memmove(t->held.data, t->held.data + size, t->held.size - size);
        t->held.size -= size;
        if (size && !t->file && !end) /* the reader of a growing log sees the lines at once */
            t->failed |= !output_flush();
    }
    t->input = NULL;
    log_input_end(&input);
    return !status && problem ? report_error(1, path, problem) : status;
}

/* ---- other formats than text ---- */

/* Prints the answer for the whole text as JSON, or its native stacks in a format like `full`. Returns an exit status. */
static int print_answer(struct text_run *t, struct sl_str text)
{
    const struct answer_format *format = answer_format_choose(t->o, SORT_NATIVE);
    if (!format)
        return 2;
    t->part.text = text;
    t->part.wants_json = true;
    t->part.files = &t->local; /* also without scripts: JSON answers look up JVM frames with its options */
    t->part.candidates = format->needs_candidates || option_given(t->o, "candidates");
    t->part.on_module = NULL; /* answer_print_notes() reports what is missing */
    t->part.on_script = NULL;
    int status = find_names(t);
    if (t->is_open) /* closed before the answer is printed: this adds the searched locations to the report */
        search_inputs_close(&t->inputs, &t->missing);
    t->is_open = false;
    if (!status)
        status = answer_print_notes(t->o, format, SORT_NATIVE, NULL, &t->missing, &t->answer);
    return status;
}

/* Reads all of a text into t->held. Returns an exit status. */
static int read_all(struct text_run *t, const char *path)
{
    struct log_input input;
    const char *problem = NULL;
    if (!log_input_open(&input, path))
        return report_error(1, path, strerror(errno));
    for (size_t n = 1; n && sl_buf_reserve(&t->held, BLOCK);) {
        n = log_input_read(&input, t->held.data + t->held.size, BLOCK, &problem);
        t->held.size += n;
    }
    log_input_end(&input);
    if (t->held.failed)
        return report_no_memory();
    return problem ? report_error(1, path, problem) : 0;
}

/* ---- the command ---- */

static const struct missing_words missing_maps = {
    .wanted = "source map",
    .unit = "frames",
    .counts_found = true,
    .advice = "pass --symbols with the scripts and source maps of the same build",
};

/* Sets in t->part and t->local how frames of scripts and of the JVM are looked up. Scripts are never downloaded from the web. */
static void set_helpers(struct text_run *t)
{
    t->local.no_scraping = true;
    t->local.no_source_context = option_given(t->o, "no-source-context");
    if (t->scripts) {
        t->local.look_up = local_artifacts_find;
        t->local.look_up_arg = t->scripts;
        t->local.only_script = local_artifacts_only_script(t->scripts);
        t->part.files = &t->local;
    }
    if (t->trace) {
        t->part.trace = text_trace_reader(t->trace);
        t->local.mappings = text_trace_mappings(t->trace, &t->local.mapping_count);
    }
}

/* Opens the helpers of the look-up: scripts below --symbols and SYMBOLS, and the JVM mappings of --mapping. Returns an exit status. */
static int open_helpers(struct text_run *t)
{
    size_t count = 0, symbol_count, mapping_count, more;
    const char *const *symbols = option_values(t->o, "symbols", &symbol_count);
    const char *const *arguments = symbolicate_symbol_paths(t->o, &more);
    const char *const *mappings = option_values(t->o, "mapping", &mapping_count);
    const char **all = calloc(symbol_count + more + 1, sizeof *all); /* + 1: for no paths, calloc() could return NULL */
    int status = all ? 0 : report_no_memory();
    for (size_t i = 0; !status && i < symbol_count + more; i++) {
        all[count] = source_path_without_layout(i < symbol_count ? symbols[i] : arguments[i - symbol_count]);
        /* the next path overwrites one that does not exist, such as the URL of a symbol server */
        count += access(all[count], F_OK) == 0;
    }
    for (size_t i = 0; i < count; i++)
        missing_add_location(&t->missing_scripts, sl_str(all[i]));
    if (!status && count && !(t->scripts = local_artifacts_new(all, count)))
        status = report_no_memory();
    if (!status && mapping_count)
        t->trace = text_trace_open(mappings, mapping_count, &t->missing_traces, &status);
    free(all);
    if (!status)
        set_helpers(t);
    return status;
}

/* Symbolicates the text `whole`, or if that is NULL the file `path`, and writes it in the format of the options. Formats other than text
 * need all of it in memory. Returns an exit status. */
static int run_text(struct text_run *t, const char *path, const struct sl_str *whole)
{
    struct output_file file;
    struct sl_error error = {0};
    const char *output = option_value(t->o, "output", NULL);
    if (strcmp(symbolicate_format(t->o, "text"), "text") != 0) {
        int status = whole ? 0 : read_all(t, path);
        if (!status)
            status = open_helpers(t);
        return status ? status : print_answer(t, whole ? *whole : sl_buf_view(&t->held));
    }
    int status = open_helpers(t);
    if (!status && output && strcmp(output, "-") != 0) {
        if (output_file_open(&file, output, &error) != SL_OK)
            return report_error(1, output, error.message);
        t->file = &file;
    }
    if (!status)
        status = whole ? put_part(t, *whole, true) : stream(t, path);
    /* after an error, output_file_close() discards what was written */
    if (t->file && output_file_close(&file, status == 0, &error) != SL_OK && !status)
        status = report_error(1, output, error.message);
    return status;
}

/* Prints what was missing, unless the command has failed. Returns the exit status: 3 with --fail-on-missing if something is missing. */
static int report_missing(struct text_run *t, struct missing_report *report, int status)
{
    if (!status)
        missing_print(report, t->o);
    return missing_status(report, t->o, status);
}

/* Warns of native frames whose module is unknown, or of a text without frames to look up: it was written without any change. */
static void explain(const struct text_run *t)
{
    if (option_given(t->o, "quiet") || option_given(t->o, "server") || t->part.wants_json)
        return;
    if (t->without_module)
        print_note("warning: the modules of %zu of %zu native frames are unknown: their addresses are absolute, and "
                   "the text does not "
                   "list the modules; add the lines of /proc/PID/maps to it\n",
                   t->without_module, t->frame_count);
    else if (!t->frame_count && !t->scripts && !t->trace)
        print_note(
            "warning: no stack of native code was found; JavaScript stacks need --symbols, Java stacks --mapping\n");
}

int symbolicate_text(const struct options *o, const struct sentry_project *project, const char *path,
                     const struct sl_str *whole, enum sl_text_format only)
{
    struct text_run t = {.o = o, .project = project};
    sl_text_begin(&t.reader);
    missing_init(&t.missing, &missing_symbols);
    missing_init(&t.missing_scripts, &missing_maps);
    missing_init(&t.missing_traces, &missing_mappings);
    t.part = (struct local_text){.frame_count = &t.frame_count,
                                 .without_module = &t.without_module,
                                 .reader = &t.reader,
                                 .find_id = find_id,
                                 .find_id_arg = &t,
                                 .on_module = on_module,
                                 .on_module_arg = &t,
                                 .on_script = on_script,
                                 .on_script_arg = &t,
                                 .only = only};
    int status = run_text(&t, path, whole);
    if (t.is_open)
        search_inputs_close(&t.inputs, &t.missing);
    text_trace_close(t.trace, path);
    local_artifacts_free(t.scripts);
    sl_map_free(&t.warned_scripts);
    if (!t.part.wants_json) /* else answer_print_notes() has reported them */
        status = report_missing(&t, &t.missing, status);
    if (!status)
        explain(&t);
    status = report_missing(&t, &t.missing_scripts, status);
    status = report_missing(&t, &t.missing_traces, status);
    missing_free(&t.missing);
    missing_free(&t.missing_scripts);
    missing_free(&t.missing_traces);
    sl_buf_free(&t.held);
    sl_buf_free(&t.answer);
    sl_map_free(&t.known_names);
    sl_text_end(&t.reader);
    return status;
}
