/* Source texts in objects: in source bundles, in DWARF (converted to a bundle) and in Portable PDBs. A bundle stays open, for all
 * requests, while it is in the memory layer of the cache. In a Portable PDB, texts are found by the look-up table made from it. */
#include "cache_kinds/impl.h"

#include <unistd.h>

#include "core/sigbus_guard.h"

#include "source/bundle.h"
#include "source/zip.h"

/* Largest source text, in bytes; larger ones count as missing. */
enum { MAX_TEXT = 64 << 20 };

/* Opens a source bundle. For other files, and a damaged bundle, `*loaded` is NULL with SL_OK: the cache serves them as plain files. */
enum sl_code source_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    struct sl_bundle *bundle;
    *loaded = NULL;
    if (sl_format_detect(bytes) != SL_FORMAT_SOURCEBUNDLE)
        return SL_OK;
    struct sl_budget budget;
    sl_budget_init(&budget, bytes.size); /* limits the work, in proportion to the size */
    sl_budget_limit(&budget, current_max_conversion_memory(), NULL, NULL); /* memory; NULL: no time limit */
    enum sl_code code = sl_bundle_open(bytes, &budget, &bundle, error);
    if (code != SL_OK) /* it was valid when it was downloaded; if it is damaged now, it has no sources */
        return code == SL_BUSY ? code : SL_OK;
    *loaded = bundle;
    *weight = sl_bundle_memory(bundle);
    return SL_OK;
}

void source_unload(void *loaded)
{
    sl_bundle_close(loaded);
}

static uint64_t max_size(void)
{
    uint64_t configured = current_max_source_size();
    return configured < MAX_TEXT ? configured : MAX_TEXT;
}

/* Appends the text of a file; false if it is too large or cannot be read. Adds its size to `*work` also if it cannot be read, as a failed
 * inflation takes time, too. */
bool append_bundle_text(const struct sl_bundle *bundle, const struct sl_bundle_file *file, uint64_t *work,
                        struct sl_buf *text)
{
    if (file->entry && file->entry->size <= max_size()) /* larger ones are not inflated: they cost nothing */
        *work += file->entry->size;
    return sl_bundle_read(bundle, file, max_size(), text, NULL) == SL_OK;
}

/* Looks a source path up in a bundle. If the bundle has a text for it, appends the text and its URL in the manifest, which may be empty.
 * Otherwise appends the URL that the bundle's source links give for the path, if any. True if the bundle has a text, a link or only a
 * manifest item for the path. object->work counts the bytes inflated, even if that fails. */
static bool in_bundle(struct source_object *object, struct sl_str path, struct sl_buf *text, bool *has_text,
                      struct sl_buf *url)
{
    const struct sl_bundle *bundle = object->item->loaded;
    const struct sl_bundle_file *file = sl_bundle_by_path(bundle, path);
    *has_text = file && append_bundle_text(bundle, file, &object->work, text);
    if (*has_text) {
        sl_buf_str(url, file->url);
        return true;
    }
    return sl_bundle_link(bundle, path, url) || file;
}

/* ---- Portable PDB ---- */

/* Appends a text that the Portable PDB contains; false if it is too large, cannot be read, or memory is out. Adds its size to object->work
 * unless it is too large: a failed inflation takes time, too. */
static bool embedded_text(struct source_object *object, const struct sl_ppdb_source *source, struct sl_buf *out)
{
    struct sl_arena scratch = {0};
    struct sl_bytes text;
    object->work += source->size <= max_size() ? source->size : 0; /* larger ones are not inflated */
    bool good = object->ppdb.data &&
                sl_ppdb_source_text(object->ppdb, source, max_size(), &scratch, &text, NULL) == SL_OK &&
                text.size <= max_size(); /* again, as stored texts may exceed the limit of inflated ones */
    if (good)
        sl_buf_add(out, text.data, text.size);
    sl_arena_free(&scratch);
    return good && !out->failed;
}

/* Looks a source path up in a Portable PDB: appends the embedded text, or else the URL by its Source Link. True if there is one of them. */
static bool in_ppdb(struct source_object *object, struct sl_str path, struct sl_buf *text, bool *has_text,
                    struct sl_buf *url)
{
    const struct sl_ppdb_table *table = object->table->loaded;
    struct sl_ppdb_source source;
    uint32_t document;
    *has_text = sl_ppdb_table_source(table, path, &source) && embedded_text(object, &source, text);
    return *has_text || (sl_ppdb_table_find(table, path, &document) && sl_ppdb_links_resolve(&table->links, path, url));
}

bool source_object_find(struct source_object *object, struct sl_str path, struct sl_buf *text, bool *has_text,
                        struct sl_buf *url)
{
    return object->table ? in_ppdb(object, path, text, has_text, url) : in_bundle(object, path, text, has_text, url);
}

/* ---- opening ---- */

/* argument and result of detect(), which runs under a guard against SIGBUS, as the file is mapped */
struct detecting {
    struct sl_bytes file;
    enum sl_format format;
};

static void detect(void *arg)
{
    struct detecting *d = arg;
    d->format = sl_format_detect(d->file);
}

/* Finds the format by the first bytes of the file. False if they cannot be read: then the damaged cache entry is dropped, so that the
 * next look-up makes it again. */
static bool read_format(struct sl_bytes file, enum sl_format *format)
{
    struct detecting d = {.file = file};
    bool readable = sigbus_guard_run(detect, &d);
    if (!readable)
        cache_drop_faulted();
    *format = d.format;
    return readable;
}

/* True if sources of the file could only be in its DWARF. False for a Portable PDB and for a .NET PE file: the sources of the latter are
 * in the Portable PDB inside of it. */
static bool has_dwarf(struct sl_bytes file, const struct object_request *request)
{
    enum sl_format format;
    if (!read_format(file, &format))
        return false; /* open_table, which is called then, cannot read it either, and reports that */
    return format == SL_FORMAT_PE ? request->id->type != OBJECT_PE_DOTNET : format != SL_FORMAT_PORTABLEPDB;
}

/* Inflates the Portable PDB inside of a PE file into a temporary file, and maps that: sets object->ppdb. */
static enum sl_code inflate_ppdb(const struct object_request *request, struct source_object *object,
                                 struct sl_error *error)
{
    struct reader_limits limits = current_reader_limits();
    struct conversion_description about = {.location = request->file->location};
    struct converter_call call = {.options = CONVERTER_OPTIONS(limits)};
    converter_add_item(&call, INPUT_FILE, object->item);
    enum sl_code code = create_work_file(&call.out, error);
    if (code != SL_OK)
        return code;
    code = conversion_run(&about, &converter_embedded_ppdb, &call, NULL, error);
    if (code == SL_OK)
        code = sl_map_fd(call.out, &object->inflated, error);
    close(call.out);
    object->ppdb = code == SL_OK ? object->inflated.bytes : object->ppdb;
    return code;
}

/* Sets object->ppdb to the Portable PDB that contains source texts: the file itself, or the one inside of a PE file. Leaves it unset, with
 * SL_OK, if there is none or it is unusable: then only URLs are found. Fails only with SL_BUSY, SL_CANCELLED and SL_INTERNAL: their
 * cause is not the file. */
static enum sl_code find_ppdb(const struct object_request *request, struct source_object *object,
                              struct sl_error *error)
{
    const struct sl_ppdb_table *table = object->table->loaded;
    struct sl_bytes file = object->item->mapping.bytes;
    enum sl_format format;
    if (!table->source_count || /* no embedded texts */
        !read_format(file, &format))
        return SL_OK;
    if (format == SL_FORMAT_PORTABLEPDB)
        object->ppdb = file;
    enum sl_code code = format == SL_FORMAT_PE ? inflate_ppdb(request, object, error) : SL_OK;
    return code == SL_BUSY || code == SL_CANCELLED || code == SL_INTERNAL ? code : SL_OK;
}

/* Opens the look-up table of a Portable PDB, and the PDB itself for the texts in it. On failure, releases `object`. */
static enum sl_code open_table(const struct cache_key *key, const struct object_request *request,
                               struct source_object *object)
{
    struct sl_error error;
    enum sl_code code = cache_get(&kind_ppdb_caches, key, request, &object->table, NULL);
    if (code == SL_OK)
        code = find_ppdb(request, object, &error);
    if (code != SL_OK)
        source_object_release(object);
    return code;
}

/* Opens the sources of an object: a bundle as it is (`loaded`); for an object with DWARF, the entry of kind `embedded_sources`, which is a
 * bundle; otherwise the look-up table of a Portable PDB. On failure, releases `object`. */
enum sl_code source_open(const struct cache_key *key, const struct object_request *request,
                         struct source_object *object)
{
    *object = (struct source_object){.scope = request->scope};
    enum sl_code code = cache_get(&kind_objects, key, request, &object->item, NULL);
    if (code == SL_OK && !object->item->loaded && has_dwarf(object->item->mapping.bytes, request)) {
        cache_release(object->item);
        object->item = NULL;
        code = cache_get(&kind_embedded_sources, key, request, &object->item, NULL);
    } else if (code == SL_OK && !object->item->loaded) {
        return open_table(key, request, object);
    }
    if (code != SL_OK)
        source_object_release(object);
    return code;
}

void source_object_release(struct source_object *object)
{
    cache_release(object->item);
    cache_release(object->table);
    object->item = object->table = NULL;
    if (object->inflated.bytes.data)
        sl_unmap(&object->inflated);
    object->inflated.bytes.data = NULL;
}
