/* Source text out of objects: a bundle is opened once for as long as its file is in memory, and shared. */
#include "kinds/impl.h"

#include "source/bundle.h"

/* Larger texts are no source that somebody reads. */
enum { MAX_TEXT = 64 << 20 };

enum sl_code source_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    struct sl_bundle *bundle;
    *loaded = NULL;
    /* A bundle that cannot be opened now parsed when it came in: memory is out, and the file is no worse for it. */
    if (sl_format_detect(bytes) != SL_FORMAT_SOURCEBUNDLE || sl_bundle_open(bytes, &bundle, error) != SL_OK)
        return SL_OK;
    *loaded = bundle;
    *weight = sl_bundle_memory(bundle);
    return SL_OK;
}

void source_unload(void *loaded)
{
    sl_bundle_close(loaded);
}

uint64_t kinds_max_source_size(void)
{
    uint64_t configured = kinds_config()->object_max_source_size;
    return configured < MAX_TEXT ? configured : MAX_TEXT;
}

bool kinds_source_at(const struct cache_item *object, struct sl_str path, struct sl_buf *text, bool *has_text,
                     struct sl_buf *url)
{
    const struct sl_bundle *bundle = object->loaded;
    const struct sl_bundle_file *file = sl_bundle_by_path(bundle, path);
    *has_text = file && sl_bundle_read(bundle, file, kinds_max_source_size(), text, NULL) == SL_OK;
    if (*has_text) {
        sl_buf_str(url, file->url);
        return true;
    }
    return sl_bundle_link(bundle, path, url) || file;
}
