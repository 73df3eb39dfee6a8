/* Header fields of other debuginfod servers: what is kept of them beside a cache entry, and read from there. The input is lines
 * "NAME:VALUE", and also a note as a damaged cache file might have it. */
#include <stdlib.h>

#include "origin/impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"FILE", "ARCHIVE", "IMASIGNATURE"};

/* What is sent to clients in a header must have no line breaks, and no path of another machine. */
static void check(const char *note)
{
    if (!memchr(note, '\0', ORIGIN_NOTE_BYTES))
        abort();
    for (int i = 0; i < 3; i++) {
        struct sl_str value = origin_note_field(note, names[i]);
        for (size_t at = 0; at < value.size; at++)
            if ((uint8_t)value.data[at] < 0x20 || (uint8_t)value.data[at] == 0x7F)
                abort();
        if (!sl_str_is_utf8(value) || (i == 1 && value.size && memchr(value.data, '/', value.size)))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char note[ORIGIN_NOTE_BYTES] = "", *damaged = malloc(size + 1);
    struct sl_str text = {(const char *)data, size}, line;
    if (!damaged)
        return 0;
    while (sl_str_next_line(&text, &line)) {
        const char *colon = line.size ? memchr(line.data, ':', line.size) : NULL;
        if (!colon)
            continue;
        struct sl_str name = {line.data, (size_t)(colon - line.data)};
        struct sl_str first = origin_note_field(note, names[0]);
        origin_note_add(note, name, (struct sl_str){colon + 1, line.size - name.size - 1});
        struct sl_str now = origin_note_field(note, names[0]);
        if (first.data && !sl_str_equal(first, now))
            abort(); /* the first of several counts */
    }
    check(note);
    if (size)
        memcpy(damaged, data, size);
    damaged[size] = '\0';
    for (int i = 0; i < 3; i++) {
        struct sl_str value = origin_note_field(damaged, names[i]);
        if (value.data && (value.data < damaged || value.data + value.size > damaged + size))
            abort();
    }
    free(damaged);
    return 0;
}
