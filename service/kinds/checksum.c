/* The checksum by which .NET clients name the Portable PDB they want: the hash of the file as it was before the compiler
 * knew its id, that is with the 20 bytes of the id zeroed (PE/COFF Specification, additional information for .NET, "PDB
 * Checksum"). */
#include "kinds/impl.h"

#include <openssl/evp.h>

enum { SHA256_SIZE = 32, ID_SIZE = 20 };

static bool hash_without_id(struct sl_bytes file, uint64_t id_offset, uint8_t digest[SHA256_SIZE])
{
    static const uint8_t zeros[ID_SIZE];
    uint64_t behind = id_offset + ID_SIZE;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
              EVP_DigestUpdate(context, file.data, id_offset) == 1 && EVP_DigestUpdate(context, zeros, ID_SIZE) == 1 &&
              EVP_DigestUpdate(context, file.data + behind, file.size - behind) == 1 &&
              EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    return ok;
}

bool kinds_checksum_matches(struct sl_bytes file, struct sl_str checksum)
{
    const struct sl_str algorithm = SL_STR("SHA256:");
    uint8_t wanted[SHA256_SIZE], found[SHA256_SIZE];
    size_t size;
    if (checksum.size < algorithm.size ||
        !sl_str_equal_nocase((struct sl_str){checksum.data, algorithm.size}, algorithm) ||
        !sl_hex_decode((struct sl_str){checksum.data + algorithm.size, checksum.size - algorithm.size}, wanted,
                       sizeof wanted, &size) ||
        size != sizeof wanted || sl_format_detect(file) != SL_FORMAT_PORTABLEPDB)
        return true;
    struct sl_arena arena = {0};
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info info;
    bool known = sl_ppdb_open(file, &arena, &ppdb, &info, NULL) == SL_OK && info.id_offset &&
                 hash_without_id(file, info.id_offset, found);
    sl_arena_free(&arena);
    return !known || memcmp(wanted, found, sizeof wanted) == 0;
}
