/* Sources that a test plays itself: they take the place of service/origin, and answer from a table. Included by one program. */
#pragma once

#include "../cache/support.h"
#include "../fixture.h"

#include "catalog/catalog.h"
#include "core/loop.h"
#include "search/impl.h"

struct stored { /* a file of the played sources */
    const char *source, *uri;
    enum file_type type;
    enum sl_code code; /* what fetching gives; SL_OK: the file `path`, or `text` */
    const char *text, *path;
    uint64_t duration_ns;
    unsigned fetched;
};

static struct stored *shelf;
static size_t shelf_count;
static uint32_t types_asked[32];
static size_t types_asked_count;
static struct fiber_wait_list *gate;
static char fetched_token[32]; /* of the source, as the last fetch saw it */

static void fill(struct stored *files, size_t count)
{
    shelf = files;
    shelf_count = count;
    for (size_t i = 0; i < count; i++)
        files[i].fetched = 0;
}

enum sl_code origin_list(const struct source *source, const struct object_id *id, const enum file_type *types,
                         size_t type_count, struct sl_arena *arena, struct remote_file **files, size_t *count,
                         struct sl_error *error)
{
    (void)id;
    *count = 0;
    types_asked_count = type_count;
    for (size_t i = 0; i < type_count; i++)
        types_asked[i] = types[i];
    if (sl_str_equal(source->id, SL_STR("unlistable")))
        return sl_fail(error, SL_UNSUPPORTED, "no such source");
    if (sl_str_equal(source->id, SL_STR("busy")))
        return sl_fail(error, SL_BUSY, "out of memory");
    *files = SL_ARENA_ARRAY(arena, struct remote_file, shelf_count + 1);
    for (size_t t = 0; t < type_count; t++)
        for (size_t i = 0; i < shelf_count; i++)
            if (shelf[i].type == types[t] && sl_str_equal(sl_str(shelf[i].source), source->id))
                (*files)[(*count)++] =
                    (struct remote_file){.source = source,
                                         .type = types[t],
                                         .path = sl_str(shelf[i].uri),
                                         .location = sl_str(shelf[i].uri),
                                         .uri = sl_str(shelf[i].uri),
                                         .checksum = source->requires_checksum ? SL_STR("SHA256:00") : SL_STR(""),
                                         .pointer = sl_str_ends(sl_str(shelf[i].uri), SL_STR("/file.ptr"))};
    return SL_OK;
}

struct sl_str origin_scope(const struct remote_file *file, struct sl_str scope)
{
    return file->source->is_public ? SL_STR("global") : scope;
}

static void copy_file(const char *path, int fd)
{
    char buffer[4096];
    int from = open(path, O_RDONLY);
    assert_true(from >= 0);
    for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;)
        assert_int_equal(write(fd, buffer, (size_t)n), n);
    close(from);
}

enum sl_code origin_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    return origin_fetch_noting(file, fd, NULL, error);
}

enum sl_code origin_fetch_noting(const struct remote_file *file, int fd, char *note, struct sl_error *error)
{
    struct stored *stored = NULL;
    for (size_t i = 0; i < shelf_count; i++)
        if (sl_str_equal(sl_str(shelf[i].uri), file->uri))
            stored = &shelf[i];
    assert_non_null(stored);
    stored->fetched++;
    if (gate && fiber_wait_on(gate, UINT64_MAX) == FIBER_CANCELLED)
        return sl_fail(error, SL_CANCELLED, "cancelled");
    struct sl_str token = secret_open(file->source->token);
    snprintf(fetched_token, sizeof fetched_token, SL_STR_FMT, SL_STR_ARG(token));
    if (stored->path)
        copy_file(stored->path, fd);
    else if (stored->code == SL_OK)
        assert_int_equal(write(fd, stored->text, strlen(stored->text)), strlen(stored->text));
    else
        sl_fail(error, stored->code, "%s", stored->text ? stored->text : "");
    if (error && stored->code == SL_TIMEOUT)
        error->duration_ns = stored->duration_ns;
    return stored->code;
}
