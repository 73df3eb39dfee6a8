/* Small things that several kinds of sources need. */
#include "origin/impl.h"

struct sl_str buf_in_arena(struct sl_arena *arena, struct sl_buf *buf)
{
    struct sl_str out = {NULL, 0};
    const char *copy = buf->failed ? NULL : sl_arena_strndup(arena, buf->size ? (char *)buf->data : "", buf->size);
    if (copy)
        out = (struct sl_str){copy, buf->size};
    if (buf->data)
        explicit_bzero(buf->data, buf->capacity);
    sl_buf_free(buf);
    *buf = (struct sl_buf){0};
    return out;
}

const char *source_label(struct sl_arena *arena, const struct source *source)
{
    return sl_arena_strndup(arena, source->id.size ? source->id.data : "", source->id.size);
}

struct sl_str json_member(struct json_object *object, const char *name)
{
    struct json_object *value;
    if (!json_object_is_type(object, json_type_object) || !json_object_object_get_ex(object, name, &value) ||
        !json_object_is_type(value, json_type_string))
        return SL_STR("");
    return (struct sl_str){json_object_get_string(value), (size_t)json_object_get_string_len(value)};
}

struct origin_options origin_options;

void origin_init(const struct origin_options *options)
{
    origin_options = *options;
    aws_keys_init(options->s3_client_capacity);
    gcs_init(options->gcs_token_capacity);
    sentry_init(options->sentry_index_capacity, options->sentry_index_ttl_ns);
    index_init();
}
