#include "kinds/impl.h"

bool object_request_key(const struct object_request *request, struct sl_arena *arena, struct cache_key *key)
{
    const struct remote_file *file = request->file;
    struct sl_str scope = request->scope.size ? request->scope : SL_STR("global");
    bool checksum = file->source->requires_checksum && file->checksum.size;
    const struct sl_str parts[] = {
        SL_STR("scope: "),
        scope,
        SL_STR("\n\nsource: "),
        file->source->id,
        SL_STR("\nlocation: "),
        file->uri,
        SL_STR("\n"),
        checksum ? SL_STR("checksum: ") : SL_STR(""),
        checksum ? file->checksum : SL_STR(""),
        checksum ? SL_STR("\n") : SL_STR(""),
    };
    size_t size = 0, at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        size += parts[i].size;
    char *text = sl_arena_alloc(arena, size, 1);
    if (!text)
        return false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].size)
            memcpy(text + at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    *key = (struct cache_key){.text = {text, size}, .scope = request->scope};
    return true;
}

/* ---- copies ---- */

struct copier {
    struct sl_arena *arena;
    bool failed;
};

static void copy_str(struct copier *c, struct sl_str *s)
{
    if (!s->data)
        return;
    s->data = sl_arena_strndup(c->arena, s->data, s->size);
    c->failed |= !s->data;
}

static void copy_secret(struct copier *c, struct sl_secret *secret)
{
    copy_str(c, &secret->hidden);
}

static void *copy_array(struct copier *c, const void *items, size_t count, size_t size)
{
    if (!count)
        return NULL;
    void *copy = sl_arena_zalloc(c->arena, count, size);
    if (copy)
        memcpy(copy, items, count * size);
    else
        c->failed = true;
    return copy;
}

static const struct source *copy_source(struct copier *c, const struct source *from)
{
    struct source *to = copy_array(c, from, 1, sizeof *from);
    if (!to)
        return NULL;
    struct sl_str *texts[] = {&to->id,     &to->path,   &to->url,      &to->bucket,
                              &to->prefix, &to->region, &to->endpoint, &to->client_email};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        copy_str(c, texts[i]);
    struct sl_secret *secrets[] = {&to->token,         &to->cookies,     &to->access_key,  &to->secret_key,
                                   &to->session_token, &to->private_key, &to->bearer_token};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        copy_secret(c, secrets[i]);
    to->path_patterns = copy_array(c, from->path_patterns, from->path_pattern_count, sizeof *from->path_patterns);
    for (size_t i = 0; to->path_patterns && i < to->path_pattern_count; i++)
        copy_str(c, &to->path_patterns[i]);
    to->headers = copy_array(c, from->headers, from->header_count, sizeof *from->headers);
    for (size_t i = 0; to->headers && i < to->header_count; i++) {
        copy_str(c, &to->headers[i].name);
        copy_secret(c, &to->headers[i].value);
    }
    return to;
}

const struct source *kinds_copy_source(const struct source *source, struct sl_arena *arena)
{
    struct copier c = {.arena = arena};
    const struct source *copy = copy_source(&c, source);
    return c.failed ? NULL : copy;
}

static const struct remote_file *copy_file(struct copier *c, const struct remote_file *from)
{
    struct remote_file *to = copy_array(c, from, 1, sizeof *from);
    if (!to)
        return NULL;
    to->source = copy_source(c, from->source);
    copy_str(c, &to->path);
    copy_str(c, &to->location);
    copy_str(c, &to->uri);
    copy_str(c, &to->checksum);
    return to;
}

static const struct object_id *copy_id(struct copier *c, const struct object_id *from)
{
    struct object_id *to = copy_array(c, from, 1, sizeof *from);
    if (!to)
        return NULL;
    copy_str(c, &to->code_id);
    copy_str(c, &to->code_file);
    copy_str(c, &to->debug_file);
    copy_str(c, &to->debug_checksum);
    return to;
}

void *object_request_retain(const void *context, struct sl_arena *arena)
{
    const struct object_request *from = context;
    struct copier c = {.arena = arena};
    struct object_request *to = copy_array(&c, from, 1, sizeof *from);
    if (!to)
        return NULL;
    to->file = copy_file(&c, from->file);
    to->id = copy_id(&c, from->id);
    copy_str(&c, &to->scope);
    return c.failed ? NULL : to;
}
