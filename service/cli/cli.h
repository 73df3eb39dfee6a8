/* The sub-commands: one function and one file each, called with the words behind the command's name. Each returns the
 * exit status: 0, 1 for a failure that was reported on stderr, 2 for a usage error. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "object/object.h"
#include "symcache/symcache.h"

int command_run(int argc, char **argv);
int command_cleanup(int argc, char **argv);
int command_healthcheck(int argc, char **argv);
int command_config(int argc, char **argv);
int command_lookup(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_push_symbols(int argc, char **argv);

/* ---- files.c: what the commands share ---- */

/* A debug file or a symcache given by name, converted if need be. */
struct input {
    struct sl_mapping mapping;
    struct sl_object *object; /* NULL for a symcache */
    struct sl_object *companions[2];
    struct sl_mapping companion_mappings[2];
    struct sl_buf converted;
    struct sl_symcache cache;
    bool has_cache;
};

/* Opens the file; SL_MALFORMED when it is neither. */
enum sl_code input_open(const char *path, struct input *input, struct sl_error *error);
/* Makes `cache` usable, converting with `jobs` threads (0 = all cores). Beside the file, `<file>.dwp`, the .dwo files
 * and the supplementary file that it names are used where they exist. */
enum sl_code input_convert(const char *path, struct input *input, unsigned jobs, struct sl_error *error);
void input_close(struct input *input);

/* ---- threads.c ---- */

/* A sl_parallel over `jobs` threads of its own (0 = usable cores); lives as long as the process. */
const struct sl_parallel *threads_parallel(unsigned jobs);
