/* `symloom dump-syms`: opens the files of a module (its "partner" is the second one), and makes the MODULE and INFO records. */
#include "cli/dump_syms/dump_syms.h"

#include <stdio.h>
#include <stdlib.h>

/* True if both objects have the same debug id, and have one. */
static bool same_id(const struct sl_object *a, const struct sl_object *b)
{
    const struct sl_debug_id *id = &sl_object_info(a)->debug_id;
    return !sl_debug_id_is_nil(id) && sl_debug_id_equal(id, &sl_object_info(b)->debug_id);
}

/* ---- partners ---- */

/* Prints a property (`what`) of the module's two files if its values, `a` in the main file and `b` in the partner, differ. */
static void difference(const char *what, const struct dump_module *m, const char *a, const char *b)
{
    if (strcmp(a, b) != 0)
        print_note("  %s: %s in %s, %s in %s\n", what, a, m->main.path, b, m->partner.path);
}

/* Reports that the main file and its partner do not belong together, and in what they differ. Returns the exit status, 1. */
static int mismatch(const struct dump_module *m)
{
    const struct sl_object_info *a = sl_object_info(m->main.object), *b = sl_object_info(m->partner.object);
    char first[SL_DEBUG_ID_TEXT], second[SL_DEBUG_ID_TEXT];
    report_error(1, "Cannot generate a symbol file from split sources that do not match.", NULL);
    sl_debug_id_format(&a->debug_id, first);
    sl_debug_id_format(&b->debug_id, second);
    difference("debug id", m, first, second);
    difference("architecture", m, sl_arch_name(a->arch), sl_arch_name(b->arch));
    return 1;
}

/* Opens the partner of the main file that --debug-file or --code-file names; it is an error if debug ids or architectures differ. Returns
 * 0, or the exit status after a report. */
static int open_given(struct dump_module *m, const char *path)
{
    struct sl_error error = {0};
    const struct sl_object_info *info = sl_object_info(m->main.object);
    const struct input_options same_arch = {.arch = sl_arch_name(info->arch)};
    enum sl_code code = input_open(path, &same_arch, &m->partner, &error);
    m->has_partner = true; /* also after an error, so that it is closed */
    if (code != SL_OK || !m->partner.object)
        return report_file_error(path, code == SL_OK ? SL_UNSUPPORTED : code, &error);
    m->partner.options = NULL; /* `same_arch` ends here */
    return same_id(m->main.object, m->partner.object) && info->arch == sl_object_info(m->partner.object)->arch
               ? 0
               : mismatch(m);
}

/* Opens the file at `path` as partner of the main file. False, with nothing open, if it does not have this format and the main file's debug
 * id. */
static bool try_partner(struct dump_module *m, const char *path, enum sl_format format)
{
    if (input_open(path, NULL, &m->partner, NULL) == SL_OK && m->partner.object &&
        sl_object_info(m->partner.object)->format == format && same_id(m->main.object, m->partner.object)) {
        m->has_partner = true;
        return true;
    }
    input_close(&m->partner);
    return false;
}

/* Searches beside a PE file for the PDB that it names, and opens it as partner. */
static void find_pdb(struct dump_module *m)
{
    char path[4096];
    struct sl_str name = path_file_name(sl_object_info(m->main.object)->debug_file);
    struct sl_str own = sl_str(m->main.path);
    int directory = (int)(own.size - path_file_name(own).size);
    int length = snprintf(path, sizeof path, "%.*s" SL_STR_FMT, directory, own.data, SL_STR_ARG(name));
    if (!name.size || length >= (int)sizeof path || try_partner(m, path, SL_FORMAT_PDB))
        return;
    path[length - 1] = '_'; /* a compressed file in a symbol store: `.pd_` */
    try_partner(m, path, SL_FORMAT_PDB);
}

/* Searches beside a PDB for its PE file, by the usual extensions in place of `.pdb`, and opens it as partner. */
static void find_pe(struct dump_module *m)
{
    static const char *const suffixes[] = {".exe", ".dll", ".sys", ".EXE", ".DLL"};
    char path[4096];
    struct sl_str own = sl_str(m->main.path);
    int stem =
        (int)own.size -
        (own.size > 4 && sl_str_equal_nocase((struct sl_str){own.data + own.size - 4, 4}, SL_STR(".pdb")) ? 4 : 0);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (snprintf(path, sizeof path, "%.*s%s", stem, own.data, suffixes[i]) < (int)sizeof path &&
            try_partner(m, path, SL_FORMAT_PE))
            return;
}

bool dump_is_directory(const char *path)
{
    return !sl_str_ends(sl_str(path), SL_STR(".dSYM")) && path_is_directory(path);
}

/* Finds the partner, for modules whose code and debug information are in two files: the file of --debug-file or --code-file, or else the
 * PDB or PE beside the main file. Then sets m->debug and m->code. Returns 0, or the exit status after a report. */
static int find_partner(struct dump_module *m, const struct options *o)
{
    const char *debug = option_value(o, "debug-file", NULL), *code = option_value(o, "code-file", NULL);
    enum sl_format format = sl_object_info(m->main.object)->format;
    bool debug_given = debug && !dump_is_directory(debug); /* a directory is only searched */
    int status = 0;
    if (debug_given)
        status = open_given(m, debug);
    else if (code)
        status = open_given(m, code);
    /* --pe: ignore the PDB; main.debug: a debug file was found when the main file was opened */
    else if (format == SL_FORMAT_PE && !option_given(o, "pe") && !m->main.debug.object)
        find_pdb(m);
    else if (format == SL_FORMAT_PDB)
        find_pe(m);
    m->debug = input_debug(&m->main);
    m->code = m->main.object;
    m->debug_path = m->code_path = m->main.path;
    if (status || !m->has_partner)
        return status;
    bool partner_is_code = sl_object_info(m->partner.object)->format == SL_FORMAT_PE || (code && !debug_given);
    if (partner_is_code) {
        m->code = m->partner.object;
        m->code_path = m->partner.path;
    } else {
        m->debug = m->partner.object;
        m->debug_path = m->partner.path;
    }
    sl_object_align_addresses(m->debug, m->code); /* they may have been linked to different addresses */
    return 0;
}

int dump_module_open(struct dump_module *m, const char *path, const char *const *directories, const struct options *o)
{
    struct sl_error error = {0};
    struct input_options options = {.arch = option_value(o, "arch", NULL)};
    /* --debug-file names a file, which find_partner opens: a directory would be in `directories` */
    bool given = option_value(o, "debug-file", NULL) && !*directories;
    options.debug_directories = directories;
    options.find_debug = !given && !option_given(o, "pe") && !option_given(o, "code-file");
    *m = (struct dump_module){0};
    enum sl_code code = input_open(path, &options, &m->main, &error);
    m->main.options = NULL; /* `options` ends here */
    if (code == SL_OK && !m->main.object)
        code = sl_fail(&error, SL_UNSUPPORTED, "a symcache cannot be converted to a symbol file");
    if (code != SL_OK)
        return report_file_error(path, code, &error);
    int status = find_partner(m, o);
    sl_object_make_id(m->main.object, &m->id);
    return status;
}

void dump_module_close(struct dump_module *m)
{
    input_close(&m->main);
    input_close(&m->partner);
}

/* ---- the header ---- */

/* Appends an INFO record (`text`: what follows "INFO "). False when out of memory, also if text.data is NULL for that reason. */
static bool add_info(struct dump_header *h, struct sl_arena *arena, struct sl_str text)
{
    struct sl_str *grown = SL_ARENA_ARRAY(arena, struct sl_str, h->info_count + 1);
    if (!grown || !text.data)
        return false;
    if (h->info_count)
        memcpy(grown, h->infos, h->info_count * sizeof *grown);
    h->infos = grown;
    h->infos[h->info_count++] = text;
    return true;
}

/* Adds the INFO records at the beginning of a Breakpad symbol file, except GENERATOR, which names the program that wrote the input; at most
 * 64. False when out of memory. */
static bool copy_infos(const struct sl_object *object, struct sl_arena *arena, struct dump_header *h)
{
    struct sl_bytes bytes = sl_object_file(object);
    struct sl_str rest = {(const char *)bytes.data, bytes.size}, line;
    const struct sl_str info = SL_STR("INFO ");
    while (sl_str_next_line(&rest, &line) && h->info_count < 64) {
        line = sl_str_trimmed(line);
        if (sl_str_starts(line, info)) {
            struct sl_str text = {line.data + info.size, line.size - info.size};
            if (!sl_str_starts(text, SL_STR("GENERATOR")) && text.size && !add_info(h, arena, text))
                return false;
        } else if (line.size && !sl_str_starts(line, SL_STR("MODULE "))) {
            break; /* the first record of another kind ends the header */
        }
    }
    return true;
}

/* Adds an INFO record with the code id as Breakpad writes it: in capital letters, for a PE file followed by its name. None for Mach-O,
 * whose id is the one in the MODULE record. False when out of memory. */
static bool add_code_id(const struct dump_module *m, struct sl_arena *arena, struct dump_header *h)
{
    const struct sl_object_info *info = sl_object_info(m->code);
    struct sl_buf text = {0};
    if (!info->code_id.size || info->format == SL_FORMAT_MACHO)
        return true;
    sl_buf_cstr(&text, "CODE_ID ");
    for (size_t i = 0; i < info->code_id.size; i++) {
        char c = info->code_id.data[i];
        sl_buf_u8(&text, (uint8_t)(c >= 'a' && c <= 'f' ? c - 'a' + 'A' : c));
    }
    if (info->format == SL_FORMAT_PE)
        sl_buf_printf(&text, " " SL_STR_FMT, SL_STR_ARG(path_file_name(sl_str(m->code_path))));
    return add_info(h, arena, sl_buf_move_to_arena(&text, arena));
}

/* Returns the operating system for the MODULE record: the usual one of the file's format or, for a Breakpad symbol file, the one in its own
 * MODULE record. */
static struct sl_str get_os_name(const struct sl_object *object)
{
    struct sl_bytes bytes = sl_object_file(object);
    const struct sl_str module = SL_STR("MODULE ");
    struct sl_str os = {(const char *)bytes.data + module.size, 0};
    enum sl_format format = sl_object_info(object)->format;
    const char *name = sl_format_traits(format)->os;
    if (format != SL_FORMAT_BREAKPAD)
        return name ? sl_str(name) : SL_STR("Linux");
    while (module.size + os.size < bytes.size && os.data[os.size] != ' ' && os.data[os.size] != '\t')
        os.size++;
    return os;
}

/* Returns the module's name: for a PE that of its PDB, because crash reports name the PDB. */
static struct sl_str get_module_name(const struct dump_module *m, struct sl_arena *arena)
{
    const struct sl_object_info *info = sl_object_info(m->main.object);
    if (info->format == SL_FORMAT_BREAKPAD)
        return info->debug_file;
    if (info->format == SL_FORMAT_PE && path_file_name(info->debug_file).size)
        return path_file_name(info->debug_file);
    struct sl_str name = path_file_name(sl_str(m->main.path));
    char *copy = sl_str_ends(name, SL_STR(".pd_")) ? sl_arena_strndup(arena, name.data, name.size) : NULL;
    if (copy) /* compressed in a symbol store: `.pd_` -> `.pdb` */
        copy[name.size - 1] = 'b';
    return copy ? (struct sl_str){copy, name.size} : name;
}

/* Fills `h` with the module's OS and name and its INFO records: those of a Breakpad file are copied, other files get one with their code
 * id. The options --name, --os, --extra-info and --no-generator override or add. False when out of memory. */
bool dump_header_make(const struct dump_module *m, const struct options *o, struct sl_arena *arena,
                      struct dump_header *h)
{
    const char *name = option_value(o, "name", NULL), *os = option_value(o, "os", NULL);
    const char *extra = option_value(o, "extra-info", NULL);
    *h = (struct dump_header){.os = os ? sl_str(os) : get_os_name(m->main.object),
                              .name = name ? sl_str(name) : get_module_name(m, arena)};
    bool ok = sl_object_info(m->main.object)->format == SL_FORMAT_BREAKPAD ? copy_infos(m->main.object, arena, h)
                                                                           : add_code_id(m, arena, h);
    if (ok && extra)
        ok = add_info(h, arena, sl_str(extra));
    if (ok && !option_given(o, "no-generator"))
        ok = add_info(h, arena, SL_STR("GENERATOR symloom " SYMLOOM_VERSION));
    return ok;
}
