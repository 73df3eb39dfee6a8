/* `symloom inspect` for minidumps: system, crash, threads, modules; with --raw also the streams. */
#include "cli/inspect/inspect.h"

#include <time.h>

#include "minidump/microdump.h"
#include "minidump/minidump.h"

struct dump_view {
    const char *path;
    size_t size; /* of the file in bytes */
    struct sl_minidump dump;
    const char *problem;  /* why it is unreadable; NULL: readable */
    const char *unusable; /* why it yields no stacks, `problem` or another reason; NULL: usable */
    const struct options *options;
};

/* ---- text ---- */

/* Appends a line with a label; nothing if the text is empty, as the dump does not have it. */
static void dump_line(struct sl_buf *out, const char *label, struct sl_str text)
{
    if (!text.size)
        return;
    sl_buf_printf(out, "  %-12s ", label);
    output_put_safe(out, text);
    sl_buf_u8(out, '\n');
}

/* Appends a line with a time in UTC; nothing if the time is out of range. */
static void put_time(struct sl_buf *out, const char *label, int64_t seconds)
{
    char text[32];
    time_t time = (time_t)seconds;
    struct tm tm;
    if (gmtime_r(&time, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        dump_line(out, label, sl_str(text));
}

/* Appends the line of OS name, version, build and processor; a processor that symloom cannot read is shown by its own name. */
static void put_system(const struct sl_minidump *dump, struct sl_buf *out)
{
    const struct sl_crash_system *system = &dump->crash.system;
    sl_buf_printf(out, "  %-12s ", "System");
    output_put_safe(out, system->os_name);
    sl_buf_cstr(out, system->os_name.size && system->os_version.size ? " " : "");
    output_put_safe(out, system->os_version);
    sl_buf_cstr(out, system->os_build.size ? " " : "");
    output_put_safe(out, system->os_build);
    sl_buf_printf(out, ", %s%s\n", dump->unread_processor ? dump->unread_processor : sl_arch_name(system->arch),
                  dump->is_wow64 ? ", a 32-bit program (WoW64)" : "");
}

/* Returns the number of streams in the file; 0 for a microdump, which is a text: the streams of `dump` were made from it. */
static size_t count_streams(const struct sl_minidump *dump)
{
    return dump->is_microdump ? 0 : dump->stream_count;
}

/* Appends how many streams, threads, modules and memory ranges the dump has. */
static void put_counts(const struct sl_minidump *dump, struct sl_buf *out)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < dump->memory_count; i++)
        bytes += dump->memory[i].bytes.size;
    sl_buf_printf(out, "  %-12s %zu threads, %zu modules, %zu unloaded modules, %zu regions of memory (", "Counts",
                  dump->crash.thread_count, dump->crash.module_count, dump->unloaded_count, dump->memory_count);
    inspect_put_size(out, bytes);
    sl_buf_printf(out, "), %zu streams", count_streams(dump));
    if (dump->handles.known)
        sl_buf_printf(out, ", %llu handles", (unsigned long long)dump->handles.count);
    if (dump->mapping_count)
        sl_buf_printf(out, ", %zu mappings", dump->mapping_count);
    sl_buf_u8(out, '\n');
}

/* Lists the threads, and how much of their stacks the dump contains. */
static void put_threads(const struct sl_minidump *dump, struct sl_buf *out)
{
    for (size_t i = 0; i < dump->crash.thread_count; i++) {
        const struct sl_crash_thread *thread = &dump->crash.threads[i];
        sl_buf_printf(out, "  %-12s %llu%s", i ? "" : "Threads", (unsigned long long)thread->id,
                      thread->name.size ? " " : "");
        output_put_safe(out, thread->name);
        sl_buf_printf(out, "%s, %zu bytes of stack\n",
                      thread->requesting == SL_REQUESTING_THREAD_YES ? " (crashed)" : "",
                      dump->threads[i].stack.bytes.size);
    }
}

/* Appends a line per loaded module; "-" stands for an unknown debug id. */
static void put_modules(const struct sl_minidump *dump, struct sl_buf *out)
{
    for (size_t i = 0; i < dump->crash.module_count; i++) {
        const struct sl_crash_module *module = &dump->crash.modules[i];
        char id[SL_DEBUG_ID_TEXT] = "-";
        if (module->has_debug_id)
            sl_debug_id_format(&module->debug_id, id);
        sl_buf_printf(out, "  %-12s %#14llx %#10llx  %s  ", i ? "" : "Modules", (unsigned long long)module->address,
                      (unsigned long long)module->size, id);
        output_put_safe(out, module->code_file);
        sl_buf_u8(out, '\n');
    }
}

static void put_stream(const struct sl_minidump_stream *stream, struct sl_buf *out)
{
    const char *name = sl_minidump_stream_name(stream->type);
    sl_buf_printf(out, "  Stream       %#10x  %-26s %10u bytes at %#x%s\n", stream->type, name ? name : "unknown",
                  stream->size, stream->offset, stream->bytes.data ? "" : ", outside of the file");
}

/* Appends a line with an annotation, which may be one of the process or of a module. */
static void put_annotation(const struct sl_minidump_annotation *annotation, struct sl_buf *out)
{
    sl_buf_printf(out, "  %-12s ", "Annotation");
    output_put_safe(out, annotation->name);
    sl_buf_u8(out, '=');
    output_put_safe(out, annotation->value);
    sl_buf_u8(out, '\n');
}

/* Appends the dump as text. */
static void put_dump(const struct dump_view *view, struct sl_buf *out)
{
    const struct sl_minidump *dump = &view->dump;
    const char *format = dump->is_microdump ? "microdump" : dump->big_endian ? "minidump (big-endian)" : "minidump";
    inspect_put_head(out, view->path, format, view->size);
    sl_buf_u8(out, '\n');
    if (!view->problem) {
        put_system(dump, out);
        if (dump->crash.has_timestamp)
            put_time(out, "Time", dump->crash.timestamp);
        dump_line(out, "Reason", dump->crash.reason);
        dump_line(out, "Assertion", dump->crash.assertion);
        if (dump->has_process_id)
            sl_buf_printf(out, "  %-12s %u\n", "Process", dump->process_id);
        if (dump->has_create_time)
            put_time(out, "Started", dump->create_time);
        for (size_t i = 0; i < dump->crash_info_count; i++)
            dump_line(out, "Message", dump->crash_info[i]);
        for (size_t i = 0; i < dump->annotation_count; i++)
            put_annotation(&dump->annotations[i], out);
        put_counts(dump, out);
        put_threads(dump, out);
        put_modules(dump, out);
    }
    for (size_t i = 0; i < count_streams(dump) && option_given(view->options, "raw"); i++)
        put_stream(&dump->streams[i], out);
    sl_buf_printf(out, "  Usable       %s%s%s\n", view->unusable ? "no (" : "yes", view->unusable ? view->unusable : "",
                  view->unusable ? ")" : "");
}

/* ---- JSON ---- */

/* Writes a thread; `stack` is the size of its stack in the dump, in bytes. */
static void write_thread(struct sl_json_writer *w, const struct sl_crash_thread *thread, size_t stack)
{
    sl_json_begin_object(w);
    sl_json_member_u64(w, "thread_id", thread->id);
    sl_json_member_or_null(w, "thread_name", thread->name);
    sl_json_member_boolean(w, "crashed", thread->requesting == SL_REQUESTING_THREAD_YES);
    sl_json_member_u64(w, "stack_size", stack);
    sl_json_end_object(w);
}

/* Writes a loaded module; the debug id is null if it is unknown. */
static void write_module(struct sl_json_writer *w, const struct sl_crash_module *module)
{
    char id[SL_DEBUG_ID_TEXT] = "";
    if (module->has_debug_id)
        sl_debug_id_format(&module->debug_id, id);
    sl_json_begin_object(w);
    sl_json_member_hex(w, "image_addr", module->address);
    sl_json_member_u64(w, "image_size", module->size);
    sl_json_member_or_null(w, "code_id", module->code_id);
    sl_json_member_or_null(w, "debug_id", sl_str(*id ? id : NULL));
    sl_json_member_or_null(w, "code_file", module->code_file);
    sl_json_member_or_null(w, "debug_file", module->debug_file);
    sl_json_end_object(w);
}

/* Writes an entry of the dump's directory of streams. */
static void write_stream(struct sl_json_writer *w, const struct sl_minidump_stream *stream)
{
    sl_json_begin_object(w);
    sl_json_member_u64(w, "type", stream->type);
    sl_json_member_or_null(w, "name", sl_str(sl_minidump_stream_name(stream->type)));
    sl_json_member_u64(w, "offset", stream->offset);
    sl_json_member_u64(w, "size", stream->size);
    sl_json_end_object(w);
}

/* Writes the members about system, crash, threads and modules, of a dump that can be read. */
static void write_contents(struct sl_json_writer *w, const struct sl_minidump *dump)
{
    const struct sl_crash *crash = &dump->crash;
    sl_json_member_or_null(w, "os_name", crash->system.os_name);
    sl_json_member_or_null(w, "os_version", crash->system.os_version);
    sl_json_member_or_null(w, "os_build", crash->system.os_build);
    sl_json_member_or_null(w, "arch", sl_str(sl_arch_name(crash->system.arch)));
    if (crash->has_timestamp)
        sl_json_member_u64(w, "timestamp", (uint64_t)crash->timestamp);
    sl_json_member_or_null(w, "crash_reason", crash->reason);
    sl_json_member_or_null(w, "assertion", crash->assertion);
    sl_json_member_array(w, "threads");
    for (size_t i = 0; i < crash->thread_count; i++)
        write_thread(w, &crash->threads[i], dump->threads[i].stack.bytes.size);
    sl_json_end_array(w);
    sl_json_member_array(w, "modules");
    for (size_t i = 0; i < crash->module_count; i++)
        write_module(w, &crash->modules[i]);
    sl_json_end_array(w);
}

/* Writes the dump as a JSON object. */
static void write_dump(const struct dump_view *view, struct sl_json_writer *w)
{
    const struct sl_minidump *dump = &view->dump;
    sl_json_begin_object(w);
    sl_json_member_or_null(w, "path", sl_str(view->path));
    sl_json_member_u64(w, "size", view->size);
    sl_json_member_or_null(w, "type", dump->is_microdump ? SL_STR("microdump") : SL_STR("minidump"));
    if (!view->problem)
        write_contents(w, dump);
    sl_json_member_array(w, "streams");
    for (size_t i = 0; i < count_streams(dump); i++)
        write_stream(w, &dump->streams[i]);
    sl_json_end_array(w);
    sl_json_member_boolean(w, "is_usable", !view->unusable);
    sl_json_member_or_null(w, "problem", sl_str(view->unusable));
    sl_json_end_object(w);
}

/* ---- the file ---- */

/* True if the file is a minidump, by its signature in either byte order, or a microdump, which is a text in a log. */
static bool is_minidump(struct sl_bytes bytes)
{
    return (bytes.size >= 4 && (memcmp(bytes.data, "MDMP", 4) == 0 || memcmp(bytes.data, "PMDM", 4) == 0)) ||
           sl_microdump_is_in(bytes);
}

/* Reads the dump into view->dump. Sets view->unusable if it yields no stacks, and also view->problem if it is unreadable. Both point to the
 * text of `error`. */
static void dump_read(struct dump_view *view, struct sl_bytes bytes, struct sl_arena *arena, struct sl_error *error)
{
    if (sl_minidump_read(bytes, arena, &view->dump, error) != SL_OK)
        view->problem = error->message;
    else if (!sl_minidump_enter_wow64(&view->dump, arena)) /* shows the 32-bit side of a WoW64 process */
        sl_fail(error, SL_BUSY, "out of memory");
    else if (view->dump.unread_processor)
        sl_fail(error, SL_UNSUPPORTED, "no stacks: registers of this processor (%s, %u) are not supported",
                view->dump.unread_processor, view->dump.cpu);
    else if (sl_minidump_lacks_registers(&view->dump))
        sl_fail(error, SL_UNSUPPORTED, "no stacks: none of the %zu threads has registers of this processor (%s)",
                view->dump.crash.thread_count, sl_arch_name(view->dump.crash.system.arch));
    /* the message is that of sl_minidump_read or of an sl_fail above; empty if all went well */
    view->unusable = *error->message ? error->message : NULL;
}

/* Shows a minidump or microdump: as JSON, as one line with --check, or as text. False, showing nothing, if the file is none. */
bool inspect_minidump(struct inspected_file *file)
{
    struct dump_view view = {.path = file->path, .options = file->options, .size = file->bytes.size};
    struct sl_error error = {0};
    struct sl_arena arena = {0};
    if (!is_minidump(file->bytes))
        return false;
    dump_read(&view, file->bytes, &arena, &error);
    if (file->w)
        write_dump(&view, file->w);
    else if (option_given(file->options, "check"))
        inspect_put_usable(file->out, file->path, view.unusable);
    else
        put_dump(&view, file->out);
    file->unusable = view.unusable != NULL;
    sl_arena_free(&arena);
    return true;
}
