#include "same_message.h"

#include "symbfile/columns.h"

static bool same_list(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count)
{
    return a_count == b_count && (!a_count || memcmp(a, b, a_count * sizeof *a) == 0);
}

static bool same_text(ProtobufCBinaryData a, ProtobufCBinaryData b)
{
    return a.len == b.len && (!a.len || memcmp(a.data, b.data, a.len) == 0);
}

static bool same_choices(const Symbfile__RangeV1 *a, const Symbfile__RangeV1 *b)
{
    if (a->elf_va_case != b->elf_va_case || a->func_case != b->func_case || a->file_case != b->file_case ||
        a->call_file_case != b->call_file_case)
        return false;
    if (a->elf_va_case && a->setelfva != b->setelfva) /* of the same size as the other member */
        return false;
    if (a->func_case == SYMBFILE__RANGE_V1__FUNC_FUNC_STR ? !same_text(a->funcstr, b->funcstr)
                                                          : a->func_case && a->funcref != b->funcref)
        return false;
    if (a->file_case == SYMBFILE__RANGE_V1__FILE_FILE_STR ? !same_text(a->filestr, b->filestr)
                                                          : a->file_case && a->fileref != b->fileref)
        return false;
    return a->call_file_case == SYMBFILE__RANGE_V1__CALL_FILE_CALL_FILE_STR
               ? same_text(a->callfilestr, b->callfilestr)
               : !a->call_file_case || a->callfileref == b->callfileref;
}

static bool same_tables(const Symbfile__LineTable *a, const Symbfile__LineTable *b)
{
    if (!a || !b)
        return !a && !b;
    return same_list(a->offset, a->n_offset, b->offset, b->n_offset) &&
           same_list(a->linenumber, a->n_linenumber, b->linenumber, b->n_linenumber);
}

enum sameness same_range(struct sl_bytes body)
{
    struct columns columns = {0};
    Symbfile__RangeV1 mine, *theirs;
    enum sameness result = LEFT_TO_PROTOBUF;
    if (columns_read_range(&columns, body, &mine)) {
        theirs = symbfile__range_v1__unpack(NULL, body.size, body.data);
        result = theirs && same_choices(&mine, theirs) && mine.length == theirs->length &&
                         mine.callline == theirs->callline && mine.depth == theirs->depth &&
                         same_tables(mine.linetable, theirs->linetable)
                     ? SAME
                     : DIFFERENT;
        symbfile__range_v1__free_unpacked(theirs, NULL);
    }
    columns_free(&columns);
    return result;
}

enum sameness same_pad(struct sl_bytes body)
{
    struct columns columns = {0};
    Symbfile__ReturnPadV1 mine, *theirs;
    enum sameness result = LEFT_TO_PROTOBUF;
    if (columns_read_pad(&columns, body, &mine)) {
        theirs = symbfile__return_pad_v1__unpack(NULL, body.size, body.data);
        result = theirs && mine.elf_va_case == theirs->elf_va_case &&
                         (!mine.elf_va_case || mine.setelfva == theirs->setelfva) &&
                         same_list(mine.func, mine.n_func, theirs->func, theirs->n_func) &&
                         same_list(mine.file, mine.n_file, theirs->file, theirs->n_file) &&
                         same_list(mine.line, mine.n_line, theirs->line, theirs->n_line)
                     ? SAME
                     : DIFFERENT;
        symbfile__return_pad_v1__free_unpacked(theirs, NULL);
    }
    columns_free(&columns);
    return result;
}
