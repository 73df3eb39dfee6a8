/* Functions shared by the files of the store of uploaded debug files. Private to this folder. */
#pragma once

#include "debug_file_store/debug_file_store.h"

/* ---- record.c ---- */

/* Writes the record of a stored file; replaces an older one with the same SHA-1. */
enum sl_code record_put(const struct debug_file_record *record, struct sl_error *error) SL_SUSPENDS;
/* Reads the record of the file with this SHA-1. SL_NOT_FOUND if there is none. */
enum sl_code record_get(struct sl_str sha1, struct sl_arena *arena, struct debug_file_record *record,
                        struct sl_error *error) SL_SUSPENDS;

/* ---- store.c ---- */

/* Returns "objects/<path>"; data NULL when out of memory. */
struct sl_str object_name(struct sl_arena *arena, struct sl_str path);
/* Finds out which kind of file it is, by the converter upload_check. The file is `fd`, or the bytes if `fd` is -1. SL_MALFORMED: it cannot
 * be read, or not within the limits. */
enum sl_code check_file(int fd, struct sl_bytes bytes, struct upload_check_result *found,
                        struct sl_error *error) SL_SUSPENDS;

/* ---- names.c ---- */

/* Creates the entry below uploads/names/ by which the file of the record is found by its name. Call it before the record is stored. */
enum sl_code names_put(const struct debug_file_record *record, struct sl_error *error) SL_SUSPENDS;
/* Creates the missing entries below uploads/names/ for all records. `*is_empty`: there are no records. Logs failures, and returns false if
 * there was one. */
bool names_complete(bool *is_empty) SL_SUSPENDS;
/* True once names_complete has succeeded in this store, and while it has no records: then all stored files have entries. */
bool names_are_ready(void) SL_SUSPENDS;
void names_close(void);
