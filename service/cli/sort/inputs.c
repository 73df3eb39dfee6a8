/* `symloom sort`: reads the inputs: files, members of ZIP archives, slices of fat files. */
#include "cli/sort/sort.h"

#include <errno.h>
#include "cli/file_walk.h"
#include <stdio.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "source/zip.h"

enum { MAX_MEMBER_SIZE_GB = 4 }; /* largest member of a ZIP archive that is read: it is unpacked into memory */

/* Adds a file to those that are sorted; sets s->failed when out of memory. */
static void sort_add_file(struct sort *s, const char *path, uint64_t size)
{
    const char *copy = sl_arena_strndup(&s->arena, path, strlen(path));
    if (!copy || !sl_grow(&s->files, &s->file_capacity, s->file_count + 1, sizeof *s->files)) {
        s->failed = true;
        return;
    }
    s->files[s->file_count++] = (struct sort_file){.path = copy, .size = size};
    s->total += size;
}

void sort_walk(struct sort *s, const char *input)
{
    char *roots[] = {(char *)(uintptr_t)input, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, file_walk_by_name);
    for (FTSENT *entry; walk && (entry = fts_read(walk));) {
        if (entry->fts_info == FTS_F)
            sort_add_file(s, entry->fts_path, (uint64_t)entry->fts_statp->st_size);
        else if (entry->fts_info == FTS_NS && entry->fts_level == FTS_ROOTLEVEL)
            sort_add_file(s, entry->fts_path, 0); /* `input` itself is missing: an error when sort_inspect opens it */
        else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
            print_note("WARNING: cannot read %s: %s\n", entry->fts_path, strerror(entry->fts_errno));
    }
    if (walk)
        fts_close(walk);
}

/* ---- pieces ---- */

/* Adds an object, or a file that cannot be sorted, to file->pieces. `name` is not copied. NULL when out of memory. */
static struct sort_piece *add_piece(struct sort_file *file, const char *name)
{
    if (!sl_grow(&file->pieces, &file->piece_capacity, file->piece_count + 1, sizeof *file->pieces)) {
        file->failed = true;
        return NULL;
    }
    struct sort_piece *piece = &file->pieces[file->piece_count++];
    *piece = (struct sort_piece){.name = name, .action = SORT_SKIPPED};
    return piece;
}

/* Copies a text into the file's arena. NULL, and file->failed is set, when out of memory. */
static const char *copy_text(struct sort_file *file, struct sl_str text)
{
    const char *copy = sl_arena_strndup(&file->arena, text.data ? text.data : "", text.size);
    file->failed = file->failed || !copy;
    return copy;
}

void sort_fail_piece(struct sort_file *file, struct sort_piece *piece, const char *reason)
{
    const char *copy = sl_arena_strndup(&file->arena, reason, strlen(reason));
    piece->action = SORT_ERROR;
    piece->reason = copy ? copy : "out of memory";
}

/* Records that the file, or its member `name`, cannot be sorted. `error`: it is a damaged debug file; else it is no debug file and is
 * skipped. */
static void add_problem(struct sort_file *file, const char *name, const char *reason, bool error)
{
    struct sort_piece *piece = add_piece(file, name);
    if (!piece)
        return;
    piece->action = error ? SORT_ERROR : SORT_SKIPPED;
    piece->reason = copy_text(file, sl_str(reason));
}

/* Returns the target path of an id, "67e9.." and "debuginfo" -> "67/e9../debuginfo". NULL, and file->failed is set, when out of memory. */
static const char *get_target(struct sort_file *file, const char *id, const char *suffix)
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "%.2s/%s/%s", id, strlen(id) > 2 ? id + 2 : "", suffix);
    const char *target = sl_buf_move_to_arena(&text, &file->arena).data;
    file->failed = file->failed || !target;
    return target;
}

/* Fills `piece` with what the object is, and its target path in the layout `unified`. The path of a PE file, or of an object without code
 * id, is made of the debug id (which may be computed from the contents); other paths are made of the code id. WASM files use the code id as
 * stored, which includes its length; their alias is the path of the plain id. */
static void fill_piece(struct sort_file *file, struct sort_piece *piece, struct sl_object *object)
{
    const struct sl_object_info *info = sl_object_info(object);
    static const struct {
        const char *kind, *suffix;
    } rows[] = {
        [SL_KIND_EXE] = {"exe", "executable"},
        [SL_KIND_LIB] = {"lib", "executable"},
        [SL_KIND_DBG] = {"dbg", "debuginfo"},
        [SL_KIND_SRC] = {"src", "sourcebundle"},
    };
    bool known = info->kind < sizeof rows / sizeof *rows;
    const char *suffix = known ? rows[info->kind].suffix : NULL;
    piece->kind = suffix ? rows[info->kind].kind : sl_object_kind_name(info->kind);
    piece->arch = sl_arch_name(info->arch);
    piece->format = sl_format_name(info->format);
    piece->debug_id = info->debug_id;
    piece->has_debug = info->kind == SL_KIND_DBG;
    piece->is_source = info->kind == SL_KIND_SRC;
    if (!suffix) {
        piece->reason = "neither a program nor a debug file";
        return;
    }
    char id[SL_DEBUG_ID_TEXT];
    struct sl_str code = info->raw_code_id.size ? info->raw_code_id : info->code_id;
    bool by_debug_id = info->format == SL_FORMAT_PE || code.size == 0;
    if (by_debug_id && !sl_object_make_id(object, &piece->debug_id)) {
        piece->action = SORT_ERROR;
        piece->reason = "failed to generate debug identifier";
        return;
    }
    sl_debug_id_format_breakpad(&piece->debug_id, id);
    for (char *at = id; *at; at++) /* the layout has lower-case ids */
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    piece->id = copy_text(file, by_debug_id ? sl_str(id) : code);
    piece->target = piece->id ? get_target(file, piece->id, suffix) : NULL;
    if (!by_debug_id && info->raw_code_id.size && info->code_id.size) {
        const char *plain = copy_text(file, info->code_id);
        piece->alias = plain ? get_target(file, plain, suffix) : NULL;
    }
    piece->action = SORT_WRITTEN;
}

static bool is_zip(struct sl_bytes bytes)
{
    return bytes.size >= 4 && memcmp(bytes.data, "PK\3\4", 4) == 0;
}

/* Adds object number `slice` of a fat file, or the only object of another file, slice 0, to the file's pieces. */
static void inspect_slice(struct sort_file *file, const char *name, const struct sl_archive *archive, size_t slice,
                          size_t member)
{
    struct sl_object *object;
    struct sl_error error = {0};
    if (sl_archive_object(archive, slice, NULL, &object, &error) != SL_OK) {
        bool nested = is_zip(archive->bytes); /* a ZIP inside another ZIP that is no source bundle: not unpacked */
        add_problem(file, name, nested ? "not a debug file" : error.message, !nested);
        return;
    }
    struct sort_piece *piece = add_piece(file, name);
    if (piece) {
        piece->member = member;
        piece->slice = slice;
        fill_piece(file, piece, object);
    }
    sl_object_close(object);
}

/* Adds all objects of a file, or of the unpacked `member` of a ZIP archive, to the file's pieces. */
static void inspect_bytes(struct sort_file *file, const char *name, struct sl_bytes bytes, size_t member)
{
    struct sl_archive archive;
    struct sl_error error = {0};
    enum sl_code code = sl_archive_open(bytes, &archive, &error);
    if (code != SL_OK || (!archive.is_fat && sl_format_detect(bytes) == SL_FORMAT_UNKNOWN)) {
        /* a file of an unknown kind is skipped; a damaged fat file is an error */
        bool damaged = code != SL_OK && strcmp(error.message, "unsupported object file format") != 0;
        add_problem(file, name, damaged ? error.message : "not a debug file", damaged);
        return;
    }
    for (size_t i = 0; i < archive.count; i++)
        inspect_slice(file, name, &archive, i, member);
}

/* ---- archives ---- */

struct opened_input {
    struct sl_mapping mapping;
    struct sl_arena arena;
    struct sl_zip zip; /* bytes NULL: not a ZIP */
};

/* Opens an input file, or a source bundle that was made here; a compressed file is unpacked, and a ZIP archive opened. */
static enum sl_code sort_open(const struct sort_file *file, struct opened_input *opened, struct sl_error *error)
{
    *opened = (struct opened_input){.mapping.bytes = sl_buf_bytes(&file->made)};
    if (file->made.data)
        return SL_OK;
    enum sl_code code = sl_map_file(file->path, &opened->mapping, error);
    if (code != SL_OK)
        return code;
    if (is_zip(opened->mapping.bytes))
        return sl_zip_open(opened->mapping.bytes, 0, &opened->arena, &opened->zip, error);
    code = map_unpacked(&opened->mapping, error);
    return code == SL_OK && is_zip(opened->mapping.bytes)
               ? sl_zip_open(opened->mapping.bytes, 0, &opened->arena, &opened->zip, error)
               : code;
}

static void sort_close(struct opened_input *opened)
{
    if (opened->mapping.mapped)
        sl_unmap(&opened->mapping);
    sl_arena_free(&opened->arena);
}

/* Unpacks member number `member` of a ZIP archive into `bytes`. Fails if it is larger than MAX_MEMBER_SIZE_GB. */
static enum sl_code sort_read_member(const struct opened_input *opened, size_t member, struct sl_buf *bytes,
                                     struct sl_error *error)
{
    const uint64_t limit = (uint64_t)MAX_MEMBER_SIZE_GB << 30;
    return sl_zip_read(&opened->zip, &opened->zip.entries[member], limit, bytes, error);
}

/* Unpacks member number `member` of a ZIP archive and adds its objects to the file's pieces. */
static void inspect_member(struct sort_file *file, const struct opened_input *opened, size_t member)
{
    struct sl_buf bytes = {0};
    struct sl_error error = {0};
    struct sl_str path = opened->zip.entries[member].name;
    /* skips a directory */
    if (path.size == 0 || path.data[path.size - 1] == '/')
        return;
    const char *name = copy_text(file, path_file_name(path));
    if (!name)
        return;
    if (sort_read_member(opened, member, &bytes, &error) != SL_OK)
        add_problem(file, name, error.message, true);
    else
        inspect_bytes(file, name, sl_buf_bytes(&bytes), member);
    sl_buf_free(&bytes);
}

void sort_inspect(struct sort_file *file)
{
    struct opened_input opened;
    struct sl_error error = {0};
    const char *name = copy_text(file, path_file_name(sl_str(file->path)));
    if (sort_open(file, &opened, &error) != SL_OK)
        add_problem(file, name ? name : file->path, error.message, true);
    else if (is_zip(opened.mapping.bytes) &&
             opened.zip.bytes.data) /* not for file->made, which sort_open does not open as ZIP */
        for (size_t i = 0; i < opened.zip.count; i++)
            inspect_member(file, &opened, i);
    else if (name)
        inspect_bytes(file, name, opened.mapping.bytes, SORT_NO_MEMBER);
    sort_close(&opened);
}

/* ---- bytes of pieces ---- */

/* Calls `visit` with the bytes of an object: its slice of `bytes` if that is a fat file, else all of them. */
static void visit_piece(struct sort_piece *piece, struct sl_bytes bytes,
                        void (*visit)(void *arg, struct sort_piece *piece, struct sl_bytes bytes), void *arg)
{
    struct sl_archive archive;
    struct sl_bytes slice;
    if (sl_archive_open(bytes, &archive, NULL) == SL_OK && sl_archive_slice(&archive, piece->slice, &slice))
        visit(arg, piece, slice);
    else {
        piece->action = SORT_ERROR;
        piece->reason = "the file changed while it was read";
    }
}

void sort_for_each(struct sort_file *file, void (*visit)(void *arg, struct sort_piece *piece, struct sl_bytes bytes),
                   void *arg)
{
    struct opened_input opened;
    struct sl_error error = {0};
    struct sl_buf member = {0};
    size_t loaded = SIZE_MAX; /* number of the member that is unpacked in `member`; consecutive pieces may share it */
    enum sl_code code = sort_open(file, &opened, &error);
    for (size_t i = 0; i < file->piece_count; i++) {
        struct sort_piece *piece = &file->pieces[i];
        bool zipped = code == SL_OK && opened.zip.bytes.data != NULL;
        if (!piece->target)
            continue;
        if (zipped && loaded != piece->member) {
            sl_buf_clear(&member);
            loaded = piece->member;
            code = loaded < opened.zip.count ? sort_read_member(&opened, loaded, &member, &error)
                                             : sl_fail(&error, SL_MALFORMED, "the file changed while it was read");
        }
        if (code == SL_OK) {
            visit_piece(piece, zipped ? sl_buf_bytes(&member) : opened.mapping.bytes, visit, arg);
            continue;
        }
        sort_fail_piece(file, piece, error.message); /* all objects after the first that fails have the same error */
    }
    sl_buf_free(&member);
    sort_close(&opened);
}
