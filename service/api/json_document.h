/* JSON documents of requests, read by tables of their keys (base/json_fields.h), and why one was refused. */
#pragma once

#include "base/json_fields.h"
#include "base/json_write.h"

/* Why a document was not read. */
struct json_failure {
    int status; /* 400 it is no JSON, 422 it is not what was expected, 413 it is too much, 503 out of memory */
    const char *problem;
};

/* Reads a whole document, which must outlive what was read; `read` takes its one value. What is taken of the arena is in
 * proportion to the document: at most three times its size, and what is admitted. A document that is no JSON is told so even
 * if something before did not fit. False: `failure`, its text in the arena. Pure: loop or pool. */
bool json_document(struct sl_str text, struct sl_arena *arena, bool (*read)(struct sl_fields *s), void *context,
                   struct json_failure *failure);

/* What a failure for want of memory is. */
extern const struct json_failure json_no_memory;

/* Values of requests that several APIs have, each a sl_field_read: an array of texts, kept as it is written into a struct sl_str
 * (data NULL when it is empty); "callee_first" or "caller_first" into a bool that says whether it is the former. */
bool json_raw_texts(struct sl_fields *s, const struct sl_json_path *at, void *out);
bool json_callee_first(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* A member of that number; nothing when it is not set. */
void json_member_number(struct sl_json_writer *w, const char *key, struct sl_opt_u64 number);
