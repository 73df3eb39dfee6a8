/* Writes the head of a table (header and section table) and begins its sections. */
#include "table/writer.h"

#include "base/map.h"

bool sl_table_writer_init(struct sl_table_writer *w, const struct sl_table_format *format,
                          const struct sl_parallel *parallel, struct sl_budget *budget)
{
    *w = (struct sl_table_writer){.format = format, .parallel = parallel, .file.budget = budget};
    sl_buf_fill(&w->file, 0, SL_TABLE_HEAD_SIZE(format->header_size, (size_t)format->sections));
    return !w->file.failed;
}

void sl_table_put(struct sl_table_writer *w, size_t at, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        w->file.data[at + i] = (uint8_t)(value >> (8 * i));
}

/* Stores the size of the current section, if there is one, and aligns the end of the file for the next one in formats with a section
 * table. */
static void end_section(struct sl_table_writer *w)
{
    if (w->section_count)
        w->sections[w->section_count - 1].size = w->file.size - w->sections[w->section_count - 1].offset;
    if (w->format->at_section_count)
        sl_buf_align(&w->file, 8);
}

void sl_table_section(struct sl_table_writer *w, uint32_t id)
{
    end_section(w);
    w->sections[w->section_count].id = id;
    w->sections[w->section_count++].offset = w->file.size;
}

/* Fills header and section table. Call it last of all: they have the hashes of the rest. */
static void put_head(struct sl_table_writer *w)
{
    const struct sl_table_format *f = w->format;
    size_t at = f->header_size, size = at;
    memcpy(w->file.data, f->magic, 4);
    sl_table_put(w, 4, f->major, 2);
    sl_table_put(w, 6, f->minor, 2);
    if (f->at_header_size)
        sl_table_put(w, f->at_header_size, f->header_size, 4);
    if (f->at_section_count) {
        sl_table_put(w, f->at_section_count, w->section_count, 4);
        size = SL_TABLE_HEAD_SIZE(f->header_size, (size_t)w->section_count);
        for (uint32_t i = 0; i < w->section_count; i++, at += SL_TABLE_SECTION_ENTRY) {
            sl_table_put(w, at, w->sections[i].id, 4); /* four zero bytes follow */
            sl_table_put(w, at + 8, w->sections[i].offset, 8);
            sl_table_put(w, at + 16, w->sections[i].size, 8);
        }
    }
    if (f->at_content_hash)
        sl_table_put(w, f->at_content_hash, sl_hash(w->file.data + size, w->file.size - size), 8);
    sl_table_put(w, f->header_size - 8u, sl_table_head_hash(f, w->file.data, size), 8);
}

bool sl_table_finish(struct sl_table_writer *w, struct sl_buf *out)
{
    end_section(w);
    bool ok = !w->file.failed && !w->too_large && !out->failed;
    if (ok)
        put_head(w);
    if (ok && out->size) { /* an empty `out` takes over the memory of the file below, without a copy */
        sl_buf_align(out, 8);
        sl_buf_add(out, w->file.data, w->file.size);
        ok = !out->failed;
    } else if (ok) {
        sl_buf_free(out);
        sl_buf_detach_budget(&w->file);
        *out = w->file;
        w->file = (struct sl_buf){0};
    }
    sl_buf_free(&w->file);
    return ok;
}
