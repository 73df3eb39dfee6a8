/* Converts executables to symbfiles of limited size, the parts of an upload, in unlinked temporary files: the number of parts must be known
 * before the first is sent. */
#include "cli/members.h"
#include "cli/push_symbols/push.h"
#include "cli/split_files.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dwarf/dwarf.h"

const char *const push_kind_names[PUSH_KINDS] = {"ranges", "returnpads"};

/* Reports an error of the file `path` (may be NULL); returns `status`. */
static int push_parts_fail(int status, const char *path, const char *why)
{
    fprintf(stderr, "error: %s%s%s\n", path ? path : "", path ? ": " : "", why);
    return status;
}

/* ---- parts ---- */
/* Writes records into the parts of one kind, one part after the other: the last of `set->parts` is open for writing. */
struct part_writer {
    struct push_set *set;
    struct sl_symbfile_writer *writer; /* of the open part; NULL: none */
    uint64_t chunk_size;
    struct sl_budget *budget;
};

/* Called by the symbfile writer: appends bytes to the file of the open part. */
static enum sl_code write_part(void *arg, struct sl_bytes bytes, struct sl_error *error)
{
    struct part_writer *w = arg;
    struct push_part *part = &w->set->parts[w->set->count - 1];
    part->size += bytes.size;
    return sl_write_all(part->fd, bytes)
               ? SL_OK
               : sl_fail(error, SL_INTERNAL, "cannot write a temporary file: %s", strerror(errno));
}

/* Completes the symbfile of the open part, if there is one, and adds its records to those of the set. */
static enum sl_code close_part(struct part_writer *w, struct sl_error *error)
{
    if (!w->writer)
        return SL_OK;
    enum sl_code code = sl_symbfile_writer_finish(w->writer, error);
    struct push_part *part = &w->set->parts[w->set->count - 1];
    part->records = sl_symbfile_writer_records(w->writer);
    w->set->records += part->records;
    sl_symbfile_writer_free(w->writer);
    w->writer = NULL;
    return code;
}

/* Makes sure that a part is open for the next record: starts a new one if none is open, or the open one has reached chunk_size. */
static enum sl_code open_part(struct part_writer *w, struct sl_error *error)
{
    if (w->writer && sl_symbfile_writer_size(w->writer) < w->chunk_size)
        return SL_OK;
    enum sl_code code = close_part(w, error);
    if (code != SL_OK)
        return code;
    struct push_part *grown = realloc(w->set->parts, (w->set->count + 1) * sizeof *grown);
    if (!grown)
        return sl_fail(error, SL_BUSY, "out of memory");
    w->set->parts = grown;
    grown[w->set->count] = (struct push_part){.fd = temporary_file()};
    if (grown[w->set->count].fd < 0)
        return sl_fail(error, SL_INTERNAL, "cannot create a temporary file: %s", strerror(errno));
    w->set->count++;
    w->writer = sl_symbfile_writer_new(write_part, w, w->budget);
    return w->writer ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* ---- hashes ---- */
struct part_hashing {
    struct push_set *set;
    atomic_bool failed;
};

/* Computes the SHA-256 of part `index`. Called on several threads at once, each with parts of its own. */
static void hash_part(void *arg, size_t index, unsigned worker)
{
    (void)worker;
    struct part_hashing *h = arg;
    struct push_part *part = &h->set->parts[index];
    struct sl_mapping mapping;
    unsigned size;
    if (sl_map_fd(part->fd, &mapping, NULL) != SL_OK) {
        h->failed = true;
        return;
    }
    if (EVP_Digest(mapping.bytes.data, mapping.bytes.size, part->sha256, &size, EVP_sha256(), NULL) != 1)
        h->failed = true;
    sl_unmap(&mapping);
}

bool push_hash(struct push_set *set)
{
    struct part_hashing h = {.set = set};
    sl_parallel_run(threads_parallel(0), set->count, hash_part, &h);
    struct sl_buf hashes = {0}, hex = {0};
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    for (size_t i = 0; i < set->count; i++)
        sl_buf_add(&hashes, set->parts[i].sha256, sizeof set->parts[i].sha256);
    if (hashes.failed || EVP_Digest(hashes.data, hashes.size, digest, &size, EVP_sha256(), NULL) != 1)
        h.failed = true;
    sl_buf_hex(&hex, digest, size);
    if (hex.failed)
        h.failed = true;
    snprintf(set->sha256, sizeof set->sha256, SL_STR_FMT, SL_STR_ARG(sl_buf_view(&hex)));
    sl_buf_free(&hashes);
    sl_buf_free(&hex);
    return !h.failed;
}

void push_job_free(struct push_job *job)
{
    for (int kind = 0; kind < PUSH_KINDS; kind++) {
        for (size_t i = 0; i < job->sets[kind].count; i++)
            close(job->sets[kind].parts[i].fd);
        free(job->sets[kind].parts);
    }
}

/* ---- extraction ---- */
struct push_symbols_extraction {
    struct sl_symbfile_tree_sink trees;
    struct sl_symbfile_sink pad_sink;
    struct part_writer writers[PUSH_KINDS];
    struct sl_symbfile_pads *pads;
    const struct push_job *job;
};

/* Called for each function: `ranges` are its own range and those of its inlined calls, a tree. Writes them, and finds the return pads in
 * the function. A tree must not be split between parts, so only its first range may begin a new one. */
static enum sl_code on_tree(struct sl_symbfile_tree_sink *sink, const struct sl_symbfile_range *ranges, size_t count,
                            struct sl_error *error)
{
    struct push_symbols_extraction *x = (struct push_symbols_extraction *)sink;
    enum sl_code code = SL_OK;
    if (x->job->wanted[PUSH_RANGES]) {
        code = open_part(&x->writers[PUSH_RANGES], error);
        for (size_t i = 0; i < count && code == SL_OK; i++)
            code = sl_symbfile_write_range(x->writers[PUSH_RANGES].writer, &ranges[i], error);
    }
    if (code == SL_OK && x->job->wanted[PUSH_RETURNPADS])
        code = sl_symbfile_pads_of_tree(x->pads, ranges, count, &x->pad_sink, error);
    return code;
}

/* Called for each return pad, an address that a call returns to: writes it. */
static enum sl_code on_pad(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *pad, struct sl_error *error)
{
    struct push_symbols_extraction *x =
        (struct push_symbols_extraction *)((char *)sink - offsetof(struct push_symbols_extraction, pad_sink));
    struct part_writer *w = &x->writers[PUSH_RETURNPADS];
    enum sl_code code = open_part(w, error);
    return code == SL_OK ? sl_symbfile_write_pad(w->writer, pad, error) : code;
}

/* ---- companions of the debug file ---- */
/* A file that belongs to a debug file: its .dwp package, a .dwo file, or the supplementary file. */
struct companion {
    struct sl_mapping mapping;
    struct sl_object *object;
};

/* Opens the file `path`, which belongs to a debug file; NULL if it does not exist or is damaged. */
static struct sl_object *open_companion(struct companion *c, const char *path)
{
    if (map_file(path, &c->mapping, NULL) != SL_OK)
        return NULL;
    if (sl_object_open(c->mapping.bytes, NULL, &c->object, NULL) == SL_OK)
        return c->object;
    sl_unmap(&c->mapping);
    *c = (struct companion){0};
    return NULL;
}

/* Closes a file that belongs to a debug file; does nothing if it was not opened. */
static void close_companion(struct companion *c)
{
    if (!c->object)
        return;
    sl_object_close(c->object);
    sl_unmap(&c->mapping);
}

/* The .dwo files that were opened. */
struct dwo_files {
    const char *program; /* path of the file whose units are in them */
    pthread_mutex_t lock;
    struct companion *items;
    size_t count;
};

/* Adds an open .dwo file to those that stay open until the extraction ends. False when out of memory. Called by several threads at
 * once. */
static bool keep_dwo(struct dwo_files *files, const struct companion *file)
{
    pthread_mutex_lock(&files->lock);
    struct companion *grown = realloc(files->items, (files->count + 1) * sizeof *grown);
    if (grown) {
        files->items = grown;
        grown[files->count++] = *file;
    }
    pthread_mutex_unlock(&files->lock);
    return grown;
}

/* Called by the DWARF reader: opens the .dwo file `name` of a split unit, at the first path that has a file with the unit's id; NULL if
 * none has. */
static struct sl_object *open_dwo(void *arg, struct sl_str comp_dir, struct sl_str name, uint64_t dwo_id)
{
    struct dwo_files *files = arg;
    char path[PATH_MAX];
    for (size_t i = 0; split_dwo_path(files->program, comp_dir, name, i, path); i++) {
        struct companion file = {0};
        if (!path[0] || !open_companion(&file, path)) /* path[0] is 0: this number stands for no path here */
            continue;
        if (sl_dwarf_has_split_unit(file.object, dwo_id) && keep_dwo(files, &file))
            return file.object;
        close_companion(&file);
    }
    return NULL;
}

/* Opens the supplementary file (dwz) that `object`, the debug file at `path`, links to: at the path of the link, or where distributions
 * install such files. NULL if there is no link, or, after a warning, no file with the id in the link. */
static struct sl_object *open_alt(struct companion *c, struct sl_object *object, const char *path)
{
    struct sl_supplementary link;
    char real[PATH_MAX], candidates[3][PATH_MAX + 512];
    struct sl_buf hex = {0};
    if (!sl_object_supplementary(object, &link))
        return NULL;
    struct sl_str name = link.name;
    if (name.size > PATH_MAX || !link.id.size || !realpath(path, real))
        return NULL;
    sl_buf_hex(&hex, link.id.data, link.id.size);
    struct sl_str id = sl_buf_view(&hex), directory, base;
    char *slash = strrchr(real, '/');
    slash[1] = '\0';
    /* a relative link starts at the directory of `path`; `real` is absolute, so it has a slash */
    const char *last = memrchr(name.data, '/', name.size);
    base = last ? (struct sl_str){last + 1, name.size - (size_t)(last + 1 - name.data)} : name;
    directory = name.data[0] == '/' ? (struct sl_str){"", 0} : sl_str(real);
    snprintf(candidates[0], sizeof candidates[0], SL_STR_FMT SL_STR_FMT, SL_STR_ARG(directory), SL_STR_ARG(name));
    snprintf(candidates[1], sizeof candidates[1], "/usr/lib/debug/.dwz/" SL_STR_FMT, SL_STR_ARG(base));
    if (!build_id_path(usual_debug_directories[0], id, candidates[2]))
        *candidates[2] = '\0';
    struct sl_object *found = NULL;
    for (size_t i = 0; i < 3 && !found; i++) {
        found = open_companion(c, candidates[i]);
        if (found && !sl_str_equal(sl_object_info(found)->code_id, id)) {
            close_companion(c);
            *c = (struct companion){0};
            found = NULL;
        }
    }
    if (!found)
        fprintf(stderr, "warning: %s: supplementary debug file " SL_STR_FMT " not found; some names are missing\n",
                path, SL_STR_ARG(name));
    sl_buf_free(&hex);
    return found;
}

/* All companions of a debug file. */
struct companions {
    struct sl_companions given; /* for sl_symbfile_extract */
    struct companion package, alt;
    struct dwo_files split;
};

/* Opens the .dwp package and the supplementary file of the debug file at `path`, if they exist. .dwo files are opened when the extraction
 * asks for them. */
static void open_companions(struct companions *c, struct sl_object *object, const char *path, bool follow_alt_link)
{
    char package[4096];
    *c = (struct companions){.split = {.program = path, .lock = PTHREAD_MUTEX_INITIALIZER}};
    c->given = (struct sl_companions){.open_dwo = open_dwo, .arg = &c->split};
    if (snprintf(package, sizeof package, "%s.dwp", path) < (int)sizeof package)
        c->given.dwp = open_companion(&c->package, package);
    if (follow_alt_link)
        c->given.dwz = open_alt(&c->alt, object, path);
}

/* Closes the companions of a debug file, also the .dwo files that the extraction has opened. */
static void close_companions(struct companions *c)
{
    close_companion(&c->package);
    close_companion(&c->alt);
    for (size_t i = 0; i < c->split.count; i++)
        close_companion(&c->split.items[i]);
    free(c->split.items);
}

/* ---- an executable ---- */
/* An opened executable or debug file. */
struct extraction_file {
    const char *path;
    char own_path[4096]; /* storage for `path` if it has no other owner */
    struct sl_mapping mapping;
    struct sl_object *object;
    struct sl_symbfile_image *image;
};

/* Opens a file, also a compressed one or a member of an archive. Returns a push_status; problems are reported. */
static int push_parts_open_file(struct extraction_file *f, const char *path)
{
    struct sl_error error = {0};
    *f = (struct extraction_file){.path = path};
    char *member = NULL;
    enum sl_code code =
        member_is_named(path) ? member_map(path, &f->mapping, NULL, &error) : sl_map_file(path, &f->mapping, &error);
    if (code == SL_OK)
        code = member_unpack(path, &f->mapping, &member, &error);
    free(member);
    if (code != SL_OK)
        return push_parts_fail(PUSH_NOTHING, path, error.message[0] ? error.message : sl_code_name(code));
    if (sl_object_open(f->mapping.bytes, NULL, &f->object, &error) != SL_OK ||
        sl_symbfile_image_open(f->object, &f->image, &error) != SL_OK)
        return push_parts_fail(PUSH_NOTHING, path, error.message);
    return PUSH_OK;
}

static void close_file(struct extraction_file *f)
{
    sl_symbfile_image_close(f->image);
    sl_object_close(f->object);
    sl_unmap(&f->mapping);
}

/* Prints on stderr how many ranges each source of symbols (such as DWARF and the symbol table) has contributed. */
static void report_sources(const struct sl_symbfile_extraction *e)
{
    for (int i = 0; i < SL_SOURCES; i++) {
        if (e->sources[i].absent)
            continue;
        fprintf(stderr, "%s: %s%llu ranges, %llu of them used\n", sl_symbfile_source_names[i],
                e->sources[i].failed ? "unreadable, " : "", (unsigned long long)e->sources[i].produced,
                (unsigned long long)e->sources[i].accepted);
    }
    if (e->skipped_units)
        fprintf(stderr, "skipped %llu unreadable compilation units\n", (unsigned long long)e->skipped_units);
}

/* Extracts the symbols of the file `debug` and completes the last part of each kind. With --verbose, reports where the symbols came from.
 * */
static enum sl_code run_extraction(struct push_symbols_extraction *x, const struct extraction_file *debug,
                                   const struct push_source *source, struct sl_error *error)
{
    struct sl_symbfile_extraction result;
    struct companions companions;
    open_companions(&companions, debug->object, debug->path, source->follow_alt_link);
    enum sl_code code = sl_symbfile_extract(debug->object, debug->image, &companions.given, threads_parallel(0),
                                            &x->trees, &result, error);
    close_companions(&companions);
    for (int kind = 0; kind < PUSH_KINDS && code == SL_OK; kind++)
        code = close_part(&x->writers[kind], error);
    if (code == SL_OK && source->verbose)
        report_sources(&result);
    return code;
}

/* Extracts the symbols of `debug` into the parts of `job`; `debug` is `executable` itself unless that is stripped. Return pads are found in
 * the code, which only the executable has. Returns a push_status, PUSH_NOTHING if there are no symbols; problems are reported. */
static int extract_parts(const struct push_source *source, const struct extraction_file *executable,
                         const struct extraction_file *debug, struct push_job *job)
{
    struct sl_error error = {0};
    struct sl_budget *budget = sl_object_budget(debug->object);
    if (executable != debug) /* the work budget is by file size: finding return pads reads the executable, too */
        sl_budget_grow(budget, executable->mapping.bytes.size);
    struct push_symbols_extraction x = {
        .trees = {.tree = on_tree},
        .pad_sink = {.pad = on_pad},
        .pads = sl_symbfile_pads_new(executable->image, budget),
        .job = job,
    };
    for (int kind = 0; kind < PUSH_KINDS; kind++)
        x.writers[kind] =
            (struct part_writer){.set = &job->sets[kind], .chunk_size = job->chunk_size, .budget = budget};
    enum sl_code code = x.pads ? run_extraction(&x, debug, source, &error) : sl_fail(&error, SL_BUSY, "out of memory");
    if (code == SL_OK && job->wanted[PUSH_RETURNPADS] && !sl_symbfile_pads_supported(x.pads))
        fprintf(stderr, "warning: %s: cannot find return pads on this architecture\n", executable->path);
    for (int kind = 0; kind < PUSH_KINDS; kind++)
        sl_symbfile_writer_free(x.writers[kind].writer);
    sl_symbfile_pads_free(x.pads);
    if (code != SL_OK)
        return push_parts_fail(code == SL_MALFORMED ? PUSH_NOTHING : PUSH_FAILED, debug->path, error.message);
    if (!job->sets[PUSH_RANGES].records && !job->sets[PUSH_RETURNPADS].records)
        return push_parts_fail(PUSH_NOTHING, debug->path,
                               "no symbols found; if the file is stripped, pass the file with symbols with -d");
    return PUSH_OK;
}

/* Refuses a debug file that belongs to another executable: both have a build id, these differ, and --force is not given. Returns a
 * push_status. */
static int check_build_ids(const struct push_source *source, const struct extraction_file *executable,
                           const struct extraction_file *debug)
{
    struct sl_str a = sl_object_info(executable->object)->code_id, b = sl_object_info(debug->object)->code_id;
    if (source->force || !a.size || !b.size || sl_str_equal(a, b))
        return PUSH_OK;
    return push_parts_fail(PUSH_NOTHING, debug->path,
                           "its build id differs from the executable's; use it anyway with --force");
}

/* Fills `job` with what the service needs to know of the executable. A build id that is too long is left out. */
static void identify(const struct extraction_file *executable, const char *name, struct push_job *job)
{
    const struct sl_object_info *info = sl_object_info(executable->object);
    job->file_id = sl_file_id_compute(executable->mapping.bytes);
    if (info->code_id.size < sizeof job->build_id)
        snprintf(job->build_id, sizeof job->build_id, SL_STR_FMT, SL_STR_ARG(info->code_id));
    snprintf(job->arch, sizeof job->arch, "%s", info->arch == SL_ARCH_UNKNOWN ? "" : sl_arch_name(info->arch));
    job->code_file = name;
    job->has_base = sl_symbfile_image_base(executable->image, &job->base);
}

/* Warns that an executable is stripped and that its debug file was not found, with the ids by which it was searched. */
static void warn_stripped(const struct extraction_file *executable)
{
    const struct sl_object_info *info = sl_object_info(executable->object);
    fprintf(stderr, "warning: %s: stripped, and its debug file was not found (build id " SL_STR_FMT, executable->path,
            SL_STR_ARG(info->code_id.size ? info->code_id : SL_STR("none")));
    fprintf(stderr, ", debug link " SL_STR_FMT "); sending only names from the symbol table, no lines\n",
            SL_STR_ARG(info->debug_link.size ? info->debug_link : SL_STR("none")));
}

/* Opens the file of --debug-file, or else searches the debug file of an executable without debug information. `debug` stays empty if the
 * executable's own symbols are used. Returns a push_status; problems are reported. */
static int open_debug(const struct push_source *source, const struct extraction_file *executable,
                      struct extraction_file *debug)
{
    if (source->debug_file) {
        int status = push_parts_open_file(debug, source->debug_file);
        return status == PUSH_OK ? check_build_ids(source, executable, debug) : status;
    }
    struct debug_file found;
    int status = PUSH_OK;
    if (sl_object_info(executable->object)->features.has_debug_info)
        return PUSH_OK;
    if (debug_file_find(executable->object, source->executable, source->debug_directories, NULL, &found, NULL)) {
        status = push_parts_open_file(debug, found.path);
        if (source->verbose)
            fprintf(stderr, "%s: symbols of %s\n", source->name, found.path);
        /* debug->path is found.path, which debug_file_close frees: copy it */
        snprintf(debug->own_path, sizeof debug->own_path, "%s", found.path);
        debug->path = debug->own_path;
    } else if (!sl_object_section(executable->object, "gopclntab", &(struct sl_bytes){0}, NULL)) {
        warn_stripped(executable); /* not for Go: its functions and lines are in gopclntab, also in stripped programs */
    }
    debug_file_close(&found);
    return status;
}

int push_extract(const struct push_source *source, struct push_job *job)
{
    struct extraction_file executable, debug = {0};
    int status = push_parts_open_file(&executable, source->executable);
    if (status == PUSH_OK)
        status = open_debug(source, &executable, &debug);
    if (status == PUSH_OK) {
        identify(&executable, source->name, job);
        status = extract_parts(source, &executable, debug.object ? &debug : &executable, job);
    }
    close_file(&debug);
    close_file(&executable);
    return status;
}

/* ---- existing symbfiles ---- */
/* Copying the records of an existing symbfile into parts. */
struct symbfile_copy {
    struct sl_symbfile_sink sink;
    struct part_writer writer;
};

/* Copies a range. A new part begins only at depth 0, a function, so that its inlined calls stay in the same part. */
static enum sl_code copy_range(struct sl_symbfile_sink *sink, const struct sl_symbfile_range *range,
                               struct sl_error *error)
{
    struct part_writer *w = &((struct symbfile_copy *)sink)->writer;
    enum sl_code code = range->depth == 0 || !w->writer ? open_part(w, error) : SL_OK;
    return code == SL_OK ? sl_symbfile_write_range(w->writer, range, error) : code;
}

/* Copies a return pad; a new part may begin at any return pad. */
static enum sl_code copy_pad(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *pad, struct sl_error *error)
{
    struct part_writer *w = &((struct symbfile_copy *)sink)->writer;
    enum sl_code code = open_part(w, error);
    return code == SL_OK ? sl_symbfile_write_pad(w->writer, pad, error) : code;
}

int push_reread(const char *path, enum push_kind kind, struct push_job *job)
{
    struct symbfile_copy r = {
        .sink = {.range = copy_range, .pad = copy_pad},
        .writer = {.set = &job->sets[kind], .chunk_size = job->chunk_size},
    };
    struct sl_budget budget;
    struct sl_mapping mapping;
    struct sl_error error = {0};
    enum sl_code code = sl_map_file(path, &mapping, &error);
    if (code != SL_OK)
        return push_parts_fail(PUSH_NOTHING, path, error.message[0] ? error.message : sl_code_name(code));
    sl_budget_init(&budget, mapping.bytes.size);
    r.writer.budget = &budget;
    code = sl_symbfile_read(mapping.bytes, &r.sink, &error);
    if (code == SL_OK && !r.writer.writer) /* a file without records makes one empty part */
        code = open_part(&r.writer, &error);
    if (code == SL_OK)
        code = close_part(&r.writer, &error);
    sl_symbfile_writer_free(r.writer.writer);
    sl_unmap(&mapping);
    job->wanted[kind] = true;
    return code == SL_OK ? PUSH_OK
                         : push_parts_fail(code == SL_MALFORMED ? PUSH_NOTHING : PUSH_FAILED, path, error.message);
}

/* ---- saving ---- */
int push_save(const struct push_job *job, const char *directory)
{
    char id[SL_FILE_ID_HEX], path[4096];
    struct stat st;
    if (mkdir(directory, 0777) != 0 && (errno != EEXIST || stat(directory, &st) != 0 || !S_ISDIR(st.st_mode)))
        return push_parts_fail(PUSH_FAILED, directory, strerror(errno == EEXIST ? ENOTDIR : errno));
    sl_file_id_format_hex(&job->file_id, id);
    for (int kind = 0; kind < PUSH_KINDS; kind++) {
        struct sl_mapping mapping;
        struct sl_error error = {0};
        if (!job->sets[kind].count)
            continue;
        snprintf(path, sizeof path, "%s/%s.%s.symbfile", directory, id, push_kind_names[kind]);
        /* the first part is the only one: the chunk size was UINT64_MAX */
        if (sl_map_fd(job->sets[kind].parts[0].fd, &mapping, &error) != SL_OK)
            return push_parts_fail(PUSH_FAILED, path, error.message);
        enum sl_code code = output_file_put(path, mapping.bytes, &error);
        sl_unmap(&mapping);
        if (code != SL_OK)
            return push_parts_fail(PUSH_FAILED, NULL, error.message); /* NULL: the message names the path */
        printf("%s\n", path);
    }
    return PUSH_OK;
}
