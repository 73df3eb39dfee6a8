/* The back ends of storage areas (store/area.h), and functions of Mozilla's store that they need. Private to this folder. */
#pragma once

#include "store/area.h"
#include "store/store.h"

struct store_area_type { /* a back end: each function does what store_area_<name>() in area.h says */
    bool (*source)(const struct store_area *area, struct sl_arena *arena, struct sl_str prefix, struct source *source);
    enum sl_code (*tmp_file)(const struct store_area *area, struct store_tmp_file *work, struct sl_error *error);
    enum sl_code (*stat)(const struct store_area *area, struct sl_str name, bool with_md5, struct store_meta *meta,
                         struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*put)(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                        const struct store_meta *meta, const char *media_type, struct sl_error *error) SL_SUSPENDS;
    /* NULL: store_area_replace() calls `put` */
    enum sl_code (*replace)(const struct store_area *area, struct sl_str name, struct store_tmp_file *work,
                            const struct store_meta *meta, const char *media_type, const struct store_meta *before,
                            bool *conflict, struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*put_text)(const struct store_area *area, const struct sl_str *names, size_t count,
                             struct sl_str text, struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*open)(const struct store_area *area, struct sl_str name, struct sl_mapping *mapping,
                         struct store_meta *meta, struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*remove)(const struct store_area *area, struct sl_str name, struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*list)(const struct store_area *area, struct sl_str directory, size_t most, struct sl_arena *arena,
                         struct sl_str **names, size_t *count, struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*walk)(const struct store_area *area, struct sl_str directory, struct sl_str begin,
                         store_area_visitor *visit, void *arg, struct sl_error *error) SL_SUSPENDS;
    /* Returns a URL for downloading the file that is signed for an hour, in the arena. NULL: not supported. */
    const char *(*url)(const struct store_area *area, struct sl_str name, struct sl_arena *arena)SL_SUSPENDS;
    /* Pool work; NULL: not needed. */
    void (*sweep)(const struct store_area *area, const char *name, uint64_t life_s, unsigned depth);
};

/* Removes expired files of Mozilla's store in a directory: symbols of try builds after try_life_s, records and temporary files after fixed
 * times. Pool. */
void store_directory_sweep(const struct store_area *area, uint64_t try_life_s);

/* Sets original size and MD5 of `meta` from a gzip header that store_gzip_header_write() wrote; returns false for other bytes. Any
 * thread. */
bool store_gzip_header_read(struct sl_bytes head, struct store_meta *meta);
