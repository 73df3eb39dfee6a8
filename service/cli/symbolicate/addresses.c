/* `symloom symbolicate` of addresses: those of a process of this machine, of a list of mappings, or of modules as the options have
 * them, as the body of a request. */
#include "cli/symbolicate/process.h"
#include "cli/symbolicate/symbolicate.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/json_write.h"

struct address_run {
    const struct options *o;
    struct sl_arena arena;
    struct local_files local;
    struct sl_buf body;
    struct sl_json_writer w;
    uint64_t *addresses; /* that are asked for */
    size_t address_count, address_capacity;
    struct process_code process; /* of --pid */
    bool relative;               /* addresses are those of the only module */
    struct sl_str last_name;     /* of what was mapped last, and its beginning */
    uint64_t last_base;
};

struct mapped { /* part of a file in memory */
    uint64_t start, end, offset;
};

/* A hexadecimal number, 0x optional, at the beginning of the text; behind it `*end`. False when there is none, or it does not fit. */
static bool hex_number(const char *text, uint64_t *value, const char **end)
{
    char *behind;
    const char *digits = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? text + 2 : text;
    errno = 0;
    *value = strtoull(digits, &behind, 16);
    *end = behind;
    return isxdigit((unsigned char)*digits) && behind != digits && !errno;
}

/* ---- modules ---- */

static void put_module_text(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    if (!text.size)
        return;
    sl_json_member_str(w, key, text);
}

static const char *module_type(enum sl_format format)
{
    enum sl_format program = sl_format_traits(format)->program;
    return format == SL_FORMAT_BREAKPAD ? "elf" : sl_format_name(program ? program : format);
}

/* `object` NULL: of a file that cannot be read. `size` 0: as the file says. */
static void put_module(struct sl_json_writer *w, struct sl_str name, struct sl_object *object, uint64_t base,
                       uint64_t size)
{
    const struct sl_object_info *info = object ? sl_object_info(object) : NULL;
    struct sl_debug_id debug_id;
    char id[SL_DEBUG_ID_TEXT];
    sl_json_begin_object(w);
    sl_json_member_str(w, "type", sl_str(info ? module_type(info->format) : "elf"));
    put_module_text(w, "code_file", name);
    put_module_text(w, "debug_file", info && info->debug_file.size ? info->debug_file : name);
    if (info) {
        put_module_text(w, "code_id", info->code_id);
        sl_object_make_id(object, &debug_id);
        sl_debug_id_format(&debug_id, id);
        sl_json_member_str(w, "debug_id", sl_str(id));
    }
    sl_json_member_hex(w, "image_addr", base);
    if (size || (info && info->image_size))
        sl_json_member_u64(w, "image_size", size ? size : info->image_size);
    sl_json_end_object(w);
}

/* [ARCH:]FILE@BASE[+SIZE] */
static int add_given_module(struct address_run *run, const char *text)
{
    const char *at = strrchr(text, '@'), *colon = strchr(text, ':'), *end = NULL;
    uint64_t base = 0, size = 0;
    bool good = at && at != text && hex_number(at + 1, &base, &end);
    if (good && *end == '+')
        good = hex_number(end + 1, &size, &end);
    if (!good || *end)
        return options_wrong("symbolicate", "--module: '%s' is not [ARCH:]FILE@BASE[+SIZE]", text);
    size_t modules;
    option_values(run->o, "module", &modules);
    run->relative = !base;
    if (!base && (modules > 1 || option_given(run->o, "maps") || option_given(run->o, "pid")))
        return options_wrong("symbolicate", "--module: '%s': addresses that count from 0 take a module alone", text);
    struct input_options options = {.arch = NULL};
    if (colon && colon < at && sl_arch_parse((struct sl_str){text, (size_t)(colon - text)}) != SL_ARCH_UNKNOWN) {
        options.arch = sl_arena_strndup(&run->arena, text, (size_t)(colon - text));
        text = colon + 1;
    }
    const char *path = sl_arena_strndup(&run->arena, text, (size_t)(at - text));
    if (!path)
        return report_no_memory();
    struct input input;
    struct sl_error error = {0};
    char *real = realpath(path, NULL);
    enum sl_code code = input_open(path, &options, &input, &error);
    if (code == SL_OK && !input.object)
        code = sl_fail(&error, SL_MALFORMED, "it is no debug file");
    if (code == SL_OK)
        put_module(&run->w, sl_str(real ? real : path), input.object, base, size);
    int status = code == SL_OK ? 0 : report_file(path, code, &error);
    if (!status && real && !local_files_add(&run->local, sl_str(real)))
        status = report_no_memory();
    input_close(&input);
    free(real);
    return status;
}

/* ---- mappings of a process ---- */

/* Where the image begins whose part is mapped: the executable segment that the part is of says how far it is behind. */
static uint64_t image_start(const struct sl_object *object, const struct mapped *mapped)
{
    const uint8_t *file = sl_object_file(object).data;
    struct sl_segment segment;
    for (size_t i = 0; sl_object_segment(object, i, &segment); i++) {
        uint64_t offset = segment.bytes.size ? (uint64_t)(segment.bytes.data - file) : 0;
        if (segment.executable && segment.bytes.size && mapped->offset <= offset + segment.bytes.size - 1 &&
            mapped->offset + UINT64_C(0x10000) > offset)
            return mapped->start - segment.address + offset - mapped->offset;
    }
    return mapped->start - mapped->offset;
}

static int add_process_module(struct address_run *run, const struct process_module *module)
{
    sl_json_begin_object(&run->w);
    sl_json_member_str(&run->w, "type", SL_STR("elf"));
    put_module_text(&run->w, "code_file", sl_str(module->name));
    put_module_text(&run->w, "debug_file", sl_str(module->name));
    put_module_text(&run->w, "debug_id", sl_str(module->id));
    sl_json_member_hex(&run->w, "image_addr", module->base);
    sl_json_member_u64(&run->w, "image_size", module->size);
    sl_json_end_object(&run->w);
    return local_files_add(&run->local, sl_str(module->path)) ? 0 : report_no_memory();
}

/* What the process made in front of a mapping that is of a file. */
static int add_made_code(struct address_run *run)
{
    struct process_module module;
    return process_code_take(&run->process, &module) ? add_process_module(run, &module) : 0;
}

static int add_mapped(struct address_run *run, struct sl_str name, const char *path, const struct mapped *mapped)
{
    static const struct input_options plain = {.arch = NULL};
    struct input input;
    bool good = input_open(path, &plain, &input, NULL) == SL_OK && input.object;
    if (!good && process_code_add(&run->process, mapped->start, mapped->end)) {
        input_close(&input);
        return 0;
    }
    if (add_made_code(run) != 0) {
        input_close(&input);
        return 1;
    }
    uint64_t base = good ? image_start(input.object, mapped) : mapped->start - mapped->offset;
    if (!sl_str_equal(name, run->last_name) || base != run->last_base)
        put_module(&run->w, name, good ? input.object : NULL, base, 0);
    input_close(&input);
    const char *kept = sl_arena_strndup(&run->arena, name.data, name.size);
    run->last_name = (struct sl_str){kept, kept ? name.size : 0};
    run->last_base = base;
    return kept && local_files_add(&run->local, sl_str(path)) ? 0 : report_no_memory();
}

/* A line of /proc/PID/maps (proc(5)): range, rights, offset, device, inode, path. Files are where `root` is '/'. */
static int add_line(struct address_run *run, const char *line, const char *root)
{
    char path[4300], range[64], rights[8], offset[32];
    const char *end;
    struct mapped mapped;
    int at = 0;
    if (sscanf(line, "%63s %7s %31s %*s %*s %n", range, rights, offset, &at) != 3 || !at || rights[2] != 'x' ||
        !hex_number(range, &mapped.start, &end) || *end != '-' || !hex_number(end + 1, &mapped.end, &end) ||
        !hex_number(offset, &mapped.offset, &end))
        return 0;
    if (line[at] != '/') {
        process_code_add(&run->process, mapped.start, mapped.end);
        return 0;
    }
    struct sl_str name = {line + at, strcspn(line + at, "\n")};
    int size = snprintf(path, sizeof path, "%s" SL_STR_FMT, root, SL_STR_ARG(name));
    return size < (int)sizeof path ? add_mapped(run, name, path, &mapped) : 0;
}

static int add_maps(struct address_run *run, const char *path, const char *root)
{
    char *line = NULL;
    size_t room = 0;
    int status = 0;
    FILE *maps = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!maps)
        return report(1, path, strerror(errno));
    while (!status && getline(&line, &room, maps) > 0)
        status = add_line(run, line, root);
    free(line);
    if (maps != stdin)
        fclose(maps);
    return status ? status : add_made_code(run);
}

static int add_process(struct address_run *run, const char *pid)
{
    char path[64], root[64];
    if (!*pid || strspn(pid, "0123456789") != strlen(pid) || strlen(pid) > 10)
        return options_wrong("symbolicate", "--pid: '%.60s' is no process id", pid);
    snprintf(path, sizeof path, "/proc/%s/maps", pid);
    snprintf(root, sizeof root, "/proc/%s/root", pid);
    process_code_open(&run->process, pid);
    return add_maps(run, path, root);
}

/* The kernel has the upper half of the addresses. */
static int add_kernel(struct address_run *run)
{
    struct process_module module;
    for (size_t i = 0; i < run->address_count; i++)
        if (run->addresses[i] >> 63)
            return process_code_kernel(&run->process, &module) ? add_process_module(run, &module) : 0;
    return 0;
}

static int addresses_put_modules(struct address_run *run)
{
    size_t count;
    const char *const *modules = option_values(run->o, "module", &count);
    const char *maps = option_value(run->o, "maps", NULL), *pid = option_value(run->o, "pid", NULL);
    int status = 0;
    sl_json_member_array(&run->w, "modules");
    for (size_t i = 0; !status && i < count; i++)
        status = add_given_module(run, modules[i]);
    if (!status && maps)
        status = add_maps(run, maps, "");
    if (!status && pid)
        status = add_process(run, pid);
    if (!status && pid)
        status = add_kernel(run);
    sl_json_end_array(&run->w);
    return status;
}

/* ---- addresses ---- */

static int read_address(struct address_run *run, const char *text)
{
    uint64_t address;
    const char *end;
    if (!hex_number(text, &address, &end) || *end)
        return options_wrong("symbolicate", "'%.60s' is no address", text);
    if (!sl_grow_in_arena(&run->arena, &run->addresses, &run->address_capacity, run->address_count + 1, sizeof address))
        return report_no_memory();
    run->addresses[run->address_count++] = address;
    return 0;
}

/* Words of standard input. */
static int read_address_words(struct address_run *run)
{
    static const char blanks[] = " \t\r\n,";
    char *line = NULL;
    size_t room = 0;
    int status = 0;
    while (!status && getline(&line, &room, stdin) > 0) {
        char *rest = line;
        for (char *word; !status && (word = strtok_r(rest, blanks, &rest));)
            status = read_address(run, word);
    }
    free(line);
    return status;
}

static int read_addresses(struct address_run *run)
{
    const struct options *o = run->o;
    int status = 0;
    for (size_t i = 0; !status && i < o->argument_count; i++)
        status = read_address(run, o->arguments[i]);
    if (!o->argument_count)
        status = read_address_words(run);
    return !status && !run->address_count ? report(STATUS_NOTHING, "no address given", NULL) : status;
}

static void put_addresses(struct address_run *run)
{
    struct sl_json_writer *w = &run->w;
    sl_json_member_raw(w, "stacktraces", SL_STR("[{\"frames\":["));
    w->comma = false;
    for (size_t i = 0; i < run->address_count; i++) {
        sl_json_begin_object(w);
        sl_json_member_hex(w, "instruction_addr", run->addresses[i]);
        if (run->relative)
            sl_json_member_str(w, "addr_mode", SL_STR("rel:0"));
        sl_json_member_boolean(w, "adjust_instruction_addr", i && option_given(run->o, "return-addresses"));
        sl_json_end_object(w);
    }
    sl_buf_str(&run->body, SL_STR("]}]"));
}

int symbolicate_addresses(const struct options *o, const struct sentry_project *project)
{
    struct address_run run = {.o = o};
    run.local.arena = &run.arena;
    run.w = sl_json_writer(&run.body);
    int status = read_addresses(&run);
    sl_json_begin_object(&run.w);
    if (!status)
        status = addresses_put_modules(&run);
    if (!status)
        put_addresses(&run);
    sl_json_end_object(&run.w);
    if (!status && run.body.failed)
        status = report_no_memory();
    if (!status)
        status = symbolicate_request(o, project, &run.local, sl_buf_view(&run.body), INPUT_REQUEST);
    process_code_close(&run.process);
    sl_buf_free(&run.body);
    sl_arena_free(&run.arena);
    return status;
}
