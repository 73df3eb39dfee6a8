/* The body of POST /symbolicate into the request. */
#include "api/native.h"
#include "symbfile/fileid.h"

#include <stddef.h>
#include <stdlib.h>

#define TEXT(type, member, key)                                                                                        \
    {                                                                                                                  \
        key, FIELD_TEXT, false, offsetof(struct type, member), NULL                                                    \
    }
#define HEX(type, member, key)                                                                                         \
    {                                                                                                                  \
        key, FIELD_HEX, false, offsetof(struct type, member), NULL                                                     \
    }
#define U32(type, member, key)                                                                                         \
    {                                                                                                                  \
        key, FIELD_U32, false, offsetof(struct type, member), NULL                                                     \
    }
#define U64(type, member, key)                                                                                         \
    {                                                                                                                  \
        key, FIELD_U64, false, offsetof(struct type, member), NULL                                                     \
    }
#define BOOL(type, member, key)                                                                                        \
    {                                                                                                                  \
        key, FIELD_BOOL, false, offsetof(struct type, member), NULL                                                    \
    }
#define CUSTOM(type, member, key, read)                                                                                \
    {                                                                                                                  \
        key, FIELD_CUSTOM, false, offsetof(struct type, member), read                                                  \
    }
#define END                                                                                                            \
    {                                                                                                                  \
        NULL, FIELD_TEXT, false, 0, NULL                                                                               \
    }

/* ---- frames ---- */
static bool read_address_mode(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct sl_str text;
    uint32_t *module = out;
    if (!schema_text(s, at, value, &text))
        return false;
    if (sl_str_equal(text, SL_STR("abs"))) {
        *module = NATIVE_NO_MODULE;
        return true;
    }
    uint64_t index = 0;
    bool good = text.size > 4 && text.size < 16 && memcmp(text.data, "rel:", 4) == 0;
    for (size_t i = 4; good && i < text.size; i++) {
        good = text.data[i] >= '0' && text.data[i] <= '9';
        index = index * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (!good)
        return schema_fail(s, at, value, "invalid address mode");
    *module = index < NATIVE_NO_MODULE ? (uint32_t)index : NATIVE_NO_MODULE - 1; /* no request has as many */
    return true;
}

static bool read_trust(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    static const char *const words[] = {"none", "scan", "cfiscan", "fp", "cfi", "prewalked", "context"};
    struct sl_str text;
    if (!schema_text(s, at, value, &text))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sl_str_equal(text, sl_str(words[i]))) {
            *(const char **)out = i ? words[i] : NULL;
            return true;
        }
    return schema_fail(s, at, value,
                       "unknown variant `%.40s`, expected none, scan, cfiscan, fp, cfi, prewalked or context",
                       text.data);
}

static bool read_language(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    enum sl_language language;
    if (!schema_text(s, at, value, out))
        return false;
    return sl_language_parse(*(struct sl_str *)out, &language) ||
           schema_fail(s, at, value, "unknown variant, expected the name of a language");
}

static bool read_text(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    return schema_text(s, at, value, out);
}

static bool read_lines(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    void *items;
    size_t count;
    if (!schema_array(s, at, value, sizeof(struct sl_str), read_text, &items, &count))
        return false;
    *(const struct value **)out = count ? value : NULL;
    return true;
}

static bool read_map(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    if (value->type != VALUE_MAP)
        return schema_mismatch(s, at, value, "a map");
    *(const struct value **)out = value;
    return true;
}

static const struct field frame_fields[] = {
    {"instruction_addr", FIELD_HEX, true, offsetof(struct native_frame, address), NULL},
    CUSTOM(native_frame, module, "addr_mode", read_address_mode),
    CUSTOM(native_frame, trust, "trust", read_trust),
    TEXT(native_frame, package, "package"),
    TEXT(native_frame, function, "function"),
    TEXT(native_frame, symbol, "symbol"),
    HEX(native_frame, symbol_address, "sym_addr"),
    BOOL(native_frame, in_app, "in_app"),
    BOOL(native_frame, adjust, "adjust_instruction_addr"),
    HEX(native_frame, function_id, "function_id"),
    TEXT(native_frame, platform, "platform"),
    CUSTOM(native_frame, language, "lang", read_language),
    TEXT(native_frame, filename, "filename"),
    TEXT(native_frame, abs_path, "abs_path"),
    U32(native_frame, line, "lineno"),
    TEXT(native_frame, context_line, "context_line"),
    CUSTOM(native_frame, pre_context, "pre_context", read_lines),
    CUSTOM(native_frame, post_context, "post_context", read_lines),
    TEXT(native_frame, source_link, "source_link"),
    CUSTOM(native_frame, vars, "vars", read_map),
    END,
};

static bool read_frame(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct native_frame *frame = out;
    frame->module = NATIVE_NO_MODULE;
    return schema_object(s, at, value, frame_fields, frame);
}

/* ---- stack traces ---- */
static int by_name(const void *a, const void *b)
{
    return sl_str_compare(((const struct native_register *)a)->name, ((const struct native_register *)b)->name);
}

static bool read_registers(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    if (value->type != VALUE_MAP)
        return schema_mismatch(s, at, value, "a map");
    struct native_trace *trace = out;
    size_t count = value->count;
    trace->registers = SL_ARENA_ARRAY(s->arena, struct native_register, count);
    if (count && !trace->registers)
        return schema_fail(s, at, value, "out of memory");
    trace->register_count = count;
    for (size_t i = 0; i < count; i++) {
        struct native_register *r = &trace->registers[i];
        struct schema_place place = {at, value->keys[i].data, 0};
        r->name = value->keys[i];
        if (!schema_hex(s, &place, &value->items[i], &r->value))
            return false;
    }
    if (count)
        qsort(trace->registers, count, sizeof *trace->registers, by_name);
    return true;
}

static bool read_frames(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct native_trace *trace = out;
    void *frames;
    if (!schema_array(s, at, value, sizeof(struct native_frame), read_frame, &frames, &trace->frame_count))
        return false;
    trace->frames = frames;
    return true;
}

static const struct field trace_fields[] = {
    {"frames", FIELD_CUSTOM, true, 0, read_frames},     {"registers", FIELD_CUSTOM, false, 0, read_registers},
    U64(native_trace, thread_id, "thread_id"),          TEXT(native_trace, thread_name, "thread_name"),
    BOOL(native_trace, is_requesting, "is_requesting"), END,
};

static bool read_trace(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    return schema_object(s, at, value, trace_fields, out);
}

static bool read_traces(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct native_request *request = out;
    void *traces;
    if (!schema_array(s, at, value, sizeof(struct native_trace), read_trace, &traces, &request->trace_count))
        return false;
    request->traces = traces;
    return true;
}

/* ---- modules ---- */
static bool read_type(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct sl_str type;
    if (!schema_text(s, at, value, &type))
        return false;
    ((struct native_module *)out)->id.type = object_type_parse(type);
    return true;
}

static bool read_debug_id(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct native_module *module = out;
    struct sl_str text;
    if (!schema_text(s, at, value, &text))
        return false;
    if (!sl_debug_id_parse(text, &module->id.debug_id))
        return true;
    char shown[SL_DEBUG_ID_TEXT];
    sl_debug_id_format(&module->id.debug_id, shown);
    const char *copy = sl_arena_strndup(s->arena, shown, strlen(shown));
    module->id.has_debug_id = true;
    module->debug_id = sl_str(copy);
    return copy || schema_fail(s, at, value, "out of memory");
}

static bool read_code_id(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct native_module *module = out;
    struct sl_str text;
    if (!schema_text(s, at, value, &text))
        return false;
    if (!text.size)
        return true;
    module->id.code_id = sl_code_id_normalise(s->arena, text);
    module->code_id = module->id.code_id.size ? module->id.code_id : SL_STR("");
    return true;
}

/* A bad one makes the module malformed, not the request. */
static bool read_file_id(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct native_module *module = out;
    struct sl_str text;
    if (!schema_text(s, at, value, &text))
        return false;
    module->has_file_id = sl_file_id_parse_any(text, &module->file_id);
    module->bad_file_id = !module->has_file_id;
    return true;
}

/* An integer, or as text what addresses may be. */
static bool read_image_size(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct opt_u64 *size = out;
    size->set = true;
    return schema_hex(s, at, value, &size->value);
}

static const struct field module_fields[] = {
    {"type", FIELD_CUSTOM, true, 0, read_type},
    {"debug_id", FIELD_CUSTOM, false, 0, read_debug_id},
    {"code_id", FIELD_CUSTOM, false, 0, read_code_id},
    TEXT(native_module, debug_file, "debug_file"),
    TEXT(native_module, code_file, "code_file"),
    TEXT(native_module, debug_checksum, "debug_checksum"),
    HEX(native_module, image_address, "image_addr"),
    CUSTOM(native_module, image_size, "image_size", read_image_size),
    {"file_id", FIELD_CUSTOM, false, 0, read_file_id},
    HEX(native_module, image_vmaddr, "image_vmaddr"),
    END,
};

static bool read_module(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct native_module *module = out;
    if (!schema_object(s, at, value, module_fields, module))
        return false;
    module->id.code_file = module->code_file;
    module->id.debug_file = module->debug_file;
    module->id.debug_checksum = module->debug_checksum;
    return true;
}

static bool read_modules(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct native_request *request = out;
    void *modules;
    if (!schema_array(s, at, value, sizeof(struct native_module), read_module, &modules, &request->module_count))
        return false;
    request->modules = modules;
    return true;
}

/* ---- options, scraping ---- */
static bool read_frame_order(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct sl_str text;
    if (!schema_text(s, at, value, &text))
        return false;
    *(bool *)out = sl_str_equal(text, SL_STR("caller_first"));
    return *(bool *)out || sl_str_equal(text, SL_STR("callee_first")) ||
           schema_fail(s, at, value, "unknown variant `%.40s`, expected callee_first or caller_first", text.data);
}

static const struct field option_fields[] = {
    BOOL(native_options, dif_candidates, "dif_candidates"),
    BOOL(native_options, apply_source_context, "apply_source_context"),
    CUSTOM(native_options, caller_first, "frame_order", read_frame_order),
    END,
};

static bool read_options(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    return schema_object(s, at, value, option_fields, out);
}

static bool read_origins(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    struct native_scraping *scraping = out;
    void *items;
    if (!schema_array(s, at, value, sizeof(struct sl_str), read_text, &items, &scraping->allowed_origin_count))
        return false;
    scraping->allowed_origins = items;
    return true;
}

static bool read_headers(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    if (!read_map(s, at, value, out))
        return false;
    for (size_t i = 0; i < value->count; i++) {
        struct schema_place place = {at, value->keys[i].data, 0};
        struct sl_str text;
        if (!schema_text(s, &place, &value->items[i], &text))
            return false;
    }
    return true;
}

static const struct field scraping_fields[] = {
    BOOL(native_scraping, enabled, "enabled"),
    BOOL(native_scraping, verify_ssl, "verify_ssl"),
    {"allowed_origins", FIELD_CUSTOM, false, 0, read_origins},
    CUSTOM(native_scraping, headers, "headers", read_headers),
    END,
};

static bool read_scraping(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    return schema_object(s, at, value, scraping_fields, out);
}

/* ---- all ---- */
struct body { /* the top level */
    struct native_request request;
    const struct value *sources, *threads;
};

static bool keep(struct schema *s, const struct schema_place *at, const struct value *value, void *out)
{
    (void)s, (void)at;
    *(const struct value **)out = value;
    return true;
}

static const struct field body_fields[] = {
    TEXT(body, request.platform, "platform"),
    U32(body, request.signal, "signal"),
    CUSTOM(body, sources, "sources", keep),
    {"stacktraces", FIELD_CUSTOM, false, offsetof(struct body, request), read_traces},
    CUSTOM(body, threads, "threads", keep),
    {"modules", FIELD_CUSTOM, false, offsetof(struct body, request), read_modules},
    CUSTOM(body, request.options, "options", read_options),
    CUSTOM(body, request.scraping, "scraping", read_scraping),
    END,
};

static bool read_sources(struct native_request *request, const struct value *json, const struct config *config,
                         const char **problem)
{
    struct source_policy policy = {
        .filesystem = config->allow_filesystem_sources_in_requests,
        .ambient_credentials = config->allow_ambient_credentials_in_requests,
        .internal_sentry = config->allow_internal_sentry_sources_in_requests,
        .sentry_hosts = config->sentry_source_hosts,
        .sentry_host_count = config->sentry_source_host_count,
    };
    struct value_problems problems = {.arena = request->arena};
    struct source *sources;
    *problem = "out of memory";
    enum sl_code code =
        source_parse_list(request->arena, json, "sources", &policy, &sources, &request->source_count, &problems);
    request->sources = sources;
    for (size_t i = 0; code != SL_OK && i < problems.count; i++) {
        if (problems.items[i].warning)
            continue;
        struct sl_buf text = {0};
        sl_buf_printf(&text, SL_STR_FMT ": " SL_STR_FMT, SL_STR_ARG(problems.items[i].path),
                      SL_STR_ARG(problems.items[i].what));
        const char *copy = sl_arena_strndup(request->arena, (const char *)text.data, text.size);
        *problem = copy ? copy : *problem;
        sl_buf_free(&text);
        break;
    }
    return code == SL_OK;
}

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

static bool within_limits(struct native_request *request, const struct config *config, const char **problem)
{
    for (size_t t = 0; t < request->trace_count; t++)
        request->frame_count += request->traces[t].frame_count;
    *problem = request->frame_count > config->max_request_frames     ? "too many frames"
               : request->module_count > config->max_request_modules ? "too many modules"
                                                                     : NULL;
    return !*problem;
}

bool native_read(struct native_request *request, const struct value *root, const struct config *config, int *status,
                 const char **problem)
{
    struct schema s = {.arena = request->arena};
    static const struct sl_str any_origin = SL_STR("*");
    struct body body = {.request = *request};
    body.request.scraping.allowed_origins = &any_origin;
    body.request.scraping.allowed_origin_count = 1;
    *status = 422;
    bool good = schema_object(&s, NULL, root, body_fields, &body);
    if (good && !body.request.traces && body.threads) {
        struct schema_place at = {NULL, "threads", 0};
        good = read_traces(&s, &at, body.threads, &body.request);
    }
    *request = body.request;
    *problem = s.problem;
    request->srcsrv_frames = config->srcsrv_frames;
    request->srcsrv_links = config->srcsrv_links;
    request->sources = config->sources;
    request->source_count = config->source_count;
    if (!good || (body.sources && !read_sources(request, body.sources, config, problem)))
        return false;
    if (!within_limits(request, config, problem)) {
        *status = 413;
        return false;
    }
    if (request->options.caller_first)
        reverse_frames(request);
    return true;
}
