/* `symloom symbolicate` for addresses: of a running process, of a list of mappings, or of the modules of --module. Turns them into a
 * request body. */
#include "cli/symbolicate/symbolicate.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/search.h"
#include "jit/jit.h"

/* ---- --pid: JIT code of the process, and the kernel, as modules with generated symbol files ---- */

/* How many temporary symbol files are written at most, one for each range of JIT code and one for the kernel: a process with very many
 * ranges must not make the command fill the disk. */
enum { MAX_PROCESS_FILES = 16 };

struct process_code {
    struct sl_mapping mappings[2]; /* perf-PID.map and jit-PID.dump */
    struct sl_jit_code code;
    uint64_t hash;                               /* hash of the contents of these files */
    struct output_file files[MAX_PROCESS_FILES]; /* temporary symbol files */
    size_t file_count;
    uint64_t begin, end; /* addresses of JIT code for the next symbol file; equal: none was added since the last one */
    char name[64];       /* "perf-PID.map": the name of these modules */
};

/* A generated symbol file. `path` is valid as long as `process` is open. */
struct process_module {
    uint64_t base, size;
    const char *path;
    char id[SL_DEBUG_ID_TEXT], name[64];
};

/* Adds the functions in `bytes` to process->code. JIT compilers write them for perf(1) in one of two formats: jitdump or perf map. */
static enum sl_code read_dump_or_map(struct process_code *process, struct sl_bytes bytes, struct sl_error *error)
{
    struct sl_budget budget;
    sl_budget_init(&budget, bytes.size);
    return sl_jit_is_dump(bytes) ? sl_jit_read_dump(bytes, &process->code, &budget, error)
                                 : sl_jit_read_perf_map(bytes, &process->code, &budget, error);
}

/* True if the file in /tmp, where every user can write, can be trusted: it is a regular file that the user of process `pid` or root owns.
 * perf(1) has the same rule. */
static bool is_own(int fd, const char *pid)
{
    char path[64];
    struct stat file, process;
    snprintf(path, sizeof path, "/proc/%s", pid);
    return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && stat(path, &process) == 0 &&
           (file.st_uid == process.st_uid || file.st_uid == 0);
}

/* Reads the JIT symbols in the file `path`, perf map (`index` 0) or jitdump (1), if it exists; warns if it is not to be trusted or cannot
 * be read. Adds its contents to process->hash. O_NONBLOCK: opening a FIFO must not wait for a writer. */
static void read_file(struct process_code *process, size_t index, const char *path, const char *pid)
{
    struct sl_mapping *mapping = &process->mappings[index];
    struct sl_error error = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (!is_own(fd, pid))
        print_note("warning: ignoring %s: not a regular file of the process's user\n", path);
    else if (sl_map_fd(fd, mapping, &error) != SL_OK || read_dump_or_map(process, mapping->bytes, &error) != SL_OK)
        print_note("warning: cannot read %s: %s\n", path, error.message);
    close(fd);
    process->hash = process->hash * 31 + sl_hash(mapping->bytes.data, mapping->bytes.size);
}

/* Sets `own` to the id that the process has in its own PID namespace (proc(5), NSpid: the last number), which differs in a container;
 * `pid` itself if that is unknown. */
static void read_own_pid(const char *pid, char own[16])
{
    char path[64], *line = NULL;
    size_t capacity = 0;
    snprintf(own, 16, "%.15s", pid);
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    FILE *status = fopen(path, "re");
    while (status && getline(&line, &capacity, status) > 0)
        if (strncmp(line, "NSpid:", 6) == 0) {
            char *last = strrchr(line, '\t');
            if (last)
                snprintf(own, 16, "%.*s", (int)strcspn(last + 1, "\n"), last + 1);
        }
    free(line);
    if (status)
        fclose(status);
}

/* Reads the JIT symbols that the process wrote to /tmp/perf-PID.map and /tmp/jit-PID.dump. They are searched in the process's mount
 * namespace, with its id in its own PID namespace; a file that is not there, in /tmp of this command, with `pid`. Files of other users are
 * ignored with a warning. */
static void process_code_open(struct process_code *process, const char *pid)
{
    static const char *const names[] = {"perf-%s.map", "jit-%s.dump"};
    char own[16], name[64], path[160];
    struct sl_error error;
    *process = (struct process_code){.begin = 0};
    read_own_pid(pid, own);
    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof name, i ? names[1] : names[0], own);
        snprintf(path, sizeof path, "/proc/%s/root/tmp/%s", pid, name);
        /* a profiler outside of the container may have written the file there, with the outer PID */
        if (access(path, F_OK) != 0)
            snprintf(path, sizeof path, i ? "/tmp/jit-%s.dump" : "/tmp/perf-%s.map", pid);
        read_file(process, i, path, pid);
    }
    snprintf(process->name, sizeof process->name, "perf-%s.map", pid);
    if (sl_jit_finish(&process->code, &error) != SL_OK)
        sl_jit_free(&process->code);
}

/* Frees the JIT symbols, and removes the temporary symbol files. */
static void process_code_close(struct process_code *process)
{
    struct sl_error error;
    for (size_t i = 0; i < process->file_count; i++)
        output_file_close(&process->files[i], false, &error); /* false: removes the file */
    for (size_t i = 0; i < 2; i++)
        sl_unmap(&process->mappings[i]);
    sl_jit_free(&process->code);
}

/* True if a JIT function lies in the range of addresses, or reaches into it. */
static bool has_code(const struct sl_jit_code *code, uint64_t begin, uint64_t end)
{
    size_t at = SL_COUNT_UP_TO(code->functions, code->count, address, begin);
    if (at && begin - code->functions[at - 1].address < code->functions[at - 1].size)
        return true;
    return at < code->count && code->functions[at].address < end;
}

/* Adds an executable mapping without a readable file to the range that the next process_code_write makes a module of. False when the
 * process wrote no JIT symbols for it. */
static bool process_code_add(struct process_code *process, uint64_t begin, uint64_t end)
{
    if (!has_code(&process->code, begin, end))
        return false;
    if (process->begin == process->end) /* the first since the last module; further ones extend the range */
        process->begin = begin;
    process->end = end;
    return true;
}

/* Makes a debug id of the hash of the symbols' file and the load address, so that cache entries of other JIT code are never used. */
static void make_id(uint64_t hash, uint64_t base, struct sl_debug_id *id)
{
    const uint64_t words[2] = {hash, base};
    *id = (struct sl_debug_id){.age = 0};
    memcpy(id->uuid, words, sizeof words);
}

/* Writes the next temporary symbol file, which process_code_close removes. */
static enum sl_code write_temporary(struct process_code *process, struct sl_bytes text, struct sl_error *error)
{
    struct output_file *file = &process->files[process->file_count];
    enum sl_code code = output_file_temporary(file, error);
    if (code != SL_OK)
        return code;
    process->file_count++;
    return sl_write_all(file->fd, text)
               ? SL_OK
               : sl_fail(error, SL_INTERNAL, "cannot write %s: %s", file->temporary, strerror(errno));
}

/* Writes the functions between `begin` and `end` as a temporary Breakpad file, and describes it in `*module`. `hash`: of the contents that
 * the symbols were read from; it becomes a part of the debug id. False when there are no functions, or after a warning. */
static bool write_symbols(struct process_code *process, const struct sl_jit_code *code, uint64_t hash, uint64_t begin,
                          uint64_t end, const char *name, struct process_module *module)
{
    char breakpad[SL_DEBUG_ID_TEXT];
    struct sl_debug_id id;
    struct sl_buf text = {0};
    struct sl_error error = {0};
    size_t count;
    if (process->file_count == MAX_PROCESS_FILES) {
        print_note("warning: the process has too many regions of generated code; code at 0x%llx gets no names\n",
                   (unsigned long long)begin);
        return false;
    }
    /* write_temporary will write the name of the file to this path */
    *module = (struct process_module){
        .base = begin, .size = end - begin, .path = process->files[process->file_count].temporary};
    make_id(hash, begin, &id);
    sl_debug_id_format_breakpad(&id, breakpad);
    sl_debug_id_format(&id, module->id);
    snprintf(module->name, sizeof module->name, "%s", name);
    struct sl_breakpad_options options = {.os = SL_STR("Linux"),
                                          .arch = sl_str(sl_arch_name(machine_arch())),
                                          .id = sl_str(breakpad),
                                          .name = sl_str(name)};
    enum sl_code result = sl_jit_write(code, begin, end, &options, &text, &count, &error);
    if (result == SL_OK && count)
        result = write_temporary(process, sl_buf_bytes(&text), &error);
    sl_buf_free(&text);
    if (result != SL_OK)
        print_note("warning: no symbols for %s: %s\n", name, error.message);
    return result == SL_OK && count;
}

/* Writes the symbol file of the JIT code whose mappings were added since the last call, and describes it in `*module`. False when none
 * were, or on an error. */
static bool process_code_write(struct process_code *process, struct process_module *module)
{
    uint64_t begin = process->begin, end = process->end;
    process->begin = process->end = 0;
    return begin != end && write_symbols(process, &process->code, process->hash, begin, end, process->name, module);
}

/* Writes the symbol file of the kernel, from the addresses in /proc/kallsyms, and describes it in `*module`. False after a warning. */
static bool process_code_kernel(struct process_code *process, struct process_module *module)
{
    static const char path[] = "/proc/kallsyms";
    struct sl_buf text = {0};
    struct sl_jit_code code = {0};
    struct sl_budget budget;
    struct sl_error error = {0};
    bool good = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum sl_code result = fd < 0 ? sl_fail(&error, SL_INTERNAL, "cannot open %s: %s", path, strerror(errno))
                                 : read_stream(fd, path, &text, &error);
    sl_budget_init(&budget, text.size);
    if (result != SL_OK || sl_jit_read_kallsyms(sl_buf_bytes(&text), &code, &budget, &error) != SL_OK)
        print_note("warning: no kernel symbols: %s\n", error.message);
    else if (!code.count)
        print_note("warning: no kernel symbols: the kernel hides its addresses (kernel.kptr_restrict); run as root\n");
    else
        good = write_symbols(process, &code, sl_hash(text.data, text.size), code.functions[0].address,
                             code.functions[code.count - 1].address + code.functions[code.count - 1].size,
                             "kernel.kallsyms", module);
    sl_close(fd);
    sl_jit_free(&code);
    sl_buf_free(&text);
    return good;
}

/* ---- addresses ---- */

struct address_run {
    const struct options *o;
    struct sl_arena arena;
    struct local_files local; /* files of this machine to search: those of the modules */
    struct sl_buf body;
    struct sl_json_writer w;
    uint64_t *addresses; /* as requested */
    size_t address_count, address_capacity;
    struct process_code process; /* for --pid */
    bool relative;               /* addresses are relative to the only module */
    struct sl_str last_name;     /* path of the last mapped file, and the load address of its image */
    uint64_t last_base;
};

struct mapped_range { /* a mapping of a part of a file */
    uint64_t start, end, offset;
};

/* Parses a hexadecimal number, 0x optional, at the beginning of the text; `*end` is after it. False when there is none, or it
 * overflows. */
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

/* Returns the `type` of a module in requests: the format of the program, not that of its debug file (pe, not pdb). Breakpad files do not
 * tell the program's format: "elf" is assumed. */
static const char *module_type(enum sl_format format)
{
    enum sl_format program = sl_format_traits(format)->program;
    return format == SL_FORMAT_BREAKPAD ? "elf" : sl_format_name(program ? program : format);
}

/* Writes a module of the request: the file `name`, loaded at `base`. `object` NULL: the file is unreadable, so the module has no ids.
 * `size` 0: the size in the file's headers is used. */
static void put_module(struct sl_json_writer *w, struct sl_str name, struct sl_object *object, uint64_t base,
                       uint64_t size)
{
    const struct sl_object_info *info = object ? sl_object_info(object) : NULL;
    struct sl_debug_id debug_id;
    char id[SL_DEBUG_ID_TEXT];
    sl_json_begin_object(w);
    sl_json_member_str(w, "type", sl_str(info ? module_type(info->format) : "elf"));
    put_member(w, "code_file", name);
    put_member(w, "debug_file", info && info->debug_file.size ? info->debug_file : name);
    if (info) {
        put_member(w, "code_id", info->code_id);
        sl_object_make_id(object, &debug_id);
        sl_debug_id_format(&debug_id, id);
        sl_json_member_str(w, "debug_id", sl_str(id));
    }
    sl_json_member_hex(w, "image_addr", base);
    if (size || (info && info->image_size))
        sl_json_member_u64(w, "image_size", size ? size : info->image_size);
    sl_json_end_object(w);
}

/* Adds the module of `text`, a value of --module: [ARCH:]FILE@BASE[+SIZE]. Addresses are relative to the module if BASE is 0. Returns 0, or
 * an exit status after a report. */
static int add_given_module(struct address_run *run, const char *text)
{
    const char *at = strrchr(text, '@'), *colon = strchr(text, ':'), *end = NULL;
    uint64_t base = 0, size = 0;
    bool good = at && at != text && hex_number(at + 1, &base, &end);
    if (good && *end == '+')
        good = hex_number(end + 1, &size, &end);
    if (!good || *end)
        return options_wrong(run->o, "--module: '%s' is not [ARCH:]FILE@BASE[+SIZE]", text);
    size_t modules;
    option_values(run->o, "module", &modules);
    run->relative = !base;
    if (!base && (modules > 1 || option_given(run->o, "maps") || option_given(run->o, "pid")))
        return options_wrong(
            run->o, "--module: '%s': BASE 0 (addresses that count from its start) works with a single module only",
            text);
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
        code = sl_fail(&error, SL_MALFORMED, "not a debug file");
    if (code == SL_OK)
        put_module(&run->w, sl_str(real ? real : path), input.object, base, size);
    int status = code == SL_OK ? 0 : report_file_error(path, code, &error);
    if (!status && real && !local_files_add(&run->local, sl_str(real)))
        status = report_no_memory();
    input_close(&input);
    free(real);
    return status;
}

/* ---- mappings of a process ---- */

/* Returns the load address of the image, computed from the executable segment that the mapping is a part of. Segments are mapped from a
 * page boundary, so the mapping may start up to 64 KiB, the largest page, before the segment. Without such a segment, the address at which
 * the beginning of the file would be mapped. */
static uint64_t image_start(const struct sl_object *object, const struct mapped_range *mapped)
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

/* Writes the module of a temporary symbol file (JIT code or the kernel), and adds the file to those that are searched. Returns the exit
 * status. */
static int add_process_module(struct address_run *run, const struct process_module *module)
{
    sl_json_begin_object(&run->w);
    sl_json_member_str(&run->w, "type", SL_STR("elf"));
    put_member(&run->w, "code_file", sl_str(module->name));
    put_member(&run->w, "debug_file", sl_str(module->name));
    put_member(&run->w, "debug_id", sl_str(module->id));
    sl_json_member_hex(&run->w, "image_addr", module->base);
    sl_json_member_u64(&run->w, "image_size", module->size);
    sl_json_end_object(&run->w);
    return local_files_add(&run->local, sl_str(module->path)) ? 0 : report_no_memory();
}

/* Adds a module for the JIT code whose mappings were read since the last module, if there is any. Returns the exit status. */
static int add_jit_code(struct address_run *run)
{
    struct process_module module;
    return process_code_write(&run->process, &module) ? add_process_module(run, &module) : 0;
}

/* Adds a file that is mapped as code: `name` is its path in the process, `path` where this command can open it. A file that cannot be read
 * (deleted, or memory of a JIT compiler) may contain JIT code instead. One module is written for consecutive mappings of one image. Returns
 * the exit status. */
static int add_mapped(struct address_run *run, struct sl_str name, const char *path, const struct mapped_range *mapped)
{
    static const struct input_options plain = {.arch = NULL};
    struct input input;
    bool good = input_open(path, &plain, &input, NULL) == SL_OK && input.object;
    if (!good && process_code_add(&run->process, mapped->start, mapped->end)) {
        input_close(&input);
        return 0;
    }
    if (add_jit_code(run) != 0) { /* the mappings of JIT code before this file are complete: write their module first */
        input_close(&input);
        return 1;
    }
    uint64_t base = good ? image_start(input.object, mapped) : mapped->start - mapped->offset;
    if (!sl_str_equal(name, run->last_name) || base != run->last_base)
        put_module(&run->w, name, good ? input.object : NULL, base, 0);
    input_close(&input);
    const char *copy = sl_arena_strndup(&run->arena, name.data, name.size);
    run->last_name = (struct sl_str){copy, copy ? name.size : 0};
    run->last_base = base;
    return copy && local_files_add(&run->local, sl_str(path)) ? 0 : report_no_memory();
}

/* Adds the mapping of a line of /proc/PID/maps (proc(5)): range, permissions, offset, device, inode, path. Skips other lines, and
 * mappings that are not executable. `root`: directory to prepend to the paths. Returns the exit status. */
static int add_line(struct address_run *run, const char *line, const char *root)
{
    char path[4300], range[64], rights[8], offset[32];
    const char *end;
    struct mapped_range mapped;
    int at = 0;
    if (sscanf(line, "%63s %7s %31s %*s %*s %n", range, rights, offset, &at) != 3 || !at || rights[2] != 'x' ||
        !hex_number(range, &mapped.start, &end) || *end != '-' || !hex_number(end + 1, &mapped.end, &end) ||
        !hex_number(offset, &mapped.offset, &end))
        return 0;
    if (line[at] != '/') { /* anonymous memory, maybe with JIT code, or [vdso] and the like */
        process_code_add(&run->process, mapped.start, mapped.end);
        return 0;
    }
    struct sl_str name = {line + at, strcspn(line + at, "\n")};
    int size = snprintf(path, sizeof path, "%s" SL_STR_FMT, root, SL_STR_ARG(name));
    return size < (int)sizeof path ? add_mapped(run, name, path, &mapped) : 0;
}

/* Adds the mappings of all lines of the file `path` (`-`: standard input), which has the form of /proc/PID/maps. `root`: directory to
 * prepend to the paths in it. Returns the exit status. */
static int add_maps(struct address_run *run, const char *path, const char *root)
{
    char *line = NULL;
    size_t capacity = 0;
    int status = 0;
    FILE *maps = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!maps) {
        const char *why = strerror(errno);
        char text[4200];
        snprintf(text, sizeof text, "cannot read the mappings in %s", path);
        return report_error(1, text, why);
    }
    while (!status && getline(&line, &capacity, maps) > 0)
        status = add_line(run, line, root);
    free(line);
    if (maps != stdin)
        fclose(maps);
    return status ? status : add_jit_code(run);
}

/* Adds the modules and the JIT code of process `pid` (--pid). Returns the exit status. */
static int add_process(struct address_run *run, const char *pid)
{
    char path[64], root[64];
    if (!*pid || strspn(pid, "0123456789") != strlen(pid) || strlen(pid) > 10)
        return options_wrong(run->o, "--pid: '%.60s' is not a process id", pid);
    snprintf(path, sizeof path, "/proc/%s/maps", pid);
    snprintf(root, sizeof root, "/proc/%s/root", pid);
    process_code_open(&run->process, pid);
    return add_maps(run, path, root);
}

/* Adds the kernel as a module if one of the addresses is in the upper half of the address space, where the kernel is. Returns the exit
 * status; a kernel without readable symbols is left out after a warning. */
static int add_kernel(struct address_run *run)
{
    struct process_module module;
    for (size_t i = 0; i < run->address_count; i++)
        if (run->addresses[i] >> 63)
            return process_code_kernel(&run->process, &module) ? add_process_module(run, &module) : 0;
    return 0;
}

/* Writes `modules` of the request: those of --module, --maps and --pid. Returns 0, or an exit status after a report. */
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

/* Adds the hexadecimal address `text` to those requested. Returns 0, or an exit status after a report. */
static int read_address(struct address_run *run, const char *text)
{
    uint64_t address;
    const char *end;
    if (!hex_number(text, &address, &end) || *end)
        return options_wrong(run->o, "'%.60s' is not an address", text);
    if (!sl_grow_in_arena(&run->arena, &run->addresses, &run->address_capacity, run->address_count + 1, sizeof address))
        return report_no_memory();
    run->addresses[run->address_count++] = address;
    return 0;
}

/* Reads addresses from standard input, separated by blanks, commas or line ends. Returns 0, or an exit status after a report. */
static int read_address_words(struct address_run *run)
{
    static const char blanks[] = " \t\r\n,";
    char *line = NULL;
    size_t capacity = 0;
    int status = 0;
    while (!status && getline(&line, &capacity, stdin) > 0) {
        char *rest = line;
        for (char *word; !status && (word = strtok_r(rest, blanks, &rest));)
            status = read_address(run, word);
    }
    free(line);
    return status;
}

/* Reads the requested addresses from the arguments, or from standard input if there are none. Returns 0, or an exit status after a
 * report. */
static int read_addresses(struct address_run *run)
{
    const struct options *o = run->o;
    int status = 0;
    for (size_t i = 0; !status && i < o->argument_count; i++)
        status = read_address(run, o->arguments[i]);
    if (!o->argument_count)
        status = read_address_words(run);
    return !status && !run->address_count
               ? report_error(STATUS_NOTHING, "no address given, neither as an argument nor on standard input", NULL)
               : status;
}

/* Writes the addresses as the frames of one stack. With --return-addresses all but the first, where the code stopped, are looked up at the
 * call before them. */
static void put_addresses(struct address_run *run)
{
    struct sl_json_writer *w = &run->w;
    sl_json_member_raw(w, "stacktraces", SL_STR("[{\"frames\":["));
    /* the writer does not know that the raw text ends with `[`: no comma before the first frame */
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
