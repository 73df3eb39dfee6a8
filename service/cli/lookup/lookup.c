/* `symloom lookup`, addr2line, llvm-addr2line, llvm-symbolizer: options, and reading requests. */
#include "cli/lookup/lookup.h"

#include "object/debug_map.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct option_spec specs[] = {
    {"exe", 'e', OPTION_VALUE, false, "FILE", "Read this debug file, symbfile or symcache; FILE:ARCH picks an object"},
    {"obj", 0, OPTION_VALUE, false, "FILE", "Same as --exe"},
    {"build-id", 0, OPTION_VALUE, false, "HEX",
     "Find the debug file with this build id: installed files, --symbols, ..."},
    {"config", 'c', OPTION_VALUE, false, "FILE", "Read more symbol sources from this configuration file"},
    LOCATOR_OPTIONS,
    {"functions", 'f', OPTION_OPTIONAL, true, "none|short|linkage", "Print function names (default: linkage)"},
    {"inlines", 'i', OPTION_FLAG, true, NULL, "Print inlined functions, innermost first (default)"},
    {"inlining", 0, OPTION_OPTIONAL, true, "true|false", "Print inlined functions, or not"},
    {"no-inlines", 0, OPTION_FLAG, true, NULL, "Print only the outermost function, with the innermost line"},
    {"demangle", 'C', OPTION_OPTIONAL, true, "BOOL", "Demangle names (default)"},
    {"no-demangle", 0, OPTION_FLAG, true, NULL, "Print names as stored in the file"},
    {"addresses", 'a', OPTION_FLAG, true, NULL, "Print the address before each result"},
    {"print-address", 0, OPTION_FLAG, true, NULL, NULL},
    {"pretty-print", 'p', OPTION_FLAG, true, NULL, "Print one line per frame"},
    {"basenames", 's', OPTION_FLAG, true, NULL, "Print file names without directories"},
    {"relativenames", 0, OPTION_FLAG, true, NULL, "Print file names relative to the compilation directory"},
    {"section", 'j', OPTION_VALUE, false, "NAME", "Treat addresses as offsets in this section"},
    {"adjust-vma", 0, OPTION_VALUE, false, "N", "Subtract N from every address"},
    {"relative-address", 0, OPTION_FLAG, true, NULL, "Treat addresses as relative to the load address"},
    {"return-addresses", 0, OPTION_FLAG, true, NULL, "Treat addresses as return addresses (look up address - 1)"},
    {"output-style", 0, OPTION_VALUE, false, "gnu|llvm|json|table",
     "Choose the output style (default: table on a terminal, else llvm)"},
    {"json", 0, OPTION_FLAG, true, NULL, "Same as --output-style json"},
    {"llvm", 0, OPTION_FLAG, true, NULL, "Same as --output-style llvm"},
    {"no-debuginfod", 0, OPTION_FLAG, true, NULL, NULL},
    {"verbose", 0, OPTION_FLAG, true, NULL, "Print every detail (style llvm)"},
    {"print-source-context-lines", 0, OPTION_VALUE, false, "N", "Print N source lines around each line (style llvm)"},
    {"no-trim", 0, OPTION_FLAG, true, NULL, "Do not shorten long names to fit the terminal (style table)"},
    {"all", 0, OPTION_FLAG, false, NULL, "List every address where a function or line starts"},
    {"names", 0, OPTION_FLAG, false, NULL, "Look up names: print their addresses and sizes"},
    {"default-arch", 0, OPTION_VALUE, false, "ARCH", "Use the object of this architecture (default: this machine's)"},
    {"dsym-hint", 0, OPTION_VALUE, true, "DIR", "Read debug information from this .dSYM bundle"},
    {"debug-file-directory", 0, OPTION_VALUE, true, "DIR", "Search here for debug files (default: /usr/lib/debug)"},
    {"fallback-debug-path", 0, OPTION_VALUE, true, "DIR", "Same as --debug-file-directory"},
    {"dwp", 0, OPTION_VALUE, false, "FILE", "Read this split DWARF package (default: FILE.dwp)"},
    {"sup", 0, OPTION_VALUE, false, "FILE", "Read this supplementary file (default: named by FILE)"},
    {"symcache-out", 0, OPTION_VALUE, false, "FILE", "Write the converted symcache to FILE"},
    {"cache", 0, OPTION_FLAG, true, NULL,
     "Convert the whole file and keep the symcache in the disk cache (always kept for files "
     "over 64 MiB)"},
    {"jobs", 0, OPTION_VALUE, false, "N", "Convert with N threads (default: all cores)"},
    {"target", 'b', OPTION_VALUE, true, NULL, NULL},
    {"recurse-limit", 'R', OPTION_FLAG, true, NULL, NULL},
    {"no-recurse-limit", 'r', OPTION_FLAG, true, NULL, NULL},
    {"dia", 0, OPTION_FLAG, true, NULL, NULL},
    {"no-untag-addresses", 0, OPTION_FLAG, true, NULL, NULL},
    {"cache-size", 0, OPTION_VALUE, true, NULL, NULL},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* ---- serving ---- */

/* Writes the answers so far to standard output. False when nothing more can be written. */
static bool lookup_flush(struct lookup *l)
{
    lookup_table_flush(l);
    bool ok = output_write(sl_buf_view(&l->out));
    sl_buf_clear(&l->out);
    return output_flush() && ok;
}

/* True if a read from standard input would return at once. */
static bool input_waits(void)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

/* Warns of the missing debug information of a file, if that matters: the file is unusable, an answer had no line, or the file's debug
 * information is incomplete. The emulated tools do not warn. */
static void report_notes(const struct lookup *l, const struct lookup_module *m)
{
    struct sl_str rest = sl_buf_view(&m->input.notes), note;
    bool has_debug = m->input.object && (sl_object_info(input_debug(&m->input))->features.has_debug_info ||
                                         sl_object_has_debug_map(input_debug(&m->input)));
    if (l->persona != PERSONA_LOOKUP || !(m->error.code != SL_OK || m->lacks_lines || has_debug))
        return;
    while (sl_str_next_line(&rest, &note))
        print_note("warning: %s: " SL_STR_FMT "\n", m->name, SL_STR_ARG(note));
}

/* Reports an unusable file. Returns the exit status; 0: go on and answer `??`, as llvm-symbolizer does. In GNU's style (addr2line,
 * llvm-addr2line) an unusable file of -e ends the program with status 1. */
static int report_unusable(struct lookup *l, const struct lookup_module *m)
{
    const char *program = options_program_name();
    bool missing = m->error.code == SL_NOT_FOUND;
    char text[4200];
    l->has_reported = true;
    if (l->persona == PERSONA_LOOKUP) {
        bool denied =
            m->error.code == SL_PERMISSION_DENIED && m->input.alone; /* alone: a download, so a server denied it */
        bool no_object = missing && m->input.archive.count; /* the file exists: an object in it was not found */
        snprintf(text, sizeof text, "cannot use %s", m->name);
        return report_error(denied      ? STATUS_DENIED
                            : no_object ? STATUS_NOTHING
                                        : status_of_code(m->error.code),
                            text, m->error.message);
    }
    bool gnu = l->style == STYLE_GNU;
    print_note("%s: '%s': %s\n", program, m->name, gnu && missing ? "No such file" : m->error.message);
    return gnu;
}

/* Requests per batch: one partial symcache of a file serves all requests of a batch. */
enum { BATCH = 128 };

/* Answers `count` requests. `array`: the JSON array for the answers; NULL: each answer is a JSON document on a line of its own. Returns
 * the exit status: not 0 if the file of -e is unusable, which may show only now, when lookup_build_tables converts it to a symcache. */
static int answer_batch(struct lookup *l, const struct lookup_request *requests, size_t count,
                        struct sl_json_writer *array)
{
    const struct lookup_module *given = l->file ? lookup_module_find(l, sl_str(l->file)) : NULL;
    for (struct lookup_module *m = l->modules; m; m = m->next)
        lookup_build_tables(l, m, requests, count);
    int status = given && given->error.code != SL_OK && !l->has_reported ? report_unusable(l, given) : 0;
    for (size_t i = 0; i < count && !status; i++) {
        struct sl_json_writer alone = sl_json_writer(&l->out);
        lookup_answer(l, array ? array : &alone, &requests[i]);
        if (l->style == STYLE_JSON && !array)
            sl_buf_u8(&l->out, '\n');
    }
    return status;
}

/* Answers the complete lines at the beginning of `text`; returns their size in bytes. Sets the exit status; if it is not 0, stops early. */
static size_t serve_lines(struct lookup *l, const char *text, size_t size, int *status)
{
    struct lookup_request requests[BATCH];
    size_t at = 0, count = 0;
    for (const char *end; *status == 0 && at < size && (end = memchr(text + at, '\n', size - at));) {
        size_t length = (size_t)(end - text) - at;
        length -= length && text[at + length - 1] == '\r';
        lookup_parse(l, (struct sl_str){text + at, length}, &requests[count++]);
        at = (size_t)(end - text) + 1;
        if (count == BATCH) {
            *status = answer_batch(l, requests, count, NULL);
            count = 0;
        }
    }
    if (*status == 0 && count)
        *status = answer_batch(l, requests, count, NULL);
    return at;
}

/* Answers each line of standard input. Flushes when no input is pending, so that a client may wait for each answer, or when much output has
 * gathered. Returns the exit status. */
static int serve_input(struct lookup *l)
{
    char buffer[64 * 1024];
    size_t filled = 0;
    int status = 0;
    while (status == 0) {
        /* leaves room for the newline that is added below if the last line has none */
        ssize_t n = read(STDIN_FILENO, buffer + filled, sizeof buffer - 1 - filled);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return report_error(1, "cannot read addresses from standard input", strerror(errno));
        if (n == 0 && !filled)
            break;
        filled += (size_t)n;
        if (n == 0)
            buffer[filled++] = '\n';
        size_t at = serve_lines(l, buffer, filled, &status);
        if (at == 0 && filled == sizeof buffer - 1)
            at = filled; /* drops the beginning of a line that does not fit the buffer */
        memmove(buffer, buffer + at, filled - at);
        filled -= at;
        if (n == 0 || ((l->out.size > sizeof buffer || !input_waits()) && !lookup_flush(l)))
            break;
    }
    lookup_flush(l);
    return status;
}

/* False after a report of the first argument that is no address. Only `symloom lookup` checks them: the emulated tools print an answer
 * for any text. */
static bool check_arguments(struct lookup *l, char **arguments, size_t count)
{
    for (size_t i = 0; i < count && l->persona == PERSONA_LOOKUP; i++) {
        struct lookup_request request;
        lookup_parse_argument(l, arguments[i], &request);
        if (request.kind != REQUEST_BAD)
            continue;
        options_wrong(l->options, "%s'%s'",
                      l->file ? "not an address or function name: " : "not an address; name the debug file with -e: ",
                      arguments[i]);
        return false;
    }
    return true;
}

/* Answers the arguments, as one JSON array with --json. Returns the exit status. */
static int serve_arguments(struct lookup *l, char **arguments, size_t count)
{
    struct sl_json_writer w = sl_json_writer(&l->out);
    struct lookup_request requests[BATCH];
    int status = 0;
    if (l->style == STYLE_JSON)
        sl_json_begin_array(&w);
    for (size_t at = 0, batch; at < count && status == 0; at += batch) {
        batch = count - at < BATCH ? count - at : BATCH;
        for (size_t i = 0; i < batch; i++)
            lookup_parse_argument(l, arguments[at + i], &requests[i]);
        status = answer_batch(l, requests, batch, &w);
    }
    if (status != 0) /* the file of -e is unusable: exits without printing the answers so far */
        return status;
    if (l->style == STYLE_JSON) {
        sl_json_end_array(&w);
        sl_buf_u8(&l->out, '\n');
    }
    lookup_flush(l);
    return 0;
}

/* Answers every address where a function or line of the file starts (--all). False when nothing more can be written. */
static bool serve_all(struct lookup *l, struct lookup_module *m)
{
    struct sl_symcache_cursor cursor;
    for (sl_symcache_first(&m->whole.cache, &cursor); sl_symcache_next(&m->whole.cache, &cursor);) {
        struct sl_json_writer w = sl_json_writer(&l->out);
        if (cursor.hole) /* a gap between functions begins here */
            continue;
        /* lookup_answer takes an address as a user would type it: it subtracts `load` and `adjust` again */
        struct lookup_request request = {.module = m, .address = cursor.address + m->load + l->adjust};
        lookup_answer(l, &w, &request);
        if (l->style == STYLE_JSON)
            sl_buf_u8(&l->out, '\n');
        /* a table is printed at the end only: its column widths depend on all rows */
        if (l->style != STYLE_TABLE && l->out.size > 64 * 1024 && !lookup_flush(l))
            return false;
    }
    return lookup_flush(l);
}

/* Prints `address size name` of each named function or variable (--names), `?? ?? name` for an unknown one. False when nothing more can be
 * written. */
static bool serve_names(struct lookup *l, struct lookup_module *m, char **names, size_t count)
{
    struct sl_json_writer w = sl_json_writer(&l->out);
    if (l->style == STYLE_JSON)
        sl_json_begin_array(&w);
    for (size_t i = 0; i < count; i++) {
        uint64_t address = 0, size = 0;
        bool found = lookup_symbol_named(l, m, sl_str(names[i]), &address, &size);
        if (l->style == STYLE_JSON) {
            sl_json_begin_object(&w);
            sl_json_member_str(&w, "Name", sl_str(names[i]));
            sl_json_put_key(&w, "Address");
            found ? sl_json_put_hex(&w, address) : sl_json_put_null(&w);
            sl_json_put_key(&w, "Size");
            found ? sl_json_put_hex(&w, size) : sl_json_put_null(&w);
            sl_json_end_object(&w);
        } else if (found) {
            sl_buf_printf(&l->out, "0x%llx 0x%llx %s\n", (unsigned long long)address, (unsigned long long)size,
                          names[i]);
        } else {
            sl_buf_printf(&l->out, "?? ?? %s\n", names[i]);
        }
    }
    if (l->style == STYLE_JSON) {
        sl_json_end_array(&w);
        sl_buf_u8(&l->out, '\n');
    }
    return lookup_flush(l);
}

/* ---- options ---- */

/* True if the value of an option is `false` or `0`, LLVM's words for false. */
static bool is_false(const char *text)
{
    return strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

/* Sets the output style to the one of this name, in capital or small letters. False after a report if there is none. */
static bool read_style(struct lookup *l, const char *name)
{
    static const char *const names[] = {"gnu", "llvm", "json", "table"}; /* in the order of enum output_style */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sl_str_equal_nocase(sl_str(names[i]), sl_str(name))) {
            l->style = (enum output_style)i;
            return true;
        }
    options_wrong(l->options, "unknown output style '%s'; expected gnu, llvm, json or table", name);
    return false;
}

/* Returns the output style when --output-style is not given. */
static const char *default_style(const struct lookup *l, const struct options *o)
{
    if (option_given(o, "json"))
        return "json";
    if (option_given(o, "llvm"))
        return "llvm";
    if (l->persona == PERSONA_ADDR2LINE || l->persona == PERSONA_LLVM_ADDR2LINE)
        return "gnu";
    return l->persona == PERSONA_LOOKUP && isatty(STDOUT_FILENO) ? "table" : "llvm";
}

static bool is_true(const char *text)
{
    return !*text || strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

/* Checks the values of --functions and --inlining. False after a report, since options_wrong never returns 0. */
static bool check_words(const struct options *o)
{
    size_t functions, inlining;
    const char *const *names = option_values(o, "functions", &functions);
    const char *const *truths = option_values(o, "inlining", &inlining);
    for (size_t i = 0; i < functions; i++)
        if (*names[i] && strcmp(names[i], "none") != 0 && strcmp(names[i], "short") != 0 &&
            strcmp(names[i], "linkage") != 0)
            return options_wrong(o, "--functions: '%s' is not one of none, short, linkage", names[i]) == 0;
    for (size_t i = 0; i < inlining; i++)
        if (!is_true(truths[i]) && !is_false(truths[i]))
            return options_wrong(o, "--inlining: '%s' is not true or false", truths[i]) == 0;
    return true;
}

/* Reads the options for function names, inlined functions and demangling. All three are off by default in addr2line and llvm-addr2line. */
static void read_elements(struct lookup *l, const struct options *o)
{
    bool on_by_default = l->persona == PERSONA_LOOKUP || l->persona == PERSONA_LLVM_SYMBOLIZER;
    const char *functions = option_value(o, "functions", on_by_default ? "linkage" : "none");
    const char *demangle = option_value(o, "demangle", on_by_default ? "true" : "false");
    l->functions = strcmp(functions, "none") != 0;
    l->short_names = strcmp(functions, "short") == 0;
    l->inlines = (on_by_default || option_given(o, "inlines") || option_given(o, "inlining")) &&
                 !option_given(o, "no-inlines") && !is_false(option_value(o, "inlining", "true"));
    l->demangle = !option_given(o, "no-demangle") && !is_false(demangle);
}

/* Reads an option with a hexadecimal value, 0 if it is not given. False after a report of a usage error. */
static bool read_address(const struct options *o, const char *name, uint64_t *value)
{
    const char *text = option_value(o, name, "0");
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 16);
    if (*text && !*end && errno == 0)
        return true;
    options_wrong(o, "--%s: '%s' is not an address", name, text);
    return false;
}

/* Reads all options into `l`, except --build-id and those that name symbol sources or directories. False after a report of a usage
 * error. */
static bool read_options(struct lookup *l, const struct options *o)
{
    uint64_t context, jobs;
    size_t count;
    if (!read_address(o, "adjust-vma", &l->adjust) || !option_number(o, "print-source-context-lines", &context) ||
        !option_number(o, "jobs", &jobs) || !check_words(o))
        return false;
    read_elements(l, o);
    l->addresses = option_given(o, "addresses") || option_given(o, "print-address");
    l->pretty = option_given(o, "pretty-print");
    l->basenames = option_given(o, "basenames");
    l->relative = option_given(o, "relative-address");
    l->return_addresses = option_given(o, "return-addresses");
    l->verbose = option_given(o, "verbose");
    l->keep_symcaches = option_given(o, "cache");
    l->table_width = option_given(o, "no-trim") ? 0 : output_width();
    l->colour = output_colour(option_value(o, "color", NULL));
    /* larger values are of no use, and might not fit */
    l->context_lines = context > 10000 ? 10000 : (unsigned)context;
    l->jobs = jobs > 1024 ? 1024 : (unsigned)jobs;
    l->section = option_value(o, "section", NULL);
    l->file = option_value(o, "exe", option_value(o, "obj", NULL));
    l->open = (struct input_options){
        .arch = option_value(o, "default-arch", NULL),
        .dsym_hints = option_values(o, "dsym-hint", &count),
        .dwp = option_value(o, "dwp", NULL),
        .supplementary = option_value(o, "sup", NULL),
        .find_debug = true,
        .nameless_lines = true, /* an address outside of all functions may still have a file and line */
        .relative_names = option_given(o, "relativenames"),
        .written_paths = l->persona != PERSONA_LOOKUP,
    };
    if (!read_style(l, option_value(o, "output-style", default_style(l, o))))
        return false;
    /* `positions`: the symcache stores columns too, in one number with the line. Only for styles that print columns; a symcache that is
     * written (--symcache-out), and the list of --all, have lines only */
    l->open.positions = !option_given(o, "symcache-out") && !option_given(o, "all") &&
                        (l->style == STYLE_LLVM || l->style == STYLE_JSON);
    return true;
}

/* ---- running ---- */

/* At the end, reports the files that could not be used (input lines may have named them), and the missing debug information of the others.
 * Returns the exit status. */
static int report_modules(struct lookup *l)
{
    int status = 0;
    for (const struct lookup_module *m = l->modules; m; m = m->next)
        if (m->error.code != SL_OK && l->persona == PERSONA_LOOKUP)
            status = report_unusable(l, m);
        else
            report_notes(l, m);
    return status;
}

/* True if the file has the section of --section. */
static bool has_section(const struct lookup *l, const struct lookup_module *m)
{
    struct sl_section_info section;
    for (size_t i = 0; m->input.object && sl_object_section_info(m->input.object, i, &section); i++)
        if (sl_str_equal(section.name, sl_str(l->section)))
            return true;
    return false;
}

/* Writes the symcache to the file of --symcache-out, if given. Then answers what the options ask for: --all, --names, the arguments, or
 * standard input. `m`: the file of -e; NULL: none was given. Returns the exit status. */
static int serve(struct lookup *l, const struct options *o, struct lookup_module *m)
{
    bool all = option_given(o, "all"), names = option_given(o, "names");
    const char *out = option_value(o, "symcache-out", NULL);
    struct sl_error error;
    if ((all || names || out) && (!m || !lookup_load_whole_file(l, m)))
        return m ? report_error(status_of_code(m->error.code), m->error.message, NULL)
                 : options_wrong(o, "no debug file given (-e FILE)");
    if (out && output_file_put(out, m->input.cache.table.bytes, &error) != SL_OK)
        return report_error(1, error.message, NULL);
    if (all)
        serve_all(l, m);
    else if (names)
        serve_names(l, m, o->arguments, o->argument_count);
    else if (o->argument_count && strcmp(o->arguments[0], "-") != 0) {
        if (!check_arguments(l, o->arguments, o->argument_count))
            return 2;
        int status = serve_arguments(l, o->arguments, o->argument_count);
        if (status)
            return status;
    } else if (!(out && isatty(STDIN_FILENO))) { /* --symcache-out at a terminal: do not wait for typed addresses */
        int status = serve_input(l);
        if (status)
            return status;
    }
    return report_modules(l); /* output errors are reported by output_finish */
}

/* Opens the file of -e or --build-id, if any, and answers the requests; input lines may name further files. Fails if the file lacks the
 * section of --section. Returns the exit status. */
static int lookup_run(struct lookup *l, const struct options *o)
{
    struct lookup_module *m = NULL;
    const char *build_id = option_value(o, "build-id", NULL);
    char locator[300];
    size_t symbol_count;
    const char *const *symbols = option_values(o, "symbols", &symbol_count);
    if (source_paths_check(symbols, symbol_count) != 0)
        return 2;
    if (build_id) {
        snprintf(locator, sizeof locator, "BUILDID:%s", build_id);
        l->file = locator;
    }
    if (!l->file && (l->persona == PERSONA_ADDR2LINE || l->persona == PERSONA_LLVM_ADDR2LINE))
        l->file = "a.out";
    /* in these styles an input line is only an address or a symbol: it cannot name its file, as it can in LLVM's */
    if (!l->file && l->persona == PERSONA_LOOKUP && (l->style == STYLE_GNU || l->style == STYLE_TABLE))
        return options_wrong(o, "no debug file given (-e FILE)");
    if (l->file && !(m = lookup_module_find(l, sl_str(l->file))))
        return report_no_memory();
    if (m && m->error.code != SL_OK) {
        int status = report_unusable(l, m);
        if (status)
            return status;
    }
    if (l->section && m && m->error.code == SL_OK && !has_section(l, m)) {
        print_note("%s: %s: cannot find section %s\n", l->persona == PERSONA_LOOKUP ? "error" : options_program_name(),
                   m->name, l->section);
        return 1;
    }
    return serve(l, o, m);
}

/* Returns the option that stands for a word of an emulated tool's command line; most words stand for themselves. In these tools some
 * letters mean other options (-v is --version, not --verbose), and LLVM's accept long options with one dash. */
static char *translate_word(char *word)
{
    static char version[] = "--version", help[] = "--help", inlining[] = "--inlining", demangle[] = "--demangle",
                flat[] = "--no-inlines", plain[] = "--no-demangle";
    static const struct {
        const char *word;
        char *means;
    } words[] = {{"-v", version},
                 {"-H", help},
                 {"-inlining", inlining},
                 {"-inlining=true", inlining},
                 {"-inlining=false", flat},
                 {"-demangle", demangle},
                 {"-demangle=true", demangle},
                 {"-demangle=false", plain}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i].word) == 0)
            return words[i].means;
    return word;
}

/* Runs `symloom lookup` or an emulated tool (`persona` of the command) with parsed options. Returns the exit status. */
static int lookup_with(const struct options *o)
{
    struct lookup lookup = {.persona = (enum command_compatibility)o->command->persona, .options = o};
    const char **directories = NULL;
    size_t count;
    int status = 2;
    if (read_options(&lookup, o)) {
        directories = option_values_joined(o, "debug-file-directory", "fallback-debug-path", &count);
        if (lookup.persona == PERSONA_LOOKUP)
            progress_begin(&lookup.progress, o, "reading");
        lookup.open.debug_directories = directories;
        status = directories ? lookup_run(&lookup, o) : report_no_memory();
    }
    lookup_modules_free(&lookup);
    locator_close(lookup.locator);
    sl_buf_free(&lookup.out);
    sl_buf_free(&lookup.scratch);
    sl_buf_free(&lookup.symbol_name);
    sl_buf_free(&lookup.declaration);
    sl_buf_free(&lookup.cells);
    free(lookup.rows);
    free(directories);
    return status;
}

extern const struct command command_filter_markup;

/* Runs an emulated tool with its unparsed arguments. With --filter-markup, which makes llvm-symbolizer replace addresses inside a log by
 * names, runs the command filter-markup instead. */
static int llvm_symbolizer_main(const struct command *command, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--filter-markup") == 0)
            return command_parse_and_run(&command_filter_markup, argc, argv);
    for (int i = 0; i < argc; i++)
        argv[i] = translate_word(argv[i]);
    return command_parse_and_run(command, argc, argv);
}

/* ---- addr2line ---- */

/* Splits a response file (`@file`) into words: separated by blanks, with quotes and backslashes. The words belong to `arena`. False when
 * the file cannot be read, or out of memory. */
static bool read_words(const char *path, struct sl_arena *arena, char ***words, int *count)
{
    struct sl_mapping mapping;
    if (sl_map_file(path, &mapping, NULL) != SL_OK)
        return false;
    const char *at = (const char *)mapping.bytes.data, *end = at + mapping.bytes.size;
    /* a word takes two bytes at least: a character and a blank */
    *words = SL_ARENA_ARRAY(arena, char *, mapping.bytes.size / 2 + 2);
    char *text = sl_arena_zalloc(arena, mapping.bytes.size + 1, 2); /* room for a NUL after each word */
    while (*words && text && at < end) {
        while (at < end && (*at == ' ' || (*at >= '\t' && *at <= '\r')))
            at++;
        if (at == end)
            break;
        char quote = '\0';
        (*words)[(*count)++] = text;
        for (; at < end && (quote || !(*at == ' ' || (*at >= '\t' && *at <= '\r'))); at++) {
            if (quote ? *at == quote : *at == '"' || *at == '\'')
                quote = quote ? '\0' : *at;
            else if (*at == '\\' && at + 1 < end)
                *text++ = *++at;
            else
                *text++ = *at;
        }
        *text++ = '\0';
    }
    sl_unmap(&mapping);
    return *words && text;
}

/* Runs an emulated addr2line: replaces each argument `@file` by the words in the file, or leaves it if the file is unreadable, then goes on
 * as LLVM's tools. */
static int addr2line_main(const struct command *command, int argc, char **argv)
{
    struct sl_arena arena = {0};
    char **all = NULL;
    int count = 0, status;
    for (int i = 0; i < argc; i++) {
        char **words = &argv[i];
        int word_count = 0;
        if (argv[i][0] != '@' || !read_words(argv[i] + 1, &arena, &words, &word_count)) {
            words = &argv[i];
            word_count = 1;
        }
        char **grown = realloc(all, (size_t)(count + word_count + 1) * sizeof *grown);
        if (!grown) {
            free(all);
            sl_arena_free(&arena);
            return report_no_memory();
        }
        all = grown;
        memcpy(all + count, words, (size_t)word_count * sizeof *all);
        count += word_count;
    }
    status = llvm_symbolizer_main(command, count, all);
    free(all);
    sl_arena_free(&arena);
    return status;
}

/* ---- the command and the emulated tools ---- */

#define LOOKUP(persona_, main_)                                                                                        \
    {                                                                                                                  \
        .name = "lookup", .summary = "find the function and line of addresses",                                        \
        .usage = "lookup [-e FILE] [OPTION...] [ADDRESS...]",                                                          \
        .about = "Prints the function and line of addresses in a debug file, symbfile or symcache. Without "           \
                 "ADDRESS, or with -, addresses are read from standard input, one per line. Addresses are as in "      \
                 "the file's headers (PDB: relative to the image base; WASM: file offsets), also for a symcache "      \
                 "of the file.",                                                                                       \
        .examples = "symloom lookup -e app.debug -a 0x401136 0x40115c\n"                                               \
                    "symloom lookup --build-id 1b2f0c --debuginfod 0x401136\n"                                         \
                    "symloom lookup -e app.debug --symcache-out app.symcache",                                         \
        .options = specs,                                                                                              \
        .groups = {{"Most used",                                                                                       \
                    "exe build-id functions inlines no-inlines addresses pretty-print output-style json names"},       \
                   {"Symbol sources",                                                                                  \
                    "symbols source nt-symbol-path debuginfod config cache-dir debug-file-directory dsym-hint dwp "    \
                    "sup"},                                                                                            \
                   {"Addresses", "section adjust-vma relative-address return-addresses all default-arch obj"},         \
                   {"Output", "demangle no-demangle inlining basenames relativenames no-trim llvm verbose "            \
                              "print-source-context-lines"},                                                           \
                   {"Conversion and cache", "symcache-out cache jobs fallback-debug-path"}},                           \
        .run = lookup_with, .main = (main_), .persona = (persona_),                                                    \
    }

const struct command command_lookup = LOOKUP(PERSONA_LOOKUP, NULL);
const struct command command_addr2line = LOOKUP(PERSONA_ADDR2LINE, addr2line_main);
const struct command command_llvm_addr2line = LOOKUP(PERSONA_LLVM_ADDR2LINE, addr2line_main);
const struct command command_llvm_symbolizer = LOOKUP(PERSONA_LLVM_SYMBOLIZER, llvm_symbolizer_main);
