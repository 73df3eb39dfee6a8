/* Files that hold a part of an input's debug information: packages and .dwo files of split units (DWARF 5, 7.3), the supplementary file
 * of dwz(1), and the object files of a Mach-O debug map. They stay open while functions are read.
 *
 *     app, app.debug    the skeletons: addresses, lines                 a package:  app.dwp, app.debug.dwp
 *     io.dwo            functions and inlined calls of one unit         in the compilation directory, or beside the program
 *     io.o, l.a(io.o)   everything but the final addresses (Mach-O)     where the debug map says */
#pragma once

#include <limits.h>
#include <pthread.h>

#include "cli/cli.h"
#include "cli/members.h"

struct split_files {
    struct input *input;
    struct sl_companions companions; /* the open files, and functions that open others, for the DWARF reader */
    pthread_mutex_t lock;
    bool asked;                    /* the DWARF reader asked for a .dwo file or an object file */
    char not_found_path[PATH_MAX]; /* the first .dwo path that does not exist; empty: all were found */
    char stale[PATH_MAX];          /* the first .dwo file that exists, but is of another build */
    char unread[PATH_MAX];         /* the first .dwo file that has no split units, or is damaged */
    struct split_file {
        struct sl_mapping mapping;
        struct sl_object *object;
    } * items; /* open .dwo files */
    size_t count, capacity;
    struct member_archive archive; /* the static library of the last member that was read */
    struct split_file part;        /* the current object file of a debug map */
    size_t lost_parts;             /* number of object files of a debug map that are missing or were changed */
    char lost[4300];               /* path of the first such object file, and what is wrong with it */
};

/* Sets `path` to number `index` of the paths where the package of the input's split DWARF may be: the path in the options, or else
 * `<file>.dwp` for the input, its debug file and the input's link target, each also without `.debug`. An empty path means: go on with the
 * next index. False past the last index. */
bool split_package_path(const struct input *input, size_t index, char path[PATH_MAX]);
/* Sets `path` to number `index` of the paths where the .dwo file `name` may be, in the order of debuggers: in the compilation directory; if
 * that is relative (builds with -fdebug-prefix-map), also below the program's directory; then beside the program (builds that were moved).
 * `program` NULL: only in the compilation directory. An empty path means: go on with the next index. False past the last index. */
bool split_dwo_path(const char *program, struct sl_str comp_dir, struct sl_str name, size_t index, char path[PATH_MAX]);
/* Opens the input's package and supplementary file, if they exist. .dwo and object files are opened when the DWARF reader asks for them.
 * Close all with split_files_close. */
void split_files_open(struct input *input, struct split_files *files);
/* Closes the files. Adds notes to the input about missing files. `missing_units`: how many split units the DWARF reader did not find;
 * `first_missing`: the .dwo name of the first. */
void split_files_close(struct split_files *files, size_t missing_units, const char *first_missing);
