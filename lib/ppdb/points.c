/* Sequence points (Portable PDB Format Specification v1.0, "Sequence Points Blob"). */
#include "ppdb/impl.h"

enum method_column { METHOD_DOCUMENT, METHOD_POINTS };
/* Limits of the specification. HIDDEN_LINE is reserved for hidden points, so no visible point has it. */
enum { HIDDEN_LINE = 0xFEEFEE, MAX_LINE = 0x20000000, MAX_COLUMN = 0x10000, MAX_IL_OFFSET = 0x20000000 };

void sl_ppdb_points_begin(const struct sl_ppdb *ppdb, uint32_t method, struct sl_ppdb_points *points)
{
    uint64_t values[MAX_COLUMNS];
    struct sl_bytes blob = {NULL, 0};
    *points = (struct sl_ppdb_points){0};
    if (!ppdb_row(ppdb, TABLE_METHOD_DEBUG_INFORMATION, method, values))
        return;
    points->failed = ppdb_blob(ppdb, values[METHOD_POINTS], &blob, NULL) != SL_OK;
    if (!blob.size)
        return;
    points->blob = sl_reader(blob, false);
    ppdb_read_unsigned(&points->blob); /* signature of the local variables */
    /* 0 = the method has several documents: then the blob names the first */
    points->document = (uint32_t)values[METHOD_DOCUMENT];
    if (!points->document)
        points->document = ppdb_read_unsigned(&points->blob);
    points->failed = points->blob.failed;
}

/* Reads the document records in front of a point. A zero byte announces one, because only the first point of a method (`any` is not set
 * yet) may begin with a zero difference of IL offsets. */
static void read_document_records(struct sl_ppdb_points *points)
{
    struct sl_reader *r = &points->blob;
    while (points->any && sl_reader_left(r) && *r->at == 0) {
        sl_reader_skip(r, 1);
        points->document = ppdb_read_unsigned(r);
    }
}

static bool is_line(int64_t line)
{
    return line >= 0 && line < MAX_LINE && line != HIDDEN_LINE;
}

static bool is_column(int64_t column)
{
    return column >= 0 && column < MAX_COLUMN;
}

/* Reads the start of a visible point, which extends over `lines` and `columns`. The start is stored as a difference to the last visible
 * point, that of the first one as it is. False if the point is damaged or outside the limits of the specification. */
static bool read_visible(struct sl_ppdb_points *points, uint32_t lines, int32_t columns, struct sl_ppdb_point *point)
{
    struct sl_reader *r = &points->blob;
    int64_t line, column;
    if (points->any_visible) {
        line = (int64_t)points->line + ppdb_read_signed(r);
        column = (int64_t)points->column + ppdb_read_signed(r);
    } else {
        line = ppdb_read_unsigned(r);
        column = ppdb_read_unsigned(r);
    }
    int64_t end_line = line + lines, end_column = column + columns;
    if (r->failed || !is_line(line) || !is_line(end_line) || !is_column(column) || !is_column(end_column))
        return false;
    points->any_visible = true;
    point->line = points->line = (uint32_t)line;
    point->column = points->column = (uint32_t)column;
    point->end_line = (uint32_t)end_line;
    point->end_column = (uint32_t)end_column;
    return true;
}

/* Reads a point: the difference of its IL offset to that of the point before, and the lines and columns that it extends over; if both are
 * 0, it is hidden and has no start. False if it is damaged. */
static bool read_point(struct sl_ppdb_points *points, struct sl_ppdb_point *point)
{
    struct sl_reader *r = &points->blob;
    uint32_t delta = ppdb_read_unsigned(r), lines = ppdb_read_unsigned(r);
    /* within one line the end is never before the start, so the difference has no sign */
    int32_t columns = lines ? ppdb_read_signed(r) : (int32_t)ppdb_read_unsigned(r);
    if (r->failed || delta >= MAX_IL_OFFSET - points->il_offset)
        return false;
    points->il_offset += delta;
    points->any = true;
    *point = (struct sl_ppdb_point){.il_offset = points->il_offset, .document = points->document};
    point->hidden = lines == 0 && columns == 0;
    return point->hidden || read_visible(points, lines, columns, point);
}

bool sl_ppdb_points_next(struct sl_ppdb_points *points, struct sl_ppdb_point *point)
{
    if (points->failed)
        return false;
    read_document_records(points);
    if (!points->blob.failed && sl_reader_left(&points->blob) == 0)
        return false;
    points->failed = points->blob.failed || !read_point(points, point);
    return !points->failed;
}
