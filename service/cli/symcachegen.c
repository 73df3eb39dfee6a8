/* `symloom symcachegen -pdb FILE`: the transcoder that comes with symloom. What it writes is symloom's own symcache, where the
 * contract of transcoders asks for it. */
#include "cli/cli.h"
#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char own_version[] = "1000.1.0";

static const struct option_spec specs[] = {
    {"pdb", 0, OPTION_VALUE, false, "FILE", "the PDB; also as -pdb FILE"},
    QUIET_OPTIONS,
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

static bool make_directory(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static int symcachegen_fail(const char *what, const char *why)
{
    fprintf(stderr, "error: %s: %s\n", what, why);
    return 1;
}

static int symcachegen_write(const struct input *input, const char *root, struct sl_str name)
{
    char id[SL_DEBUG_ID_TEXT], path[4096];
    struct sl_error error;
    sl_debug_id_format_breakpad(&sl_object_info(input_debug(input))->debug_id, id);
    for (char *c = id; *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
    int size = snprintf(path, sizeof path, "%s/" SL_STR_FMT, root, SL_STR_ARG(name));
    bool good = size > 0 && size < 3000 && make_directory(path);
    snprintf(path, sizeof path, "%s/" SL_STR_FMT "/%s", root, SL_STR_ARG(name), id);
    if (!good || !make_directory(path))
        return symcachegen_fail(path, strerror(errno));
    snprintf(path, sizeof path, "%s/" SL_STR_FMT "/%s/" SL_STR_FMT "-v%s.symcache", root, SL_STR_ARG(name), id,
             SL_STR_ARG(name), own_version);
    if (sl_write_file(path, input->cache.table.bytes, &error) != SL_OK)
        return symcachegen_fail(path, error.message);
    return 0;
}

static int symcachegen_run(const char *pdb, const char *root)
{
    const struct input_options options = {.positions = true};
    struct input input;
    struct sl_error error;
    int status = 1;
    enum sl_code code = input_open(pdb, &options, &input, &error);
    if (code == SL_OK && !input.object)
        code = sl_fail(&error, SL_MALFORMED, "not a PDB");
    if (code == SL_OK)
        code = input_convert(&input, 0, &error);
    if (code == SL_OK)
        status = symcachegen_write(&input, root, path_file_name(sl_str(pdb)));
    else
        symcachegen_fail(pdb, error.message);
    input_close(&input);
    return status;
}

static int symcachegen_start(const struct options *o)
{
    const char *root = getenv("_NT_SYMCACHE_PATH"), *pdb = option_value(o, "pdb", NULL);
    if (!options_arguments(o, 0, "symcachegen"))
        return 2;
    if (!pdb)
        return options_wrong("symcachegen", "say '-pdb FILE'");
    if (!root || !*root)
        return options_wrong("symcachegen", "_NT_SYMCACHE_PATH does not say where to");
    return symcachegen_run(pdb, root);
}

int command_symcachegen(int argc, char **argv)
{
    static char pdb[] = "--pdb";
    if (argc == 1 && strcmp(argv[0], "--version") == 0) {
        puts(own_version);
        return 0;
    }
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "-pdb") == 0) /* as other transcoders have it */
            argv[i] = pdb;
    return options_command(specs, "symcachegen -pdb FILE",
                           "Makes a symcache of a PDB, where transcoders of SymCache servers put theirs: "
                           "$_NT_SYMCACHE_PATH/<name>/<id and age>/<name>-v1000.1.0.symcache.",
                           symcachegen_start, argc, argv);
}
