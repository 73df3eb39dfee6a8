/* `sort --with-sources`: makes source bundles of files with debug information, which are sorted like other files. */
#include "cli/sort/sort.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"

/* True if there is a source bundle for the debug id already, among the inputs or made here. */
static bool has_sources(const struct sort *s, const struct sl_debug_id *id)
{
    for (size_t i = 0; i < s->file_count; i++)
        for (size_t k = 0; k < s->files[i].piece_count; k++)
            if (s->files[i].pieces[k].is_source && sl_debug_id_equal(&s->files[i].pieces[k].debug_id, id))
                return true;
    return false;
}

/* True if a source bundle is to be made for the object: it is a debug file that can be sorted, and there is none for its id. */
static bool needs_sources(const struct sort *s, const struct sort_piece *piece)
{
    return piece->has_debug && piece->target && !has_sources(s, &piece->debug_id);
}

/* Adds a source bundle to s->files, to be sorted like an input; takes ownership of its `bytes`. `path`: the file it was made of; `member`:
 * if that is a ZIP archive, the name of the member in it, else NULL. False when out of memory. */
static bool add_bundle(struct sort *s, const char *path, const char *member, struct sl_buf *bytes)
{
    if (!sl_grow(&s->files, &s->file_capacity, s->file_count + 1, sizeof *s->files)) {
        s->failed = true;
        return false;
    }
    struct sort_file *file = &s->files[s->file_count++];
    *file = (struct sort_file){.path = path, .size = bytes->size, .made = *bytes};
    *bytes = (struct sl_buf){0};
    sort_inspect(file);
    for (size_t i = 0; member && i < file->piece_count; i++)
        file->pieces[i].name = member;
    return true;
}

/* Makes the source bundle of object number `slice` of the file `path` (0 unless it is a fat file). Returns the number of bundles made: 0 if
 * none of its sources is on this machine, else 1. */
static size_t sources_of_slice(struct sort *s, const char *path, size_t slice)
{
    struct input input;
    struct sl_buf bytes = {0};
    struct sl_error error = {0};
    bool some = false;
    size_t made = 0;
    if (input_open_archive(path, &input, &error) == SL_OK && !input.has_cache &&
        sl_archive_object(&input.archive, slice, NULL, &input.object, &error) == SL_OK &&
        bundle_object_sources(path, &input, !s->quiet, &bytes, &some, &error) == SL_OK && some)
        made = add_bundle(s, path, NULL, &bytes);
    input_close(&input);
    sl_buf_free(&bytes);
    return made;
}

struct member_sources {
    struct sort *s;
    const char *path; /* of the ZIP archive */
    size_t made;
};

/* Called for each object in a ZIP archive: makes its source bundle, if it needs one and its sources are on this machine. */
static void add_sources_of_member(void *arg, struct sort_piece *piece, struct sl_bytes object)
{
    struct member_sources *m = arg;
    struct input input;
    struct sl_buf bytes = {0};
    struct sl_error error = {0};
    bool some = false;
    if (!needs_sources(m->s, piece))
        return;
    if (input_open_bytes(piece->name, object, NULL, &input, &error) == SL_OK && input.object &&
        bundle_object_sources(piece->name, &input, !m->s->quiet, &bytes, &some, &error) == SL_OK && some)
        m->made += add_bundle(m->s, m->path, piece->name, &bytes);
    input_close(&input);
    sl_buf_free(&bytes);
}

/* Makes the source bundles of the objects in the ZIP archive s->files[index]; returns their number. */
static size_t sources_of_members(struct sort *s, size_t index)
{
    struct member_sources m = {.s = s, .path = s->files[index].path};
    /* makes room for all bundles first: add_bundle must not move s->files while sort_for_each reads one of them */
    if (sl_grow(&s->files, &s->file_capacity, s->file_count + s->files[index].piece_count, sizeof *s->files))
        sort_for_each(&s->files[index], add_sources_of_member, &m);
    else
        s->failed = true;
    return m.made;
}

size_t sort_sources(struct sort *s)
{
    size_t made = 0, count = s->file_count; /* the files before bundles are added */
    for (size_t i = 0; i < count; i++) {
        bool has_members = false;
        for (size_t k = 0; k < s->files[i].piece_count; k++) {
            struct sort_piece piece = s->files[i].pieces[k]; /* a copy: adding a bundle moves the files */
            if (!needs_sources(s, &piece))
                continue;
            if (piece.member == SORT_NO_MEMBER)
                made += sources_of_slice(s, s->files[i].path, piece.slice);
            else
                has_members = true;
        }
        if (has_members)
            made += sources_of_members(s, i);
    }
    return made;
}
