/* Minidumps as the JSON of rust-minidump's minidump-stackwalk (its schema): `minidump-json`. */
#include "cli/symbolicate/dump_json.h"

#include <stdlib.h>

#include "api/crash_analysis.h"
#include "id/id.h"

static void put_optional_number(struct sl_json_writer *w, const char *key, bool known, uint64_t value)
{
    sl_json_put_key(w, key);
    if (known)
        sl_json_put_u64(w, value);
    else
        sl_json_put_null(w);
}

static void put_line_of(const struct dump_json *d, const struct answer_frame *frame)
{
    dump_json_text(d->w, "file", frame->abs_path);
    put_optional_number(d->w, "line", frame->line.value != 0, frame->line.value);
}

/* Those that lie in front of the frame that `index` is the first of. */
static void put_inlines(const struct dump_json *d, const struct answer_frame *first, size_t count)
{
    sl_json_put_key(d->w, "inlines");
    if (!count) {
        sl_json_put_null(d->w);
        return;
    }
    sl_json_begin_array(d->w);
    for (size_t i = 0; i < count; i++) {
        sl_json_begin_object(d->w);
        dump_json_text(d->w, "function", answer_frame_name(&first[i]));
        put_line_of(d, &first[i]);
        sl_json_end_object(d->w);
    }
    sl_json_end_array(d->w);
}

static struct sl_str trust_of(const struct answer_frame *frame)
{
    if (sl_str_equal(frame->trust, SL_STR("fp")))
        return SL_STR("frame_pointer");
    return sl_str_equal(frame->trust, SL_STR("cfiscan")) ? SL_STR("cfi_scan") : frame->trust;
}

/* Those that the dump has of the thread. */
static void put_frame_registers(const struct dump_json *d, size_t thread)
{
    const struct sl_crash_thread *known = &d->walked->dump.crash.threads[thread];
    struct sl_json_writer *w = d->w;
    sl_json_member_object(w, "registers");
    for (size_t i = 0; i < known->register_count; i++) {
        sl_json_put_key_str(w, known->registers[i].name);
        dump_json_put_address(d, known->registers[i].value);
    }
    sl_json_end_object(w);
}

/* Modules that were at the address and were unloaded; null: none. */
static void put_unloaded_at(const struct dump_json *d, uint64_t address)
{
    struct sl_minidump_unloaded_at found[SL_MINIDUMP_UNLOADED_AT];
    size_t count = sl_minidump_unloaded_at(&d->walked->dump, address, found);
    if (!count) {
        sl_json_put_null(d->w);
        return;
    }
    sl_json_begin_array(d->w);
    for (size_t i = 0; i < count; i++) {
        if (!i || !sl_str_equal(found[i].name, found[i - 1].name)) {
            sl_json_begin_object(d->w);
            dump_json_text(d->w, "module", found[i].name);
            sl_json_member_array(d->w, "offsets");
        }
        dump_json_put_address(d, found[i].offset);
        if (i + 1 == count || !sl_str_equal(found[i].name, found[i + 1].name)) {
            sl_json_end_array(d->w);
            sl_json_end_object(d->w);
        }
    }
    sl_json_end_array(d->w);
}

/* The frame at `first` with `inlined` ones in front of it. */
static void put_frame(const struct dump_json *d, size_t thread, size_t number, const struct answer_frame *first,
                      size_t inlined, bool registers)
{
    const struct answer_frame *frame = first + inlined;
    uint64_t at = frame_instruction(d->walked, thread, frame);
    const struct sl_crash_module *module = sl_minidump_module_at(&d->walked->dump, at);
    sl_json_begin_object(d->w);
    sl_json_member_u64(d->w, "frame", number);
    dump_json_text(d->w, "trust", trust_of(frame));
    dump_json_address(d, "offset", true, at);
    dump_json_text(d->w, "module", module ? path_file_name(module->code_file) : (struct sl_str){NULL, 0});
    dump_json_address(d, "module_offset", module != NULL, at - (module ? module->address : 0));
    sl_json_put_key(d->w, "unloaded_modules");
    if (module)
        sl_json_put_null(d->w);
    else
        put_unloaded_at(d, at);
    dump_json_text(d->w, "function", answer_frame_name(frame));
    dump_json_address(d, "function_offset", frame->symbol_address.set, at - frame->symbol_address.value);
    put_line_of(d, frame);
    put_inlines(d, first, inlined);
    sl_json_member_boolean(d->w, "missing_symbols", !answer_frame_name(frame).size);
    if (registers)
        put_frame_registers(d, thread);
    sl_json_end_object(d->w);
}

static size_t count_frames(const struct answer_thread *trace)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->frame_count; i++)
        count += !answer_frame_is_inline(trace, i);
    return count;
}

/* The members of a thread; `crashing`: of the one that is told on its own. */
static void put_thread(const struct dump_json *d, size_t thread, bool crashing)
{
    const struct answer_thread *trace = &d->answer->threads[thread];
    size_t number = 0, inlined = 0;
    sl_json_begin_object(d->w);
    sl_json_member_u64(d->w, "frame_count", count_frames(trace));
    if (crashing)
        sl_json_member_u64(d->w, "threads_index", thread);
    put_optional_number(d->w, "thread_id", trace->id.set, trace->id.value);
    const struct sl_minidump *dump = &d->walked->dump;
    sl_json_member_or_null(d->w, "thread_name", dump->crash.threads[thread].name);
    dump_json_text(d->w, "last_error_value", sl_minidump_last_error(dump, thread, d->arena));
    sl_json_member_array(d->w, "frames");
    for (size_t i = 0; i < trace->frame_count; i++) {
        if (answer_frame_is_inline(trace, i)) {
            inlined++;
            continue;
        }
        put_frame(d, thread, number, &trace->frames[i - inlined], inlined, crashing && !number);
        number++;
        inlined = 0;
    }
    sl_json_end_array(d->w);
    sl_json_end_object(d->w);
}

/* The format has it of x86-64 alone. */
static void put_analysis(const struct dump_json *d)
{
    const struct walked_dump *walked = d->walked;
    const struct sl_minidump_analysis nothing = {.is_of_crash = walked->dump.has_exception};
    bool is_x86_64 = walked->dump.family == SL_CPU_X86_64 && !walked->dump.is_wow64;
    crash_analysis_write(d->w, is_x86_64 ? &walked->analysis : &nothing, 16);
}

static void put_crash_info(const struct dump_json *d, int64_t crashed)
{
    const struct sl_minidump *dump = &d->walked->dump;
    sl_json_member_object(d->w, "crash_info");
    dump_json_text(d->w, "type", dump->has_exception ? dump_reason(d->answer) : (struct sl_str){NULL, 0});
    dump_json_address(d, "address", dump->has_exception, dump->crash_address);
    put_analysis(d);
    dump_json_text(d->w, "assertion", d->answer->assertion);
    put_optional_number(d->w, "crashing_thread", crashed >= 0, (uint64_t)crashed);
    sl_json_end_object(d->w);
}

static void put_system_name(const struct dump_json *d)
{
    const struct sl_minidump *dump = &d->walked->dump;
    const struct sl_crash_system *system = &dump->crash.system;
    struct sl_buf text = {0};
    if (dump->os == SL_MINIDUMP_OTHER)
        sl_buf_printf(&text, "0x%08x", dump->platform);
    else
        sl_buf_cstr(&text, dump_os_name(dump));
    dump_json_text(d->w, "os", sl_buf_view(&text));
    sl_buf_clear(&text);
    sl_buf_printf(&text, SL_STR_FMT " " SL_STR_FMT, SL_STR_ARG(system->os_version), SL_STR_ARG(system->os_build));
    dump_json_text(d->w, "os_ver", sl_str_trimmed(sl_buf_view(&text)));
    d->w->out->failed |= text.failed;
    sl_buf_free(&text);
}

static void put_system_info(const struct dump_json *d)
{
    const struct sl_minidump *dump = &d->walked->dump;
    sl_json_member_object(d->w, "system_info");
    put_system_name(d);
    sl_json_member_str(d->w, "cpu_arch", sl_str(dump_cpu_name(dump)));
    dump_json_text(d->w, "cpu_info", dump->cpu_text);
    sl_json_member_u64(d->w, "cpu_count", dump->cpu_count);
    dump_json_microcode(d);
    sl_json_end_object(d->w);
}

/* Of those that were looked for anywhere. */
static void put_symbols(const struct dump_json *d, const struct answer_module *known)
{
    struct sl_str status = known && d->walked->was_searched ? known->debug_status : SL_STR("unused");
    const struct {
        const char *key;
        bool value;
    } members[] = {
        {"loaded_symbols", sl_str_equal(status, SL_STR("found"))},
        {"missing_symbols", !sl_str_equal(status, SL_STR("found")) && !sl_str_equal(status, SL_STR("unused"))},
        {"corrupt_symbols", sl_str_equal(status, SL_STR("malformed"))},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        sl_json_member_boolean(d->w, members[i].key, members[i].value);
    sl_json_member_null(d->w, "symbol_url");
}

static void put_module(const struct dump_json *d, const struct sl_crash_module *module,
                       const struct answer_module *known)
{
    static const struct sl_debug_id no_id;
    char id[SL_DEBUG_ID_TEXT] = "";
    sl_debug_id_format_breakpad(module->has_debug_id ? &module->debug_id : &no_id, id);
    sl_json_begin_object(d->w);
    dump_json_address(d, "base_addr", true, module->address);
    dump_json_address(d, "end_addr", true, module->address + module->size);
    sl_json_member_or_null(d->w, "filename", path_file_name(module->code_file));
    sl_json_member_or_null(d->w, "code_id", module->code_id.data ? module->code_id : SL_STR(""));
    sl_json_member_or_null(d->w, "debug_file",
                           module->debug_file.data ? path_file_name(module->debug_file) : SL_STR(""));
    dump_json_text(d->w, "debug_id", sl_str(id));
    dump_json_text(d->w, "version", module->version);
    sl_json_member_null(d->w, "cert_subject");
    put_symbols(d, known);
    sl_json_end_object(d->w);
}

struct listed_module {
    const struct sl_crash_module *module;
    const struct answer_module *known; /* NULL: nobody asked for it */
};

static int by_place(const void *left, const void *right)
{
    const struct listed_module *a = left, *b = right;
    return (a->module->place > b->module->place) - (a->module->place < b->module->place);
}

/* In the dump's order, whose first one is the program. */
static bool put_modules(const struct dump_json *d)
{
    const struct sl_minidump *dump = &d->walked->dump;
    size_t count = dump->crash.module_count, next = 0;
    struct listed_module *modules = SL_ARENA_ARRAY(d->arena, struct listed_module, count + 1);
    if (!modules)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct sl_crash_module *module = &dump->crash.modules[i];
        modules[i] = (struct listed_module){module, dump_next_answer(d->answer, module, &next)};
    }
    if (count)
        qsort(modules, count, sizeof *modules, by_place);
    put_optional_number(d->w, "main_module", true, 0);
    sl_json_member_boolean(d->w, "modules_contains_cert_info", false);
    sl_json_member_array(d->w, "modules");
    for (size_t i = 0; i < count; i++)
        put_module(d, modules[i].module, modules[i].known);
    sl_json_end_array(d->w);
    return true;
}

static void put_unloaded(const struct dump_json *d)
{
    const struct sl_minidump *dump = &d->walked->dump;
    sl_json_member_array(d->w, "unloaded_modules");
    for (size_t i = 0; i < dump->unloaded_count; i++) {
        const struct sl_minidump_unloaded *unloaded = &dump->unloaded[i];
        struct sl_buf id = {0};
        sl_buf_printf(&id, "%08x%llx", unloaded->timestamp, (unsigned long long)unloaded->size);
        sl_json_begin_object(d->w);
        dump_json_address(d, "base_addr", true, unloaded->address);
        dump_json_address(d, "end_addr", true, unloaded->address + unloaded->size);
        dump_json_text(d->w, "code_id", sl_buf_view(&id));
        sl_json_member_or_null(d->w, "filename", unloaded->name);
        sl_json_member_null(d->w, "cert_subject");
        sl_json_end_object(d->w);
        d->w->out->failed |= id.failed;
        sl_buf_free(&id);
    }
    sl_json_end_array(d->w);
}

bool answer_print_minidump_json(const struct answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    struct sl_json_writer w = sl_json_writer(out);
    struct sl_arena arena = {0};
    struct dump_json d = {answer, style->walked, &w, &arena};
    const struct sl_minidump *dump = &style->walked->dump;
    int64_t crashed = answer_requesting_thread(answer);
    uint64_t uptime;
    bool has_uptime = dump_uptime(dump, &uptime);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", SL_STR("OK"));
    put_optional_number(&w, "pid", d.walked->facts.has_process_id, d.walked->facts.process_id);
    put_optional_number(&w, "process_uptime", has_uptime, uptime);
    put_crash_info(&d, crashed);
    put_system_info(&d);
    put_optional_number(&w, "thread_count", true, answer->thread_count);
    sl_json_member_array(&w, "threads");
    for (size_t i = 0; i < answer->thread_count; i++)
        put_thread(&d, i, false);
    sl_json_end_array(&w);
    if (crashed >= 0) {
        sl_json_put_key(&w, "crashing_thread");
        put_thread(&d, (size_t)crashed, true);
    }
    bool good = put_modules(&d);
    put_unloaded(&d);
    dump_json_facts(&d);
    sl_json_end_object(&w);
    sl_buf_u8(out, '\n');
    sl_arena_free(&arena);
    return good && !out->failed;
}
