/* `symloom sort`: copies debug files of any kind into a directory with the layout `unified`, like symsorter. */
#include "cli/sort/sort.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/json_write.h"

static const struct option_spec specs[] = {
    {"output", 'o', OPTION_VALUE, false, "DIR", "Write to this directory; create it if missing"},
    {"prefix", 'p', OPTION_VALUE, false, "NAME", "Write to this subdirectory"},
    {"bundle-id", 'b', OPTION_VALUE, false, "ID", "Record all files as one bundle with this name"},
    {"multiple-bundles", 0, OPTION_FLAG, false, NULL, "Record each INPUT as a bundle, named after its file"},
    {"with-sources", 0, OPTION_FLAG, false, NULL, "Also write source bundles of the sources found here"},
    {"compress", 'z', OPTION_FLAG, true, NULL, "Compress with zstd: -z level 3, -zz 10, -zzz 19, more 22"},
    {"level", 0, OPTION_VALUE, false, "N", "Compress with this zstd level, 1 to 22"},
    {"ignore-errors", 'I', OPTION_FLAG, false, NULL, "Report broken files and continue"},
    {"force", 'f', OPTION_FLAG, false, NULL, "Replace existing files that differ"},
    {"dry-run", 'n', OPTION_FLAG, false, NULL, "List what would be sorted; write nothing"},
    {"json", 0, OPTION_FLAG, false, NULL, "Print one JSON object per line"},
    {"jobs", 'j', OPTION_VALUE, false, "N", "Use N threads (default: all cores)"},
    {"quiet", 'q', OPTION_FLAG, true, NULL, "Do not list files"},
    {"verbose", 'v', OPTION_FLAG, true, NULL, "Also list files that are not debug files"},
    {"progress", 0, OPTION_VALUE, false, "auto|plain|json|none", "Choose how to show progress on standard error"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct sort_totals {
    size_t sorted, bundles, skipped;
};

/* ---- bundle ids ---- */

/* Returns a copy of the text as a bundle id: each run of characters other than [A-Za-z0-9.,+-] becomes one `_`, and there is none at either
 * end. NULL when out of memory. */
static char *clean_bundle_id(const char *text)
{
    size_t size = 0;
    char *id = malloc(strlen(text) + 1);
    for (; id && *text; text++) {
        bool good = (*text >= 'A' && *text <= 'Z') || (*text >= 'a' && *text <= 'z') ||
                    (*text >= '0' && *text <= '9') || strchr(".,+-", *text);
        if (good)
            id[size++] = *text;
        else if (size && id[size - 1] != '_')
            id[size++] = '_';
    }
    while (id && size && id[size - 1] == '_')
        size--;
    if (id)
        id[size] = '\0';
    return id;
}

/* True if the id cannot be the name of a file. */
static bool is_unusable_name(const char *id)
{
    return !*id || strcmp(id, ".") == 0 || strcmp(id, "..") == 0;
}

/* Returns the bundle id for an input, from its file name; NULL when out of memory. */
static char *bundle_id_of_path(const char *path)
{
    struct sl_str whole = sl_str(path);
    while (whole.size > 1 && whole.data[whole.size - 1] == '/')
        whole.size--;
    struct sl_str last = path_file_name(whole);
    char *name = strndup(last.data, last.size), *id = name ? clean_bundle_id(name) : NULL;
    free(name);
    return id;
}

/* Shows in the progress line that the objects of an input file are being written, or, if `done`, counts the file as finished. */
static void show_file_progress(struct sort *s, const struct sort_file *file, bool done)
{
    struct sl_str name = path_file_name(sl_str(file->path));
    if (done)
        progress_item(&s->progress, name.data, file->size);
    else
        progress_set_item(&s->progress, name.data, file->size);
}

/* ---- reading and writing ---- */

/* True if memory ran out, so that files, or objects in them, are missing in the lists. */
static bool lacks_memory(const struct sort *s)
{
    bool failed = s->failed;
    for (size_t i = 0; i < s->file_count; i++)
        failed = failed || s->files[i].failed;
    return failed;
}

/* Called on several threads: finds the debug files in input file `index`. */
static void read_work(void *arg, size_t index, unsigned worker)
{
    struct sort *s = arg;
    sort_inspect(&s->files[index]);
}

/* Among the objects with the same target, marks the first in the order of paths as the one to be written, and sets `leader` of the others
 * to it. False when out of memory. */
static bool find_first(struct sort *s)
{
    struct sl_map seen = {0};
    bool ok = true;
    for (size_t i = 0; i < s->file_count; i++)
        for (size_t k = 0; k < s->files[i].piece_count && ok; k++) {
            struct sort_piece *piece = &s->files[i].pieces[k];
            if (!piece->target)
                continue;
            void **slot = sl_map_find_or_add(&seen, sl_str(piece->target), &piece->first);
            ok = slot != NULL;
            if (ok && piece->first)
                *slot = piece;
            piece->leader = ok && !piece->first ? *slot : NULL;
        }
    sl_map_free(&seen);
    return ok;
}

struct sort_pass {
    struct sort *s;
    struct sort_file *file;
    bool first; /* true: write the objects that are the first with their target; false: compare the others with these */
};

/* Called for each object of a file. In the first pass (p->first) writes it if it is the first with its target; in the second pass handles
 * the others: sort_write_piece finds the file of the first one at their target, and compares it with them. */
static void write_or_compare(void *arg, struct sort_piece *piece, struct sl_bytes bytes)
{
    struct sort_pass *p = arg;
    struct sort *s = p->s;
    unsigned workers = sl_parallel_workers(s->parallel);
    /* a file with more than one thread's share of all bytes: the other threads end before it is compressed, so let them help; objects
     * below 16 MiB are compressed by one thread anyway */
    bool large = p->file->size > s->total / workers && bytes.size > (16u << 20);
    if (piece->first == p->first)
        sort_write_piece(s, p->file, piece, bytes, large ? workers : 0);
}

/* True if the file has an object that is the first with its target, or, if `first` is false, one that is not: only then it is opened. */
static bool has_pieces(const struct sort_file *file, bool first)
{
    for (size_t i = 0; i < file->piece_count; i++)
        if (file->pieces[i].target && file->pieces[i].first == first)
            return true;
    return false;
}

/* In the first pass, writes those objects of a file that are the first with their target; in the second pass (`first` is false) compares
 * the others with these. `index` is that in s->by_size. Every file is shown as progress once, in the first pass. */
static void run_pass(struct sort *s, size_t index, bool first)
{
    struct sort_pass p = {s, &s->files[s->by_size[index]], first};
    if (first)
        show_file_progress(s, p.file, false);
    if (has_pieces(p.file, first))
        sort_for_each(p.file, write_or_compare, &p);
    if (first)
        show_file_progress(s, p.file, true);
}

static void run_first_pass(void *arg, size_t index, unsigned worker)
{
    run_pass(arg, index, true);
}

static void run_second_pass(void *arg, size_t index, unsigned worker)
{
    run_pass(arg, index, false);
}

/* Compares two indices of files for qsort_r by the files' size, the largest first, so that no thread begins with a large file when all
 * others are done. */
static int larger_first(const void *a, const void *b, void *arg)
{
    const struct sort_file *files = arg, *x = &files[*(const size_t *)a], *y = &files[*(const size_t *)b];
    return x->size != y->size ? (x->size < y->size) - (x->size > y->size) : (x > y) - (x < y);
}

/* Writes the objects of the files from index `from` on. The first pass writes one object for each target; the second compares the other
 * objects with the files that are then complete. False when out of memory. */
static bool write_pieces(struct sort *s, size_t from)
{
    size_t count = s->file_count - from;
    free(s->by_size);
    s->by_size = calloc(count + 1, sizeof *s->by_size);
    if (!s->by_size || !find_first(s))
        return false;
    for (size_t i = 0; i < count; i++)
        s->by_size[i] = from + i;
    qsort_r(s->by_size, count, sizeof *s->by_size, larger_first, s->files);
    progress_expect(&s->progress, count);
    sl_parallel_run(s->parallel, count, run_first_pass, s);
    sl_parallel_run(s->parallel, count, run_second_pass, s);
    progress_end(&s->progress);
    return true;
}

/* ---- reports ---- */

/* Prints what was done with an object as JSON, on one line, with null for what is unknown. */
static void print_json_line(const struct sort *s, const struct sort_file *file, const struct sort_piece *piece)
{
    static const char *const actions[] = {"written", "exists", "duplicate", "skipped", "error"};
    struct sl_buf text = {0};
    struct sl_json_writer w = sl_json_writer(&text);
    char path[4200] = "";
    if (piece->target)
        snprintf(path, sizeof path, "%s/%s", s->root, piece->target);
    struct sl_str base = path_file_name(sl_str(file->path));
    /* an object has the name of the ZIP member it is in, or else of its file */
    bool member = !sl_str_equal(base, sl_str(piece->name));
    const char *const members[][2] = {{"input", file->path},
                                      {"member", member ? piece->name : NULL},
                                      {"id", piece->id},
                                      {"kind", piece->kind},
                                      {"arch", piece->arch},
                                      {"format", piece->format},
                                      {"path", *path ? path : NULL},
                                      {"action", actions[piece->action]},
                                      {"reason", piece->reason}};
    sl_json_begin_object(&w);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        sl_json_member_or_null(&w, members[i][0], sl_str(members[i][1]));
    }
    sl_json_end_object(&w);
    sl_buf_u8(&text, '\n');
    output_write(sl_buf_view(&text));
    sl_buf_free(&text);
}

/* Prints where an object was written: "app.debug (dbg, x86_64) -> symbols/67/e9../debuginfo". */
static void print_line(const struct sort *s, const struct sort_piece *piece)
{
    struct sl_buf text = {0};
    output_put_safe(&text, sl_str(piece->name));
    sl_buf_printf(&text, " (%s, %s) -> ", piece->kind, piece->arch);
    output_put_safe(&text, sl_str(s->root));
    sl_buf_printf(&text, "/%s\n", piece->target);
    output_write(sl_buf_view(&text));
    sl_buf_free(&text);
}

/* Reports on stderr why an object was not written; nothing if it was, or, without --verbose, if it is no debug file. Counts errors. */
static void print_problem(struct sort *s, const struct sort_piece *piece)
{
    struct sl_buf name = {0};
    output_put_safe(&name, sl_str(piece->name));
    struct sl_str shown = sl_buf_view(&name);
    if (piece->action == SORT_ERROR && s->ignore_errors)
        print_note("error: ignored error %s (" SL_STR_FMT ")\n", piece->reason, SL_STR_ARG(shown));
    else if (piece->action == SORT_ERROR)
        print_note("error: failed to process file " SL_STR_FMT "\n  caused by: %s\n", SL_STR_ARG(shown), piece->reason);
    else if (piece->action == SORT_DUPLICATE)
        print_note("WARNING: File %s/%s already exists, you seem to have duplicate debug files for ID "
                   "%s.\nSkipping " SL_STR_FMT ".\n",
                   s->root, piece->target, piece->id, SL_STR_ARG(shown));
    else if (piece->action == SORT_SKIPPED && s->verbose)
        print_note("Skipped " SL_STR_FMT ": %s\n", SL_STR_ARG(shown),
                   piece->reason ? piece->reason : "not a debug file");
    s->errors += piece->action == SORT_ERROR;
    sl_buf_free(&name);
}

/* Reports the objects of the files from index `from` on, in the order of the paths, whatever thread was faster, and adds them to the
 * totals. */
static void report_pieces(struct sort *s, size_t from, struct sort_totals *totals)
{
    for (size_t i = from; i < s->file_count; i++)
        for (size_t k = 0; k < s->files[i].piece_count; k++) {
            const struct sort_piece *piece = &s->files[i].pieces[k];
            bool sorted = piece->action == SORT_WRITTEN || piece->action == SORT_EXISTS;
            totals->sorted += sorted;
            totals->skipped += piece->action == SORT_SKIPPED;
            if (s->json && (piece->action != SORT_SKIPPED || s->verbose))
                print_json_line(s, &s->files[i], piece);
            else if (sorted && !s->json && !s->quiet)
                print_line(s, piece);
            print_problem(s, piece);
        }
    output_flush();
}

/* Prints a line that says what follows; not with --quiet or --json. */
static void print_heading(const struct sort *s, const char *text)
{
    if (s->quiet || s->json)
        return;
    output_write(sl_str(text));
    output_write(SL_STR("\n"));
}

/* ---- a bundle ---- */

static int sort_compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Writes `bundles/<id>`, the list of the ids that were sorted; an id occurs once for each object that has it. Returns the exit status:
 *
 *     {"name":"app-1.0","timestamp":"2026-01-31T12:00:00Z","debug_ids":["67e9247c..","67e9247c.."]} */
static int write_bundle(struct sort *s)
{
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < s->file_count; i++)
        capacity += s->files[i].piece_count;
    const char **ids = calloc(capacity + 1, sizeof *ids);
    if (!ids)
        return report_no_memory();
    for (size_t i = 0; i < s->file_count; i++)
        for (size_t k = 0; k < s->files[i].piece_count; k++)
            if (s->files[i].pieces[k].target && s->files[i].pieces[k].action != SORT_ERROR)
                ids[count++] = s->files[i].pieces[k].id;
    qsort(ids, count, sizeof *ids, sort_compare_ids);
    char stamp[32], path[4096];
    time_t now = time(NULL);
    struct tm tm;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    struct sl_buf text = {0};
    struct sl_json_writer w = sl_json_writer(&text);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "name", sl_str(s->bundle_id));
    sl_json_member_str(&w, "timestamp", sl_str(stamp));
    sl_json_member_array(&w, "debug_ids");
    for (size_t i = 0; i < count; i++)
        sl_json_put_str(&w, sl_str(ids[i]));
    sl_json_end_array(&w);
    sl_json_end_object(&w);
    struct sl_error error = {0};
    snprintf(path, sizeof path, "bundles/%s", s->bundle_id);
    int status =
        sort_write_small(s, path, sl_buf_view(&text), &error) == SL_OK ? 0 : report_error(1, error.message, NULL);
    sl_buf_free(&text);
    free(ids);
    return status;
}

/* Frees the files, and empties the list for the next bundle. */
static void free_files(struct sort *s)
{
    for (size_t i = 0; i < s->file_count; i++) {
        sl_buf_free(&s->files[i].made);
        free(s->files[i].pieces);
        sl_arena_free(&s->files[i].arena);
    }
    free(s->files);
    free(s->by_size);
    sl_arena_free(&s->arena);
    s->files = NULL;
    s->by_size = NULL;
    s->file_count = s->file_capacity = 0;
    s->total = 0;
}

/* Sorts everything below the inputs; with a bundle id, also lists it in bundles/<id>. Returns the exit status; objects that could not be
 * sorted are only counted (s->errors). */
static int sort_inputs(struct sort *s, char *const *inputs, size_t count, struct sort_totals *totals)
{
    print_heading(s, "Sorting debug information files");
    output_flush();
    progress_begin(&s->progress, s->o, "sorting");
    for (size_t i = 0; i < count; i++)
        sort_walk(s, inputs[i]);
    progress_set_item(&s->progress, inputs[0], 0); /* shown while all files are read */
    sl_parallel_run(s->parallel, s->file_count, read_work, s);
    bool ok = !lacks_memory(s) && write_pieces(s, 0);
    if (ok)
        report_pieces(s, 0, totals);
    if (ok && s->with_sources) {
        size_t from = s->file_count;
        print_heading(s, "Creating source bundles");
        totals->bundles += sort_sources(s);
        ok = !lacks_memory(s) && write_pieces(s, from);
        if (ok)
            report_pieces(s, from, totals);
    }
    int status = ok ? 0 : report_no_memory();
    if (status == 0 && s->bundle_id && !s->dry_run) {
        print_heading(s, "Writing bundle meta data");
        status = write_bundle(s);
    }
    free_files(s);
    return status;
}

/* Sorts each input as a bundle of its own, named after the input (--multiple-bundles). Returns the exit status. */
static int sort_bundles(struct sort *s, struct sort_totals *totals)
{
    int status = 0;
    for (size_t i = 0; i < s->o->argument_count && status == 0; i++) {
        char *id = bundle_id_of_path(s->o->arguments[i]), title[4200];
        if (!id || is_unusable_name(id)) {
            free(id);
            return report_error(2, "cannot derive a bundle id from this name; pass --bundle-id", s->o->arguments[i]);
        }
        snprintf(title, sizeof title, "[bundle: %s]", id);
        print_heading(s, title);
        s->bundle_id = id;
        status = sort_inputs(s, &s->o->arguments[i], 1, totals);
        free(id);
    }
    return status;
}

/* Prints how many debug files were sorted, as JSON or as text, and warns if there was none. */
static void print_totals(const struct sort *s, const struct sort_totals *totals)
{
    char text[160] = "";
    if (s->json)
        snprintf(text, sizeof text, "{\"sorted\":%zu,\"source_bundles\":%zu,\"errors\":%zu}\n", totals->sorted,
                 totals->bundles, s->errors);
    else if (!s->quiet && s->with_sources)
        snprintf(text, sizeof text, "\nDone.\nSorted %zu debug files\nCreated %zu source bundles\n", totals->sorted,
                 totals->bundles);
    else if (!s->quiet)
        snprintf(text, sizeof text, "\nDone.\nSorted %zu debug files\n", totals->sorted);
    output_write(sl_str(text));
    if (totals->sorted || s->errors || s->quiet)
        return;
    output_flush();
    print_note("warning: no debug files found: %zu file%s of other kinds; -v lists them\n", totals->skipped,
               totals->skipped == 1 ? "" : "s");
}

/* ---- the command ---- */

/* Reads the options into `s`. Returns 0, or an exit status after a report. */
static int sort_read_options(struct sort *s)
{
    const struct options *o = s->o;
    static const int levels[] = {0, 3, 10, 19, 22};
    size_t times = option_count(o, "compress");
    uint64_t level = 0, jobs = 0;
    const char *output = option_value(o, "output", NULL), *prefix = option_value(o, "prefix", NULL);
    const char *id = option_value(o, "bundle-id", NULL);
    if (!output || !*output)
        return options_wrong(o, "no output directory given (-o DIR)");
    if (!o->argument_count)
        return options_wrong(o, "no file or directory given");
    if (id && option_given(o, "multiple-bundles"))
        return options_wrong(o, "--bundle-id and --multiple-bundles cannot be combined");
    if (!option_number(o, "level", &level) || !option_number(o, "jobs", &jobs))
        return 2;
    if (option_given(o, "level") && (level < 1 || level > 22))
        return options_wrong(o, "--level must be a number from 1 to 22");
    char *clean = id ? clean_bundle_id(id) : NULL;
    bool sound = !id || (clean && !is_unusable_name(id) && strcmp(clean, id) == 0); /* without characters to replace */
    free(clean);
    if (!sound)
        return options_wrong(o, "Invalid bundle id"); /* symsorter's message */
    s->bundle_id = id;
    /* -z gives level 3; each further -z a higher one, up to four */
    s->level = option_given(o, "level") ? (int)level : levels[times < 4 ? times : 4];
    s->parallel = threads_parallel((unsigned)(jobs < 64 ? jobs : 64));
    int size = snprintf(s->root, sizeof s->root, "%s%s%s", output, prefix ? "/" : "", prefix ? prefix : "");
    return size < (int)sizeof s->root ? 0 : report_error(1, "path too long", output);
}

/* Runs `symloom sort`: sorts all inputs or, with --multiple-bundles, each as a bundle of its own. Files that could not be sorted do not
 * stop it, but give status 1 unless --ignore-errors is given. */
static int sort_run(const struct options *o)
{
    struct sort s = {.o = o,
                     .dry_run = option_given(o, "dry-run"),
                     .force = option_given(o, "force"),
                     .ignore_errors = option_given(o, "ignore-errors"),
                     .quiet = option_given(o, "quiet"),
                     .json = option_given(o, "json"),
                     .verbose = option_given(o, "verbose"),
                     .with_sources = option_given(o, "with-sources")};
    struct sort_totals totals = {0};
    int status = sort_read_options(&s);
    if (status)
        return status;
    if (!s.level && !s.quiet)
        fputs("WARNING: No compression used. Consider to pass -zz.\n", stderr);
    if (!s.dry_run && (status = output_directory(option_value(o, "output", ""))) != 0)
        return status;
    status = option_given(o, "multiple-bundles") ? sort_bundles(&s, &totals)
                                                 : sort_inputs(&s, o->arguments, o->argument_count, &totals);
    if (status)
        return status;
    print_totals(&s, &totals);
    if (s.errors && !s.ignore_errors) {
        output_flush();
        fputs("\nTo skip this error, use --ignore-errors.\n", stderr);
        return 1;
    }
    return 0;
}

const struct command command_sort = {
    .name = "sort",
    .summary = "sort debug files into a directory of symbols",
    .usage = "sort -o DIR [OPTION...] INPUT...",
    .about = "Copies debug files, executables and source bundles, also out of directories and ZIP archives, "
             "into a directory that can be used as a source (layout 'unified'). Existing files are kept, so "
             "an interrupted run can be repeated.",
    .examples = "symloom sort -zz -o symbols build/ more.zip",
    .options = specs,
    .groups = {{"Most used", "output prefix compress with-sources force dry-run json jobs quiet verbose"},
               {"More", "bundle-id multiple-bundles level ignore-errors progress"}},
    .run = sort_run,
};
