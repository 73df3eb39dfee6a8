/* Portable PDBs as objects; the reader itself is lib/ppdb. They have no functions with addresses: methods have numbers and are looked
 * up in ppdb/table.h. */
#include "object/impl.h"

#include "ppdb/ppdb.h"

/* Opens a Portable PDB and sets its id and features. It has no architecture, and no symbols besides its methods. */
static enum sl_code ppdb_open(struct sl_object *object, struct sl_error *error)
{
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info ppdb_info;
    struct sl_object_info *info = &object->info;
    enum sl_code code = sl_ppdb_open(object->bytes, &object->arena, &ppdb, &ppdb_info, error);
    if (code != SL_OK)
        return code;
    object->impl = ppdb;
    info->kind = SL_KIND_DBG;
    info->debug_id = ppdb_info.debug_id;
    info->features.has_debug_info = ppdb_info.method_count != 0;
    info->features.has_sources = ppdb_info.has_sources;
    return SL_OK;
}

const struct object_format sl_object_ppdb = {
    .open = ppdb_open,
};
