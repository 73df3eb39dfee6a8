/* Ids of files without an id, made from their contents. */
#include "object/impl.h"

#include <openssl/evp.h>

/* Adds the contents of the program to the hash; `*any` becomes true if there are some. False if parts of them overlap, or if the hash
 * function fails. */
static bool add_contents(struct sl_object *object, EVP_MD_CTX *context, bool *any)
{
    struct sl_bytes part;
    uint64_t total = 0;
    for (size_t i = 0; object->format->contents(object, i, &part); i++) {
        if (!part.size)
            continue;
        total += part.size;
        if (total > object->bytes.size) /* parts overlap, which does not happen in real programs */
            return false;
        if (EVP_DigestUpdate(context, part.data, part.size) != 1)
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
