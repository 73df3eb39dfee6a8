/* Breakpad symbol files: identity, features, public symbols. */
#include "object/breakpad.h"

#include "base/grow.h"

#include <stdlib.h>

/* The MODULE record is read up to this many bytes; the rest of a longer line is ignored. */
enum { MAX_MODULE_LINE = 320 };

/* Returns the line at `at` without blanks at its ends; sets `*next` to the start of the next line. */
struct breakpad_fields breakpad_line(const char *at, const char *end, const char **next)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    struct breakpad_fields fields = {at, newline ? newline : end};
    *next = newline ? newline + 1 : end;
    while (fields.at < fields.end && sl_is_blank(*fields.at))
        fields.at++;
    while (fields.end > fields.at && sl_is_blank(fields.end[-1]))
        fields.end--;
    return fields;
}

/* Returns the next field, up to a blank, and moves behind it and the blanks after it; empty at the end of the line. */
struct sl_str breakpad_field(struct breakpad_fields *f)
{
    const char *start = f->at;
    while (f->at < f->end && !sl_is_blank(*f->at))
        f->at++;
    struct sl_str field = {start, (size_t)(f->at - start)};
    while (f->at < f->end && sl_is_blank(*f->at))
        f->at++;
    return field;
}

struct sl_str breakpad_rest(struct breakpad_fields *f)
{
    struct sl_str rest = {f->at, (size_t)(f->end - f->at)};
    f->at = f->end;
    return rest;
}

/* Moves past the next field and returns true if that field is `word`. */
bool breakpad_word(struct breakpad_fields *f, struct sl_str word)
{
    struct breakpad_fields ahead = *f;
    if (!sl_str_equal(breakpad_field(&ahead), word))
        return false;
    *f = ahead;
    return true;
}

bool breakpad_hex(struct breakpad_fields *f, uint64_t *value)
{
    return sl_parse_hex_u64(breakpad_field(f), value);
}

bool breakpad_decimal(struct breakpad_fields *f, uint64_t *value)
{
    return sl_parse_u64(breakpad_field(f), value);
}

/* True if the text starts with `word` and a blank. */
static bool starts(const char *at, const char *end, struct sl_str word)
{
    return (size_t)(end - at) > word.size && memcmp(at, word.data, word.size) == 0 &&
           (at[word.size] == ' ' || at[word.size] == '\t');
}

enum { STRIDE = 64 };

typedef uint8_t bytes16 __attribute__((vector_size(16)));

/* True if one of the STRIDE bytes at `at` is a newline before a line that may be a STACK or PUBLIC record: it begins with P, Q, R or S, or
 * with a blank or a control character. Compares 16 bytes at once. The caller looks at the line itself. */
static inline bool may_begin_record(const char *at)
{
    uint64_t halves[2];
    bytes16 found = {0};
    for (size_t i = 0; i < STRIDE; i += sizeof found) {
        bytes16 here, next;
        memcpy(&here, at + i, sizeof here);
        memcpy(&next, at + i + 1, sizeof next);
        found |= (bytes16)(here == '\n') & ((bytes16)((next & 0xFC) == 'P') | (bytes16)(next <= ' ')); /* P to S */
    }
    memcpy(halves, &found, sizeof halves);
    return halves[0] | halves[1];
}

/* Returns the start of the line after `at`; `end` if there is none. If a FUNC line was found already (`has_function`), passes over lines
 * that cannot be STACK or PUBLIC records: no others have to be found. */
static const char *next_record(const char *at, const char *end, bool has_function)
{
    while (at < end) {
        while (has_function && end - at > STRIDE && !may_begin_record(at))
            at += STRIDE;
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline)
            return end;
        at = newline + 1;
        /* blanks may be in front of a record */
        if (!has_function || (at < end && (*at == 'S' || *at == 'P' || *at == ' ' || *at == '\t')))
            return at;
    }
    return end;
}

/* Reads the first word of each line up to the first STACK record, after the first FUNC only of lines that may be STACK or PUBLIC records.
 * Sets the features, and the offsets of the first FUNC or PUBLIC record (b->records), of the first STACK record (b->end) and of all PUBLIC
 * records. The caller has set b->records and b->end to the size of the file. False when out of memory. */
static bool find_records(struct sl_object *object, struct breakpad *b)
{
    const char *begin = (const char *)object->bytes.data, *end = begin + object->bytes.size;
    struct sl_features *f = &object->info.features;
    for (const char *at = begin; at < end; at = next_record(at, end, f->has_debug_info)) {
        size_t offset = (size_t)(at - begin);
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        bool function = starts(at, end, SL_STR("FUNC")), public = starts(at, end, SL_STR("PUBLIC"));
        if (function || public) {
            b->records = offset < b->records ? offset : b->records;
            f->has_debug_info = f->has_debug_info || function;
        }
        if (public) {
            if (!sl_grow(&b->publics, &b->public_capacity, b->public_count + 1, sizeof *b->publics))
                return false;
            b->publics[b->public_count++] = offset;
            f->has_symbols = true;
        }
        if (starts(at, end, SL_STR("STACK"))) {
            b->end = offset;
            break; /* the unwind records come last */
        }
    }
    b->records = b->records < b->end ? b->records : b->end; /* there may be STACK records only */
    return true;
}

/* True if the file can be used for unwinding: behind b->end there is a STACK CFI INIT or STACK WIN record. Other STACK records only add
 * rules to a STACK CFI INIT record. */
static bool has_unwind_record(const struct sl_object *object, const struct breakpad *b)
{
    const char *at = (const char *)object->bytes.data + b->end, *end = at + (object->bytes.size - b->end);
    while (at < end) {
        struct breakpad_fields f = breakpad_line(at, end, &at);
        if (breakpad_word(&f, SL_STR("STACK")) &&
            (breakpad_word(&f, SL_STR("WIN")) ||
             (breakpad_word(&f, SL_STR("CFI")) && breakpad_word(&f, SL_STR("INIT")))))
            return true;
    }
    return false;
}

/* Returns the format of the executables of an operating system; SL_FORMAT_UNKNOWN for an unknown system. */
static enum sl_format format_of_programs(struct sl_str os)
{
    static const struct {
        struct sl_str os;
        enum sl_format format;
    } systems[] = {
        {SL_STR("linux"), SL_FORMAT_ELF},  {SL_STR("android"), SL_FORMAT_ELF}, {SL_STR("solaris"), SL_FORMAT_ELF},
        {SL_STR("windows"), SL_FORMAT_PE}, {SL_STR("mac"), SL_FORMAT_MACHO},   {SL_STR("macos"), SL_FORMAT_MACHO},
        {SL_STR("ios"), SL_FORMAT_MACHO},
    };
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (sl_str_equal_nocase(os, systems[i].os))
            return systems[i].format;
    return SL_FORMAT_UNKNOWN;
}

/* Reads `MODULE os architecture id name`. Without a name the debug file is called `<unknown>`. SL_MALFORMED if the record is not UTF-8 or
 * one of the other fields is missing, or architecture or id are not valid. */
static enum sl_code read_module(struct sl_object *object, struct breakpad_fields f, struct sl_error *error)
{
    struct sl_object_info *info = &object->info;
    if (!breakpad_word(&f, SL_STR("MODULE")))
        return sl_fail(error, SL_MALFORMED, "missing breakpad symbol header");
    if (!sl_str_is_utf8((struct sl_str){f.at, (size_t)(f.end - f.at)}))
        return sl_fail(error, SL_MALFORMED, "bad utf-8 sequence");
    struct sl_str os = breakpad_field(&f), arch = breakpad_field(&f), id = breakpad_field(&f);
    if (!os.size || !arch.size || !id.size)
        return sl_fail(error, SL_MALFORMED, "parsing error: the MODULE record lacks the system, architecture or id");
    info->program_format = format_of_programs(os);
    info->arch = sl_arch_parse(arch);
    if (info->arch == SL_ARCH_UNKNOWN && !sl_str_equal_nocase(arch, SL_STR("unknown")))
        return sl_fail(error, SL_MALFORMED, "invalid architecture");
    if (!sl_debug_id_parse(id, &info->debug_id))
        return sl_fail(error, SL_MALFORMED, "invalid module id");
    info->debug_file = breakpad_rest(&f);
    if (!info->debug_file.size)
        info->debug_file = SL_STR("<unknown>");
    info->is_64bit = sl_cpu_pointer_size(sl_arch_family(info->arch)) == 8;
    return SL_OK;
}

/* Sets code id and name of the executable from the first `INFO CODE_ID <hex> [file]` that has an id. Stops at the first FILE, FUNC, PUBLIC
 * or STACK record, which ends the header. */
static void read_code_id(struct sl_object *object, const char *at, const char *end)
{
    while (at < end && !object->info.code_id.size) {
        struct breakpad_fields f = breakpad_line(at, end, &at);
        if (breakpad_word(&f, SL_STR("INFO")) && breakpad_word(&f, SL_STR("CODE_ID"))) {
            object->info.code_id = sl_code_id_normalise(&object->arena, breakpad_field(&f));
            struct sl_str file = breakpad_rest(&f);
            if (sl_str_is_utf8(file))
                object->info.code_file = file;
        } else if (breakpad_word(&f, SL_STR("FILE")) || breakpad_word(&f, SL_STR("FUNC")) ||
                   breakpad_word(&f, SL_STR("PUBLIC")) || breakpad_word(&f, SL_STR("STACK"))) {
            return; /* end of the header */
        }
    }
}

/* Reads the MODULE record and finds the other records. If the caller only needs the identity (sl_object_limits.identity), the file is not
 * read to its end: all features are set without looking for records. */
static enum sl_code breakpad_open(struct sl_object *object, struct sl_error *error)
{
    struct breakpad *b = SL_ARENA_NEW(&object->arena, struct breakpad);
    if (!b)
        return sl_fail(error, SL_BUSY, "out of memory");
    object->impl = b;
    const char *begin = (const char *)object->bytes.data, *end = begin + object->bytes.size, *next, *cut = end;
    begin += object_blank_lines(object->bytes);
    if (end - begin > MAX_MODULE_LINE) /* the rest of a longer line is ignored; cut at the start of a UTF-8 character */
        for (cut = begin + MAX_MODULE_LINE; ((uint8_t)*cut & 0xC0) == 0x80 && cut > begin;)
            cut--;
    enum sl_code code = read_module(object, breakpad_line(begin, cut, &next), error);
    if (code != SL_OK)
        return code;
    b->records = b->end = object->bytes.size;
    if (!object->identity && !find_records(object, b))
        return sl_fail(error, SL_BUSY, "out of memory");
    breakpad_line(begin, end, &next); /* again without the cut, for the start of the line after MODULE */
    const char *records =
        (const char *)object->bytes.data + b->records; /* counts from the start of the file, not from `begin` */
    if (next < records)
        read_code_id(object, next, records);
    object->info.kind = SL_KIND_DBG;
    if (object->identity)
        object->info.features =
            (struct sl_features){.has_debug_info = true, .has_symbols = true, .has_unwind_info = true};
    else
        object->info.features.has_unwind_info = has_unwind_record(object, b);
    return SL_OK;
}

/* Reads `PUBLIC [m] address parameter-size [name]` (m: the address has several names). Without a name it is called `<unknown>`. False if
 * the line is malformed, or if the name is not UTF-8. */
static bool read_public(struct breakpad_fields f, struct sl_symbol *symbol)
{
    uint64_t address, parameters;
    if (!breakpad_word(&f, SL_STR("PUBLIC")))
        return false;
    bool multiple = breakpad_word(&f, SL_STR("m"));
    if (!breakpad_hex(&f, &address) || !breakpad_hex(&f, &parameters))
        return false;
    *symbol = (struct sl_symbol){.address = address,
                                 .name = breakpad_rest(&f),
                                 .parameters = parameters & (INT32_MAX >> 1), /* the member has 30 bits */
                                 .multiple = multiple};
    if (!symbol->name.size)
        symbol->name = SL_STR("<unknown>");
    return sl_str_is_utf8(symbol->name);
}

/* Reads the PUBLIC lines whose offsets find_records() stored at opening; malformed ones are left out. The caller has set `*symbols` to NULL
 * and `*count` to 0. */
static enum sl_code breakpad_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                     size_t *count, struct sl_error *error)
{
    const struct breakpad *b = object->impl;
    const char *begin = (const char *)object->bytes.data, *next;
    if (!b->public_count)
        return SL_OK;
    *symbols = sl_arena_alloc(arena, b->public_count * sizeof **symbols, _Alignof(struct sl_symbol));
    if (!*symbols)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < b->public_count; i++)
        *count += read_public(breakpad_line(begin + b->publics[i], begin + b->end, &next), &(*symbols)[*count]);
    return SL_OK;
}

static void breakpad_close(struct sl_object *object)
{
    free(((struct breakpad *)object->impl)->publics);
}

const struct object_format sl_object_breakpad = {
    .open = breakpad_open,
    .close = breakpad_close,
    .symbols = breakpad_symbols,
    .read_functions = breakpad_read_functions,
};
