/* `symloom symbolicate`: options, detection of the input's kind, and dispatch. */
#include "cli/progress.h"
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apple/samples.h"
#include "cli/locator/locator.h"
#include "cli/symbolicate/sentry.h"

static const struct option_spec specs[] = {
    {"type", 0, OPTION_VALUE, false, "minidump|core|apple|trace|jsstack|text|request|event|mozilla|profile|addresses",
     "Treat the input as this type (default: detect it)"},
    {"format", 'f', OPTION_VALUE, false, "json|compact|pretty|full|markdown|stackwalk|machine|minidump-json|text",
     "Choose the output format (default: compact on a terminal, else json; text for traces)"},
    {"json", 0, OPTION_FLAG, false, NULL, "Same as --format json"},
    {"output", 0, OPTION_VALUE, false, "FILE", "Write to FILE instead of standard output"},
    {"indent", 0, OPTION_FLAG, false, NULL, "Indent JSON"},
    LOCATOR_OPTIONS,
    SENTRY_OPTIONS,
    {"config", 'c', OPTION_VALUE, false, "FILE", "Read more symbol sources from this configuration file"},
    {"candidates", 'd', OPTION_FLAG, false, NULL, "List every location that was searched"},
    {"trim", 0, OPTION_VALUE, false, "OUT",
     "Only write a core file with the stacks and ids of this one, without other memory"},
    {"rewrite-first-module", 0, OPTION_VALUE, false, "JSON",
     "Rename the first module: [{\"from\": REGEX, \"to\": TEXT}]"},
    {"crashed-only", 0, OPTION_FLAG, false, NULL, "Print only the crashed thread (default for compact and pretty)"},
    {"all-threads", 0, OPTION_FLAG, false, NULL, "Print all threads (default for full)"},
    {"thread", 0, OPTION_VALUE, false, "ID", "Print the thread with this id"},
    {"thread-index", 0, OPTION_VALUE, false, "N", "Print the thread at this index (first: 0)"},
    {"microdump", 0, OPTION_VALUE, false, "N", "Read the Nth microdump of the log (default: first complete)"},
    {"context", 0, OPTION_VALUE, false, "N", "Show N source lines around each frame (format full)"},
    {"brief", 0, OPTION_FLAG, false, NULL, "Print only the frames of the crashed thread"},
    {"stack-contents", 0, OPTION_FLAG, false, NULL, "Also print the stack memory of each frame"},
    {"stack-pointers", 0, OPTION_FLAG, false, NULL, "Print every word of the stacks instead of frames"},
    {"no-trim", 0, OPTION_FLAG, false, NULL, "Do not shorten long names to fit the terminal"},
    {"no-source-context", 0, OPTION_FLAG, false, NULL, "Do not include source lines"},
    {"extract-variables", 0, OPTION_FLAG, false, NULL,
     "Add `vars` to native frames: variables and types, from DWARF (JSON)"},
    {"fail-on-missing", 0, OPTION_FLAG, false, NULL, "Exit with 3 if a debug file, mapping or source map is missing"},
    {"server", 's', OPTION_VALUE, false, "URL", "Let a running service do the work"},
    {"scope", 0, OPTION_VALUE, false, "NAME", "Use this cache scope (default: Sentry project, else global)"},
    {"timeout", 0, OPTION_VALUE, false, "DURATION", "Give up after this time (default: 15m)"},
    {"local-debug-info", 0, OPTION_FLAG, false, NULL, "Also use files of this machine that modules name, if ids match"},
    {"module", 0, OPTION_VALUE, true, "[ARCH:]FILE@BASE[+SIZE]",
     "Use this module, loaded at BASE (0: addresses count from its start)"},
    {"maps", 0, OPTION_VALUE, false, "FILE", "Read loaded modules from this file (format of /proc/PID/maps)"},
    {"pid", 0, OPTION_VALUE, false, "PID", "Use the modules of this running process"},
    {"return-addresses", 0, OPTION_FLAG, false, NULL, "Treat all addresses but the first as return addresses"},
    {"mapping", 0, OPTION_VALUE, true, "FILE", "Use this ProGuard or R8 mapping (repeatable; first match wins)"},
    {"platform", 0, OPTION_VALUE, false, "NAME", "Override the platform of the event"},
    {"release", 0, OPTION_VALUE, false, "NAME", "Override the release of the event"},
    {"dist", 0, OPTION_VALUE, false, "NAME", "Override the distribution of the event"},
    {"no-scrape", 0, OPTION_FLAG, false, NULL, "Do not download scripts and source maps from web servers"},
    {"use-request-sources", 0, OPTION_FLAG, false, NULL, "Also search the sources that the request lists"},
    {"verbose", 'v', OPTION_FLAG, true, NULL, "Also list modules not on the stack (format full); log more"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* Symbolicates the JVM stack traces of a text with the mappings of --mapping; other stacks are copied. Returns an exit status. */
static int run_trace(const struct options *o, size_t mapping_count)
{
    const struct sentry_project none = {.online = false};
    const char *format = symbolicate_format(o, "text");
    if (strcmp(format, "text") != 0)
        return options_wrong(o, "--format %s is not available for JVM stack traces (only text)", format);
    if (!options_arguments(o, 1))
        return 2;
    if (!mapping_count)
        return options_wrong(o, "a JVM stack trace needs its mapping: pass --mapping FILE");
    struct progress progress;
    const char *path = o->argument_count ? o->arguments[0] : "-";
    progress_begin(&progress, o, "symbolicating");
    if (option_given(o, "output") || !isatty(STDOUT_FILENO)) /* else the output itself shows the progress */
        progress_file(&progress, path);
    int status = symbolicate_text(o, &none, path, NULL, SL_TEXT_JVM);
    progress_end(&progress);
    return status;
}

/* True if --symbols or SYMBOLS arguments (those after the input) are given: JavaScript stacks are looked up only there. */
static bool has_symbols(const struct options *o)
{
    return option_given(o, "symbols") || o->argument_count > 1;
}

/* Symbolicates JavaScript stacks with the scripts below --symbols and SYMBOLS. `stack` is the text; NULL: read the input file. Looks up
 * only frames of the format `only`; SL_TEXT_PLAIN: of all formats. Returns an exit status. */
static int run_scripts(const struct options *o, const struct sentry_project *project, const struct sl_str *stack,
                       enum sl_text_format only)
{
    const char *format = symbolicate_format(o, "text");
    if (strcmp(format, "text") != 0)
        return options_wrong(o, "--format %s is not available for JavaScript stack traces (only text)", format);
    if (!has_symbols(o))
        return options_wrong(
            o, "a JavaScript stack trace needs its scripts and source maps: pass their directory with --symbols");
    return symbolicate_text(o, project, o->argument_count ? o->arguments[0] : "-", stack, only);
}

/* True if a file, compressed or not, begins like JSON or a crash file: then --mapping does not make it a log. Standard input is never
 * examined. Does not look for a line of dashes, with which both logs and Apple's reports begin. */
static bool is_json_or_crash_file(const char *path)
{
    static const char *const begins[] = {"{", "MDMP", "PMDM", "Incident Identifier:"};
    char begin[64];
    const char *problem = NULL;
    struct stat st;
    bool is_file = stat(path, &st) == 0 && S_ISREG(st.st_mode); /* opening a FIFO would take its data */
    struct log_input input = {.fd = -1};
    bool opened = is_file && strcmp(path, "-") != 0 && log_input_open(&input, path);
    size_t size = opened ? log_input_read(&input, begin, sizeof begin, &problem) : 0, at = 0;
    log_input_end(&input);
    at = size > 3 && memcmp(begin, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* a UTF-8 byte order mark */
    while (at < size && sl_is_blank(begin[at]))
        at++;
    bool found = false;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        found = found || (size - at >= strlen(begins[i]) && memcmp(begin + at, begins[i], strlen(begins[i])) == 0);
    return found;
}

/* Symbolicates a request or event; returns an exit status. */
static int run_request(const struct options *o, const struct sentry_project *project, struct sl_str text,
                       enum input_kind kind)
{
    struct sl_arena arena = {0};
    struct local_files local = {.arena = &arena};
    int status = symbolicate_request(o, project, &local, text, kind);
    sl_arena_free(&arena);
    return status;
}

static int no_file(const struct options *o)
{
    return options_wrong(o, "no file given");
}

/* Reports an input that cannot be symbolicated: advice if another option reads it, or what it looks like, or that it is unknown. Returns
 * STATUS_NOTHING. */
static int unknown_input(struct sl_bytes bytes)
{
    static const char read[] =
        "supported: minidumps, ELF core files, Breakpad microdumps, Apple crash reports (text and .ips), MetricKit "
        "diagnostics, reports of `sample`, spindump and hangs, stackshots, Sentry events, API requests, "
        "Firefox profiles, texts with addresses (sanitizer reports, backtrace_symbols, Android tombstones, hs_err, "
        "systemd, gdb, eu-stack, Rust, WinDbg, LLVM's markup), JavaScript stack traces; JVM stack traces with "
        "--mapping";
    const char *kind = input_unread_kind(bytes), *advice = input_advice(bytes);
    struct sl_error error;
    if (!kind && advice)
        return report_error(STATUS_NOTHING, advice, NULL);
    if (!kind && (kind = input_named_kind(bytes))) {
        sl_fail(&error, SL_UNSUPPORTED, "this looks like %s, which is symbolicated already", kind);
        return report_error(STATUS_NOTHING, error.message, NULL);
    }
    if (!kind)
        return report_error(STATUS_NOTHING, "unknown input format", read);
    sl_fail(&error, SL_UNSUPPORTED, "unsupported input: this looks like %s", kind);
    return report_error(STATUS_NOTHING, error.message, read);
}

/* True with --format text: the input, whatever its kind, is copied with names. Without --format it depends on the kind. */
static bool wants_text(const struct options *o)
{
    return strcmp(symbolicate_format(o, ""), "text") == 0 && option_given(o, "format");
}

/* Symbolicates a text with stacks of any format. A regular file is read again, streamed, so that its size is not limited by memory. Returns
 * an exit status. */
static int run_text(const struct options *o, const struct sentry_project *project, const struct sl_str *text)
{
    const char *path = o->argument_count ? o->arguments[0] : "-";
    struct stat st;
    bool is_file = strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    return symbolicate_text(o, project, path, is_file ? NULL : text, SL_TEXT_PLAIN);
}

/* True if an Apple report is a text with the frames of a crash, neither JSON (.ips) nor a sampling report. */
static bool is_text_report(struct sl_str text)
{
    struct sl_str trimmed = sl_str_trimmed(text);
    return !sl_str_starts(trimmed, SL_STR("{")) && !sl_samples_is_text(text);
}

/* Symbolicates an input of a known kind; one of unknown kind only as text, with --format text. Returns an exit status. */
static int run_kind(const struct options *o, const struct sentry_project *project, enum input_kind kind,
                    struct sl_bytes bytes)
{
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    if (option_given(o, "trim") && kind != INPUT_CORE)
        return options_wrong(o, "--trim: the file is not an ELF core file");
    switch (kind) {
    case INPUT_MINIDUMP: return symbolicate_minidump(o, project, bytes);
    case INPUT_CORE: return symbolicate_core(o, project, bytes);
    case INPUT_APPLE: /* a crash report as text has frames like those of a log */
        return wants_text(o) && is_text_report(text) ? run_text(o, project, &text)
                                                     : symbolicate_report(o, project, bytes);
    case INPUT_JSSTACK: /* run_scripts() reports missing symbols; --format text copies the stack without them */
        return has_symbols(o) || !wants_text(o) ? run_scripts(o, project, &text, SL_TEXT_PLAIN)
                                                : run_text(o, project, &text);
    case INPUT_TEXT: return run_text(o, project, &text);
    case INPUT_REQUEST:
    case INPUT_EVENT:
    case INPUT_MOZILLA: return run_request(o, project, text, kind);
    case INPUT_PROFILE: return symbolicate_profile(o, project, text);
    default: /* INPUT_UNKNOWN */
        if (bytes.size && wants_text(o))
            return run_text(o, project, &text);
        return bytes.size || o->argument_count ? unknown_input(bytes)
                                               : no_file(o); /* an empty standard input is no file */
    }
}

/* True if the argument is an event id: hexadecimal digits, maybe with hyphens as in a UUID, and not the name of a file. */
static bool is_event_id(const char *path)
{
    return access(path, F_OK) != 0 && *path && strspn(path, "0123456789abcdefABCDEF-") == strlen(path) &&
           strcmp(path, "-") != 0;
}

/* Reports that the input cannot be opened, with the reason in errno. The words are those of Sentry's symbolicli, also for files that are no
 * events, as scripts may look for them. Returns an exit status. */
static int cannot_open(const char *path)
{
    struct sl_error error;
    sl_fail(&error, SL_NOT_FOUND, "Could not open event file at \"%.400s\"", path);
    return report_error(1, error.message, strerror(errno));
}

/* Maps the input file, or if is_id, fetches the event with the id `path` from Sentry. Returns an exit status, after a report unless 0. */
static int map_input(const struct options *o, const struct sentry_project *project, const char *path, bool is_id,
                     struct sl_mapping *mapping)
{
    struct sl_error error = {0};
    if (is_id && project->online)
        return sentry_event(o, project, path, mapping);
    if (is_id)
        return report_error(1, "Event not found in local file system and symbolicli is in offline mode. Stopping.",
                            NULL);
    if (strcmp(path, "-") != 0 && access(path, R_OK) != 0)
        return cannot_open(path);
    if (path_is_directory(path)) {
        errno = EISDIR;
        return cannot_open(path);
    }
    enum sl_code code = symbolicate_map_input(path, mapping, &error);
    return code == SL_OK ? 0 : report_file_error(path, code, &error);
}

/* Detects the kind of an input. Unless it is JSON, only its first MAX_DETECTED bytes are read, so that a large log is not read twice. */
static enum input_kind detect(struct sl_bytes bytes)
{
    enum { MAX_DETECTED = 64 << 20 };
    size_t at = bytes.size > 3 && memcmp(bytes.data, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* a UTF-8 byte order mark */
    while (at < bytes.size && sl_is_blank((char)bytes.data[at]))
        at++;
    bool is_json = at < bytes.size && bytes.data[at] == '{';
    return input_kind_detect(is_json ? bytes : sl_bytes_part(bytes, 0, MAX_DETECTED));
}

/* ---- standard input ---- */

/* Copies the first bytes of a pipe to `head`, once there are some, and leaves them in the pipe. Returns their number; 0: none, or an error.
 * `*is_all` tells whether the writer has closed the pipe; it is not set if the copy's pipe cannot be created. */
static size_t peek_pipe(int fd, uint8_t *head, size_t capacity, bool *is_all)
{
    enum { WAIT_MS = 100 };
    int copy[2];
    if (pipe2(copy, O_CLOEXEC) != 0)
        return 0;
    ssize_t teed = tee(fd, copy[1], capacity, 0), size = 0; /* tee() does not consume what it copies */
    if (teed > 0)
        size = read(copy[0], head, (size_t)teed < capacity ? (size_t)teed : capacity);
    close(copy[0]);
    close(copy[1]);
    /* a writer that has written all usually closes the pipe at once */
    struct pollfd closed = {.fd = fd}; /* no events: poll() reports POLLHUP without being asked */
    *is_all = teed <= 0 || (poll(&closed, 1, WAIT_MS) > 0 && (closed.revents & POLLHUP));
    return size > 0 ? (size_t)size : 0;
}

/* True if the input is a log on standard input, a pipe, whose writer has not closed it: the log is still growing, or too long for the
 * pipe's buffer. Such a log is symbolicated while it is read. All other inputs are read to their end first. */
static bool is_streamed(const char *path)
{
    static uint8_t head[1 << 16];
    struct stat st;
    bool is_all;
    if (strcmp(path, "-") != 0 || fstat(STDIN_FILENO, &st) != 0 || !S_ISFIFO(st.st_mode))
        return false;
    size_t size = peek_pipe(STDIN_FILENO, head, sizeof head, &is_all), at = 0;
    /* if `size` is 0, is_all may be unset; an input with a NUL byte is no text */
    if (!size || is_all || memchr(head, 0, size))
        return false;
    /* beginnings of JSON, crash files, Apple reports, gzip, zstd, and byte order marks: such an input is read to its end first */
    static const char *const begins[] = {
        "{",    "MDMP", "PMDM", "Incident Identifier:", "Process:", "-----", "\x1f\x8b", "\x28\xb5\x2f\xfd",
        "\xef", "\xff", "\xfe"};
    while (at < size && sl_is_blank((char)head[at]))
        at++;
    /* Symbolizer Markup of LLVM begins with a brace, too, but is no JSON: skip begins[0] */
    bool is_markup = size - at >= 3 && memcmp(head + at, "{{{", 3) == 0;
    for (size_t i = is_markup ? 1 : 0; i < sizeof begins / sizeof *begins; i++)
        if (size - at >= strlen(begins[i]) && memcmp(head + at, begins[i], strlen(begins[i])) == 0)
            return false;
    enum input_kind kind = input_kind_detect((struct sl_bytes){head, size});
    /* an unknown text may be a log whose stacks are still to come, unless it is a file of another program */
    return kind == INPUT_TEXT || kind == INPUT_JSSTACK ||
           (kind == INPUT_UNKNOWN && !input_unread_kind((struct sl_bytes){head, size}));
}

/* Symbolicates the file `path`, or the Sentry event whose id it is. `kind` is the value of --type; INPUT_UNKNOWN: detect it. Returns an
 * exit status. */
static int run_input(const struct options *o, enum input_kind kind, const char *path)
{
    struct sl_mapping mapping = {0};
    struct sl_arena arena = {0};
    struct sentry_project project;
    bool is_id = is_event_id(path);
    int status = sentry_project_read(o, is_id, &arena, &project);
    if (!status && (kind == INPUT_TEXT || (!kind && is_streamed(path)))) { /* read in blocks instead of mapped */
        status = symbolicate_text(o, &project, path, NULL, SL_TEXT_PLAIN);
    } else if (!status && !(status = map_input(o, &project, path, is_id, &mapping))) {
        status = run_kind(o, &project, kind ? kind : detect(mapping.bytes), mapping.bytes);
        sl_unmap(&mapping);
    }
    sl_arena_free(&arena);
    return status;
}

/* Symbolicates the addresses of the command line or standard input. `kind` is the value of --type: other ones than INPUT_ADDRESSES and
 * INPUT_UNKNOWN (not given) are a usage error. Returns an exit status. */
static int run_addresses(const struct options *o, enum input_kind kind)
{
    struct sl_arena arena = {0};
    struct sentry_project project;
    if (kind && kind != INPUT_ADDRESSES)
        return options_wrong(o, "--module, --maps and --pid can be used with addresses only");
    int status = sentry_project_read(o, false, &arena, &project); /* false: no event's id needs the project */
    if (!status)
        status = symbolicate_addresses(o, &project);
    sl_arena_free(&arena);
    return status;
}

/* Arguments after the first are paths of symbols. Reports a usage error if one of them is another crash file, which would silently be
 * ignored. Returns 0, or the status of the error. Files that cannot be read are reported later, when symbols are searched. */
static int refuse_second_input(const struct options *o)
{
    for (size_t i = 1; i < o->argument_count; i++) {
        struct sl_mapping mapping;
        struct stat st;
        if (stat(o->arguments[i], &st) != 0 || !S_ISREG(st.st_mode) ||
            sl_map_file(o->arguments[i], &mapping, NULL) != SL_OK)
            continue;
        const char *kind = input_crash_kind(mapping.bytes, o->arguments[i]);
        sl_unmap(&mapping);
        if (kind)
            return options_wrong(o, "%s is %s too; symbolicate one at a time (arguments after FILE are SYMBOLS)",
                                 o->arguments[i], kind);
    }
    return 0;
}

/* True if --mapping can be used with an input of this kind. */
static bool takes_mappings(enum input_kind kind)
{
    return kind == INPUT_TRACE || kind == INPUT_TEXT || kind == INPUT_REQUEST || kind == INPUT_EVENT;
}

/* Runs `symbolicate`: decides what the input is and symbolicates it. Options decide first, and only then the bytes: --module, --maps and
 * --pid mean addresses, for which no file is read; --mapping without --type means a log with JVM traces, unless the file begins like a
 * crash file or JSON. Returns an exit status. */
static int symbolicate_run(const struct options *o)
{
    size_t mapping_count;
    option_values(o, "mapping", &mapping_count);
    const char *type = option_value(o, "type", NULL), *path = o->argument_count ? o->arguments[0] : "-";
    enum input_kind kind = INPUT_UNKNOWN;
    if (option_given(o, "json") && strcmp(option_value(o, "format", "json"), "json") != 0)
        return options_wrong(o, "--json and --format cannot be combined");
    heap_configure_for_one_job(); /* before any thread starts */
    table_fit(option_given(o, "no-trim") || option_given(o, "output") ? 0 : output_width()); /* 0: unlimited */
    if (type && !input_kind_parse(type, &kind))
        return options_wrong(
            o,
            "--type: '%s' is not one of minidump, core, apple, trace, jsstack, text, request, event, mozilla, profile, "
            "addresses",
            type);
    int status = symbolicate_check_symbol_paths(o);
    if (status)
        return status;
    if (symbolicate_takes_addresses(o))
        return run_addresses(o, kind);
    if ((status = refuse_second_input(o)))
        return status;
    /* INPUT_TEXT: with symbols, stacks of native code and scripts in the log are looked up too */
    if (!type && mapping_count && !is_json_or_crash_file(path))
        kind = has_symbols(o) ? INPUT_TEXT : INPUT_TRACE;
    if (kind == INPUT_TRACE)
        return run_trace(o, mapping_count);
    if (kind && mapping_count && !takes_mappings(kind))
        return options_wrong(o, "--mapping can be used with traces, events and requests of the JVM only");
    if (kind == INPUT_JSSTACK) /* because of --type; scripts come from --symbols and SYMBOLS, not from Sentry */
        return run_scripts(o, &(struct sentry_project){.online = false}, NULL, SL_TEXT_JS);
    if (!o->argument_count && isatty(STDIN_FILENO))
        return no_file(o);
    return run_input(o, kind, path);
}

const struct command command_symbolicate = {
    .name = "symbolicate",
    .summary = "symbolicate the stacks of a crash",
    .usage = "symbolicate [OPTION...] FILE [SYMBOLS...]",
    .about =
        "Symbolicates a minidump, ELF core file, Breakpad microdump (also in an Android log), Apple crash report "
        "(text, "
        ".ips, MetricKit, stackshot, sample, spindump, hang), Sentry event, request to this service or "
        "to Mozilla's API, Firefox profile, or text with stacks: sanitizer reports, backtrace_symbols, Android "
        "tombstones, hs_err, systemd, gdb, eu-stack, Rust, WinDbg, LLVM's markup, JavaScript and Java. Symbols "
        "come from --symbols, the SYMBOLS arguments and the configuration.\n"
        "With --module, --maps or --pid, it symbolicates addresses given as arguments or on standard "
        "input.\n"
        "Texts are written again with names; all else in them stays as it is, and a pipe is answered line by line. "
        "With --mapping, it deobfuscates Java stack traces, also inside logs. JavaScript stack traces need "
        "--symbols with the scripts and source maps.\n"
        "Without FILE, or with -, it reads standard input.",
    .examples = "symloom symbolicate crash.dmp --symbols ./symbols -f full\n"
                "coredumpctl dump | symloom symbolicate - --local-debug-info\n"
                "symloom symbolicate event.json --symbols ./dist -f compact\n"
                "symloom symbolicate --mapping mapping.txt app.log\n"
                "./app 2>&1 | symloom symbolicate - --symbols ./app\n"
                "symloom symbolicate --pid 4711 0x55d0c2a01136",
    .options = specs,
    .groups = {{"Most used", "symbols mapping format json output server type all-threads context fail-on-missing"},
               {"Symbol sources", "source nt-symbol-path debuginfod local-debug-info config cache-dir "
                                  "candidates scope timeout use-request-sources"},
               {"Output",
                "crashed-only thread thread-index no-trim no-source-context extract-variables indent verbose trim"},
               {"Format stackwalk", "brief stack-contents stack-pointers"},
               {"Addresses", "module maps pid return-addresses"},
               {"Events, requests, scripts and logs", "platform release dist no-scrape rewrite-first-module microdump"},
               {"Sentry", "org project url auth-token auth-token-file auth-cookies auth-cookies-file"}},
    .run = symbolicate_run,
};
