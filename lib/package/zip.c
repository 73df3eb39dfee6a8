/* Members of ZIP files, read by source/zip.h. */
#include "package/impl.h"
#include "source/zip.h"

struct zip_walking {
    const struct sl_package_visitor *visitor;
    const struct sl_package_limits *limits;
    uint64_t passed, size;         /* bytes of the current member: passed to the visitor so far; in all */
    uint64_t max_ratio;            /* sl_package_limits.max_ratio */
    enum sl_package_choice choice; /* what the visitor said last */
    struct sl_error failure;       /* a limit is exceeded; code SL_OK = none */
};

/* The sink of sl_zip_stream(): passes the next bytes to the visitor; `used` is the number of compressed bytes so far. False if the visitor
 * wants no more (w->choice) or a limit is exceeded (w->failure). Up to 256 MiB max_ratio is not checked: small files of zeros exceed it. */
static bool pass_piece(void *arg, struct sl_bytes piece, uint64_t used)
{
    enum { STEP_BYTES = 64 }; /* decompressed bytes that cost one step of the work budget */
    static const uint64_t free_bytes = UINT64_C(256) << 20;
    struct zip_walking *w = arg;
    w->passed += piece.size;
    if (w->passed > w->size)
        sl_fail(&w->failure, SL_MALFORMED, "a file of the package is larger than the ZIP directory says");
    else if (w->passed > free_bytes && w->passed / w->max_ratio > used)
        sl_fail(&w->failure, SL_MALFORMED, "the package grows more than %llu times when decompressed",
                (unsigned long long)w->max_ratio);
    else if (w->limits->budget) {
        sl_budget_grow(w->limits->budget, piece.size);
        if (!sl_budget_spend(w->limits->budget, piece.size / STEP_BYTES + 1))
            sl_budget_fail(w->limits->budget, &w->failure);
    }
    if (w->failure.code != SL_OK)
        return false;
    w->choice = w->visitor->piece(w->visitor->arg, piece);
    return w->choice == SL_PACKAGE_READ;
}

/* Passes an entry to the visitor; `path` is a buffer for its cleaned path. Left out (SL_OK) are folders, links, entries that are encrypted
 * or have an unknown compression, and those with an unusable path. An error if the entry is damaged or exceeds a limit. */
static enum sl_code visit_entry(struct zip_walking *w, const struct sl_zip *zip, const struct sl_zip_entry *entry,
                                struct member_path *path, struct sl_error *error)
{
    const struct sl_zip_sink sink = {pass_piece, w};
    bool is_file = !entry->is_link && entry->name.size && entry->name.data[entry->name.size - 1] != '/';
    /* encrypted entries have the method SL_ZIP_ENCRYPTED */
    if (!is_file || (entry->method != SL_ZIP_STORED && entry->method != SL_ZIP_DEFLATED) ||
        !member_path_set(path, entry->name))
        return SL_OK;
    struct sl_package_member member = {
        .path = {path->text, path->size}, .size = entry->size, .offset = entry->offset, .mode = 0644 /* not read */};
    w->choice = w->visitor->begin(w->visitor->arg, &member);
    if (w->choice != SL_PACKAGE_READ)
        return SL_OK;
    w->passed = 0;
    w->size = entry->size;
    enum sl_code code = sl_zip_stream(zip, entry, &sink, error);
    if (w->failure.code != SL_OK)
        return sl_fail(error, w->failure.code, "%s", w->failure.message);
    if (code == SL_CANCELLED && w->choice != SL_PACKAGE_READ) /* the visitor wanted no more */
        return SL_OK;
    if (code == SL_OK)
        w->choice = w->visitor->end(w->visitor->arg);
    return code;
}

enum sl_code zip_walk(struct sl_bytes file, uint64_t offset, const struct sl_package_visitor *visitor,
                      const struct sl_package_limits *limits, struct sl_error *error)
{
    enum { HEADER_STEPS = 64 };
    struct sl_arena arena = {.budget = limits->budget};
    struct zip_walking w = {
        .visitor = visitor, .limits = limits, .max_ratio = limits->max_ratio ? limits->max_ratio : 1000};
    struct member_path path;
    struct sl_zip zip;
    /* the entry at the offset was reached: it and all after it are visited; none if there is no such entry */
    bool found = offset == 0;
    enum sl_code code = sl_zip_open(file, 0, &arena, &zip, error); /* 0: the archive begins with the file */
    for (size_t i = 0; code == SL_OK && i < zip.count && w.choice != SL_PACKAGE_STOP; i++) {
        found = found || zip.entries[i].offset == offset;
        if (limits->budget && !sl_budget_spend(limits->budget, HEADER_STEPS))
            code = sl_budget_fail(limits->budget, error);
        else if (found)
            code = visit_entry(&w, &zip, &zip.entries[i], &path, error);
    }
    sl_arena_free(&arena);
    return code;
}
