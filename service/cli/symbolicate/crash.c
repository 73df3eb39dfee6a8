/* `symloom symbolicate` for minidumps, core files and Apple's reports. */
#include "cli/symbolicate/symbolicate.h"

#include <inttypes.h>
#include <string.h>

#include "apple/apple.h"
#include "cli/locator/locator.h"
#include "cli/symbolicate/dump_print.h"
#include "elfcore/elfcore.h"
#include "minidump/microdump.h"

/* The symbolication of one crash file. */
struct crash_run {
    struct crash_file file;
    struct search_inputs inputs;
    struct walked_dump *walked;    /* what formats need and the answer lacks; filled if wants_walk */
    bool wants_walk, wants_stack;  /* wants_stack: also the names of words in stack memory (--stack-contents) */
    struct missing_report missing; /* symbols that were not found, and where they were searched */
    struct sl_buf text;            /* the answer, JSON */
    enum sl_code code;             /* not SL_OK: there is no answer to print */
    struct sl_error error;
};

/* Runs as a fiber: symbolicates the file into run->text. For formats that need more than the answer has, then reads the dump again
 * (wants_walk) and finds names for words in stack memory (wants_stack). Sets run->code. */
static void crash_work(void *arg)
{
    struct crash_run *run = arg;
    const struct config *config = run->inputs.config;
    run->file.scope = run->inputs.scope;
    run->file.sources = run->inputs.sources;
    run->file.source_count = run->inputs.source_count;
    run->walked->was_searched = run->file.source_count != 0;
    run->code = crash_file_symbolicate(&run->file, config, &run->text, &run->error);
    if (run->code == SL_OK && run->wants_walk)
        run->code = walked_dump_read(run->walked, run->file.bytes, &run->error);
    if (run->code == SL_OK && run->wants_stack)
        run->code = stack_words_symbolicate(run->walked, sl_buf_view(&run->text), &run->file, config, &run->error);
}

/* Adds the files of this machine that the modules name, by path or build id, to those that are searched. False when out of memory. */
static bool add_modules(const struct sl_crash_module *modules, size_t count, struct local_files *local)
{
    for (size_t i = 0; i < count; i++)
        if (!local_files_add(local, modules[i].code_file) || !local_files_add(local, modules[i].debug_file) ||
            !local_files_add_build_id(local, modules[i].code_id))
            return false;
    return true;
}

/* Parses the minidump, core or Apple report into `crash`, whose modules the caller needs. Results lie in the arena. */
static enum sl_code read_crash(const struct crash_file *file, struct sl_arena *arena, struct sl_crash *crash)
{
    struct sl_minidump dump;
    struct sl_elfcore core;
    enum sl_code code;
    switch (file->kind) {
    case CRASH_FILE_MINIDUMP:
        if ((code = sl_minidump_read(file->bytes, arena, &dump, NULL)) == SL_OK)
            *crash = dump.crash;
        return code;
    case CRASH_FILE_CORE:
        if ((code = sl_elfcore_read(file->bytes, arena, &core, NULL)) == SL_OK)
            *crash = core.dump.crash;
        return code;
    default: return sl_apple_read(file->bytes, &(struct sl_apple_options){.all_causes = false}, arena, crash, NULL);
    }
}

/* With --local-debug-info, adds the files of this machine that the crash names to `local`. False when out of memory. A malformed input is
 * no error here: the symbolication reports it. */
static bool crash_find_local_files(const struct options *o, const struct crash_run *run, struct local_files *local)
{
    struct sl_crash crash;
    if (!option_given(o, "local-debug-info"))
        return true;
    enum sl_code code = read_crash(&run->file, local->arena, &crash);
    return code == SL_OK ? add_modules(crash.modules, crash.module_count, local) : code != SL_BUSY;
}

/* Symbolicates the file in this process; with --local-debug-info also searches the files of this machine that it names. Returns 0, or an
 * exit status after a report; run->code tells whether there is an answer. */
static int crash_symbolicate(const struct options *o, const struct sentry_project *project, struct crash_run *run)
{
    struct sl_arena arena = {0};
    struct local_files local = {.arena = &arena};
    int status = crash_find_local_files(o, run, &local)
                     ? symbolicate_here(o, project, &local, &run->missing, &run->inputs, crash_work, run)
                     : report_no_memory();
    sl_arena_free(&arena);
    return status;
}

/* Sends the file to the service at --server as a multipart form, and receives the answer in run->text. Returns 0, or an exit status after a
 * report; run->code tells whether the answer is a result. */
static int crash_send(const struct options *o, struct crash_run *run)
{
    static const struct {
        const char *path, *part;
    } endpoints[] = {
        [CRASH_FILE_MINIDUMP] = {"/minidump", "upload_file_minidump"},
        [CRASH_FILE_APPLE] = {"/applecrashreport", "apple_crash_report"},
        [CRASH_FILE_CORE] = {"/core", "upload_file_core"},
    };
    struct sl_buf options = {0};
    struct remote_part parts[4] = {{endpoints[run->file.kind].part, run->file.bytes}, {"options", {NULL, 0}}};
    size_t count = 2;
    sl_buf_printf(&options, "{\"dif_candidates\":%s,\"apply_source_context\":%s,\"extract_variables\":%s}",
                  run->file.candidates ? "true" : "false", run->file.no_source_context ? "false" : "true",
                  run->file.variables ? "true" : "false");
    parts[1].bytes = sl_buf_bytes(&options);
    if (run->file.rewrite)
        parts[count++] = (struct remote_part){"rewrite_first_module",
                                              {(const uint8_t *)run->file.rewrite, strlen(run->file.rewrite)}};
    int status = options.failed
                     ? report_no_memory()
                     : remote_symbolicate(o, endpoints[run->file.kind].path, SL_STR(""), parts, count, &run->text);
    if (!status && sl_str_starts(sl_buf_view(&run->text), SL_STR("{\"status\":\"failed\"")))
        run->code = SL_MALFORMED;
    sl_buf_free(&options);
    return status;
}

/* Reports why the file was not symbolicated: the service's answer says so, or run->error. For reports of a known kind that is not
 * supported, names the kind. Returns the exit status. */
static int crash_report_failure(const struct crash_run *run)
{
    struct sl_arena arena = {0};
    struct symbolicated_answer answer;
    bool is_answer = run->text.size && answer_read(sl_buf_view(&run->text), &arena, &answer) && answer.message.size;
    const char *message = run->error.message, *detail = NULL;
    /* an answer with a message says that the file cannot be used: status 3; without one 2 if the file is malformed, else 1 */
    int status = is_answer ? STATUS_NOTHING : run->code == SL_MALFORMED ? 2 : 1;
    if (is_answer) {
        message = sl_arena_strndup(&arena, answer.message.data, answer.message.size);
        detail = answer.detail.size ? sl_arena_strndup(&arena, answer.detail.data, answer.detail.size) : NULL;
    }
    const char *kind = run->code == SL_UNSUPPORTED && is_answer ? input_unread_report(answer.message) : NULL;
    struct sl_error looks;
    if (kind && !detail) {
        sl_fail(&looks, SL_UNSUPPORTED,
                "this looks like %s; supported are crash reports, sample reports and stackshots", kind);
        detail = looks.message;
    }
    report_error(status, message ? message : "out of memory", detail);
    sl_arena_free(&arena);
    return status;
}

/* Warns why the answer has no frames: the dump's processor is not supported, no thread has registers, or the service does not walk such
 * stacks. Call it only if the answer has no frames. */
static void warn_no_stacks(const struct options *o, const struct sl_minidump *dump)
{
    if (dump->unread_processor)
        print_note("warning: no stacks: registers and stacks of this processor (%s, %u) are not supported; "
                   "supported are x86, x86-64, ARM, AArch64, MIPS and RISC-V\n",
                   dump->unread_processor, dump->cpu);
    else if (sl_minidump_lacks_registers(dump))
        print_note("warning: no stacks: none of the %zu threads has registers of this processor (%s)\n",
                   dump->crash.thread_count, sl_arch_name(dump->crash.system.arch));
    else if (option_given(o, "server") && dump->crash.thread_count)
        print_note("warning: no stacks: the service does not walk %s stacks with `minidump.compat: symbolicator` "
                   "(the default)\n",
                   sl_arch_name(dump->crash.system.arch));
}

/* Warns if a dump of a 32-bit program on 64-bit Windows (WoW64) lacks the 32-bit stacks of some threads. For these the answer has the
 * stacks of the 64-bit emulation. */
static void warn_wow64_stacks(const struct options *o, struct sl_minidump *dump, struct sl_arena *arena)
{
    if (option_given(o, "server") || !sl_minidump_enter_wow64(dump, arena) || !dump->wow64_missing)
        return;
    print_note("warning: 32-bit program (WoW64): the dump lacks the 32-bit stacks of %zu of its %zu threads; "
               "write the dump with full memory, or from a 32-bit program\n",
               dump->wow64_missing, dump->crash.thread_count);
}

/* True if the answer's JSON contains the text `key`, a member's name with quotes and colon. */
static bool answer_has(const struct crash_run *run, const char *key)
{
    return run->text.size && memmem(run->text.data, run->text.size, key, strlen(key));
}

/* Warns about missing or unexpected stacks of a minidump. Parses it again, but only if the answer has no frames or says that WoW64 stacks
 * are missing. */
static void warn_missing_stacks(const struct options *o, const struct crash_run *run)
{
    struct sl_arena arena = {0};
    struct sl_minidump dump;
    bool has_frames = answer_has(run, "\"instruction_addr\":");
    bool lacks = !has_frames || answer_has(run, "\"wow64_missing_stacks\":");
    bool is_asked = lacks && run->file.kind == CRASH_FILE_MINIDUMP && !option_given(o, "quiet");
    bool is_read = is_asked && sl_minidump_read(run->file.bytes, &arena, &dump, NULL) == SL_OK;
    if (is_read && !has_frames)
        warn_no_stacks(o, &dump);
    else if (is_read)
        warn_wow64_stacks(o, &dump, &arena);
    sl_arena_free(&arena);
}

/* Prints the answer, and warnings about missing stacks and symbols; or reports why there is none. Returns the exit status. */
static int crash_print(const struct options *o, struct crash_run *run, const struct answer_format *format,
                       enum answer_kind sort)
{
    if (run->code != SL_OK)
        return crash_report_failure(run);
    warn_missing_stacks(o, run);
    return answer_print_notes(o, format, sort, run->wants_walk ? run->walked : NULL, &run->missing, &run->text);
}

/* Symbolicates a crash file of any kind, in this process or by the service at --server, and prints the answer. `modules`: JSON with ids of
 * modules that a core lacks (struct crash_file), or NULL. Returns the exit status. */
static int crash_run(const struct options *o, const struct sentry_project *project, enum crash_file_kind kind,
                     struct sl_bytes bytes, const char *modules)
{
    struct crash_run run = {.file = {.kind = kind, .bytes = bytes, .modules = modules}};
    struct walked_dump walked = {.thread_count = 0};
    enum answer_kind sort = kind == CRASH_FILE_APPLE ? SORT_REPORT : SORT_DUMP;
    const struct answer_format *format = answer_format_choose(o, sort);
    if (!format)
        return 2;
    run.file.rewrite = option_value(o, "rewrite-first-module", NULL);
    run.file.candidates = option_given(o, "candidates") || format->needs_candidates;
    run.file.variables = option_given(o, "extract-variables");
    run.walked = &walked;
    walked.is_core = kind == CRASH_FILE_CORE;
    run.wants_walk = format->needs_walk;
    walked.wants_facts = format->needs_facts;
    run.wants_stack = option_given(o, "stack-contents") || option_given(o, "stack-pointers");
    run.file.no_source_context = option_given(o, "no-source-context") || run.wants_walk; /* such formats print none */
    run.file.walked = run.wants_walk ? walked_dump_copy : NULL;
    run.file.wants_registers = format->needs_registers;
    run.file.walked_arg = &walked;
    bool remote = option_given(o, "server");
    /* for a core whose symbols are missing, the advice is --local-debug-info, unless it is given or the service searches */
    bool has_local_files = remote || option_given(o, "local-debug-info");
    missing_init(&run.missing, walked.is_core && !has_local_files ? &missing_core_symbols : &missing_symbols);
    if (remote && run.wants_walk)
        return options_wrong(o, "--format %s cannot be used with --server: services do not send what it prints",
                             format->name);
    if (remote)
        missing_add_location(&run.missing, sl_str(option_value(o, "server", "")));
    int status = remote ? crash_send(o, &run) : crash_symbolicate(o, project, &run);
    if (!status)
        status = crash_print(o, &run, format, sort);
    walked_dump_free(&walked);
    missing_free(&run.missing);
    sl_buf_free(&run.text);
    return status;
}

int symbolicate_crash(const struct options *o, const struct sentry_project *project, enum crash_file_kind kind,
                      struct sl_bytes bytes)
{
    return crash_run(o, project, kind, bytes, NULL);
}

int symbolicate_core_with_ids(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes,
                              const char *modules)
{
    return crash_run(o, project, CRASH_FILE_CORE, bytes, modules);
}

/* ---- choosing a microdump of a log ---- */

struct chosen_microdump {
    struct sl_microdump microdump;
    uint64_t count;  /* how many microdumps the log has */
    uint64_t number; /* which of them was chosen, counted from 1; 0: none */
};

/* Chooses a microdump of the log: the one with this number, counted from 1, or if `number` is 0 the first that is complete, else the
 * first. */
static struct chosen_microdump choose_microdump(struct sl_str log, uint64_t number)
{
    struct sl_microdump_search search = {.rest = log};
    struct chosen_microdump chosen = {.count = 0};
    struct sl_microdump next;
    while (sl_microdump_next(&search, &next)) {
        chosen.count++;
        bool is_better = !chosen.number || (!chosen.microdump.is_whole && next.is_whole);
        if (number ? chosen.count == number : is_better) {
            chosen.microdump = next;
            chosen.number = chosen.count;
        }
    }
    return chosen;
}

/* Tells which microdump of several is used, unless the user chose it (`was_asked`), and warns if it is truncated. */
static void report_choice(const struct options *o, const struct chosen_microdump *chosen, bool was_asked)
{
    if (option_given(o, "quiet"))
        return;
    if (chosen->count > 1 && !was_asked)
        print_note("note: the log has %" PRIu64 " microdumps; using number %" PRIu64
                   " at line %zu (choose another with --microdump N)\n",
                   chosen->count, chosen->number, chosen->microdump.line);
    if (!chosen->microdump.is_whole)
        print_note("warning: the microdump at line %zu is truncated; modules or stack memory may be missing\n",
                   chosen->microdump.line);
}

int symbolicate_minidump(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes)
{
    uint64_t number = 0;
    struct sl_error error;
    bool was_asked = option_given(o, "microdump");
    if (!option_number(o, "microdump", &number))
        return 2;
    if (was_asked && !number)
        return options_wrong(o, "--microdump: microdumps are counted from 1");
    if (!sl_microdump_is_in(bytes))
        return was_asked ? options_wrong(o, "--microdump: the file contains no Breakpad microdump")
                         : symbolicate_crash(o, project, CRASH_FILE_MINIDUMP, bytes);
    const struct chosen_microdump chosen =
        choose_microdump((struct sl_str){(const char *)bytes.data, bytes.size}, number);
    if (!chosen.number) {
        sl_fail(&error, SL_NOT_FOUND, "--microdump: the log has no microdump %" PRIu64 ", only %" PRIu64, number,
                chosen.count);
        return report_error(2, error.message, NULL);
    }
    report_choice(o, &chosen, was_asked);
    const struct sl_str text = chosen.microdump.text;
    return symbolicate_crash(o, project, CRASH_FILE_MINIDUMP, (struct sl_bytes){(const uint8_t *)text.data, text.size});
}
