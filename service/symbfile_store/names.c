/* Names of files and directories in the store of uploaded symbfiles: they are its state. A "set" is all parts of one upload. */
#include "symbfile_store/impl.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/grow.h"

const char *const symbfile_kind_names[SYMBFILE_KINDS] = {"ranges", "returnpads"};

struct store_limits store_limits;

void symbfile_store_configure(const struct config *config)
{
    store_limits.store_dir = config->symbfile.store_dir;
    store_limits.shared_dir = config->symbfile.shared_dir;
    store_limits.cache_dir = config->cache_dir;
    store_limits.min_free = config->symbfile.store_min_free;
    store_limits.max_size = config->symbfile.store_max_size;
    store_limits.max_set_bytes = config->symbfile.max_set_bytes;
    store_limits.max_records = config->symbfile.max_records;
    store_limits.staging_ttl_ns = config->symbfile.staging_ttl_ns;
}

/* The store's directory is symbfile.store.filesystem.path, which nodes share. If that is not configured, it is symbfile.store_dir, which
 * belongs to this node; without that too, the directory `uploads` in the cache directory. */
bool symbfile_store_dir(char out[512])
{
    const char *shared = store_limits.shared_dir, *own = shared ? shared : store_limits.store_dir;
    const char *cache = store_limits.cache_dir;
    int size = -1;
    if (own)
        size = snprintf(out, 512, "%s", own);
    else if (cache)
        size = snprintf(out, 512, "%s/uploads", cache);
    return size > 0 && size < 512;
}

bool store_tmp(char out[STORE_PATH])
{
    char store[512];
    if (!symbfile_store_dir(store))
        return false;
    snprintf(out, STORE_PATH, "%s/tmp", store);
    return true;
}

/* Makes the path of a scope's directory; that of the global scope, "", is the store itself. */
bool store_root(const char *scope, char out[STORE_PATH])
{
    char store[512];
    if (!symbfile_store_dir(store))
        return false;
    snprintf(out, STORE_PATH, *scope ? "%s/scopes/%s" : "%s", store, scope);
    return true;
}

bool store_home(const struct symbfile_key *file_key, char out[STORE_PATH])
{
    char root[STORE_PATH], hex[FILE_ID_HEX];
    if (!store_root(file_key->scope, root))
        return false;
    sl_hex_encode(file_key->file_id.bytes, sizeof file_key->file_id.bytes, hex);
    return snprintf(out, STORE_PATH, "%s/%.2s/%s", root, hex, hex) < STORE_PATH;
}

/* ---- scopes ---- */

/* True if the scope can be the name of a directory as it is: at most 32 ASCII letters, digits, '-' and '_'. */
static bool is_plain(struct sl_str scope)
{
    enum { PLAIN = 32 };
    bool plain = scope.size <= PLAIN;
    for (size_t i = 0; plain && i < scope.size; i++) {
        char c = scope.data[i];
        plain = sl_is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' || c == '_'; /* | 32: lower case */
    }
    return plain;
}

/* Converts a scope to a name that is safe for a directory or object: "" for the global scope; the scope itself if it has only letters,
 * digits, '-' and '_'; otherwise '~', which such scopes do not contain, and the first half of its SHA-256. */
void symbfile_scope(struct sl_str scope, char out[SYMBFILE_SCOPE])
{
    uint8_t hash[32];
    memset(out, 0, SYMBFILE_SCOPE);
    if (!scope.size || sl_str_equal(scope, SL_STR("global")))
        return;
    if (is_plain(scope)) {
        memcpy(out, scope.data, scope.size);
        return;
    }
    SHA256((const uint8_t *)scope.data, scope.size, hash);
    out[0] = '~';
    sl_hex_encode(hash, 16, out + 1);
}

/* ---- names ---- */

/* Makes "<number>.<SHA-256>.<mode>.<records>.<inflated bytes>". */
void store_part_name(const struct symbfile_part_file *part, char out[PART_NAME])
{
    char hex[65];
    sl_hex_encode(part->sha256, sizeof part->sha256, hex);
    snprintf(out, PART_NAME, "%" PRIu32 ".%s.%c.%" PRIu64 ".%" PRIu64, part->number, hex, part->mode, part->records,
             part->inflated);
}

/* Parses "<number>.<SHA-256>.<mode>.<records>.<inflated bytes>"; false for other names, such as that of the file `table`. */
bool store_parse_part_name(const char *name, struct symbfile_part_file *part)
{
    char hex[65];
    int end = 0;
    *part = (struct symbfile_part_file){0};
    return sscanf(name, "%" SCNu32 ".%64[0-9a-f].%c.%" SCNu64 ".%" SCNu64 "%n", &part->number, hex, &part->mode,
                  &part->records, &part->inflated, &end) == 5 &&
           name[end] == '\0' && sl_hex_decode(sl_str(hex), part->sha256, sizeof part->sha256, NULL);
}

/* Parses the name of a set's directory: "<kind>-<generation>-<parts>-<records>" of a published set, or "staging-<kind>-<parts>-<upload
 * id>" of an incomplete one. False for other names. */
static bool parse_set_name(const char *name, struct symbfile_set *set)
{
    *set = (struct symbfile_set){0};
    if (strlen(name) >= sizeof set->name)
        return false;
    snprintf(set->name, sizeof set->name, "%s", name);
    set->published = strncmp(name, "staging-", 8) != 0;
    const char *at = set->published ? name : name + 8;
    int kind = 0, end = 0;
    while (kind < SYMBFILE_KINDS && strncmp(at, symbfile_kind_names[kind], strlen(symbfile_kind_names[kind])) != 0)
        kind++;
    if (kind == SYMBFILE_KINDS)
        return false;
    set->kind = (enum symbfile_kind)kind;
    at += strlen(symbfile_kind_names[kind]);
    if (!set->published)
        return sscanf(at, "-%" SCNu64 "%n", &set->parts, &end) == 1 && at[end] == '-';
    return sscanf(at, "-%" SCNu64 "-%" SCNu64 "-%" SCNu64 "%n", &set->generation, &set->parts, &set->records, &end) ==
               3 &&
           at[end] == '\0';
}

/* Lists the sets of an executable; the caller frees the list. errno is 0 if the list is complete; else sets may be missing from it, and
 * store_code() tells what that means. NULL for an empty list. */
struct symbfile_set *store_sets(const char *home, size_t *count)
{
    struct symbfile_set *sets = NULL;
    size_t capacity = 0;
    store_refresh(home);
    errno = 0;
    DIR *dir = opendir(home);
    int reason = errno;
    *count = 0;
    struct stat st;
    for (struct dirent *e; (e = dir_next(dir, &st));) {
        struct symbfile_set set;
        if (!parse_set_name(e->d_name, &set))
            continue;
        set.updated_s = set.published ? (int64_t)(set.generation / 1000000) : (int64_t)st.st_mtim.tv_sec;
        if (!sl_grow(&sets, &capacity, *count + 1, sizeof *sets)) {
            reason = ENOMEM;
            break;
        }
        sets[(*count)++] = set;
    }
    if (!reason)
        reason = errno; /* of dir_next: 0, or why reading the directory failed */
    if (dir)
        closedir(dir);
    errno = reason;
    return sets;
}

static int by_number(const void *left, const void *right)
{
    const struct symbfile_part_file *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* Lists the parts of a set in numeric order. If several files have the same number all of them are listed. On failure, with errno, the set
 * has no parts to free. */
bool store_load_parts(const char *home, struct symbfile_set *set)
{
    char path[STORE_PATH + 200];
    size_t capacity = 0;
    snprintf(path, sizeof path, "%s/%s", home, set->name);
    DIR *dir = opendir(path);
    bool ok = dir != NULL;
    set->have = NULL;
    set->have_count = 0;
    for (struct dirent *e; ok && (e = dir_next(dir, NULL));) {
        struct symbfile_part_file part;
        if (!store_parse_part_name(e->d_name, &part))
            continue;
        ok = sl_grow(&set->have, &capacity, set->have_count + 1, sizeof *set->have);
        if (ok)
            set->have[set->have_count++] = part;
    }
    int reason = dir && !ok ? ENOMEM : errno; /* errno: of opendir, or of dir_next, 0 if it has read all entries */
    ok = ok && reason == 0;
    if (dir)
        closedir(dir);
    if (!ok) {
        free(set->have);
        set->have = NULL;
        set->have_count = 0;
        errno = reason;
    }
    if (set->have_count)
        qsort(set->have, set->have_count, sizeof *set->have, by_number);
    return ok;
}
