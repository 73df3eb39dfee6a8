/* Splits forms (multipart/form-data) into text parts and the files sent with them. */
#include "api/form_files.h"

#include "http/multipart.h"
#include "js/names.h"

/* ---- the form ---- */

struct form_splitting {
    struct request_files *files;
    struct sl_arena *arena;
    struct multipart *multipart;
    struct form_part *parts; /* text parts that the caller asked for, `count` of them */
    size_t count;
    const struct form_part *part; /* part that is being read; NULL: a file, or an ignored part */
    struct sl_str *text;          /* text of the part or the file; NULL: ignored */
};

/* Returns the last component of a path with slashes or backslashes. */
static struct sl_str path_base_name(struct sl_str path)
{
    for (size_t i = path.size; i > 0; i--)
        if (path.data[i - 1] == '/' || path.data[i - 1] == '\\')
            return (struct sl_str){path.data + i, path.size - i};
    return path;
}

/* Begins a file (a part named "artifact"): stores its name; add_piece() will collect its contents in s->text. Fails if there are more than
 * OWN_FILES_MAX files, or when out of memory. */
static enum sl_code begin_file(struct form_splitting *s, struct sl_error *error)
{
    struct sl_str called = multipart_file_name(s->multipart);
    const char *kept = sl_arena_strndup(s->arena, called.data ? called.data : "", called.size);
    if (s->files->count == OWN_FILES_MAX)
        return sl_fail(error, SL_MALFORMED, "the request has more than %d files", OWN_FILES_MAX);
    if (!kept)
        return sl_fail(error, SL_BUSY, "out of memory");
    struct request_file *file = &s->files->items[s->files->count++];
    struct sl_str name = {kept, called.size};
    *file = (struct request_file){.name = s->files->keeps_folders ? name : path_base_name(name), .text = {"", 0}};
    s->text = &file->text;
    return SL_OK;
}

/* The callback for the beginning of each part of the form. A part "artifact" is a file. The text of a part that the caller asked for is
 * collected; if several have that name, the last one counts. Any other part is skipped. */
static enum sl_code begin_part(void *arg, struct sl_str name, struct sl_error *error)
{
    struct form_splitting *s = arg;
    s->part = NULL;
    s->text = NULL;
    if (sl_str_equal(name, SL_STR("artifact")))
        return begin_file(s, error);
    for (size_t i = 0; i < s->count; i++)
        if (sl_str_equal(name, s->parts[i].name)) {
            s->part = &s->parts[i];
            s->text = &s->parts[i].text;
            *s->text = (struct sl_str){"", 0}; /* even if it stays empty, the part was sent: data is not NULL */
        }
    return SL_OK;
}

/* The callback for the next bytes of a part. They directly follow its earlier bytes in the form, so the part's text is a view of the form.
 * Fails when the text is longer than the part's limit. */
static enum sl_code add_piece(void *arg, struct sl_bytes data, struct sl_error *error)
{
    const struct form_splitting *s = arg;
    if (!s->text)
        return SL_OK;
    if (!s->text->size)
        s->text->data = (const char *)data.data;
    s->text->size += data.size;
    return s->part && s->part->max && s->text->size > s->part->max
               ? sl_fail(error, SL_UNSUPPORTED, "Field " SL_STR_FMT " larger than %llu bytes",
                         SL_STR_ARG(s->part->name), (unsigned long long)s->part->max)
               : SL_OK;
}

enum sl_code form_split(struct sl_bytes form, struct sl_str boundary, struct sl_arena *arena,
                        struct request_files *files, struct form_part *parts, size_t count, struct sl_error *error)
{
    struct form_splitting s = {.files = files, .arena = arena, .parts = parts, .count = count};
    const struct multipart_callbacks callbacks = {.begin = begin_part, .data = add_piece, .arg = &s};
    if (!(s.multipart = multipart_new(arena, boundary, &callbacks)))
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = multipart_feed(s.multipart, form, error);
    return code == SL_OK ? multipart_finish(s.multipart, error) : code;
}

/* ---- finding ---- */

const struct request_file *files_of_form(const struct request_files *files, struct sl_str path, const char *suffix)
{
    size_t end = 0; /* the path ends at a query or fragment, which sl_js_without_parameters() may leave */
    path = sl_js_without_parameters(path);
    while (end < path.size && path.data[end] != '?' && path.data[end] != '#')
        end++;
    struct sl_str name = path_base_name((struct sl_str){path.data, end}), more = sl_str(suffix);
    for (size_t i = 0; name.size && i < files->count; i++) {
        struct sl_str called = files->items[i].name;
        if (called.size == name.size + more.size && sl_str_starts(called, name) && sl_str_ends(called, more))
            return &files->items[i];
    }
    return NULL;
}
