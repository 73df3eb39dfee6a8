/* `symloom lookup`: symcaches of local files in the user's cache. The key consists of the paths and stat data of the input and its
 * companions, so that a hit reads none of them. Symcaches of files with .dwo units or a debug map are not cached: those other files are
 * not in the key.
 *
 *     scope: global
 *
 *     object: x86_64 67e9247c-...
 *     columns: 1
 *     relative: 0
 *     written: 0
 *     file: /usr/bin/app
 *     stamp: 801 1a2b3c 4096 1700000000.000000000 1700000000.000000000    device inode size mtime ctime
 *     debug: /usr/lib/debug/..., dwp: ..., supplementary: ...             each with its stamp, if it exists */
#include "cli/lookup/lookup.h"
#include "cli/server.h"
#include "cli/split_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define LARGE_FILE (UINT64_C(64) << 20) /* the symcaches of larger files are cached even without --cache */

bool lookup_stamp(const char *path, struct file_stamp *stamp)
{
    struct stat st;
    *stamp = (struct file_stamp){.size = 0};
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *stamp = (struct file_stamp){st.st_dev,          st.st_ino,         (uint64_t)st.st_size, st.st_mtim.tv_sec,
                                 st.st_mtim.tv_nsec, st.st_ctim.tv_sec, st.st_ctim.tv_nsec};
    return true;
}

/* Adds a file to the key, by its real path and its stat data. False if the path cannot be resolved. */
static bool put_stamp(struct sl_buf *key, const char *label, const char *path, const struct file_stamp *stamp)
{
    char *real = realpath(path, NULL);
    if (real)
        sl_buf_printf(key, "%s: %s\nstamp: %llx %llx %llu %lld.%09lld %lld.%09lld\n", label, real,
                      (unsigned long long)stamp->device, (unsigned long long)stamp->inode,
                      (unsigned long long)stamp->size, (long long)stamp->changed_s, (long long)stamp->changed_ns,
                      (long long)stamp->status_s, (long long)stamp->status_ns);
    free(real);
    return real != NULL;
}

/* Adds a companion file (such as the separate debug file) to the key; one that does not exist, or a NULL path, is left out. False if the
 * file exists but its path cannot be resolved. */
static bool put_companion(struct sl_buf *key, const char *label, const char *path)
{
    struct file_stamp stamp;
    return !path || !lookup_stamp(path, &stamp) || put_stamp(key, label, path, &stamp);
}

/* Writes the cache key: its scope (`global`: not of one project), the conversion's options and the files. False: the input changed since it
 * was opened, a path cannot be resolved, or memory ran out. */
static bool make_key(const struct lookup *l, const struct lookup_module *m, struct sl_buf *key)
{
    const struct sl_object_info *info = sl_object_info(m->input.object);
    struct file_stamp now;
    char id[SL_DEBUG_ID_TEXT], path[PATH_MAX];
    if (!lookup_stamp(m->input.path, &now) || memcmp(&now, &m->stamp, sizeof now) != 0)
        return false;
    sl_debug_id_format(&info->debug_id, id);
    sl_buf_printf(key, "scope: global\n\nobject: %s %s\ncolumns: %d\nrelative: %d\nwritten: %d\n",
                  sl_arch_name(info->arch), id, input_has_positions(&m->input), l->open.relative_names,
                  l->open.written_paths);
    bool good = put_stamp(key, "file", m->input.path, &m->stamp) && put_companion(key, "debug", m->input.debug.path);
    for (size_t i = 0; good && split_package_path(&m->input, i, path); i++)
        good = put_companion(key, "dwp", path);
    const char *supplementary = l->open.supplementary;
    if (!supplementary && input_supplementary_path(&m->input, path))
        supplementary = path;
    return good && put_companion(key, "supplementary", supplementary) && !key->failed;
}

/* True if the symcache is to be cached: the input and its separate debug file are files of this machine, and either --cache is given, or
 * the file is large, so that converting it takes long. With --symcache-out and no --cache it is converted each time. */
static bool should_store(const struct lookup *l, const struct lookup_module *m)
{
    bool is_local =
        m->input.object && !m->input.alone && m->stamp.size && (!m->input.debug.object || m->input.debug.path);
    bool makes = option_given(l->options, "symcache-out");
    return is_local && (l->keep_symcaches || (!makes && sl_object_file(input_debug(&m->input)).size > LARGE_FILE));
}

struct stored_table_making {
    struct lookup *lookup;
    struct lookup_module *module;
    bool was_converted;
};

/* Called by the cache on a miss: converts the input. SL_CANCELLED if it read .dwo files, which are not in the key: the symcache in `input`
 * is used, but not stored. */
static enum sl_code convert_for_cache(void *arg, struct sl_bytes *bytes, struct sl_error *error)
{
    struct stored_table_making *making = arg;
    struct input *input = &making->module->input;
    enum sl_code code = input_convert(input, making->lookup->jobs, error);
    making->was_converted = true;
    if (code == SL_OK && input->has_dwo)
        return sl_fail(error, SL_CANCELLED, "some of the debug information is in separate .dwo files");
    *bytes = input->cache.table.bytes;
    return code;
}

bool lookup_stored_table(struct lookup *l, struct lookup_module *m, bool make, enum sl_code *code)
{
    struct sl_buf key = {0};
    struct stored_table_making making = {l, m, false};
    const struct local_symcache own = {make ? convert_for_cache : NULL, &making}; /* NULL: no conversion on a miss */
    struct sl_bytes bytes;
    struct sl_error error = {0};
    bool wanted = should_store(l, m) && make_key(l, m, &key);
    *code = wanted && !l->locator ? locator_open(l->options, NULL, server_verbosity(l->options), &l->locator, &error)
                                  : SL_OK;
    if (wanted && *code == SL_OK && locator_config(l->locator)->cache_dir) /* NULL: caching is turned off */
        *code = locator_symcache(l->locator, sl_buf_view(&key), &own, &bytes, &error);
    else
        wanted = false;
    sl_buf_free(&key);
    if (!wanted)
        return false;
    if (making.was_converted) { /* it is usable even if storing it in the cache failed */
        if (!m->input.has_cache)
            m->error = error;
        *code = m->input.has_cache ? SL_OK : *code;
        return true;
    }
    m->input.has_cache = *code == SL_OK && sl_symcache_open(bytes, &m->input.cache, NULL) == SL_OK;
    return m->input.has_cache;
}
