/* `sort --with-sources`: makes source bundles of files with debug information, which are sorted like other files. */
#include "cli/sort/sort.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"

/* Whether there is a source bundle for the id already, among the inputs or made here. */
static bool has_sources(const struct sort *s, const struct sl_debug_id *id)
{
    for (size_t i = 0; i < s->file_count; i++)
        for (size_t k = 0; k < s->files[i].piece_count; k++)
            if (s->files[i].pieces[k].is_source && sl_debug_id_equal(&s->files[i].pieces[k].debug_id, id))
                return true;
    return false;
}

/* Adds a bundle as a file with its piece; takes ownership of the buffer. */
static bool add_bundle(struct sort *s, const char *path, struct sl_buf *bytes)
{
    if (!sl_grow(&s->files, &s->file_capacity, s->file_count + 1, sizeof *s->files))
        return false;
    struct sort_file *file = &s->files[s->file_count++];
    *file = (struct sort_file){.path = path, .size = bytes->size, .made = *bytes};
    *bytes = (struct sl_buf){0};
    sort_inspect(file);
    return true;
}

/* Makes the bundle of one object; returns the number made, 0 or 1. An object whose sources are not on this machine has none. */
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
        made = add_bundle(s, path, &bytes);
    input_close(&input);
    sl_buf_free(&bytes);
    return made;
}

size_t sort_sources(struct sort *s)
{
    size_t made = 0, count = s->file_count; /* not the bundles added here */
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < s->files[i].piece_count; k++) {
            struct sort_piece piece = s->files[i].pieces[k];
            bool alone = piece.member == 0; /* not inside a ZIP archive */
            if (alone && piece.has_debug && piece.target && !has_sources(s, &piece.debug_id))
                made += sources_of_slice(s, s->files[i].path, piece.slice);
        }
    return made;
}
