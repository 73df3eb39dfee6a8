/* `symloom symcachegen -pdb FILE`: a transcoder for SymCache servers. It follows their conventions for names and options, but writes
 * symloom's own symcache format. */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The version in the names of output files and of --version, by which servers keep the files of different transcoders apart. */
static const char own_version[] = "1000.1.0";

static const struct option_spec specs[] = {
    {"pdb", 0, OPTION_VALUE, false, "FILE", "Read this PDB or other debug file (also -pdb FILE, -pdb:FILE)"},
    {"output", 'o', OPTION_VALUE, false, "FILE", "Write to FILE (default: below $_NT_SYMCACHE_PATH)"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* True if the directory was created or exists; else errno is set. */
static bool make_directory(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

/* Prints "error: <what>: <why>" on stderr and returns `status`, the exit status. */
static int symcachegen_fail(int status, const char *what, const char *why)
{
    fprintf(stderr, "error: %s: %s\n", what, why);
    return status;
}

/* Writes the symcache to the file `path`; returns the exit status. */
static int symcachegen_put(const struct input *input, const char *path)
{
    struct sl_error error;
    bool good = output_file_put(path, input->cache.table.bytes, &error) == SL_OK;
    return good ? 0 : report_error(1, error.message, NULL);
}

/* Writes the symcache to <root>/<name>/<id and age in upper case>/<name>-v<own_version>.symcache, and creates these directories. `name` is
 * that of the PDB. Returns the exit status. */
static int symcachegen_write(const struct input *input, const char *root, struct sl_str name)
{
    char id[SL_DEBUG_ID_TEXT], path[4096];
    sl_debug_id_format_breakpad(&sl_object_info(input_debug(input))->debug_id, id);
    for (char *c = id; *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
    int size = snprintf(path, sizeof path, "%s/" SL_STR_FMT, root, SL_STR_ARG(name));
    /* 3000 leaves room in `path` for the id and the file name, of at most 255 bytes */
    bool good = size > 0 && size < 3000 && make_directory(path);
    snprintf(path, sizeof path, "%s/" SL_STR_FMT "/%s", root, SL_STR_ARG(name), id);
    if (!good || !make_directory(path))
        return symcachegen_fail(1, path, strerror(errno));
    snprintf(path, sizeof path, "%s/" SL_STR_FMT "/%s/" SL_STR_FMT "-v%s.symcache", root, SL_STR_ARG(name), id,
             SL_STR_ARG(name), own_version);
    return symcachegen_put(input, path);
}

/* Converts the file `pdb` to a symcache, and writes that to --output or below the directory `root`. Returns the exit status, after a report
 * on stderr unless 0. */
static int symcachegen_run(const struct options *o, const char *pdb, const char *root)
{
    const char *output = option_value(o, "output", NULL);
    struct input input;
    struct sl_error error;
    struct progress progress;
    int status;
    progress_begin(&progress, o, "converting");
    progress_file(&progress, pdb);
    enum sl_code code = input_open(pdb, NULL, &input, &error); /* NULL: no options, such as an architecture */
    if (code == SL_OK && !input.object)
        code = sl_fail(&error, SL_MALFORMED, "not a PDB");
    if (code == SL_OK)
        code = input_convert(&input, 0, &error); /* 0: use all cores */
    progress_end(&progress);
    if (code == SL_OK)
        status =
            output ? symcachegen_put(&input, output) : symcachegen_write(&input, root, path_file_name(sl_str(pdb)));
    else
        status = symcachegen_fail(status_of_code(code), pdb, error.message);
    input_close(&input);
    return status;
}

/* Runs the command `symcachegen`: checks its options and converts the file. Without --output the symcache goes below $_NT_SYMCACHE_PATH.
 * Returns the exit status. */
static int symcachegen_start(const struct options *o)
{
    const char *root = getenv("_NT_SYMCACHE_PATH"), *pdb = option_value(o, "pdb", NULL);
    if (!options_arguments(o, 0))
        return 2;
    if (!pdb)
        return options_wrong(o, "expected '-pdb FILE'");
    if (!option_given(o, "output") && (!root || !*root))
        return options_wrong(o, "no output given: pass --output or set $_NT_SYMCACHE_PATH");
    return symcachegen_run(o, pdb, root);
}

/* Starts the command: translates -pdb FILE, -pdb:FILE and -pdb=FILE, as SymCache servers call transcoders, to --pdb. `--version` alone
 * prints the version of this transcoder. */
static int symcachegen_main(const struct command *command, int argc, char **argv)
{
    static char pdb[] = "--pdb", joined[4200]; /* "--pdb=" and a path */
    if (argc == 1 && (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "-version") == 0)) {
        puts(own_version);
        return 0;
    }
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "-pdb") == 0)
            argv[i] = pdb;
        else if (strncmp(argv[i], "-pdb:", 5) == 0 || strncmp(argv[i], "-pdb=", 5) == 0) {
            snprintf(joined, sizeof joined, "--pdb=%s", argv[i] + 5);
            argv[i] = joined;
        }
    return command_parse_and_run(command, argc, argv);
}

const struct command command_symcachegen = {
    .name = "symcachegen",
    .summary = "convert a PDB to a symcache (used as a transcoder)",
    .usage = "symcachegen -pdb FILE [-o FILE]",
    .about = "Converts a PDB to a symcache, written where SymCache servers expect it: "
             "$_NT_SYMCACHE_PATH/<name>/<id and age>/<name>-v1000.1.0.symcache.",
    .examples = "symloom symcachegen -pdb app.pdb -o app.symcache",
    .options = specs,
    .run = symcachegen_start,
    .main = symcachegen_main,
};
