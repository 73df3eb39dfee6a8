/* Numbers for texts and for keys of three numbers, while a table is made: equal ones get the same. Every look takes a step of
 * the budget, so that texts whose hashes are chosen cost no more than the file allows. */
#pragma once

#include "base/buf.h"
#include "base/idtable.h"

/* ---- texts ---- */

struct jvm_strings {
    struct sl_account *account;
    size_t room;         /* bytes in front of each text, for what the owner has to say of it */
    struct sl_buf bytes; /* room, uleb size, text; a text's number is its offset */
    struct sl_id_table table;
};

struct jvm_text {
    uint32_t id, hash;
};

/* Zeros when it failed; strings->account->failed then. The room of a new one is zeros. */
struct jvm_text jvm_string(struct jvm_strings *strings, struct sl_str text);

/* The same in three steps, with other work between them, as each waits for memory that the one before has sent for. */
struct jvm_wanted {
    struct sl_str text;
    uint32_t hash;
};
struct jvm_wanted jvm_want(const struct jvm_strings *strings, struct sl_str text);
void jvm_want_text(const struct jvm_strings *strings, const struct jvm_wanted *wanted);
struct jvm_text jvm_take(struct jvm_strings *strings, const struct jvm_wanted *wanted);

/* ---- keys ---- */

struct jvm_key {
    uint32_t a, b, c;
};

struct jvm_keys {
    struct sl_account *account;
    struct jvm_key *keys; /* by row */
    size_t capacity;
    uint32_t count;
    struct sl_id_table table;
};

enum { JVM_NO_ROW = UINT32_MAX, JVM_MOST_TEXT = UINT32_MAX - 16 };

/* The row of the key, a new one when `*made`; JVM_NO_ROW when it failed. */
uint32_t jvm_key_row(struct jvm_keys *keys, struct jvm_key key, bool *made);

/* JVM_NO_ROW when it is not there. */
uint32_t jvm_key_find(struct jvm_keys *keys, struct jvm_key key);

void jvm_keys_clear(struct jvm_keys *keys);
