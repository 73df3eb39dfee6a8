/* What the files of the symbfile store share. */
#pragma once

#include "kinds/symbfiles.h"

enum { STORE_PATH = 900, FILE_ID_HEX = 33 };

void store_hex(const uint8_t *bytes, size_t size, char *out); /* terminated */

/* Where files are that belong to no set; false when there is no store. */
bool store_tmp(char out[STORE_PATH]);

/* <store>/<aa>/<file id>; false when there is no store. */
bool store_home(const struct sl_file_id *file_id, char out[STORE_PATH]);

/* The sets below an executable's directory, without their parts; malloc'ed. */
struct symbfile_set *store_sets(const char *home, size_t *count);

/* Fills in set->have, by number (to be freed). False, with none, when out of memory or the directory is gone. */
bool store_load_parts(const char *home, struct symbfile_set *set);

/* "<number>.<SHA-256>.<mode>.<records>.<inflated>" */
void store_part_name(const struct symbfile_part_file *part, char out[160]);

/* ---- symbfile_files.c ---- */
bool files_make_dirs(const char *path); /* with its parents */
void files_remove_tree(const char *path);
bool files_sync_dir(const char *path);
bool files_touch(const char *path); /* makes an empty file */
uint64_t files_tree_bytes(const char *path);

/* ---- symbfile_info.c ---- */
void info_read(const char *home, struct symbfile_info *info);
/* Writes what is known after the upload, and the file's associations. */
bool info_update(const char *store, const char *home, const struct sl_file_id *file_id,
                 const struct symbfile_info *news);
