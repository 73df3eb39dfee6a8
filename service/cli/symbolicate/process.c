/* Code of a process that is in no file. */
#include "cli/symbolicate/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/search.h"

static enum sl_code read_dump_or_map(struct process_code *process, struct sl_bytes bytes, struct sl_error *error)
{
    struct sl_budget budget;
    sl_budget_init(&budget, bytes.size);
    return sl_jit_is_dump(bytes) ? sl_jit_read_dump(bytes, &process->code, &budget, error)
                                 : sl_jit_read_perf_map(bytes, &process->code, &budget, error);
}

/* Anybody may write to /tmp: only a plain file of the process' own user, or root's, is believed, as perf does. */
static bool is_own(int fd, const char *pid)
{
    char path[64];
    struct stat file, process;
    snprintf(path, sizeof path, "/proc/%s", pid);
    return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && stat(path, &process) == 0 &&
           (file.st_uid == process.st_uid || file.st_uid == 0);
}

static void read_file(struct process_code *process, size_t index, const char *path, const char *pid)
{
    struct sl_mapping *mapping = &process->mappings[index];
    struct sl_error error = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (!is_own(fd, pid))
        remark("warning: %s is not used: it is no plain file of the process' user\n", path);
    else if (sl_map_fd(fd, mapping, &error) != SL_OK || read_dump_or_map(process, mapping->bytes, &error) != SL_OK)
        remark("warning: %s cannot be read: %s\n", path, error.message);
    close(fd);
    process->hash = process->hash * 31 + sl_hash(mapping->bytes.data, mapping->bytes.size);
}

/* The process' id as it knows itself: in a container it is another one (proc(5), NSpid). */
static void read_own_pid(const char *pid, char own[16])
{
    char path[64], *line = NULL;
    size_t room = 0;
    snprintf(own, 16, "%.15s", pid);
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    FILE *status = fopen(path, "re");
    while (status && getline(&line, &room, status) > 0)
        if (strncmp(line, "NSpid:", 6) == 0) {
            char *last = strrchr(line, '\t');
            if (last)
                snprintf(own, 16, "%.*s", (int)strcspn(last + 1, "\n"), last + 1);
        }
    free(line);
    if (status)
        fclose(status);
}

void process_code_open(struct process_code *process, const char *pid)
{
    static const char *const names[] = {"perf-%s.map", "jit-%s.dump"};
    char own[16], name[64], path[160];
    struct sl_error error;
    *process = (struct process_code){.begin = 0};
    read_own_pid(pid, own);
    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof name, i ? names[1] : names[0], own);
        snprintf(path, sizeof path, "/proc/%s/root/tmp/%s", pid, name);
        if (access(path, F_OK) != 0) /* written by an agent outside of the container */
            snprintf(path, sizeof path, i ? "/tmp/jit-%s.dump" : "/tmp/perf-%s.map", pid);
        read_file(process, i, path, pid);
    }
    snprintf(process->name, sizeof process->name, "perf-%s.map", pid);
    if (sl_jit_settle(&process->code, &error) != SL_OK)
        sl_jit_free(&process->code);
}

void process_code_close(struct process_code *process)
{
    struct sl_error error;
    for (size_t i = 0; i < process->file_count; i++)
        output_file_close(&process->files[i], false, &error);
    for (size_t i = 0; i < 2; i++)
        sl_unmap(&process->mappings[i]);
    sl_jit_free(&process->code);
}

static bool has_code(const struct sl_jit_code *code, uint64_t begin, uint64_t end)
{
    size_t at = SL_COUNT_UP_TO(code->functions, code->count, address, begin);
    if (at && begin - code->functions[at - 1].address < code->functions[at - 1].size)
        return true;
    return at < code->count && code->functions[at].address < end;
}

bool process_code_add(struct process_code *process, uint64_t begin, uint64_t end)
{
    if (!has_code(&process->code, begin, end))
        return false;
    if (process->begin == process->end)
        process->begin = begin;
    process->end = end;
    return true;
}

/* An id that no other content has. */
static void make_id(uint64_t hash, uint64_t base, struct sl_debug_id *id)
{
    const uint64_t words[2] = {hash, base};
    *id = (struct sl_debug_id){.age = 0};
    memcpy(id->uuid, words, sizeof words);
}

static enum sl_code keep_file(struct process_code *process, struct sl_bytes text, struct sl_error *error)
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

/* `hash`: of what the code was read from. */
static bool write_symbols(struct process_code *process, const struct sl_jit_code *code, uint64_t hash, uint64_t begin,
                          uint64_t end, const char *name, struct process_module *module)
{
    char breakpad[SL_DEBUG_ID_TEXT];
    struct sl_debug_id id;
    struct sl_buf text = {0};
    struct sl_error error = {0};
    size_t count;
    if (process->file_count == MOST_PROCESS_FILES) {
        remark("warning: code of the process is in too many places: the names of that at 0x%llx are left out\n",
               (unsigned long long)begin);
        return false;
    }
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
        result = keep_file(process, sl_buf_bytes(&text), &error);
    sl_buf_free(&text);
    if (result != SL_OK)
        remark("warning: no symbols of %s: %s\n", name, error.message);
    return result == SL_OK && count;
}

bool process_code_take(struct process_code *process, struct process_module *module)
{
    uint64_t begin = process->begin, end = process->end;
    process->begin = process->end = 0;
    return begin != end && write_symbols(process, &process->code, process->hash, begin, end, process->name, module);
}

bool process_code_kernel(struct process_code *process, struct process_module *module)
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
        remark("warning: no symbols of the kernel: %s\n", error.message);
    else if (!code.count)
        remark("warning: no symbols of the kernel: it hides its addresses (kernel.kptr_restrict); run as root\n");
    else
        good = write_symbols(process, &code, sl_hash(text.data, text.size), code.functions[0].address,
                             code.functions[code.count - 1].address + code.functions[code.count - 1].size,
                             "kernel.kallsyms", module);
    if (fd >= 0)
        close(fd);
    sl_jit_free(&code);
    sl_buf_free(&text);
    return good;
}
