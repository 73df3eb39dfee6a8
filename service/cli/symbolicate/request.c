/* `symloom symbolicate` for events and request bodies. */
#include "cli/symbolicate/request.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_fields.h"
#include "base/json_write.h"
#include "cli/locator/locator.h"
#include "cli/file_walk.h"
#include "cli/server.h"
#include "cli/symbolicate/artifacts.h"
#include "jvm/mapping.h"

/* The number of files below --symbols and SYMBOLS that are checked for JVM mappings: a limit, since a directory may be `/`. */
enum { MAX_FILES = 200000 };

struct read_mapping {
    struct sl_buf table; /* the memory that `mapper` points into */
    struct sl_jvm_mapper mapper;
};

struct request_run {
    const struct options *o;
    const struct sentry_project *project;
    struct local_files *local;
    enum answer_kind sort;
    const struct answer_format *format;
    struct sl_arena arena;
    struct sl_buf made; /* the body made from an event */
    struct sl_buf bare; /* a copy of the request body without `sources`; empty unless body_without_sources() ran */
    struct local_request request;
    struct local_mapping *mappings; /* JVM mappings on this machine */
    struct read_mapping **tables;   /* owners of the memory of `mappings`, at the same index */
    size_t mapping_count, mapping_capacity, table_capacity;
    struct sl_debug_id *wanted; /* ids of JVM mappings that the body names */
    size_t wanted_count, wanted_capacity;
    const char **local_paths; /* paths of --symbols, and the arguments after the input */
    size_t local_path_count;
    struct local_artifacts *artifacts;
    struct search_inputs inputs;
    struct missing_report missing;
    struct sl_buf answer;
    enum sl_code code;
    struct sl_error error;
};

/* ---- the kind of the body ---- */

struct body_facts {
    bool has_maps;                /* a module is a source map */
    bool has_mappings;            /* a module is a JVM mapping or a source bundle */
    bool has_source, has_sources; /* the body has the member `source`, `sources` */
    bool is_jvm;                  /* the body has a member that only JVM requests have */
};

struct body_module {
    struct sl_str type, uuid, code_file, debug_file, code_id;
};

static const struct sl_field module_fields[] = {
    SL_FIELD(TEXT, false, body_module, type, "type"),
    SL_FIELD(TEXT, false, body_module, uuid, "uuid"),
    SL_FIELD(TEXT, false, body_module, code_file, "code_file"),
    SL_FIELD(TEXT, false, body_module, debug_file, "debug_file"),
    SL_FIELD(TEXT, false, body_module, code_id, "code_id"),
    SL_FIELDS_END,
};

/* The members of a body whose presence decides its kind, and its modules. */
struct request_body_members {
    struct sl_str source, sources, exceptions, classes, release_package;
    struct body_module *modules;
    size_t module_count;
};

static const struct sl_field body_fields[] = {
    SL_FIELD(RAW, false, request_body_members, source, "source"),
    SL_FIELD(RAW, false, request_body_members, sources, "sources"),
    SL_FIELD(RAW, false, request_body_members, exceptions, "exceptions"),
    SL_FIELD(RAW, false, request_body_members, classes, "classes"),
    SL_FIELD(RAW, false, request_body_members, release_package, "release_package"),
    SL_FIELD_ITEMS(request_body_members, modules, module_count, "modules", module_fields),
    SL_FIELDS_END,
};

/* Notes what a module tells about the kind of request, the id of a JVM mapping in `wanted`, and with --local-debug-info the module's files
 * on this machine. False when out of memory. */
static bool note_module(struct request_run *run, const struct body_module *module, struct body_facts *facts)
{
    struct sl_debug_id id;
    if (option_given(run->o, "local-debug-info") &&
        (!local_files_add(run->local, module->code_file) || !local_files_add(run->local, module->debug_file) ||
         !local_files_add_build_id(run->local, module->code_id)))
        return false;
    bool is_mapping = sl_str_equal(module->type, SL_STR("proguard"));
    facts->has_maps |= sl_str_equal(module->type, SL_STR("sourcemap"));
    facts->has_mappings |= is_mapping || sl_str_equal(module->type, SL_STR("source"));
    if (!is_mapping || !sl_debug_id_parse(module->uuid, &id))
        return true;
    if (!sl_grow_in_arena(&run->arena, &run->wanted, &run->wanted_capacity, run->wanted_count + 1, sizeof id))
        return false;
    run->wanted[run->wanted_count++] = id;
    return true;
}

/* Reads what decides the kind of the request, and its modules. False if the body is no JSON object, or when out of memory. */
static bool read_facts(struct request_run *run, struct sl_str body, struct body_facts *facts)
{
    struct sl_json j = sl_json(body, &run->arena, false);
    struct request_body_members members = {.modules = NULL};
    if (!sl_json_read_object(&j, body_fields, &members) || !sl_json_end(&j))
        return false;
    *facts = (struct body_facts){
        .has_source = members.source.data,
        .has_sources = members.sources.data,
        .is_jvm = members.exceptions.data || members.classes.data || members.release_package.data,
    };
    for (size_t i = 0; i < members.module_count; i++)
        if (!note_module(run, &members.modules[i], facts))
            return false;
    return true;
}

/* Replaces the request's body by a copy without its `sources`. A JVM request gets an empty list, because the service rejects it without the
 * member. False when out of memory. */
static bool body_without_sources(struct request_run *run)
{
    static const struct sl_str name = SL_STR("sources");
    struct sl_json j = sl_json(run->request.body, &run->arena, false);
    struct sl_json_writer w = sl_json_writer(&run->bare);
    struct sl_str key, value;
    bool good = sl_json_object(&j);
    sl_json_begin_object(&w);
    while (good && sl_json_next(&j, &key)) {
        good = sl_json_value(&j, &value);
        bool is_sources = sl_str_equal(key, name);
        if (!good || (is_sources && run->request.kind == LOCAL_NATIVE))
            continue;
        sl_json_put_key_str(&w, key);
        sl_json_put_raw(&w, is_sources ? SL_STR("[]") : value);
    }
    sl_json_end_object(&w);
    run->request.body = sl_buf_view(&run->bare);
    return good && !run->bare.failed;
}

/* Finds the kind of request by its members; removes its `sources` unless --use-request-sources is given. The `source` of a JavaScript
 * request needs no removal: local files replace it unless own_sources is set (local_request.look_up). Returns an exit status. */
static int choose_kind(struct request_run *run, const struct body_facts *facts)
{
    bool maps = facts->has_maps || (facts->has_source && !facts->has_mappings);
    run->request.kind = maps ? LOCAL_JS : facts->has_mappings || facts->is_jvm ? LOCAL_JVM : LOCAL_NATIVE;
    if (maps || !facts->has_sources || option_given(run->o, "use-request-sources"))
        return 0;
    return body_without_sources(run) ? 0 : report_no_memory();
}

/* Sets the request's body and kind: from `text` if that is a request, else by making a request from the event `text`. The messages are
 * those of Sentry's symbolicli, as scripts may look for them. Returns an exit status, after a report unless 0. */
static int read_body(struct request_run *run, struct sl_str text, enum input_kind kind)
{
    const struct event_options options = {option_value(run->o, "platform", NULL), option_value(run->o, "release", NULL),
                                          option_value(run->o, "dist", NULL), run->project};
    struct body_facts facts;
    struct sl_error error = {0};
    enum sl_code code = SL_OK;
    run->request.body = text;
    if (kind == INPUT_MOZILLA) {
        run->request.kind = LOCAL_MOZILLA;
        return 0;
    }
    if (kind == INPUT_EVENT) {
        code = event_request(text, &options, &run->arena, &run->request.kind, &run->made, &error);
        run->request.body = sl_buf_view(&run->made);
    }
    if (code == SL_BUSY)
        return report_no_memory();
    if (code == SL_MALFORMED)
        return report_error(STATUS_NOTHING, "failed to parse event json file", error.message);
    if (code != SL_OK) { /* an unknown platform (SL_UNSUPPORTED) has a message of its own */
        struct sl_error whole;
        sl_fail(&whole, code, "Cannot symbolicate event: %.200s", error.message);
        return code == SL_UNSUPPORTED ? report_error(STATUS_NOTHING, whole.message, NULL)
                                      : report_error(STATUS_NOTHING, "Event cannot be symbolicated", error.message);
    }
    /* also for events, whose kind is known: this collects the modules' local files and mapping ids */
    if (!read_facts(run, run->request.body, &facts))
        return report_error(STATUS_NOTHING, "the request is not a valid JSON object", NULL);
    return kind == INPUT_EVENT ? 0 : choose_kind(run, &facts);
}

/* ---- mappings ---- */

/* Parses the text of a JVM mapping and adds the result to run->mappings. With only_by_id the mapping is used only for modules with its
 * id. False after a report on stderr. */
static bool add_mapping(struct request_run *run, const char *path, struct sl_str text, const struct sl_debug_id *id,
                        bool only_by_id)
{
    struct read_mapping *read = SL_ARENA_NEW(&run->arena, struct read_mapping);
    struct sl_budget budget;
    struct sl_error error = {0};
    if (!read ||
        !sl_grow_in_arena(&run->arena, &run->mappings, &run->mapping_capacity, run->mapping_count + 1,
                          sizeof *run->mappings) ||
        !sl_grow_in_arena(&run->arena, &run->tables, &run->table_capacity, run->mapping_count + 1,
                          sizeof *run->tables)) {
        report_no_memory();
        return false;
    }
    sl_budget_init(&budget, text.size); /* limits the work by the size of the text */
    enum sl_code code = sl_jvm_mapper_build(text, &budget, &read->table, &error);
    if (code == SL_OK)
        code = sl_jvm_mapper_open(sl_buf_bytes(&read->table), &read->mapper, &error);
    if (code != SL_OK) {
        sl_buf_free(&read->table);
        report_file_error(path, code, &error);
        return false;
    }
    run->tables[run->mapping_count] = read; /* freed by symbolicate_request() */
    run->mappings[run->mapping_count++] = (struct local_mapping){*id, &read->mapper, only_by_id};
    return true;
}

/* Adds the JVM mappings of --mapping, which serve modules of any id. Returns an exit status, after a report unless 0. */
static int read_given_mappings(struct request_run *run)
{
    size_t count;
    const char *const *paths = option_values(run->o, "mapping", &count);
    for (size_t i = 0; i < count; i++) {
        struct sl_mapping file = {0};
        struct sl_error error = {0};
        struct sl_debug_id id;
        enum sl_code code = symbolicate_map_input(paths[i], &file, &error);
        if (code != SL_OK)
            return report_file_error(paths[i], code, &error);
        struct sl_str text = {(const char *)file.bytes.data, file.bytes.size};
        bool has_id = sl_jvm_mapping_id(text, &id);
        bool good = has_id && add_mapping(run, paths[i], text, &id, false);
        sl_unmap(&file);
        if (!good)
            /* add_mapping() has reported its error; the id, a hash of the text, is missing only when out of memory */
            return has_id ? 1 : report_no_memory();
    }
    return 0;
}

/* True if the request's body names a JVM mapping with this id. */
static bool is_wanted(const struct request_run *run, const struct sl_debug_id *id)
{
    for (size_t i = 0; i < run->wanted_count; i++)
        if (sl_debug_id_equal(&run->wanted[i], id))
            return true;
    return false;
}

/* Adds the file if it is a JVM mapping whose id the body names. Mappings are named *.txt: files with other names are not even opened. A
 * mapping that cannot be parsed is reported and left out. */
static void try_mapping(struct request_run *run, const char *path)
{
    struct sl_mapping file = {0};
    struct sl_debug_id id;
    if (!sl_str_ends(sl_str(path), SL_STR(".txt")) || sl_map_file(path, &file, NULL) != SL_OK)
        return;
    struct sl_str text = {(const char *)file.bytes.data, file.bytes.size};
    if (sl_jvm_is_mapping(text) && sl_jvm_mapping_id(text, &id) && is_wanted(run, &id))
        add_mapping(run, path, text, &id, true);
    sl_unmap(&file);
}

/* Adds the JVM mappings that the body names and that are below --symbols or SYMBOLS: at most MAX_FILES files are looked at. */
static void find_mappings(struct request_run *run)
{
    size_t left = MAX_FILES;
    for (size_t i = 0; run->wanted_count && i < run->local_path_count; i++) {
        struct file_walk walk;
        file_walk_open(&walk, run->local_paths[i]);
        for (const FTSENT *entry; left && (entry = file_walk_next(&walk)); left--)
            try_mapping(run, entry->fts_path);
        file_walk_close(&walk);
    }
}

/* ---- symbolication ---- */

/* Symbolicates the request with the sources that symbolicate_here() has opened. It calls this in a fiber. The result is `answer`, `code`
 * and `error`. */
static void request_work(void *arg)
{
    struct request_run *run = arg;
    run->request.scope = run->inputs.scope;
    run->request.sources = run->inputs.sources;
    run->request.source_count = run->inputs.source_count;
    run->code = local_request_symbolicate(&run->request, run->inputs.config, &run->answer, &run->error);
}

/* Writes the request's `options`: a copy of the object that `j` is in (NULL: none), with `extract_variables` true. False: invalid JSON. */
static bool put_options(struct sl_json *j, struct sl_json_writer *w)
{
    static const struct sl_str name = SL_STR("extract_variables");
    struct sl_str key, value;
    sl_json_begin_object(w);
    while (j && sl_json_next(j, &key)) {
        if (!sl_json_value(j, &value))
            return false;
        if (sl_str_equal(key, name))
            continue;
        sl_json_put_key_str(w, key);
        sl_json_put_raw(w, value);
    }
    sl_json_put_key_str(w, name);
    sl_json_put_boolean(w, true);
    sl_json_end_object(w);
    return true;
}

/* Writes a copy of the request's body, in which `options` has `extract_variables` true. False when out of memory. */
static bool body_with_variables(struct request_run *run, struct sl_buf *body)
{
    static const struct sl_str options = SL_STR("options");
    struct sl_json j = sl_json(run->request.body, &run->arena, false);
    struct sl_json_writer w = sl_json_writer(body);
    struct sl_str key, value;
    bool has_options = false, good = sl_json_object(&j);
    sl_json_begin_object(&w);
    while (good && sl_json_next(&j, &key)) {
        sl_json_put_key_str(&w, key);
        if (sl_str_equal(key, options) && sl_json_peek(&j) == SL_JSON_OBJECT) {
            has_options = true;
            good = sl_json_enter(&j) && put_options(&j, &w);
        } else if ((good = sl_json_value(&j, &value))) {
            sl_json_put_raw(&w, value);
        }
    }
    if (!has_options) {
        sl_json_put_key_str(&w, options);
        put_options(NULL, &w);
    }
    sl_json_end_object(&w);
    return good && !body->failed;
}

/* Sends the request to the service of --server; the result is `answer`. Returns an exit status, after a report unless 0. */
static int request_send(struct request_run *run)
{
    static const char *const paths[] = {[LOCAL_JVM] = "/symbolicate-jvm",
                                        [LOCAL_JS] = "/symbolicate-js",
                                        [LOCAL_NATIVE] = "/symbolicate",
                                        [LOCAL_MOZILLA] = "/symbolicate/v5"};
    struct sl_buf body = {0};
    if (run->request.variables && run->request.kind == LOCAL_NATIVE) { /* other requests have no such option */
        if (!body_with_variables(run, &body)) {
            sl_buf_free(&body);
            return report_no_memory();
        }
        run->request.body = sl_buf_view(&body);
    }
    int status = remote_symbolicate(run->o, paths[run->request.kind], run->request.body, NULL, 0, &run->answer);
    sl_buf_free(&body);
    return status;
}

/* Symbolicates the request in this process; the result is `answer`. Returns an exit status, after a report unless 0. */
static int request_symbolicate(struct request_run *run)
{
    int status = symbolicate_here(run->o, run->project, run->local, &run->missing, &run->inputs, request_work, run);
    if (status || run->code == SL_OK)
        return status;
    return report_error(run->code == SL_MALFORMED ? STATUS_NOTHING : 1, run->error.message, NULL);
}

/* ---- the command ---- */

/* Sets the request's options and the output format, which depend on its kind. Returns an exit status: 2 after a report of a usage error. */
static int request_options(struct request_run *run)
{
    static const enum answer_kind sorts[] = {
        [LOCAL_JVM] = SORT_JVM, [LOCAL_JS] = SORT_JS, [LOCAL_NATIVE] = SORT_NATIVE, [LOCAL_MOZILLA] = SORT_MOZILLA};
    run->sort = sorts[run->request.kind];
    run->request.no_scraping = option_given(run->o, "no-scrape") || server_is_offline(run->o);
    run->request.no_source_context = option_given(run->o, "no-source-context");
    /* a JavaScript request made from an event (`made`) names the Sentry project as its source of scripts, see put_artifacts() in event.c */
    run->request.own_sources =
        option_given(run->o, "use-request-sources") || (run->sort == SORT_JS && run->made.size && run->project->online);
    run->format = answer_format_choose(run->o, run->sort); /* NULL after a report */
    run->request.variables = option_given(run->o, "extract-variables");
    run->request.candidates = option_given(run->o, "candidates") || (run->format && run->format->needs_candidates);
    return run->format ? 0 : 2;
}

/* Lists the paths of --symbols and SYMBOLS that exist on this machine in local_paths. Servers among them are left out: locator_open() makes
 * them sources. Returns an exit status. */
static int list_local_paths(struct request_run *run)
{
    size_t count, more;
    const char *const *symbols = option_values(run->o, "symbols", &count);
    const char *const *arguments = symbolicate_symbol_paths(run->o, &more);
    /* + 1: for no paths, calloc() could return NULL */
    if (!(run->local_paths = calloc(count + more + 1, sizeof *run->local_paths)))
        return report_no_memory();
    for (size_t i = 0; i < count + more; i++) {
        const char *path = source_path_without_layout(i < count ? symbols[i] : arguments[i - count]);
        if (access(path, F_OK) == 0)
            run->local_paths[run->local_path_count++] = path;
    }
    return 0;
}

/* Reads the request or event, and the options; then the mappings for a JVM request, or opens the local scripts for a JavaScript one.
 * Returns an exit status, after a report unless 0. */
static int request_prepare(struct request_run *run, struct sl_str text, enum input_kind kind)
{
    int status = list_local_paths(run);
    if (!status)
        status = read_body(run, text, kind);
    if (!status)
        status = request_options(run);
    if (status || run->sort == SORT_NATIVE || run->sort == SORT_MOZILLA)
        return status;
    if (run->request.kind == LOCAL_JS) {
        /* no web server, local directory, Sentry project or service that could have the scripts */
        if (kind == INPUT_EVENT && run->request.no_scraping && !run->local_path_count && !run->project->online &&
            !option_given(run->o, "server"))
            return report_error(2, "In JS offline mode, you must provide a local symbol directory with --symbols",
                                NULL);
        if (!(run->artifacts = local_artifacts_new(run->local_paths, run->local_path_count)))
            return report_no_memory();
        run->request.look_up = local_artifacts_find;
        run->request.look_up_arg = run->artifacts;
        return 0;
    }
    status = read_given_mappings(run);
    if (!status)
        find_mappings(run);
    run->request.mappings = run->mappings;
    run->request.mapping_count = run->mapping_count;
    return status;
}

int symbolicate_request(const struct options *o, const struct sentry_project *project, struct local_files *local,
                        struct sl_str text, enum input_kind kind)
{
    struct request_run run = {.o = o, .project = project, .local = local};
    missing_init(&run.missing, &missing_symbols);
    if (option_given(o, "server"))
        missing_add_location(&run.missing, sl_str(option_value(o, "server", ""))); /* where symbols were searched */
    int status = request_prepare(&run, text, kind);
    if (!status)
        status = option_given(o, "server") ? request_send(&run) : request_symbolicate(&run);
    if (!status)
        status = answer_print_notes(o, run.format, run.sort, NULL, &run.missing, &run.answer);
    for (size_t i = 0; i < run.mapping_count; i++)
        sl_buf_free(&run.tables[i]->table);
    missing_free(&run.missing);
    local_artifacts_free(run.artifacts);
    free(run.local_paths);
    sl_buf_free(&run.made);
    sl_buf_free(&run.bare);
    sl_buf_free(&run.answer);
    sl_arena_free(&run.arena);
    return status;
}
