/* `symloom symbolicate`: stack traces of a JVM, line by line. */
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/symbolicate/trace_pattern.h"
#include "jvm/trace.h"

enum { BLOCK = 256 * 1024 }; /* a longer line is no part of a trace */

struct tracing {
    struct sl_jvm_trace trace;
    struct trace_pattern *pattern; /* instead; NULL: the trace */
    struct sl_buf out;
    struct output_file *file; /* NULL: standard output */
    struct log_input input;
    bool failed; /* of what is written nothing arrives any more */
    bool in_long_line;
};

/* ---- what is missing ---- */

const struct missing_words missing_mappings = {
    .wanted = "mapping",
    .unit = "frames",
    .counts_found = true,
    .advice = "pass the --mapping of the same build",
};

/* Whether the class is one of Java or Android, which no program brings along and no mapping has. */
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

/* Classes that were met lately, each at the place that its name has: so a log of many frames asks for few. */
enum { MET_BITS = 12 };

struct met_class {
    uint64_t first, last; /* all of a name of up to 16 bytes; of others a hash, and the last 8 */
    size_t size;          /* 0: none */
    bool is_of_platform;
};

struct unknown_classes {
    struct missing_report *missing;
    uint64_t count; /* frames */
    struct met_class met[1 << MET_BITS];
};

static struct met_class met_class_of(struct sl_str name)
{
    struct met_class met = {.size = name.size};
    if (name.size >= 8) {
        memcpy(&met.first, name.data, 8);
        memcpy(&met.last, name.data + name.size - 8, 8);
    } else if (name.size >= 4) {
        memcpy(&met.first, name.data, 4);
        memcpy(&met.last, name.data + name.size - 4, 4);
    } else {
        for (size_t i = 0; i < name.size; i++)
            met.first = met.first << 8 | (unsigned char)name.data[i];
    }
    if (name.size > 16)
        met.first = sl_hash(name.data, name.size);
    return met;
}

static void on_unknown_class(void *arg, struct sl_str class)
{
    enum { MOST_NAMED = 1000 };
    struct unknown_classes *unknown = arg;
    struct met_class it = met_class_of(class);
    uint64_t place = ((it.first ^ it.last * 31) * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - MET_BITS);
    struct met_class *met = &unknown->met[place];
    if (__builtin_expect(met->first != it.first || met->last != it.last || met->size != it.size, 0)) {
        *met = it;
        met->is_of_platform = is_of_platform(class);
        if (!met->is_of_platform && unknown->missing->things.count < MOST_NAMED)
            missing_thing(unknown->missing, class, (struct sl_str){NULL, 0});
    }
    unknown->count += !met->is_of_platform;
}

/* ---- mappings ---- */

struct mapping {
    struct sl_mapping file; /* while signatures are of its text */
    struct sl_buf table;
    struct sl_jvm_mapper mapper;
};

/* `signatures` NULL: nobody wants them. */
static enum sl_code mapping_read(const char *path, struct mapping *m, struct sl_jvm_signatures *signatures,
                                 struct sl_error *error)
{
    struct sl_budget budget;
    enum sl_code code = sl_map_file(path, &m->file, error);
    if (code != SL_OK)
        return code;
    sl_budget_init(&budget, m->file.bytes.size);
    struct sl_str text = {(const char *)m->file.bytes.data, m->file.bytes.size};
    code = sl_jvm_mapper_build(text, &budget, &m->table, error);
    if (code == SL_OK && signatures && !sl_jvm_signatures_add(signatures, text))
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (!signatures)
        sl_unmap(&m->file);
    return code == SL_OK ? sl_jvm_mapper_open(sl_buf_bytes(&m->table), &m->mapper, error) : code;
}

/* ---- lines ---- */

static void pass_on(struct tracing *t)
{
    bool ok;
    struct sl_str text = log_input_encode(&t->input, sl_buf_view(&t->out), t->file != NULL, &ok);
    t->out.failed |= !ok;
    t->failed |= !(t->file ? output_file_write(t->file, text) : output_write(text));
    sl_buf_clear(&t->out);
}

/* The lines that are complete, at the `end` all; returns their size. A line that fills the block goes through in parts. */
static size_t take_lines(struct tracing *t, struct sl_str text, bool end, bool *ok)
{
    size_t at = 0;
    while (at < text.size && *ok) {
        const char *newline = memchr(text.data + at, '\n', text.size - at);
        struct sl_str line = {text.data + at, newline ? (size_t)(newline + 1 - text.data) - at : text.size - at};
        bool part = t->in_long_line || (!newline && line.size == BLOCK);
        if (!newline && !end && !part)
            break;
        if (part)
            sl_buf_str(&t->out, line);
        else
            *ok = t->pattern ? trace_pattern_line(t->pattern, line, &t->out)
                             : sl_jvm_trace_line(&t->trace, line, &t->out);
        t->in_long_line = part && !newline;
        *ok = *ok && !t->out.failed;
        at += line.size;
        if (t->out.size >= BLOCK)
            pass_on(t);
    }
    return at;
}

static int trace_with(struct tracing *t, const char *path)
{
    if (!log_input_open(&t->input, path))
        return report(1, path, strerror(errno));
    char *block = malloc(BLOCK);
    size_t filled = 0;
    bool ok = block != NULL, end = false;
    const char *problem = NULL;
    while (ok && !end && !t->failed) {
        size_t n = log_input_read(&t->input, block + filled, BLOCK - filled, &problem);
        end = n == 0;
        filled += n;
        size_t taken = take_lines(t, (struct sl_str){block, filled}, end, &ok);
        memmove(block, block + taken, filled - taken);
        filled -= taken;
        pass_on(t);
        if (!end && !t->file && !log_input_waits(&t->input, 0))
            t->failed |= !output_flush();
    }
    free(block);
    log_input_end(&t->input);
    if (!ok)
        return report_no_memory();
    return problem ? report(1, path, problem) : 0;
}

static int trace_to(struct tracing *t, const char *path, const char *output)
{
    struct output_file file;
    struct sl_error error = {0};
    if (!output)
        return trace_with(t, path);
    if (output_file_open(&file, output, &error) != SL_OK)
        return report(1, output, error.message);
    t->file = &file;
    int status = trace_with(t, path);
    return output_file_close(&file, status == 0, &error) == SL_OK ? status : report(1, output, error.message);
}

static int trace_by(const struct sl_jvm_mappers *mappers, const struct sl_jvm_signatures *signatures, const char *path,
                    const struct trace_words *words)
{
    struct tracing t = {.file = NULL};
    char problem[TRACE_PROBLEM];
    struct unknown_classes *unknown = calloc(1, sizeof *unknown);
    int status = unknown && sl_jvm_trace_begin(&t.trace, mappers) ? 0 : report_no_memory();
    if (unknown)
        unknown->missing = words->missing;
    if (words->verbose)
        t.trace.signatures = signatures;
    t.trace.all_classes = words->all_classes;
    t.trace.on_unknown = on_unknown_class;
    t.trace.unknown_arg = unknown;
    if (!status && words->regex &&
        !(t.pattern =
              trace_pattern_new(words->regex, mappers, signatures, words->verbose, &t.trace.allowance, problem)))
        status = report(2, words->regex, problem);
    if (!status)
        status = trace_to(&t, path, words->output);
    trace_pattern_free(t.pattern);
    missing_count(words->missing, unknown ? unknown->count : 0, 0);
    missing_count(words->missing, 0, t.trace.frame_count - (t.trace.unknown_count - words->missing->missing));
    if (t.trace.allowance.refused)
        fprintf(stderr,
                "warning: %s: %" PRIu64
                " line%s left as before: the mapping makes more of each, or of all, than those of "
                "programs do\n",
                path, t.trace.allowance.refused, t.trace.allowance.refused == 1 ? " was" : "s were");
    sl_jvm_trace_end(&t.trace);
    sl_buf_free(&t.out);
    free(unknown);
    return status;
}

int symbolicate_trace(const char *path, const char *const *mappings, size_t mapping_count,
                      const struct trace_words *words)
{
    struct sl_error error = {0};
    struct sl_jvm_signatures signatures = {.arena = {0}};
    struct mapping *made = calloc(mapping_count, sizeof *made);
    const struct sl_jvm_mapper **items = calloc(mapping_count, sizeof *items);
    int status = made && items ? 0 : report_no_memory();
    for (size_t i = 0; i < mapping_count && !status; i++) {
        enum sl_code code =
            mapping_read(mappings[i], &made[i], words->verbose || words->regex ? &signatures : NULL, &error);
        items[i] = &made[i].mapper;
        missing_place(words->missing, sl_str(mappings[i]));
        status = code == SL_OK ? 0 : report_file(mappings[i], code, &error);
    }
    if (!status)
        status = trace_by(&(struct sl_jvm_mappers){items, mapping_count, false}, &signatures, path, words);
    sl_jvm_signatures_free(&signatures);
    for (size_t i = 0; made && i < mapping_count; i++) {
        sl_buf_free(&made[i].table);
        sl_unmap(&made[i].file);
    }
    free(items);
    free(made);
    return status;
}
