/* The tables stream: finds the tables, the widths of their columns and their positions (ECMA-335, II.24.2.6 and II.22; Portable PDB Format
 * Specification v1.0, "Tables"). */
#include "ppdb/impl.h"

/* ---- columns ---- */

/* Types of columns. Values below CODED: an index into the table of that number; from CODED to U16: a coded index, see `enum coded`. */
enum {
    CODED = 0x60,
    U16 = 0x80,
    U32,
    BYTES_8, /* four version numbers */
    STRING,
    GUID,
    BLOB,
};

/* Coded indexes: each may refer to one of several tables. The names are those of ECMA-335, II.24.2.6. */
enum coded {
    TYPE_DEF_OR_REF = CODED,
    HAS_CONSTANT,
    HAS_FIELD_MARSHAL,
    HAS_DECL_SECURITY,
    MEMBER_REF_PARENT,
    HAS_SEMANTICS,
    METHOD_DEF_OR_REF,
    MEMBER_FORWARDED,
    IMPLEMENTATION,
    CUSTOM_ATTRIBUTE_TYPE,
    RESOLUTION_SCOPE,
    TYPE_OR_METHOD_DEF,
    HAS_CUSTOM_ATTRIBUTE,
    HAS_CUSTOM_DEBUG_INFORMATION,
};

/* The tables that a coded index may refer to; its lowest `tag_bits` bits select one. This list serves only to compute the width of the
 * index, which depends on the largest of the tables, so their order here does not matter. */
static const struct {
    uint8_t tag_bits, count, tables[27];
} coded_indexes[] = {
    [TYPE_DEF_OR_REF - CODED] = {2, 3, {0x02, 0x01, 0x1B}},
    [HAS_CONSTANT - CODED] = {2, 3, {0x04, 0x08, 0x17}},
    [HAS_FIELD_MARSHAL - CODED] = {1, 2, {0x04, 0x08}},
    [HAS_DECL_SECURITY - CODED] = {2, 3, {0x02, 0x06, 0x20}},
    [MEMBER_REF_PARENT - CODED] = {3, 5, {0x02, 0x01, 0x1A, 0x06, 0x1B}},
    [HAS_SEMANTICS - CODED] = {1, 2, {0x14, 0x17}},
    [METHOD_DEF_OR_REF - CODED] = {1, 2, {0x06, 0x0A}},
    [MEMBER_FORWARDED - CODED] = {1, 2, {0x04, 0x06}},
    [IMPLEMENTATION - CODED] = {2, 3, {0x26, 0x23, 0x27}},
    [CUSTOM_ATTRIBUTE_TYPE - CODED] = {3, 2, {0x06, 0x0A}},
    [RESOLUTION_SCOPE - CODED] = {2, 4, {0x00, 0x1A, 0x23, 0x01}},
    [TYPE_OR_METHOD_DEF - CODED] = {1, 2, {0x02, 0x06}},
    [HAS_CUSTOM_ATTRIBUTE - CODED] = {5, 22, {0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0A, 0x00, 0x0E, 0x17, 0x14,
                                              0x11, 0x1A, 0x1B, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2A, 0x2C, 0x2B}},
    [HAS_CUSTOM_DEBUG_INFORMATION -
        CODED] = {5, 27, {0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0A, 0x00, 0x0E, 0x17, 0x14, 0x11, 0x1A, 0x1B,
                          0x20, 0x23, 0x26, 0x27, 0x28, 0x2A, 0x2C, 0x2B, 0x30, 0x32, 0x33, 0x34, 0x35}},
};

/* Columns of each table. Zero ends the list: no column is a plain index into table 0. */
static const uint8_t columns[TABLE_COUNT][MAX_COLUMNS] = {
    [0x00] = {U16, STRING, GUID, GUID, GUID},              /* Module */
    [0x01] = {RESOLUTION_SCOPE, STRING, STRING},           /* TypeRef */
    [0x02] = {U32, STRING, STRING, TYPE_DEF_OR_REF, 4, 6}, /* TypeDef */
    [0x03] = {0x04},                                       /* FieldPtr */
    [0x04] = {U16, STRING, BLOB},                          /* Field */
    [0x05] = {0x06},                                       /* MethodPtr */
    [0x06] = {U32, U16, U16, STRING, BLOB, 0x08},          /* MethodDef */
    [0x07] = {0x08},                                       /* ParamPtr */
    [0x08] = {U16, U16, STRING},                           /* Param */
    [0x09] = {0x02, TYPE_DEF_OR_REF},                      /* InterfaceImpl */
    [0x0A] = {MEMBER_REF_PARENT, STRING, BLOB},            /* MemberRef */
    [0x0B] = {U16, HAS_CONSTANT, BLOB},                    /* Constant */
    [0x0C] = {HAS_CUSTOM_ATTRIBUTE, CUSTOM_ATTRIBUTE_TYPE, BLOB},
    [0x0D] = {HAS_FIELD_MARSHAL, BLOB},                    /* FieldMarshal */
    [0x0E] = {U16, HAS_DECL_SECURITY, BLOB},               /* DeclSecurity */
    [0x0F] = {U16, U32, 0x02},                             /* ClassLayout */
    [0x10] = {U32, 0x04},                                  /* FieldLayout */
    [0x11] = {BLOB},                                       /* StandAloneSig */
    [0x12] = {0x02, 0x14},                                 /* EventMap */
    [0x13] = {0x14},                                       /* EventPtr */
    [0x14] = {U16, STRING, TYPE_DEF_OR_REF},               /* Event */
    [0x15] = {0x02, 0x17},                                 /* PropertyMap */
    [0x16] = {0x17},                                       /* PropertyPtr */
    [0x17] = {U16, STRING, BLOB},                          /* Property */
    [0x18] = {U16, 0x06, HAS_SEMANTICS},                   /* MethodSemantics */
    [0x19] = {0x02, METHOD_DEF_OR_REF, METHOD_DEF_OR_REF}, /* MethodImpl */
    [0x1A] = {STRING},                                     /* ModuleRef */
    [0x1B] = {BLOB},                                       /* TypeSpec */
    [0x1C] = {U16, MEMBER_FORWARDED, STRING, 0x1A},        /* ImplMap */
    [0x1D] = {U32, 0x04},                                  /* FieldRVA */
    [0x1E] = {U32, U32},                                   /* ENCLog */
    [0x1F] = {U32},                                        /* ENCMap */
    [0x20] = {U32, BYTES_8, U32, BLOB, STRING, STRING},    /* Assembly */
    [0x21] = {U32},                                        /* AssemblyProcessor */
    [0x22] = {U32, U32, U32},                              /* AssemblyOS */
    [0x23] = {BYTES_8, U32, BLOB, STRING, STRING, BLOB},   /* AssemblyRef */
    [0x24] = {U32, 0x23},                                  /* AssemblyRefProcessor */
    [0x25] = {U32, U32, U32, 0x23},                        /* AssemblyRefOS */
    [0x26] = {U32, STRING, BLOB},                          /* File */
    [0x27] = {U32, U32, STRING, STRING, IMPLEMENTATION},   /* ExportedType */
    [0x28] = {U32, U32, STRING, IMPLEMENTATION},           /* ManifestResource */
    [0x29] = {0x02, 0x02},                                 /* NestedClass */
    [0x2A] = {U16, U16, TYPE_OR_METHOD_DEF, STRING},       /* GenericParam */
    [0x2B] = {METHOD_DEF_OR_REF, BLOB},                    /* MethodSpec */
    [0x2C] = {0x2A, TYPE_DEF_OR_REF},                      /* GenericParamConstraint */
    [0x30] = {BLOB, GUID, BLOB, GUID},                     /* Document */
    [0x31] = {0x30, BLOB},                                 /* MethodDebugInformation */
    [0x32] = {0x06, 0x35, 0x33, 0x34, U32, U32},           /* LocalScope */
    [0x33] = {U16, U16, STRING},                           /* LocalVariable */
    [0x34] = {STRING, BLOB},                               /* LocalConstant */
    [0x35] = {0x35, BLOB},                                 /* ImportScope */
    [0x36] = {0x06, 0x06},                                 /* StateMachineMethod */
    [0x37] = {HAS_CUSTOM_DEBUG_INFORMATION, GUID, BLOB},   /* CustomDebugInformation */
};

/* ---- widths ---- */

enum { HEAP_STRING_WIDE = 0x01, HEAP_GUID_WIDE = 0x02, HEAP_BLOB_WIDE = 0x04, HEAP_EXTRA_DATA = 0x40 };

/* Returns the number of rows that an index into the table may refer to. The table is in this file or in the assembly, so at most one of the
 * two counts is not zero. */
static uint32_t row_count(const struct sl_ppdb *ppdb, unsigned table)
{
    uint32_t own = ppdb->tables[table].count, of_assembly = ppdb->referenced[table];
    return own > of_assembly ? own : of_assembly;
}

/* Returns the size of a coded index: two bytes, or four if the row numbers of the largest of its tables do not fit beside the tag in
 * two. */
static uint8_t coded_width(const struct sl_ppdb *ppdb, unsigned which)
{
    uint32_t limit = UINT32_C(1) << (16 - coded_indexes[which].tag_bits);
    for (unsigned i = 0; i < coded_indexes[which].count; i++)
        if (row_count(ppdb, coded_indexes[which].tables[i]) >= limit)
            return 4;
    return 2;
}

/* Returns the size of a column of type `column` in bytes. Indexes have two bytes, or four if a table has too many rows; `heap_sizes` are
 * the flags of the stream that tell this for the heaps. */
static uint8_t column_width(const struct sl_ppdb *ppdb, unsigned column, uint8_t heap_sizes)
{
    if (column < CODED) /* an index into the table of this number */
        return row_count(ppdb, column) < 65536 ? 2 : 4;
    switch (column) {
    case U16: return 2;
    case U32: return 4;
    case BYTES_8: return 8;
    case STRING: return heap_sizes & HEAP_STRING_WIDE ? 4 : 2;
    case GUID: return heap_sizes & HEAP_GUID_WIDE ? 4 : 2;
    case BLOB: return heap_sizes & HEAP_BLOB_WIDE ? 4 : 2;
    default: return coded_width(ppdb, column - CODED);
    }
}

/* Sets the widths of all columns, and the sizes of rows, which have no padding. A 0 ends the columns of a table in `columns`. */
static void size_rows(struct sl_ppdb *ppdb, uint8_t heap_sizes)
{
    for (unsigned t = 0; t < TABLE_COUNT; t++) {
        struct ppdb_metadata_table *table = &ppdb->tables[t];
        for (unsigned c = 0; c < MAX_COLUMNS && columns[t][c]; c++) {
            table->widths[c] = column_width(ppdb, columns[t][c], heap_sizes);
            table->row_size += table->widths[c];
        }
    }
}

/* ---- the stream ---- */

/* Reads the numbers of rows of the tables whose bits are set in `valid`. Fails for an unknown table with rows: the size of its rows, and so
 * the offset of the tables behind it, is not known. */
static enum sl_code read_counts(struct sl_ppdb *ppdb, struct sl_reader *r, uint64_t valid, struct sl_error *error)
{
    for (unsigned t = 0; t < TABLE_COUNT; t++) {
        if (!(valid >> t & 1))
            continue;
        uint32_t count = sl_read_u32(r);
        if (count && !columns[t][0])
            return sl_fail(error, SL_MALFORMED, "unknown metadata table 0x%02x", t);
        ppdb->tables[t].count = count;
    }
    return r->failed ? sl_fail(error, SL_MALFORMED, "invalid length") : SL_OK;
}

/* Sets the position of the rows of each table: they follow each other in the order of the tables' numbers. SL_MALFORMED if the stream is
 * too short for them. */
static enum sl_code locate_tables(struct sl_ppdb *ppdb, struct sl_reader *r, struct sl_error *error)
{
    uint64_t needed = 0;
    for (unsigned t = 0; t < TABLE_COUNT; t++)
        needed += (uint64_t)ppdb->tables[t].count * ppdb->tables[t].row_size;
    if (needed > sl_reader_left(r))
        return sl_fail(error, SL_MALFORMED,
                       "insufficient table data: %llu bytes required, but table stream only contains %zu bytes",
                       (unsigned long long)needed, sl_reader_left(r));
    for (unsigned t = 0; t < TABLE_COUNT; t++) {
        struct ppdb_metadata_table *table = &ppdb->tables[t];
        table->rows = sl_read_bytes(r, (uint64_t)table->count * table->row_size).data;
    }
    return SL_OK;
}

enum sl_code ppdb_read_tables(struct sl_ppdb *ppdb, struct sl_bytes stream, struct sl_error *error)
{
    struct sl_reader r = sl_reader(stream, false);
    sl_reader_skip(&r, 6); /* reserved, version */
    uint8_t heap_sizes = sl_read_u8(&r);
    sl_reader_skip(&r, 1);            /* reserved */
    uint64_t valid = sl_read_u64(&r); /* which tables exist */
    sl_reader_skip(&r, 8);            /* which tables are sorted */
    enum sl_code code = read_counts(ppdb, &r, valid, error);
    if (code != SL_OK)
        return code;
    if (heap_sizes & HEAP_EXTRA_DATA)
        sl_reader_skip(&r, 4); /* four bytes of unspecified meaning */
    size_rows(ppdb, heap_sizes);
    return locate_tables(ppdb, &r, error);
}

bool ppdb_row(const struct sl_ppdb *ppdb, enum table_id id, uint32_t row, uint64_t values[MAX_COLUMNS])
{
    const struct ppdb_metadata_table *table = &ppdb->tables[id];
    if (row == 0 || row > table->count)
        return false;
    struct sl_bytes bytes = {table->rows + (size_t)(row - 1) * table->row_size, table->row_size};
    struct sl_reader r = sl_reader(bytes, false);
    for (unsigned c = 0; c < MAX_COLUMNS && table->widths[c]; c++)
        values[c] = sl_read_uint(&r, table->widths[c]);
    return true;
}
