/* `symloom dump-syms`: downloads a module by its id. */
#include "cli/dump_syms/dump_syms.h"
#include "cli/server.h"

#include <stdio.h>
#include <stdlib.h>

/* Reports that a module cannot be downloaded. Returns the exit status. */
static int failed(const char *name, enum sl_code code, const char *cause)
{
    char text[4200];
    snprintf(text, sizeof text, "failed to download %s", name);
    return report_error(code == SL_PERMISSION_DENIED ? STATUS_DENIED : status_of_code(code), text, cause);
}

static int usage(const char *option, const char *text)
{
    fprintf(stderr, "error: --%s: '%s' is not an id\n", option, text);
    return options_try_help("dump-syms");
}

/* Returns the symbol servers (srv*[DIR*]URL[;...]) in ~/.dump_syms/config, the configuration of Mozilla's dump_syms; NULL if there is none.
 * The caller frees. */
static char *servers_of_user(void)
{
    char path[4096];
    struct sl_mapping mapping;
    const char *home = getenv("HOME");
    if (!home || snprintf(path, sizeof path, "%s/.dump_syms/config", home) >= (int)sizeof path ||
        sl_map_file(path, &mapping, NULL) != SL_OK)
        return NULL;
    char *text = strndup((const char *)mapping.bytes.data, mapping.bytes.size);
    sl_unmap(&mapping);
    return text;
}

/* Opens the symbol sources: --symbol-server or, without that, the servers in ~/.dump_syms/config, and those of the other options and the
 * configuration (locator_open). */
static enum sl_code open_sources(const struct options *o, struct locator **locator, struct sl_error *error)
{
    const char *given = option_value(o, "symbol-server", NULL);
    char *own = given ? NULL : servers_of_user();
    enum sl_code code = locator_open(o, given ? given : own, server_verbosity(o), locator, error);
    free(own);
    return code;
}

/* Downloads the file with these ids that is best for the purpose, and opens it as `input`. SL_UNSUPPORTED if it is a symcache. */
static enum sl_code dump_fetch_get(struct locator *locator, const struct object_id *id, enum purpose purpose,
                                   const char *name, struct input *input, struct sl_error *error)
{
    enum sl_code code = locator_open_input(locator, id, purpose, name, input, error);
    if (code == SL_OK && !input->object)
        code = sl_fail(error, SL_UNSUPPORTED, "a symcache cannot be converted to a symbol file");
    return code;
}

/* Completes `id` by what the downloaded file says: sets the ids that the command line does not give, and, if the file names its debug file,
 * replaces the name given on the command line by that. */
static void complete(struct object_id *id, const struct sl_object_info *info)
{
    if (!id->has_debug_id && !sl_debug_id_is_nil(&info->debug_id)) {
        id->debug_id = info->debug_id;
        id->has_debug_id = true;
    }
    if (!id->code_id.size)
        id->code_id = info->code_id;
    if (path_file_name(info->debug_file).size)
        id->debug_file = path_file_name(info->debug_file);
}

/* Downloads the other file of the module: the debug file if the main file has no debug information, else the executable if it has no unwind
 * information. A file with another id, or without what is missing, is not used. The module is usable without it, so errors are ignored. */
static void get_partner(struct dump_module *m, struct locator *locator, struct object_id *id)
{
    const struct sl_object_info *info = sl_object_info(m->main.object);
    bool debug = !info->features.has_debug_info; /* the other file is the debug file; else the executable */
    struct sl_error error;
    if (!debug && info->features.has_unwind_info)
        return;
    complete(id, info); /* the main file may know ids that the command line does not give */
    char *name =
        strndup(debug ? id->debug_file.data : id->code_file.data, debug ? id->debug_file.size : id->code_file.size);
    enum sl_code code =
        name ? dump_fetch_get(locator, id, debug ? PURPOSE_DEBUG : PURPOSE_UNWIND, name, &m->partner, &error)
             : SL_INTERNAL;
    free(name);
    const struct sl_object_info *other = code == SL_OK ? sl_object_info(m->partner.object) : NULL;
    m->has_partner = other && sl_debug_id_equal(&other->debug_id, &info->debug_id) &&
                     (debug ? other->features.has_debug_info : other->features.has_unwind_info);
    if (!m->has_partner) {
        input_close(&m->partner);
    } else if (debug) {
        m->debug = m->partner.object;
        m->debug_path = m->partner.path;
    } else {
        m->code = m->partner.object;
        m->code_path = m->partner.path;
    }
    sl_object_align_addresses(m->debug, m->code); /* they may have been linked to different addresses */
}

/* Downloads the module's file and, if debug and unwind information are in two files, the other one. */
static enum sl_code get_module(struct dump_module *m, struct locator *locator, struct object_id *id, const char *name,
                               struct sl_error *error)
{
    enum sl_code code = dump_fetch_get(locator, id, PURPOSE_DEBUG, name, &m->main, error);
    if (code == SL_NOT_FOUND) /* no file has debug information; an executable may name its debug file */
        code = dump_fetch_get(locator, id, PURPOSE_ANY_OBJECT, name, &m->main, error);
    if (code != SL_OK)
        return code;
    m->debug = m->code = m->main.object;
    m->debug_path = m->code_path = m->main.path;
    if (!sl_debug_id_is_nil(&sl_object_info(m->main.object)->debug_id) || !id->has_debug_id)
        sl_object_make_id(m->main.object, &m->id); /* the file's own id or, without one, a hash of its contents */
    else
        m->id = id->debug_id; /* the id it was requested by */
    get_partner(m, locator, id);
    return SL_OK;
}

int dump_module_fetch(struct dump_module *m, const char *name, const struct options *o, struct locator **locator)
{
    const char *debug_id = option_value(o, "debug-id", NULL), *code_id = option_value(o, "code-id", NULL);
    struct sl_arena arena = {0};
    struct sl_error error = {0};
    struct sl_str file = path_file_name(sl_str(name));
    struct object_id id = {.code_file = file, .debug_file = file, .has_debug_id = debug_id != NULL};
    *m = (struct dump_module){0};
    if (debug_id && (!sl_debug_id_parse(sl_str(debug_id), &id.debug_id) || sl_debug_id_is_nil(&id.debug_id)))
        return usage("debug-id", debug_id);
    if (code_id && !(id.code_id = sl_code_id_normalise(&arena, sl_str(code_id))).size) {
        sl_arena_free(&arena);
        return usage("code-id", code_id);
    }
    enum sl_code code = *locator ? SL_OK : open_sources(o, locator, &error);
    if (code == SL_OK)
        code = get_module(m, *locator, &id, name, &error);
    int status = code == SL_OK ? 0 : failed(name, code, error.message);
    sl_arena_free(&arena);
    return status;
}
