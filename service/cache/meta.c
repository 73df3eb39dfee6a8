#include "cache/impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"

enum { META_MAX_BYTES = 1 << 20 }; /* keys hold URIs; nothing legitimate comes near */

bool cache_meta_name(const char *entry, char *out, size_t size)
{
    int length = snprintf(out, size, "%s.metadata", entry);
    return length > 0 && (size_t)length < size;
}

static bool read_all(int fd, char *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = pread(fd, to + at, size - at, (off_t)at);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool status_parse(const char *name, enum sl_code *code)
{
    for (int i = SL_OK; i <= SL_UNSUPPORTED; i++)
        if (strcmp(name, sl_code_name((enum sl_code)i)) == 0) {
            *code = (enum sl_code)i;
            return true;
        }
    return false;
}

static bool from_json(struct json_object *object, struct cache_meta *meta)
{
    struct json_object *scope, *created, *fraction, *status, *size, *incomplete;
    if (!json_object_is_type(object, json_type_object) || !json_object_object_get_ex(object, "scope", &scope) ||
        !json_object_object_get_ex(object, "time_created", &created))
        return false;
    if ((scope && !json_object_is_type(scope, json_type_string)) || !json_object_is_type(created, json_type_int))
        return false;
    meta->is_public = scope == NULL;
    meta->created_s = json_object_get_int64(created);
    if (json_object_object_get_ex(object, "nanoseconds", &fraction) && json_object_is_type(fraction, json_type_int)) {
        int64_t ns = json_object_get_int64(fraction);
        if (ns >= 0 && ns < CACHE_SECOND_NS && meta->created_s >= 0 && meta->created_s < INT64_MAX / CACHE_SECOND_NS)
            meta->created_ns = meta->created_s * CACHE_SECOND_NS + ns;
    }
    if (json_object_object_get_ex(object, "status", &status) && json_object_is_type(status, json_type_string))
        meta->has_status = status_parse(json_object_get_string(status), &meta->status);
    if (json_object_object_get_ex(object, "size", &size) && json_object_is_type(size, json_type_int)) {
        meta->has_size = true;
        meta->size = json_object_get_uint64(size);
    }
    meta->incomplete = json_object_object_get_ex(object, "incomplete", &incomplete) &&
                       json_object_is_type(incomplete, json_type_boolean) && json_object_get_boolean(incomplete);
    return true;
}

static enum cache_meta_result read_fd(int fd, struct cache_meta *meta)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > META_MAX_BYTES)
        return CACHE_META_BAD;
    meta->mtime_ns = (int64_t)st.st_mtim.tv_sec * CACHE_SECOND_NS + st.st_mtim.tv_nsec;
    char small[1024], *text = (size_t)st.st_size <= sizeof small ? small : malloc((size_t)st.st_size);
    struct json_object *object = NULL;
    bool ok = text && read_all(fd, text, (size_t)st.st_size) &&
              json_parse((struct sl_str){text, (size_t)st.st_size}, &object, NULL) == SL_OK && from_json(object, meta);
    json_object_put(object);
    if (text != small)
        free(text);
    return ok ? CACHE_META_READ : CACHE_META_BAD;
}

enum cache_meta_result cache_meta_read(int at, const char *name, struct cache_meta *meta)
{
    *meta = (struct cache_meta){0};
    char side[CACHE_PATH_BYTES];
    if (!cache_meta_name(name, side, sizeof side))
        return CACHE_META_MISSING;
    int fd = openat(at, side, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return CACHE_META_MISSING;
    enum cache_meta_result result = read_fd(fd, meta);
    close(fd);
    return result;
}

void cache_meta_encode(struct sl_str key, struct sl_str scope, int64_t created_ns, enum sl_code status, uint64_t size,
                       bool incomplete, struct sl_buf *out)
{
    struct json_writer w = json_writer(out);
    json_object_begin(&w);
    json_key(&w, "scope");
    if (cache_scope_global(scope))
        json_null(&w);
    else
        json_str(&w, scope);
    json_key(&w, "time_created");
    json_i64(&w, created_ns / CACHE_SECOND_NS);
    json_key(&w, "debug");
    json_null(&w);
    json_key(&w, "status");
    json_str(&w, sl_str(sl_code_name(status)));
    json_key(&w, "size");
    json_u64(&w, size);
    json_key(&w, "key");
    json_str(&w, key);
    json_key(&w, "nanoseconds");
    json_i64(&w, created_ns % CACHE_SECOND_NS);
    if (incomplete) {
        json_key(&w, "incomplete");
        json_boolean(&w, true);
    }
    json_object_end(&w);
}

bool cache_meta_write(const char *path, struct sl_bytes json)
{
    char side[CACHE_PATH_BYTES];
    struct cache_tmp tmp;
    if (!cache_meta_name(path, side, sizeof side) || cache_tmp_create(&tmp, false, NULL) != SL_OK)
        return false;
    bool ok = tmp.path[0] && write(tmp.fd, json.data, json.size) == (ssize_t)json.size && rename(tmp.path, side) == 0;
    if (ok)
        tmp.path[0] = '\0';
    cache_tmp_discard(&tmp);
    return ok;
}
