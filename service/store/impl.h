/* Shared by the files of the store. Private to this folder. */
#pragma once

#include "store/store.h"

struct store_backend {
    /* Sets the source's type and location; texts lie in the arena. */
    bool (*source)(struct sl_arena *arena, struct sl_str prefix, struct source *source);
    enum sl_code (*work)(struct store_tmp_file *work, struct sl_error *error); /* pool work */
    enum sl_code (*stat)(struct sl_str name, bool with_md5, struct store_meta *meta,
                         struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*put)(struct sl_str name, struct store_tmp_file *work, const struct store_meta *meta,
                        const char *media_type, struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*put_text)(const struct sl_str *names, size_t count, struct sl_str text,
                             struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*open)(struct sl_str name, struct sl_mapping *mapping, struct store_meta *meta,
                         struct sl_error *error) SL_SUSPENDS;
    const char *(*url)(struct sl_str name, struct sl_arena *arena)SL_SUSPENDS; /* signed URL; NULL: not supported */
    void (*sweep)(void); /* removes expired objects; pool work. NULL: the bucket expires them itself */
};

/* Creates a backend; it allocates in the arena. NULL on failure, with `error` set. */
const struct store_backend *store_directory(const struct config_store *config, struct sl_arena *arena,
                                            struct sl_error *error);
const struct store_backend *store_bucket_backend(const struct config_store *config, struct sl_arena *arena,
                                                 struct sl_error *error);

/* Parses a gzip header written by store_gzip_header_write(); returns false for other headers. Pure. */
bool store_gzip_header_read(struct sl_bytes head, struct store_meta *meta);
