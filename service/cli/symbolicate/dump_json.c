/* Minidumps as the JSON of rust-minidump's minidump-stackwalk (its schema): `minidump-json`. */
#include "cli/symbolicate/dump_print.h"

#include "core/json.h"
#include "id/id.h"

struct dump_json {
    const struct answer *answer;
    const struct walked_dump *walked;
    struct json_writer *w;
};

static void put_optional_text(struct json_writer *w, const char *key, struct sl_str text)
{
    json_key(w, key);
    if (text.size)
        json_str(w, text);
    else
        json_null(w);
}

static void put_optional_number(struct json_writer *w, const char *key, bool known, uint64_t value)
{
    json_key(w, key);
    if (known)
        json_u64(w, value);
    else
        json_null(w);
}

/* As wide as a pointer. */
static void put_address(const struct dump_json *d, const char *key, bool known, uint64_t value)
{
    struct sl_buf text = {0};
    json_key(d->w, key);
    if (!known) {
        json_null(d->w);
        return;
    }
    sl_buf_printf(&text, "0x%0*llx", sl_cpu_pointer_size(d->walked->dump.family) == 8 ? 16 : 8,
                  (unsigned long long)value);
    json_str(d->w, sl_buf_view(&text));
    d->w->out->failed |= text.failed;
    sl_buf_free(&text);
}

static void put_line_of(const struct dump_json *d, const struct answer_frame *frame)
{
    put_optional_text(d->w, "file", frame->abs_path);
    put_optional_number(d->w, "line", frame->line.value != 0, frame->line.value);
}

static struct sl_str frame_name(const struct answer_frame *frame)
{
    return frame->function.data ? frame->function : frame->symbol;
}

/* Those that lie in front of the frame that `index` is the first of. */
static void put_inlines(const struct dump_json *d, const struct answer_frame *first, size_t count)
{
    json_key(d->w, "inlines");
    if (!count) {
        json_null(d->w);
        return;
    }
    json_array_begin(d->w);
    for (size_t i = 0; i < count; i++) {
        json_object_begin(d->w);
        put_optional_text(d->w, "function", frame_name(&first[i]));
        put_line_of(d, &first[i]);
        json_object_end(d->w);
    }
    json_array_end(d->w);
}

static struct sl_str trust_of(const struct answer_frame *frame)
{
    if (sl_str_equal(frame->trust, SL_STR("fp")))
        return SL_STR("frame_pointer");
    return sl_str_equal(frame->trust, SL_STR("cfiscan")) ? SL_STR("cfi_scan") : frame->trust;
}

static void put_frame_registers(const struct dump_json *d, size_t thread, const struct answer_frame *frame)
{
    const struct sl_registers *registers = frame_registers(d->walked, thread, frame);
    json_key(d->w, "registers");
    json_object_begin(d->w);
    for (const struct shown_register *r = shown_registers(d->walked->dump.family); registers && r->name; r++)
        if (registers->valid >> r->number & 1)
            put_address(d, r->name, true, registers->value[r->number]);
    json_object_end(d->w);
}

/* The frame at `first` with `inlined` ones in front of it. */
static void put_frame(const struct dump_json *d, size_t thread, size_t number, const struct answer_frame *first,
                      size_t inlined, bool registers)
{
    const struct answer_frame *frame = first + inlined;
    const struct sl_crash_module *module = dump_module_of(&d->walked->dump, frame->address.value);
    const struct answer_module *known = module ? dump_module_answer(d->answer, module->address) : NULL;
    uint64_t at = frame->address.value;
    json_object_begin(d->w);
    json_key(d->w, "frame");
    json_u64(d->w, number);
    put_optional_text(d->w, "trust", trust_of(frame));
    put_address(d, "offset", true, at);
    put_optional_text(d->w, "module", module ? path_file_name(module->code_file) : (struct sl_str){NULL, 0});
    put_address(d, "module_offset", module != NULL, at - (module ? module->address : 0));
    put_optional_text(d->w, "function", frame_name(frame));
    put_address(d, "function_offset", frame->symbol_address.set, at - frame->symbol_address.value);
    put_line_of(d, frame);
    put_inlines(d, first, inlined);
    json_key(d->w, "missing_symbols");
    json_boolean(d->w, !known || !sl_str_equal(known->debug_status, SL_STR("found")));
    if (registers)
        put_frame_registers(d, thread, frame);
    json_object_end(d->w);
}

static size_t count_frames(const struct answer_thread *trace)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->frame_count; i++)
        count += !frame_is_inline(trace, i);
    return count;
}

/* The members of a thread; `crashing`: of the one that is told on its own. */
static void put_thread(const struct dump_json *d, size_t thread, bool crashing)
{
    const struct answer_thread *trace = &d->answer->threads[thread];
    size_t number = 0, inlined = 0;
    json_object_begin(d->w);
    json_key(d->w, "frame_count");
    json_u64(d->w, count_frames(trace));
    if (crashing) {
        json_key(d->w, "threads_index");
        json_u64(d->w, thread);
    }
    put_optional_number(d->w, "thread_id", trace->id.set, trace->id.value);
    put_optional_text(d->w, "thread_name", trace->name);
    json_key(d->w, "last_error_value");
    json_null(d->w);
    json_key(d->w, "frames");
    json_array_begin(d->w);
    for (size_t i = 0; i < trace->frame_count; i++) {
        if (frame_is_inline(trace, i)) {
            inlined++;
            continue;
        }
        put_frame(d, thread, number, &trace->frames[i - inlined], inlined, crashing && !number);
        number++;
        inlined = 0;
    }
    json_array_end(d->w);
    json_object_end(d->w);
}

static void put_crash_info(const struct dump_json *d, int64_t crashed)
{
    const struct sl_minidump *dump = &d->walked->dump;
    json_key(d->w, "crash_info");
    json_object_begin(d->w);
    put_optional_text(d->w, "type", dump->has_exception ? dump_reason(d->answer) : (struct sl_str){NULL, 0});
    put_address(d, "address", dump->has_exception, dump->crash_address);
    put_optional_text(d->w, "assertion", d->answer->assertion);
    put_optional_number(d->w, "crashing_thread", crashed >= 0, (uint64_t)crashed);
    json_object_end(d->w);
}

static void put_system_info(const struct dump_json *d)
{
    const struct sl_minidump *dump = &d->walked->dump;
    json_key(d->w, "system_info");
    json_object_begin(d->w);
    json_key(d->w, "os");
    json_str(d->w, sl_str(dump_os_name(dump)));
    put_optional_text(d->w, "os_ver", sl_str_trimmed(dump->os_text));
    json_key(d->w, "cpu_arch");
    json_str(d->w, sl_str(dump_cpu_name(dump)));
    put_optional_text(d->w, "cpu_info", dump->cpu_text);
    json_key(d->w, "cpu_count");
    json_u64(d->w, dump->cpu_count);
    json_object_end(d->w);
}

static void put_module(const struct dump_json *d, const struct sl_crash_module *module)
{
    const struct answer_module *known = dump_module_answer(d->answer, module->address);
    struct sl_str status = known ? known->debug_status : SL_STR("unused");
    char id[SL_DEBUG_ID_TEXT] = "";
    if (module->has_debug_id)
        sl_debug_id_format_breakpad(&module->debug_id, id);
    bool loaded = sl_str_equal(status, SL_STR("found")), corrupt = sl_str_equal(status, SL_STR("malformed"));
    json_object_begin(d->w);
    put_address(d, "base_addr", true, module->address);
    put_address(d, "end_addr", true, module->address + module->size);
    put_optional_text(d->w, "filename", path_file_name(module->code_file));
    put_optional_text(d->w, "code_id", module->code_id);
    put_optional_text(d->w, "debug_file", path_file_name(module->debug_file));
    put_optional_text(d->w, "debug_id", sl_str(id));
    put_optional_text(d->w, "version", module->version);
    json_key(d->w, "loaded_symbols");
    json_boolean(d->w, loaded);
    json_key(d->w, "missing_symbols");
    json_boolean(d->w, !loaded && !corrupt && !sl_str_equal(status, SL_STR("unused")));
    json_key(d->w, "corrupt_symbols");
    json_boolean(d->w, corrupt);
    json_object_end(d->w);
}

static void put_modules(const struct dump_json *d)
{
    const struct sl_minidump *dump = &d->walked->dump;
    size_t main_module = 0;
    for (size_t i = 0; i < dump->crash.module_count; i++)
        main_module = &dump->crash.modules[i] == dump->main_module ? i : main_module;
    put_optional_number(d->w, "main_module", dump->main_module != NULL, main_module);
    json_key(d->w, "modules");
    json_array_begin(d->w);
    for (size_t i = 0; i < dump->crash.module_count; i++)
        put_module(d, &dump->crash.modules[i]);
    json_array_end(d->w);
    json_key(d->w, "unloaded_modules");
    json_array_begin(d->w);
    for (size_t i = 0; i < dump->unloaded_count; i++) {
        json_object_begin(d->w);
        put_address(d, "base_addr", true, dump->unloaded[i].address);
        put_address(d, "end_addr", true, dump->unloaded[i].address + dump->unloaded[i].size);
        put_optional_text(d->w, "filename", path_file_name(dump->unloaded[i].name));
        json_object_end(d->w);
    }
    json_array_end(d->w);
}

bool answer_print_minidump_json(const struct answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    struct json_writer w = json_writer(out);
    struct dump_json d = {answer, style->walked, &w};
    const struct sl_minidump *dump = &style->walked->dump;
    int64_t crashed = -1;
    uint64_t uptime;
    bool has_uptime = dump_uptime(dump, &uptime);
    for (size_t i = 0; i < answer->thread_count && crashed < 0; i++)
        crashed = answer->threads[i].requesting ? (int64_t)i : -1;
    json_object_begin(&w);
    json_key(&w, "status");
    json_str(&w, SL_STR("OK"));
    put_optional_number(&w, "pid", dump->has_process_id, dump->process_id);
    put_optional_number(&w, "process_uptime", has_uptime, uptime);
    put_crash_info(&d, crashed);
    put_system_info(&d);
    put_optional_number(&w, "thread_count", true, answer->thread_count);
    json_key(&w, "threads");
    json_array_begin(&w);
    for (size_t i = 0; i < answer->thread_count; i++)
        put_thread(&d, i, false);
    json_array_end(&w);
    json_key(&w, "crashing_thread");
    if (crashed >= 0)
        put_thread(&d, (size_t)crashed, true);
    else
        json_null(&w);
    put_modules(&d);
    json_object_end(&w);
    sl_buf_u8(out, '\n');
    return !out->failed;
}
