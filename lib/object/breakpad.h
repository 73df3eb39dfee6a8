/* Breakpad symbol files (Breakpad, docs/symbol_files.md): what the breakpad*.c files share. Private to this
 * folder.
 *
 *     MODULE, INFO, FILE, INLINE_ORIGIN   ◀ header
 *     FUNC, its INLINEs and lines; PUBLIC ◀ records
 *     STACK                               ◀ the end for readers of code */
#pragma once

#include "object/impl.h"

struct breakpad {
    size_t records;  /* offset of the first FUNC or PUBLIC line */
    size_t end;      /* offset of the first STACK line, or the size of the file */
    size_t *publics; /* offsets of the PUBLIC lines */
    size_t public_count, public_capacity;
};

/* The fields of one line, separated by runs of blanks. */
struct breakpad_fields {
    const char *at, *end;
};

/* The line at `at`, trimmed; `*next` is behind its end. */
struct breakpad_fields breakpad_line(const char *at, const char *end, const char **next);

/* The next field; empty when there is none. */
struct sl_str breakpad_field(struct breakpad_fields *fields);

/* All that is left of the line, blanks inside included. */
struct sl_str breakpad_rest(struct breakpad_fields *fields);

/* If the next field is `word`, takes it. */
bool breakpad_word(struct breakpad_fields *fields, struct sl_str word);

/* Numbers of up to 64 bits: a whole field. */
bool breakpad_hex(struct breakpad_fields *fields, uint64_t *value);
bool breakpad_decimal(struct breakpad_fields *fields, uint64_t *value);

enum sl_code breakpad_read_functions(struct sl_object *object, const struct sl_parallel *parallel,
                                     struct sl_function_sink *sink, struct sl_error *error);
