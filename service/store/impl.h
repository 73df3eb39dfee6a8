/* What the files of the store share. Private to this folder. */
#pragma once

#include "store/store.h"

struct store_backend {
    /* Fills in the source's type and place; texts in the arena. */
    bool (*source)(struct sl_arena *arena, struct sl_str prefix, struct source *source);
    enum sl_code (*work)(struct store_work *work, struct sl_error *error); /* pool */
    enum sl_code (*look)(struct sl_str name, bool with_md5, struct store_meta *meta,
                         struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*put)(struct sl_str name, struct store_work *work, const struct store_meta *meta,
                        const char *media_type, struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*put_text)(const struct sl_str *names, size_t count, struct sl_str text,
                             struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*open)(struct sl_str name, struct sl_mapping *mapping, struct store_meta *meta,
                         struct sl_error *error) SL_SUSPENDS;
    const char *(*url)(struct sl_str name, struct sl_arena *arena)SL_SUSPENDS; /* signed; NULL: none */
    void (*sweep)(void); /* removes what has expired; pool. NULL: it goes by itself */
};

/* NULL: `error`. What it keeps lies in the arena. */
const struct store_backend *store_directory(const struct config_store *config, struct sl_arena *arena,
                                            struct sl_error *error);
const struct store_backend *store_bucket_backend(const struct config_store *config, struct sl_arena *arena,
                                                 struct sl_error *error);

/* What a gzip file by store_head says of itself; false when it is none. Pure. */
bool store_head_read(struct sl_bytes head, struct store_meta *meta);
