/* Apple's sample reports as struct named_file: their addresses are written back with names. */
#include "api/named_file.h"
#include "apple/samples.h"
#include "base/map.h"

struct named_samples { /* what struct named_file has for a sample report */
    struct sl_samples samples;
    struct sl_samples_name *names;        /* result of each row; zero: none */
    uint32_t *modules;                    /* for each image its index in `asked`; images with the same id share one */
    const struct sl_crash_module **asked; /* modules of the named file */
    uint32_t *rows;                       /* addresses of the named file: indexes of the rows that have an image */
};

/* ---- modules and addresses ---- */

/* Describes module `index` of the named file. Sample reports come from Apple's systems, so all modules are Mach-O files. */
static void samples_module(const struct named_file *file, size_t index, struct named_module *out)
{
    const struct named_samples *named = file->of_format;
    const struct sl_crash_module *module = named->asked[index];
    *out = (struct named_module){
        .type = "macho",
        .code_id = module->code_id,
        .debug_file = module->debug_file,
        .code_file = module->code_file,
        .paths = {module->code_file},
    };
    sl_debug_id_format(&module->debug_id, out->debug_id_text);
    out->debug_id = sl_str(out->debug_id_text);
}

/* Returns the address of a row, relative to the start of its image. */
static uint64_t relative_address(const struct named_samples *named, const struct sl_samples_row *row)
{
    return row->address - named->samples.images[row->image].begin;
}

/* Gets address `index` to look up: its module, and where in it (`relative`). Addresses that are not exact are return addresses: 1 less lies
 * in the call. */
static void samples_address(const struct named_file *file, size_t index, uint32_t *module, uint64_t *relative)
{
    const struct named_samples *named = file->of_format;
    const struct sl_samples_row *row = &named->samples.rows[named->rows[index]];
    uint64_t address = relative_address(named, row);
    *module = named->modules[row->image];
    *relative = address - (!row->is_exact && address); /* 0 stays 0 */
}

/* Lists the rows that have an image (`rows`), and the modules of their images (`asked`); modules[image] becomes the index in `asked`.
 * Processes share most images, so images with the same id are one module. False when out of memory. */
static bool choose_modules(struct named_file *file, struct named_samples *named)
{
    struct sl_samples *samples = &named->samples;
    struct sl_map by_id = {0};
    bool good = true;
    for (size_t i = 0; i < samples->row_count && good; i++) {
        const struct sl_samples_row *row = &samples->rows[i];
        if (row->image == SL_SAMPLES_NONE)
            continue;
        const struct sl_crash_module *module = &samples->images[row->image].module;
        bool made = false;
        void **slot = sl_map_find_or_add(&by_id, module->code_id, &made);
        if (!(good = slot != NULL))
            break;
        if (made) {
            named->asked[file->module_count++] = module;
            /* the map's value is the element of `asked`, from which the index is computed below */
            *slot = &named->asked[file->module_count - 1];
        }
        named->modules[row->image] = (uint32_t)((const struct sl_crash_module **)*slot - named->asked);
        named->rows[file->address_count++] = (uint32_t)i;
    }
    sl_map_free(&by_id);
    return good;
}

/* ---- results ---- */

/* Returns the names of a row as one text: "inner (inlined into middle, outer)"; data NULL when out of memory. */
static struct sl_str name_of_calls(struct sl_arena *arena, const struct named_calls *calls)
{
    struct sl_buf text = {0};
    sl_buf_str(&text, calls->items[0].function);
    for (size_t i = 1; i < calls->count; i++) {
        sl_buf_cstr(&text, i == 1 ? " (inlined into " : ", ");
        sl_buf_str(&text, calls->items[i].function);
    }
    if (calls->count > 1)
        sl_buf_u8(&text, ')');
    return sl_buf_move_to_arena(&text, arena);
}

/* Stores the functions found for address `index`. The offset of a row counts from the start of the outermost function; the name of a
 * row with inlined functions begins with the innermost one, so it gets no offset. False when out of memory. */
static bool samples_take(struct named_file *file, size_t index, const struct named_calls *calls)
{
    struct named_samples *named = file->of_format;
    const struct sl_samples_row *row = &named->samples.rows[named->rows[index]];
    struct sl_samples_name *name = &named->names[named->rows[index]];
    const struct named_call *innermost = &calls->items[0];
    uint64_t address = relative_address(named, row);
    /* the file name without its directory, if known */
    struct sl_str source = innermost->filename.size ? innermost->filename : innermost->path;
    name->function = name_of_calls(file->arena, calls);
    name->line = innermost->line;
    name->has_offset = calls->count == 1 && calls->has_symbol && calls->symbol <= address;
    name->offset = name->has_offset ? address - calls->symbol : 0;
    char *copy = source.size ? sl_arena_strndup(file->arena, source.data, source.size) : NULL;
    name->file = (struct sl_str){copy, copy ? source.size : 0};
    return name->function.data && (copy || !source.size);
}

static void samples_forget(struct named_file *file)
{
    struct named_samples *named = file->of_format;
    memset(named->names, 0, named->samples.row_count * sizeof *named->names);
}

/* ---- the file ---- */

static enum sl_code samples_write(const struct named_file *file, struct sl_buf *out, struct sl_error *error)
{
    const struct named_samples *named = file->of_format;
    return sl_samples_write(&named->samples, named->names, out) ? SL_OK : sl_budget_fail(out->budget, error);
}

static void samples_end(struct named_file *file)
{
    (void)file; /* everything is in the arena */
}

static const struct named_format samples_format = {samples_module, samples_address, samples_take,
                                                   samples_forget, samples_write,   samples_end};

static enum sl_code named_samples_no_memory(struct sl_error *error)
{
    return sl_fail(error, SL_BUSY, "out of memory");
}

enum sl_code named_samples_read(struct sl_bytes bytes, struct sl_arena *arena, struct named_file *file,
                                struct sl_error *error)
{
    struct named_samples *named = SL_ARENA_NEW(arena, struct named_samples);
    struct sl_buf mended = {0}; /* the text as UTF-8, whatever its encoding was */
    *file = (struct named_file){.arena = arena};
    sl_buf_utf8(&mended, (struct sl_str){(const char *)bytes.data, bytes.size});
    struct sl_str text = sl_buf_move_to_arena(&mended, arena);
    if (!named || !text.data)
        return named_samples_no_memory(error);
    struct sl_samples *samples = &named->samples;
    enum sl_code code = sl_samples_read(text, arena, samples, error);
    if (code != SL_OK)
        return code;
    named->names = SL_ARENA_ARRAY(arena, struct sl_samples_name, samples->row_count + 1);
    named->modules = SL_ARENA_ARRAY(arena, uint32_t, samples->image_count + 1);
    named->asked = SL_ARENA_ARRAY(arena, const struct sl_crash_module *, samples->image_count + 1);
    named->rows = SL_ARENA_ARRAY(arena, uint32_t, samples->row_count + 1);
    file->format = &samples_format;
    file->of_format = named;
    bool good = named->names && named->modules && named->asked && named->rows && choose_modules(file, named);
    return good ? SL_OK : named_samples_no_memory(error);
}
