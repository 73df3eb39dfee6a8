/* Companions: files with other parts of an object's debug information (DWARF package, dwz file), from the symbol source that had the
 * object. */
#include "dwarf/dwarf.h"
#include "cache_kinds/impl.h"

#include "core/log.h"

/* Gets a companion file; `*item` is NULL, with SL_OK, if it cannot be had. `*incomplete` becomes true if the file may exist nevertheless,
 * that is after every error but "not found" and "access denied", which some stores answer for missing files. Fails only with SL_CANCELLED
 * and SL_BUSY. */
static enum sl_code kinds_companions_get(const struct object_request *request, struct sl_arena *arena,
                                         struct cache_item **item, bool *incomplete, struct sl_error *error)
{
    enum sl_code code = cache_get_own_file(&kind_objects, request, arena, item, error);
    if (code == SL_OK || code == SL_CANCELLED || code == SL_BUSY)
        return code;
    *incomplete |= code != SL_NOT_FOUND && code != SL_PERMISSION_DENIED;
    log_debug("symcaches", "cannot use a file that belongs to a debug file",
              LOG_SLSTR("location", request->file->location), LOG_ERR(error));
    return SL_OK;
}

/* Gets the DWARF package of the object: the file `<name of the object's file>.dwp` of the same source. SL_OK even if it is not found. */
static enum sl_code get_package(const struct object_request *request, struct sl_arena *arena,
                                struct companion_items *items, struct sl_error *error)
{
    static const struct object_id any = {.type = OBJECT_ELF}; /* without ids: none is compared */
    struct remote_file file;
    struct object_request package = {.file = &file, .id = &any, .scope = request->scope};
    enum sl_code code = origin_companion(request->file, ".dwp", arena, &file, error);
    if (code != SL_OK)
        return code == SL_NOT_FOUND ? SL_OK : code;
    return kinds_companions_get(&package, arena, &items->package, &items->incomplete, error);
}

/* Gets the supplementary file (dwz) by its build id: tries the files that the source may have for this id, until one is found. SL_OK even
 * if none is found. */
static enum sl_code get_supplementary(const struct object_request *request, const struct companion_wants *wants,
                                      struct sl_arena *arena, struct companion_items *items, struct sl_error *error)
{
    static const enum file_type type = FILE_ELF_DEBUG;
    struct sl_buf hex = {0};
    /* the size comes from a worker, which a hostile file may have taken over */
    bool fits = wants->dwz_id_size <= sizeof wants->dwz_id;
    sl_buf_hex(&hex, wants->dwz_id, fits ? wants->dwz_id_size : 0);
    struct object_id id = {.type = OBJECT_ELF, .code_id = sl_buf_move_to_arena(&hex, arena)};
    struct listing listing;
    if (!id.code_id.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = list_sources(request->file->source, 1, request->scope, &id, &type, 1, arena, &listing);
    if (code != SL_OK)
        return sl_fail(error, code, "cannot list the files of the symbol source that the debug file came from");
    bool incomplete = false;
    for (size_t i = 0; i < listing.count && code == SL_OK && !items->dwz; i++) {
        struct object_request other = {.file = &listing.files[i], .id = &id, .scope = request->scope};
        code = kinds_companions_get(&other, arena, &items->dwz, &incomplete, error);
    }
    items->incomplete |= incomplete && !items->dwz; /* a failed candidate does not matter if another one was found */
    return code;
}

bool companions_wanted(struct sl_object *object, struct companion_wants *wants)
{
    struct sl_dwarf_companions dwarf;
    sl_dwarf_find_companions(object, &dwarf);
    *wants = (struct companion_wants){.package = dwarf.dwp};
    if (dwarf.dwz_build_id.size && dwarf.dwz_build_id.size <= sizeof wants->dwz_id) { /* a longer id counts as none */
        wants->dwz_id_size = dwarf.dwz_build_id.size;
        memcpy(wants->dwz_id, dwarf.dwz_build_id.data, dwarf.dwz_build_id.size);
    }
    return wants->package || wants->dwz_id_size;
}

enum sl_code companions_get(const struct object_request *request, const struct companion_wants *wants,
                            struct sl_arena *arena, struct companion_items *items, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    *items = (struct companion_items){.incomplete = false};
    if (wants->package)
        code = get_package(request, arena, items, error);
    if (wants->dwz_id_size && code == SL_OK)
        code = get_supplementary(request, wants, arena, items, error);
    return code;
}

void companions_release(struct companion_items *items)
{
    cache_release(items->package);
    cache_release(items->dwz);
}

/* Opens a companion among the inputs. `*object` is NULL, with SL_OK, if it is not there or damaged; an exhausted budget is an error, as
 * it says nothing about the file. */
static enum sl_code open_companion(struct conversion *conversion, const struct converter_call *call,
                                   enum input_role role, const struct reader_limits *limits, struct sl_object **object,
                                   struct sl_error *error)
{
    struct sl_bytes bytes = converter_input_bytes(call, role);
    *object = NULL;
    enum sl_code code = bytes.data ? conversion_open(conversion, bytes, limits, object, error) : SL_OK;
    return code == SL_MALFORMED && !sl_budget_exhausted(&conversion->budget) ? SL_OK : code;
}

enum sl_code companions_open(struct conversion *conversion, const struct converter_call *call,
                             const struct reader_limits *limits, struct sl_companions *companions,
                             struct sl_error *error)
{
    *companions = (struct sl_companions){.dwp = NULL};
    enum sl_code code = open_companion(conversion, call, INPUT_DWP, limits, &companions->dwp, error);
    return code == SL_OK ? open_companion(conversion, call, INPUT_DWZ, limits, &companions->dwz, error) : code;
}

void companions_close(struct sl_companions *companions)
{
    if (companions->dwp)
        sl_object_close(companions->dwp);
    if (companions->dwz)
        sl_object_close(companions->dwz);
}
