/* Reader for mapping files of ProGuard and R8 (ProGuard manual, "Retrace", "Specifications"; R8, "Mapping information"):
 * original and obfuscated names of classes, fields and methods, and the line numbers.
 *
 *     # compiler: R8
 *     original.Class -> obfuscated:
 *     # {"id":"sourceFile","fileName":"Class.kt"}
 *         type field -> a
 *         1:3:type method(argument,types):10:12 -> b       lines 1 to 3 of the running program are 10 to 12 of the source
 *
 * The file is read line by line; a line ends at LF or CR. A malformed line becomes an error record, and reading continues after
 * it. Texts are views of the file. Everything is linear in the file. */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"
#include "id/id.h"

enum sl_jvm_record_kind {
    SL_JVM_RECORD_ERROR,
    SL_JVM_RECORD_HEADER,
    SL_JVM_RECORD_CLASS,
    SL_JVM_RECORD_FIELD,
    SL_JVM_RECORD_METHOD,
    SL_JVM_RECORD_COMMENT, /* begins with `{`: sl_jvm_comment_read() reads the JSON object, if it is one */
};

struct sl_jvm_member {
    struct sl_str type, receiver, name, arguments,
        obfuscated; /* receiver: the class from which the member was inlined; data NULL = none */
    bool has_range, has_line, has_last_line; /* presence of `start` and `end`; of `line`; of `last_line` */
    uint32_t start, end;                     /* lines in the running program, start <= end */
    uint32_t line, last_line;                /* lines in the source, line <= last_line */
};

struct sl_jvm_record {
    enum sl_jvm_record_kind kind;
    struct sl_str key, value;           /* header; data of `value` NULL = absent */
    struct sl_str original, obfuscated; /* class */
    struct sl_jvm_member member;        /* field (without lines) or method */
    struct sl_str json;                 /* comment */
};

struct sl_jvm_reader {
    struct sl_str text;
    size_t at;
    size_t line_end; /* end of the line that contains `at`, if above `at` */
    size_t newline;  /* the first LF at or after the beginning of that line */
    size_t plain;    /* if above `at`: all bytes in between are ASCII without CR */
};

/* Returns a reader at the beginning of the text, after a byte order mark. */
struct sl_jvm_reader sl_jvm_reader(struct sl_str text);

/* Reads the next record; false at the end. Sets only the members that belong to its kind. */
bool sl_jvm_reader_next(struct sl_jvm_reader *reader, struct sl_jvm_record *record);

/* True if the file is a mapping: a class has a member among the first 50 records that are neither classes nor comments; or the file
 * has fewer such records, a class, and no malformed line. */
bool sl_jvm_is_mapping(struct sl_str text);

/* ---- comments ---- */

enum sl_jvm_comment_kind {
    SL_JVM_COMMENT_OTHER,
    SL_JVM_COMMENT_SOURCE_FILE,
    SL_JVM_COMMENT_SYNTHESIZED,
    SL_JVM_COMMENT_OUTLINE,
    SL_JVM_COMMENT_CALLSITE,
    SL_JVM_COMMENT_REWRITE,
    SL_JVM_COMMENT_SIGNATURE,
};

/* A line of an outline (code that R8 moved out of several methods), and the line of the caller that it stands for. */
struct sl_jvm_position {
    uint32_t position, line;
};

struct sl_jvm_comment {
    enum sl_jvm_comment_kind kind;
    /* SOURCE_FILE: its name; REWRITE: descriptor of the thrown class; SIGNATURE: obfuscated descriptor of the method */
    struct sl_str text;
    struct sl_jvm_position *positions; /* CALLSITE: which line of the caller each line of the outline stands for */
    size_t position_count;
    uint32_t remove; /* REWRITE: number of inner frames to remove; 0: the rule has no effect */
};

/* Reads the JSON of a comment as leniently as R8 does: {id: 'sourceFile'} is accepted. False if it is not JSON or lacks a member that its
 * kind needs, or, with `*busy`, when memory is exhausted. Decoded texts lie in the arena or in `json`. */
bool sl_jvm_comment_read(struct sl_str json, struct sl_arena *arena, struct sl_jvm_comment *comment, bool *busy);

/* ---- tools ---- */

struct sl_jvm_summary {
    struct sl_str compiler, compiler_version, min_api; /* from the headers; data NULL = absent */
    uint64_t classes, methods;
    bool has_lines;
};

/* Reads the whole text; lines that are malformed are skipped. Texts are views of it. */
struct sl_jvm_summary sl_jvm_summarise(struct sl_str text);

/* Computes the id that upload tools give a mapping file: a UUID of version 5 (RFC 9562, section 5.5) made from its contents. The namespace
 * of that UUID is in turn the UUID of "guardsquare.com" in the DNS namespace. False when out of memory. */
bool sl_jvm_mapping_id(struct sl_str text, struct sl_debug_id *id);
