/* Assembly of a function, for the Firefox Profiler. It is made from the program itself, as symbol files have no code. */
#include <errno.h>
#include <unistd.h>

#include "api/impl.h"
#include "api/mozilla/mozilla.h"
#include "conversion/disassembly.h"
#include "core/pool.h"
#include "disasm/disasm.h"

enum { LINE_BYTES = 64 }; /* bytes of the answer per byte of code, roughly */

struct asm_work { /* a request of POST /asm/v1, and its result */
    struct profiler_request request;
    struct file_lookup file; /* the binary */
    struct sl_mapping lines; /* the instructions that the converter process has written */
    struct disassembly_result result;
    bool is_read; /* `lines` and `result` are set */
    struct sl_json_writer json;
};

/* ---- the answer ---- */

/* Called for each instruction: writes [offset, text]. Returns false, which ends the calls, when out of memory. */
static bool write_line(void *arg, uint64_t offset, struct sl_str text)
{
    struct asm_work *w = arg;
    sl_json_begin_array(&w->json);
    sl_json_put_u64(&w->json, offset);
    sl_json_put_str(&w->json, text);
    sl_json_end_array(&w->json);
    return !w->json.out->failed;
}

/* Writes the answer with the instructions. SL_INTERNAL if the converter's file is damaged, or when out of memory; `answer` is then
 * marked as failed, from which job_run sees which of the two it is. */
static enum sl_code write_code(struct asm_work *w, struct sl_buf *answer, struct sl_error *error)
{
    const char *arch = sl_disasm_arch(w->result.arch);
    w->json = sl_json_writer(answer);
    sl_json_begin_object(&w->json);
    sl_json_member_hex(&w->json, "startAddress", w->result.start);
    sl_json_member_str(&w->json, "arch", sl_str(arch ? arch : ""));
    sl_json_member_array(&w->json, "syntax");
    sl_json_put_str(&w->json, sl_str(sl_disasm_syntax(w->result.arch)));
    sl_json_end_array(&w->json);
    sl_json_member_array(&w->json, "instructions");
    bool good = disassembly_read(w->lines.bytes, write_line, w);
    sl_json_end_array(&w->json);
    sl_json_member_hex(&w->json, "size", w->result.size);
    sl_json_end_object(&w->json);
    return good ? SL_OK : sl_fail(error, SL_INTERNAL, "the converter process wrote a damaged list of instructions");
}

/* Writes the answer with the instructions. If there are none, the answer is already set: a message. */
static enum sl_code asm_write(struct job *job, void *arg, struct sl_error *error)
{
    struct asm_work *w = arg;
    return w->is_read ? write_code(w, &job->answer, error) : SL_OK;
}

/* ---- disassembly ---- */

/* True if there are instructions to show; otherwise the answer is set and says why not. `result` was written by a converter process
 * and may be wrong, so the architecture is checked as well. */
static bool has_code(struct asm_work *w, struct sl_buf *answer)
{
    switch (w->result.problem) {
    case DISASSEMBLY_OK:
        if (sl_disasm_arch(w->result.arch))
            return true;
        mozilla_profiler_error(answer, "An error occurred when loading the binary: its reader gave no proper answer");
        return false;
    case DISASSEMBLY_NO_ARCH:
        mozilla_profiler_error(answer, "Unrecognized architecture \"%s\"", sl_arch_name(w->result.arch));
        return false;
    default:
        mozilla_profiler_error(answer, "The requested address was not found in any section in the binary.");
        return false;
    }
}

/* Disassembles the program into the file `lines`. SL_OK also if that is not possible: the answer is then set and says why. Other
 * codes say nothing about the program: lack of memory, a cancelled job, an internal error. */
static enum sl_code disassemble(struct asm_work *w, struct job *job, int lines, struct sl_error *error)
{
    const struct disassembly_options options = {.limits = current_reader_limits(),
                                                .address = w->request.offset,
                                                .size = w->request.size,
                                                .to_function_end = w->request.to_function_end};
    struct conversion_description about = {.location = SL_STR("a program")}; /* for the log */
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = lines};
    converter_add_item(&call, INPUT_FILE, w->file.item);
    enum sl_code code = conversion_run(&about, &converter_disassembly, &call, &w->result, error);
    if (code == SL_BUSY || code == SL_CANCELLED || code == SL_INTERNAL)
        return code;
    if (code != SL_OK) {
        mozilla_profiler_error(&job->answer, "An error occurred when loading the binary: %s", error->message);
        return SL_OK;
    }
    if (!has_code(w, &job->answer))
        return SL_OK;
    code = pool_map_fd(lines, &w->lines, error);
    w->is_read = code == SL_OK;
    return code;
}

/* Disassembles the program into a file in memory. w->lines stays mapped after its descriptor is closed. */
static enum sl_code asm_disassemble(struct asm_work *w, struct job *job, struct sl_error *error)
{
    int lines = conversion_new_output("disassembly");
    if (lines < 0)
        return sl_fail_errno(error, errno, "cannot create a file in memory for the disassembly");
    enum sl_code code = disassemble(w, job, lines, error);
    close(lines);
    return code;
}

/* ---- look-up ---- */

/* Returns the text; an empty one for a member that was not sent. */
static struct sl_str asm_text(struct sl_str text)
{
    return text.data ? text : SL_STR("");
}

/* Makes the list of sources to search for programs: the configured fallback sources, then Mozilla's symbol stores. For other requests
 * the stores are asked for symbol files only, but they have programs as well, so file types are added. False when out of memory. */
static bool program_sources(const struct profiler_request *r, struct search_scope *where)
{
    size_t count = r->config->mozilla.fallbacks_count, store_count = r->config->mozilla.source_count;
    struct source *sources = SL_ARENA_ARRAY(r->arena, struct source, count + store_count + 1);
    for (size_t i = 0; sources && i < count; i++)
        sources[i] = r->config->mozilla.fallbacks[i];
    for (size_t i = 0; sources && i < store_count; i++) {
        sources[count + i] = r->config->mozilla.stores[i];
        sources[count + i].filetypes |= 1u << FILE_PE | 1u << FILE_ELF_CODE | 1u << FILE_MACH_CODE;
    }
    *where = (struct search_scope){.sources = sources,
                                   .source_count = sources ? count + store_count : 0,
                                   .scope = SL_STR("global"),
                                   .arena = r->arena};
    return sources;
}

/* Finds the program by its code id. If none was sent, uses the build id that a source may know for the debug id. The file types end with
 * debug files of ELF, as a program that was not stripped may be stored as one. */
static void find_program(const struct profiler_request *r, struct file_lookup *file)
{
    static const enum file_type types[] = {FILE_ELF_CODE, FILE_MACH_CODE, FILE_PE, FILE_ELF_DEBUG};
    struct search_scope where;
    struct object_id id = {.code_id = sl_code_id_normalise(r->arena, asm_text(r->code_id)),
                           .code_file = asm_text(r->name),
                           .debug_file = asm_text(r->debug_name)};
    id.has_debug_id = r->debug_id.data && sl_debug_id_parse(r->debug_id, &id.debug_id);
    enum sl_code code = id.code_id.data && program_sources(r, &where) ? SL_OK : SL_BUSY;
    if (code == SL_OK && !id.code_id.size)
        code = native_add_build_id(&where, &id); /* SL_NOT_FOUND: searches without a build id */
    *file = (struct file_lookup){.code = code};
    if (code == SL_BUSY || code == SL_CANCELLED)
        sl_fail(&file->error, code, "out of memory or file descriptors");
    else
        search_find_file(&where, &id, types, sizeof types / sizeof *types, file);
}

/* Finds the program and disassembles it. If it is not found, the answer is a message that the Profiler shows. */
static enum sl_code asm_find(struct job *job, void *arg, struct sl_error *error)
{
    struct asm_work *w = arg;
    find_program(&w->request, &w->file);
    if (w->file.code == SL_CANCELLED || w->file.code == SL_BUSY)
        return sl_fail(error, w->file.code, "%s", w->file.error.message);
    if (w->file.code != SL_OK) {
        struct sl_buf why = {0};
        w->file.error.code = w->file.code; /* cache_error_text reads it there */
        cache_error_text(&w->file.error, &why);
        mozilla_profiler_error(&job->answer, "An error occurred when loading the binary: " SL_STR_FMT,
                               SL_STR_ARG(sl_buf_view(&why)));
        sl_buf_free(&why);
        return SL_OK;
    }
    return asm_disassemble(w, job, error);
}

/* Estimates the bytes of the answer: for the requested size; for a whole function, whose size is not known yet, that of a large one. */
static uint64_t asm_memory(const void *arg)
{
    const struct profiler_request *r = &((const struct asm_work *)arg)->request;
    return LINE_BYTES * (r->size < DISASSEMBLY_MAX_CODE && !r->to_function_end ? r->size : DISASSEMBLY_MAX_CODE / 16);
}

/* Releases what asm_find has set; the job may be released or run again. */
static void asm_release(void *arg)
{
    struct asm_work *w = arg;
    cache_release(w->file.item);
    w->file.item = NULL;
    if (w->is_read)
        sl_unmap(&w->lines);
    w->is_read = false;
}

/* ---- the request ---- */

static bool asm_read(struct job *job, void *arg, struct sl_str body, struct json_failure *failure)
{
    struct asm_work *w = arg;
    w->request = (struct profiler_request){.arena = &job->arena, .config = job->config};
    return mozilla_read_profiler(&w->request, true, body, failure);
}

const struct job_kind job_asm = {
    .task = "mozilla",
    .size = sizeof(struct asm_work),
    .read = asm_read,
    .refuse = mozilla_refuse_profiler,
    .answer = mozilla_answer,
    .run = asm_find,
    .reset = asm_release,
    .write = asm_write,
    .memory = asm_memory,
    .release = asm_release,
};
