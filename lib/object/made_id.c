/* Ids of files that have none, made of their contents. */
#include "object/impl.h"

#include <openssl/evp.h>

enum { BYTES_PER_STEP = 16 };

static bool add_contents(struct sl_object *object, EVP_MD_CTX *context, bool *any)
{
    struct sl_bytes piece;
    for (size_t i = 0; object->format->contents(object, i, &piece); i++) {
        if (!piece.size)
            continue;
        if (!sl_budget_spend(object->budget, piece.size / BYTES_PER_STEP + 1)) /* pieces may overlap */
            return object_no_memory(object), false;
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
