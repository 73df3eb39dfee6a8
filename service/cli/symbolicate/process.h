/* `symloom symbolicate --pid`: code of a process that is in no file, and the kernel's, as modules with symbol files of their own. */
#pragma once

#include "cli/cli.h"
#include "jit/jit.h"

enum { MOST_PROCESS_FILES = 16 };

struct process_code {
    struct sl_mapping mappings[2]; /* of the process' map and dump */
    struct sl_jit_code code;
    uint64_t hash;                                /* of the mappings */
    struct output_file files[MOST_PROCESS_FILES]; /* symbol files, which are gone in the end */
    size_t file_count;
    uint64_t begin, end; /* memory without a readable file that was mapped last, if it has such code; else equal */
    char name[64];
};

/* A symbol file that was made: where its code begins, how long that is, its path as long as `process` is open, its id and what it
 * is called. */
struct process_module {
    uint64_t base, size;
    const char *path;
    char id[SL_DEBUG_ID_TEXT], name[64];
};

/* Reads what the process wrote of its code, /tmp/perf-PID.map and /tmp/jit-PID.dump as it sees them; files of others than its user
 * do not count. */
void process_code_open(struct process_code *process, const char *pid);
void process_code_close(struct process_code *process);

/* Memory that can be run, of which no file can be read: true when it has code of the process. */
bool process_code_add(struct process_code *process, uint64_t begin, uint64_t end);
/* The symbol file of what was added since the last call; false when there is none, or it could not be written. */
bool process_code_take(struct process_code *process, struct process_module *module);
/* That of the kernel. */
bool process_code_kernel(struct process_code *process, struct process_module *module);
