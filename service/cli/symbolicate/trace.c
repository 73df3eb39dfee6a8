/* Stack traces of the JVM: `retrace`, which reads them line by line, and the mappings for traces in texts (text.c). */
#include "cli/symbolicate/symbolicate.h"
#include "cli/symbolicate/trace_pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/local_request.h"
#include "jvm/alternatives.h"
#include "jvm/signatures.h"
#include "jvm/stack.h"
#include "jvm/trace.h"

/* ---- traces ---- */

enum { BLOCK = 256 * 1024 }; /* bytes that are read at once; longer lines are copied, as no frame is so long */

struct trace_run { /* a log while `retrace` reads it */
    struct sl_jvm_trace trace;
    struct trace_pattern *pattern; /* replaces `trace` for --regex; else NULL */
    struct sl_buf out;
    struct log_input input;
    bool failed;       /* the output cannot be written any more */
    bool in_long_line; /* the beginning of a line longer than BLOCK was copied, its end was not read yet */
};

/* ---- missing mappings ---- */

const struct missing_words missing_mappings = {
    .wanted = "mapping",
    .unit = "frames",
    .counts_found = true,
    .advice = "pass the --mapping of the same build",
};

/* True if the class is a part of Java or Android: no mapping has these, so that they are not reported as missing. */
static bool is_of_platform(struct sl_str class)
{
    static const struct sl_str packages[] = {
        SL_STR("java."),    SL_STR("javax."),       SL_STR("jdk."),    SL_STR("sun."),     SL_STR("com.sun."),
        SL_STR("android."), SL_STR("com.android."), SL_STR("dalvik."), SL_STR("libcore."),
    };
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (sl_str_starts(class, packages[i]))
            return true;
    return false;
}

/* The number of entries, as a power of two, of a direct-mapped cache of class names without a mapping. It saves is_of_platform() and
 * missing_add() for most frames of a log. */
enum { RECENT_BITS = 12 };

struct recent_class {
    uint64_t first, last; /* the whole name if it has up to 16 bytes, else its hash and its last 8 bytes */
    size_t size;          /* size of the name; 0: the slot is empty */
    bool is_of_platform;
};

/* Classes of frames that no mapping has. */
struct unknown_classes {
    struct missing_report *missing;
    uint64_t count; /* frames whose class is not of the platform */
    struct recent_class recent[1 << RECENT_BITS];
};

/* Returns a class name as `first`, `last` and `size`, which are equal for equal names, and for different ones except if long names have the
 * same hash. Two loads that overlap take all bytes of a name of 4 to 16 bytes. */
static struct recent_class make_recent_class(struct sl_str name)
{
    struct recent_class recent = {.size = name.size};
    if (name.size >= 8) {
        memcpy(&recent.first, name.data, 8);
        memcpy(&recent.last, name.data + name.size - 8, 8);
    } else if (name.size >= 4) {
        memcpy(&recent.first, name.data, 4);
        memcpy(&recent.last, name.data + name.size - 4, 4);
    } else {
        for (size_t i = 0; i < name.size; i++)
            recent.first = recent.first << 8 | (unsigned char)name.data[i];
    }
    if (name.size > 16)
        recent.first = sl_hash(name.data, name.size);
    return recent;
}

/* Counts a frame whose class no mapping has, and lists the class in the report; nothing for classes of Java and Android
 * (sl_jvm_trace.on_unknown). The cache unknown->recent has one class in each slot; a class that is still in its slot is counted without
 * looking at its name again. */
static void on_unknown_class(void *arg, struct sl_str class)
{
    enum { MAX_NAMED = 1000 };
    struct unknown_classes *unknown = arg;
    struct recent_class wanted = make_recent_class(class);
    /* multiplicative hash: the upper bits are the slot */
    uint64_t slot = ((wanted.first ^ wanted.last * 31) * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - RECENT_BITS);
    struct recent_class *recent = &unknown->recent[slot];
    bool is_known = recent->first == wanted.first && recent->last == wanted.last && recent->size == wanted.size;
    if (__builtin_expect(!is_known, 0)) {
        *recent = wanted;
        recent->is_of_platform = is_of_platform(class);
        if (!recent->is_of_platform && unknown->missing->things.count < MAX_NAMED)
            missing_add(unknown->missing, class, (struct sl_str){NULL, 0});
    }
    unknown->count += !recent->is_of_platform;
}

/* ---- mappings ---- */

struct jvm_mapping_file {
    struct sl_mapping file; /* mapped while `signatures` point into it */
    struct sl_buf table;
    struct sl_jvm_mapper mapper;
};

/* Reads a mapping file and builds its look-up table. `signatures` (may be NULL) gets the types of fields and methods. It points into the
 * file, which therefore stays mapped; the table does not, so that without `signatures` the file is unmapped. */
static enum sl_code mapping_read(const char *path, struct jvm_mapping_file *m, struct sl_jvm_signatures *signatures,
                                 struct sl_error *error)
{
    struct sl_budget budget;
    enum sl_code code = sl_map_file(path, &m->file, error);
    if (code != SL_OK)
        return code;
    sl_budget_init(&budget, m->file.bytes.size); /* limits the work by the size of the file */
    struct sl_str text = {(const char *)m->file.bytes.data, m->file.bytes.size};
    code = sl_jvm_mapper_build(text, &budget, &m->table, error);
    if (code == SL_OK && signatures && !sl_jvm_signatures_add(signatures, text))
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (!signatures)
        sl_unmap(&m->file);
    return code == SL_OK ? sl_jvm_mapper_open(sl_buf_bytes(&m->table), &m->mapper, error) : code;
}

/* ---- lines ---- */

/* Writes t->out to standard output, in the encoding of the input, and empties it. */
static void trace_flush(struct trace_run *t)
{
    bool ok;
    struct sl_str text = log_input_encode(&t->input, sl_buf_view(&t->out), false, &ok);
    t->out.failed |= !ok;
    t->failed |= !output_write(text);
    sl_buf_clear(&t->out);
}

/* Appends the complete lines of `text`, retraced, to t->out; at the `end` of the input also the last one without a line end. Returns how
 * many bytes of `text` were read. A line longer than BLOCK is copied in parts, unchanged. `*ok` becomes false when out of memory. */
static size_t retrace_lines(struct trace_run *t, struct sl_str text, bool end, bool *ok)
{
    size_t at = 0;
    while (at < text.size && *ok) {
        const char *newline = memchr(text.data + at, '\n', text.size - at);
        struct sl_str line = {text.data + at, newline ? (size_t)(newline + 1 - text.data) - at : text.size - at};
        bool is_long = t->in_long_line || (!newline && line.size == BLOCK);
        if (!newline && !end && !is_long)
            break;
        if (is_long)
            sl_buf_str(&t->out, line);
        else
            *ok = t->pattern ? trace_pattern_line(t->pattern, line, &t->out)
                             : sl_jvm_trace_line(&t->trace, line, &t->out);
        t->in_long_line = is_long && !newline;
        *ok = *ok && !t->out.failed;
        at += line.size;
        if (t->out.size >= BLOCK)
            trace_flush(t);
    }
    return at;
}

/* Retraces a log block by block. Flushes standard output whenever no input is pending, so that the lines of a growing log appear at once.
 * Returns an exit status. */
static int retrace_log(struct trace_run *t, const char *path)
{
    if (!log_input_open(&t->input, path))
        return report_error(1, path, strerror(errno));
    char *block = malloc(BLOCK);
    size_t filled = 0;
    bool ok = block != NULL, end = false;
    const char *problem = NULL;
    while (ok && !end && !t->failed) {
        size_t n = log_input_read(&t->input, block + filled, BLOCK - filled, &problem);
        end = n == 0;
        filled += n;
        size_t done = retrace_lines(t, (struct sl_str){block, filled}, end, &ok);
        memmove(block, block + done, filled - done);
        filled -= done;
        trace_flush(t);
        if (!end && !log_input_waits(&t->input, 0))
            t->failed |= !output_flush();
    }
    free(block);
    log_input_end(&t->input);
    if (!ok)
        return report_no_memory();
    return problem ? report_error(1, path, problem) : 0;
}

/* Warns of lines that were not retraced because they, or all lines together, would have exceeded the limit of the output. */
static void warn_of_refused(uint64_t refused, const char *path)
{
    if (refused)
        fprintf(stderr,
                "warning: %s: %" PRIu64
                " line%s left unchanged: the mapping expands a line, or all lines, to far more frames than real "
                "programs have\n",
                path, refused, refused == 1 ? " was" : "s were");
}

/* Retraces the log `path` with open mappings, and counts its known and unknown frames in options->missing. `signatures` are used with
 * --verbose and --regex. Returns an exit status. */
static int trace_with_mappings(const struct sl_jvm_mappers *mappers, const struct sl_jvm_signatures *signatures,
                               const char *path, const struct trace_options *options)
{
    struct trace_run t = {.pattern = NULL};
    char problem[TRACE_PROBLEM];
    struct sl_error error;
    struct unknown_classes *unknown = calloc(1, sizeof *unknown);
    int status = unknown && sl_jvm_trace_begin(&t.trace, mappers) ? 0 : report_no_memory();
    if (unknown)
        unknown->missing = options->missing;
    if (options->verbose)
        t.trace.signatures = signatures;
    t.trace.all_classes = options->all_classes;
    t.trace.on_unknown = on_unknown_class;
    t.trace.unknown_arg = unknown;
    if (!status && options->regex &&
        !(t.pattern =
              trace_pattern_new(options->regex, mappers, signatures, options->verbose, &t.trace.allowance, problem))) {
        sl_fail(&error, SL_MALFORMED, "cannot use --regex '%.200s'", options->regex);
        status = report_error(2, error.message, problem);
    }
    if (!status)
        status = retrace_log(&t, path);
    trace_pattern_free(t.pattern);
    missing_count(options->missing, unknown ? unknown->count : 0, 0); /* adds missing frames; below, all frames */
    /* the total leaves out the frames of Java and Android: those whose class is unknown but does not count as missing */
    missing_count(options->missing, 0, t.trace.frame_count - (t.trace.unknown_count - options->missing->missing));
    warn_of_refused(t.trace.allowance.refused, path);
    sl_jvm_trace_end(&t.trace);
    sl_buf_free(&t.out);
    free(unknown);
    return status;
}

int symbolicate_trace(const char *path, const char *const *mappings, size_t mapping_count,
                      const struct trace_options *options)
{
    struct sl_error error = {0};
    struct sl_jvm_signatures signatures = {.arena = {0}};
    struct jvm_mapping_file *made = calloc(mapping_count, sizeof *made);
    const struct sl_jvm_mapper **items = calloc(mapping_count, sizeof *items);
    int status = made && items ? 0 : report_no_memory();
    for (size_t i = 0; i < mapping_count && !status; i++) {
        enum sl_code code =
            mapping_read(mappings[i], &made[i], options->verbose || options->regex ? &signatures : NULL, &error);
        items[i] = &made[i].mapper;
        missing_add_location(options->missing, sl_str(mappings[i]));
        status = code == SL_OK ? 0 : report_file_error(mappings[i], code, &error);
    }
    if (!status)
        status = trace_with_mappings(&(struct sl_jvm_mappers){.items = items, .count = mapping_count}, &signatures,
                                     path, options);
    sl_jvm_signatures_free(&signatures);
    for (size_t i = 0; made && i < mapping_count; i++) {
        sl_buf_free(&made[i].table);
        sl_unmap(&made[i].file);
    }
    free(items);
    free(made);
    return status;
}

/* ---- traces among other stacks ---- */

struct text_trace {
    struct jvm_mapping_file *files;     /* own the mappers */
    const struct sl_jvm_mapper **items; /* the mappers, for `trace` */
    struct local_mapping *mappings;     /* the mappers, for requests */
    size_t count;                       /* number of elements of each of these arrays */
    struct sl_jvm_trace trace;
    struct unknown_classes unknown;
};

/* Reads the mapping files until one fails. Returns an exit status, after a report unless 0. */
static int read_mappings(struct text_trace *t, const char *const *paths, size_t count)
{
    while (t->count < count) {
        struct sl_error error = {0};
        const char *path = paths[t->count];
        struct jvm_mapping_file *file = &t->files[t->count];
        t->items[t->count] = t->mappings[t->count].mapper = &file->mapper;
        t->count++; /* before the file is read: after an error, text_trace_close() frees this table too */
        missing_add_location(t->unknown.missing, sl_str(path));
        enum sl_code code = mapping_read(path, file, NULL, &error);
        if (code != SL_OK)
            return report_file_error(path, code, &error);
    }
    return 0;
}

struct text_trace *text_trace_open(const char *const *paths, size_t count, struct missing_report *missing, int *status)
{
    struct text_trace *t = calloc(1, sizeof *t);
    *status = t ? 0 : report_no_memory();
    if (!t)
        return NULL;
    t->files = calloc(count, sizeof *t->files);
    t->items = calloc(count, sizeof *t->items);
    t->mappings = calloc(count, sizeof *t->mappings);
    t->unknown.missing = missing;
    *status = t->files && t->items && t->mappings ? read_mappings(t, paths, count) : report_no_memory();
    if (!*status && !sl_jvm_trace_begin(&t->trace, &(struct sl_jvm_mappers){.items = t->items, .count = count}))
        *status = report_no_memory();
    t->trace.on_unknown = on_unknown_class;
    t->trace.unknown_arg = &t->unknown;
    return t;
}

struct sl_jvm_trace *text_trace_reader(struct text_trace *t)
{
    return &t->trace;
}

const struct local_mapping *text_trace_mappings(const struct text_trace *t, size_t *count)
{
    *count = t->count;
    return t->mappings;
}

void text_trace_close(struct text_trace *t, const char *path)
{
    if (!t)
        return;
    struct missing_report *missing = t->unknown.missing;
    missing_count(missing, t->unknown.count, 0); /* adds missing frames; below, all frames */
    /* the total leaves out the frames of Java and Android: those whose class is unknown but does not count as missing */
    missing_count(missing, 0, t->trace.frame_count - (t->trace.unknown_count - missing->missing));
    warn_of_refused(t->trace.allowance.refused, path);
    sl_jvm_trace_end(&t->trace);
    for (size_t i = 0; t->files && i < t->count; i++)
        sl_buf_free(&t->files[i].table);
    free(t->files);
    free(t->items);
    free(t->mappings);
    free(t);
}
