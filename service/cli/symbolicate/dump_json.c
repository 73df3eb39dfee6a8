/* --format minidump-json: minidumps in the JSON schema of rust-minidump's minidump-stackwalk. */
#include "cli/symbolicate/dump_print.h"

#include <stdlib.h>

#include "conversion/crash_analysis.h"
#include "base/json_write.h"
#include "id/id.h"

struct dump_json {
    const struct symbolicated_answer *answer;
    const struct walked_dump *walked; /* the parsed dump, which has what the answer lacks */
    struct sl_json_writer *w;
    struct sl_arena *arena; /* for texts made while writing */
};

/* ---- values ---- */

/* Writes a string member; null if it is empty. */
static void member_text(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    sl_json_member_or_null(w, key, text.size ? text : (struct sl_str){NULL, 0});
}

/* Writes an address in hexadecimal, padded to the width of the dump's pointers: 8 or 16 digits. */
static void put_pointer(const struct dump_json *d, uint64_t value)
{
    enum sl_cpu_family family = d->walked->dump.family;
    bool is_narrow = family != SL_CPU_UNKNOWN && sl_cpu_pointer_size(family) == 4;
    sl_json_put_hex_padded(d->w, value, is_narrow ? 8 : 16);
}

/* Writes an address member as wide as a pointer, "0x0000000000000045"; null if it is unknown. */
static void member_address(const struct dump_json *d, const char *key, bool known, uint64_t value)
{
    sl_json_put_key(d->w, key);
    if (known)
        put_pointer(d, value);
    else
        sl_json_put_null(d->w);
}

/* ---- CPU, handles ---- */

/* Writes the microcode's version as a hexadecimal number, or null. */
static void put_microcode(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    sl_json_put_key(d->w, "cpu_microcode_version");
    if (facts->has_microcode)
        sl_json_put_hex(d->w, facts->microcode);
    else
        sl_json_put_null(d->w);
}

/* Writes the list of the process's handles (Windows). */
static void put_handles(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    sl_json_begin_array(d->w);
    for (size_t i = 0; i < facts->handle_count; i++) {
        sl_json_begin_object(d->w);
        sl_json_member_u64(d->w, "handle", facts->handles[i].handle);
        sl_json_member_or_null(d->w, "type_name", facts->handles[i].type);
        sl_json_member_or_null(d->w, "object_name", facts->handles[i].object);
        sl_json_end_object(d->w);
    }
    sl_json_end_array(d->w);
}

/* ---- Linux ---- */

/* Writes the values of /etc/lsb-release (Linux); unknown ones are null. */
static void put_release(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    sl_json_begin_object(d->w);
    sl_json_member_or_null(d->w, "id", facts->lsb_id);
    sl_json_member_or_null(d->w, "release", facts->lsb_release);
    sl_json_member_or_null(d->w, "codename", facts->lsb_codename);
    sl_json_member_or_null(d->w, "description", facts->lsb_description);
    sl_json_end_object(d->w);
}

/* Writes a resource limit as a number; a text that is none, such as "unlimited", as a string, and null if it is unknown. */
static void put_limit(struct sl_json_writer *w, const char *key, struct sl_str limit)
{
    if (limit.size && sl_is_digit(limit.data[0])) {
        sl_json_put_key(w, key);
        /* JSON numbers have no leading zeros */
        while (limit.size > 1 && limit.data[0] == '0')
            limit = (struct sl_str){limit.data + 1, limit.size - 1};
        sl_json_put_raw(w, limit);
    } else {
        sl_json_member_or_null(w, key, limit);
    }
}

/* Writes the process's resource limits (Linux). */
static void put_limits(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    sl_json_begin_object(d->w);
    sl_json_member_array(d->w, "limits");
    for (size_t i = 0; i < facts->limit_count; i++) {
        sl_json_begin_object(d->w);
        sl_json_member_or_null(d->w, "name", facts->limits[i].name);
        put_limit(d->w, "soft", facts->limits[i].soft);
        put_limit(d->w, "hard", facts->limits[i].hard);
        sl_json_member_or_null(d->w, "unit", facts->limits[i].unit);
        sl_json_end_object(d->w);
    }
    sl_json_end_array(d->w);
    sl_json_end_object(d->w);
}

static void put_mapping_count(const struct dump_json *d)
{
    sl_json_put_u64(d->w, d->walked->dump.mapping_count);
}

/* ---- macOS ---- */

/* Writes the crash records of macOS. `thread`, `dialog_mode` and `abort_cause` are null in records of a version that does not have them. */
static void put_mac_records(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    sl_json_begin_object(d->w);
    sl_json_member_u64(d->w, "num_records", facts->mac_record_count);
    sl_json_member_array(d->w, "records");
    for (size_t i = 0; i < facts->mac_record_count; i++) {
        const struct sl_minidump_mac_record *record = &facts->mac_records[i];
        sl_json_begin_object(d->w);
        member_address(d, "thread", record->version >= 4, record->thread);
        member_address(d, "dialog_mode", record->version >= 4, record->dialog_mode);
        member_address(d, "abort_cause", record->version >= 5, record->abort_cause);
        sl_json_member_or_null(d->w, "module", record->module);
        sl_json_member_or_null(d->w, "message", record->message);
        sl_json_member_or_null(d->w, "signature_string", record->signature);
        sl_json_member_or_null(d->w, "backtrace", record->backtrace);
        sl_json_member_or_null(d->w, "message2", record->message2);
        sl_json_end_object(d->w);
    }
    sl_json_end_array(d->w);
    sl_json_end_object(d->w);
}

static void put_boot_args(const struct dump_json *d)
{
    sl_json_put_str(d->w, d->walked->facts.boot_args);
}

static void put_soft_errors(const struct dump_json *d)
{
    sl_json_put_raw(d->w, d->walked->facts.soft_errors);
}

/* Writes members about the process and the system; null for those that the dump does not have. */
static void put_facts(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    const struct {
        const char *key;
        bool known;
        void (*put)(const struct dump_json *d);
    } members[] = {
        {"handles", facts->has_handles, put_handles},
        {"lsb_release", facts->has_lsb, put_release},
        {"proc_limits", facts->has_limits, put_limits},
        {"linux_memory_map_count", facts->has_mappings, put_mapping_count},
        {"mac_crash_info", facts->has_mac_records, put_mac_records},
        {"mac_boot_args", facts->boot_args.data != NULL, put_boot_args},
        {"soft_errors", facts->soft_errors.data != NULL, put_soft_errors},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        sl_json_put_key(d->w, members[i].key);
        if (members[i].known)
            members[i].put(d);
        else
            sl_json_put_null(d->w);
    }
}

/* Writes a number member; null if it is unknown. */
static void member_number(struct sl_json_writer *w, const char *key, bool known, uint64_t value)
{
    sl_json_put_key(w, key);
    if (known)
        sl_json_put_u64(w, value);
    else
        sl_json_put_null(w);
}

static void put_frame_line(const struct dump_json *d, const struct answer_frame *frame)
{
    member_text(d->w, "file", frame->abs_path);
    member_number(d->w, "line", frame->line.value != 0, frame->line.value);
}

/* Writes the `count` inlined calls of a physical frame, which precede it in the answer. */
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
        member_text(d->w, "function", answer_frame_name(&first[i]));
        put_frame_line(d, &first[i]);
        sl_json_end_object(d->w);
    }
    sl_json_end_array(d->w);
}

/* Returns how the frame was found ("cfi", "scan"), by the name that rust-minidump's JSON has for it. */
static struct sl_str get_trust(const struct answer_frame *frame)
{
    if (sl_str_equal(frame->trust, SL_STR("fp")))
        return SL_STR("frame_pointer");
    return sl_str_equal(frame->trust, SL_STR("cfiscan")) ? SL_STR("cfi_scan") : frame->trust;
}

/* Writes the registers of the thread's innermost frame, which are those that the dump stores for the thread. */
static void put_frame_registers(const struct dump_json *d, size_t thread)
{
    const struct sl_crash_thread *known = &d->walked->dump.crash.threads[thread];
    struct sl_json_writer *w = d->w;
    sl_json_member_object(w, "registers");
    for (size_t i = 0; i < known->register_count; i++) {
        sl_json_put_key_str(w, known->registers[i].name);
        put_pointer(d, known->registers[i].value);
    }
    sl_json_end_object(w);
}

/* Writes the unloaded modules that once covered the address; null if there are none. */
static void put_unloaded_at(const struct dump_json *d, uint64_t address)
{
    struct sl_minidump_unloaded_hit found[SL_MINIDUMP_MAX_UNLOADED_HITS];
    size_t count = sl_minidump_find_unloaded(&d->walked->dump, address, found);
    if (!count) {
        sl_json_put_null(d->w);
        return;
    }
    sl_json_begin_array(d->w);
    for (size_t i = 0; i < count; i++) {
        /* hits of one module follow each other: they share an object */
        if (!i || !sl_str_equal(found[i].name, found[i - 1].name)) {
            sl_json_begin_object(d->w);
            member_text(d->w, "module", found[i].name);
            sl_json_member_array(d->w, "offsets");
        }
        put_pointer(d, found[i].offset);
        if (i + 1 == count || !sl_str_equal(found[i].name, found[i + 1].name)) {
            sl_json_end_array(d->w);
            sl_json_end_object(d->w);
        }
    }
    sl_json_end_array(d->w);
}

/* Writes a physical frame, `first[inlined]`, with the calls inlined in it, first[0..inlined-1]. `number` counts the thread's physical
 * frames from 0; `registers`: also writes the registers, known for number 0 only. */
static void put_frame(const struct dump_json *d, size_t thread, size_t number, const struct answer_frame *first,
                      size_t inlined, bool registers)
{
    const struct answer_frame *frame = first + inlined;
    uint64_t at = frame_instruction(d->walked, thread, frame);
    const struct sl_crash_module *module = sl_minidump_module_at(&d->walked->dump, at);
    sl_json_begin_object(d->w);
    sl_json_member_u64(d->w, "frame", number);
    member_text(d->w, "trust", get_trust(frame));
    member_address(d, "offset", true, at);
    member_text(d->w, "module", module ? path_file_name(module->code_file) : (struct sl_str){NULL, 0});
    member_address(d, "module_offset", module != NULL, at - (module ? module->address : 0));
    sl_json_put_key(d->w, "unloaded_modules");
    if (module)
        sl_json_put_null(d->w);
    else
        put_unloaded_at(d, at);
    member_text(d->w, "function", answer_frame_name(frame));
    member_address(d, "function_offset", frame->symbol_address.set, at - frame->symbol_address.value);
    put_frame_line(d, frame);
    put_inlines(d, first, inlined);
    sl_json_member_boolean(d->w, "missing_symbols", !answer_frame_name(frame).size);
    if (registers)
        put_frame_registers(d, thread);
    sl_json_end_object(d->w);
}

/* Returns the number of physical frames of a thread: rust-minidump's JSON does not count inlined calls, which are members of a frame. */
static size_t count_frames(const struct answer_thread *trace)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->frame_count; i++)
        count += !answer_frame_is_inline(trace, i);
    return count;
}

/* Writes a thread. `crashing`: writes it as the value of `crashing_thread`, which also has the thread's index, and the registers of its
 * innermost frame. */
static void put_thread(const struct dump_json *d, size_t thread, bool crashing)
{
    const struct answer_thread *trace = &d->answer->threads[thread];
    size_t number = 0, inlined = 0;
    sl_json_begin_object(d->w);
    sl_json_member_u64(d->w, "frame_count", count_frames(trace));
    if (crashing)
        sl_json_member_u64(d->w, "threads_index", thread);
    member_number(d->w, "thread_id", trace->id.set, trace->id.value);
    const struct sl_minidump *dump = &d->walked->dump;
    sl_json_member_or_null(d->w, "thread_name", dump->crash.threads[thread].name);
    member_text(d->w, "last_error_value", sl_minidump_last_error(dump, thread, d->arena));
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

/* Writes the analysis of the crashing instruction, with addresses of 16 digits. It is empty unless the code is x86-64: rust-minidump has it
 * for no other processor. */
static void put_analysis(const struct dump_json *d)
{
    const struct walked_dump *walked = d->walked;
    const struct sl_minidump_analysis nothing = {.has_exception = walked->dump.has_exception};
    bool is_x86_64 = walked->dump.family == SL_CPU_X86_64 && !walked->dump.is_wow64;
    crash_analysis_write(d->w, is_x86_64 ? &walked->analysis : &nothing, 16);
}

/* Writes `crash_info`: reason, address, assertion and `crashed`, the index of the crashed thread (-1: none, written as null). A dump
 * without an exception has neither reason nor address. */
static void put_crash_info(const struct dump_json *d, int64_t crashed)
{
    const struct sl_minidump *dump = &d->walked->dump;
    sl_json_member_object(d->w, "crash_info");
    member_text(d->w, "type", dump->has_exception ? dump_reason(d->answer) : (struct sl_str){NULL, 0});
    member_address(d, "address", dump->has_exception, dump->crash_address);
    put_analysis(d);
    member_text(d->w, "assertion", d->answer->assertion);
    member_number(d->w, "crashing_thread", crashed >= 0, (uint64_t)crashed);
    sl_json_end_object(d->w);
}

/* Writes the name of the OS, or its number in the dump if that is unknown, and its version with the build. */
static void put_system_name(const struct dump_json *d)
{
    const struct sl_minidump *dump = &d->walked->dump;
    const struct sl_crash_system *system = &dump->crash.system;
    struct sl_buf text = {0};
    if (dump->os == SL_MINIDUMP_OTHER)
        sl_buf_printf(&text, "0x%08x", dump->platform);
    else
        sl_buf_cstr(&text, dump_os_name(dump));
    member_text(d->w, "os", sl_buf_view(&text));
    sl_buf_clear(&text);
    sl_buf_printf(&text, SL_STR_FMT " " SL_STR_FMT, SL_STR_ARG(system->os_version), SL_STR_ARG(system->os_build));
    member_text(d->w, "os_ver", sl_str_trimmed(sl_buf_view(&text)));
    d->w->out->failed |= text.failed;
    sl_buf_free(&text);
}

/* Writes the OS, the processor and its microcode. */
static void put_system_info(const struct dump_json *d)
{
    const struct sl_minidump *dump = &d->walked->dump;
    sl_json_member_object(d->w, "system_info");
    put_system_name(d);
    sl_json_member_str(d->w, "cpu_arch", sl_str(dump_cpu_name(dump)));
    member_text(d->w, "cpu_info", dump->cpu_text);
    sl_json_member_u64(d->w, "cpu_count", dump->cpu_count);
    put_microcode(d);
    sl_json_end_object(d->w);
}

/* Writes whether the symbols of a module were found, are missing, or are malformed, which also counts as missing. All false if no source
 * was searched, or no frame needed them (`known` NULL or "unused"). The URL is never known. */
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

/* Writes a loaded module and the state of its symbols, `known`. As in rust-minidump's output, an unknown code id or debug file is an empty
 * string, an unknown debug id all zeros. Certificates are not read. */
static void put_module(const struct dump_json *d, const struct sl_crash_module *module,
                       const struct answer_module *known)
{
    static const struct sl_debug_id no_id;
    char id[SL_DEBUG_ID_TEXT] = "";
    sl_debug_id_format_breakpad(module->has_debug_id ? &module->debug_id : &no_id, id);
    sl_json_begin_object(d->w);
    member_address(d, "base_addr", true, module->address);
    member_address(d, "end_addr", true, module->address + module->size);
    sl_json_member_or_null(d->w, "filename", path_file_name(module->code_file));
    sl_json_member_or_null(d->w, "code_id", module->code_id.data ? module->code_id : SL_STR(""));
    sl_json_member_or_null(d->w, "debug_file",
                           module->debug_file.data ? path_file_name(module->debug_file) : SL_STR(""));
    member_text(d->w, "debug_id", sl_str(id));
    member_text(d->w, "version", module->version);
    sl_json_member_null(d->w, "cert_subject");
    put_symbols(d, known);
    sl_json_end_object(d->w);
}

struct listed_module {
    const struct sl_crash_module *module;
    const struct answer_module *known; /* NULL: no frame refers to it */
};

/* Compares two modules for qsort by their position in the dump's list. */
static int by_list_index(const void *left, const void *right)
{
    const struct listed_module *a = left, *b = right;
    return (a->module->list_index > b->module->list_index) - (a->module->list_index < b->module->list_index);
}

/* Writes the modules in the order of the dump's list, whose first is the main module. False when out of memory. */
static bool put_modules(const struct dump_json *d)
{
    const struct sl_minidump *dump = &d->walked->dump;
    size_t count = dump->crash.module_count,
           next = 0; /* next: where in the answer, whose modules are in the same order, to search on */
    struct listed_module *modules = SL_ARENA_ARRAY(d->arena, struct listed_module, count + 1);
    if (!modules)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct sl_crash_module *module = &dump->crash.modules[i];
        modules[i] = (struct listed_module){module, dump_find_module_answer(d->answer, module, &next)};
    }
    if (count)
        qsort(modules, count, sizeof *modules, by_list_index);
    member_number(d->w, "main_module", true, 0);
    sl_json_member_boolean(d->w, "modules_contains_cert_info", false);
    sl_json_member_array(d->w, "modules");
    for (size_t i = 0; i < count; i++)
        put_module(d, modules[i].module, modules[i].known);
    sl_json_end_array(d->w);
    return true;
}

/* Writes the unloaded modules. Their code id is made of timestamp and size, as for loaded modules of Windows. */
static void put_unloaded(const struct dump_json *d)
{
    const struct sl_minidump *dump = &d->walked->dump;
    sl_json_member_array(d->w, "unloaded_modules");
    for (size_t i = 0; i < dump->unloaded_count; i++) {
        const struct sl_minidump_unloaded *unloaded = &dump->unloaded[i];
        struct sl_buf id = {0};
        sl_buf_printf(&id, "%08x%llx", unloaded->timestamp, (unsigned long long)unloaded->size);
        sl_json_begin_object(d->w);
        member_address(d, "base_addr", true, unloaded->address);
        member_address(d, "end_addr", true, unloaded->address + unloaded->size);
        member_text(d->w, "code_id", sl_buf_view(&id));
        sl_json_member_or_null(d->w, "filename", unloaded->name);
        sl_json_member_null(d->w, "cert_subject");
        sl_json_end_object(d->w);
        d->w->out->failed |= id.failed;
        sl_buf_free(&id);
    }
    sl_json_end_array(d->w);
}

/* Prints the answer with the members of rust-minidump's JSON (answer_print). The crashed thread appears twice: in `threads`, and with more
 * details as `crashing_thread`. False when out of memory. */
bool answer_print_minidump_json(const struct symbolicated_answer *answer, const struct answer_style *style,
                                struct sl_buf *out)
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
    member_number(&w, "pid", d.walked->facts.has_process_id, d.walked->facts.process_id);
    member_number(&w, "process_uptime", has_uptime, uptime);
    put_crash_info(&d, crashed);
    put_system_info(&d);
    member_number(&w, "thread_count", true, answer->thread_count);
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
    put_facts(&d);
    sl_json_end_object(&w);
    sl_buf_u8(out, '\n');
    sl_arena_free(&arena);
    return good && !out->failed;
}
