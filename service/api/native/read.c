/* Reads the body of POST /symbolicate. */
#include "api/native/native.h"
#include "api/form_files.h"
#include "api/sources.h"
#include "symbfile/fileid.h"

#include <stddef.h>
#include <stdlib.h>

struct native_reading { /* state of native_read */
    struct native_request *request;
    const struct config *config;
    struct sl_json threads; /* parser at the value of "threads", if has_threads */
    bool has_threads, has_traces;
    /* for each type the id that modules with nothing but a type share; NULL: none yet */
    const struct object_id *bare[OBJECT_TYPES];
};

/* Returns the first 40 bytes of an invalid value, for an error message. */
static struct sl_str shortened(struct sl_str text)
{
    return (struct sl_str){text.data, text.size < 40 ? text.size : 40};
}

/* ---- frames ---- */
struct address_mode { /* what a frame's address is relative to; see native_frame.module and of_file */
    uint32_t module;
    bool of_file;
};

struct native_input_frame { /* a frame while it is read */
    struct sl_opt_u64 address, symbol_address, function_id, line;
    struct address_mode mode;
    enum sl_opt_bool adjust, in_app;
    enum native_trust trust;
    struct sl_str texts[SENT_TEXTS];
};

/* Reads what the address of a frame is relative to: "abs" = nothing, "rel:<module>" = where that module was loaded, "file:<module>"
 * = the addresses of its file. */
static bool read_address_mode(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text;
    struct address_mode *mode = out;
    size_t where = s->json->at;
    if (!sl_fields_text(s, at, &text))
        return false;
    if (sl_str_equal(text, SL_STR("abs"))) {
        *mode = (struct address_mode){.module = NATIVE_NO_MODULE};
        return true;
    }
    uint64_t index = 0;
    mode->of_file = sl_str_starts(text, SL_STR("file:"));
    /* length of "file:" or "rel:"; the longest accepted text has 16 bytes */
    size_t begin = mode->of_file ? 5 : 4;
    if (text.size < begin || text.size > 16 || (!mode->of_file && !sl_str_starts(text, SL_STR("rel:"))) ||
        !sl_parse_u64((struct sl_str){text.data + begin, text.size - begin}, &index))
        return sl_fields_fail(s, at, where, "invalid address mode");
    /* an index too large for the field names no module; so does the largest index, as no request has so many modules */
    mode->module = index < NATIVE_NO_MODULE ? (uint32_t)index : NATIVE_NO_MODULE - 1;
    return true;
}

/* Reads `trust`: only the words that answers have are accepted. */
static bool read_trust(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text;
    size_t where = s->json->at;
    if (!sl_fields_text(s, at, &text))
        return false;
    for (int i = 0; i < TRUSTS; i++)
        if (sl_str_equal(text, sl_str(native_trust_name((enum native_trust)i)))) {
            *(enum native_trust *)out = (enum native_trust)i;
            return true;
        }
    return sl_fields_fail(
        s, at, where, "unknown variant `" SL_STR_FMT "`, expected none, scan, cfiscan, fp, cfi, prewalked or context",
        SL_STR_ARG(shortened(text)));
}

/* Reads `lang`, and checks that the language is known; keeps the name as sent, for the answer. */
static bool read_language(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    enum sl_language language;
    size_t where = s->json->at;
    if (!sl_fields_text(s, at, out))
        return false;
    return sl_language_parse(*(struct sl_str *)out, &language) ||
           sl_fields_fail(s, at, where, "unknown variant, expected the name of a language");
}

/* Reads `vars`, an object, of which only the JSON text is kept, to be written again as it is. sl_fields_open sets the error for
 * other values. */
static bool read_vars(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    if (sl_json_peek(s->json) == SL_JSON_OBJECT)
        return sl_json_value(s->json, out);
    return sl_fields_open(s, at, SL_JSON_OBJECT, "a map");
}

#define FRAME_TEXT(text, key) SL_FIELD(TEXT, false, native_input_frame, texts[text], key)
static const struct sl_field frame_fields[] = {
    {SL_STR("instruction_addr"), SL_FIELD_HEX, true, offsetof(struct native_input_frame, address), NULL},
    SL_FIELD_BY(false, native_input_frame, mode, "addr_mode", read_address_mode),
    SL_FIELD_BY(false, native_input_frame, trust, "trust", read_trust),
    FRAME_TEXT(SENT_PACKAGE, "package"),
    FRAME_TEXT(SENT_FUNCTION, "function"),
    FRAME_TEXT(SENT_SYMBOL, "symbol"),
    SL_FIELD(HEX, false, native_input_frame, symbol_address, "sym_addr"),
    SL_FIELD(BOOL, false, native_input_frame, in_app, "in_app"),
    SL_FIELD(BOOL, false, native_input_frame, adjust, "adjust_instruction_addr"),
    SL_FIELD(HEX, false, native_input_frame, function_id, "function_id"),
    FRAME_TEXT(SENT_PLATFORM, "platform"),
    SL_FIELD_BY(false, native_input_frame, texts[SENT_LANGUAGE], "lang", read_language),
    FRAME_TEXT(SENT_FILENAME, "filename"),
    FRAME_TEXT(SENT_ABS_PATH, "abs_path"),
    SL_FIELD(U32, false, native_input_frame, line, "lineno"),
    FRAME_TEXT(SENT_CONTEXT_LINE, "context_line"),
    SL_FIELD_BY(false, native_input_frame, texts[SENT_PRE_CONTEXT], "pre_context", json_raw_texts),
    SL_FIELD_BY(false, native_input_frame, texts[SENT_POST_CONTEXT], "post_context", json_raw_texts),
    FRAME_TEXT(SENT_SOURCE_LINK, "source_link"),
    SL_FIELD_BY(false, native_input_frame, texts[SENT_VARS], "vars", read_vars),
    SL_FIELDS_END,
};

/* Stores the texts that were sent in an array without gaps; the bits of has_text say which ones they are. False when out of memory. */
static bool keep_texts(struct sl_fields *s, const struct native_input_frame *sent, struct native_frame *frame)
{
    struct sl_str found[SENT_TEXTS], *kept;
    size_t count = 0;
    for (unsigned i = 0; i < SENT_TEXTS; i++)
        if (sent->texts[i].data) {
            frame->has_text |= (uint16_t)(1u << i);
            found[count++] = sent->texts[i];
        }
    if (!count)
        return true;
    frame->texts = kept = sl_arena_alloc(s->json->arena, count * sizeof *kept, _Alignof(struct sl_str));
    if (!kept)
        return sl_json_no_memory(s->json);
    memcpy(kept, found, count * sizeof *kept);
    return true;
}

/* Reads a frame into a struct with all members, then keeps it in the small struct native_frame, as large requests have very many
 * frames. */
static bool read_frame(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_reading *r = s->context;
    struct native_input_frame sent = {.mode = {.module = NATIVE_NO_MODULE}};
    struct native_frame *frame = out;
    if (!sl_fields_admit(s, ++r->request->frame_count, r->config->max_request_frames, sizeof *frame,
                         "too many frames") ||
        !sl_fields_object(s, at, frame_fields, &sent))
        return false;
    *frame = (struct native_frame){
        .address = sent.address.value,
        .symbol_address = sent.symbol_address.value,
        .has_symbol_address = sent.symbol_address.set,
        .function_id = sent.function_id.value,
        .has_function_id = sent.function_id.set,
        .line = (uint32_t)sent.line.value,
        .has_line = sent.line.set,
        .module = sent.mode.module,
        .of_file = sent.mode.of_file,
        .adjust = sent.adjust,
        .in_app = sent.in_app,
        .trust = (uint8_t)sent.trust,
    };
    return keep_texts(s, &sent, frame);
}

/* ---- stack traces ---- */
struct native_input_trace { /* a trace while it is read */
    struct native_trace kept;
    struct sl_opt_u64 thread_id;
    enum sl_opt_bool is_requesting;
};

/* Compares registers by name. */
static int native_read_by_name(const void *a, const void *b)
{
    return sl_str_compare(((const struct native_register *)a)->name, ((const struct native_register *)b)->name);
}

/* Reads one register of a trace: its value is a hexadecimal number as text. */
static bool read_register(struct sl_fields *s, const struct sl_json_path *at, struct sl_str name,
                          struct sl_arena_array *registers)
{
    struct sl_json_path place = {.up = at, .key = name};
    struct native_register *r = sl_arena_array_add(registers);
    if (!r)
        return sl_json_no_memory(s->json);
    r->name = name;
    return sl_fields_hex(s, &place, &r->value);
}

/* Reads the registers of a trace, and sorts them by name, as the answer has them in this order. */
static bool read_registers(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_trace *trace = out;
    struct sl_arena_array registers = {.arena = s->json->arena, .item = sizeof *trace->registers};
    struct sl_str name;
    bool good = sl_fields_open(s, at, SL_JSON_OBJECT, "a map");
    while (good && sl_json_next(s->json, &name))
        good = read_register(s, at, name, &registers);
    if (!good || s->json->failed) {
        sl_arena_array_discard(&registers);
        return false;
    }
    trace->register_count = (uint32_t)registers.count;
    trace->registers = sl_arena_array_finish(&registers);
    if (trace->register_count && trace->registers)
        qsort(trace->registers, trace->register_count, sizeof *trace->registers, native_read_by_name);
    return trace->registers || sl_json_no_memory(s->json);
}

/* Reads the frames of a trace. */
static bool read_frames(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_trace *trace = out;
    void *frames;
    size_t count;
    if (!sl_fields_array(s, at, sizeof(struct native_frame), read_frame, &frames, &count))
        return false;
    trace->frames = frames;
    trace->frame_count = (uint32_t)count;
    return true;
}

static const struct sl_field trace_fields[] = {
    {SL_STR("frames"), SL_FIELD_CUSTOM, true, offsetof(struct native_input_trace, kept), read_frames},
    SL_FIELD_BY(false, native_input_trace, kept, "registers", read_registers),
    SL_FIELD(U64, false, native_input_trace, thread_id, "thread_id"),
    SL_FIELD(TEXT, false, native_input_trace, kept.thread_name, "thread_name"),
    SL_FIELD(BOOL, false, native_input_trace, is_requesting, "is_requesting"),
    SL_FIELDS_END,
};

/* Reads a trace; the numbers of native_trace that have few bits are copied from a struct with all members. */
static bool read_trace(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_input_trace trace = {0};
    if (!sl_fields_object(s, at, trace_fields, &trace))
        return false;
    struct native_trace *kept = out;
    *kept = trace.kept;
    kept->has_thread_id = trace.thread_id.set;
    kept->thread_id = trace.thread_id.value;
    kept->is_requesting = (uint8_t)trace.is_requesting;
    return true;
}

/* Reads `stacktraces` into the request (s->context); `out` is not used, and NULL when read_body calls this for "threads". */
static bool read_traces(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_reading *r = s->context;
    void *traces;
    (void)out;
    if (!sl_fields_array(s, at, sizeof(struct native_trace), read_trace, &traces, &r->request->trace_count))
        return false;
    r->request->traces = traces;
    r->has_traces = true;
    return true;
}

/* ---- modules ---- */
struct native_input_module { /* a module while it is read */
    struct object_id id;
    struct sl_opt_u64 image_address, image_size;
    struct native_upload upload;
};

/* Stands for the members of struct native_upload in all modules that were sent without them: bodies have many of those. */
static const struct native_upload no_upload;

/* Reads the type of a module; an unknown one is OBJECT_UNKNOWN. */
static bool read_type(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str type;
    if (!sl_fields_text(s, at, &type))
        return false;
    ((struct native_input_module *)out)->id.type = object_type_parse(type);
    return true;
}

/* Reads a debug id. An invalid one counts as not sent. */
static bool read_debug_id(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_input_module *module = out;
    struct sl_str text;
    if (!sl_fields_text(s, at, &text))
        return false;
    module->id.has_debug_id |= sl_debug_id_parse(text, &module->id.debug_id);
    return true;
}

/* Reads a code id and normalizes it. An empty text counts as not sent. A text without hex digits becomes an empty code id that is not
 * NULL, and is therefore written into the answer. */
static bool read_code_id(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_input_module *module = out;
    struct sl_str text;
    if (!sl_fields_text(s, at, &text))
        return false;
    if (!text.size)
        return true;
    module->id.code_id = sl_code_id_normalise(s->json->arena, text);
    return module->id.code_id.data || sl_json_no_memory(s->json);
}

/* Reads the file id of uploaded symbols. An invalid one makes only this module malformed, not the request. */
static bool read_file_id(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_input_module *module = out;
    struct sl_str text;
    if (!sl_fields_text(s, at, &text))
        return false;
    module->upload.has_file_id = sl_file_id_parse_any(text, &module->upload.file_id);
    module->upload.bad_file_id = !module->upload.has_file_id;
    return true;
}

static const struct sl_field module_fields[] = {
    {SL_STR("type"), SL_FIELD_CUSTOM, true, 0, read_type},
    {SL_STR("debug_id"), SL_FIELD_CUSTOM, false, 0, read_debug_id},
    {SL_STR("code_id"), SL_FIELD_CUSTOM, false, 0, read_code_id},
    SL_FIELD(TEXT, false, native_input_module, id.debug_file, "debug_file"),
    SL_FIELD(TEXT, false, native_input_module, id.code_file, "code_file"),
    SL_FIELD(TEXT, false, native_input_module, id.debug_checksum, "debug_checksum"),
    SL_FIELD(HEX, false, native_input_module, image_address, "image_addr"),
    SL_FIELD(HEX, false, native_input_module, image_size, "image_size"),
    {SL_STR("file_id"), SL_FIELD_CUSTOM, false, 0, read_file_id},
    SL_FIELD(HEX, false, native_input_module, upload.image_vmaddr, "image_vmaddr"),
    SL_FIELDS_END,
};

/* Copies `value` to the arena; NULL when out of memory, which is the parser's error then. Raises the arena's limit, which
 * json_document sets from the body's size, as these copies are allowed beyond it. */
static const void *native_read_keep(struct sl_fields *s, const void *value, size_t size)
{
    s->json->arena->limit += size;
    void *copy = sl_arena_alloc(s->json->arena, size, _Alignof(max_align_t));
    if (copy)
        memcpy(copy, value, size);
    else
        sl_json_no_memory(s->json);
    return copy;
}

/* Copies an id to the arena; NULL when out of memory. Modules that have only a type share one copy for each type, as large requests
 * have many of them. */
static const struct object_id *keep_id(struct sl_fields *s, const struct object_id *id)
{
    struct native_reading *r = s->context;
    bool bare = !id->has_debug_id && !id->code_id.data && !id->code_file.data && !id->debug_file.data &&
                !id->debug_checksum.data;
    const struct object_id **shared = &r->bare[id->type];
    if (bare && *shared)
        return *shared;
    const struct object_id *kept = native_read_keep(s, id, sizeof *id);
    if (bare)
        *shared = kept;
    return kept;
}

/* Copies what identifies uploaded symbols to the arena; without any such member returns no_upload. NULL when out of memory. */
static const struct native_upload *keep_upload(struct sl_fields *s, const struct native_upload *upload)
{
    bool any = upload->has_file_id || upload->bad_file_id || upload->image_vmaddr.set;
    return any ? native_read_keep(s, upload, sizeof *upload) : &no_upload;
}

/* Reads a module into a struct with all members, then keeps it in the small struct native_module. */
static bool read_module(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_reading *r = s->context;
    struct native_input_module module = {.upload = {.has_file_id = false}};
    struct native_module *kept = out;
    if (!sl_fields_admit(s, at->index + 1, r->config->max_request_modules, sizeof *kept, "too many modules") ||
        !sl_fields_object(s, at, module_fields, &module))
        return false;
    kept->image_address = module.image_address.value;
    kept->image_size = module.image_size.value;
    kept->has_image_size = module.image_size.set;
    kept->id = keep_id(s, &module.id);
    kept->upload = keep_upload(s, &module.upload);
    return kept->id && kept->upload;
}

/* ---- options ---- */

/* Reads the order of frames: sets `*out` to true for caller_first, to false for callee_first. */
static bool read_frame_order(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text;
    size_t where = s->json->at;
    if (!sl_fields_text(s, at, &text))
        return false;
    *(bool *)out = sl_str_equal(text, SL_STR("caller_first"));
    return *(bool *)out || sl_str_equal(text, SL_STR("callee_first")) ||
           sl_fields_fail(s, at, where, "unknown variant `" SL_STR_FMT "`, expected callee_first or caller_first",
                          SL_STR_ARG(shortened(text)));
}

static const struct sl_field option_fields[] = {
    SL_FIELD(BOOL, false, native_options, dif_candidates, "dif_candidates"),
    SL_FIELD(BOOL, false, native_options, apply_source_context, "apply_source_context"),
    SL_FIELD(BOOL, false, native_options, extract_variables, "extract_variables"),
    SL_FIELD(BOOL, false, native_options, all_frames, "all_frames"),
    SL_FIELD(BOOL, false, native_options, configured_sources, "configured_sources"),
    SL_FIELD_BY(false, native_options, caller_first, "frame_order", read_frame_order),
    SL_FIELDS_END,
};

bool native_read_options(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    return sl_fields_object(s, at, option_fields, out);
}

/* ---- all ---- */

/* Reads the symbol sources of the request; they replace the configured ones. */
static bool read_sources(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_reading *r = s->context;
    (void)out;
    struct native_request *request = r->request;
    return request_sources_read_into(s, at, r->config, &request->sources, &request->source_count,
                                     &request->sources_number);
}

/* Keeps a copy of the parser at the value of "threads", and skips the value: only at the end of the body it is known whether there
 * is "stacktraces", which replaces it. */
static bool defer_threads(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct native_reading *r = s->context;
    (void)at, (void)out;
    r->threads = *s->json;
    r->has_threads = true;
    sl_json_skip(s->json);
    return !s->json->failed;
}

static const struct sl_field body_fields[] = {
    SL_FIELD(TEXT, false, native_request, platform, "platform"),
    SL_FIELD(U32, false, native_request, signal, "signal"),
    {SL_STR("sources"), SL_FIELD_CUSTOM, false, 0, read_sources},
    {SL_STR("stacktraces"), SL_FIELD_CUSTOM, false, 0, read_traces},
    {SL_STR("threads"), SL_FIELD_CUSTOM, false, 0, defer_threads},
    SL_FIELD_EACH(false, native_request, modules, module_count, "modules", read_module),
    SL_FIELD_BY(false, native_request, options, "options", native_read_options),
    SL_FIELD_BY(false, native_request, scraping, "scraping", scraping_read),
    SL_FIELDS_END,
};

/* Reads the body. Without "stacktraces", the value of "threads" is read in its place, by setting the parser back to it. */
static bool read_body(struct sl_fields *s)
{
    struct native_reading *r = s->context;
    struct sl_json_path threads = {.key = SL_STR("threads")};
    if (!sl_fields_object(s, NULL, body_fields, r->request))
        return false;
    if (!r->has_threads || r->has_traces)
        return true;
    struct sl_json end = *s->json;
    *s->json = r->threads;
    if (!read_traces(s, &threads, NULL))
        return false;
    *s->json = end;
    return true;
}

/* Reverses the frames of all traces, for requests that have the caller first: everything else expects the callee first. */
static void reverse_frames(struct native_request *request)
{
    for (size_t t = 0; t < request->trace_count; t++) {
        struct native_trace *trace = &request->traces[t];
        for (size_t i = 0, j = trace->frame_count; i + 1 < j; i++) {
            struct native_frame frame = trace->frames[i];
            trace->frames[i] = trace->frames[--j];
            trace->frames[j] = frame;
        }
    }
}

/* Sources of the body replace the configured ones, which are set here. */
void native_configure(struct native_request *request, const struct config *config)
{
    request->scraping = scraping_default;
    request->srcsrv_frames = config->srcsrv_frames;
    request->srcsrv_links = config->srcsrv_links;
    request->inlines_without_lines = config->inlines_without_lines;
    request->sources = config->sources;
    request->sources_number = config->sources_number;
    request->source_count = config->source_count;
}

/* sources_number becomes 0: the list of this request has no number, so that searches in it are not cached. If it has no sources of
 * its own, `sources` is the configured list already. */
bool native_add_configured(struct native_request *request, const struct config *config)
{
    if (request->options.configured_sources != SL_BOOL_TRUE || request->sources == config->sources)
        return true;
    request->sources_number = 0;
    return request_sources_add_configured(config, request->arena, &request->sources, &request->source_count);
}

bool native_read(struct native_request *request, struct sl_str body, const struct config *config,
                 struct json_failure *failure)
{
    struct native_reading r = {.request = request, .config = config};
    native_configure(request, config);
    if (!json_document(body, request->arena, read_body, &r, failure))
        return false;
    if (request->options.caller_first)
        reverse_frames(request);
    return true;
}
