/* Writes the answer of a native symbolication. Members are in the order in which Symbolicator writes them. */
#include <stdio.h>

#include "api/native/native.h"

#include "function/path.h"
#include "symbfile/fileid.h"

struct native_answer { /* state of native_write */
    const struct native_request *request;
    struct sl_json_writer *w;
    struct sl_buf path;    /* scratch buffer for paths and other texts */
    uint64_t modules_size; /* bytes of the answer's limit that frames leave for the modules */
};

/* Writes a number as "0x...", if it is set. */
static void hex_member(struct sl_json_writer *w, const char *key, struct sl_opt_u64 number)
{
    if (!number.set)
        return;
    sl_json_member_hex(w, key, number.value);
}

/* Writes true or false, if it is set. */
static void bool_member(struct sl_json_writer *w, const char *key, enum sl_opt_bool value)
{
    if (value == SL_BOOL_ABSENT)
        return;
    sl_json_member_boolean(w, key, value == SL_BOOL_TRUE);
}

/* Writes a text of the frame as it was sent, if it was. */
static void sent_member(struct native_answer *a, const char *key, const struct native_frame *sent,
                        enum native_text text)
{
    sl_json_member_if_set(a->w, key, native_text(sent, text));
}

/* Writes a text that is kept as the raw JSON that was sent; nothing if the frame was sent without it. */
static void sent_json_member(struct native_answer *a, const char *key, const struct native_frame *sent,
                             enum native_text text)
{
    struct sl_json j = sl_json(native_text(sent, text), a->request->arena, false);
    if (!j.text.data)
        return;
    sl_json_put_key(a->w, key);
    if (!sl_json_put_value(a->w, &j))
        a->w->out->failed = true;
}

/* ---- frames ---- */

/* True if the frame was symbolicated with native symbols. What was sent is then replaced; of .NET frames (is_dotnet) most stays. */
static bool is_native(const struct native_result_frame *frame)
{
    return frame->status == FRAME_SYMBOLICATED && !frame->is_dotnet;
}

/* Writes what the frame's address is relative to; no member if it is absolute. Addresses of frames with native symbols are absolute, unless
 * the module was sent without an address. */
static void address_mode(struct native_answer *a, const struct native_result_frame *frame)
{
    char text[20];
    uint32_t module = frame->sent->module;
    if (is_native(frame))
        module = a->request->modules[frame->module].image_address ? NATIVE_NO_MODULE : frame->module;
    if (module == NATIVE_NO_MODULE)
        return;
    snprintf(text, sizeof text, "%s:%u", frame->sent->of_file && !is_native(frame) ? "file" : "rel", module);
    sl_json_member_if_set(a->w, "addr_mode", sl_str(text));
}

/* Writes the name of the module's file; the name that was sent if the frame is in no module. */
static void package(struct native_answer *a, const struct native_result_frame *frame)
{
    sl_json_member_if_set(a->w, "package",
                          frame->module == NATIVE_NO_MODULE ? native_text(frame->sent, SENT_PACKAGE)
                                                            : a->request->modules[frame->module].id->code_file);
}

/* Writes symbol, its address and function: those that were found, otherwise those that were sent. Of the frames for functions
 * inlined at one address, only the last one, around them, has a symbol address. */
static void names(struct native_answer *a, const struct native_result_frame *frame)
{
    struct sl_opt_u64 symbol_address = {frame->sent->has_symbol_address, frame->sent->symbol_address};
    struct native_names sent = {native_text(frame->sent, SENT_SYMBOL), native_text(frame->sent, SENT_FUNCTION)};
    const struct native_names *names = frame->names ? frame->names : &sent;
    if (is_native(frame))
        symbol_address = (struct sl_opt_u64){frame->outermost, frame->symbol_address};
    sl_json_member_if_set(a->w, "symbol", names->symbol);
    hex_member(a->w, "sym_addr", symbol_address);
    sl_json_member_if_set(a->w, "function", names->function);
}

/* Writes the path of the source file and its last component: those of the symbols, otherwise those that were sent. */
static void paths(struct native_answer *a, const struct native_result_frame *frame)
{
    struct sl_str path = native_text(frame->sent, SENT_ABS_PATH), directory;
    struct sl_str filename = native_text(frame->sent, SENT_FILENAME);
    if (frame->status == FRAME_SYMBOLICATED && frame->location.file != SL_SYMCACHE_NONE) {
        sl_buf_clear(&a->path);
        const struct native_module *module = &a->request->modules[frame->module];
        if (frame->is_dotnet)
            sl_ppdb_table_name(module->found->lookup.ppdb, frame->location.file, &a->path);
        else
            sl_symcache_file(native_table(module, frame->table), frame->location.file, &a->path);
        if (a->path.size) {
            struct sl_str name;
            path = sl_buf_view(&a->path);
            sl_path_split(path, &directory, &name);
            filename = name.size ? name : filename;
        }
    }
    sl_json_member_if_set(a->w, "filename", filename);
    sl_json_member_if_set(a->w, "abs_path", path);
}

/* Writes source lines and source link: those that were found; if there are none, those that were sent, but only with `keeps_sent`. */
static void context(struct native_answer *a, const struct native_result_frame *frame, bool keeps_sent)
{
    const struct native_frame *sent = frame->sent;
    const struct native_context *found = frame->source ? frame->source->context : NULL;
    if (found) {
        sl_json_put_texts(a->w, "pre_context", found->before, found->before_count);
        sl_json_member_if_set(a->w, "context_line", found->line);
        sl_json_put_texts(a->w, "post_context", found->after, found->after_count);
    } else if (keeps_sent) {
        sent_json_member(a, "pre_context", sent, SENT_PRE_CONTEXT);
        sent_member(a, "context_line", sent, SENT_CONTEXT_LINE);
        sent_json_member(a, "post_context", sent, SENT_POST_CONTEXT);
    }
    if (frame->source)
        sl_json_member_if_set(a->w, "source_link", frame->source->link);
    else if (keeps_sent)
        sent_member(a, "source_link", sent, SENT_SOURCE_LINK);
}

/* Writes text number `text` of the symcache as a member; nothing if that is SL_SYMCACHE_NONE. */
static void native_write_table_text(struct native_answer *a, const char *key, const struct sl_symcache *table,
                                    uint32_t text)
{
    if (text == SL_SYMCACHE_NONE)
        return;
    sl_buf_clear(&a->path);
    sl_symcache_string(table, text, &a->path);
    sl_json_member_if_set(a->w, key, sl_buf_view(&a->path));
}

/* Writes path and revision of the source file in version control, if that is configured and the debug file has them. */
static void version_control(struct native_answer *a, const struct native_result_frame *frame)
{
    const struct sl_symcache *table;
    struct sl_symcache_origin origin;
    if (!a->request->srcsrv_frames || !native_frame_origin(a->request, frame, &table, &origin))
        return;
    native_write_table_text(a, "srcsrv_path", table, origin.path);
    native_write_table_text(a, "srcsrv_revision", table, origin.revision);
}

/* Writes the line: the one in the symbols (0 if unknown), or the one that was sent. */
static void line(struct native_answer *a, const struct native_result_frame *frame)
{
    bool found = frame->status == FRAME_SYMBOLICATED;
    struct sl_opt_u64 sent = {frame->sent->has_line, frame->sent->line};
    json_member_number(a->w, "lineno", found ? (struct sl_opt_u64){true, frame->location.line} : sent);
}

/* Writes the address where the frame's line begins, if the request wants it (commands do). Uploaded symbols do not have it. */
static void line_start(struct native_answer *a, const struct native_result_frame *frame)
{
    uint64_t start;
    if (!a->request->reports_line_starts || !is_native(frame) || frame->table != TABLE_SYMCACHE)
        return;
    const struct native_module *module = &a->request->modules[frame->module];
    uint64_t base = native_table_base(module);
    if (sl_symcache_entry_start(native_table(module, TABLE_SYMCACHE), frame->address - base, &start))
        hex_member(a->w, "line_addr", (struct sl_opt_u64){true, base + start});
}

/* Returns the number of variables of the frame's function, and sets `*first` to the index of the first one in the symcache `*table`.
 * 0: none, or the request does not want variables; then both are of no use. */
static uint32_t find_variables(const struct native_request *request, const struct native_result_frame *frame,
                               const struct sl_symcache **table, uint32_t *first)
{
    if (request->options.extract_variables != SL_BOOL_TRUE || !is_native(frame) || frame->table != TABLE_SYMCACHE)
        return 0;
    *table = native_table(&request->modules[frame->module], TABLE_SYMCACHE);
    return sl_symcache_variables(*table, frame->location.function, first);
}

size_t native_count_variables(const struct native_request *request)
{
    const struct sl_symcache *table;
    uint32_t first;
    size_t count = 0;
    if (request->options.extract_variables != SL_BOOL_TRUE)
        return 0;
    for (size_t t = 0; t < request->trace_count; t++)
        for (size_t i = 0; i < request->results[t].count; i++)
            count += find_variables(request, &request->results[t].frames[i], &table, &first);
    return count;
}

/* Writes the variables of the frame's function as {name: type, ...}; no member if there are none. */
static void variables(struct native_answer *a, const struct native_result_frame *frame)
{
    struct sl_json_writer *w = a->w;
    const struct sl_symcache *table;
    struct sl_symcache_variable variable;
    uint32_t first, count = find_variables(a->request, frame, &table, &first);
    if (!count)
        return;
    sl_json_member_object(w, "vars");
    for (uint32_t i = first; i - first < count; i++) {
        if (!sl_symcache_variable(table, i, &variable))
            continue;
        sl_buf_clear(&a->path);
        sl_symcache_string(table, variable.name, &a->path);
        sl_json_put_key_str(w, sl_buf_view(&a->path));
        sl_buf_clear(&a->path);
        sl_symcache_string(table, variable.type, &a->path);
        sl_json_put_str(w, sl_buf_view(&a->path));
    }
    sl_json_end_object(w);
}

/* Writes a frame. Members that symbolication has not found are those that were sent; but a frame with native symbols gets neither the
 * `in_app` nor the variables that were sent. */
static void frame(struct native_answer *a, const struct native_result_frame *frame)
{
    struct sl_json_writer *w = a->w;
    const struct native_frame *sent = frame->sent;
    bool symbolicated = frame->status == FRAME_SYMBOLICATED;
    sl_json_begin_object(w);
    sl_json_member_str(w, "status", sl_str(native_frame_status(frame->status)));
    sl_json_member_u64(w, "original_index", frame->index);
    sent_member(a, "platform", sent, SENT_PLATFORM);
    address_mode(a, frame);
    sl_json_member_hex(w, "instruction_addr", frame->address);
    bool_member(w, "adjust_instruction_addr", sent->adjust);
    hex_member(w, "function_id", (struct sl_opt_u64){sent->has_function_id, sent->function_id});
    package(a, frame);
    if (!symbolicated)
        sent_member(a, "lang", sent, SENT_LANGUAGE);
    else if (frame->language != SL_LANG_UNKNOWN || frame->is_dotnet) /* native frames have no member for "unknown" */
        sl_json_member_if_set(w, "lang", sl_str(sl_language_name(frame->language)));
    names(a, frame);
    paths(a, frame);
    line(a, frame);
    line_start(a, frame);
    context(a, frame, !is_native(frame));
    version_control(a, frame);
    if (is_native(frame)) {
        variables(a, frame);
    } else {
        bool_member(w, "in_app", sent->in_app);
        sent_json_member(a, "vars", sent, SENT_VARS);
    }
    if (sent->trust != TRUST_NONE)
        sl_json_member_if_set(w, "trust", sl_str(native_trust_name(sent->trust)));
    sl_json_end_object(w);
}

/* Writes a trace, with its frames in the order of the request. The modules, which are written after the traces, take about modules_size
 * bytes: when no more than that is left of the answer's limit, further frames are left out and counted. */
static void trace(struct native_answer *a, size_t index)
{
    struct sl_json_writer *w = a->w;
    const struct native_trace *sent = &a->request->traces[index];
    const struct native_result_trace *result = &a->request->results[index];
    sl_json_begin_object(w);
    json_member_number(w, "thread_id", (struct sl_opt_u64){sent->has_thread_id, sent->thread_id});
    sl_json_member_if_set(w, "thread_name", sent->thread_name);
    bool_member(w, "is_requesting", sent->is_requesting);
    if (sent->register_count) {
        sl_json_member_object(w, "registers");
        for (size_t i = 0; i < sent->register_count; i++) {
            sl_json_put_key_str(w, sent->registers[i].name);
            sl_json_put_hex(w, sent->registers[i].value);
        }
        sl_json_end_object(w);
    }
    sl_json_member_array(w, "frames");
    struct answer_limit *limit = a->request->limit;
    for (size_t i = 0; i < result->count; i++) {
        if (!answer_limit_fits(limit, w->out, a->modules_size)) {
            limit->omitted += result->count - i;
            break;
        }
        frame(a, &result->frames[a->request->options.caller_first ? result->count - 1 - i : i]);
    }
    sl_json_end_array(w);
    sl_json_end_object(w);
}

/* ---- modules ---- */

/* Writes the features of a module's file. `has_sources`: sources of it were found elsewhere, too, for example in a bundle. */
static void features(struct sl_json_writer *w, const struct sl_features *f, bool has_sources)
{
    sl_json_begin_object(w);
    sl_json_member_boolean(w, "has_debug_info", f->has_debug_info);
    sl_json_member_boolean(w, "has_unwind_info", f->has_unwind_info);
    sl_json_member_boolean(w, "has_symbols", f->has_symbols);
    sl_json_member_boolean(w, "has_sources", f->has_sources || has_sources);
    if (f->srcsrv_vcs.size)
        sl_json_member_if_set(w, "srcsrv_vcs", f->srcsrv_vcs);
    sl_json_end_object(w);
}

/* Writes the result of downloading a candidate: with the file's features if it worked, with details if the failure was not that the
 * file is missing or malformed. */
static void download(struct sl_json_writer *w, const struct candidate *candidate)
{
    const char *status = "error";
    switch (candidate->download) {
    case SL_OK: status = "ok"; break;
    case SL_NOT_FOUND: status = "notfound"; break;
    case SL_PERMISSION_DENIED: status = "noperm"; break;
    case SL_MALFORMED: status = "malformed"; break;
    default: break;
    }
    sl_json_begin_object(w);
    sl_json_member_if_set(w, "status", sl_str(status));
    if (candidate->download == SL_OK) {
        sl_json_put_key(w, "features");
        features(w, &candidate->features, false); /* false: no sources but those in the file itself */
    } else if (candidate->download != SL_NOT_FOUND && candidate->download != SL_MALFORMED) {
        sl_json_member_str(w, "details", candidate->download_details);
    }
    sl_json_end_object(w);
}

/* Writes the result of using a candidate for `key`. OK and malformed are words of their own, which need no details; all else is an
 * error. */
static void native_write_use(struct sl_json_writer *w, const char *key, enum sl_code code, struct sl_str details)
{
    bool plain = code == SL_OK || code == SL_MALFORMED;
    sl_json_member_object(w, key);
    sl_json_member_if_set(w, "status", code == SL_OK ? SL_STR("ok") : plain ? SL_STR("malformed") : SL_STR("error"));
    if (!plain || details.size)
        sl_json_member_str(w, "details", details);
    sl_json_end_object(w);
}

/* Writes the files that were tried for a module. A use for which a file was not tried is not written. */
static void candidates(struct sl_json_writer *w, const struct candidate_list *list)
{
    sl_json_member_array(w, "candidates");
    for (size_t i = 0; i < list->count; i++) {
        const struct candidate *candidate = &list->items[i];
        sl_json_begin_object(w);
        sl_json_member_str(w, "source", candidate->source);
        sl_json_member_str(w, "location", candidate->location);
        sl_json_put_key(w, "download");
        download(w, candidate);
        if (candidate->unwind.set)
            native_write_use(w, "unwind", candidate->unwind.code, candidate->unwind.details);
        if (candidate->debug.set)
            native_write_use(w, "debug", candidate->debug.code, candidate->debug.details);
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* Returns the features of the file for symbols and of the one for unwinding, together. */
static struct sl_features all_features(const struct search_result *lookup, const struct native_unwind *unwind)
{
    struct sl_features f = lookup->features;
    if (!unwind)
        return f;
    f.has_debug_info |= unwind->features.has_debug_info;
    f.has_unwind_info |= unwind->features.has_unwind_info;
    f.has_symbols |= unwind->features.has_symbols;
    f.has_sources |= unwind->features.has_sources;
    return f;
}

/* Returns the files that were tried for unwinding and for symbols, in this order, each once. */
static struct candidate_list all_candidates(const struct native_request *request, const struct search_result *lookup,
                                            const struct native_unwind *unwind)
{
    struct candidate_list list = unwind ? unwind->candidates : lookup->candidates;
    if (unwind)
        candidates_merge(request->arena, &list, &lookup->candidates);
    return list;
}

/* Writes a module: the results of its look-ups for symbols and unwinding, together, and its ids. If it was looked up by another
 * debug file name than that in the minidump (rewrite_first_module), the answer has the one in the minidump. */
static void module(struct native_answer *a, size_t index)
{
    static const struct native_lookups nothing; /* the results of a module in which no frame lies */
    struct sl_json_writer *w = a->w;
    const struct native_module *module = &a->request->modules[index];
    const struct native_unwind *unwind = a->request->unwind ? a->request->unwind[index] : NULL;
    const struct search_result *lookup = module->found ? &module->found->lookup : &nothing.lookup;
    const struct object_id *id = module->id;
    char debug_id[SL_DEBUG_ID_TEXT], file_id[SL_FILE_ID_HEX];
    sl_json_begin_object(w);
    sl_json_member_if_set(w, "debug_status", sl_str(native_module_status(module)));
    if (unwind)
        sl_json_member_if_set(w, "unwind_status", sl_str(unwind->status));
    const struct sl_features merged = all_features(lookup, unwind);
    sl_json_put_key(w, "features");
    features(w, &merged, module->has_sources);
    sl_json_member_if_set(w, "arch", sl_str(sl_arch_name(lookup->arch)));
    sl_json_member_if_set(w, "type", sl_str(object_type_name(id->type)));
    sl_json_member_if_set(w, "code_id", id->code_id);
    sl_json_member_if_set(w, "code_file", id->code_file);
    if (id->has_debug_id) {
        sl_debug_id_format(&id->debug_id, debug_id);
        sl_json_member_if_set(w, "debug_id", sl_str(debug_id));
    }
    bool is_renamed = unwind && unwind->debug_file.data;
    sl_json_member_if_set(w, "debug_file", is_renamed ? unwind->debug_file : id->debug_file);
    sl_json_member_if_set(w, "debug_checksum", id->debug_checksum);
    if (module->guessed) /* found by its name, as no id was sent */
        sl_json_member_boolean(w, "guess", true);
    sl_json_member_hex(w, "image_addr", module->image_address);
    json_member_number(w, "image_size", (struct sl_opt_u64){module->has_image_size, module->image_size});
    if (module->upload->has_file_id) {
        sl_file_id_format_hex(&module->upload->file_id, file_id);
        sl_json_member_if_set(w, "file_id", sl_str(file_id));
    }
    hex_member(w, "image_vmaddr", module->upload->image_vmaddr);
    const struct candidate_list list = all_candidates(a->request, lookup, unwind);
    if (a->request->options.dif_candidates == SL_BOOL_TRUE && list.count)
        candidates(w, &list);
    sl_json_end_object(w);
}

/* Estimates the bytes of the modules in the answer; at most half of its limit, so that some frames fit as well. */
static uint64_t size_of_modules(const struct native_request *request)
{
    enum { KEYS = 384 }; /* about the bytes of a module's keys and numbers */
    uint64_t size = 0, most = request->limit->max / 2;
    for (size_t i = 0; i < request->module_count; i++) {
        const struct object_id *id = request->modules[i].id;
        size += KEYS + id->code_id.size + id->code_file.size + id->debug_file.size + id->debug_checksum.size;
    }
    return size < most ? size : most;
}

void native_write(const struct native_request *request, struct sl_json_writer *w, const void *unused)
{
    struct native_answer a = {.request = request, .w = w, .modules_size = size_of_modules(request)};
    json_member_number(w, "signal", request->signal);
    sl_json_member_array(w, "stacktraces");
    for (size_t i = 0; i < request->trace_count; i++)
        trace(&a, i);
    sl_json_end_array(w);
    sl_json_member_array(w, "modules");
    for (size_t i = 0; i < request->module_count && answer_limit_fits(request->limit, w->out, 0); i++)
        module(&a, i);
    sl_json_end_array(w);
    sl_buf_free(&a.path);
}
