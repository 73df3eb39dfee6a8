/* Shared by the files of the store. Private to this folder. */
#pragma once

#include "debug_file_store/debug_file_store.h"

/* ---- record.c ---- */

/* Stores the record. */
enum sl_code record_put(const struct debug_file_record *record, struct sl_error *error) SL_SUSPENDS;
/* Reads a record. SL_NOT_FOUND. */
enum sl_code record_get(struct sl_str sha1, struct sl_arena *arena, struct debug_file_record *record,
                        struct sl_error *error) SL_SUSPENDS;

/* ---- store.c ---- */

/* Returns "objects/<path>"; data NULL when out of memory. */
struct sl_str object_name(struct sl_arena *arena, struct sl_str path);
/* Runs the converter on a file. `fd` -1: the bytes are in memory. SL_MALFORMED: the file cannot be read, or not within the limits. */
enum sl_code check_file(int fd, struct sl_bytes bytes, struct upload_check_result *found,
                        struct sl_error *error) SL_SUSPENDS;

/* ---- names.c ---- */

/* Makes the entry that leads from the name of the record to its file; before the record is stored. */
enum sl_code names_put(const struct debug_file_record *record, struct sl_error *error) SL_SUSPENDS;
/* Makes the entries of all records that lack one. `*is_empty`: there are no records. Logs failures; false if there was one. */
bool names_complete(bool *is_empty) SL_SUSPENDS;
/* True once that has been done in this store. */
bool names_are_ready(void) SL_SUSPENDS;
void names_close(void);
