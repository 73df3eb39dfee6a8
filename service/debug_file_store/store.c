/* Opens the store of uploaded debug files, and makes it a source of symbols ("uploads"). */
#include "debug_file_store/impl.h"

#include <stdio.h>
#include <unistd.h>

#include "conversion/conversion.h"
#include "core/files.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"
#include "symbfile_store/symbfile_store.h"

static struct {
    struct store_area area;
    struct sl_arena arena;
    struct source source;
    char directory[512]; /* directory of uploads, if there is no bucket */
} store;

bool debug_files_are_open(void)
{
    return store.area.type != NULL;
}

const struct store_area *debug_files_area(void)
{
    return &store.area;
}

const struct source *debug_files_source(void)
{
    return store.area.type ? &store.source : NULL;
}

struct sl_str object_name(struct sl_arena *arena, struct sl_str path)
{
    struct sl_buf name = {0};
    sl_buf_cstr(&name, "objects/");
    sl_buf_str(&name, path);
    return sl_buf_move_to_arena(&name, arena);
}

/* True if the configuration has a key that may upload, or if the directory of uploads has a directory objects/, so was used as a store
 * before. Without either a store would be of no use. */
static bool is_wanted(const struct config *config)
{
    char objects[520];
    for (size_t i = 0; i < config->auth.key_count; i++)
        for (size_t j = 0; j < config->auth.keys[i].right_count; j++)
            if (sl_str_equal(config->auth.keys[i].rights[j], SL_STR("symbols:write")))
                return true;
    snprintf(objects, sizeof objects, "%s/objects", store.directory);
    return access(objects, F_OK) == 0;
}

/* Makes the source "uploads", which reads the files below objects/ of the store. False when out of memory. */
static bool make_source(void)
{
    store.source = (struct source){
        .id = SL_STR("uploads"), .layout = LAYOUT_UPLOADS, .configured = true, .internal = true, .hides_misses = true};
    return store_area_source(&store.area, &store.arena, SL_STR("objects"), &store.source);
}

/* Makes the directory the store's, and creates its subdirectory objects/. Creates nothing if the directory is shared (symbfile.shared_dir)
 * and does not exist: then it is probably not mounted yet. */
static void use_directory(const struct config *config)
{
    char objects[520];
    store_area_use_directory(&store.area, store.directory);
    snprintf(objects, sizeof objects, "%s/objects", store.directory);
    if (!config->symbfile.shared_dir || access(store.directory, F_OK) == 0)
        files_make_directory(objects, 0750, FILES_DURABLE); /* if that fails, health checks of the source tell why */
}

/* Opens the store: the bucket if one is configured, else the directory of uploads if it is wanted. On failure logs why; there is no store
 * then. */
static void open_store(const struct config *config)
{
    struct sl_error error;
    enum sl_code code = SL_OK;
    if (bucket_is_configured(&config->uploads_store.bucket))
        code = store_area_open_bucket(&store.area, &config->uploads_store.bucket, &store.arena, &error);
    else if (symbfile_store_dir(store.directory) && is_wanted(config))
        use_directory(config);
    else
        return;
    if (code == SL_OK && !make_source())
        code = sl_fail(&error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        return;
    log_error("uploads", "cannot open the store of uploaded debug files; uploads to it are refused", LOG_ERR(&error));
    store.area.type = NULL;
}

const struct source *debug_files_append(const struct source *sources, size_t *count, struct sl_arena *arena)
{
    if (!store.area.type)
        return sources;
    for (size_t i = 0; i < *count; i++)
        if (sources[i].layout == LAYOUT_UPLOADS)
            return sources;
    struct source *all = SL_ARENA_ARRAY(arena, struct source, *count + 1);
    for (size_t i = 0; all && i < *count; i++)
        all[i] = sources[i];
    if (all)
        all[(*count)++] = store.source;
    return all;
}

void debug_files_apply(struct config *config)
{
    if (!store.area.type)
        open_store(config);
    /* if the Mozilla API uses this list of sources, which is replaced below, it must use the new one */
    bool is_fallback = config->mozilla.fallbacks == config->sources;
    size_t count = config->source_count;
    /* the cast: what debug_files_append returns is this list or a copy of it, neither of which is const */
    struct source *all = (struct source *)(uintptr_t)debug_files_append(config->sources, &count, &config->arena);
    if (!all || all == config->sources)
        return;
    config->sources = all;
    config->source_count = count;
    if (is_fallback) {
        config->mozilla.fallbacks = all;
        config->mozilla.fallbacks_count = count;
    }
}

void debug_files_close(void)
{
    sl_arena_free(&store.arena);
    store.area = (struct store_area){NULL};
    names_close();
}

enum sl_code check_file(int fd, struct sl_bytes bytes, struct upload_check_result *found, struct sl_error *error)
{
    struct reader_limits limits = current_reader_limits();
    struct conversion_description about = {.size = fd >= 0 ? get_file_size(fd) : bytes.size};
    struct converter_call call = {.options = CONVERTER_OPTIONS(limits), .out = -1};
    if (fd >= 0)
        converter_add_file(&call, INPUT_FILE, fd);
    else
        converter_add_bytes(&call, INPUT_FILE, bytes);
    enum sl_code code = conversion_run(&about, &converter_upload_check, &call, found, error);
    if (code == SL_UNSUPPORTED) /* over a limit of conversions; from this store SL_UNSUPPORTED would mean a full disk */
        code = error->code = SL_MALFORMED;
    return code;
}

/* ---- cleaning ---- */

/* On the pool: removes temporary files that are left over, and chunks of uploads that were not completed within a day. */
static void sweep(void *unused)
{
    enum { CHUNK_LIFE_S = 24 * 3600 };
    (void)unused;
    store_area_sweep_tmp(&store.area);
    store_area_sweep(&store.area, "chunks", CHUNK_LIFE_S, 2);
}

void debug_files_sweep_repeatedly(void *unused)
{
    enum { PAUSE_MS = 15 * 60 * 1000, FIRST_PAUSE_MS = 60 * 1000, DAY_MS = 24 * 60 * 60 * 1000 };
    uint64_t due_ms = 0; /* when names_complete is to run next; 0: it has not succeeded yet */
    bool is_empty;
    (void)unused;
    do {
        if (!store.area.type)
            continue; /* to fiber_sleep below */
        pool_run(POOL_IO | POOL_HEAVY, sweep, NULL, NULL);
        if (loop_now_ms() >= due_ms && names_complete(&is_empty))
            due_ms = loop_now_ms() + (is_empty ? 1 : DAY_MS); /* 1: next time, as other nodes may fill the store */
        /* the short pause: the store may be unreachable or not yet configured */
    } while (fiber_sleep(due_ms ? PAUSE_MS : FIRST_PAUSE_MS));
}
