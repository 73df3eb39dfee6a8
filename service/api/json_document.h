/* Reads the JSON bodies of requests; tables describe their members (base/json_fields.h). */
#pragma once

#include "base/json_fields.h"
#include "base/json_write.h"

/* Why a document was not read. */
struct json_failure {
    int status; /* 400 malformed JSON, 422 unexpected contents, 413 too large, 503 out of memory */
    const char *problem;
};

/* Reads a whole document: calls `read`, which reads its one value with s->json into s->context. The result may keep views of `text`.
 * May allocate three times the document's size and 1 MiB from the arena; a document that needs more is refused (413). False:
 * `failure` is set, its text is in the arena; malformed JSON is reported (400) even if a wrong member comes before it. Runs on the loop
 * or the pool. */
bool json_document(struct sl_str text, struct sl_arena *arena, bool (*read)(struct sl_fields *s), void *context,
                   struct json_failure *failure);

/* The failure for "out of memory". */
extern const struct json_failure json_no_memory;

/* Field readers (sl_field_read) that several APIs share. json_raw_texts: an array of strings, kept as raw JSON in a struct sl_str
 * (data NULL if it is empty). json_callee_first: "callee_first" or "caller_first" into a bool, true for the former. */
bool json_raw_texts(struct sl_fields *s, const struct sl_json_path *at, void *out);
bool json_callee_first(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* Writes the member if the number is set. */
void json_member_number(struct sl_json_writer *w, const char *key, struct sl_opt_u64 number);
