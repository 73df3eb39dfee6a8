/* Finds the build id of an ELF file if only its debug id is known, which is made from the first 16 bytes of the build id. Reads the names
 * in the directory where a layout stores the file. Not for web servers and buckets, which cannot list names or only at high cost. */
#include <errno.h>
#include <unistd.h>

#include "core/files.h"
#include "core/pool.h"
#include "origin/impl.h"

#define SECONDS_NS UINT64_C(1000000000)

/* MAX_NAMES: names that are read of a directory. KNOWN: digits of a build id that its debug id tells. SHORTEST, LONGEST: digits of a build
 * id. MAX_KEPT: cached build ids. */
enum { MAX_NAMES = 200000, KNOWN = 32, SHORTEST = 16, LONGEST = 128, MAX_KEPT = 4096 };

static bool is_failure(enum sl_code code)
{
    return code != SL_NOT_FOUND;
}

/* Misses are cached for a minute. Failures are cached for a nanosecond, so that the next request tries again: 0 would mean error_ns. */
static struct ttl_cache build_ids = {
    .capacity = MAX_KEPT, .error_ns = 60 * SECONDS_NS, .failure_ns = 1, .is_failure = is_failure};

void build_ids_clear_cache(void)
{
    ttl_cache_expire(&build_ids);
}

void build_ids_close(void)
{
    ttl_cache_free(&build_ids);
}

struct build_id_names {                    /* search in one directory, on the pool */
    const char *root, *directory, *before; /* `before`: prefix of the digits */
    const char *digits;                    /* known digits at the beginning, lower case */
    bool any_case;                         /* names match in any case */
    char found[LONGEST + 1];               /* empty: not found */
    int failed;                            /* errno of a directory that could not be read or named; 0 = none */
};

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool is_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* True if the `size` digits of the name agree with the known digits. A name may have fewer digits than are known if the rest of the known
 * ones are zeros: debug ids of shorter build ids are padded with them. */
static bool is_continued(const char *known, const char *name, size_t size)
{
    size_t both = size < strlen(known) ? size : strlen(known);
    for (size_t i = 0; i < both; i++)
        if (lower(name[i]) != known[i])
            return false;
    for (size_t i = both; known[i]; i++)
        if (known[i] != '0')
            return false;
    return true;
}

/* Stores the digits of the name in n->found if it consists of the prefix n->before and digits that agree with the known ones, and they are
 * as many as a build id may have. */
static void check_name(struct build_id_names *n, const char *name)
{
    /* `first`: digits that are the name of the directory, not of the file */
    size_t size = 0, before = strlen(n->before), first = KNOWN - strlen(n->digits);
    if (strncasecmp(name, n->before, before) != 0)
        return;
    name += before;
    while (size < LONGEST && is_digit(lower(name[size])))
        size++;
    /* % 2: a build id consists of whole bytes */
    if (size + first < SHORTEST || (size + first) % 2 || !is_continued(n->digits, name, size))
        return;
    for (size_t i = 0; i < size; i++)
        n->found[i] = lower(name[i]);
    n->found[size] = '\0';
}

/* Pool work: searches at most MAX_NAMES names of one directory for a build id. A directory that is missing or may not be read has none;
 * other errors set n->failed. */
static void scan_directory(void *arg)
{
    struct build_id_names *n = arg;
    DIR *directory = open_directory_of_fd(n->any_case ? any_case_open(n->root, n->directory)
                                                      : filesystem_open(n->root, n->directory));
    struct dirent *entry = NULL;
    if (!directory && !filesystem_is_missing(errno) && errno != EACCES && errno != EPERM)
        n->failed = errno;
    for (size_t i = 0; directory && i < MAX_NAMES && !n->found[0] && (i == 0 || entry); i++)
        if ((entry = dir_next(directory, NULL)))
            check_name(n, entry->d_name);
        else
            n->failed = errno; /* 0 at the end of the directory */
    if (directory)
        closedir(directory);
}

/* ---- layouts ---- */

struct build_id_question {
    const struct source *source;
    const struct object_id *id;
    char known[KNOWN + 1];
};

/* Sets the digits of the build id that are known from the debug id. A debug id consists of the first 16 bytes of the build id, with the
 * first three fields in the other byte order. False if it cannot be that of an ELF file: those have the age 0. */
static bool known_digits(const struct object_id *id, char known[KNOWN + 1])
{
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    for (size_t i = 0; i < sizeof order; i++)
        for (size_t half = 0; half < 2; half++)
            known[2 * i + half] = "0123456789abcdef"[id->debug_id.uuid[order[i]] >> (half ? 0 : 4) & 15];
    known[KNOWN] = '\0';
    return id->has_debug_id && !id->debug_id.age && sl_debug_id_has_uuid(&id->debug_id);
}

/* Sets the directory to search, the prefix of names in it and the digits that follow the prefix. A layout may have several such
 * directories: `try` counts them. False if there are no more, or, with n->failed, when out of memory. */
static bool layout_names(const struct build_id_question *q, unsigned try, struct build_id_names *n,
                         struct sl_arena *arena)
{
    struct sl_str file = q->id->debug_file;
    *n = (struct build_id_names){.before = "", .digits = q->known};
    switch (q->source->layout) {
    case LAYOUT_NATIVE:
    case LAYOUT_UNIFIED:
    case LAYOUT_UPLOADS:
        n->directory = sl_arena_strndup(arena, q->known, 2);
        n->failed = n->directory ? 0 : ENOMEM;
        n->digits = q->known + 2;
        for (char *c = (char *)(uintptr_t)n->directory; c && *c && q->source->casing == CASING_UPPERCASE; c++)
            *c = (char)(*c >= 'a' ? *c - 32 : *c);
        return !try && n->directory;
    case LAYOUT_DEBUGINFOD: n->directory = "."; return !try;
    case LAYOUT_SYMSTORE:
    case LAYOUT_SSQP: /* first the program, then the debug file: they are stored under different names */
        if (!file.size || memchr(file.data, '/', file.size)) /* the program's name is unknown: only the debug file */
            try++;
        n->before = try ? "elf-buildid-sym-" : "elf-buildid-";
        n->directory = try ? "_.debug" : sl_arena_strndup(arena, file.data, file.size);
        n->failed = n->directory ? 0 : ENOMEM;
        return try < 2 && n->directory;
    case LAYOUT_SYMSTORE_INDEX2:
    case LAYOUT_SLASHSYMBOLS:
    case LAYOUT_MOZILLA: break;
    }
    return false;
}

/* Called by the cache: searches the directories of the layout for a build id that begins with the known digits. */
static enum sl_code list_names(const void *context, struct sl_buf *text, uint64_t *for_ns, struct sl_error *error)
{
    const struct build_id_question *q = context;
    struct sl_arena arena = {0};
    struct build_id_names n = {.failed = 0};
    enum sl_code code = SL_OK;
    const char *root = sl_arena_strndup(&arena, q->source->path.data, q->source->path.size);
    if (!root)
        code = sl_fail(error, SL_BUSY, "out of memory");
    for (unsigned try = 0; code == SL_OK && !text->size && layout_names(q, try, &n, &arena); try++) {
        n.root = root;
        n.any_case = q->source->casing == CASING_INSENSITIVE;
        code = pool_run(POOL_IO, scan_directory, &n, error);
        if (code == SL_OK && n.found[0]) /* the digits that are the directory's name, and those of the file's name */
            sl_buf_printf(text, "%.*s%s", (int)(n.digits - q->known), q->known, n.found);
        else if (code == SL_OK && n.failed)
            code = sl_fail_errno(error, n.failed, "cannot read a directory of the symbol source");
    }
    if (code == SL_OK && !text->size && n.failed) /* layout_names had no memory */
        code = sl_fail_errno(error, n.failed, "cannot make the path of a directory of the symbol source");
    sl_arena_free(&arena);
    *for_ns = 3600 * SECONDS_NS;
    return code != SL_OK || text->size ? code
                                       : sl_fail(error, SL_NOT_FOUND, "the directory has no file with this build id");
}

/* Finds nothing unless the source is a directory, as other sources cannot be listed, and its layout has build ids in its paths. */
enum sl_code origin_build_id(const struct source *source, const struct object_id *id, struct sl_arena *arena,
                             struct sl_str *build_id)
{
    struct build_id_question question = {.source = source, .id = id};
    struct sl_error error;
    if (source->type != SOURCE_FILESYSTEM || source->index || source->layout == LAYOUT_MOZILLA ||
        !known_digits(id, question.known))
        return SL_NOT_FOUND;
    struct sl_str key[] = {origin_root(source, arena), sl_str(layout_type_words[source->layout]),
                           sl_str(question.known), id->debug_file};
    return ttl_cache_get(&build_ids, key, 4, list_names, &question, arena, build_id, &error);
}
