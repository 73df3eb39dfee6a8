/* Profiles of the Firefox Profiler as struct named_file: their addresses are written back with names. */
#include "api/named_file.h"
#include "base/map.h"
#include "profile/profile.h"

struct named_profile { /* what struct named_file has for a profile */
    struct sl_profile profile;
    struct sl_profile_name *names; /* result of each address; zero: none */
    struct sl_map texts;           /* names and paths that were copied, each once; in the arena */
};

/* ---- modules and addresses ---- */

/* Returns the object type of a library, which profiles do not have: it is known from the name of its PDB file or the platform. */
static const char *lib_type(const struct sl_profile *profile, const struct sl_profile_lib *lib)
{
    if (sl_str_ends(lib->debug_name, SL_STR(".pdb")) || sl_str_equal(profile->platform, SL_STR("Windows")))
        return "pe";
    return sl_str_equal(profile->platform, SL_STR("Macintosh")) ? "macho" : "elf";
}

/* Describes library `index` of the profile. A missing name is replaced by the path, and a missing path by the name. */
static void profile_module(const struct named_file *file, size_t index, struct named_module *module)
{
    const struct named_profile *named = file->of_format;
    const struct sl_profile_lib *lib = &named->profile.libs[index];
    *module = (struct named_module){
        .type = lib_type(&named->profile, lib),
        .debug_id = lib->debug_id,
        .code_id = lib->code_id,
        .debug_file = lib->debug_name.size ? lib->debug_name : lib->debug_path,
        .code_file = lib->path.size ? lib->path : lib->name,
        .paths = {lib->path, lib->debug_path},
    };
}

static void profile_address(const struct named_file *file, size_t index, uint32_t *module, uint64_t *relative)
{
    const struct named_profile *named = file->of_format;
    *module = named->profile.addresses[index].lib;
    *relative = named->profile.addresses[index].address;
}

/* ---- results ---- */

/* Returns a copy of the text in the arena; equal texts share one copy. data NULL: out of memory. */
static struct sl_str kept_text(struct named_file *file, struct sl_str text)
{
    struct named_profile *named = file->of_format;
    const struct sl_str *known = sl_map_get(&named->texts, text);
    if (known)
        return *known;
    struct sl_str *kept = SL_ARENA_NEW(file->arena, struct sl_str);
    char *copy = kept ? sl_arena_strndup(file->arena, text.data, text.size) : NULL;
    if (!copy)
        return (struct sl_str){NULL, 0};
    *kept = (struct sl_str){copy, text.size};
    return sl_map_put(&named->texts, *kept, kept) ? *kept : (struct sl_str){NULL, 0};
}

/* Copies one function of a result. False when out of memory. */
static bool take_call(struct named_file *file, const struct named_call *from, struct sl_profile_call *call)
{
    *call = (struct sl_profile_call){.function = kept_text(file, from->function), .line = (uint32_t)from->line};
    if (from->path.size)
        call->file = kept_text(file, from->path);
    return call->function.data && (call->file.data || !from->path.size);
}

/* Stores the functions found for address `index`. If the start of the outermost function is not known, the address stands for it, as
 * profiles need one. False when out of memory. */
static bool profile_take(struct named_file *file, size_t index, const struct named_calls *found)
{
    struct named_profile *named = file->of_format;
    struct sl_profile_call *calls = SL_ARENA_ARRAY(file->arena, struct sl_profile_call, found->count);
    for (size_t i = 0; calls && i < found->count; i++)
        if (!take_call(file, &found->items[i], &calls[i]))
            return false;
    uint64_t symbol = found->has_symbol ? found->symbol : named->profile.addresses[index].address;
    named->names[index] = (struct sl_profile_name){symbol, calls, found->count};
    return calls != NULL;
}

static void profile_forget(struct named_file *file)
{
    struct named_profile *named = file->of_format;
    memset(named->names, 0, named->profile.address_count * sizeof *named->names);
}

/* ---- the file ---- */

static enum sl_code profile_write(const struct named_file *file, struct sl_buf *out, struct sl_error *error)
{
    const struct named_profile *named = file->of_format;
    return sl_profile_write(&named->profile, named->names, out, error);
}

static void profile_end(struct named_file *file)
{
    sl_map_free(&((struct named_profile *)file->of_format)->texts);
}

static const struct named_format profile_format = {profile_module, profile_address, profile_take,
                                                   profile_forget, profile_write,   profile_end};

enum sl_code named_profile_read(struct sl_str text, struct sl_arena *arena, struct named_file *file,
                                struct sl_error *error)
{
    struct named_profile *named = SL_ARENA_NEW(arena, struct named_profile);
    *file = (struct named_file){.arena = arena};
    if (!named)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = sl_profile_read(text, arena, &named->profile, error);
    if (code != SL_OK)
        return code;
    named->names = SL_ARENA_ARRAY(arena, struct sl_profile_name, named->profile.address_count + 1);
    if (!named->names)
        return sl_fail(error, SL_BUSY, "out of memory");
    *file = (struct named_file){.arena = arena,
                                .module_count = named->profile.lib_count,
                                .address_count = named->profile.address_count,
                                .format = &profile_format,
                                .of_format = named};
    return SL_OK;
}
