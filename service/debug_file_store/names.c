/* Finds uploaded files by name, through entries: objects of the store whose name has all their information. */
#include "debug_file_store/names.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/grow.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"
#include "debug_file_store/impl.h"
#include "function/path.h"

enum {
    SHA1_TEXT = 40,
    SHA1_BYTES = 20,
    TIME_DIGITS = 11,
    MAX_OF_MODULE = 10000,     /* entries of one module that are looked at */
    MAX_RECORDS = 2 * 1000000, /* entries that names_complete keeps in memory */
    MAX_OF_PREFIX = 100000,    /* most records whose SHA-1 begins with the same byte */
    READ_AT_ONCE = 16          /* fibers that read records at the same time */
};
#define LAST_TIME 99999999999ull /* the greatest number of TIME_DIGITS digits */

static const struct sl_str ready_name = {"uploads/names.json", sizeof "uploads/names.json" - 1};

/* True once it is known that each record of the open store has an entry by which its file is found by name. */
static bool is_ready;

void names_close(void)
{
    is_ready = false;
}

/* Callback of store_area_walk: notes that there is a record, and ends the walk. */
static bool find_record(void *arg, struct sl_str name)
{
    (void)name;
    *(bool *)arg = true;
    return false;
}

/* True if the store has no records (descriptions of uploaded files); false also if it cannot be read. */
static bool has_no_records(void)
{
    struct sl_error error;
    bool has_records = false;
    return store_area_walk(debug_files_area(), SL_STR("uploads/sha1"), SL_STR(""), find_record, &has_records, &error) ==
               SL_OK &&
           !has_records;
}

bool names_are_ready(void)
{
    struct store_meta meta;
    struct sl_error error;
    if (!is_ready)
        is_ready = store_area_stat(debug_files_area(), ready_name, false, &meta, &error) == SL_OK || has_no_records();
    return is_ready;
}

/* ---- entries ---- */

/* Encodes a module name as the name of a directory. Bytes that names of directories, or of objects in a bucket, cannot have become =XX:
 * "=2F" for '/'. So does '.' at the beginning, as no name may be "." or "..". If the text is not UTF-8, so do all bytes beyond ASCII. */
static void encode(struct sl_str text, struct sl_buf *out)
{
    bool is_utf8 = sl_str_is_utf8(text);
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool plain = c > ' ' && c != '/' && c != '=' && c != 0x7F && (c < 0x80 || is_utf8) && (i || c != '.');
        if (plain)
            sl_buf_u8(out, c);
        else
            sl_buf_printf(out, "=%02X", c);
    }
}

/* Undoes `encode`: replaces =XX by the byte with these hex digits. Copies '=' without them. */
static void decode(struct sl_str text, struct sl_buf *out)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte;
        if (text.data[i] == '=' && i + 2 < text.size &&
            sl_hex_decode((struct sl_str){text.data + i + 1, 2}, &byte, 1, NULL)) {
            sl_buf_u8(out, byte);
            i += 2;
        } else {
            sl_buf_u8(out, (uint8_t)text.data[i]);
        }
    }
}

/* Returns the directory "uploads/names/<module>", which has an entry for each uploaded file of the module. Empty if the module's name is
 * empty, or longer than a file system allows: then its files have no entries and are found only by their ids. Data NULL when out of
 * memory. */
static struct sl_str module_directory(struct sl_str module, struct sl_arena *arena)
{
    struct sl_buf name = {0};
    sl_buf_cstr(&name, "uploads/names/");
    size_t before = name.size;
    encode(module, &name);
    bool fits = name.size > before && name.size - before <= NAME_MAX;
    if (fits || name.failed)
        return sl_buf_move_to_arena(&name, arena);
    sl_buf_free(&name);
    return SL_STR("");
}

enum sl_code names_put(const struct debug_file_record *record, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct sl_buf text = {0};
    struct sl_str module = sl_path_module_name(record->name), directory = module_directory(module, &arena);
    uint64_t time = record->created_s < LAST_TIME ? record->created_s : LAST_TIME;
    enum sl_code code = directory.data ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && directory.size) {
        /* the rest of the file's name: for "app.pdb", whose module is "app", ".pdb" */
        struct sl_str suffix = {module.data + module.size, record->name.size - module.size};
        /* LAST_TIME - time, so that the newest entry sorts first */
        sl_buf_printf(&text, SL_STR_FMT "/%0*llu-" SL_STR_FMT, SL_STR_ARG(directory), TIME_DIGITS,
                      (unsigned long long)(LAST_TIME - time), SL_STR_ARG(record->sha1));
        sl_buf_str(&text, suffix);
        struct sl_str name = sl_buf_view(&text);
        code = text.failed ? sl_fail(error, SL_BUSY, "out of memory")
                           : store_area_put_text(debug_files_area(), &name, 1, SL_STR("{}"), error);
    }
    sl_buf_free(&text);
    sl_arena_free(&arena);
    return code;
}

/* Parses the name of an entry, "<time>-<sha1><suffix>"; false for other names, as somebody may have put files there. */
static bool parse_entry(struct sl_str entry, struct sl_str *sha1, struct sl_str *suffix)
{
    enum { FIXED = TIME_DIGITS + 1 + SHA1_TEXT };
    uint8_t bytes[SHA1_BYTES];
    if (entry.size < FIXED || entry.data[TIME_DIGITS] != '-')
        return false;
    *sha1 = (struct sl_str){entry.data + TIME_DIGITS + 1, SHA1_TEXT};
    *suffix = (struct sl_str){entry.data + FIXED, entry.size - FIXED};
    return sl_hex_decode(*sha1, bytes, sizeof bytes, NULL);
}

/* ---- reading records ---- */

struct record_search {
    struct sl_arena *arena;
    struct uploaded_files *found;
    size_t capacity, max_count;
    uint64_t end_ns;
};

/* Sets the format of the module (program or library) that a file of this type belongs to: the file is the module, or has debug information
 * about it. False for other files: bundles, mappings and Breakpad files. */
static bool module_format(struct sl_str type, enum sl_format *format)
{
    static const enum sl_format formats[FILE_TYPES] = {
        [FILE_PE] = SL_FORMAT_PE,          [FILE_PDB] = SL_FORMAT_PDB,         [FILE_ELF_CODE] = SL_FORMAT_ELF,
        [FILE_ELF_DEBUG] = SL_FORMAT_ELF,  [FILE_MACH_CODE] = SL_FORMAT_MACHO, [FILE_MACH_DEBUG] = SL_FORMAT_MACHO,
        [FILE_WASM_CODE] = SL_FORMAT_WASM, [FILE_WASM_DEBUG] = SL_FORMAT_WASM,
    };
    enum file_type parsed;
    *format = file_type_parse(type, &parsed) ? formats[parsed] : SL_FORMAT_UNKNOWN;
    return *format != SL_FORMAT_UNKNOWN;
}

/* Reads the id out of a path below objects/, such as "ab/cdef/debuginfo" for the id abcdef: a code id if the file has one, but a debug id
 * for PE and PDB files. False if it is neither. (The record has only the ids of the first object; a fat file has a path for each.) */
static bool id_of_path(struct sl_str path, const struct debug_file_record *record, enum sl_format format,
                       struct sl_index_id *id)
{
    char hex[2 * 255 + 1];
    uint8_t bytes[255];
    size_t size = 0, count;
    struct sl_debug_id debug_id;
    /* the digits up to the second slash */
    for (size_t i = 0; i < path.size && (i < 3 || path.data[i] != '/') && size < sizeof hex; i++)
        if (path.data[i] != '/')
            hex[size++] = path.data[i];
    struct sl_str text = {hex, size};
    if (format == SL_FORMAT_PE || format == SL_FORMAT_PDB || !record->code_id.size) {
        if (!sl_debug_id_parse(text, &debug_id))
            return false;
        *id = sl_index_debug_id(&debug_id);
        return true;
    }
    if (!sl_hex_decode(text, bytes, sizeof bytes, &count))
        return false;
    *id = sl_index_id(SL_INDEX_CODE_ID, (struct sl_bytes){bytes, count});
    return true;
}

/* Adds a file to the result, once for each of its ids. False, so that the search ends, when out of memory or when the result has max_count
 * files. A file of a debug type has code too if its kind is that of a program, library or relocatable file. */
static bool add_file(struct record_search *s, struct sl_str name, const struct debug_file_record *record)
{
    struct uploaded_files *found = s->found;
    struct uploaded_file file = {.created_s = record->created_s};
    if (!module_format(record->type, &file.format))
        return true;
    file.name = (struct sl_str){sl_arena_strndup(s->arena, name.data, name.size), name.size};
    file.is_executable = sl_str_ends(record->type, SL_STR("_code")) || sl_str_equal(record->type, SL_STR("pe")) ||
                         sl_str_equal(record->kind, SL_STR("exe")) || sl_str_equal(record->kind, SL_STR("lib")) ||
                         sl_str_equal(record->kind, SL_STR("rel"));
    for (size_t i = 0; i < record->path_count; i++) {
        if (!id_of_path(record->paths[i], record, file.format, &file.id))
            continue;
        if (!file.name.data || found->count >= s->max_count ||
            !sl_grow_in_arena(s->arena, &found->items, &s->capacity, found->count + 1, sizeof file)) {
            found->complete = false;
            return false;
        }
        found->items[found->count++] = file;
    }
    return true;
}

/* Reads the record of the file that an entry in the directory `module` (an encoded name) stands for, and adds the file to the result if it
 * is still stored. False if the search must end: time is up, the fiber was cancelled, memory is out or the result is full (`complete` is
 * false then). */
static bool read_entry(struct record_search *s, struct sl_str module, struct sl_str entry)
{
    struct sl_arena arena = {0}; /* for the record, of which little is kept in the arena of the search */
    struct debug_file_record record;
    struct sl_error error;
    struct sl_str sha1, suffix;
    struct sl_buf name = {0};
    if (!parse_entry(entry, &sha1, &suffix))
        return true;
    if (clock_mono_ns() >= s->end_ns || fiber_cancelled()) {
        s->found->complete = false;
        return false;
    }
    enum sl_code code = debug_files_find(sha1, &arena, &record, &error);
    s->found->complete = s->found->complete && (code == SL_OK || code == SL_NOT_FOUND);
    decode(module, &name); /* base name of the file: module and suffix */
    sl_buf_str(&name, suffix);
    s->found->complete = s->found->complete && !name.failed;
    bool going = code != SL_OK || name.failed || add_file(s, sl_buf_view(&name), &record);
    sl_buf_free(&name);
    sl_arena_free(&arena);
    return going;
}

/* ---- files of a module ---- */

/* True if not all files of the result have the same id. */
static bool has_several_ids(const struct uploaded_files *found)
{
    for (size_t i = 1; i < found->count; i++) {
        const struct sl_index_id *a = &found->items[0].id, *b = &found->items[i].id;
        if (a->type != b->type || a->size != b->size || memcmp(a->bytes, b->bytes, sizeof a->bytes) != 0)
            return true;
    }
    return false;
}

void uploaded_files_of_module(struct sl_str path, bool newest, uint64_t end_ns, struct sl_arena *arena,
                              struct uploaded_files *found)
{
    struct record_search s = {.arena = arena, .found = found, .max_count = MAX_OF_MODULE, .end_ns = end_ns};
    struct sl_error error;
    struct sl_str *entries;
    size_t count = 0;
    *found = (struct uploaded_files){.complete = true};
    if (!debug_files_are_open())
        return;
    struct sl_str directory = module_directory(sl_path_module_name(path), arena);
    found->complete = directory.data && names_are_ready();
    if (!found->complete || !directory.size)
        return;
    enum sl_code code = store_area_list(debug_files_area(), directory, MAX_OF_MODULE, arena, &entries, &count, &error);
    /* a full list may lack entries, but not the newest, which come first */
    found->complete = code == SL_OK && (newest || count < MAX_OF_MODULE);
    struct sl_str prefix = SL_STR("uploads/names/");
    struct sl_str module = {directory.data + prefix.size, directory.size - prefix.size};
    for (size_t i = 0; i < count && read_entry(&s, module, entries[i]); i++) /* the newest first */
        if (newest ? found->count : has_several_ids(found))
            return;
}

/* ---- files by a pattern ---- */

struct entry_list { /* filled by store_area_walk with add_matching */
    const char *pattern;
    bool is_glob;
    size_t count, max_count;
    uint64_t end_ns;
    struct sl_buf names;   /* names of the matching entries, "<module>/<entry>", each with a NUL behind it */
    struct sl_buf decoded; /* base name, with a slash in front, of the entry that is looked at */
    bool is_cut;           /* there may be more entries: time was up, the list full or memory out */
};

/* Callback of store_area_walk, on any thread: adds the entry "<module>/<entry>" to the list if the base name of its file matches the
 * pattern. False ends the walk, with list->is_cut set: time is up, the list is full or memory is out. */
static bool add_matching(void *arg, struct sl_str name)
{
    struct entry_list *list = arg;
    struct sl_str sha1, suffix;
    const char *slash = memchr(name.data, '/', name.size);
    size_t at = slash ? (size_t)(slash - name.data) : name.size;
    list->is_cut = list->is_cut || clock_mono_ns() >= list->end_ns;
    if (list->is_cut || at == name.size ||
        !parse_entry((struct sl_str){name.data + at + 1, name.size - at - 1}, &sha1, &suffix))
        return !list->is_cut;
    sl_buf_clear(&list->decoded);
    sl_buf_u8(&list->decoded, '/'); /* patterns are for the base name with a slash in front */
    decode((struct sl_str){name.data, at}, &list->decoded);
    sl_buf_str(&list->decoded, suffix);
    sl_buf_u8(&list->decoded, '\0');
    const char *text = (const char *)list->decoded.data;
    if (!list->decoded.failed &&
        (list->is_glob ? fnmatch(list->pattern, text, FNM_PATHNAME) : strcmp(list->pattern, text)) != 0)
        return true;
    list->is_cut = list->count >= list->max_count;
    if (list->is_cut)
        return false;
    list->count++;
    sl_buf_str(&list->names, name);
    sl_buf_u8(&list->names, '\0');
    list->is_cut = list->names.failed || list->decoded.failed; /* out of memory */
    return !list->is_cut;
}

/* Returns the beginning of a pattern up to the first special character ("/lib*.so": "lib"): the directories of all modules that match begin
 * with it, as `encode` leaves letters, digits and '_' as they are. */
static struct sl_str plain_beginning(struct sl_str pattern)
{
    size_t size = 1;
    while (size < pattern.size && (isalnum((unsigned char)pattern.data[size]) || pattern.data[size] == '_'))
        size++;
    return (struct sl_str){pattern.data + 1, size - 1};
}

struct entry_reading { /* an item of fiber_for_each */
    struct record_search *search;
    const char *name;
    bool *stopped;
};

/* Reads the record of one listed entry, unless a fiber has found that the search must end. */
static void read_listed(void *arg)
{
    struct entry_reading *reading = arg;
    const char *slash = strchr(reading->name, '/');
    struct sl_str module = {reading->name, (size_t)(slash - reading->name)};
    if (!*reading->stopped && !read_entry(reading->search, module, sl_str(slash + 1)))
        *reading->stopped = true;
}

/* Reads the records of all listed entries, READ_AT_ONCE at a time, and adds their files to the result. */
static void read_all(struct record_search *s, const struct entry_list *list, struct sl_arena *arena)
{
    struct entry_reading *readings = SL_ARENA_ARRAY(arena, struct entry_reading, list->count);
    void **items = SL_ARENA_ARRAY(arena, void *, list->count);
    const char *name = (const char *)list->names.data;
    bool stopped = false;
    for (size_t i = 0; readings && items && i < list->count; i++) {
        readings[i] = (struct entry_reading){s, name, &stopped};
        items[i] = &readings[i];
        name += strlen(name) + 1;
    }
    if (!readings || !items || !fiber_for_each(read_listed, items, list->count, READ_AT_ONCE))
        s->found->complete = false;
}

/* Finds the stored files whose base name, with a slash in front, matches the query's pattern. found->complete is false if there may be
 * more: a limit of the query was reached, or the store could not be read. */
void uploaded_files_by_name(const struct uploaded_name_query *query, struct sl_arena *arena,
                            struct uploaded_files *found)
{
    struct record_search s = {.arena = arena, .found = found, .max_count = query->max_count, .end_ns = query->end_ns};
    struct entry_list list = {.pattern = sl_arena_strndup(arena, query->pattern.data, query->pattern.size),
                              .is_glob = query->is_glob,
                              .max_count = query->max_count,
                              .end_ns = query->end_ns};
    struct sl_arena lists = {0};
    struct sl_error error;
    *found = (struct uploaded_files){.complete = true};
    if (!debug_files_are_open())
        return;
    /* No base name with a slash in front matches an empty pattern, or equals a text that does not begin with a slash. */
    if (list.pattern && (!query->pattern.size || (!query->is_glob && *list.pattern != '/')))
        return;
    found->complete = list.pattern && names_are_ready();
    if (!list.pattern)
        return;
    struct sl_str begin = *list.pattern == '/' ? plain_beginning(query->pattern) : SL_STR("");
    enum sl_code code =
        store_area_walk(debug_files_area(), SL_STR("uploads/names"), begin, add_matching, &list, &error);
    found->complete = found->complete && code == SL_OK && !list.is_cut;
    if (code == SL_OK && !list.names.failed && list.count)
        read_all(&s, &list, &lists);
    sl_buf_free(&list.names);
    sl_buf_free(&list.decoded);
    sl_arena_free(&lists);
}

/* ---- records without entries ---- */

struct sha1_list {
    struct sl_buf sha1s; /* SHA1_BYTES each, sorted by sort_sha1s */
    bool is_cut;         /* there are more than MAX_RECORDS, or memory is out */
};

/* Callback of store_area_walk: adds the SHA-1 in the name of an entry, "<module>/<entry>", to the list. False, which ends the walk, if the
 * list is cut. */
static bool add_sha1(void *arg, struct sl_str name)
{
    struct sha1_list *list = arg;
    struct sl_str sha1, suffix;
    uint8_t bytes[SHA1_BYTES];
    const char *slash = memchr(name.data, '/', name.size);
    size_t at = slash ? (size_t)(slash - name.data) + 1 : name.size;
    if (!parse_entry((struct sl_str){name.data + at, name.size - at}, &sha1, &suffix) ||
        !sl_hex_decode(sha1, bytes, sizeof bytes, NULL))
        return true;
    sl_buf_add(&list->sha1s, bytes, sizeof bytes);
    list->is_cut = list->sha1s.failed || list->sha1s.size >= (size_t)MAX_RECORDS * SHA1_BYTES;
    return !list->is_cut;
}

static int compare_sha1s(const void *a, const void *b)
{
    return memcmp(a, b, SHA1_BYTES);
}

static void sort_sha1s(void *arg)
{
    struct sha1_list *list = arg;
    if (list->sha1s.size)
        qsort(list->sha1s.data, list->sha1s.size / SHA1_BYTES, SHA1_BYTES, compare_sha1s);
}

struct record_naming { /* an item of fiber_for_each */
    struct sl_str sha1;
    enum sl_code *code; /* shared by all items: the first failure */
    struct sl_error *error;
};

/* Creates the entry by which the file of a record is found by name. A damaged record (SL_NOT_FOUND) gets none: the next upload of its file
 * writes both anew. Does nothing after the failure of another item. */
static void name_record(void *arg)
{
    const struct record_naming *naming = arg;
    struct sl_arena arena = {0};
    struct debug_file_record record;
    struct sl_error error;
    if (*naming->code != SL_OK)
        return;
    enum sl_code code = record_get(naming->sha1, &arena, &record, &error);
    if (code == SL_OK)
        code = names_put(&record, &error);
    if (code != SL_OK && code != SL_NOT_FOUND && *naming->code == SL_OK) {
        *naming->code = code;
        *naming->error = error;
    }
    sl_arena_free(&arena);
}

/* True if the record with this SHA-1 has an entry, or if the text is no SHA-1, so not the name of a record. */
static bool is_named(struct sl_str sha1, const struct sha1_list *named)
{
    uint8_t bytes[SHA1_BYTES];
    return sha1.size != SHA1_TEXT || !sl_hex_decode(sha1, bytes, sizeof bytes, NULL) ||
           (named->sha1s.size &&
            bsearch(bytes, named->sha1s.data, named->sha1s.size / SHA1_BYTES, SHA1_BYTES, compare_sha1s));
}

/* Creates the missing entries for the records whose SHA-1 begins with `byte`. `named` has the SHA-1 of those with entries, sorted. */
static enum sl_code name_records(unsigned byte, const struct sha1_list *named, struct sl_error *error)
{
    struct sl_arena arena = {0};
    char directory[32];
    struct sl_str *sha1s;
    size_t count, missing = 0;
    snprintf(directory, sizeof directory, "uploads/sha1/%02x", byte);
    enum sl_code code =
        store_area_list(debug_files_area(), sl_str(directory), MAX_OF_PREFIX, &arena, &sha1s, &count, error);
    if (code == SL_OK && count == MAX_OF_PREFIX)
        code = sl_fail(error, SL_UNSUPPORTED,
                       "the upload store has %d or more files in %s, too many to complete the list of names",
                       MAX_OF_PREFIX, directory);
    struct record_naming *namings = SL_ARENA_ARRAY(&arena, struct record_naming, count);
    void **items = SL_ARENA_ARRAY(&arena, void *, count);
    if (code == SL_OK && (!namings || !items))
        code = sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        if (is_named(sha1s[i], named))
            continue;
        namings[missing] = (struct record_naming){sha1s[i], &code, error};
        items[missing] = &namings[missing];
        missing++;
    }
    if (missing && !fiber_for_each(name_record, items, missing, READ_AT_ONCE))
        code = sl_fail(error, SL_CANCELLED, "cancelled");
    sl_arena_free(&arena);
    return code;
}

bool names_complete(bool *is_empty)
{
    struct sha1_list named = {.is_cut = false};
    struct sl_error error;
    *is_empty = has_no_records();
    if (*is_empty) /* new records get entries anyway; writes nothing, as the store may never be used */
        return true;
    enum sl_code code =
        store_area_walk(debug_files_area(), SL_STR("uploads/names"), SL_STR(""), add_sha1, &named, &error);
    if (code == SL_OK && named.is_cut)
        code = sl_fail(&error, SL_UNSUPPORTED,
                       "the upload store has more than %d files, too many to complete the list of names", MAX_RECORDS);
    if (code == SL_OK)
        code = pool_run(POOL_IO | POOL_HEAVY, sort_sha1s, &named, &error);
    for (unsigned byte = 0; code == SL_OK && byte < 256; byte++)
        code = name_records(byte, &named, &error);
    if (code == SL_OK && !names_are_ready()) /* notes in the store that all records have entries */
        code = store_area_put_text(debug_files_area(), &ready_name, 1, SL_STR("{}"), &error);
    sl_buf_free(&named.sha1s);
    if (code != SL_OK && code != SL_CANCELLED)
        log_warn("uploads",
                 "cannot list all uploaded files by name; until this succeeds, searches by name may miss files that "
                 "older versions of symloom have stored",
                 LOG_ERR(&error));
    return code == SL_OK;
}
