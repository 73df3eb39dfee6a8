/* Indexes all debug files below directories by their ids and names, for directories whose layout is not known. */
#include "cli/locator/locator.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/map.h"
#include "cli/file_walk.h"
#include "function/path.h"
#include "object/archive.h"

/* The limit of files that are opened for one index: a path such as `/` would keep a command busy for hours. */
enum { MAX_FILES = 200000 };

struct indexed_object { /* an object of a file */
    const char *path;
    enum file_type type; /* searches ask for files of one type */
    struct sl_str code_id, raw_code_id;
    struct sl_debug_id debug_id;
    struct sl_features features;
    enum sl_object_kind kind;
    enum sl_format format; /* of the program that it describes; UNKNOWN: any */
    enum sl_arch arch;
};

struct file_index {
    struct source_index source;
    const char *const *roots;
    size_t root_count;
    struct sl_arena arena;
    struct indexed_object *objects;
    size_t count, capacity, files;
    bool built, plain;     /* built: all files were read; plain: the roots are files, without layouts */
    struct sl_map by_name; /* file name without suffix -> 1 + index of the first object of its list */
    size_t *next_named, named_count, named_capacity; /* per object: 1 + index of the next one with this name; 0: none */
};

struct file_index *file_index_new(const char *const *roots, size_t count, bool plain)
{
    struct file_index *index = calloc(1, sizeof *index);
    if (index) {
        index->roots = roots;
        index->root_count = count;
        index->plain = plain;
    }
    return index;
}

void file_index_free(struct file_index *index)
{
    if (!index)
        return;
    sl_map_free(&index->by_name);
    free(index->next_named);
    sl_arena_free(&index->arena);
    free(index->objects);
    free(index);
}

/* Copies the text into the index's arena, because the file is unmapped after reading. */
static struct sl_str copy_text(struct file_index *index, struct sl_str text)
{
    char *copy = text.size ? sl_arena_strndup(&index->arena, text.data, text.size) : NULL;
    return (struct sl_str){copy, copy ? text.size : 0};
}

/* Returns the format of the program to which an object belongs: PE for a PDB; SL_FORMAT_UNKNOWN if it may be any. */
static enum sl_format format_of_program(const struct sl_object_info *info)
{
    enum sl_format program = sl_format_traits(info->format)->program;
    return program ? program : info->program_format;
}

/* Adds an object to the index. One without a debug id gets the id that dump-syms makes from its contents. Leaves out objects that no search
 * asks for, that have no id at all, or for which there is no memory. */
static void add_object(struct file_index *index, const char *path, struct sl_object *object)
{
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_debug_id id;
    enum file_type type;
    if (!file_type_for_format(info->format, info->features.has_debug_info, &type))
        return;
    sl_object_make_id(object, &id); /* sets `id` to zeros if none can be made */
    if (!sl_debug_id_has_uuid(&id) && !info->code_id.size)
        return;
    if (!sl_grow(&index->objects, &index->capacity, index->count + 1, sizeof *index->objects))
        return;
    index->objects[index->count++] = (struct indexed_object){.path = path,
                                                             .type = type,
                                                             .code_id = copy_text(index, info->code_id),
                                                             .raw_code_id = copy_text(index, info->raw_code_id),
                                                             .debug_id = id,
                                                             .features = info->features,
                                                             .kind = info->kind,
                                                             .format = format_of_program(info),
                                                             .arch = info->arch};
}

/* Adds all objects of a file to the index. Does nothing if the file cannot be read, or MAX_FILES were read before. */
static void locator_index_add_file(struct file_index *index, const char *path)
{
    struct sl_mapping mapping;
    struct sl_archive archive;
    struct sl_object *object;
    if (index->files++ >= MAX_FILES || sl_map_file(path, &mapping, NULL) != SL_OK)
        return;
    const char *copy = NULL;
    struct sl_object_limits limits = {.identity = true}; /* read no more of the file than its ids and features */
    if (sl_archive_open(mapping.bytes, &archive, NULL) == SL_OK)
        for (size_t i = 0; i < archive.count; i++) {
            if (sl_archive_object(&archive, i, &limits, &object, NULL) != SL_OK)
                continue;
            if (copy || (copy = sl_arena_strndup(&index->arena, path, strlen(path))))
                add_object(index, copy, object);
            sl_object_close(object);
        }
    sl_unmap(&mapping);
}

/* Reads all files at and below the roots, once. Called only when a file was not found by the paths of symbol store layouts, as this takes
 * long for a large directory. */
static void locator_index_build(struct file_index *index)
{
    index->built = true;
    for (size_t i = 0; i < index->root_count; i++) {
        struct file_walk walk;
        file_walk_open(&walk, index->roots[i]);
        for (const FTSENT *entry; index->files < MAX_FILES && (entry = file_walk_next(&walk));)
            locator_index_add_file(index, entry->fts_path);
        file_walk_close(&walk);
    }
}

/* True if a file with these features can be used for the purpose: it has unwind information, or debug information or symbols. */
static bool has_purpose(const struct sl_features *features, enum purpose purpose)
{
    bool debug = features->has_debug_info || features->has_symbols;
    return purpose == PURPOSE_ANY_OBJECT || (purpose == PURPOSE_UNWIND ? features->has_unwind_info : debug);
}

/* True if the object may belong to a program of this type (ELF, Mach-O or PE). Needed when only code ids are compared: those of different
 * types (build ids, UUIDs, time stamps with sizes) are unrelated. */
static bool same_format(const struct indexed_object *object, enum object_type type)
{
    enum sl_format wanted = object_type_format(type);
    return object->format == SL_FORMAT_UNKNOWN || wanted == SL_FORMAT_UNKNOWN || object->format == wanted;
}

/* True if Windows or macOS can run programs of this CPU by translation. */
static bool is_translated(enum sl_cpu_family family)
{
    switch (family) {
    case SL_CPU_X86:
    case SL_CPU_X86_64:
    case SL_CPU_ARM:
    case SL_CPU_ARM64:
    case SL_CPU_ARM64_32: return true;
    default: return false;
    }
}

/* True if code for both architectures may run in one process: translated processes load libraries of both CPUs. */
static bool may_run_together(enum sl_arch a, enum sl_arch b, enum object_type type)
{
    enum sl_cpu_family one = sl_arch_family(a), other = sl_arch_family(b);
    if (one == other || one == SL_CPU_UNKNOWN || other == SL_CPU_UNKNOWN)
        return true;
    return (type == OBJECT_PE || type == OBJECT_MACHO) && is_translated(one) && is_translated(other);
}

/* True if the object is the wanted one: it has the debug id or, if `id` has none, the code id and a format of the same system. Its code
 * must also be able to run in the process of the wanted module. */
static bool has_id_of(const struct indexed_object *object, const struct object_id *id)
{
    struct sl_object_info info = {
        .debug_id = object->debug_id, .code_id = object->code_id, .raw_code_id = object->raw_code_id};
    struct sl_object_wanted wanted = {id->has_debug_id ? &id->debug_id : NULL, id->code_id};
    return sl_object_matches(&info, &wanted) && (id->has_debug_id || same_format(object, id->type)) &&
           may_run_together(object->arch, id->arch, id->type);
}

const char *file_index_find(struct file_index *index, const struct object_id *id, enum purpose purpose)
{
    /* best: debug information (or what else the purpose needs); then the same in a Breakpad file; then symbols alone */
    const char *breakpad = NULL, *symbols = NULL;
    if (!index->built)
        locator_index_build(index);
    for (size_t i = 0; i < index->count; i++) {
        const struct indexed_object *object = &index->objects[i];
        if (!has_id_of(object, id) || !has_purpose(&object->features, purpose))
            continue;
        /* a best file ends the search; of the others, the first one found is remembered */
        const char **choice = purpose == PURPOSE_DEBUG && !object->features.has_debug_info ? &symbols : &breakpad;
        if (choice == &breakpad && object->type != FILE_BREAKPAD)
            return object->path;
        *choice = *choice ? *choice : object->path;
    }
    return breakpad ? breakpad : symbols;
}

void file_index_add(struct file_index *index, const char *path)
{
    if (!index->built)
        locator_index_build(index);
    locator_index_add_file(index, path);
}

/* ---- by name ---- */

/* Adds the objects that are new since the last call to the index by file name: a list for each name, the newest object first. False when
 * out of memory. */
static bool index_names(struct file_index *index)
{
    if (!sl_grow(&index->next_named, &index->named_capacity, index->count, sizeof *index->next_named))
        return false;
    /* a list's elements are 1 + the index of an object; 0 ends the list */
    for (; index->named_count < index->count; index->named_count++) {
        void **first = sl_map_find_or_add(&index->by_name,
                                          sl_path_module_name(sl_str(index->objects[index->named_count].path)), NULL);
        if (!first)
            return false;
        index->next_named[index->named_count] = (uintptr_t)*first;
        *first = (void *)(uintptr_t)(index->named_count + 1);
    }
    return true;
}

bool object_ids_equal(const struct object_id *a, const struct object_id *b)
{
    if (sl_code_id_is_set(a->code_id) && sl_code_id_is_set(b->code_id))
        return sl_str_equal(a->code_id, b->code_id);
    return a->has_debug_id && b->has_debug_id && sl_debug_id_equal(&a->debug_id, &b->debug_id);
}

/* Returns the ids of an indexed object as a struct object_id, with which searches are made. Texts are the index's. */
static struct object_id id_of_object(const struct indexed_object *object)
{
    static const enum object_type types[] = {
        [SL_FORMAT_ELF] = OBJECT_ELF, [SL_FORMAT_MACHO] = OBJECT_MACHO, [SL_FORMAT_PE] = OBJECT_PE};
    bool known = (size_t)object->format < sizeof types / sizeof *types;
    return (struct object_id){.type = known ? types[object->format] : OBJECT_UNKNOWN,
                              .code_id = object->code_id,
                              .debug_id = object->debug_id,
                              .has_debug_id = sl_debug_id_has_uuid(&object->debug_id)};
}

enum name_match file_index_find_named(struct file_index *index, struct sl_str name, struct object_id *id, size_t *parts)
{
    enum name_match found = NAMED_NONE;
    if (!index->built)
        locator_index_build(index);
    if (!index_names(index))
        return NAMED_NONE;
    size_t at = (uintptr_t)sl_map_get(&index->by_name, sl_path_module_name(name));
    for (; at; at = index->next_named[at - 1]) {
        const struct indexed_object *object = &index->objects[at - 1];
        struct object_id other = id_of_object(object);
        size_t common = sl_path_common_parts(name, sl_str(object->path));
        if (common < *parts) /* an object with a longer common end was found before, here or in another index */
            continue;
        if (common > *parts || found == NAMED_NONE) {
            found = NAMED_ONE;
            *id = other;
        } else if (!object_ids_equal(id, &other)) {
            found = NAMED_SEVERAL;
        }
        *parts = common;
    }
    return found;
}

/* ---- as a source ---- */

/* Describes a file for the cache by its real path and a version made of size and time of change, so that a changed file is a different one.
 * False if it does not exist, or when out of memory. */
static bool locator_index_file(const char *path, struct sl_arena *arena, struct indexed_file *file)
{
    struct stat st;
    char *real = realpath(path, NULL), version[64];
    bool good = real && stat(real, &st) == 0;
    if (good) {
        int size = snprintf(version, sizeof version, "%llu %lld.%09ld", (unsigned long long)st.st_size,
                            (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        /* + 1: without the first slash, as the source of these files is the directory "/" */
        file->path = (struct sl_str){sl_arena_strndup(arena, real + 1, strlen(real + 1)), strlen(real + 1)};
        file->version = (struct sl_str){sl_arena_strndup(arena, version, (size_t)size), (size_t)size};
        good = file->path.data && file->version.data;
    }
    free(real);
    return good;
}

/* Finds the first file that exists at one of the paths that symbol store layouts have for this id and type below the directory. Returns the
 * number of files, 0 or 1, or INDEX_BUSY. */
static size_t list_by_layout(const char *directory, const struct object_id *id, enum file_type type,
                             struct sl_arena *arena, struct indexed_file *file)
{
    struct sl_str paths[LAYOUT_MAX_PATHS];
    char path[4096];
    /* the last round tries the native layout below the directory .build-id, where GDB searches debug files */
    for (size_t i = 0; i <= ANY_LAYOUTS; i++) {
        bool last = i == ANY_LAYOUTS;
        size_t count = layout_paths(arena, last ? LAYOUT_NATIVE : any_layouts[i], CASING_DEFAULT, id, type, paths);
        if (count == SIZE_MAX) /* out of memory */
            return INDEX_BUSY;
        for (size_t k = 0; k < count; k++) {
            int size = snprintf(path, sizeof path, "%s/%s" SL_STR_FMT, directory, last ? ".build-id/" : "",
                                SL_STR_ARG(paths[k]));
            if (size < (int)sizeof path && access(path, R_OK) == 0 && locator_index_file(path, arena, file))
                return 1;
        }
    }
    return 0;
}

/* True if the object is listed when a search asks for files of this type. Searches ask for programs first, then for Breakpad files, then
 * for separate debug files, and keep the first with debug information. So a program that contains debug information, whose type is that of
 * a debug file, is listed as a program, too: else a Breakpad file, which may lack inlined calls, would be preferred. */
static bool is_listed_as(const struct indexed_object *object, enum file_type type)
{
    static const enum sl_format programs[FILE_TYPES] = {
        [FILE_ELF_CODE] = SL_FORMAT_ELF, [FILE_MACH_CODE] = SL_FORMAT_MACHO};
    bool is_program = object->kind == SL_KIND_EXE || object->kind == SL_KIND_LIB;
    return object->type == type ||
           (is_program && programs[type] != SL_FORMAT_UNKNOWN && object->format == programs[type]);
}

/* Lists the files for an id and type (struct source_index): first by the paths that symbol store layouts have, unless the roots are files;
 * if there is none, by the ids in all files below the roots. Returns their number, at most LAYOUT_MAX_PATHS, or INDEX_BUSY when out of
 * memory. */
static size_t locator_index_list(const struct source_index *source, const struct object_id *id, enum file_type type,
                                 struct sl_arena *arena, struct indexed_file *files)
{
    /* `source` is a member of the index */
    struct file_index *index = (struct file_index *)((char *)source - offsetof(struct file_index, source));
    size_t count = 0;
    for (size_t i = 0; i < index->root_count && count < LAYOUT_MAX_PATHS && !index->plain; i++) {
        size_t found = list_by_layout(index->roots[i], id, type, arena, &files[count]);
        if (found == INDEX_BUSY)
            return INDEX_BUSY;
        count += found;
    }
    if (count)
        return count;
    if (!index->built)
        locator_index_build(index);
    for (size_t i = 0; i < index->count && count < LAYOUT_MAX_PATHS; i++)
        if (is_listed_as(&index->objects[i], type) && has_id_of(&index->objects[i], id))
            count += locator_index_file(index->objects[i].path, arena, &files[count]);
    return count;
}

const struct source_index *file_index_source(struct file_index *index)
{
    index->source.find = locator_index_list;
    return &index->source;
}
