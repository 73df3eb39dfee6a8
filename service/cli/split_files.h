/* Files that hold more of an input's debug information: packages and .dwo files of split units (DWARF 5, 7.3), the supplementary
 * file of dwz(1). They live while functions are read.
 *
 *     app, app.debug    the skeletons: addresses, lines                 a package:  app.dwp, app.debug.dwp
 *     io.dwo            functions and inlined calls of one unit         where its unit was compiled, or beside the program
 *     io.o, l.a(io.o)   everything but where it is, of a Mach-O file    where its debug map says */
#pragma once

#include <limits.h>
#include <pthread.h>

#include "cli/cli.h"
#include "cli/members.h"

struct split_files {
    struct input *input;
    struct sl_companions companions; /* for the reader */
    pthread_mutex_t lock;
    bool asked;             /* for a .dwo file */
    char unfound[PATH_MAX]; /* the first place where one was looked for in vain; empty: all were found */
    char stale[PATH_MAX];   /* the first file that is there, but of another build */
    char unread[PATH_MAX];  /* the first file in the place of one that has no split units, or is damaged */
    struct split_file {
        struct sl_mapping mapping;
        struct sl_object *object;
    } * items; /* .dwo files that are open */
    size_t count, capacity;
    struct member_archive archive; /* that the last one was in */
    struct split_file part;        /* the object file of a debug map that is read */
    size_t lost_parts;             /* how many were not there, or were changed */
    char lost[4300];               /* the first of them, and what is wrong */
};

/* Where a package may be: beside the input, its debug file, and what the input's path leads to, also without `.debug`; or the one
 * that the options give. The place of number `index`, empty where there is none; false past the last one. */
bool split_package_path(const struct input *input, size_t index, char path[PATH_MAX]);
/* Where a .dwo file may be, as debuggers look for it: where the unit was compiled (a relative directory also below the program's own:
 * builds that hide their place have it so), else beside the program, where builds that are moved keep them. `program` NULL: it lies
 * nowhere. The place of number `index`, empty where there is none; false past the last one. */
bool split_dwo_path(const char *program, struct sl_str comp_dir, struct sl_str name, size_t index, char path[PATH_MAX]);
/* Opens what the whole input shares. To be closed with split_files_close. */
void split_files_open(struct input *input, struct split_files *files);
/* `missing_units`, `first_missing`: as the reader counted them (sl_function_sink); the input's notes tell of them. */
void split_files_close(struct split_files *files, size_t missing_units, const char *first_missing);
