/* Ids of files without an id, made from their contents. */
#include "object/impl.h"

#include <openssl/evp.h>

/* Hashes all contents. False if they overlap, or if the hash function fails; `*any` becomes true if there are some. */
static bool add_contents(struct sl_object *object, EVP_MD_CTX *context, bool *any)
{
    struct sl_bytes piece;
    uint64_t total = 0;
    for (size_t i = 0; object->format->contents(object, i, &piece); i++) {
        if (!piece.size)
            continue;
        total += piece.size;
        if (total > object->bytes.size) /* real programs have no overlapping pieces */
            return false;
        if (EVP_DigestUpdate(context, piece.data, piece.size) != 1)
            return false;
        *any = true;
    }
    return true;
}

bool sl_object_make_id(struct sl_object *object, struct sl_debug_id *id)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    bool any = false;
    *id = object->info.debug_id;
    if (!sl_debug_id_is_nil(id))
        return true;
    if (!object->format->contents || object->info.kind == SL_KIND_DBG)
        return false;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestInit_ex(context, EVP_md5(), NULL) == 1 && add_contents(object, context, &any) &&
              any && EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    if (ok)
        memcpy(id->uuid, digest, sizeof id->uuid);
    return ok;
}
