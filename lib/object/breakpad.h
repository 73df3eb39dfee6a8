/* Breakpad symbol files (Breakpad, docs/symbol_files.md): declarations shared by the breakpad*.c files. Private to this folder.
 *
 *     MODULE, INFO, FILE, INLINE_ORIGIN   ◀ header
 *     FUNC, its INLINEs and lines; PUBLIC ◀ records
 *     STACK                               ◀ unwind records; readers of functions stop here
 *
 *     MODULE Linux x86_64 771E29AE70984DE9808E784491B032790 shapes
 *     FILE 0 shapes.c
 *     INLINE_ORIGIN 0 square
 *     FUNC 1106 c 0 area             address, size, bytes of parameters, name
 *     INLINE 0 7 0 0 1106 4          depth, line and file of the call, number of the INLINE_ORIGIN; address, size
 *     1106 4 3 0                     address, size, line, file
 *     110a 8 7 0
 *     PUBLIC 1020 0 _start           address, bytes of parameters, name */
#pragma once

#include "object/impl.h"

struct breakpad {
    size_t records;  /* offset of the first FUNC or PUBLIC line; `end` if there is none */
    size_t end;      /* offset of the first STACK line, or the size of the file */
    size_t *publics; /* offsets of the PUBLIC lines */
    size_t public_count, public_capacity;
};

/* The fields of one line, separated by runs of blanks. */
struct breakpad_fields {
    const char *at, *end;
};

/* Returns the line at `at`, trimmed; `*next` is the start of the next line. */
struct breakpad_fields breakpad_line(const char *at, const char *end, const char **next);

/* Returns the next field and moves past it and the blanks behind it; empty at the end of the line. */
struct sl_str breakpad_field(struct breakpad_fields *fields);

/* Returns the rest of the line, with the blanks inside it, and moves to the end. */
struct sl_str breakpad_rest(struct breakpad_fields *fields);

/* Moves past the next field and returns true if it is `word`; otherwise returns false and stays. */
bool breakpad_word(struct breakpad_fields *fields, struct sl_str word);

/* Read the next field as a number of up to 64 bits and move past it. If it is no such number, return false, but move all the same. */
bool breakpad_hex(struct breakpad_fields *fields, uint64_t *value);
bool breakpad_decimal(struct breakpad_fields *fields, uint64_t *value);

enum sl_code breakpad_read_functions(struct sl_object *object, const struct sl_parallel *parallel,
                                     struct sl_function_sink *sink, struct sl_error *error);
