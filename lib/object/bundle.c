/* Source bundles as objects: they have the identity of the build whose sources they contain, and no code. */
#include "object/impl.h"

#include "source/bundle.h"

/* Copies a text into the object's arena; data NULL when out of memory. */
static struct sl_str bundle_copy(struct sl_object *object, struct sl_str text)
{
    char *data = sl_arena_strndup(&object->arena, text.data, text.size);
    return (struct sl_str){data, data ? text.size : 0};
}

/* Reads the identity of a source bundle from its manifest and closes the bundle: whoever reads the sources opens it again. An unknown
 * architecture becomes SL_ARCH_UNKNOWN, a malformed code id an empty one. */
static enum sl_code open_bundle(struct sl_object *object, struct sl_error *error)
{
    struct sl_bundle *bundle;
    enum sl_code code = sl_bundle_open(object->bytes, object->budget, &bundle, error);
    if (code != SL_OK)
        return code;
    const struct sl_bundle_attributes *attributes = sl_bundle_attributes(bundle);
    struct sl_object_info *info = &object->info;
    info->kind = SL_KIND_SRC;
    info->debug_id = attributes->debug_id;
    info->code_id = sl_code_id_normalise(&object->arena, attributes->code_id);
    info->arch = sl_arch_parse(attributes->arch);
    info->debug_file = bundle_copy(object, attributes->object_name);
    info->features.has_sources = sl_bundle_has_sources(bundle);
    sl_bundle_close(bundle);
    return SL_OK;
}

const struct object_format sl_object_bundle = {
    .open = open_bundle,
};
