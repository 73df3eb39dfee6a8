/* The files that hold the rest of an object's debug information, from the source that the object came from. */
#include "dwarf/dwarf.h"
#include "kinds/impl.h"

#include "core/log.h"

static struct sl_str joined(struct sl_arena *arena, struct sl_str text, const char *suffix)
{
    struct sl_buf out = {0};
    sl_buf_str(&out, text);
    sl_buf_cstr(&out, suffix);
    return sl_buf_keep(&out, arena);
}

static struct cache_item *get(const struct object_request *request, struct sl_arena *arena)
{
    struct cache_item *item;
    struct sl_error error;
    enum sl_code code = kinds_get(&kind_objects, request, arena, &item, &error);
    if (code != SL_OK)
        log_debug("symcaches", "no companion file", LOG_SLSTR("location", request->file->location),
                  LOG_STR("status", sl_code_name(code)));
    return item;
}

/* `<file>.dwp`, as the tools that make packages name them. */
static struct cache_item *get_package(const struct object_request *request, struct sl_arena *arena)
{
    static const struct object_id any = {.type = OBJECT_ELF};
    struct remote_file file = *request->file;
    if (file.source->type == SOURCE_SENTRY || origin_has_index(file.source) || file.pointer)
        return NULL; /* they have no file names, or know their files */
    file.location = joined(arena, file.location, ".dwp");
    file.uri = joined(arena, file.uri, ".dwp");
    struct object_request package = {.file = &file, .id = &any, .scope = request->scope};
    return file.location.data && file.uri.data ? get(&package, arena) : NULL;
}

/* By its build id, where the source's layout has debug files by id. */
static struct cache_item *get_supplementary(const struct object_request *request, const struct companion_wants *wants,
                                            struct sl_arena *arena)
{
    static const enum file_type type = FILE_ELF_DEBUG;
    struct sl_buf hex = {0};
    sl_buf_hex(&hex, wants->dwz_id, wants->dwz_id_size);
    struct object_id id = {.type = OBJECT_ELF, .code_id = sl_buf_keep(&hex, arena)};
    struct listing listing;
    struct cache_item *item = NULL;
    if (!id.code_id.data ||
        list_sources(request->file->source, 1, request->scope, &id, &type, 1, arena, &listing) != SL_OK)
        return NULL;
    for (size_t i = 0; i < listing.count && !item; i++) {
        struct object_request other = {.file = &listing.files[i], .id = &id, .scope = request->scope};
        item = get(&other, arena);
    }
    return item;
}

bool companions_wanted(struct sl_object *object, struct companion_wants *wants)
{
    struct sl_dwarf_wants dwarf;
    sl_dwarf_wants(object, &dwarf);
    *wants = (struct companion_wants){.package = dwarf.dwp};
    if (dwarf.dwz_build_id.size && dwarf.dwz_build_id.size <= sizeof wants->dwz_id) {
        wants->dwz_id_size = dwarf.dwz_build_id.size;
        memcpy(wants->dwz_id, dwarf.dwz_build_id.data, dwarf.dwz_build_id.size);
    }
    return wants->package || wants->dwz_id_size;
}

void companions_get(const struct object_request *request, const struct companion_wants *wants, struct sl_arena *arena,
                    struct companion_items *items)
{
    items->package = wants->package ? get_package(request, arena) : NULL;
    items->dwz = wants->dwz_id_size ? get_supplementary(request, wants, arena) : NULL;
}

void companions_release(struct companion_items *items)
{
    if (items->package)
        cache_release(items->package);
    if (items->dwz)
        cache_release(items->dwz);
}

static struct sl_object *open_item(struct cache_item *item)
{
    struct sl_object *object = NULL;
    if (!item || kinds_open_object(item->mapping.bytes, &object, NULL) != SL_OK)
        return NULL;
    return object;
}

void companions_open(const struct companion_items *items, struct sl_companions *companions)
{
    *companions = (struct sl_companions){.dwp = open_item(items->package), .dwz = open_item(items->dwz)};
}

void companions_close(struct sl_companions *companions)
{
    if (companions->dwp)
        sl_object_close(companions->dwp);
    if (companions->dwz)
        sl_object_close(companions->dwz);
}
