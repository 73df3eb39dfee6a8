/* Assembly of a function, from the binary itself: symbol files do not contain code. */
#include <stdlib.h>

#include "api/impl.h"
#include "api/mozilla/mozilla.h"
#include "base/search.h"
#include "demangle/demangle.h"
#include "disasm/disasm.h"

/* Limits: bytes of code in one answer, larger than any function; estimated answer bytes per byte of code. */
enum { MAX_CODE = 1 << 20, LINE_BYTES = 64 };

struct asm_work {
    struct profiler_request ask;
    struct file_lookup file; /* the binary */
    struct sl_buf *answer;
    struct sl_arena arena; /* memory of the pool job */
    struct sl_object *object;
    struct sl_symbol *symbols; /* sorted by address */
    size_t symbol_count;
    struct sl_json_writer json;
};

/* ---- names ---- */

static int asm_by_address(const void *a, const void *b)
{
    const struct sl_symbol *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Returns the symbol that contains the address, or NULL. */
static const struct sl_symbol *symbol_at(const struct asm_work *w, uint64_t address)
{
    size_t before = SL_COUNT_UP_TO(w->symbols, w->symbol_count, address, address);
    const struct sl_symbol *symbol = before ? &w->symbols[before - 1] : NULL;
    return symbol && (!symbol->size || address - symbol->address < symbol->size) ? symbol : NULL;
}

/* Appends the name of the target of a jump or call, "name+0x10"; nothing if it is not known. */
static void name_target(void *arg, uint64_t address, struct sl_buf *out)
{
    const struct asm_work *w = arg;
    const struct sl_symbol *symbol = symbol_at(w, address);
    if (!symbol || !symbol->name.size)
        return;
    if (!sl_demangle(symbol->name, SL_LANG_UNKNOWN, out))
        sl_buf_str(out, symbol->name);
    if (address != symbol->address)
        sl_buf_printf(out, "+0x%llx", (unsigned long long)(address - symbol->address));
}

/* ---- the answer ---- */

static bool write_line(void *arg, uint64_t offset, struct sl_str text)
{
    struct asm_work *w = arg;
    sl_json_begin_array(&w->json);
    sl_json_put_u64(&w->json, offset);
    sl_json_put_str(&w->json, text);
    sl_json_end_array(&w->json);
    return !w->answer->failed;
}

static void asm_hex(struct asm_work *w, const char *key, uint64_t value)
{
    sl_json_member_hex(&w->json, key, value);
}

static void write_code(struct asm_work *w, const struct sl_disasm_code *code)
{
    struct sl_disasm_reader reader = {write_line, name_target, w};
    struct sl_error error;
    uint64_t decoded;
    w->json = sl_json_writer(w->answer);
    sl_json_begin_object(&w->json);
    asm_hex(w, "startAddress", code->address);
    sl_json_member_str(&w->json, "arch", sl_str(sl_disasm_arch(code->arch)));
    sl_json_member_array(&w->json, "syntax");
    sl_json_put_str(&w->json, sl_str(sl_disasm_syntax(code->arch)));
    sl_json_end_array(&w->json);
    sl_json_member_array(&w->json, "instructions");
    if (sl_disasm(code, &reader, &decoded, &error) != SL_OK)
        w->answer->failed = true;
    sl_json_end_array(&w->json);
    asm_hex(w, "size", decoded);
    sl_json_end_object(&w->json);
}

/* Returns the number of bytes to disassemble: as requested, or to the end of the function if that is further. */
static uint64_t size_wanted(const struct asm_work *w, uint64_t start)
{
    uint64_t size = w->ask.size + (w->ask.offset - start);
    const struct sl_symbol *symbol = w->ask.to_function_end ? symbol_at(w, start) : NULL;
    if (symbol && symbol->size && symbol->address + symbol->size - start > size)
        size = symbol->address + symbol->size - start;
    return size < MAX_CODE ? size : MAX_CODE;
}

/* Disassembles from the requested offset on, aligned to an instruction. A program without readable symbols is disassembled
 * without names. */
static void print_function(struct asm_work *w)
{
    const struct sl_object_info *info = sl_object_info(w->object);
    struct sl_error error;
    if (!sl_disasm_arch(info->arch)) {
        mozilla_profiler_error(w->answer, "Unrecognized architecture \"%s\"", sl_arch_name(info->arch));
        return;
    }
    struct sl_mapping_symbol *mapping_symbols;
    size_t mapping_symbol_count;
    if (sl_object_mapping_symbols(w->object, &w->arena, &mapping_symbols, &mapping_symbol_count, &error) != SL_OK) {
        w->answer->failed = true;
        return;
    }
    enum sl_code_isa isa = sl_disasm_isa_at(mapping_symbols, mapping_symbol_count, w->ask.offset);
    uint64_t start = w->ask.offset - w->ask.offset % sl_disasm_step(info->arch, isa);
    struct sl_bytes bytes = sl_object_at(w->object, start);
    if (!bytes.size) {
        mozilla_profiler_error(w->answer, "The requested address was not found in any section in the binary.");
        return;
    }
    if (sl_object_symbols(w->object, &w->arena, &w->symbols, &w->symbol_count, &error) != SL_OK)
        w->symbol_count = 0;
    if (w->symbol_count)
        qsort(w->symbols, w->symbol_count, sizeof *w->symbols, asm_by_address);
    struct sl_disasm_code code = {.arch = info->arch,
                                  .bytes = bytes,
                                  .address = start,
                                  .size = size_wanted(w, start),
                                  .mapping_symbols = mapping_symbols,
                                  .mapping_symbol_count = mapping_symbol_count};
    write_code(w, &code);
}

static enum sl_code asm_work(struct job *job, void *arg, struct sl_error *error)
{
    struct asm_work *w = arg;
    w->answer = &job->answer;
    if (sl_object_open(w->file.item->mapping.bytes, NULL, &w->object, error) != SL_OK) {
        mozilla_profiler_error(w->answer, "An error occurred when loading the binary: %s", error->message);
        return SL_OK;
    }
    print_function(w);
    sl_object_close(w->object);
    sl_arena_free(&w->arena);
    return SL_OK;
}

/* ---- look-up ---- */

static struct sl_str asm_text(struct sl_str text)
{
    return text.data ? text : SL_STR("");
}

/* Makes the list of sources of binaries: the symbol sources, then Mozilla's stores, which have binaries, too, although they
 * are otherwise asked for symbol files only. False when out of memory. */
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
    *where = (struct search_scope){sources, sources ? count + store_count : 0, SL_STR("global"), r->arena, 0};
    return sources;
}

/* Finds the binary by its code id; without one the build id may be found by the debug id. */
static void find_program(const struct profiler_request *r, struct file_lookup *file)
{
    static const enum file_type types[] = {FILE_ELF_CODE, FILE_MACH_CODE, FILE_PE, FILE_ELF_DEBUG};
    struct search_scope where;
    struct object_id id = {.code_id = sl_code_id_normalise(r->arena, asm_text(r->code_id)),
                           .code_file = asm_text(r->name),
                           .debug_file = asm_text(r->debug_name)};
    id.has_debug_id = r->debug_id.data && sl_debug_id_parse(r->debug_id, &id.debug_id);
    enum sl_code code = program_sources(r, &where) ? SL_OK : SL_BUSY;
    if (code == SL_OK && !id.code_id.size)
        code = native_add_build_id(&where, &id);
    *file = (struct file_lookup){.code = code};
    if (code == SL_BUSY || code == SL_CANCELLED)
        sl_fail(&file->error, code, "out of memory or file descriptors");
    else
        search_find_file(&where, &id, types, sizeof types / sizeof *types, file);
}

/* Finds the binary. If it is not found, the answer is a message that the profiler shows. */
static enum sl_code asm_find(struct job *job, void *arg, struct sl_error *error)
{
    struct asm_work *w = arg;
    find_program(&w->ask, &w->file);
    if (w->file.code == SL_CANCELLED || w->file.code == SL_BUSY)
        return sl_fail(error, w->file.code, "%s", w->file.error.message);
    if (w->file.code != SL_OK) {
        struct sl_buf why = {0};
        w->file.error.code = w->file.code;
        cache_error_text(&w->file.error, &why);
        mozilla_profiler_error(&job->answer, "An error occurred when loading the binary: " SL_STR_FMT,
                               SL_STR_ARG(sl_buf_view(&why)));
        sl_buf_free(&why);
    }
    return SL_OK;
}

/* Estimates the answer: as requested, or, for a whole function, whose size is not known yet, that of a large one. */
static uint64_t asm_memory(const void *arg)
{
    const struct profiler_request *r = &((const struct asm_work *)arg)->ask;
    return LINE_BYTES * (r->size < MAX_CODE && !r->to_function_end ? r->size : MAX_CODE / 16);
}

static void asm_release(void *arg)
{
    struct asm_work *w = arg;
    cache_release(w->file.item);
    w->file.item = NULL;
}

/* ---- the request ---- */

static bool asm_read(struct job *job, void *arg, struct sl_str body, struct json_failure *failure)
{
    struct asm_work *w = arg;
    w->ask = (struct profiler_request){.arena = &job->arena, .config = job->config};
    return mozilla_read_profiler(&w->ask, true, body, failure);
}

const struct job_kind job_asm = {
    .task = "mozilla",
    .size = sizeof(struct asm_work),
    .read = asm_read,
    .refuse = mozilla_refuse_profiler,
    .answer = mozilla_answer,
    .run = asm_find,
    .reset = asm_release,
    .write = asm_work,
    .memory = asm_memory,
    .release = asm_release,
};
