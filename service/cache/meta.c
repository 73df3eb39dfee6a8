/* The side file of a cache entry, `<entry>.metadata`: a JSON object with its scope, key, status, size and time of creation. */
#include "cache/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_write.h"
#include "core/files.h"

enum { META_MAX_BYTES = 1 << 20 }; /* a side file contains the key, with URIs, but valid files are far smaller */

bool cache_meta_name(const char *entry, char *out, size_t size)
{
    int length = snprintf(out, size, "%s.metadata", entry);
    return length > 0 && (size_t)length < size;
}

bool cache_is_side_file(const char *name)
{
    return sl_str_ends(sl_str(name), SL_STR(".metadata"));
}

/* Reads the first `size` bytes of the file; false if it has become shorter, or is unreadable. */
static bool meta_read_all(int fd, char *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = pread(fd, to + at, size - at, (off_t)at);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

/* Parses the name of a status (sl_code_name). False for an unknown one, which a newer version may have written; it counts as absent. */
static bool status_parse(struct sl_str name, enum sl_code *code)
{
    for (int i = SL_OK; i <= SL_UNSUPPORTED; i++)
        if (sl_str_equal(name, sl_str(sl_code_name((enum sl_code)i)))) {
            *code = (enum sl_code)i;
            return true;
        }
    return false;
}

struct meta_members_seen { /* whether a side file has the members for its scope and its time of creation */
    bool has_scope, has_created;
    int64_t fraction_ns; /* -1 = absent */
};

/* Reads the member `key` of a side file's object into `meta`. Skips an unknown one, which a newer version may have added. */
static void read_member(struct sl_json *j, struct sl_str key, struct cache_meta *meta,
                        struct meta_members_seen *members)
{
    struct sl_str text;
    if (sl_str_equal(key, SL_STR("scope"))) {
        meta->is_public = sl_json_peek(j) == SL_JSON_NULL; /* null: the global scope */
        members->has_scope = sl_json_text(j, &text) || meta->is_public;
    } else if (sl_str_equal(key, SL_STR("time_created"))) {
        members->has_created = sl_json_i64(j, &meta->created_s);
    } else if (sl_str_equal(key, SL_STR("nanoseconds"))) {
        if (!sl_json_i64(j, &members->fraction_ns))
            members->fraction_ns = -1;
    } else if (sl_str_equal(key, SL_STR("status"))) {
        meta->has_status = sl_json_text(j, &text) && status_parse(text, &meta->status);
    } else if (sl_str_equal(key, SL_STR("size"))) {
        meta->has_size = sl_json_u64(j, &meta->size);
    } else if (sl_str_equal(key, SL_STR("incomplete"))) {
        if (!sl_json_bool(j, &meta->incomplete))
            meta->incomplete = false;
    } else if (sl_str_equal(key, SL_STR("note"))) {
        if (sl_json_text(j, &text) && text.size < sizeof meta->note && !memchr(text.data, 0, text.size))
            snprintf(meta->note, sizeof meta->note, SL_STR_FMT, SL_STR_ARG(text));
    } else {
        sl_json_skip(j);
    }
}

/* Reads the JSON object of a side file. False if it is malformed or lacks "scope" or "time_created", or when out of memory (`*busy` is
 * true). meta->created_ns, the time with its fraction of a second, is set only if the file has valid "nanoseconds". */
static bool from_json(struct sl_str text, struct cache_meta *meta, bool *busy)
{
    struct sl_arena arena = {0};
    struct sl_json j = sl_json(text, &arena, false); /* false: strict JSON */
    struct meta_members_seen members = {.fraction_ns = -1};
    struct sl_str key;
    if (sl_json_object(&j))
        while (sl_json_next(&j, &key))
            read_member(&j, key, meta, &members);
    bool good = sl_json_end(&j) && members.has_scope && members.has_created;
    *busy = j.busy;
    sl_arena_free(&arena);
    int64_t ns = members.fraction_ns;
    if (ns >= 0 && ns < CACHE_SECOND_NS && meta->created_s >= 0 && meta->created_s < INT64_MAX / CACHE_SECOND_NS)
        meta->created_ns = meta->created_s * CACHE_SECOND_NS + ns;
    return good;
}

/* Reads an open side file; a small one, as most are, without an allocation. CACHE_META_BUSY, with errno, when out of memory: that says
 * nothing about the file. */
static enum cache_meta_result read_fd(int fd, struct cache_meta *meta)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > META_MAX_BYTES)
        return CACHE_META_BAD;
    meta->mtime_ns = files_mtime_ns(&st);
    char small[1024], *text = (size_t)st.st_size <= sizeof small ? small : malloc((size_t)st.st_size);
    bool busy = !text;
    bool ok = text && meta_read_all(fd, text, (size_t)st.st_size) &&
              from_json((struct sl_str){text, (size_t)st.st_size}, meta, &busy);
    if (text != small)
        free(text);
    if (busy)
        errno = ENOMEM;
    return ok ? CACHE_META_READ : busy ? CACHE_META_BUSY : CACHE_META_BAD;
}

enum cache_meta_result cache_meta_read(int at, const char *name, struct cache_meta *meta)
{
    *meta = (struct cache_meta){0};
    char side[CACHE_PATH_BYTES];
    if (!cache_meta_name(name, side, sizeof side))
        return CACHE_META_MISSING;
    int fd = openat(at, side, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) /* sl_fail_errno gives SL_BUSY if this process lacks descriptors or memory */
        return sl_fail_errno(NULL, errno, "") == SL_BUSY ? CACHE_META_BUSY : CACHE_META_MISSING;
    enum cache_meta_result result = read_fd(fd, meta);
    int number = errno; /* of CACHE_META_BUSY, for the caller */
    close(fd);
    errno = number;
    return result;
}

/* Appends the JSON of a side file. "debug" is always null: other programs that read these files expect the member. "incomplete" is written
 * only if it is true, "note" only if there is one. */
void cache_meta_encode(struct sl_str key, struct sl_str scope, int64_t created_ns, enum sl_code status, uint64_t size,
                       bool incomplete, const char *note, struct sl_buf *out)
{
    struct sl_json_writer w = sl_json_writer(out);
    sl_json_begin_object(&w);
    sl_json_put_key(&w, "scope");
    if (cache_scope_global(scope))
        sl_json_put_null(&w);
    else
        sl_json_put_str(&w, scope);
    sl_json_member_i64(&w, "time_created", created_ns / CACHE_SECOND_NS);
    sl_json_member_null(&w, "debug");
    sl_json_member_str(&w, "status", sl_str(sl_code_name(status)));
    sl_json_member_u64(&w, "size", size);
    sl_json_member_str(&w, "key", key);
    sl_json_member_i64(&w, "nanoseconds", created_ns % CACHE_SECOND_NS);
    if (incomplete)
        sl_json_member_boolean(&w, "incomplete", true);
    if (note[0])
        sl_json_member_str(&w, "note", sl_str(note));
    sl_json_end_object(&w);
}

/* Does not sync the file: if a crash of the machine loses or damages it, the entry is computed again at worst. */
bool cache_meta_write(const char *path, struct sl_bytes json)
{
    char side[CACHE_PATH_BYTES];
    struct cache_tmp tmp;
    if (!cache_meta_name(path, side, sizeof side) || cache_tmp_create(&tmp, false, NULL) != SL_OK)
        return false;
    /* no path: the file is outside the cache directory and cannot be moved there. -1, FILES_UNSYNCED: nothing is synced */
    bool ok = tmp.path[0] && sl_write_all(tmp.fd, json) && files_publish(-1, tmp.path, side, FILES_UNSYNCED);
    if (ok)
        tmp.path[0] = '\0'; /* so that cache_tmp_discard does not unlink it */
    cache_tmp_discard(&tmp);
    return ok;
}
