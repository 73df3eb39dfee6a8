/* Opening debug files and symcaches by name, with the companions that lie beside them. */
#include "cli/cli.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMPANION_DWP, COMPANION_DWZ };

enum sl_code input_open(const char *path, struct input *input, struct sl_error *error)
{
    *input = (struct input){0};
    enum sl_code code = sl_map_file(path, &input->mapping, error);
    if (code != SL_OK)
        return code;
    if (sl_symcache_open(input->mapping.bytes, &input->cache, NULL) == SL_OK) {
        input->has_cache = true;
        return SL_OK;
    }
    return sl_object_open(input->mapping.bytes, NULL, &input->object, error);
}

static struct sl_object *open_companion(struct input *input, int which, const char *path)
{
    struct sl_mapping *mapping = &input->companion_mappings[which];
    if (sl_map_file(path, mapping, NULL) != SL_OK)
        return NULL;
    if (sl_object_open(mapping->bytes, NULL, &input->companions[which], NULL) != SL_OK)
        sl_unmap(mapping);
    return input->companions[which];
}

/* `name` of .gnu_debugaltlink (a path, relative to the file that names it). */
static struct sl_object *open_dwz(struct input *input, const char *path)
{
    struct sl_bytes link;
    char full[4096];
    if (!sl_object_section(input->object, "gnu_debugaltlink", &link, NULL))
        return NULL;
    struct sl_str name = sl_cstr_at(link, 0);
    const char *slash = strrchr(path, '/');
    int directory = name.size && name.data[0] == '/' ? 0 : slash ? (int)(slash - path) + 1 : 0;
    if (!name.size ||
        snprintf(full, sizeof full, "%.*s" SL_STR_FMT, directory, path, SL_STR_ARG(name)) >= (int)sizeof full)
        return NULL;
    return open_companion(input, COMPANION_DWZ, full);
}

/* The .dwo files opened so far. */
struct dwo_files {
    pthread_mutex_t lock;
    struct {
        struct sl_mapping mapping;
        struct sl_object *object;
    } * items;
    size_t count;
};

static struct sl_object *open_dwo(void *arg, struct sl_str comp_dir, struct sl_str name, uint64_t dwo_id)
{
    (void)dwo_id;
    struct dwo_files *files = arg;
    char path[4096];
    struct sl_mapping mapping;
    struct sl_object *object;
    bool absolute = name.size && name.data[0] == '/';
    if (absolute)
        comp_dir = (struct sl_str){NULL, 0};
    int length = snprintf(path, sizeof path, SL_STR_FMT "%s" SL_STR_FMT, SL_STR_ARG(comp_dir), absolute ? "" : "/",
                          SL_STR_ARG(name));
    if (!name.size || length >= (int)sizeof path || sl_map_file(path, &mapping, NULL) != SL_OK)
        return NULL;
    if (sl_object_open(mapping.bytes, NULL, &object, NULL) != SL_OK) {
        sl_unmap(&mapping);
        return NULL;
    }
    pthread_mutex_lock(&files->lock);
    void *grown = realloc(files->items, (files->count + 1) * sizeof *files->items);
    if (grown) {
        files->items = grown;
        files->items[files->count].mapping = mapping;
        files->items[files->count++].object = object;
    }
    pthread_mutex_unlock(&files->lock);
    if (!grown) {
        sl_object_close(object);
        sl_unmap(&mapping);
        return NULL;
    }
    return object;
}

enum sl_code input_convert(const char *path, struct input *input, unsigned jobs, struct sl_error *error)
{
    char dwp[4096];
    if (input->has_cache)
        return SL_OK;
    const struct sl_object_info *info = sl_object_info(input->object);
    struct dwo_files files = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct sl_companions companions = {.open_dwo = open_dwo, .arg = &files};
    if (snprintf(dwp, sizeof dwp, "%s.dwp", path) < (int)sizeof dwp)
        companions.dwp = open_companion(input, COMPANION_DWP, dwp);
    companions.dwz = open_dwz(input, path);
    struct sl_symcache_options options = {
        .arch = info->arch,
        .debug_id = info->debug_id,
        .image_size = info->image_size,
        .is_windows = info->format == SL_FORMAT_PE || info->format == SL_FORMAT_PDB,
    };
    enum sl_code code =
        sl_symcache_convert(input->object, &companions, &options, threads_parallel(jobs), &input->converted, error);
    for (size_t i = 0; i < files.count; i++) {
        sl_object_close(files.items[i].object);
        sl_unmap(&files.items[i].mapping);
    }
    free(files.items);
    if (code == SL_OK)
        code = sl_symcache_open(sl_buf_bytes(&input->converted), &input->cache, error);
    input->has_cache = code == SL_OK;
    return code;
}

void input_close(struct input *input)
{
    for (size_t i = 0; i < 2; i++) {
        sl_object_close(input->companions[i]);
        sl_unmap(&input->companion_mappings[i]);
    }
    sl_object_close(input->object);
    sl_buf_free(&input->converted);
    sl_unmap(&input->mapping);
}
