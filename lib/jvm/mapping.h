/* The records of a mapping file, as ProGuard and R8 write them (ProGuard manual, "Retrace", "Specifications"; R8, "Mapping
 * information"): what classes, fields and methods were called and are called, and which lines are which.
 *
 *     # compiler: R8
 *     original.Class -> obfuscated:
 *     # {"id":"sourceFile","fileName":"Class.kt"}
 *         type field -> a
 *         1:3:type method(argument,types):10:12 -> b
 *
 * A file is read line by line; a line ends at LF or CR. A line that does not parse is a record of its own kind, and reading goes
 * on behind it. Texts are views of the file. All of this is linear in the file. */
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
    SL_JVM_RECORD_COMMENT, /* an object of JSON, perhaps: sl_jvm_comment_read */
};

struct sl_jvm_member {
    struct sl_str type, receiver, name, arguments,
        obfuscated;                          /* receiver: the class it was inlined from; data NULL = its own */
    bool has_range, has_line, has_last_line; /* `start` and `end`; `line`; `last_line` */
    uint32_t start, end;                     /* lines of the running program, start <= end */
    uint32_t line, last_line;                /* lines of the source, line <= last_line */
};

struct sl_jvm_record {
    enum sl_jvm_record_kind kind;
    struct sl_str key, value;           /* header; the value's data is NULL when there is none */
    struct sl_str original, obfuscated; /* class */
    struct sl_jvm_member member;        /* field (without lines), method */
    struct sl_str json;                 /* comment */
};

struct sl_jvm_reader {
    struct sl_str text;
    size_t at;
    size_t line_end; /* of the line that `at` is in, when it is behind `at` */
    size_t newline;  /* the first LF at or behind the beginning of that line */
    size_t plain;    /* from `at` up to here, if it is behind it, all is ASCII without CR */
};

/* A reader at the beginning; a byte order mark is passed over. */
struct sl_jvm_reader sl_jvm_reader(struct sl_str text);

/* The next record; false at the end. Only what belongs to its kind is set. */
bool sl_jvm_reader_next(struct sl_jvm_reader *reader, struct sl_jvm_record *record);

/* Whether the file is a mapping: a class with a member somewhere behind it, in front of which are at most 50 records that are
 * neither classes nor comments; or classes alone, and no line that does not parse. */
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

struct sl_jvm_position { /* a line of an outline, and the line of the running program that it stands for */
    uint32_t position, line;
};

struct sl_jvm_comment {
    enum sl_jvm_comment_kind kind;
    struct sl_str
        text; /* source file: its name; rewrite: the descriptor of what is thrown; signature: the descriptor that the
                           method has in the running program */
    struct sl_jvm_position *positions; /* callsite */
    size_t position_count;
    uint32_t remove; /* rewrite: that many inner frames; 0: the rule has no effect */
};

/* Reads the JSON of a comment, which R8 reads leniently: {id: 'sourceFile'} will do. False when it is none, or lacks what its kind needs: an error record; with `*busy` when memory
 * ran out. What is decoded lies in the arena or in the text. */
bool sl_jvm_comment_read(struct sl_str json, struct sl_arena *arena, struct sl_jvm_comment *comment, bool *busy);

/* ---- tools ---- */

struct sl_jvm_summary {
    struct sl_str compiler, compiler_version, min_api; /* of the headers; data NULL = not told */
    uint64_t classes, methods;
    bool has_lines;
};
struct sl_jvm_summary sl_jvm_summarise(struct sl_str text);

/* The id that upload tools give a mapping file: a UUID of version 5 (RFC 9562, section 5.5) of its contents, in the namespace
 * that "guardsquare.com" has among DNS names. False when out of memory. */
bool sl_jvm_mapping_id(struct sl_str text, struct sl_debug_id *id);
