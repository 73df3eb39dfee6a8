/* `symloom symbolicate`: looks up the functions at many addresses at once: the addresses in profiles and sampling reports, and the words in
 * stack memory. */
#include "cli/symbolicate/names.h"

#include "api/named_file.h"
#include "apple/samples.h"
#include "cli/locator/locator.h"
#include "cli/symbolicate/symbolicate.h"

enum { BATCH = 20000 }; /* addresses per request */

/* ---- requests ---- */

/* Returns the number of addresses in the next request. */
static size_t batch_size(const struct names_wanted *n)
{
    size_t left = n->address_count - n->done;
    return left < BATCH ? left : BATCH;
}

/* Writes an address as a frame of a request. Addresses are exact, so adjust_instruction_addr tells the service not to subtract one, as it
 * does from return addresses. */
static void names_put_address(const struct names_wanted *n, size_t index, struct sl_json_writer *w)
{
    uint32_t module;
    uint64_t relative;
    n->address(n->arg, index, &module, &relative);
    sl_json_begin_object(w);
    sl_json_member_hex(w, "instruction_addr", relative);
    if (module != NAMES_ABSOLUTE) {
        sl_json_put_key(w, "addr_mode");
        sl_buf_printf(w->out, "\"rel:%u\"", module);
        w->comma = true; /* the value was not written by the writer, which has to put a comma before the next member */
    }
    sl_json_member_boolean(w, "adjust_instruction_addr", false);
    sl_json_end_object(w);
}

/* Writes the request for the next batch: all addresses as one stack. */
static void put_batch(const struct names_wanted *n, struct sl_buf *body)
{
    struct sl_json_writer w = sl_json_writer(body);
    sl_buf_clear(body);
    sl_json_begin_object(&w);
    sl_json_member_raw(&w, "options", SL_STR("{\"apply_source_context\":false}"));
    sl_json_member_array(&w, "modules");
    for (size_t i = 0; i < n->module_count; i++)
        n->put_module(n->arg, i, &w);
    sl_json_end_array(&w);
    sl_json_member_raw(&w, "stacktraces", SL_STR("[{\"frames\":["));
    w.comma = false;                           /* the writer does not know that an array has just begun */
    for (size_t i = 0; i < batch_size(n); i++) /* addresses before `done` were in earlier requests */
        names_put_address(n, n->done + i, &w);
    sl_buf_str(body, SL_STR("]}]"));
    sl_json_end_object(&w);
}

/* ---- answers ---- */

/* True if all calls of an inline chain have a function or symbol. */
static bool have_names(const struct answer_frame *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!calls[i].function.size && !calls[i].symbol.size)
            return false;
    return true;
}

/* Passes the frames of an answer to names_wanted.take, once per address: frames with the same original_index are the inline chain at one
 * address. An address with a nameless call is skipped. False when out of memory. */
static bool pass_thread(struct names_wanted *n, const struct answer_thread *thread)
{
    for (size_t i = 0, end = 0; i < thread->frame_count; i = end) {
        const struct answer_frame *calls = &thread->frames[i];
        while (end < thread->frame_count && thread->frames[end].index.value == calls->index.value)
            end++;
        /* the answer of a service could have an index that was not asked for */
        if (calls->index.value < batch_size(n) && have_names(calls, end - i) &&
            !n->take(n->arg, n->done + (size_t)calls->index.value, calls, end - i))
            return false;
    }
    return true;
}

/* Reads the answer to a batch: passes its names to names_wanted.take, and adds modules without debug information to `missing`. False when
 * out of memory. */
static bool names_read_answer(struct names_wanted *n, const struct sl_buf *text)
{
    struct sl_arena arena = {0};
    struct symbolicated_answer answer;
    bool good = answer_read(sl_buf_view(text), &arena, &answer);
    for (size_t t = 0; good && t < answer.thread_count; t++)
        good = pass_thread(n, &answer.threads[t]);
    if (good && n->missing)
        answer_describe_missing(&answer, n->missing);
    sl_arena_free(&arena);
    return good;
}

/* ---- lookups ---- */

enum sl_code names_find(struct names_wanted *n, const struct source *sources, size_t source_count,
                        const struct config *config, struct sl_error *error)
{
    struct sl_buf body = {0}, answer = {0};
    enum sl_code code = SL_OK;
    for (; code == SL_OK && n->done < n->address_count; n->done += batch_size(n)) {
        put_batch(n, &body);
        sl_buf_clear(&answer);
        const struct local_request request = {.kind = LOCAL_NATIVE,
                                              .body = sl_buf_view(&body),
                                              .scope = n->scope,
                                              .sources = sources,
                                              .source_count = source_count,
                                              .no_source_context = true,
                                              .line_starts = n->line_starts};
        code = body.failed ? sl_fail(error, SL_BUSY, "out of memory")
                           : local_request_symbolicate(&request, config, &answer, error);
        if (code == SL_OK && !names_read_answer(n, &answer))
            code = sl_fail(error, SL_BUSY, "out of memory");
    }
    sl_buf_free(&body);
    sl_buf_free(&answer);
    return code;
}

/* Looks up all addresses at a running service (--server), batch by batch. Returns an exit status, after a report unless 0. */
static int names_send(struct names_wanted *n)
{
    struct sl_buf body = {0}, answer = {0};
    int status = 0;
    for (; !status && n->done < n->address_count; n->done += batch_size(n)) {
        put_batch(n, &body);
        sl_buf_clear(&answer);
        status = body.failed ? report_no_memory()
                             : remote_symbolicate(n->o, "/symbolicate", sl_buf_view(&body), NULL, 0, &answer);
        if (!status && !names_read_answer(n, &answer))
            status = report_no_memory();
    }
    sl_buf_free(&body);
    sl_buf_free(&answer);
    return status;
}

struct local_names_request { /* lookup in this process */
    struct names_wanted *wanted;
    struct search_inputs inputs;
    enum sl_code code;
    struct sl_error error;
};

/* Runs names_find() with the sources that symbolicate_here() has opened; the result is `code` and `error`. */
static void names_work(void *arg)
{
    struct local_names_request *here = arg;
    here->wanted->scope = here->inputs.scope;
    here->code =
        names_find(here->wanted, here->inputs.sources, here->inputs.source_count, here->inputs.config, &here->error);
}

int names_symbolicate(struct names_wanted *n, const struct sentry_project *project, struct local_files *local)
{
    struct local_names_request here = {.wanted = n};
    if (option_given(n->o, "server"))
        return names_send(n);
    /* opens the sources and runs names_work(), which sets here.code */
    int status = symbolicate_here(n->o, project, local, n->missing, &here.inputs, names_work, &here);
    return status || here.code == SL_OK ? status : report_error(1, here.error.message, NULL);
}

/* ---- profiles and sampling reports: written back with names ---- */

struct named_run { /* a profile or report while it is symbolicated */
    const struct options *o;
    struct sl_arena arena;
    struct missing_report missing;
    struct named_file file;
    struct names_wanted wanted;
};

/* Reports why the file could not be read or written. Returns the exit status: STATUS_NOTHING if the input is of a wrong format. */
static int named_failed(enum sl_code code, const struct sl_error *error)
{
    return report_error(code == SL_MALFORMED || code == SL_UNSUPPORTED ? STATUS_NOTHING : 1, error->message, NULL);
}

/* ---- lookup ---- */

/* Writes a module of the file as a module of a request (names_wanted.put_module). */
static void named_put_module(void *arg, size_t index, struct sl_json_writer *w)
{
    const struct named_file *file = &((const struct named_run *)arg)->file;
    struct named_module module;
    file->format->module(file, index, &module);
    sl_json_begin_object(w);
    sl_json_member_str(w, "type", sl_str(module.type));
    put_member(w, "debug_id", module.debug_id);
    put_member(w, "code_id", module.code_id);
    put_member(w, "debug_file", module.debug_file);
    put_member(w, "code_file", module.code_file);
    sl_json_end_object(w);
}

/* Returns an address of the file (names_wanted.address). */
static void named_address(void *arg, size_t index, uint32_t *module, uint64_t *relative)
{
    const struct named_file *file = &((const struct named_run *)arg)->file;
    file->format->address(file, index, module, relative);
}

/* Stores the calls at one address in the file (names_wanted.take). The last one, into which the others were inlined, is the function as
 * compiled: its start address is stored too. False when out of memory. */
static bool named_store(void *arg, size_t index, const struct answer_frame *frames, size_t count)
{
    struct named_file *file = &((struct named_run *)arg)->file;
    struct sl_opt_u64 symbol = frames[count - 1].symbol_address;
    struct named_call *items = SL_ARENA_ARRAY(file->arena, struct named_call, count);
    for (size_t i = 0; items && i < count; i++)
        items[i] = (struct named_call){.function = frames[i].function.size ? frames[i].function : frames[i].symbol,
                                       .path = frames[i].abs_path,
                                       .filename = frames[i].filename,
                                       .line = frames[i].line.value};
    const struct named_calls calls = {items, count, symbol.value, symbol.set};
    return items && file->format->take(file, index, &calls);
}

/* With --local-debug-info, adds the files at the paths of the modules, as the profile or report may have been made on this machine. False
 * when out of memory. */
static bool find_local_files(const struct named_run *run, struct local_files *local)
{
    const struct named_file *file = &run->file;
    struct named_module module;
    for (size_t i = 0; i < file->module_count && option_given(run->o, "local-debug-info"); i++) {
        file->format->module(file, i, &module);
        for (size_t k = 0; k < sizeof module.paths / sizeof *module.paths; k++)
            if (!local_files_add(local, module.paths[k]))
                return false;
    }
    return true;
}

/* Looks up the addresses of the file and stores their names in it. Returns an exit status. */
static int named_look_up(struct named_run *run, const struct sentry_project *project)
{
    struct local_files local = {.arena = &run->arena};
    run->wanted = (struct names_wanted){.o = run->o,
                                        .arg = run,
                                        .module_count = run->file.module_count,
                                        .address_count = run->file.address_count,
                                        .missing = &run->missing,
                                        .put_module = named_put_module,
                                        .address = named_address,
                                        .take = named_store};
    return find_local_files(run, &local) ? names_symbolicate(&run->wanted, project, &local) : report_no_memory();
}

/* ---- the command ---- */

/* Writes the file with the names; JSON is indented with --indent. Returns an exit status. */
static int named_write(const struct named_run *run)
{
    struct sl_buf out = {0}, indented = {0};
    struct sl_error error;
    enum sl_code code = run->file.format->write(&run->file, &out, &error);
    bool indent = code == SL_OK && option_given(run->o, "indent") && out.size && out.data[0] == '{';
    if (indent)
        put_indented(sl_buf_view(&out), &indented);
    int status = code != SL_OK     ? named_failed(code, &error)
                 : indented.failed ? report_no_memory()
                                   : symbolicate_write(run->o, sl_buf_view(indent ? &indented : &out));
    sl_buf_free(&out);
    sl_buf_free(&indented);
    return status;
}

/* Looks up the names, writes the file back, reports missing symbols, and frees everything. `code` and `error` are the result of reading the
 * file: if that has failed, only reports it. Returns an exit status. */
static int named_finish(struct named_run *run, const struct sentry_project *project, enum sl_code code,
                        const struct sl_error *error)
{
    missing_init(&run->missing, &missing_symbols);
    int status = code == SL_OK ? named_look_up(run, project) : named_failed(code, error);
    if (!status)
        status = named_write(run);
    if (!status)
        missing_print(&run->missing, run->o);
    status = missing_status(&run->missing, run->o, status); /* 3 with --fail-on-missing, if symbols are missing */
    missing_free(&run->missing);
    named_file_end(&run->file);
    sl_arena_free(&run->arena);
    return status;
}

int symbolicate_profile(const struct options *o, const struct sentry_project *project, struct sl_str text)
{
    struct named_run run = {.o = o};
    struct sl_error error;
    const char *format = symbolicate_format(o, "json");
    if (strcmp(format, "json") != 0)
        return options_wrong(o, "--format %s is not available for profiles (only json)", format);
    enum sl_code code = named_profile_read(text, &run.arena, &run.file, &error);
    return named_finish(&run, project, code, &error);
}

int symbolicate_report(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes)
{
    struct named_run run = {.o = o};
    struct sl_error error;
    /* crash reports, and sampling reports in another format than text, are printed from the service's answer */
    if (!sl_samples_is_text((struct sl_str){(const char *)bytes.data, bytes.size}) ||
        strcmp(symbolicate_format(o, "text"), "text") != 0)
        return symbolicate_crash(o, project, CRASH_FILE_APPLE, bytes);
    enum sl_code code = named_samples_read(bytes, &run.arena, &run.file, &error);
    return named_finish(&run, project, code, &error);
}
