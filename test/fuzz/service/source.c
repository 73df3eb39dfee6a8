/* The schema of sources, with the strictest rules and with none; globs and file lists of what it accepts. */
#include <stdlib.h>

#include "origin/origin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void list(struct sl_arena *arena, const struct source *source)
{
    static const enum file_type types[] = {FILE_PE, FILE_PDB, FILE_ELF_DEBUG, FILE_SOURCEBUNDLE};
    struct remote_file *files;
    size_t count;
    struct object_id id = {.type = OBJECT_PE,
                           .code_id = SL_STR("5ab380779000"),
                           .code_file = SL_STR("C:\\Windows\\crash.exe"),
                           .debug_file = source->id};
    id.has_debug_id = sl_debug_id_parse(SL_STR("3249d99d-0c40-4931-8610-f4e4fb0b6936-1"), &id.debug_id);
    if (source->type == SOURCE_SENTRY || /* asks the network */
        origin_list(source, &id, types, 4, arena, &files, &count, NULL) != SL_OK)
        return;
    for (size_t i = 0; i < count; i++)
        if (!files[i].uri.data || !files[i].location.data)
            abort();
}

static void read_sources(struct sl_str json, const struct source_policy *policy, bool strict)
{
    struct sl_arena arena = {0};
    struct sl_json j = sl_json(json, &arena, false);
    struct value_problems problems = {.arena = &arena};
    struct source *sources;
    size_t count;
    enum sl_code code = source_read_list(&j, "sources", policy, &sources, &count, &problems);
    if ((code == SL_OK) != (problems.errors == 0 && !j.failed))
        abort();
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        if (strict && (sources[i].type == SOURCE_FILESYSTEM || sources[i].bucket.credentials != CREDENTIALS_STATIC))
            abort();
        list(&arena, &sources[i]);
    }
    sl_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct source_policy open = {.filesystem = true, .ambient_credentials = true, .internal_sentry = true};
    static const struct sl_str host = {"*.sentry.io", 11};
    static const struct source_policy strict = {.sentry_hosts = &host, .sentry_host_count = 1};
    struct sl_str json = {(const char *)data, size};
    read_sources(json, &open, false);
    read_sources(json, &strict, true);
    return 0;
}
