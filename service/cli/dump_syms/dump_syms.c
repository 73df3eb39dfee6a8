/* `symloom dump-syms`: converts any debug file to a Breakpad symbol file. */
#include "cli/dump_syms/dump_syms.h"
#include "cli/progress.h"
#include "cli/server.h"

#include "breakpad/breakpad.h"
#include "object/debug_map.h"
#include "object/symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/files.h"

static const struct option_spec specs[] = {
    {"output", 'o', OPTION_VALUE, false, "FILE", "Write to FILE (default: standard output, -)"},
    {"store", 's', OPTION_VALUE, false, "DIR", "Write to DIR/<name>/<id>/<name>.sym"},
    {"arch", 'a', OPTION_VALUE, false, "ARCH", "Use the object of this architecture (default: this machine's)"},
    {"list-arch", 0, OPTION_FLAG, false, NULL, "List the architectures in the file"},
    {"inlines", 'd', OPTION_FLAG, true, NULL, "Write INLINE and INLINE_ORIGIN records"},
    {"i", 0, OPTION_FLAG, true, NULL, NULL},
    {"check-cfi", 0, OPTION_FLAG, false, NULL, "Fail if there is no unwind information"},
    {"no-cfi", 'c', OPTION_FLAG, true, NULL, "Do not write STACK records"},
    {"header-only", 'i', OPTION_FLAG, true, NULL, "Write only MODULE and INFO records"},
    {"name", 'n', OPTION_VALUE, false, "NAME", "Set the module name"},
    {"id", 'b', OPTION_VALUE, false, "ID", "Set the module id"},
    {"os", 0, OPTION_VALUE, false, "OS", "Set the operating system of the module"},
    {"multiple", 'm', OPTION_FLAG, true, NULL, "Mark addresses with several names with m (default)"},
    {"no-multiple", 0, OPTION_FLAG, true, NULL, "Do not mark addresses with several names"},
    {"debug-file", 'g', OPTION_VALUE, false, "PATH", "Read debug information from this file or directory"},
    {"code-file", 0, OPTION_VALUE, false, "PATH", "Read this executable along with its debug file"},
    {"unwind-functions", 0, OPTION_FLAG, false, NULL,
     "Write FUNC records for functions known only from unwind information"},
    {"prefer-public", 'x', OPTION_FLAG, true, NULL, "Prefer the symbol's name at the start of a function"},
    {"preserve-load-address", 0, OPTION_FLAG, false, NULL, "Write addresses as in the file (not relative to its base)"},
    {"debug-id", 0, OPTION_VALUE, false, "ID", "Download FILE by name and this debug id"},
    {"code-id", 0, OPTION_VALUE, false, "ID", "Download FILE by name and this code id"},
    {"symbol-server", 0, OPTION_VALUE, false, "SRV",
     "Download from srv*[DIR*]URL[;...] (default: ~/.dump_syms/config)"},
    {"config", 0, OPTION_VALUE, false, "FILE", "Read more symbol sources from this configuration file"},
    LOCATOR_OPTIONS,
    {"mapping-var", 0, OPTION_VALUE, true, "K=V", "Define a variable for --mapping-dest"},
    {"mapping-src", 0, OPTION_VALUE, true, "RE", "Rewrite source paths that match this expression"},
    {"mapping-dest", 0, OPTION_VALUE, true, "TEXT", "Replace them with this; may use {1}, {variable}, {digest}"},
    {"mapping-file", 0, OPTION_VALUE, false, "JSON", "Read variables and mappings from this file"},
    {"extra-info", 0, OPTION_VALUE, false, "'KEYWORD text'", "Add this INFO record"},
    {"no-generator", 0, OPTION_FLAG, false, NULL, "Do not write the INFO GENERATOR record"},
    {"jobs", 'j', OPTION_VALUE, false, "N", "Use N threads (default: all cores)"},
    {"pe", 0, OPTION_FLAG, true, NULL, "Ignore the PDB next to a PE file"},
    {"recursive", 'r', OPTION_FLAG, true, NULL, NULL},
    {"warnings", 'w', OPTION_FLAG, true, NULL, NULL},
    {"type", 't', OPTION_VALUE, false, "TYPE", NULL},
    {"verbose", 'v', OPTION_OPTIONAL, true, "off|error|warn|info|debug|trace",
     "Print warnings, or log at this level (-v info, -vv debug)"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

enum { MAX_STORE_PATH = 4096 };

struct dump_syms_run {
    const struct options *o;
    struct path_mapping *mapping;
    const char **paths;       /* paths of the modules, in the order of `modules` */
    const char **directories; /* directories with debug files; ends with NULL */
    struct dump_module *modules;
    struct locator *locator; /* opened when the first module is fetched */
    size_t count;
    struct output_file file;  /* --output */
    struct output_file store; /* the current module's file in the directory --store */
    bool to_stdout, to_file, to_store;
    unsigned jobs;
    struct progress progress;
};

bool dump_warns(const struct options *o)
{
    const char *level = server_verbosity(o);
    bool silent = !level || strcmp(level, "off") == 0 || strcmp(level, "error") == 0;
    return !silent || option_given(o, "warnings");
}

/* Writes text to all outputs, even if one of them fails. False if one has failed. */
static bool write_text(void *arg, struct sl_str text)
{
    struct dump_syms_run *d = arg;
    bool ok = !d->to_stdout || output_write(text);
    ok = (!d->to_file || output_file_write(&d->file, text)) && ok;
    return (!d->to_store || output_file_write(&d->store, text)) && ok;
}

/* ---- the store ---- */

/* Returns the name of the .sym file of a module in the store, without `.sym`: stores leave out the extension of a PDB
 * (`a.pdb/<id>/a.sym`). */
static struct sl_str without_pdb(struct sl_str name)
{
    bool pdb = name.size > 4 && sl_str_equal_nocase((struct sl_str){name.data + name.size - 4, 4}, SL_STR(".pdb"));
    return (struct sl_str){name.data, name.size - (pdb ? 4 : 0)};
}

/* Opens the module's file in the directory --store, `<name>/<id>/<name without .pdb>.sym`; does nothing without that option. Name and id
 * come from the debug file, so neither may lead out of the store. Returns 0, or the exit status after a report. */
static int open_store(struct dump_syms_run *d, struct sl_str module, struct sl_str id)
{
    char path[MAX_STORE_PATH];
    struct sl_error error;
    struct sl_str name = path_file_name(module);
    const char *store = option_value(d->o, "store", NULL);
    if (!store)
        return 0;
    bool plain = name.size && !sl_str_equal(name, SL_STR(".")) && !sl_str_equal(name, SL_STR("..")) &&
                 !memchr(name.data, '\0', name.size) && !memchr(id.data, '/', id.size) && id.data[0] != '.';
    if (!plain || snprintf(path, sizeof path, "%s/" SL_STR_FMT "/" SL_STR_FMT "/" SL_STR_FMT ".sym", store,
                           SL_STR_ARG(name), SL_STR_ARG(id), SL_STR_ARG(without_pdb(name))) >= (int)sizeof path)
        return report_error(1, "the name or id of the module cannot be a file name, or the path is too long",
                            name.size ? name.data : NULL);
    if (!files_make_parents(path, 0777)) {
        char text[4200];
        snprintf(text, sizeof text, "cannot create the directory of %s", path);
        return report_error(1, text, strerror(errno));
    }
    if (output_file_open(&d->store, path, &error) != SL_OK)
        return report_error(1, error.message, NULL);
    d->to_store = true;
    return 0;
}

/* ---- one module ---- */

/* Passes the symbols of an object to the writer. */
static enum sl_code add_symbols(struct sl_breakpad_writer *w, struct sl_object *object, struct sl_error *error)
{
    const struct sl_symbol *symbols;
    size_t count;
    enum sl_code code = sl_object_cached_symbols(object, &symbols, &count, error);
    if (code == SL_OK && !sl_breakpad_writer_symbols(w, symbols, count))
        code = sl_fail(error, SL_BUSY, "out of memory");
    return code;
}

/* Adds a PUBLIC record for each section of an ELF file whose name begins with .plt (.plt.sec, .plt.got): their code, call stubs, has no
 * symbols. False when out of memory. */
static bool add_plts(struct sl_breakpad_writer *w, struct sl_object *object, const char *path, struct sl_arena *arena)
{
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_section_info s;
    bool ok = true;
    for (size_t i = 0; info->format == SL_FORMAT_ELF && ok && sl_object_section_info(object, i, &s); i++) {
        char *name;
        /* an address below the load address would become negative */
        if (!sl_str_starts(s.name, SL_STR(".plt")) || s.address < info->load_address || !s.size)
            continue;
        int length = asprintf(&name, "<" SL_STR_FMT " ELF section in " SL_STR_FMT ">", SL_STR_ARG(s.name),
                              SL_STR_ARG(path_file_name(sl_str(path))));
        if (length < 0)
            return false;
        struct sl_symbol symbol = {.address = s.address - info->load_address,
                                   .name = {sl_arena_strndup(arena, name, (size_t)length), (size_t)length}};
        free(name);
        ok = symbol.name.data && sl_breakpad_writer_symbols(w, &symbol, 1);
    }
    return ok;
}

/* Passes to the writer the functions of the module's debug file, and the symbols of its debug file, executable and main file, each file
 * once. With --unwind-functions adds the code that only unwind information tells of; adds the .plt sections of the executable in any case.
 * */
static enum sl_code add_module(struct sl_breakpad_writer *w, struct dump_module *m, const struct options *o,
                               unsigned jobs, struct sl_arena *arena, struct sl_error *error)
{
    /* the partner, the second file of the module (a PDB beside its PE), may be the one with debug information */
    struct input *input = m->debug == m->partner.object && m->has_partner ? &m->partner : &m->main;
    enum sl_code code = input_read_functions(input, threads_parallel(jobs), sl_breakpad_writer_sink(w), error);
    if (code == SL_OK || code == SL_NOT_FOUND) /* without debug information the symbols are all there is */
        code = add_symbols(w, m->debug, error);
    if (code == SL_OK && m->code != m->debug)
        code = add_symbols(w, m->code, error);
    if (code == SL_OK && m->main.object != m->debug && m->main.object != m->code)
        code = add_symbols(w, m->main.object, error);
    if (code == SL_OK && option_given(o, "unwind-functions"))
        code = dump_write_unwind_ranges(m, w, error);
    if (code == SL_OK && !add_plts(w, m->code, m->code_path, arena))
        code = sl_fail(error, SL_BUSY, "out of memory");
    return code;
}

/* Returns the name for code that no symbol names: "<unknown in FILE>". */
static struct sl_str unnamed_in(const struct dump_module *m, struct sl_arena *arena)
{
    struct sl_buf name = {0};
    sl_buf_printf(&name, "<unknown in " SL_STR_FMT ">", SL_STR_ARG(path_file_name(sl_str(m->code_path))));
    return sl_buf_move_to_arena(&name, arena);
}

/* True if one of the module's files has functions, symbols or unwind information: something to write. */
static bool has_anything(const struct dump_module *m)
{
    const struct sl_object *objects[] = {m->debug, m->code, m->main.object};
    for (size_t i = 0; i < 3; i++) {
        const struct sl_features *f = &sl_object_info(objects[i])->features;
        if (sl_object_info(objects[i])->format == SL_FORMAT_PORTABLEPDB)
            continue; /* .NET code has no addresses */
        if (f->has_unwind_info || f->has_debug_info || f->has_symbols)
            return true;
    }
    return false;
}

/* True if the module has the same id as `first`. All modules with one id are a group: they become one symbol file. */
static bool is_of_group(const struct dump_module *m, const struct dump_module *first)
{
    return m == first || (!sl_debug_id_is_nil(&m->id) && sl_debug_id_equal(&m->id, &first->id));
}

/* Writes the STACK records of one module: the first with the same id as `first` that has any. */
static enum sl_code write_stack(struct dump_syms_run *d, const struct dump_module *first, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    bool written = false;
    for (const struct dump_module *m = first; m < d->modules + d->count && code == SL_OK && !written; m++)
        if (is_of_group(m, first))
            code = dump_stack(m, d->o, write_text, d, &written, error);
    return code;
}

/* True if a module with the same id as `first` has unwind information. */
static bool has_stack(const struct dump_syms_run *d, const struct dump_module *first)
{
    bool found = false;
    for (const struct dump_module *m = first; m < d->modules + d->count && !found; m++)
        found = is_of_group(m, first) && dump_has_stack(m);
    return found;
}

/* True if the module has functions, not only symbols: in debug information, or in the tables of a Go program. */
static bool has_functions(const struct dump_module *m)
{
    struct sl_bytes table;
    uint64_t address;
    return sl_object_info(m->debug)->features.has_debug_info || sl_object_has_debug_map(m->debug) ||
           sl_object_go_table(m->debug, &table, &address);
}

/* Warns about missing debug information, as readers of the symbol file cannot tell that something is missing: prints the notes of the
 * module's files or, without any, that there is no debug information at all. */
static void warn_missing(const struct dump_module *m)
{
    const struct input *const inputs[] = {&m->main, &m->partner};
    bool has_note = false;
    for (size_t i = 0; i < 2; i++) {
        struct sl_str rest = sl_buf_view(&inputs[i]->notes), note;
        while (sl_str_next_line(&rest, &note)) {
            print_note("warning: %s: " SL_STR_FMT "\n", inputs[i]->path, SL_STR_ARG(note));
            has_note = true;
        }
    }
    if (!has_note && !has_functions(m))
        print_note("warning: %s: no debug information; only names from the symbol table are written, no lines\n",
                   m->main.path);
}

/* Reports that a module has no symbols, and which files that may have them were not found. Returns the exit status. */
static int report_nothing(const struct dump_module *m)
{
    int status = report_error(STATUS_NOTHING, "no symbols found", m->main.path);
    if (m->main.notes.size)
        warn_missing(m);
    return status;
}

/* Makes the addresses of all modules with the same id as `first` comparable: the first one that has code is the program. The others may be
 * linked to different addresses, which are adjusted to the program's. */
static void relate_group(struct dump_syms_run *d, const struct dump_module *first)
{
    const struct sl_object *program = NULL;
    struct sl_bytes code;
    for (struct dump_module *m = d->modules; m < d->modules + d->count && !program; m++)
        if (is_of_group(m, first) && sl_object_section(m->code, "text", &code, NULL))
            program = m->code;
    for (struct dump_module *m = d->modules; m < d->modules + d->count && program; m++) {
        if (!is_of_group(m, first))
            continue;
        sl_object_align_addresses(m->code, program);
        sl_object_align_addresses(m->debug, program);
        sl_object_align_addresses(m->main.object, program);
    }
}

/* Warns of debug information that the modules with the same id as `first` lack. A module without functions, such as a stripped program, is
 * left out if another one has functions. */
static void warn_group(const struct dump_syms_run *d, const struct dump_module *first)
{
    bool any_has_functions = false;
    for (const struct dump_module *m = first; m < d->modules + d->count && !any_has_functions; m++)
        any_has_functions = is_of_group(m, first) && has_functions(m);
    for (const struct dump_module *m = first; m < d->modules + d->count; m++)
        if (is_of_group(m, first) && (has_functions(m) || !any_has_functions))
            warn_missing(m);
}

/* Writes `first` and the modules with the same id as one symbol file. Returns the exit status. */
static int write_group(struct dump_syms_run *d, struct sl_breakpad_writer *w, struct dump_module *first,
                       struct sl_str id, struct sl_str name, struct sl_arena *arena)
{
    struct sl_error error = {0};
    enum sl_code code = SL_OK;
    bool header_only = option_given(d->o, "header-only");
    if (sl_debug_id_is_nil(&first->id) && !option_given(d->o, "id"))
        print_note("warning: %s: the file has no id and no code to derive one from, so its symbols cannot be found "
                   "by id; set one with --id\n",
                   first->main.path);
    relate_group(d, first);
    for (struct dump_module *m = first; m < d->modules + d->count && code == SL_OK && !header_only; m++)
        if (is_of_group(m, first))
            code = add_module(w, m, d->o, d->jobs, arena, &error);
    if (code == SL_OK && !header_only)
        warn_group(d, first);
    int status = code == SL_OK ? open_store(d, name, id) : 0;
    if (code == SL_OK && status == 0) {
        struct sl_breakpad_output output = {write_text, d};
        code = sl_breakpad_writer_finish(w, &output, &error);
        if (code == SL_OK && !header_only && !option_given(d->o, "no-cfi"))
            code = write_stack(d, first, &error);
        /* a failed write publishes nothing either: output_file_close then removes the file and returns the error */
        bool publishes = code == SL_OK || d->store.failed;
        struct sl_error unwritten;
        if (d->to_store && output_file_close(&d->store, publishes, &unwritten) != SL_OK)
            status = report_error(1, unwritten.message, NULL);
        d->to_store = false;
    }
    if (code == SL_OK || code == SL_CANCELLED) /* cancelled: write_text failed, which the outputs report themselves */
        return status;
    return report_file_error(first->main.path, code, &error);
}

/* Writes the symbol file of a module and of those with the same id. Fails if there is nothing to write, or with --check-cfi if no module
 * has unwind information. Returns the exit status. */
static int dump_module(struct dump_syms_run *d, struct dump_module *first)
{
    struct sl_arena arena = {0};
    struct dump_header header;
    char id[SL_DEBUG_ID_TEXT];
    const struct sl_object_info *info = sl_object_info(first->debug);
    sl_debug_id_format_breakpad(&first->id, id);
    if (!dump_header_make(first, d->o, &arena, &header)) {
        sl_arena_free(&arena);
        return report_no_memory();
    }
    struct sl_breakpad_options options = {
        .os = header.os,
        .arch = sl_str(sl_arch_name(sl_object_info(first->main.object)->arch)),
        .id = sl_str(option_value(d->o, "id", id)),
        .name = header.name,
        .budget = sl_object_budget(first->main.object),
        .infos = header.infos,
        .info_count = header.info_count,
        .base = option_given(d->o, "preserve-load-address") ? sl_object_info(first->code)->load_address : 0,
        .header_only = option_given(d->o, "header-only"),
        .unnamed = unnamed_in(first, &arena), /* name of functions that only unwind information tells of */
        .inlines = option_given(d->o, "inlines") || option_given(d->o, "i"),
        .multiple = !option_given(d->o, "no-multiple"), /* mark with `m` the records whose code has several names */
        .prefer_public = option_given(d->o, "prefer-public"),
        .decorates = info->decorates, /* symbols of C have decorated names (`_f@8`): the decoration is removed */
        .map_path = d->mapping ? path_mapping_apply : NULL,
        .map_arg = d->mapping,
    };
    struct sl_breakpad_writer *w = sl_breakpad_writer_new(&options);
    int status = 0;
    if (option_given(d->o, "check-cfi") && !has_stack(d, first))
        status = report_error(1, "No CFI data", first->main.path);
    else if (!has_anything(first) && !options.header_only)
        status = report_nothing(first);
    else
        status = w ? write_group(d, w, first, options.id, header.name, &arena) : report_no_memory();
    sl_breakpad_writer_free(w);
    sl_arena_free(&arena);
    return status;
}

/* ---- the command ---- */

/* True if an earlier module has the same id: then this one has been written together with it. */
static bool is_repeated(const struct dump_syms_run *d, size_t index)
{
    const struct sl_debug_id *id = &d->modules[index].id;
    for (size_t i = 0; i < index && !sl_debug_id_is_nil(id); i++)
        if (d->modules[i].debug && /* it was opened */
            sl_debug_id_equal(id, &d->modules[i].id))
            return true;
    return false;
}

/* Splits the arguments. A directory is searched for debug files, as in Breakpad's dump_syms, unless it is the first argument; all other
 * arguments are modules. A directory --debug-file is searched first. False when out of memory. */
static bool split_arguments(struct dump_syms_run *d)
{
    const char *given = option_value(d->o, "debug-file", NULL);
    size_t count = d->o->argument_count, directories = 0;
    d->modules = calloc(count, sizeof *d->modules);
    d->paths = calloc(count, sizeof *d->paths);
    d->directories = calloc(count + 2, sizeof *d->directories); /* + 2: --debug-file and the NULL at the end */
    if (!d->modules || !d->paths || !d->directories)
        return false;
    if (given && dump_is_directory(given))
        d->directories[directories++] = given;
    for (size_t i = 0; i < count; i++)
        if (i && dump_is_directory(d->o->arguments[i]))
            d->directories[directories++] = d->o->arguments[i];
        else
            d->paths[d->count++] = d->o->arguments[i];
    return true;
}

/* Opens all modules (with --debug-id or --code-id: downloads them), then dumps them, up to the first failure; returns the exit status. They
 * are all opened first, because a module with the id of an earlier one is dumped together with that one. */
static int dump_all(struct dump_syms_run *d)
{
    int status = 0;
    if (!split_arguments(d))
        return report_no_memory();
    bool fetch = option_given(d->o, "debug-id") || option_given(d->o, "code-id");
    progress_begin(&d->progress, d->o, "dumping");
    progress_expect(&d->progress, d->count);
    for (size_t i = 0; i < d->count && status == 0; i++) {
        if (!fetch) /* else the fetch shows its own progress */
            progress_set_item(&d->progress, d->paths[i], 0);
        status = fetch ? dump_module_fetch(&d->modules[i], d->paths[i], d->o, &d->locator)
                       : dump_module_open(&d->modules[i], d->paths[i], d->directories, d->o);
    }
    for (size_t i = 0; i < d->count && status == 0; i++) {
        progress_file(&d->progress, d->paths[i]);
        if (!is_repeated(d, i))
            status = dump_module(d, &d->modules[i]);
    }
    progress_finish(&d->progress);
    return status;
}

/* Opens the outputs, dumps all modules, and publishes the file --output if that succeeded. Returns the exit status. */
static int dump_to(struct dump_syms_run *d)
{
    struct sl_error error;
    const char *output = option_value(d->o, "output", NULL);
    d->to_stdout = output ? strcmp(output, "-") == 0 : !option_given(d->o, "store");
    d->to_file = output && !d->to_stdout;
    if (d->to_file && output_file_open(&d->file, output, &error) != SL_OK)
        return report_error(1, error.message, NULL);
    int status = dump_all(d);
    if (d->to_file && output_file_close(&d->file, status == 0, &error) != SL_OK)
        status = report_error(1, error.message, NULL);
    return status;
}

/* Prints the architectures of each file (--list-arch). Returns the exit status. */
static int list_archs(const struct options *o)
{
    for (size_t i = 0; i < o->argument_count; i++) {
        struct input input;
        struct sl_error error;
        struct sl_buf names = {0};
        enum sl_code code = input_open_archive(o->arguments[i], &input, &error);
        if (code == SL_OK && !input.has_cache) /* a symcache has no objects: its list is empty */
            input_list_archs(&input.archive, &names);
        if (code == SL_OK)
            printf("%s contains the following architecture(s):\n" SL_STR_FMT "\n", o->arguments[i],
                   SL_STR_ARG(sl_buf_view(&names)));
        sl_buf_free(&names);
        input_close(&input);
        if (code != SL_OK)
            return report_file_error(o->arguments[i], code, &error);
    }
    return 0;
}

/* True if the text of --extra-info has the form of an INFO record: a word in capital letters, a space, and anything. */
static bool is_info(const char *text)
{
    size_t word = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    return word > 0 && text[word] == ' ';
}

/* The command: checks the options, then lists architectures (--list-arch) or dumps the modules. Returns the exit status. */
static int dump_syms_run(const struct options *o)
{
    struct dump_syms_run dump = {.o = o};
    const char *extra = option_value(o, "extra-info", NULL);
    uint64_t jobs;
    if (!option_number(o, "jobs", &jobs))
        return 2;
    dump.jobs = jobs > 1024 ? 1024 : (unsigned)jobs;
    if (!o->argument_count) {
        report_error(2, "no file given", NULL);
        return options_try_help("dump-syms");
    }
    if (o->argument_count > 1 && (option_given(o, "debug-id") || option_given(o, "code-id"))) {
        report_error(2, "--debug-id and --code-id can be used with one FILE only", NULL);
        return options_try_help("dump-syms");
    }
    if (option_given(o, "verbose") && !server_verbosity(o)) {
        report_error(2, "--verbose: not a log level", option_value(o, "verbose", NULL));
        return options_try_help("dump-syms");
    }
    if (extra && !is_info(extra)) {
        report_error(2, "--extra-info needs a keyword in capital letters and a text", NULL);
        return options_try_help("dump-syms");
    }
    if (option_given(o, "list-arch"))
        return list_archs(o);
    size_t symbol_count;
    const char *const *symbols = option_values(o, "symbols", &symbol_count);
    int status = source_paths_check(symbols, symbol_count); /* paths given with --symbols must exist */
    if (status == 0)
        status = path_mapping_read(o, &dump.mapping);
    if (status == 0)
        status = dump_to(&dump);
    for (size_t i = 0; i < dump.count; i++)
        dump_module_close(&dump.modules[i]);
    locator_close(dump.locator);
    free(dump.modules);
    free(dump.paths);
    free(dump.directories);
    path_mapping_free(dump.mapping);
    return status;
}

const struct command command_dump_syms = {
    .name = "dump-syms",
    .summary = "write the Breakpad symbol file of a debug file",
    .usage = "dump-syms [OPTION...] FILE... [DIRECTORY...]",
    .about = "Writes the Breakpad symbol file of any supported debug file.",
    .examples = "symloom dump-syms app.debug -o app.sym\n"
                "symloom dump-syms --inlines --store symbols app.debug",
    .options = specs,
    .groups = {{"Most used", "output store inlines arch list-arch debug-file code-file multiple jobs verbose"},
               {"Symbol sources", "symbols source nt-symbol-path debuginfod symbol-server config cache-dir"},
               {"Records", "check-cfi no-cfi header-only unwind-functions prefer-public preserve-load-address "
                           "no-generator extra-info pe "
                           "no-multiple"},
               {"Module record", "name id os debug-id code-id"},
               {"Source paths", "mapping-var mapping-src mapping-dest mapping-file"}},
    .run = dump_syms_run,
};
